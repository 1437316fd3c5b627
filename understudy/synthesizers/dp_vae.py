"""DP-VAE (Acs et al.): a variational autoencoder by DP-SGD, encoder and decoder noised; the decoder is released."""

from dataclasses import dataclass

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.neural.plans import (
    Phase,
    Plans,
    check_options,
    check_size,
    make_plans,
    one_way_share_of,
    planned_steps,
    widest,
)
from understudy.synthesizers.neural.released import Released
from understudy.synthesizers.planned import Planned
from understudy.table.table import Table

NAME = "dp-vae"
SUMMARY = "variational autoencoder trained by DP-SGD; draws rows from the decoder"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the one-way tables; None follows a public rule.
    latent: numbers between encoder and decoder.
    hidden: units of the layer in each half.
    divergence_weight: weight of the prior's term in the evidence bound.
    batch: expected rows of a step; None follows a public rule.
    steps: of DP-SGD, all of them charged.
    clip: norm of one row's gradient over both halves.
    learning_rate: of the first steps; it falls to nothing, and what is released is an average over the last of them.
    checkpoints: how many earlier decoders the model keeps, for boosting; they cost no budget.
    """

    one_way_share: float | None = None
    latent: int = 8
    hidden: int = 64
    divergence_weight: float = 1.0
    batch: int | None = None
    steps: int = 1000
    clip: float = 1.0
    learning_rate: float = 0.01
    checkpoints: int = 0

    def __post_init__(self) -> None:
        check_options(
            self,
            latent=(int, 1, 1024),
            hidden=(int, 1, 65_536),
            divergence_weight=(float, 0, 100),
            steps=(int, 1, 1_000_000),
            clip=(float, 1e-6, 1e6),
            learning_rate=(float, 1e-6, 1),
            checkpoints=(int, 0, self.steps),
        )
        if self.batch is not None:
            check_options(self, batch=(int, 1, 10_000_000))
        if self.one_way_share is not None:
            check_options(self, one_way_share=(float, 0.001, 0.9))


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    _plan(config, schema, budget)


def _plan(config: Config, schema: Schema, budget: Budget) -> Plans:
    check_size(2 * (widest(schema) + config.latent) * config.hidden, "hidden")
    share = one_way_share_of(config, schema, budget)
    phase = Phase(config.batch, config.steps, 1 - share, config.clip, config.checkpoints)
    return make_plans(schema, budget, one_way_share=share, phases=(phase,))


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    return planned_steps(schema, _plan(config, schema, budget), "autoencoder")


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then trains both halves on rows coded by them.

    Charges: a Gaussian for all one-way tables (`release_layout`); `plan.event` for all steps (`loop.run`): a row's loss
    is its own evidence bound, its gradient over encoder and decoder together is clipped, the sum is noised. The
    correction of the marginals sees released values alone.
    """
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import coarse_rows, release_layout
    from understudy.synthesizers.neural.trajectory import Trajectory
    from understudy.synthesizers.neural.weights import generator_of
    from understudy.synthesizers.neural.words import spent_so_far
    from understudy.training import autoencoder, loop
    from understudy.training.nets import Net

    ledger = Ledger(budget)
    plans = _plan(config, schema, budget)
    progress("counting columns", 0.0)
    layout = release_layout(table, schema, noise_multiplier=plans.one_way_multiplier, streams=streams, ledger=ledger)
    blocks = layout.blocks
    coder = autoencoder.Coder(
        blocks=blocks,
        encoder=Net.of([blocks.width, config.hidden, 2 * config.latent]),
        decoder=Net.of([config.latent, config.hidden, blocks.width]),
        learning_rate=config.learning_rate,
        variational=True,
        divergence_weight=config.divergence_weight,
        steps=config.steps,
    )
    (plan,) = plans.phases
    note = spent_so_far(plan, ledger)
    ledger.charge(plan.event, f"{plan.steps} steps of the autoencoder")
    kept = Trajectory(
        config.checkpoints, lambda state: {"generator": autoencoder.layers_of(state["average"], "decoder.")}
    )
    state = loop.run(
        plan,
        autoencoder.make_step(coder),
        autoencoder.start(coder, streams.init, bias=blocks.logits_of(layout.shares)),
        coarse_rows(table, layout),
        streams=streams,
        progress=progress,
        stage="training",
        note=note,
        keep=kept.add,
    )
    decoder = generator_of(autoencoder.layers_of(state["average"], "decoder."), coder.decoder)
    generators = correct_marginals([decoder], layout, seed=streams.init)
    rows = round(layout.one_way.total)
    return Released(schema, generators, layout.groups, layout.one_way.counts, rows, kept.arrays()), ledger
