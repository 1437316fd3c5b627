"""Round numbers: how much more often a column of steps holds multiples of 5, 10, 50, 100 ... than other values.

Amounts, incomes and prices stand on round numbers, more so the larger they are. That is told by decade of the value
and by the largest unit of 5, 10, 50, 100 ... that divides it, and so for any number of values by few numbers. Times
stand on full minutes, quarters of an hour, hours and days, which are units as well.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np

from understudy.schema import Column, Datetime, Integer, Real
from understudy.schema.columns import SECONDS

FEWEST_STEPS = 100  # shorter columns show their round numbers value by value
MOST_STEPS = 1 << 32  # sums over so many codes still tell a thousandth of one in floats
ON_A_STEP = 1e-6  # of a step: what decimals like 0.1 lose in binary
# Draws search a list of all codes, made once, where it has no more than so many codes for each.
LISTED_PER_DRAW, MOST_LISTED = 8, 1 << 22
CLOCK = (1, 60, 300, 900, 1800, 3600, 86400)  # round times, in seconds; each divides the next


@dataclass(frozen=True)
class Decade:
    """Values of so many digits, from `first` up to `end` (left out), in steps; of either sign."""

    first: int
    end: int
    units: tuple[int, ...]  # each divides the next


@dataclass(frozen=True)
class Scale:
    """Where a column's codes lie among round numbers: code 0 has the value `low`, in steps; public.

    `clock`: the units of times, in steps; all values, from a midnight on, make up one decade then.
    """

    low: int
    size: int
    clock: tuple[int, ...] = ()

    @cached_property
    def decades(self) -> tuple[Decade, ...]:
        """The decades of all values but 0, negative ones first."""
        high = self.low + self.size
        if self.clock:
            return (Decade(self.low, high, self.clock),)
        digits = len(str(max(abs(self.low), abs(high))))
        found = []
        for power in range(digits):
            units = tuple(sorted({10**p for p in range(power + 1)} | {5 * 10**p for p in range(power)}))
            found.append(Decade(max(10**power, self.low), min(10 ** (power + 1), high), units))
            found.append(Decade(max(1 - 10 ** (power + 1), self.low), min(1 - 10**power, high), units))
        return tuple(sorted((d for d in found if d.first < d.end), key=lambda d: d.first))

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Those of the largest decade, which begin with those of all others."""
        return max((decade.units for decade in self.decades), key=len)

    @cached_property
    def values(self) -> np.ndarray:
        """How many values every class has: multiples of its unit, but of no larger one."""
        found = []
        for decade in self.decades:
            multiples = np.array([_multiples(decade.first, decade.end, unit) for unit in decade.units], dtype=float)
            found.append(multiples - np.append(multiples[1:], 0.0))
        return np.concatenate(found)

    @cached_property
    def starts(self) -> np.ndarray:
        """The number of every decade's first class; in the end, that of all classes."""
        return np.cumsum([0, *(len(decade.units) for decade in self.decades)])

    @property
    def classes(self) -> int:
        return int(self.starts[-1])

    def classes_of(self, codes: np.ndarray) -> np.ndarray:
        """The class of every code; 0, which is round in every way, is in none, and so is a missing one: -1.

        >>> Scale(low=0, size=1000).classes_of(np.array([0, 7, 10, 15, 250, 300])).tolist()
        [-1, 0, 3, 2, 7, 8]
        """
        values = codes.astype(np.int64) + self.low
        found = np.full(len(values), -1)
        inside = codes < self.size
        for decade, start in zip(self.decades, self.starts[:-1], strict=True):
            here = np.flatnonzero(inside & (values >= decade.first) & (values < decade.end))
            place = np.full(len(here), start)
            for number, unit in enumerate(decade.units[1:], 1):
                place[values[here] % unit == 0] = start + number
            found[here] = place
        return found

    def weighted(self, weights: np.ndarray) -> "Grain":
        return Grain(self, weights)


def scale_of(column: Column, size: int | None) -> Scale | None:
    """The scale of a column of numbers or times in steps, where there is one: few steps need none."""
    if size is None or not FEWEST_STEPS <= size <= MOST_STEPS:
        return None
    if isinstance(column, Datetime):
        return _clock_scale(column, size)
    if not isinstance(column, Integer | Real):
        return None
    low = column.low / column.resolution
    if abs(low) > MOST_STEPS or abs(low - round(low)) > ON_A_STEP:
        return None
    return Scale(low=round(low), size=size)


