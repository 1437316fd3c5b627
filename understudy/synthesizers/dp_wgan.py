"""DP-WGAN (Frigerio et al.): a GAN on encoded rows whose critic learns by DP-SGD; the generator is released."""

from dataclasses import dataclass

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.neural.gan_options import GanOptions
from understudy.synthesizers.neural.plans import (
    Phase,
    Plans,
    check_size,
    make_plans,
    one_way_share_of,
    planned_steps,
    widest,
)
from understudy.synthesizers.neural.released import Released
from understudy.synthesizers.planned import Planned
from understudy.table.table import Table

NAME = "dp-wgan"
SUMMARY = "Wasserstein GAN on encoded rows, critic trained by DP-SGD"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config(GanOptions):
    """Public settings. The defaults need no tuning; see GanOptions."""


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    plan_game(config, schema, budget)


def plan_game(config: GanOptions, schema: Schema, budget: Budget) -> Plans:
    """Noise of the one-way tables and of the critic's steps, refusing networks that would not fit."""
    check_size(config.parameters(widest(schema)), "critic_hidden or generator_hidden")
    share = one_way_share_of(config, schema, budget)
    phase = Phase(config.batch, config.steps, 1 - share, config.clip, config.checkpoints)
    return make_plans(schema, budget, one_way_share=share, phases=(phase,))


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    return planned_steps(schema, plan_game(config, schema, budget), "critic")


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then plays the game on rows coded by them.

    Charges: a Gaussian for all one-way tables (`release_layout`); `plan.event` for all steps of the critic
    (`loop.run`, `gan.make_step`), those after a kept checkpoint as well. The generator sees the critic's released
    weights alone, the correction of the marginals released values alone.
    """
    return train_gan(config, plan_game(config, schema, budget), schema, table, budget, False, streams, progress)


def train_gan(
    config: GanOptions,
    plans: Plans,
    schema: Schema,
    table: Table,
    budget: Budget,
    conditional: bool,
    streams: Streams,
    progress: Progress,
) -> tuple[Released, Ledger]:
    """The game with or without labels; charges as `train` says."""
    from understudy.synthesizers.neural.adversarial import play
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import coarse_rows, release_layout
    from understudy.synthesizers.neural.words import spent_so_far

    ledger = Ledger(budget)
    progress("counting columns", 0.0)
    layout = release_layout(table, schema, noise_multiplier=plans.one_way_multiplier, streams=streams, ledger=ledger)
    (plan,) = plans.phases
    note = spent_so_far(plan, ledger)
    ledger.charge(plan.event, f"{plan.steps} steps of the critic")
    played = play(
        config,
        plan,
        layout,
        coarse_rows(table, layout),
        conditional=conditional,
        streams=streams,
        progress=progress,
        stage="training",
        note=note,
    )
    generators = played.generators
    if config.correct_marginals:
        generators = correct_marginals(generators, layout, seed=streams.init)
    rows = round(layout.one_way.total)
    return Released(schema, generators, layout.groups, layout.one_way.counts, rows, played.trajectory), ledger
