"""The feature map of images: what one row adds to the released sums, and how long that can be.

An image x of levels 0 to 255 with label y adds, to the sums of its class alone,

    h(x) = [ cosines and sines of F frequencies ; a (2x - 255) ; t ]

in whole numbers (see `waves`): Fourier features, every pixel around mid-grey, and a count. With an autoencoder x is the
image's code. Nothing here is read from rows, so a row's vector depends on that row alone, to the last bit.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.dp_merf.waves import AMPLITUDE, LEVELS, Waves

RELATIONS = ("add-remove", "replace-one")


@dataclass(frozen=True, eq=False)
class PictureMap:
    """Public facts that fix what a row adds: its frequencies, the classes, and the whole weights a and t."""

    waves: Waves
    classes: int
    pixel_weight: int
    count_weight: int

    @staticmethod
    def weighted(waves: Waves, classes: int, *, pixels: float, count: float) -> "PictureMap":
        """With weights so that pixels and counts are at most these multiples of the waves' length."""
        length = math.sqrt(waves.norm_squared)
        inputs = waves.frequencies.shape[0]
        return PictureMap(
            waves=waves,
            classes=classes,
            pixel_weight=max(1, int(pixels * length / (LEVELS * math.sqrt(inputs)))),
            count_weight=max(1, int(count * length)),
        )

    @property
    def inputs(self) -> int:
        return self.waves.frequencies.shape[0]

    @property
    def size(self) -> int:
        """The number of values a class."""
        return self.waves.size + self.inputs + 1

    @property
    def _pixels_squared(self) -> int:
        return self.inputs * (LEVELS * self.pixel_weight) ** 2

    def sensitivity(self, relation: str = "add-remove") -> float:
        """The most that one row can move the sums in L2.

        Let w, p, t^2 be the largest squared lengths of the three blocks. `Waves.norm_squared` bounds w; |2x - 255| is
        at most 255 for every level, so p = inputs (255 a)^2, reached by every image of black and white pixels alone.
        Add or remove: the row's own vector, sqrt(w + p + t^2). Replace one by a row of the same class: the count
        cancels and no block moves by more than twice its length (a white image for a black one moves pixels by just
        that), 2 sqrt(w + p). By a row of another class: the two vectors stand in different places, so their squares
        add, sqrt(2 (w + p + t^2)).
        """
        features = self.waves.norm_squared + self._pixels_squared
        whole = features + self.count_weight**2
        if relation == "add-remove":
            return math.sqrt(whole)
        if relation != "replace-one":
            raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}")
        return math.sqrt(4 * features if self.classes == 1 else max(4 * features, 2 * whole))

    def sums(self, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(classes, size) of int64: the vectors of (rows, inputs) of uint8, summed by class. Private."""
        found = np.zeros((self.classes, self.size), dtype=np.int64)
        found[:, : self.waves.size] = self.waves.sums(inputs, labels, self.classes)
        for label in range(self.classes):
            mine = inputs[labels == label]
            centred = 2 * mine.sum(axis=0, dtype=np.int64) - LEVELS * len(mine)
            found[label, self.waves.size : -1] = self.pixel_weight * centred
            found[label, -1] = self.count_weight * len(mine)
        return found

    def read(self, values: np.ndarray, noise_std: float, kept: np.ndarray) -> "Embedding":
        """Released sums in natural units. kept: the public share of each class's rows that was counted."""
        count = values[:, -1] / self.count_weight
        # A class that noise could have made is divided by what its count could have been.
        rows = np.maximum(count, max(1.0, noise_std / self.count_weight))
        middle = values[:, self.waves.size : -1] / (LEVELS * self.pixel_weight)
        return Embedding(
            waves=values[:, : self.waves.size] / AMPLITUDE / rows[:, None],
            pixels=(1 + middle / rows[:, None]) / 2,
            rows=np.maximum(count, 0.0) / kept,
        )


@dataclass(frozen=True, eq=False)
class Embedding:
    """Released means by class: waves (C, 2F) of -1 to 1, inputs (C, inputs) of 0 to 1, noisy rows (C,) of the table."""

    waves: np.ndarray
    pixels: np.ndarray
    rows: np.ndarray
