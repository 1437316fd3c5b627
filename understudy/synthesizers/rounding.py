"""How round the numbers of a column are: counted by decade and unit, released, and turned into a grain.

A column of 100,000 steps may hold multiples of 500 for the most part, none of which stands out by itself. All of them
together do: rows are counted by how many digits their value has and by the largest of 5, 10, 50, 100 ... that divides
it. That is a few dozen counts, clear where single values are not, and tells of digits that no cell is fine enough for.
Reals without a resolution are counted in the same way as steps of their fifth digit, those of more digits by decade.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from understudy.privacy import Event, Gaussian, Ledger, Streams, gaussian
from understudy.schema import Schema
from understudy.synthesizers.ladder import RUNG, climb
from understudy.table.cells import Cells
from understudy.table.codec import codec
from understudy.table.decimals import Decimals, decimals_of
from understudy.table.grain import MOST_LISTED, Grain, Scale, scale_of
from understudy.table.table import Table

SHARE = 0.03  # of what the one-way tables of a fit get
# Declared rows over the noise of a count: below this, counts tell little and cost the columns what they have least of.
WORTH_COUNTING = 30
ROWS_PER_BLOCK = 1 << 16
LEAST_WEIGHT = 1e-3  # of an even share: no value between the bounds is impossible, and sums of floats tell it
DOUBT = 2.0  # standard deviations of noise and luck below which a difference from an even share is not believed
TINY = 1e-12
STANDS_OUT = 5.0  # times the noise of a cell: single values that do are left out, they tell nothing of the others
ROUNDS = 3  # of finding these


@dataclass(frozen=True)
class Rounding:
    """Which columns are counted by how round their values are, and with which noise; public."""

    scales: Mapping[str, Scale | Decimals]
    multiplier: float
    rest_multiplier: float  # what is left for other tables

    @property
    def sensitivity(self) -> float:
        """How far a row moves all counts together, in L2."""
        return math.sqrt(len(self.scales))

    @property
    def noise(self) -> float:
        """Standard deviation of a count."""
        return self.multiplier * self.sensitivity

    @property
    def events(self) -> list[Event]:
        return [Gaussian(self.multiplier)] if self.scales else []

    @property
    def purpose(self) -> str:
        return f"round numbers of {len(self.scales)} column" + "s" * (len(self.scales) > 1)


def scales_of(schema: Schema) -> dict[str, Scale | Decimals]:
    found = {
        name: scale_of(column, codec(column).size) or decimals_of(column) for name, column in schema.modelled.items()
    }
    return {name: scale for name, scale in found.items() if scale is not None}


def plan_rounding(scales: Mapping[str, Scale | Decimals], rows: int, noise_multiplier: float) -> Rounding:
    """Divides the noise multiplier of one-way tables between round numbers and the rest, from public facts.

    Where all columns together would be too many for the declared rows, those of steps are counted alone: more of them
    stand on round numbers than of reals on decimals.
    """
    steps = {name: scale for name, scale in scales.items() if isinstance(scale, Scale)}
    for several in (scales, steps):
        counted = Rounding(
            several,
            multiplier=noise_multiplier / math.sqrt(SHARE),
            rest_multiplier=noise_multiplier / math.sqrt(1 - SHARE),
        )
        if several and rows >= WORTH_COUNTING * counted.noise:
            return counted
    return Rounding({}, 0.0, noise_multiplier)


@dataclass(frozen=True, eq=False)
class RoundCounts:
    """Released: rows of every class of a scale, with noise of so large a standard deviation."""

    scale: Scale | Decimals
    counts: np.ndarray
    noise: float


def release_rounding(table: Table, rounding: Rounding, *, streams: Streams, ledger: Ledger) -> dict[str, RoundCounts]:
    """Counts of all classes of round numbers, by column.

    Guarantee: classes come from the schema alone. A row adds 1 to at most one class of each of the columns (to none
    where it is missing or 0), so that it moves all counts together by at most sqrt(columns) in L2: one Gaussian event.
    """
    if not rounding.scales:
        return {}
    exact = {name: np.zeros(scale.classes + 1, dtype=np.int64) for name, scale in rounding.scales.items()}
    classes_of = {name: _lookup(scale, table.schema.rows) for name, scale in rounding.scales.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        for name, counts in exact.items():
            counts += np.bincount(classes_of[name](block[name]) + 1, minlength=len(counts))
    counted = [counts[1:] for counts in exact.values()]
    stacked = gaussian(
        np.concatenate(counted),
        l2_sensitivity=rounding.sensitivity,
        noise_multiplier=rounding.multiplier,
        streams=streams,
        ledger=ledger,
        purpose=rounding.purpose,
    )
    noisy = np.split(stacked, np.cumsum([len(counts) for counts in counted])[:-1])
    return {
        name: RoundCounts(scale, counts, rounding.noise)
        for (name, scale), counts in zip(rounding.scales.items(), noisy, strict=True)
    }


def _lookup(scale: Scale | Decimals, rows: int) -> Callable[[np.ndarray], np.ndarray]:
    """The classes of codes; where values are fewer than the declared rows, each is looked at once."""
    if isinstance(scale, Decimals) or scale.size >= min(rows, MOST_LISTED):
        return scale.classes_of
    table = scale.classes_of(np.arange(scale.size + 1)).astype(np.int16)  # the missing code comes last
    return lambda codes: table[codes]


def grain_of(found: RoundCounts, cells: Cells, rungs: list[np.ndarray], noise: tuple[float, ...]) -> Grain:
    """The weights of all classes: their shares of a decade's rows, as far as noise does not explain them.

    Values that stand out by themselves, as the column's own noisy counts show (`rungs`, without missing, with their
    `noise`), are taken out of their class: that many work 40 hours a week says nothing of 30. Sees released counts
    alone, and costs no privacy.
    """
    scale = found.scale
    single = np.flatnonzero(cells.widths[: cells.values] == 1)
    classes = scale.classes_of(cells.starts[single])
    single, classes = single[classes >= 0], classes[classes >= 0]
    held = rungs[0][single]
    alone = np.zeros(len(single), dtype=bool)
    grain = Grain(scale, _weights(found, found.counts, scale.values))
    for _ in range(ROUNDS):
        expected = expected_counts(replace(cells, grain=grain).sizes, rungs, noise)[single]
        out = held - expected > STANDS_OUT * max(noise[0], 1.0)
        if (out == alone).all():
            break
        alone = out
        taken = np.bincount(classes[alone], weights=held[alone], minlength=scale.classes)
        values = scale.values - np.bincount(classes[alone], minlength=scale.classes)
        grain = Grain(scale, _weights(found, found.counts - taken, values))
    return grain


def expected_counts(sizes: np.ndarray, rungs: list[np.ndarray], noise: tuple[float, ...]) -> np.ndarray:
    """What every cell would have of the rows of its run of cells, if its size were all that sets it apart."""
    rows = climb(rungs[0], RUNG)
    if len(rungs) > 1 and noise[0]:
        variance = climb(np.ones(len(sizes)), RUNG) * noise[0] ** 2
        rows = (rows / variance + rungs[1] / noise[1] ** 2) / (1 / variance + 1 / noise[1] ** 2)
    return (np.maximum(rows, 0) / climb(sizes, RUNG))[np.arange(len(sizes)) // RUNG] * sizes


def _weights(found: RoundCounts, counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows a value of every class, beside the mean of its decade.

    Unit by unit: how many of the rows on multiples of 10 are on multiples of 50, beside the fifth that an even spread
    would have.
    """
    weights = np.ones(len(counts))
    for first, end in pairwise(found.scale.starts):
        part = 1.0  # the rows a value of a unit's multiples, beside the mean of the decade
        for unit in range(first, end):
            rest = values[unit + 1 : end].sum()
            even = rest / max(values[unit] + rest, 1.0)
            share = even
            if 0 < even < 1:
                share = share_above(counts[unit : unit + 1], counts[unit + 1 : end], even, found.noise)
            weights[unit] = part * (1 - share) / (1 - even) if even < 1 else part
            part *= share / even if even > 0 else 1.0
    return np.maximum(weights, LEAST_WEIGHT)


def share_above(own: np.ndarray, above: np.ndarray, even: float, noise: float, doubt: float = DOUBT) -> float:
    """The share of rows on multiples of larger units, between what an even spread has and what was counted.

    Differences that noise and luck explain are not believed, so that classes of few rows are even; nor are rows of a
    class itself, where most are above it, that noise alone would show.
    """
    lower, upper = own.sum(), above.sum()
    rows = lower + upper
    if rows <= 0:
        return even
    variance = noise**2 * ((1 - even) ** 2 * len(above) + even**2 * len(own)) + rows * even * (1 - even)
    beyond = upper - even * rows
    found = even + beyond / rows
    if beyond > 0:
        lower = lower * _believed(lower, 1.0, noise * math.sqrt(len(own)))
        found = upper / (upper + max(lower, 0.0))
    found = even + (found - even) * _believed(abs(beyond), doubt, math.sqrt(variance))
    return min(max(found, LEAST_WEIGHT * even), 1 - LEAST_WEIGHT * (1 - even))


def _believed(difference: float, doubt: float, deviation: float) -> float:
    """0 up to `doubt` standard deviations, 1 from one more on."""
    return min(max(difference / max(deviation, TINY) - doubt, 0.0), 1.0)
