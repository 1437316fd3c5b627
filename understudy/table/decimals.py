"""Decimals of few digits: how much more often a column of reals without a resolution holds them than other numbers.

Ratios, rates and results of a laboratory stand on hundredths or tenths for the most part, some rows on numbers of many
digits. A column is taken for a mixture: numbers of any digits, spread evenly, and steps of a hundred-thousandth of its
bounds, which are round by decade and unit as the steps of other columns are (`grain`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.schema import Column, Real
from understudy.table.codec import float32_bounds
from understudy.table.grain import Grain, Scale

DIGITS = 5  # of the largest number: single precision has 80 numbers and more for every such step
MOST_PLACES = 20  # so that powers of ten are exact in double precision
FEWEST_POINTS = 100


@dataclass(frozen=True)
class Decimals:
    """The multiples of 10 ** -places between two bounds, and the numbers in between; public.

    Classes are those of the multiples (`steps`), then one for all other numbers of every decade.
    """

    low: float
    high: float
    places: int

    @cached_property
    def steps(self) -> Scale:
        """The multiples as steps: the first of them has code 0."""
        first, last = (round(bound * 10.0**self.places) for bound in (self.low, self.high))
        first += _as_floats(np.array([first]), self.places)[0] < np.float32(self.low)
        last -= _as_floats(np.array([last]), self.places)[0] > np.float32(self.high)
        return Scale(low=int(first), size=int(last - first) + 1)

    def points(self, places: np.ndarray) -> np.ndarray:
        """The multiples of such places, as float32: the first has place 0."""
        return _as_floats(self.steps.low + places, self.places)

    @cached_property
    def knots(self) -> np.ndarray:
        """Where decades of numbers begin and end, the bounds included."""
        powers = 10.0 ** np.arange(DIGITS + 1)
        marks = np.concatenate([-powers, powers]) / 10.0**self.places
        return np.unique(np.clip(np.append(marks, [self.low, self.high]), self.low, self.high))

    @cached_property
    def ranges(self) -> np.ndarray:
        """For every decade of the steps, the number of the stretch between two knots that it lies in."""
        middles = [(decade.first + decade.end - 1) / 2 / 10.0**self.places for decade in self.steps.decades]
        return np.clip(np.searchsorted(self.knots, middles, side="right") - 1, 0, len(self.knots) - 2)

    @cached_property
    def decades(self) -> np.ndarray:
        """For every stretch between two knots, the decade of the steps in it; -1 where there is none.

        A bound that is a power of ten is a decade of one step, which has no stretch.
        """
        found = np.full(len(self.knots) - 1, -1)
        for number, decade in enumerate(self.steps.decades):
            if decade.end - decade.first > 1:
                found[self.ranges[number]] = number
        return found

    @property
    def classes(self) -> int:
        return self.steps.classes + len(self.steps.decades)

    def nearest(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The place of the multiple next to every code, and that multiple."""
        known = np.nan_to_num(np.asarray(codes, dtype=np.float64), nan=0.0)
        place = np.rint(known * 10.0**self.places).astype(np.int64) - self.steps.low
        place = np.clip(place, 0, self.steps.size - 1)
        return place, self.points(place)

    def run(self, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the multiples from `first` to `last`, both included: the first, and the one after the last."""
        before, after = self.nearest(first), self.nearest(last)
        start = before[0] + (before[1] < np.asarray(first, dtype=np.float32))
        return start, np.maximum(after[0] + (after[1] <= np.asarray(last, dtype=np.float32)), start)

    def classes_of(self, codes: np.ndarray) -> np.ndarray:
        """The class of every code; 0, numbers nearer to it than any step, and missing ones are in none: -1.

        >>> hundredths = Decimals(0.0, 9.99, places=2)
        >>> codes = np.array([0.0, 0.05, 0.1, 1.33, 7.0, 1.3333, 0.0001, np.nan], dtype=np.float32)
        >>> hundredths.classes_of(codes).tolist()
        [-1, 0, 3, 4, 8, 11, -1, -1]
        """
        place, point = self.nearest(codes)
        decade = self.decade_of(codes)
        beside = np.where((decade < 0) | np.isnan(codes), -1, self.steps.classes + decade)
        return np.where(point == codes, self.steps.classes_of(place), beside)

    def decade_of(self, codes: np.ndarray) -> np.ndarray:
        """The decade of the steps that every code lies in; -1 where there is none."""
        stretch = np.searchsorted(self.knots, codes.astype(np.float64), side="right") - 1
        return self.decades[np.clip(stretch, 0, len(self.decades) - 1)]

    def weighted(self, weights: np.ndarray) -> "DecimalGrain":
        return DecimalGrain(self, weights)


def decimals_of(column: Column) -> Decimals | None:
    """The decimals of a column of reals without a resolution, if there are any worth telling apart."""
    if not isinstance(column, Real) or column.resolution is not None:
        return None
    low, high = float32_bounds(column.low, column.high)
    largest = max(abs(low), abs(high))
    places = DIGITS - math.ceil(math.log10(largest)) if largest > 0 else MOST_PLACES + 1
    if abs(places) > MOST_PLACES or (high - low) * 10.0**places < FEWEST_POINTS:
        return None
    return Decimals(low, high, places)


@dataclass(frozen=True, eq=False)
class DecimalGrain:
    """Mass of reals: `weights[i]` steps on each multiple of class i, a density for the other numbers of a decade.

    Even are 0 and 1. A run of numbers has all that is spread over it, and the masses of the multiples in it.
    """

    scale: Decimals
    weights: np.ndarray

    @cached_property
    def densities(self) -> np.ndarray:
        """Of every decade of the steps; the last is that of numbers nearer to 0."""
        return np.append(self.weights[self.scale.steps.classes :], 1.0)

    @cached_property
    def _spread(self) -> np.ndarray:
        """What is spread over all numbers up to each knot."""
        return np.append(0.0, np.cumsum(self.densities[self.scale.decades] * np.diff(self.scale.knots)))

    @cached_property
    def heaps(self) -> Grain:
        """The weights of the multiples, in steps; 0 has that of the next."""
        steps = self.scale.steps
        beside = steps.classes_of(np.clip(np.array([1, -1]) - steps.low, 0, steps.size - 1))
        return Grain(steps, self.weights[: steps.classes], zero=float(self.weights[beside.max()]))

    def spread_over(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """What is spread from `first` to `last`, multiples left out."""
        knots = self.scale.knots
        first, last = np.clip(first, knots[0], knots[-1]), np.clip(last, knots[0], knots[-1])
        stretch = np.clip(np.searchsorted(knots, first, side="right") - 1, 0, len(knots) - 2)
        # A run that is tiny beside the bounds would be lost between two sums.
        inside = self.densities[self.scale.decades[stretch]] * (last - first)
        over = np.interp(last, knots, self._spread) - np.interp(first, knots, self._spread)
        return np.where(last <= knots[stretch + 1], inside, over)

    def heaped_on(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """The mass of all multiples from `first` to `last`, both included."""
        start, end = self.scale.run(first, last)
        return (self.heaps.below(end) - self.heaps.below(start)) / 10.0**self.scale.places

    def of_codes(self, codes: np.ndarray) -> np.ndarray:
        """The density of every code: the mass of all numbers that single precision rounds to it, over their width.

        Around 0, where single precision is much finer than elsewhere, as many are taken together as around a step.
        """
        place, point = self.scale.nearest(codes)
        step = 10.0**-self.scale.places
        width = np.spacing(np.maximum(np.abs(codes), step).astype(np.float32))
        heaped = np.where(point == codes, self.heaps.of_codes(place) * step / width, 0.0)
        return self.densities[self.scale.decade_of(codes)] + heaped

    def place(self, first: np.ndarray, last: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A float32 for every run of float32 from `first` to `last`, both included, drawn by the mass."""
        heaped = self.heaped_on(first, last)
        start = np.interp(first, self.scale.knots, self._spread)
        spread = np.interp(last, self.scale.knots, self._spread) - start
        wanted = rng.random(len(first)) * (heaped + spread)
        codes = np.interp(start + np.maximum(wanted - heaped, 0), self._spread, self.scale.knots)
        codes = np.clip(codes.astype(np.float32), first, last).astype(np.float32)  # rounding may step over an end
        before, after = self.scale.run(first, last)
        on_point = np.flatnonzero((wanted < heaped) & (after > before))
        codes[on_point] = self.scale.points(self.heaps.place(before[on_point], after[on_point], rng).astype(np.int64))
        return codes


def _as_floats(steps: np.ndarray, places: int) -> np.ndarray:
    """The float32 that stand for whole numbers of steps: exact powers of ten, so that each is the nearest."""
    if places >= 0:
        return (steps / 10.0**places).astype(np.float32)
    return (steps * 10.0**-places).astype(np.float32)
