"""Counts of decimals turned into a grain: how much of a column of reals stands on numbers of few digits.

Sees released counts alone, and costs no privacy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from understudy.synthesizers.rounding import ROUNDS, STANDS_OUT, TINY, RoundCounts, expected_counts, share_above
from understudy.table.cells import Cells
from understudy.table.decimals import DecimalGrain, Decimals

LEAST_SPREAD = 1e-3  # of the numbers of a decade: none between the bounds is impossible
# Standard deviations of noise and luck below which no decade stands on decimals: most columns of reals do not.
DOUBT = 2.5


def decimal_grain_of(
    found: RoundCounts, cells: Cells, rungs: list[np.ndarray], noise: tuple[float, ...]
) -> DecimalGrain:
    """The masses of decimals: shares of all rows of a decade, as far as noise does not explain them.

    Cells that hold many more rows than that, as the column's own noisy counts show (`rungs`, without missing, with
    their `noise`), have a value that stands out by itself. It is taken for the roundest in the cell, and out of its
    class: that many rates are .33 says nothing of .34.
    """
    scale = found.scale
    classes = scale.steps.classes_of(np.arange(scale.steps.size))
    first, _ = scale.run(cells.starts, cells.last_floats)
    alone = np.zeros(cells.values, dtype=bool)
    grain = scale.weighted(_weights(found, found.counts, scale.steps.values))
    for _ in range(ROUNDS):
        sizes = replace(cells, grain=grain).sizes
        expected = expected_counts(sizes, rungs, noise)
        masses = grain.heaps.of_codes(np.arange(scale.steps.size)) / 10.0**scale.places
        roundest = _heaviest(masses, first)
        chance = np.sqrt(max(noise[0], 1.0) ** 2 + expected)  # noise and luck
        out = (rungs[0] - expected > STANDS_OUT * chance) & (roundest >= 0) & (classes[roundest] >= 0)
        if (out == alone).all():
            break
        alone, at = out, roundest[out]
        beside = expected[out] * (1 - np.minimum(masses[at] / sizes[out], 1.0))
        taken = np.bincount(classes[at], weights=rungs[0][out] - beside, minlength=scale.classes)
        values = scale.steps.values - np.bincount(classes[at], minlength=scale.steps.classes)
        # What a class has not, it cannot lose: then other numbers of the cell stand out.
        left = np.maximum(found.counts - taken, np.minimum(found.counts, 0.0))
        grain = scale.weighted(_weights(found, left, np.maximum(values, 1.0)))
    return grain


def _heaviest(masses: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The place of the heaviest decimal of every cell, whose first ones are given; -1 where it has none."""
    order = np.argsort(-masses, kind="stable")
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = len(order) - 1
    least = np.minimum.reduceat(rank, first)
    return np.where(np.append(first[1:], len(order)) > first, order[least], -1)


@dataclass(frozen=True, eq=False)
class _Decade:
    """Counts of a decade: other numbers, then decimals by unit with the number of values of each."""

    beside: float
    own: np.ndarray
    values: np.ndarray
    chance: float  # of a number of many digits to be a decimal when it is rounded to single precision
    steps: float  # how many fit between the ends
    classes: slice
    beside_class: int


def _decades(scale: Decimals, counts: np.ndarray, values: np.ndarray) -> Iterator[_Decade]:
    lattice = scale.steps
    for stretch, number in enumerate(scale.decades):
        if number < 0:
            continue
        first, last = scale.knots[stretch : stretch + 2]
        steps = (last - first) * 10.0**scale.places
        classes = slice(lattice.starts[number], lattice.starts[number + 1])
        gap = float(np.spacing(np.float32(max(abs(first), abs(last)) / 2)))
        yield _Decade(
            beside=float(counts[lattice.classes + number]),
            own=counts[classes],
            values=values[classes],
            chance=gap * 10.0**scale.places,
            steps=steps,
            classes=classes,
            beside_class=lattice.classes + number,
        )


def _weights(found: RoundCounts, counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Steps of mass on every decimal of a class, and the density of all other numbers of a decade.

    Unit by unit, as for steps; what all decades share is what each of them is drawn to.
    """
    scale = found.scale
    weights = np.ones(scale.classes)
    decades = list(_decades(scale, counts, values))
    pooled = _pooled(decades, found.noise)
    for decade in decades:
        usual = max(pooled[0], decade.chance)
        on_decimals = share_above(np.array([decade.beside]), decade.own, usual, found.noise, DOUBT)
        spread = min(max((1 - on_decimals) / (1 - decade.chance), LEAST_SPREAD), 1.0)
        weights[decade.beside_class] = spread
        part = (1 - spread) * decade.steps / max(decade.values.sum(), 1.0)
        for unit in range(len(decade.own)):
            above = decade.values[unit + 1 :].sum()
            even = above / max(decade.values[unit] + above, 1.0)
            share = even
            if 0 < even < 1:
                usual = pooled[unit + 1] if unit + 1 < len(pooled) else even
                share = share_above(decade.own[unit : unit + 1], decade.own[unit + 1 :], usual, found.noise)
            weights[decade.classes.start + unit] = part * (1 - share) / (1 - even) if even < 1 else part
            part *= share / even if even > 0 else 1.0
    for bound, beside in _lone_bounds(scale):
        weights[bound] = weights[beside]
    return np.maximum(weights, TINY)


def _lone_bounds(scale: Decimals) -> Iterator[tuple[int, int]]:
    """Classes of bounds that are powers of ten, and so decades by themselves, with the next in their neighbour."""
    for number in set(range(len(scale.steps.decades))) - set(scale.decades.tolist()):
        inwards = number - 1 if scale.steps.decades[number].first > 0 else number + 1
        if 0 <= inwards < len(scale.steps.decades):
            yield scale.steps.starts[number + 1] - 1, scale.steps.starts[inwards + 1] - 1


def _pooled(decades: list[_Decade], noise: float) -> list[float]:
    """Over all decades: the share of decimals, then unit by unit that of multiples of larger units."""
    chance = float(np.mean([decade.chance for decade in decades]))
    beside = np.array([decade.beside for decade in decades])
    found = [share_above(beside, np.concatenate([decade.own for decade in decades]), chance, noise, DOUBT)]
    for unit in range(max(len(decade.own) for decade in decades) - 1):
        those = [decade for decade in decades if len(decade.own) > unit + 1]
        values = sum(decade.values[unit] for decade in those)
        above = sum(decade.values[unit + 1 :].sum() for decade in those)
        own = np.array([decade.own[unit] for decade in those])
        larger = np.concatenate([decade.own[unit + 1 :] for decade in those])
        found.append(share_above(own, larger, above / max(values + above, 1.0), noise))
    return found
