"""The released mixture: draws rows, exactly given conditions, and scores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.columns import released_cells
from understudy.synthesizers.draw import evenly_by_group, systematic, systematic_by_group
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.mixture.inside import inside
from understudy.synthesizers.mixture.parts import part_codes, part_probabilities
from understudy.synthesizers.one_way import check_tables
from understudy.table.cells import Cells

ROWS_PER_DRAW = 1 << 17
ROWS_PER_SCORE = 1 << 12


@dataclass(frozen=True, eq=False)
class Released:
    """Released values alone.

    Component k of class c has weight `weights[c, k]` and, for the coarse codes of all columns side by side,
    `probabilities[c, k]`; `groups` maps each column's fine cells to its coarse codes, `fine` holds the cells' counts,
    `cuts` where common values cut the public cells, `grains` how often round numbers come.
    """

    schema: Schema
    weights: np.ndarray
    probabilities: np.ndarray
    groups: dict[str, np.ndarray]
    fine: dict[str, np.ndarray]
    label: str | None
    rows: int
    cuts: dict[str, np.ndarray] = field(default_factory=dict)
    grains: dict[str, np.ndarray] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {"weights": self.weights, "probabilities": self.probabilities}
        for number, name in enumerate(self.fine):
            arrays[f"fine.{number}"] = self.fine[name]
            if name in self.groups:
                arrays[f"groups.{number}"] = self.groups[name].astype(np.int32)
            if name in self.cuts:
                arrays[f"cuts.{number}"] = self.cuts[name]
            if name in self.grains:
                arrays[f"grain.{number}"] = self.grains[name]
        return arrays

    def facts(self) -> dict[str, Any]:
        return {"label": self.label, "rows": self.rows}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        names = list(schema.modelled)
        released = cls(
            schema=schema,
            weights=arrays["weights"],
            probabilities=arrays["probabilities"],
            groups={n: arrays[f"groups.{i}"].astype(np.int64) for i, n in enumerate(names) if f"groups.{i}" in arrays},
            fine={name: arrays[f"fine.{number}"] for number, name in enumerate(names)},
            cuts={n: arrays[f"cuts.{i}"] for i, n in enumerate(names) if f"cuts.{i}" in arrays},
            grains={n: arrays[f"grain.{i}"] for i, n in enumerate(names) if f"grain.{i}" in arrays},
            label=facts["label"],
            rows=int(facts["rows"]),
        )
        check_tables(released.cells, released.fine)
        released._check()
        return released

    def _check(self) -> None:
        """Refuses parts that do not make a mixture together, such as those of a damaged file."""
        if list(self.groups) != [name for name in self.schema.modelled if name != self.label]:
            raise ValueError("groups: must be there for every column but the label")
        for name, groups in self.groups.items():
            if len(groups) != self.cells[name].count or set(groups.tolist()) != set(range(groups.max() + 1)):
                raise ValueError(f"column {name!r}: must have a coarse code for every cell, numbered without gaps")
        classes = 1 if self.label is None else self.cells[self.label].count
        codes = sum(groups.max() + 1 for groups in self.groups.values())
        if self.weights.ndim != 2 or len(self.weights) != classes:
            raise ValueError(f"weights: must have {classes} rows")
        if self.probabilities.shape != (*self.weights.shape, codes):
            raise ValueError("probabilities: must have the shape of the weights, by all coarse codes")
        for shares in (self.weights.reshape(1, -1), *self.coarse.values()):
            if not (shares >= 0).all() or not np.allclose(shares.sum(axis=-1), 1, atol=1e-3):
                raise ValueError("weights and probabilities: must not be negative, and must sum to 1")

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return released_cells(self.schema, self.cuts, self.grains)

    @cached_property
    def coarse(self) -> dict[str, np.ndarray]:
        """Coarse code probabilities by column (classes, K, codes)."""
        ends = np.cumsum([groups.max() + 1 for groups in self.groups.values()])
        split = np.split(self.probabilities.astype(np.float64), ends[:-1], axis=2)
        return dict(zip(self.groups, split, strict=True))

    @cached_property
    def parts(self) -> dict[str, np.ndarray]:
        """By column, the part of a coarse code that every fine cell lies in."""
        return {name: part_codes(self.cells[name], groups, self.fine[name]) for name, groups in self.groups.items()}

    @cached_property
    def _by_code(self) -> dict[str, np.ndarray]:
        """By column, the probability of every fine cell given its coarse code and the class, (classes, cells)."""
        by_class = {name: np.einsum("ck,ckd->cd", self.weights, table) for name, table in self.coarse.items()}
        return {
            name: inside(self.cells[name], groups, self.fine[name], by_class[name])
            for name, groups in self.groups.items()
        }

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """Probabilities of all parts by column, components of all classes below each other."""
        return {
            name: np.concatenate([self._of_class(name, c) for c in range(len(self.weights))]) for name in self.groups
        }

    def _of_class(self, name: str, number: int) -> np.ndarray:
        return part_probabilities(
            self.cells[name],
            self.groups[name],
            self.parts[name],
            self.fine[name],
            self._by_code[name][number],
            self.weights[number].astype(np.float64),
            self.coarse[name][number],
        )

    @cached_property
    def within(self) -> dict[str, np.ndarray]:
        """By column, the probability of every fine cell given its part and the class, (classes, cells)."""
        found = {}
        for name, parts in self.parts.items():
            sums = [np.bincount(parts, weights=of_class)[parts] for of_class in self._by_code[name]]
            found[name] = np.divide(
                self._by_code[name], sums, out=np.zeros_like(self._by_code[name]), where=np.array(sums) > 0
            )
        return found

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows as codes. Given conditions, components are weighted by how likely they make them, which is exact."""
        given = conditions(self.schema, self.cells, where)
        weights = self.weights.ravel() * np.prod([self._evidence(name, p) for name, p in given.items()], axis=0)
        if not weights.sum() > 0:
            raise OptionError(f"where: no synthetic row has {' and '.join(map(repr, given))} like this; loosen it")
        parts = [self._draw(min(ROWS_PER_DRAW, n - i), weights, given, rng) for i in range(0, n, ROWS_PER_DRAW)]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.schema.modelled}

    def _evidence(self, name: str, pieces: Pieces) -> np.ndarray:
        """The probability of the condition under every component."""
        if name == self.label:
            classes = np.zeros(len(self.weights))
            np.add.at(classes, pieces.cell, pieces.share)
            return np.repeat(classes, self.weights.shape[1])
        return (self.columns[name] * self._piece_shares(name, pieces)).sum(axis=1)

    def _piece_shares(self, name: str, pieces: Pieces) -> np.ndarray:
        """How much of each part a condition leaves, for every component."""
        parts = self.parts[name][pieces.cell]
        left = [
            np.bincount(parts, weights=within[pieces.cell] * pieces.share, minlength=self.columns[name].shape[1])
            for within in self.within[name]
        ]
        return np.repeat(left, self.weights.shape[1], axis=0)

    def _draw(
        self, n: int, weights: np.ndarray, given: dict[str, Pieces], rng: np.random.Generator
    ) -> dict[str, np.ndarray]:
        component = systematic(weights, n, rng)
        of_class = component // self.weights.shape[1]
        codes = {}
        for name, table in self.columns.items():
            pieces = given.get(name)
            if pieces is not None:
                table = table * self._piece_shares(name, pieces)
            part = self._parts_of(name, component, of_class, table, rng)
            codes[name] = self._place(name, of_class, part, pieces, rng)
        if self.label is not None:
            codes[self.label] = self.cells[self.label].place(of_class, rng)
        shuffled = rng.permutation(n)
        return {name: codes[name][shuffled] for name in self.schema.modelled}

    def _parts_of(
        self, name: str, component: np.ndarray, of_class: np.ndarray, table: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """A part for each row: a coarse code first, then a part of it, evenly over all rows of the class and code."""
        codes = self.coarse[name].shape[2]
        if table.shape[1] == codes:
            return systematic_by_group(component, table, rng)
        owner = np.zeros(table.shape[1], dtype=np.int64)
        owner[self.parts[name]] = self.groups[name]
        edges = np.searchsorted(owner, np.arange(codes + 1))  # parts are numbered in the order of their codes
        code = systematic_by_group(component, np.add.reduceat(table, edges[:-1], axis=1), rng)
        return evenly_by_group(of_class * codes + code, component, table, edges[code], edges[code + 1], rng)

    def _place(
        self, name: str, of_class: np.ndarray, part: np.ndarray, pieces: Pieces | None, rng: np.random.Generator
    ) -> np.ndarray:
        """Values inside parts, from the fine table as it is in their class."""
        within, owner = self.within[name], self.parts[name]
        codes = owner.max() + 1
        if not self.cells[name].ordered:  # classes are alike there, and columns of many values are these
            within, of_class = within[:1], np.zeros_like(of_class)
        if pieces is not None:
            within, owner = within[:, pieces.cell] * pieces.share, owner[pieces.cell]
        table = np.zeros((len(within), codes, len(owner)))
        table[:, owner, np.arange(len(owner))] = within
        present, local = np.unique(of_class * codes + part, return_inverse=True)
        order = np.argsort(local, kind="stable")
        drawn = np.empty(len(part), dtype=np.int64)
        drawn[order] = systematic_by_group(local[order], table.reshape(-1, len(owner))[present], rng)
        return self.cells[name].place(drawn, rng) if pieces is None else pieces.place(drawn, self.cells[name], rng)

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Natural logarithm of each row's probability (density, for reals without a resolution)."""
        n = len(next(iter(codes.values())))
        slices = [slice(first, first + ROWS_PER_SCORE) for first in range(0, n, ROWS_PER_SCORE)]
        return np.concatenate([self._score({name: c[s] for name, c in codes.items()}) for s in slices])

    def _score(self, codes: dict[str, np.ndarray]) -> np.ndarray:
        n = len(next(iter(codes.values())))
        of_class = np.zeros(n, dtype=np.int64)
        if self.label is not None:
            of_class = self.cells[self.label].index(codes[self.label]).astype(np.int64)
        with np.errstate(divide="ignore"):
            joint = np.log(self.weights.ravel())[:, None]
            placed = np.zeros(n)
            for name, table in self.columns.items():
                cell = self.cells[name].index(codes[name])
                joint = joint + np.log(table)[:, self.parts[name][cell]]
                placed += np.log(self.within[name][of_class, cell]) + self.cells[name].log_shares(codes[name], cell)
            components = np.repeat(np.arange(len(self.weights)), self.weights.shape[1])
            joint = np.where(components[:, None] == of_class, joint, -np.inf)
            top = joint.max(axis=0)
            top = np.where(np.isfinite(top), top, 0.0)
            return np.log(np.exp(joint - top).sum(axis=0)) + top + placed
