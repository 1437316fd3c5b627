"""The feature map: what one row adds to the embedding that is released, and how long that can be.

A row with codes x_1..x_k and label code y adds the tensor product of

    h(x) = [ waves of the numeric columns ; b * one-hot of every column ; c * one-hot of every pair of columns ; t ]

with a public vector f(y): one-hot for classes (class sums and counts in one release), Fourier features of y for a label
that is a number (a Gaussian kernel on y too), 1 where there is no label. All in whole numbers (see `waves`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.synthesizers.dp_merf.waves import AMPLITUDE, Waves

FACTOR_SCALE = 1 << 10
RELATIONS = ("add-remove", "replace-one")


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Public facts that fix what a row of coarse codes adds.

    sizes: codes of every column. factor: (label codes, L) of integers, one row a code of the label.
    inputs: for every numeric column its place and the level (0 to 255) of each of its codes, in the order of `waves`.
    pairs: places of the columns whose products are counted. pairs_split: those are multiplied with the label as well.
    column_weight, pair_weight, total_weight: b, c and t.
    """

    sizes: tuple[int, ...]
    factor: np.ndarray
    waves: Waves | None
    inputs: tuple[tuple[int, np.ndarray], ...]
    pairs: tuple[tuple[int, int], ...]
    pairs_split: bool
    column_weight: int
    pair_weight: int
    total_weight: int

    @cached_property
    def wave_size(self) -> int:
        return self.waves.size if self.waves else 0

    @property
    def labels(self) -> int:
        """Length of f(y)."""
        return self.factor.shape[1]

    @cached_property
    def pair_factor(self) -> np.ndarray:
        """What pairs are multiplied with: f(y), or its largest length for every y."""
        if self.pairs_split:
            return self.factor
        return np.full((len(self.factor), 1), math.isqrt(self._factor_squared))

    @cached_property
    def _factor_squared(self) -> int:
        return int((self.factor.astype(np.int64) ** 2).sum(axis=1).max())

    @cached_property
    def _wave_squared(self) -> int:
        return self.waves.norm_squared if self.waves else 0

    @cached_property
    def _count_squared(self) -> int:
        return len(self.sizes) * self.column_weight**2 + len(self.pairs) * self.pair_weight**2

    def sensitivity(self, relation: str = "add-remove") -> float:
        """The most that one row can move the sums in L2.

        Add or remove: the row's own vector, whose squared length is |f(y)|^2 (|waves|^2 + k b^2 + P c^2 + t^2): one-hot
        blocks have one entry each, waves at most `Waves.norm_squared`; pairs without the label have |f| in one entry.
        Replace one: let w, u be the squared lengths of waves and of all one-hot blocks. Rows of the same label differ
        by at most 2 sqrt(w) in the waves and by two entries in each one-hot block, and t cancels: |f|^2 (4 w + 2 u).
        Rows whose f are orthogonal (other classes) differ by the sum of their squares: 2 |f|^2 (w + u + t^2).
        For f of a number nothing but the triangle inequality is used: twice the length.
        """
        waves, counts, total = self._wave_squared, self._count_squared, self.total_weight**2
        whole = self._factor_squared * (waves + counts + total)
        if relation == "add-remove":
            return math.sqrt(whole)
        if relation != "replace-one":
            raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}")
        same = self._factor_squared * (4 * waves + 2 * counts)
        if len(self.factor) == 1:
            return math.sqrt(same)
        if self._orthogonal:
            return math.sqrt(max(same, 2 * whole))
        return 2 * math.sqrt(whole)

    @cached_property
    def _orthogonal(self) -> bool:
        products = self.factor @ self.factor.T
        return bool((products == np.diag(np.diag(products))).all())

    @cached_property
    def pair_starts(self) -> np.ndarray:
        return np.cumsum([0, *(self.sizes[a] * self.sizes[b] for a, b in self.pairs)])

    @property
    def size(self) -> int:
        """The number of released values."""
        columns = (self.wave_size + sum(self.sizes) + 1) * self.labels
        return columns + int(self.pair_starts[-1]) * self.pair_factor.shape[1]

    @cached_property
    def _phase_tables(self) -> list[np.ndarray]:
        return [self.waves.phases_of_levels(row, level) for row, (_, level) in enumerate(self.inputs)]

    def empty_counts(self) -> "Counts":
        labels = len(self.factor)
        return Counts(
            waves=np.zeros((labels, self.wave_size), dtype=np.int64),
            columns=np.zeros((labels, sum(self.sizes)), dtype=np.int64),
            pairs=np.zeros((labels if self.pairs_split else 1, int(self.pair_starts[-1])), dtype=np.int64),
            rows=np.zeros(labels, dtype=np.int64),
        )

    def count(self, codes: np.ndarray, labels: np.ndarray, into: "Counts") -> None:
        """Adds (rows, columns) of codes with their label codes to the exact counts. Private."""
        labels = labels.astype(np.int64)
        if self.waves:
            columns = [codes[:, place] for place, _ in self.inputs]
            into.waves[:] += self.waves.sums_of_codes(self._phase_tables, columns, labels, len(self.factor))
        into.rows[:] += np.bincount(labels, minlength=len(self.factor))
        split = [codes[:, place].astype(np.int64) for place in range(codes.shape[1])]
        start = 0
        for place, size in enumerate(self.sizes):
            cell = labels * size + split[place]
            into.columns[:, start : start + size] += _bincount(cell, len(self.factor), size)
            start += size
        groups = labels if self.pairs_split else np.zeros_like(labels)
        for (a, b), first in zip(self.pairs, self.pair_starts, strict=False):
            size = self.sizes[a] * self.sizes[b]
            cell = (groups * self.sizes[a] + split[a]) * self.sizes[b] + split[b]
            into.pairs[:, first : first + size] += _bincount(cell, len(into.pairs), size)

    def stack(self, counts: "Counts") -> np.ndarray:
        """The sums of all rows' vectors, in whole numbers: linear in the counts by label."""
        pair_factor = self.pair_factor if self.pairs_split else self.pair_factor[:1]
        parts = [
            self.factor.T @ counts.waves,
            self.column_weight * (self.factor.T @ counts.columns),
            self.pair_weight * (pair_factor.T @ counts.pairs),
            self.total_weight * (self.factor.T @ counts.rows[:, None]),
        ]
        return np.concatenate([part.ravel() for part in parts])

    def unstack(self, values: np.ndarray) -> "Embedding":
        """Released values by block, one-hot blocks in rows rather than in units of the release."""
        codes, cells = sum(self.sizes), int(self.pair_starts[-1])
        ends = np.cumsum([self.labels * self.wave_size, self.labels * codes, self.pair_factor.shape[1] * cells])
        waves, columns, pairs, total = np.split(values, ends)
        return Embedding(
            waves=waves.reshape(self.labels, self.wave_size) / AMPLITUDE,
            columns=columns.reshape(self.labels, codes) / max(self.column_weight, 1),
            pairs=pairs.reshape(self.pair_factor.shape[1], cells) / max(self.pair_weight, 1),
            total=total / max(self.total_weight, 1),
        )


