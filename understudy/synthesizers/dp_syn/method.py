"""DP-SYN (Abay et al.): by class of the label, a private autoencoder and a mixture of Gaussians over its codes."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.privacy import Budget, Gaussian, Ledger, NonPrivate, Parallel, SelfComposed, Streams
from understudy.privacy.ledger import Entry, Prepaid
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.neural.plans import (
    Phase,
    Plans,
    check_options,
    check_size,
    label_classes,
    make_plans,
    one_way_share_of,
    planned_steps,
    widest,
)
from understudy.synthesizers.neural.released import Generator, Released
from understudy.synthesizers.planned import Planned, gaussian_event
from understudy.table.table import Table

if TYPE_CHECKING:
    from understudy.synthesizers.neural.rows import Layout
    from understudy.training.autoencoder import Coder
    from understudy.training.dpsgd import DpSgd

NAME = "dp-syn"
SUMMARY = "by class of the label, an autoencoder by DP-SGD and a mixture of Gaussians over its codes (DP-EM)"

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "one_way_share_of", "planned", "train"]

# A class whose released rows are fewer than this many standard deviations of a one-way count is not trained on: its
# own gradients would be noise.
LEAST_ROWS_IN_NOISE = 2.0


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the one-way tables; None follows a public rule.
    moment_share: share of what is left for the moments of codes.
    components: Gaussians a class.
    iterations: releases of moments, the first of all codes of a class together (one component needs that one alone).
    latent: numbers of a code.
    hidden: units of the layer in each half.
    blur: noise on the codes that a decoder learns from, in a ball of radius sqrt(latent).
    batch: expected rows of a step over all classes; None follows a public rule.
    steps: of DP-SGD, for each class.
    clip: norm of one row's gradient over both halves.
    learning_rate: of the first steps; it falls to nothing.
    """

    one_way_share: float | None = None
    moment_share: float = 0.15
    components: int = 3
    iterations: int = 5
    latent: int = 8
    hidden: int = 64
    blur: float = 0.5
    batch: int | None = None
    steps: int = 1000
    clip: float = 1.0
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        check_options(
            self,
            moment_share=(float, 0.001, 0.9),
            components=(int, 1, 100),
            iterations=(int, 2, 1000),
            latent=(int, 1, 64),
            hidden=(int, 1, 65_536),
            blur=(float, 0, 10),
            steps=(int, 1, 1_000_000),
            clip=(float, 1e-6, 1e6),
            learning_rate=(float, 1e-6, 1),
        )
        if self.batch is not None:
            check_options(self, batch=(int, 1, 10_000_000))
        if self.one_way_share is not None:
            check_options(self, one_way_share=(float, 0.001, 0.9))

    @property
    def releases(self) -> int:
        """Of moments: one Gaussian needs no more than those of all codes together."""
        return self.iterations if self.components > 1 else 1


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    _plan(config, schema, budget)