def _clock_scale(column: Datetime, size: int) -> Scale | None:
    step = SECONDS[column.resolution]
    clock = tuple(unit // step for unit in CLOCK if unit >= step)
    if len(clock) < 2:  # days
        return None
    since = column.low - column.low.replace(hour=0, minute=0, second=0, microsecond=0)
    return Scale(low=(since + timedelta(days=1)) // timedelta(seconds=step), size=size, clock=clock)


@dataclass(frozen=True, eq=False)
class Grain:
    """Weights of codes: `weights[i]` for all of class i of the scale, `zero` for 0."""

    scale: Scale
    weights: np.ndarray
    zero: float = 1.0

    def of_codes(self, codes: np.ndarray) -> np.ndarray:
        """The weight of every code."""
        return np.append(self.weights, self.zero)[self.scale.classes_of(codes)]

    def below(self, codes: np.ndarray) -> np.ndarray:
        """The weight of all codes below each of these together.

        >>> grain = Grain(Scale(low=1, size=20), np.array([1.0, 1.0, 2.0, 3.0]))
        >>> grain.below(np.array([0, 9, 10, 19, 20])).tolist()
        [0.0, 9.0, 12.0, 22.0, 25.0]
        """
        values = np.asarray(codes).astype(np.int64) + self.scale.low
        firsts, bases, steps = self._ladder
        decade = np.maximum(np.searchsorted(firsts, values, side="right") - 1, 0)
        found = bases[decade]
        first = firsts[decade]
        for unit, step in zip(self.scale.units, steps, strict=True):
            found += step[decade] * _multiples(first, values, unit)
        return found

    @cached_property
    def _ladder(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every decade, 0 being one: its first value, the weight of all values before it, and by unit (units,
        decades) what being a multiple of it adds to the weight of a value.
        """
        starts = self.scale.starts[:-1]
        found = [(decade, self.weights[start:]) for decade, start in zip(self.scale.decades, starts, strict=True)]
        if self.scale.low <= 0 < self.scale.low + self.scale.size:
            found.append((Decade(0, 1, (1,)), np.array([self.zero])))
        found.sort(key=lambda pair: pair[0].first)
        steps = np.zeros((len(self.scale.units), len(found)))
        bases = [0.0]
        for number, (decade, weights) in enumerate(found):
            units = len(decade.units)
            steps[:units, number] = np.diff(weights[:units], prepend=0.0)
            held = [_multiples(decade.first, decade.end, unit) for unit in decade.units]
            bases.append(bases[-1] + float(steps[:units, number] @ held))
        return np.array([decade.first for decade, _ in found]), np.array(bases[:-1]), steps

    def place(self, first: np.ndarray, end: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A code for every run from `first` up to `end` (left out), drawn by the weights."""
        codes = first.astype(np.int64)
        several = np.flatnonzero(end - first > 1)
        first, end = codes[several], end[several].astype(np.int64)
        listed = self.scale.size <= min(LISTED_PER_DRAW * len(several), MOST_LISTED)
        below = self._all_below.__getitem__ if listed else self.below
        start = below(first)
        wanted = start + rng.random(len(first)) * (below(end) - start)
        if listed:
            codes[several] = np.clip(np.searchsorted(self._all_below, wanted, side="right") - 1, first, end - 1)
        else:
            codes[several] = self._last_below(wanted, first, end - 1)
        return codes.astype(np.uint64)

    def _last_below(self, wanted: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The last code from `low` to `high` below which there is no more than wanted, by halving."""
        while (low < high).any():
            middle = (low + high + 1) // 2
            up = self.below(middle) <= wanted
            low, high = np.where(up, middle, low), np.where(up, high, middle - 1)
        return low

    @cached_property
    def _all_below(self) -> np.ndarray:
        return self.below(np.arange(self.scale.size + 1))


def _multiples(first: int | np.ndarray, end: int | np.ndarray, unit: int) -> int | np.ndarray:
    """How many multiples of `unit` there are from `first` up to `end`, which is left out."""
    return (end - 1) // unit - (first - 1) // unit
