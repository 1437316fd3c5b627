"""DP-auto-GAN (Tantipongpipat et al.): a private autoencoder, then a private GAN in front of its frozen decoder."""

from dataclasses import dataclass

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.neural.gan_options import GanOptions
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

NAME = "dp-auto-gan"
SUMMARY = "autoencoder by DP-SGD, then a GAN by DP-SGD in front of its decoder"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config(GanOptions):
    """Public settings. The defaults need no tuning. Besides those of every GAN:

    latent: numbers between encoder and decoder, which the generator makes.
    autoencoder_share: share of what the one-way tables leave of the budget that goes to the autoencoder.
    autoencoder_hidden: units of the layer in each half of the autoencoder.
    autoencoder_steps: steps of the autoencoder, all of them charged.
    autoencoder_clip: norm of one row's gradient over encoder and decoder.
    autoencoder_rate: its learning rate, which falls to nothing.
    divergence_weight: how strongly codes are drawn to standard normal ones; 0 is the paper's plain autoencoder.
    """

    latent: int = 8
    generator_hidden: tuple[int, ...] = (64,)
    autoencoder_share: float = 0.6
    autoencoder_hidden: int = 64
    autoencoder_steps: int = 1000
    autoencoder_clip: float = 1.0
    autoencoder_rate: float = 0.01
    divergence_weight: float = 1.0

    def __post_init__(self) -> None:
        GanOptions.__post_init__(self)
        check_options(
            self,
            autoencoder_share=(float, 0.01, 0.99),
            autoencoder_hidden=(int, 1, 65_536),
            autoencoder_steps=(int, 1, 1_000_000),
            autoencoder_clip=(float, 1e-6, 1e6),
            autoencoder_rate=(float, 1e-7, 1),
            divergence_weight=(float, 0, 100),
        )


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    _plan(config, schema, budget)


def _plan(config: Config, schema: Schema, budget: Budget) -> Plans:
    width = widest(schema)
    check_size(config.parameters(width), "critic_hidden or generator_hidden")
    check_size(2 * (width + config.latent) * config.autoencoder_hidden, "autoencoder_hidden")
    share = one_way_share_of(config, schema, budget)
    left = 1 - share
    phases = (
        Phase(config.batch, config.autoencoder_steps, left * config.autoencoder_share, config.autoencoder_clip),
        Phase(config.batch, config.steps, left * (1 - config.autoencoder_share), config.clip, config.checkpoints),
    )
    return make_plans(schema, budget, one_way_share=share, phases=phases)


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    return planned_steps(schema, _plan(config, schema, budget), "autoencoder", "critic")


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Three charged stages on one ledger, calibrated together: composed before conversion, not epsilon by epsilon.

    Charges: a Gaussian for all one-way tables (`release_layout`); the first plan's event for the autoencoder, whose
    encoder and decoder are clipped jointly and both noised; the second plan's event for the critic. The generator, the
    frozen decoder and the correction of the marginals see released values alone.
    """
    from understudy.synthesizers.neural.adversarial import play
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import coarse_rows, release_layout
    from understudy.synthesizers.neural.words import spent_so_far
    from understudy.training import autoencoder, loop
    from understudy.training.nets import Net

    ledger = Ledger(budget)
    plans = _plan(config, schema, budget)
    progress("counting columns", 0.0)
    layout = release_layout(table, schema, noise_multiplier=plans.one_way_multiplier, streams=streams, ledger=ledger)
    blocks = layout.blocks
    codes = coarse_rows(table, layout)
    first, second = plans.phases
    variational = config.divergence_weight > 0
    coder = autoencoder.Coder(
        blocks=blocks,
        encoder=Net.of([blocks.width, config.autoencoder_hidden, config.latent * (1 + variational)]),
        decoder=Net.of([config.latent, config.autoencoder_hidden, blocks.width]),
        learning_rate=config.autoencoder_rate,
        variational=variational,
        divergence_weight=config.divergence_weight,
        steps=config.autoencoder_steps,
    )
    note = spent_so_far(first, ledger)
    ledger.charge(first.event, f"{first.steps} steps of the autoencoder")
    state = loop.run(
        first,
        autoencoder.make_step(coder),
        autoencoder.start(coder, streams.init, bias=blocks.logits_of(layout.shares)),
        codes,
        streams=streams,
        progress=progress,
        stage="training the autoencoder",
        note=note,
    )
    note = spent_so_far(second, ledger)
    ledger.charge(second.event, f"{second.steps} steps of the critic")
    played = play(
        config,
        second,
        layout,
        codes,
        decoder=(coder.decoder, autoencoder.layers_of(state["average"], "decoder.")),
        streams=streams,
        progress=progress,
        stage="training the generator",
        note=note,
    )
    generators = played.generators
    if config.correct_marginals:
        generators = correct_marginals(generators, layout, seed=streams.init)
    rows = round(layout.one_way.total)
    return Released(schema, generators, layout.groups, layout.one_way.counts, rows, played.trajectory), ledger
