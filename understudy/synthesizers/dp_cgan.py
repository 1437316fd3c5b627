"""DP-CGAN (Torkzadehmahani et al.): a GAN that is told the label; real labels enter the critic's clipped term alone."""

from dataclasses import dataclass

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.dp_wgan import plan_game, train_gan
from understudy.synthesizers.neural.gan_options import GanOptions
from understudy.synthesizers.neural.plans import Plans, label_classes, one_way_share_of, planned_steps
from understudy.synthesizers.neural.released import Released
from understudy.synthesizers.planned import Planned
from understudy.table.table import Table

NAME = "dp-cgan"
SUMMARY = "GAN told the label, critic trained by DP-SGD; needs a label with declared values"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config(GanOptions):
    """Public settings. The defaults need no tuning; see GanOptions."""


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    _plan(config, schema, budget)


def _plan(config: Config, schema: Schema, budget: Budget) -> Plans:
    label_classes(schema, NAME)
    return plan_game(config, schema, budget)


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    return planned_steps(schema, _plan(config, schema, budget), "critic")


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then plays the game: the critic sees row and label, the generator is given a label.

    Charges: a Gaussian for all one-way tables (`release_layout`); `plan.event` for all steps of the critic: a real
    row's label is part of that row's own clipped term. Labels of made-up rows are drawn from the released one-way
    table, so the generator never meets a real one.
    """
    return train_gan(config, _plan(config, schema, budget), schema, table, budget, True, streams, progress)
