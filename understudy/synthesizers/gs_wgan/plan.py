"""From public facts to a plan: how many critics, and the noise of everything together."""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from understudy.errors import OptionError
from understudy.privacy import Budget, Gaussian
from understudy.privacy.calibrate import calibrate, noise_multiplier
from understudy.schema import Boolean, Categorical, Schema
from understudy.synthesizers.gs_wgan.config import Config
from understudy.synthesizers.gs_wgan.features import most_features
from understudy.synthesizers.neural.plans import MOST_CLASSES, MOST_PARAMETERS, check_size, one_way_share_of, widest
from understudy.synthesizers.one_way import check_one_way
from understudy.table.cells import cells_of

if TYPE_CHECKING:
    from understudy.synthesizers.gs_wgan.ask import Asking

# Measured on cardio (docs/methods/gs-wgan.md): more critics hide a row better, larger slices tell more, and noise
# matters less where epsilon is large.
ROWS_A_CRITIC = 33
MOST_ROWS_A_CRITIC = 2_000
FEWEST_CRITICS, MOST_CRITICS_BY_RULE = 2, 2_000


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before a row is read."""

    one_way_multiplier: float
    asking: "Asking"
    label: str | None  # given to the generator, not made by it


def make_plan(config: Config, schema: Schema, budget: Budget) -> Plan:
    """Noise for the one-way tables by their share, then for the questions what is left of the budget, exactly."""
    from understudy.synthesizers.gs_wgan.ask import Asking

    critics = number_of_critics(config, schema, budget)
    width = widest(schema)
    sizes = (config.latent + MOST_CLASSES, *config.generator_hidden, width)
    check_size(sum(a * b for a, b in itertools.pairwise(sizes)), "generator_hidden")
    check_size(critics * _weights(config, schema), "critics, powers or critic_hidden")
    share = one_way_share_of(config, schema, budget)
    one_way = noise_multiplier(budget) / math.sqrt(share)
    check_one_way(schema, noise_multiplier=one_way)
    asking = Asking(
        critics=critics,
        steps=config.steps,
        batch=config.batch,
        clip=config.clip,
        noise_multiplier=_noise(budget, one_way, critics, config.steps),
    )
    return Plan(one_way, asking, given_label(config, schema))


def number_of_critics(config: Config, schema: Schema, budget: Budget) -> int:
    """As asked for, or by a public rule from the declared rows and epsilon."""
    if config.critics is not None:
        if config.critics > schema.rows:
            raise OptionError(
                f"critics must be at most the declared rows ({schema.rows}), got {config.critics}: most slices would be"
                " empty; lower it or leave it out"
            )
        return config.critics
    rows = min(ROWS_A_CRITIC * max(1.0, math.sqrt(budget.epsilon)), MOST_ROWS_A_CRITIC)
    fitting = MOST_PARAMETERS // (4 * _weights(config, schema))  # wide tables: fewer
    return max(min(round(schema.rows / rows), fitting, MOST_CRITICS_BY_RULE), FEWEST_CRITICS)


def _weights(config: Config, schema: Schema) -> int:
    """Of one critic, at most."""
    features = most_features(schema, powers=config.powers)
    return features * (features + 1) + (features + 2) * config.critic_hidden


def given_label(config: Config, schema: Schema) -> str | None:
    """The label, if the generator is to be told it: one with few declared values."""
    if not config.conditional or schema.label is None:
        return None
    column = schema.modelled[schema.label]
    fits = isinstance(column, Categorical | Boolean) and 2 <= cells_of(column).count <= MOST_CLASSES
    return schema.label if fits else None


@lru_cache(maxsize=64)
def _noise(budget: Budget, one_way: float, critics: int, steps: int) -> float:
    """Calibration takes seconds and is asked for twice, before the budget is booked and when the fit begins."""
    from understudy.synthesizers.gs_wgan.ask import asking_event

    return calibrate(lambda noise: [Gaussian(one_way), asking_event(critics, steps, noise)], budget)
