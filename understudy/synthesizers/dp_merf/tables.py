"""DP-MERF for tables: one release of one-way tables, one of the mean embedding, then a generator that matches both."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.errors import OptionError
from understudy.privacy import Budget, Ledger, Streams, gaussian
from understudy.privacy.ledger import Entry
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.dp_merf.config import Config
from understudy.synthesizers.dp_merf.features import Embedding, FeatureMap
from understudy.synthesizers.dp_merf.shape import Plan, check_plan, feature_map, plan_of
from understudy.synthesizers.dp_merf.undersampling import keep_rows, rates_of
from understudy.synthesizers.dp_merf.waves import AMPLITUDE
from understudy.synthesizers.neural.plans import check_size, widest
from understudy.synthesizers.neural.released import Generator, Released
from understudy.synthesizers.one_way import ROWS_PER_BLOCK
from understudy.synthesizers.planned import Planned, gaussian_event, one_way_entry
from understudy.table.table import Table

if TYPE_CHECKING:
    from understudy.synthesizers.dp_merf.match import LabelCounts
    from understudy.synthesizers.neural.rows import Layout

ONE_WAY_SHARE = 0.2
FREQUENCIES, WIDTHS = 128, (0.5, 1.0, 2.0)
LATENT, HIDDEN, DRAWS, STEPS, LEARNING_RATE = 6, 128, 512, 600, 0.01
LEAST_ROWS = 1.0  # of a class, after noise


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    for option in ("minibatches", "autoencoder"):
        if getattr(config, option):
            raise OptionError(f"{option} is for images, and the schema has none; leave it out")
    if not schema.modelled:
        raise OptionError("dp-merf needs a column to model, and the schema declares none that is not an id or text")
    plan = _plan(config, schema, budget)
    if config.class_shares == "equal" and not plan.classes:
        raise OptionError("class_shares: equal needs a label with declared values; leave it out")
    rates_of(config, schema, classes=plan.classes)
    check_plan(plan, schema, config.features or FREQUENCIES)
    hidden = config.hidden or HIDDEN
    check_size((widest(schema) + hidden) * hidden, "hidden")


def _plan(config: Config, schema: Schema, budget: Budget) -> Plan:
    return plan_of(schema, budget, one_way_share=config.one_way_share or ONE_WAY_SHARE, order=config.order)


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plan = _plan(config, schema, budget)
    embedding = Entry(gaussian_event(plan.multiplier), "mean embedding, all of it at once")
    pairs = ("columns and pairs of columns" + ", by class" * plan.split) if plan.pairs else "columns alone"
    return Planned(
        (one_way_entry(schema, plan.one_way_multiplier), embedding),
        (
            ("embedding", f"{config.features or FREQUENCIES} random frequencies, and {pairs}"),
            ("bins", f"up to {plan.bins} a numeric column"),
        ),
    )


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases one-way tables, then the mean embedding of rows coded by them.

    Charges: a Gaussian for all one-way tables (`release_layout`), and one for the embedding: class sums, counts and all
    (`release_embedding`). All else sees released values alone, for as many steps as one likes. Undersampling drops
    each row by a coin of its own, with a public chance, before anything is counted: given the coins, a row more is a
    row more or nothing, so both charges hold, and no amplification is claimed.
    """
    from understudy.synthesizers.dp_merf.expected import Expected
    from understudy.synthesizers.dp_merf.match import Noise, Training, match
    from understudy.synthesizers.neural.rows import release_layout
    from understudy.training.heads import Blocks

    ledger = Ledger(budget)
    plan = _plan(config, schema, budget)
    rates = rates_of(config, schema, classes=plan.classes)
    if rates is not None:
        table = keep_rows(table, schema, rates, streams.sampling)
    progress("counting columns", 0.0)
    layout = release_layout(
        table,
        schema,
        noise_multiplier=plan.one_way_multiplier,
        streams=streams,
        ledger=ledger,
        bins=plan.bins,
    )
    features = feature_map(
        plan,
        layout,
        waves=config.features or FREQUENCIES,
        widths=config.widths or WIDTHS,
        count_weight=config.count_weight,
        rng=np.random.default_rng(streams.init),
    )
    embedding, noise = release_embedding(
        table, layout, features, plan, streams=streams, ledger=ledger, progress=progress
    )
    rows = class_rows(embedding, features, noise, layout, plan)
    rates_back = 1.0 if rates is None else rates.of_codes
    if config.class_shares == "equal":
        rows, rates_back = np.full(len(rows), rows.sum() / len(rows)), 1.0
    names = plan.columns(layout)
    blocks = Blocks(features.sizes)
    label, label_counts = None, None
    bias = blocks.logits_of([layout.shares[layout.place_of(name)] for name in names])
    if plan.label_number:
        share = layout.shares[layout.place_of(schema.label)]
        label, label_counts = Blocks((len(share),)), _label_counts(layout)
        bias = np.concatenate([bias, label.logits_of([share])])
    # Without noise, what counts is the error of one row.
    unit = max(noise, 1.0 * features.column_weight)
    fitted = match(
        Expected(features, blocks, label),
        embedding,
        Noise(
            unit / AMPLITUDE,
            unit / features.column_weight,
            unit / features.pair_weight,
            unit / max(features.total_weight, 1),
        ),
        rows,
        Training(
            latent=config.latent or LATENT,
            hidden=config.hidden or HIDDEN,
            draws=config.batch or DRAWS,
            steps=config.steps or STEPS,
            learning_rate=config.learning_rate or LEARNING_RATE,
        ),
        label=label_counts,
        bias=bias,
        seed=streams.init,
        progress=progress,
    )
    rows = rows / rates_back
    generators = _generators(fitted, rows, layout, plan)
    total = max(round(float(rows.sum())), 1)
    return Released(schema, generators, layout.groups, layout.one_way.counts, total), ledger