@dataclass(frozen=True, eq=False)
class Counts:
    """Exact sums by label code, private: waves, codes of every column, cells of every pair, rows."""

    waves: np.ndarray
    columns: np.ndarray
    pairs: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Embedding:
    """The released sums, in units of |f(y)| times rows: (L, 2F), (L, codes), (L or 1, cells), (L,)."""

    waves: np.ndarray
    columns: np.ndarray
    pairs: np.ndarray
    total: np.ndarray


def _bincount(cells: np.ndarray, groups: int, size: int) -> np.ndarray:
    return np.bincount(cells, minlength=groups * size).reshape(groups, size)


def no_label() -> np.ndarray:
    return np.ones((1, 1), dtype=np.int64)


def class_factor(classes: int) -> np.ndarray:
    """One-hot: sums by class."""
    return np.eye(classes, dtype=np.int64)


def number_factor(levels: np.ndarray, waves: Waves) -> np.ndarray:
    """For a label that is a number: a constant, which keeps the sums over all rows, and Fourier features of its level.

    Half of the squared length each, so that neither drowns in the noise.
    """
    features = waves.features(levels[:, None].astype(np.uint8)).astype(np.float64)
    features *= FACTOR_SCALE / AMPLITUDE / math.sqrt(2 * waves.count)
    constant = np.full((len(levels), 1), FACTOR_SCALE / math.sqrt(2))
    return np.rint(np.concatenate([constant, features], axis=1)).astype(np.int64)
