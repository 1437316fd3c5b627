"""From public facts to the shape of the embedding: which blocks it has, and how much of a row's length each gets."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.errors import OptionError
from understudy.privacy import Budget, noise_multiplier, split
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Boolean, Categorical, Schema
from understudy.synthesizers.dp_merf.features import FeatureMap, class_factor, no_label, number_factor
from understudy.synthesizers.dp_merf.waves import Waves
from understudy.synthesizers.neural.plans import MOST_BINS, MOST_CLASSES, widest
from understudy.synthesizers.one_way import check_one_way
from understudy.table.cells import cells_of

if TYPE_CHECKING:
    from understudy.synthesizers.neural.rows import Layout

# Pairs of columns are worth counting while the declared rows are this many times the noise of a cell.
WORTH_PAIRS = 20.0
# and worth splitting by the label while they are this many times the noise for each class.
WORTH_SPLIT = 64.0
MOST_PAIR_CODES = 2048  # products of all codes with each other are held as a matrix
MOST_SPLIT_NUMBERS = 1 << 21
MOST_FEATURES = 5_000_000  # exact noise for them takes over a minute
FEWEST_BINS = 4
WAVE_SHARE = 0.15  # of a row's squared length
LABEL_WAVES = 4
LABEL_WIDTHS = (0.25, 0.5)
MEAN_SQUARE = 1 / 6  # of the difference of two independent positions, uniform between 0 and 1
FINEST = 1 << 18  # length of a row in whole numbers where there are no waves to set it


@dataclass(frozen=True)
class Plan:
    """Public: the noise of both releases, and the blocks of the second."""

    one_way_multiplier: float
    multiplier: float
    classes: int  # 0: the label is not one of classes
    label_number: bool
    pairs: bool
    split: bool
    bins: int

    @property
    def label_apart(self) -> bool:
        """The label is a factor of the embedding rather than one of its columns."""
        return self.classes > 0 or self.label_number

    def columns(self, layout: "Layout") -> list[str]:
        return [name for name in layout.groups if not (self.label_apart and name == layout.schema.label)]


def plan_of(schema: Schema, budget: Budget, *, one_way_share: float, order: int | None) -> Plan:
    """The rule: pairs where the declared rows bear their noise, by class where they bear that too, bins to match."""
    one_way, multiplier = split(noise_multiplier(budget), (one_way_share, 1 - one_way_share))
    classes, label_number = _label(schema)
    columns = len(schema.modelled) - (classes > 0 or label_number)
    pairs = columns * (columns - 1) // 2
    noise = multiplier * math.sqrt(max(pairs + columns, 1))
    codes = widest(schema)
    paired = order == 2 if order is not None else codes <= MOST_PAIR_CODES and _times(schema.rows, noise) >= WORTH_PAIRS
    paired = paired and pairs > 0
    if paired and codes > MOST_PAIR_CODES:
        raise OptionError(
            f"order 2 needs at most {MOST_PAIR_CODES:,} codes over all columns, and the schema has {codes:,}; "
            "set order to 1, or declare fewer values or bins"
        )
    parts = max(classes, 1) if not label_number else 1 + 2 * LABEL_WAVES
    split_pairs = (
        paired
        and parts * codes**2 <= MOST_SPLIT_NUMBERS
        and _times(schema.rows, noise) >= WORTH_SPLIT * parts
        and (classes > 0 or label_number)
    )
    counted = noise if paired else multiplier * math.sqrt(max(columns, 1))
    bins = round(min(max(2 * _times(schema.rows, counted) ** (1 / 3), FEWEST_BINS), MOST_BINS))
    return Plan(one_way, multiplier, classes, label_number, paired, split_pairs, bins)


def check_plan(plan: Plan, schema: Schema, waves: int) -> None:
    """Refuses, from public facts, a release that could not be made."""
    check_one_way(schema, noise_multiplier=plan.one_way_multiplier)
    labels = max(plan.classes, 1) if not plan.label_number else 1 + 2 * LABEL_WAVES
    codes = widest(schema)
    size = labels * (codes + 2 * waves) + (codes**2 // 2 * (labels if plan.split else 1) if plan.pairs else 0)
    if size > MOST_FEATURES:
        raise OptionError(
            f"features: the embedding would have up to {size:,} numbers, and exact noise is drawn for at most "
            f"{MOST_FEATURES:,}; lower features, set order to 1, or declare fewer values"
        )
    check_counts(l2_sensitivity=FINEST, noise_multiplier=plan.multiplier, purpose="mean embedding")


def feature_map(
    plan: Plan,
    layout: "Layout",
    *,
    waves: int,
    widths: tuple[float, ...],
    count_weight: float,
    rng: np.random.Generator,
) -> FeatureMap:
    """The map for columns laid out by released tables; the label is not among them, but multiplied with them.

    Numeric columns enter the waves by their place in the released distribution, which is close to uniform whatever the
    column's own is, so that widths need no look at rows: `widths` are in units of the distance of two typical rows.
    """
    names = plan.columns(layout)
    sizes = tuple(layout.blocks.sizes[layout.place_of(name)] for name in names)
    inputs = tuple(
        (place, _levels(layout, name)) for place, name in enumerate(names) if _is_number(layout.schema, name)
    )
    drawn = None
    if inputs and waves:
        typical = math.sqrt(len(inputs) * MEAN_SQUARE)
        drawn = Waves.draw(len(inputs), waves, tuple(width * typical for width in widths), rng)
    factor = no_label()
    if plan.classes:
        factor = class_factor(plan.classes)
    elif plan.label_number:
        levels = _levels(layout, layout.schema.label)
        factor = number_factor(levels, Waves.draw(1, LABEL_WAVES, LABEL_WIDTHS, rng))
    pairs = tuple((a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))) if plan.pairs else ()
    if drawn is not None:
        squared = drawn.norm_squared * (1 - WAVE_SHARE) / WAVE_SHARE
    else:
        squared = float(FINEST**2)
    weight = math.isqrt(int(squared / max(len(sizes) + len(pairs), 1)))
    return FeatureMap(sizes, factor, drawn, inputs, pairs, plan.split, weight, weight, round(count_weight * weight))


def _label(schema: Schema) -> tuple[int, bool]:
    """The number of classes (0 if the label is none, or of too many), and whether the label is a number."""
    if schema.label is None or len(schema.modelled) == 1:  # a label alone is a column like any other
        return 0, False
    column = schema.modelled[schema.label]
    if isinstance(column, Categorical | Boolean):
        classes = cells_of(column).count
        return (classes if classes <= MOST_CLASSES else 0), False
    return 0, True


def _is_number(schema: Schema, name: str) -> bool:
    return not isinstance(schema.modelled[name], Categorical | Boolean)


def _levels(layout: "Layout", name: str) -> np.ndarray:
    """The middle of each coarse code in the column's released distribution, 0 to 255; missing lies in the middle."""
    share = layout.shares[layout.place_of(name)]
    missing = layout.one_way.cells[name].missing
    present = share[: len(share) - missing]
    middle = (np.cumsum(present) - present / 2) / max(present.sum(), 1e-12)
    return np.rint(255 * np.append(middle, [0.5] * missing)).astype(np.uint8)


def _times(rows: int, noise: float) -> float:
    return rows / noise if noise else math.inf
