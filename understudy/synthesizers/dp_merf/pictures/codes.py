"""Codes of images by a released encoder, in whole numbers: no row moves even the last bit of another's code.

A product of matrices in floating point may round differently when rows are added before it. With whole pixels, whole
weights and partial sums below 2^53, float64 is exact, and everything else here is done number by number.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.dp_merf.pictures.released import LEAK, Layers
from understudy.synthesizers.dp_merf.waves import LEVELS

WEIGHT_UNITS = 1 << 16
UNIT_UNITS = 1 << 12
LARGEST_UNIT = 1 << 20  # a hidden unit of 256, in steps of 1/4096
EXACT = 1 << 52
TABLE_STEPS, TABLE_REACH = 1 << 10, 8  # of tanh's argument
ROWS_AT_ONCE = 1 << 13


@dataclass(frozen=True, eq=False)
class WholeEncoder:
    """An encoder's layers as whole numbers: leaky rectifiers between them, tanh at the end, from a table."""

    layers: Layers

    @staticmethod
    def of(layers: Layers) -> "WholeEncoder":
        """The nearest whole weights; released values alone go in."""
        whole, largest, units = [], LEVELS, LEVELS
        for w, b in layers:
            most = EXACT // (2 * largest * len(w))
            weights = np.clip(np.rint(w.astype(np.float64) * WEIGHT_UNITS), -most, most)
            biases = np.clip(np.rint(b.astype(np.float64) * WEIGHT_UNITS * units), -EXACT // 2, EXACT // 2)
            whole.append((weights, biases))
            largest, units = LARGEST_UNIT, UNIT_UNITS
        return WholeEncoder(whole)

    def codes(self, pixels: np.ndarray) -> np.ndarray:
        """(rows, pixels) of uint8 to (rows, codes) of uint8: 127.5 (1 + tanh), rounded."""
        found = np.empty((len(pixels), len(self.layers[-1][1])), dtype=np.uint8)
        for first in range(0, len(pixels), ROWS_AT_ONCE):
            found[first : first + ROWS_AT_ONCE] = self._codes(pixels[first : first + ROWS_AT_ONCE])
        return found

    def _codes(self, pixels: np.ndarray) -> np.ndarray:
        x, units = pixels.astype(np.float64), LEVELS
        for place, (w, b) in enumerate(self.layers):
            # Exact: |x| largest times |w| at most EXACT / (2 largest inputs) over all inputs, and half as much for b.
            x = x @ w + b
            if place < len(self.layers) - 1:
                x = np.rint(np.where(x > 0, x, LEAK * x) * (UNIT_UNITS / (WEIGHT_UNITS * units)))
                x = np.clip(x, -LARGEST_UNIT, LARGEST_UNIT)
                units = UNIT_UNITS
        reach = TABLE_STEPS * TABLE_REACH
        step = np.clip(np.rint(x * (TABLE_STEPS / (WEIGHT_UNITS * units))), -reach, reach)
        return _TANH[step.astype(np.int64) + reach]


_TANH = np.array(
    [
        round(LEVELS / 2 * (1 + math.tanh(step / TABLE_STEPS)))
        for step in range(-TABLE_STEPS * TABLE_REACH, TABLE_STEPS * TABLE_REACH + 1)
    ],
    dtype=np.uint8,
)