def _plan(config: Config, schema: Schema, budget: Budget) -> Plans:
    label_classes(schema, NAME)
    check_size(2 * (widest(schema) + config.latent) * config.hidden, "hidden")
    one_way = one_way_share_of(config, schema, budget)
    moments = (1 - one_way) * config.moment_share
    return make_plans(
        schema,
        budget,
        one_way_share=one_way,
        phases=(Phase(config.batch, config.steps, 1 - one_way - moments, config.clip),),
        releases=((config.releases, moments),),
    )


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plans = _plan(config, schema, budget)
    (multiplier,) = plans.release_multipliers
    told = planned_steps(schema, plans, "autoencoder of every class")
    moments = Entry(SelfComposed(gaussian_event(multiplier), config.releases), "moments of every class's codes")
    return Planned((*told.entries, moments), (*told.facts, ("classes", "a row is in one: all classes cost as one")))


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then learns every class from its own rows.

    Charges: a Gaussian for all one-way tables (`release_layout`); then, for all classes at once, `Parallel` of their
    steps (`loop.run`) and `Parallel` of their moments (`release_moments`): which class a row is in is told by that row
    alone, a row is in one class, and what is learnt of a class sees that class's rows and released numbers alone. All
    classes have the same rate, steps and noise, from public facts; a class's gradients are divided by the rate times
    its released count.
    """
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import coarse_rows, release_layout
    from understudy.training import autoencoder
    from understudy.training.nets import Net

    ledger = Ledger(budget)
    plans = _plan(config, schema, budget)
    progress("counting columns", 0.0)
    layout = release_layout(table, schema, noise_multiplier=plans.one_way_multiplier, streams=streams, ledger=ledger)
    width = layout.blocks.width
    coder = autoencoder.Coder(
        blocks=layout.blocks,
        encoder=Net.of([width, config.hidden, config.latent]),
        decoder=Net.of([config.latent, config.hidden, width]),
        learning_rate=config.learning_rate,
        radius=math.sqrt(config.latent),
        blur=config.blur,
        steps=config.steps,
    )
    (plan,), (moment_multiplier,) = plans.phases, plans.release_multipliers
    moment = Gaussian(moment_multiplier) if moment_multiplier else NonPrivate()
    place = layout.place_of(schema.label)
    shares = layout.shares[place]
    learnt = [code for code in range(len(shares)) if shares[code] > 0 and _enough_rows(layout, shares[code])]
    # Charged whatever was learnt: what a fit costs must not hang on what it found.
    parts = max(len(learnt), 1)
    ledger.charge(Parallel((plan.event,) * parts), f"{plan.steps} steps of every class's autoencoder")
    ledger.charge(
        Parallel((SelfComposed(moment, config.releases),) * parts),
        f"{config.releases} times the moments of every class's codes",
    )
    rows = coarse_rows(table, layout)
    generators = []
    for code, share in enumerate(shares.tolist()):
        if code in learnt:
            own_plan = replace(plan, expected_batch=plan.rate * max(share * layout.one_way.total, 1.0))
            generators.append(
                _learn_class(
                    config,
                    coder,
                    layout,
                    rows[rows[:, place] == code],
                    code=code,
                    plan=own_plan,
                    prepaid=Prepaid(moment, config.releases),
                    moment_multiplier=moment_multiplier,
                    streams=streams,
                    progress=progress,
                    note=f"class {learnt.index(code) + 1} of {len(learnt)}",
                )
            )
        elif share > 0:
            generators.append(_columns_alone(layout, share=share, label=code))
    generators = correct_marginals(generators, layout, seed=streams.init)
    return Released(schema, generators, layout.groups, layout.one_way.counts, round(layout.one_way.total)), ledger


def _enough_rows(layout: "Layout", share: float) -> bool:
    return share * layout.one_way.total >= LEAST_ROWS_IN_NOISE * layout.one_way.cell_noise(layout.schema.label)


def _learn_class(
    config: Config,
    coder: "Coder",
    layout: "Layout",
    rows: np.ndarray,
    *,
    code: int,
    plan: "DpSgd",
    prepaid: Prepaid,
    moment_multiplier: float,
    streams: Streams,
    progress: Progress,
    note: str,
) -> Generator:
    """The autoencoder of one class, then the mixture of its codes; `rows` are that class's alone, and private."""
    from understudy.synthesizers.dp_syn.latent_mixture import fit_mixture
    from understudy.synthesizers.dp_syn.moments import codes_of
    from understudy.synthesizers.neural.weights import arrays_of
    from understudy.training import autoencoder, loop

    blocks = coder.blocks
    state = loop.run(
        plan,
        autoencoder.make_step(coder),
        autoencoder.start(coder, streams.init, bias=blocks.logits_of(layout.shares)),
        rows,
        streams=streams,
        progress=progress,
        stage="training",
        note=note,
    )
    encoder = arrays_of(autoencoder.layers_of(state["average"], "encoder."))
    mixture = fit_mixture(
        codes_of(rows, blocks, encoder, coder.radius),
        components=config.components,
        iterations=config.releases,
        radius=coder.radius,
        blur=config.blur,
        noise_multiplier=moment_multiplier,
        streams=streams,
        ledger=prepaid,
        purpose="moments of codes",
    )
    return Generator(
        share=float(layout.shares[layout.place_of(layout.schema.label)][code]),
        weights=mixture.weights,
        means=mixture.means.astype(np.float32),
        roots=np.linalg.cholesky(mixture.covariances).astype(np.float32),
        layers=arrays_of(autoencoder.layers_of(state["average"], "decoder.")),
        activations=coder.decoder.activations,
        label=code,
    )


def _columns_alone(layout: "Layout", *, share: float, label: int) -> Generator:
    """For a class that is too small to learn from: columns as in the whole table, independent of each other."""
    bias = layout.blocks.logits_of(layout.shares)
    return Generator.standard(
        [(np.zeros((1, len(bias)), dtype=np.float32), bias)], ("linear",), share=share, label=label
    )
