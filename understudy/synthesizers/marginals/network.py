"""A graphical model of coarse codes as a chain of conditional tables: built from potentials, conditioned, drawn from.

Columns are eliminated one by one; a column's neighbours at that moment become its parents. Elimination joins them with
each other, so that the parents of a column all lie in the family (a column and its parents) of whichever of them was
eliminated first: messages find a place, and every step below is exact (Koller & Friedman 2009, chapter 9).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.draw import systematic, systematic_by_group

Columns = tuple[int, ...]


@dataclass(frozen=True)
class Family:
    """A column, and those that it is drawn after and depends on, in the order in which they are drawn."""

    column: int
    parents: Columns

    @property
    def axes(self) -> Columns:
        return (*self.parents, self.column)


def families_of(sizes: Sequence[int], sets: Iterable[Columns]) -> tuple[Family, ...]:
    """All columns in the order of drawing; every set lies in one family.

    Eliminates next whichever column has the smallest table with its neighbours (the first of several).

    >>> families_of([2, 9, 3], [(0, 1), (1, 2)])
    (Family(column=2, parents=()), Family(column=1, parents=(2,)), Family(column=0, parents=(1,)))
    """
    near: dict[int, set[int]] = {}
    for members in sets:
        for column in members:
            near.setdefault(column, set()).update(members)
            near[column].discard(column)
    cells = {column: _cells(sizes, column, near[column]) for column in near}
    eliminated: list[tuple[int, set[int]]] = [(column, set()) for column in range(len(sizes)) if column not in near]
    while near:
        column = min(cells, key=lambda c: (cells[c], c))
        neighbours = near.pop(column)
        del cells[column]
        for other in neighbours:
            near[other] = (near[other] | neighbours) - {column, other}
        for other in neighbours:
            cells[other] = _cells(sizes, other, near[other])
        eliminated.append((column, neighbours))
    eliminated.reverse()
    place = {column: number for number, (column, _) in enumerate(eliminated)}
    return tuple(Family(column, tuple(sorted(parents, key=place.get))) for column, parents in eliminated)


def model_cells(sizes: Sequence[int], sets: Iterable[Columns]) -> int:
    """Cells of all conditional tables of a model of these sets: what memory and time grow with.

    >>> model_cells([2, 9, 3], [(0, 1), (1, 2)])
    48
    """
    return sum(_cells(sizes, family.column, family.parents) for family in families_of(sizes, sets))


def _cells(sizes: Sequence[int], column: int, others: Iterable[int]) -> int:
    return sizes[column] * math.prod(sizes[other] for other in others)


@dataclass(frozen=True, eq=False)
class Network:
    """Probabilities of each column's codes (last axis) given its parents' (the axes before)."""

    families: tuple[Family, ...]
    tables: tuple[np.ndarray, ...]

    @classmethod
    def from_potentials(cls, sizes: Sequence[int], potentials: Mapping[Columns, np.ndarray]) -> "Network":
        """The distribution proportional to exp of the sum of potentials, one array for each set of columns."""
        families = families_of(sizes, potentials)
        place = {family.column: number for number, family in enumerate(families)}
        logs = [np.zeros([sizes[column] for column in family.axes]) for family in families]
        for members, values in potentials.items():
            owner = max(members, key=place.get)
            logs[place[owner]] += _aligned(values, members, families[place[owner]].axes)
        return cls(families, _normalised(families, logs)[0])

    def given(self, evidence: Mapping[int, np.ndarray]) -> "Network | None":
        """The network in which each code of a column counts as much as the evidence says; None if nothing is left."""
        with np.errstate(divide="ignore"):
            logs = [np.log(table.astype(np.float64)) for table in self.tables]
            for number, family in enumerate(self.families):
                if family.column in evidence:
                    logs[number] = logs[number] + np.log(evidence[family.column])
        tables, mass = _normalised(self.families, logs)
        return None if mass == -math.inf else Network(self.families, tables)

    def draw(self, n: int, rng: np.random.Generator) -> dict[int, np.ndarray]:
        """n rows of codes, by column: systematic within each group of rows with the same parents."""
        codes: dict[int, np.ndarray] = {}
        for family, table in zip(self.families, self.tables, strict=True):
            if not family.parents:
                codes[family.column] = rng.permutation(systematic(table, n, rng))
                continue
            rows = np.ravel_multi_index([codes[parent] for parent in family.parents], table.shape[:-1])
            codes[family.column] = draw_by_row(rows, table.reshape(-1, table.shape[-1]), rng)
        return codes

    def log_prob(self, codes: Mapping[int, np.ndarray]) -> np.ndarray:
        """Natural logarithm of the probability of each row of codes."""
        with np.errstate(divide="ignore"):
            return sum(
                np.log(table.astype(np.float64)[tuple(codes[column] for column in family.axes)])
                for family, table in zip(self.families, self.tables, strict=True)
            )


def draw_by_row(rows: np.ndarray, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A column of `table` for each of `rows`, by the weights in that row of the table."""
    present, local = np.unique(rows, return_inverse=True)
    order = np.argsort(local, kind="stable")
    drawn = np.empty(len(rows), dtype=np.int64)
    drawn[order] = systematic_by_group(local[order], table[present], rng)
    return drawn


def _normalised(families: Sequence[Family], logs: list[np.ndarray]) -> tuple[tuple[np.ndarray, ...], float]:
    """Conditional tables of unnormalised ones, and the logarithm of their total; `logs` is used up."""
    place = {family.column: number for number, family in enumerate(families)}
    tables: list[np.ndarray] = [np.zeros(0)] * len(families)
    mass = 0.0
    for number in reversed(range(len(families))):
        parents = families[number].parents
        top = logs[number].max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(logs[number] - top)
        sums = weights.sum(axis=-1, keepdims=True)
        tables[number] = weights / np.where(sums > 0, sums, 1.0)  # rows of zeros are those that cannot be reached
        with np.errstate(divide="ignore"):
            message = (np.log(sums) + top)[..., 0]
        if parents:
            owner = place[parents[-1]]
            logs[owner] = logs[owner] + _aligned(message, parents, families[owner].axes)
        else:
            mass += float(message)
    return tuple(tables), mass


def _aligned(values: np.ndarray, members: Columns, axes: Columns) -> np.ndarray:
    """An array over `members` with its axes where `axes` has them, of length 1 elsewhere."""
    ordered = np.transpose(values, [members.index(column) for column in axes if column in members])
    lengths = iter(ordered.shape)
    return ordered.reshape([next(lengths) if column in members else 1 for column in axes])
