"""A public partition of a column's codes into fine cells, and values placed back inside them.

Cells come from the schema alone, so that counting them costs nothing but the noise on the counts.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np

from understudy.schema import Boolean, Categorical, Column, Datetime, Integer, Real
from understudy.table.codec import codec
from understudy.table.decimals import DecimalGrain
from understudy.table.grain import Grain

MOST_CELLS = 2048  # of a numeric column; a column of 100,000 integers gets about this many
LOOKUP_LIMIT = 1 << 22  # up to this many codes, a table of their cells is faster than a search
NARROW = 1e-3  # of the cell that it was cut from: reals in so narrow a cell are taken for one value


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell i holds the codes from `starts[i]` up to the next start; missing, where declared, is the last cell.

    `starts` are uint64 for codes that are steps (mixed with signed ones, NumPy would compare them as rounded floats),
    float32 for reals without a resolution.
    `ordered`: neighbouring cells are close in value, so they may be merged and smoothed.
    `bins`: for every cell (without missing) the public bin that it lies in, where the schema declares bins.
    `points`: for every cell of reals (without missing) the one value that stands for all of it, or NaN.
    `grain`: how much more often round numbers come than others, where that is known.
    """

    starts: np.ndarray
    end: float
    size: int | None
    missing: bool
    ordered: bool
    dtype: np.dtype
    bins: np.ndarray | None = None
    points: np.ndarray | None = None
    grain: Grain | DecimalGrain | None = None

    @cached_property
    def lookup(self) -> np.ndarray | None:
        """The cell of every code, made when rows are first counted; None where a search needs less."""
        if self.size is None or len(self.starts) == self.size or self.size > LOOKUP_LIMIT:
            return None
        held = np.diff(self.starts, append=np.uint64(self.size)).astype(np.int64)
        return np.repeat(np.arange(self.values + 1, dtype=np.uint16), np.append(held, 1))  # the missing code comes last

    @property
    def values(self) -> int:
        """The number of cells without missing."""
        return len(self.starts)

    @property
    def count(self) -> int:
        """The number of cells, missing included."""
        return len(self.starts) + self.missing

    @property
    def widths(self) -> np.ndarray:
        """How many codes each cell holds, missing included (for floats: how wide it is; a point counts as one)."""
        if self.size is None:
            widths = np.diff(self.starts.astype(np.float64), append=self.end)
            widths = np.where(np.isnan(self.points), widths, 1.0)
        else:  # large codes are whole numbers that a float would round
            widths = np.diff(self.starts, append=np.uint64(self.size)).astype(np.float64)
        return np.append(widths, 1.0) if self.missing else widths

    @property
    def sizes(self) -> np.ndarray:
        """What each cell would hold (without missing) of values that are spread evenly but for round numbers."""
        if self.size is None:
            widths = np.diff(self.starts.astype(np.float64), append=self.end)
            held = widths if self.grain is None else self._held(np.arange(self.values))
            return np.where(np.isnan(self.points), held, widths.mean())
        if self.grain is None:
            return self.widths[: self.values]
        return np.diff(self.grain.below(np.append(self.starts, np.uint64(self.size))))

    def log_shares(self, codes: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """The logarithm of each code's probability (of reals: density) given its cell."""
        if self.grain is None:
            return -np.log(self.widths)[cells]
        missing = cells >= self.values
        known, cells = np.where(missing, 0, codes), np.where(missing, 0, cells)
        held = self.sizes
        if self.size is None:
            held = np.where(np.isnan(self.points), held, 1.0)
            missing |= ~np.isnan(self.points)[cells]  # a point is all that its cell holds
        return np.where(missing, 0.0, np.log(self.grain.of_codes(known)) - np.log(held[cells]))

    @property
    def last_floats(self) -> np.ndarray:
        """The last code of every cell of reals."""
        return np.append(np.nextafter(self.starts[1:], np.float32(-np.inf)), np.float32(self.end))

    def _held(self, cells: np.ndarray) -> np.ndarray:
        """What cells of reals hold by their grain: all that is spread up to the next cell, and their decimals."""
        ends = np.append(self.starts[1:].astype(np.float64), self.end)[cells]
        first, last = self.starts[cells], self.last_floats[cells]
        return self.grain.spread_over(first, ends) + self.grain.heaped_on(first, last)

    def share_of_reals(self, cell: int, first: float, last: float) -> float:
        """How much of a cell of reals the numbers from `first` to `last` hold; its end is not among them."""
        end = float(self.starts[cell + 1]) if cell + 1 < self.values else self.end
        if self.grain is None:
            return (last - first) / (end - float(self.starts[cell]))
        ends = np.array([first]), np.array([last])
        inside = np.minimum(ends[1], self.last_floats[cell])
        held = self.grain.spread_over(*ends) + self.grain.heaped_on(ends[0], inside)
        return float(held[0] / self._held(np.array([cell]))[0])

    def share(self, first: int, end: int, cell_first: int, cell_end: int) -> float:
        """How much of a cell of steps a run inside it holds; ends are left out."""
        if self.grain is None:
            return (end - first) / (cell_end - cell_first)
        below = self.grain.below(np.array([first, end, cell_first, cell_end], dtype=np.uint64))
        return float((below[1] - below[0]) / (below[3] - below[2]))

    def index(self, codes: np.ndarray) -> np.ndarray:
        """The cell of each code, as uint16.

        >>> cells_of(Integer(low=1, high=3, missing=True)).index(np.array([0, 2, 3], dtype=np.uint8)).tolist()
        [0, 2, 3]
        """
        if self.lookup is not None:
            return self.lookup[codes]
        if self.size is not None and len(self.starts) == self.size:
            return codes.astype(np.uint16)
        missing = np.isnan(codes) if self.size is None else codes == self.size
        found = np.searchsorted(self.starts, codes, side="right") - 1
        found = np.clip(found, 0, len(self.starts) - 1)
        return np.where(missing, len(self.starts), found).astype(np.uint16)

    def place(self, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A code for each cell, spread over the codes that the cell holds: evenly but for its grain; or its point.

        >>> cells_of(Integer(low=1, high=3)).place(np.array([2, 0]), np.random.default_rng(0)).tolist()
        [2, 0]
        """
        cells = np.asarray(cells, dtype=np.int64)
        last = len(self.starts) - 1
        inside = np.minimum(cells, last)
        missing = cells > last
        if self.size is None:
            codes = self.spread_reals(inside, self.starts[inside], np.append(self.starts[1:], self.end)[inside], rng)
            points = self.points[inside]
            codes = np.where(np.isnan(points), codes, points)
            return np.where(missing, np.float32(np.nan), codes).astype(self.dtype)
        ends = np.append(self.starts[1:], np.uint64(self.size))
        codes = self.spread(self.starts[inside], ends[inside], rng)
        return np.where(missing, np.uint64(self.size), codes).astype(self.dtype)

    def spread_reals(
        self, cells: np.ndarray, first: np.ndarray, last: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """A code for each run of reals from `first` to `last` inside a cell."""
        inside = np.minimum(last, self.last_floats[cells]).astype(np.float32)  # rounding may step over the edge
        if self.grain is not None:
            return self.grain.place(first, inside, rng)
        first, last = first.astype(np.float64), last.astype(np.float64)
        codes = first + rng.random(len(cells)) * (last - first)
        return np.clip(codes.astype(np.float32), first.astype(np.float32), inside)

    def spread(self, first: np.ndarray, end: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A code for each run of steps from `first` up to `end`, which is left out."""
        if self.grain is not None:
            return self.grain.place(first, end, rng)
        return first + rng.integers(0, end - first, dtype=np.uint64)


def cells_of(column: Column, *, most: int = MOST_CELLS) -> Cells:
    """The fine cells of a column: values one by one where there are few, else spaced evenly (or like log(1 + x)).

    A column with more than `most` steps also gets single cells for values that are common by rule, not by looking:
    the bounds (where clipped cells gather), 0, -1, numbers of nines and round numbers.
    """
    # A copy, so that a long lookup goes with whoever counted by it.
    return replace(_cells_of(_Asked(str(column.facts()), column), most))


@dataclass(frozen=True)
class _Asked:
    """A column by its facts, as they are written: where they come from is no matter."""

    facts: str = field(repr=False)  # some may have been read off private rows
    column: Column = field(compare=False)


@lru_cache(maxsize=1024)
def _cells_of(asked: _Asked, most: int) -> Cells:
    """Remembered: a plan asks for the cells of all columns dozens of times."""
    column = asked.column
    coder = codec(column)
    if isinstance(column, Categorical | Boolean) or (coder.size is not None and coder.size <= most):
        starts: np.ndarray = np.arange(coder.size, dtype=np.uint64)
    elif coder.size is None:
        starts = _float_starts(column, most)
    else:
        starts = _step_starts(column, coder.size, most)
    bins = None
    if getattr(column, "bins", None):
        edges = _edge_codes(column, coder.size)
        if coder.size is None:
            starts = np.unique(np.concatenate([starts, edges[edges < np.float32(column.high)]]))
        elif len(starts) < coder.size:
            starts = np.unique(np.concatenate([starts, edges[edges < coder.size]]))
        bins = np.searchsorted(edges, starts, side="right")
        bins = np.unique(bins, return_inverse=True)[1]
    points = _points(starts, float(column.high), np.zeros(len(starts))) if coder.size is None else None
    for shared in (starts, bins, points):
        if shared is not None:
            shared.flags.writeable = False
    return Cells(
        starts=starts,
        end=float(column.high) if coder.size is None else coder.size,
        size=coder.size,
        missing=column.missing,
        ordered=not isinstance(column, Boolean) and (not isinstance(column, Categorical) or column.kind == "ordinal"),
        dtype=np.dtype(coder.dtype),
        bins=bins,
        points=points,
    )


def refined(cells: Cells, cuts: np.ndarray) -> Cells:
    """The same cells, cut at the codes `cuts` as well (those outside of the domain are passed over).

    >>> cells = cells_of(Integer(low=0, high=99_999))
    >>> cells.starts[:5].tolist(), refined(cells, np.array([7, 8, 200_000])).starts[:6].tolist()
    ([0, 1, 9, 10, 61], [0, 1, 7, 8, 9, 10])
    """
    cuts = np.asarray(cuts, dtype=cells.starts.dtype)
    inside = (cuts > cells.starts[0]) & (cuts <= cells.end if cells.size is None else cuts < cells.size)
    starts = np.unique(np.concatenate([cells.starts, cuts[inside]]))
    parents = np.searchsorted(cells.starts, starts, side="right") - 1
    bins = None if cells.bins is None else cells.bins[parents]
    points = None
    if cells.size is None:
        points = _points(starts, cells.end, np.diff(cells.starts.astype(np.float64), append=cells.end)[parents])
    return replace(cells, starts=starts, bins=bins, points=points)


def _points(starts: np.ndarray, end: float, cut_from: np.ndarray) -> np.ndarray:
    """The value of every cell of reals that is a single float, or narrow beside the cell that it was cut from.

    A narrow cell was cut out around a value that many rows share, which is known as far as floats tell numbers apart:
    the roundest number inside stands for it.
    """
    ends = np.append(starts[1:], np.float32(end))
    single = ends <= np.nextafter(starts, np.float32(np.inf))
    single[-1] = ends[-1] <= starts[-1]  # the last cell holds the upper bound
    points = np.where(single, starts, np.float32(np.nan))
    widths = ends.astype(np.float64) - starts
    for cell in np.flatnonzero(~single & (widths < NARROW * cut_from)):
        points[cell] = roundest(starts[cell], ends[cell])
    return points


def roundest(first: float, end: float) -> np.float32:
    """The number from `first` up to `end` that has the fewest digits, as float32.

    >>> float(roundest(4528.098, 4528.104)), float(roundest(-0.3, 0.2)), float(roundest(118.0, 131.0))
    (4528.10009765625, 0.0, 120.0)
    """
    low, high = float(first), float(end)
    if low <= 0 < high:
        return np.float32(0)
    top = math.floor(math.log10(max(abs(low), abs(high))))
    for digit in range(top, top - 10, -1):
        unit = 10.0**digit
        multiples = np.arange(math.ceil(low / unit), math.floor(high / unit) + 1)[:12]
        numbers = np.round(multiples * unit, max(-digit, 0)).astype(np.float32)
        inside = numbers[(numbers >= np.float32(first)) & (numbers < np.float32(end))]
        if len(inside):
            return inside[len(inside) // 2] if len(inside) % 2 else inside[len(inside) // 2 - 1]
    return np.float32(first)


def _edge_codes(column: Integer | Real, size: int | None) -> np.ndarray:
    edges = np.asarray(column.bins, dtype=np.float64)
    if size is None:
        return edges.astype(np.float32)
    return np.ceil((edges - column.low) / column.resolution - 1e-9).astype(np.uint64)


def _step_starts(column: Integer | Real | Datetime, size: int, most: int) -> np.ndarray:
    """First codes of the cells of a column with more steps than cells."""
    marks = _landmarks(column, size, most // 8)
    evenly = most - 2 * len(marks)
    if getattr(column, "log", False):
        lowest = column.low / column.resolution
        spaced = np.expm1(np.linspace(math.log1p(lowest), math.log1p(lowest + size - 1), evenly)) - lowest
    else:
        spaced = np.linspace(0, size - 1, evenly)
    starts = {int(code) for code in spaced}
    for mark in marks:
        starts |= {mark, mark + 1}
    return np.array(sorted(code for code in starts if 0 <= code < size), dtype=np.uint64)


def _landmarks(column: Integer | Real | Datetime, size: int, most: int) -> list[int]:
    """Codes of values that are common by rule."""
    marks = {0, size - 1}
    if isinstance(column, Datetime):
        return sorted(marks)
    low, step = column.low, column.resolution
    special = [0, -1] + [10**digits - 1 for digits in range(1, 16)]
    marks |= {_nearest_step(value, low, step) for value in special if low <= value <= column.high}
    span = column.high - low
    unit = 10.0 ** math.ceil(math.log10(span))
    spacing = next(
        unit * part / 10**power
        for power in range(18, -1, -1)
        for part in (1, 2, 5)
        if span / (unit * part / 10**power) <= most
    )
    first = math.ceil(low / spacing)
    for multiple in range(first, math.floor(column.high / spacing) + 1):
        marks.add(_nearest_step(multiple * spacing, low, step))
    return sorted(code for code in marks if 0 <= code < size)


def _nearest_step(value: float, low: float, step: float) -> int:
    if isinstance(step, int):  # floats would lose zero's place in a huge span of integers
        return (int(value) - int(low) + step // 2) // step
    return round((value - low) / step)


def _float_starts(column: Real, most: int) -> np.ndarray:
    """Left edges of the cells of a real column, as float32; zero has a point cell where it is inflated."""
    low, high = float(column.low), float(column.high)
    if column.log:
        # Without a resolution there is no smallest step: below a ten-thousandth of the top, cells are even.
        knee = high * 1e-4
        edges = np.expm1(np.linspace(math.log1p(low / knee), math.log1p(high / knee), most + 1)) * knee
        edges[0] = low
    else:
        edges = np.linspace(low, high, most + 1)
    starts = edges[:-1].astype(np.float32)
    if column.zero_inflated:
        zero = np.float32(0)
        starts = np.concatenate([starts, [zero, np.nextafter(zero, np.float32(1))]])
        starts = starts[starts <= np.float32(high)]
    return np.unique(starts.astype(np.float32))
