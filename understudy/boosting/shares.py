"""How one budget pays for training and picks: public rules, and what a method is asked to train with."""

import dataclasses
import math
from types import ModuleType
from typing import Any

from understudy.boosting.settings import Boosting
from understudy.errors import OptionError
from understudy.privacy import Budget
from understudy.privacy.calibrate import gaussian_epsilon, noise_multiplier
from understudy.schema import Schema
from understudy.synthesizers.neural.plans import MOST_ONE_WAY


def training_budget(budget: Budget, share: float) -> Budget:
    """What the picks' share leaves, in terms of 1/z^2: a public rule."""
    if not budget.private:
        return budget
    return Budget(gaussian_epsilon(noise_multiplier(budget) / math.sqrt(1 - share), budget.delta), budget.delta)


def training_part(
    module: ModuleType, config: Any, schema: Schema, budget: Budget, settings: Boosting
) -> tuple[Any, Budget]:
    """What a method trains with before its rows are boosted: settings, and its part of the budget. Public facts alone.

    Checkpoints are kept where the method can and was not told how many. Methods that learn by steps have the same
    one-way tables as without boosting (`with_columns`), so that the picks are paid by the steps alone: picks weigh
    rows by how columns go together, which is what the steps learn, and can mend no column.
    """
    if getattr(config, "checkpoints", None) == 0:
        config = dataclasses.replace(config, checkpoints=min(settings.checkpoints, config.steps))
    if budget.private and hasattr(module, "one_way_share_of"):
        config = with_columns(config, module.one_way_share_of(config, schema, budget), settings.share)
    return config, training_budget(budget, settings.share)


def with_columns(config: Any, one_way_share: float, share: float) -> Any:
    """The settings with a share of the training's budget that is `one_way_share` of the whole.

    Where a rule gives the columns so much that the steps would be left with less than a tenth, they keep a tenth; where
    a person asks for that much, it is refused.
    """
    of_training = one_way_share / (1 - share)
    if config.one_way_share is not None and of_training > MOST_ONE_WAY:
        raise OptionError(
            f"one_way_share must be at most {MOST_ONE_WAY * (1 - share):.3g} where boosting takes {share:g} of the"
            f" budget, got {one_way_share:g}: lower it, or the share of boosting"
        )
    return dataclasses.replace(config, one_way_share=min(of_training, MOST_ONE_WAY))
