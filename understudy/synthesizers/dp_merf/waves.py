"""Random Fourier features in whole numbers: what a row adds to a sum depends on that row alone, to the last bit.

Floating-point sums depend on the order of rows, which a row more or less shifts, so their sensitivity cannot be proved.
Here inputs and frequencies are integers, phases wrap around in integers, and the cosine is a table of integers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

LEVELS = 255  # inputs are 0 to 255
TURN_BITS = 24  # frequencies are in units of 2^-24 turns a level of the input
INDEX_BITS = 16
AMPLITUDE = 1 << 14
PHASES_AT_ONCE = 1 << 18  # sums of table entries: what the processor's cache holds
PRODUCTS_AT_ONCE = 1 << 22  # products of matrices: as many rows as memory bears
# 255 times the largest frequency, summed over inputs, must stay below 2^53, where float64 adds integers exactly.
LARGEST_FREQUENCY = 1 << (TURN_BITS - 1)
MOST_INPUTS = 1 << 21


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    angles = 2 * math.pi * np.arange(1 << INDEX_BITS) / (1 << INDEX_BITS)
    return tuple(np.rint(AMPLITUDE * wave(angles)).astype(np.int16) for wave in (np.cos, np.sin))


@cache
def _largest_square() -> int:
    cosine, sine = (table.astype(np.int64) for table in _tables())
    return int((cosine**2 + sine**2).max())


@dataclass(frozen=True, eq=False)
class Waves:
    """F frequencies over some inputs of 0 to 255: the features of x are AMPLITUDE cos and sin of 2 pi x.w / 2^24.

    Public: frequencies are drawn without looking at rows.
    """

    frequencies: np.ndarray  # (inputs, F) of int64

    def __post_init__(self) -> None:
        inputs, _ = self.frequencies.shape
        if inputs > MOST_INPUTS or np.abs(self.frequencies).max(initial=0) > LARGEST_FREQUENCY:
            raise ValueError("frequencies are too many or too large for exact sums")

    @staticmethod
    def draw(inputs: int, count: int, widths: tuple[float, ...], rng: np.random.Generator) -> "Waves":
        """Frequencies of Gaussian kernels, by turns of each width (in units of the inputs' whole range).

        A mixture of widths is the mean of their kernels, in one vector with the same bound.
        """
        scale = (1 << TURN_BITS) / (2 * math.pi * LEVELS)
        width = np.resize(np.asarray(widths, dtype=np.float64), count)
        drawn = np.rint(rng.standard_normal((inputs, count)) * scale / width)
        return Waves(np.clip(drawn, -LARGEST_FREQUENCY, LARGEST_FREQUENCY).astype(np.int64))

    @property
    def count(self) -> int:
        return self.frequencies.shape[1]

    @property
    def size(self) -> int:
        return 2 * self.count

    @cached_property
    def norm_squared(self) -> int:
        """No row's features are longer than its root: each frequency adds cos^2 + sin^2 of one entry of the tables."""
        return self.count * _largest_square()

    @cached_property
    def _floats(self) -> np.ndarray:
        return self.frequencies.astype(np.float64)

    @cached_property
    def angles(self) -> np.ndarray:
        """Frequencies in radians a level, for what is made rather than counted."""
        return self.frequencies * (2 * math.pi / (1 << TURN_BITS))

    def phases(self, inputs: np.ndarray) -> np.ndarray:
        """(rows, inputs) of 0 to 255 to (rows, F) of uint32, in units of 2^-24 turns; whole turns do not matter."""
        exact = inputs.astype(np.float64) @ self._floats
        return exact.astype(np.int64).astype(np.uint32)

    def phases_of_levels(self, place: int, levels: np.ndarray) -> np.ndarray:
        """(levels, F): what one input alone adds to the phases, for some of its levels."""
        return (levels.astype(np.int64)[:, None] * self.frequencies[place]).astype(np.uint32)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """(rows, inputs) of 0 to 255 to (rows, 2F) of int16: all cosines, then all sines."""
        return _features(self.phases(inputs))

    def sums(self, inputs: np.ndarray, groups: np.ndarray, group_count: int) -> np.ndarray:
        """(group_count, 2F) of int64: the features summed over the rows of every group. Private."""
        return self._sums(lambda part: self.phases(inputs[part]), groups, group_count, PRODUCTS_AT_ONCE)

    def sums_of_codes(
        self, tables: list[np.ndarray], codes: list[np.ndarray], groups: np.ndarray, group_count: int
    ) -> np.ndarray:
        """The same for inputs of few levels, given by code: `tables` are their phases, which add up and wrap around."""

        def phases(part: slice) -> np.ndarray:
            total = tables[0][codes[0][part]]
            for table, code in zip(tables[1:], codes[1:], strict=True):
                total += table[code[part]]
            return total

        return self._sums(phases, groups, group_count, PHASES_AT_ONCE)

    def _sums(
        self, phases: Callable[[slice], np.ndarray], groups: np.ndarray, group_count: int, at_once: int
    ) -> np.ndarray:
        sums = np.zeros((group_count, self.size), dtype=np.int64)
        step = max(1, at_once // self.count)
        for first in range(0, len(groups), step):
            features = _features(phases(slice(first, first + step)))
            part = groups[first : first + step]
            for group in np.unique(part):
                sums[group] += features[part == group].sum(axis=0, dtype=np.int64)
        return sums


def _features(phases: np.ndarray) -> np.ndarray:
    index = (phases >> np.uint32(TURN_BITS - INDEX_BITS)).astype(np.uint16)
    cosine, sine = _tables()
    return np.concatenate([cosine[index], sine[index]], axis=1)