def release_embedding(
    table: Table,
    layout: "Layout",
    features: FeatureMap,
    plan: Plan,
    *,
    streams: Streams,
    ledger: Ledger,
    progress: Progress,
) -> tuple[Embedding, float]:
    """The noisy sums of all rows' features, with the noise's standard deviation in units of the release.

    Guarantee: a row adds its own vector of whole numbers, whose length is at most `features.sensitivity()` for every
    possible row (proved there); one Gaussian event with the plan's multiplier is charged. The map itself is made of
    public and released values. Sums are exact, so neither the order of rows nor the size of blocks matters. Rows are
    read block by block.
    """
    from understudy.synthesizers.neural.rows import coarse_rows

    counts = features.empty_counts()
    place = layout.place_of(layout.schema.label) if layout.schema.label else None
    progress("embedding rows", 0.0)
    for block in table.blocks(ROWS_PER_BLOCK):
        part = Table(layout.schema, block, len(next(iter(block.values()))))
        codes = coarse_rows(part, layout)
        labels = codes[:, place] if place is not None and len(features.factor) > 1 else np.zeros(len(codes), np.int64)
        features.count(np.delete(codes, place, axis=1) if plan.label_apart else codes, labels, counts)
    sensitivity = features.sensitivity()
    progress("adding noise", 0.0)
    noisy = gaussian(
        features.stack(counts),
        l2_sensitivity=sensitivity,
        noise_multiplier=plan.multiplier,
        streams=streams,
        ledger=ledger,
        purpose=f"mean embedding of {features.size:,} features",
    )
    return features.unstack(noisy), plan.multiplier * sensitivity


def class_rows(embedding: Embedding, features: FeatureMap, noise: float, layout: "Layout", plan: Plan) -> np.ndarray:
    """Rows by class (or of the whole table), from everything released that tells them, weighted by its precision."""
    if not plan.classes:
        return np.array([layout.one_way.total])
    label = layout.schema.label
    estimates = [np.bincount(layout.groups[label], weights=layout.one_way.counts[label], minlength=plan.classes)]
    variances = [max(layout.one_way.cell_noise(label), 1e-9) ** 2]
    if features.total_weight:
        estimates.append(embedding.total)
        variances.append(max(noise / features.total_weight, 1e-9) ** 2)
    starts = np.cumsum([0, *features.sizes])
    for start, size in zip(starts, features.sizes, strict=False):
        # Every row has one code of each column: its codes' counts sum to the rows.
        estimates.append(embedding.columns[:, start : start + size].sum(axis=1))
        variances.append(size * max(noise / features.column_weight, 1e-9) ** 2)
    weights = 1 / np.array(variances)
    return np.maximum(np.average(np.stack(estimates), axis=0, weights=weights), LEAST_ROWS)


def _label_counts(layout: "Layout") -> "LabelCounts":
    """The released table of a label that is a number, by coarse code."""
    from understudy.synthesizers.dp_merf.match import LabelCounts

    label = layout.schema.label
    groups = layout.groups[label]
    counts = np.bincount(groups, weights=layout.one_way.counts[label])
    return LabelCounts(counts, np.maximum(np.sqrt(layout.one_way.coarse_variance(label, groups)), 1.0))


def _generators(fitted: Any, rows: np.ndarray, layout: "Layout", plan: Plan) -> list[Generator]:
    """One network a class, its one-hot input and its own biases folded in, its units in the order of the columns."""
    (first_w, first_b), *middle, (w, b) = [(np.asarray(layer["w"]), np.asarray(layer["b"])) for layer in fitted.layers]
    latent = len(first_w) - plan.classes if plan.classes > 1 else len(first_w)
    generators = []
    for code, share in enumerate(rows / rows.sum()):
        told = first_w[latent + code] if plan.classes > 1 else 0.0
        last = _in_order(w, b + fitted.class_bias[code], layout, plan)
        generators.append(
            Generator.standard(
                [(first_w[:latent], first_b + told), *middle, last],
                fitted.net.activations,
                share=float(share),
                label=code if plan.classes else None,
            )
        )
    return generators


def _in_order(w: np.ndarray, b: np.ndarray, layout: "Layout", plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """The last layer with units for the label at its place: none for a class, which a generator is told."""
    if not plan.label_apart:
        return w, b
    place = layout.place_of(layout.schema.label)
    start, width = layout.blocks.starts[place], layout.blocks.widths[place]
    if plan.classes:
        w, b = np.pad(w, ((0, 0), (0, width))), np.pad(b, (0, width))
    others = w.shape[1] - width
    order = [*range(start), *range(others, others + width), *range(start, others)]
    return w[:, order], b[order]
