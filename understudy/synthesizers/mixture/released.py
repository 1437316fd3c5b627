"""The released mixture: draws rows, exactly given conditions, and scores them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.columns import released_cells
from understudy.synthesizers.draw import evenly_by_group, systematic, systematic_by_group
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.mixture.guided import Guided, Guides
from understudy.synthesizers.mixture.guides import FineTables
from understudy.synthesizers.mixture.inside import inside
from understudy.synthesizers.mixture.parts import part_codes, part_probabilities
from understudy.synthesizers.mixture.placing import FineColumn, owner_of, place_shares, shares_in_codes
from understudy.synthesizers.one_way import check_tables
from understudy.table.cells import Cells

ROWS_PER_DRAW = 1 << 17
ROWS_PER_SCORE = 1 << 12


@dataclass(frozen=True, eq=False)
class Released:
    """Released values alone.

    Component k of class c has weight `weights[c, k]` and, for the coarse codes of all columns side by side,
    `probabilities[c, k]`; `groups` maps each column's fine cells to its coarse codes, `fine` holds the cells' counts,
    `cuts` where common values cut the public cells, `grains` how often round numbers come, `guides` which columns are
    placed inside their codes by which others. `lean`: components rise or fall inside bins as they do from bin to bin;
    where each is a single draw of a generator, what it has inside bins tells nothing.
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
    guides: Guides = field(default_factory=Guides)
    lean: bool = True

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
            if name in self.guides.runs:
                arrays[f"runs.{number}"] = self.guides.runs[name].astype(np.int32)
            if name in self.guides.shares:
                arrays[f"shares.{number}"] = self.guides.shares[name]
        return arrays

    def facts(self) -> dict[str, Any]:
        facts = {"label": self.label, "rows": self.rows}
        # Pairs in a list, since a file sorts names and guides must come before what they guide.
        return facts | ({"guides": [list(pair) for pair in self.guides.of.items()]} if self.guides.of else {})

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
            guides=Guides(
                of=dict(facts.get("guides", [])),
                runs={n: arrays[f"runs.{i}"].astype(np.int64) for i, n in enumerate(names) if f"runs.{i}" in arrays},
                shares={n: arrays[f"shares.{i}"] for i, n in enumerate(names) if f"shares.{i}" in arrays},
            ),
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
        self.guides.check(self.groups)

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
        """By column, the part of a code that every fine cell lies in; the whole code, if another column guides it."""
        return {
            name: groups
            if name in self.guides.of or not self.lean
            else part_codes(self.cells[name], groups, self.fine[name])
            for name, groups in self.groups.items()
        }

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
        return {name: self._inside(name, parts) for name, parts in self.parts.items()}

    def _inside(self, name: str, parts: np.ndarray) -> np.ndarray:
        sums = [np.bincount(parts, weights=of_class)[parts] for of_class in self._by_code[name]]
        return np.divide(self._by_code[name], sums, out=np.zeros_like(self._by_code[name]), where=np.array(sums) > 0)

    @cached_property
    def guided(self) -> dict[str, Guided]:
        """By guided column, its runs given the guide's and the class, and its cells given their run and the class."""
        found = {}
        for name in self.guides.of:
            runs, owner = self.guides.runs[name], owner_of(self.guides.runs[name], self.groups[name])
            by_run = np.array([np.bincount(runs, weights=of_class) for of_class in self._by_code[name]])
            even = shares_in_codes(np.bincount(runs, weights=self.fine[name]), owner)
            # A class that leans inside a code does so given the guide as well.
            lean = np.where(even > 0, by_run / np.where(even > 0, even, 1.0), 1.0)
            shares = shares_in_codes(self.guides.shares[name] * lean[:, None], owner)
            found[name] = Guided(self.guides.of[name], runs, owner, shares, self._inside(name, runs))
        return found

    def place_by(self, fine: FineTables) -> "Released":
        """The same model with columns placed by their guides, as released counts of both tell."""
        columns = {
            name: FineColumn(
                self.cells[name], self.groups[name], runs, self.fine[name], self._by_code[name], self.coarse[name]
            )
            for name, runs in fine.runs.items()
        }
        weights = self.weights.astype(np.float64)
        shares = {
            name: place_shares(columns[guide], columns[name], weights, fine.counts[name], fine.noise)
            for name, guide in fine.of.items()
        }
        return replace(self, guides=Guides(fine.of, fine.runs, shares))

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows as codes. Given conditions, components are weighted by how likely they make them, which is exact."""
        given = conditions(self.schema, self.cells, where)
        weights = self.weights.ravel()
        for name in self._unguided:
            weights = weights * self._evidence(name, given)
        if not weights.sum() > 0:
            raise OptionError(f"where: no synthetic row has {' and '.join(map(repr, given))} like this; loosen it")
        parts = [self._draw(min(ROWS_PER_DRAW, n - i), weights, given, rng) for i in range(0, n, ROWS_PER_DRAW)]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.schema.modelled}

    @property
    def _unguided(self) -> list[str]:
        return [name for name in self.schema.modelled if name not in self.guides.of]

    def _evidence(self, name: str, given: dict[str, Pieces]) -> np.ndarray | float:
        """The probability of the conditions on a column, and on all that it guides, under every component."""
        pieces, below = given.get(name), self._below(name, given)
        if below is not None:
            return self._cell_weights(name, pieces, below).sum(axis=1)
        if pieces is None:
            return 1.0
        if name == self.label:
            classes = np.zeros(len(self.weights))
            np.add.at(classes, pieces.cell, pieces.share)
            return np.repeat(classes, self.weights.shape[1])
        return (self.columns[name] * self._piece_shares(name, pieces)).sum(axis=1)

    def _below(self, name: str, given: dict[str, Pieces]) -> np.ndarray | None:
        """How likely each component makes the conditions on all that a column guides, by its run; None without any."""
        found = None
        for other, guided in self.guided.items():
            if guided.guide != name:
                continue
            weights = self._run_weights(other, given)
            if weights is not None:
                by_class = weights.reshape(len(self.weights), -1, weights.shape[1])
                told = np.matmul(by_class, guided.shares.transpose(0, 2, 1)).reshape(len(weights), -1)
                found = told if found is None else found * told
        return found

    def _run_weights(self, name: str, given: dict[str, Pieces]) -> np.ndarray | None:
        """Of a guided column: for every component and run, the probability of its code, times that of all conditions
        on it and below it; None without any."""
        pieces, below, guided = given.get(name), self._below(name, given), self.guided[name]
        if pieces is None and below is None:
            return None
        weights = self.columns[name][:, guided.owner]
        if pieces is not None:
            left = [
                np.bincount(
                    guided.runs[pieces.cell], weights=inside[pieces.cell] * pieces.share, minlength=len(guided.owner)
                )
                for inside in guided.inside
            ]
            weights = weights * np.repeat(left, self.weights.shape[1], axis=0)
        return weights if below is None else weights * below

    def _cell_weights(self, name: str, pieces: Pieces | None, below: np.ndarray) -> np.ndarray:
        """Of a column that guides others: for every component and cell (or piece), its probability, times that of all
        conditions below it."""
        cell = np.arange(self.cells[name].count) if pieces is None else pieces.cell
        inside = self.within[name][:, cell] * (1.0 if pieces is None else pieces.share)
        weights = self.columns[name][:, self.parts[name][cell]] * below[:, self.guides.runs[name][cell]]
        return weights * np.repeat(inside, self.weights.shape[1], axis=0)

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
        codes: dict[str, np.ndarray] = {}
        for name in [*(name for name in self._unguided if name != self.label), *self.guides.of]:
            pieces = given.get(name)
            if name in self.guides.of:
                codes[name] = self._draw_guided(name, component, of_class, codes, given, rng)
            elif (below := self._below(name, given)) is not None:
                present, local = np.unique(component, return_inverse=True)
                drawn = systematic_by_group(local, self._cell_weights(name, pieces, below)[present], rng)
                codes[name] = self._values(name, drawn, pieces, rng)
            else:
                table = self.columns[name]
                if pieces is not None:
                    table = table * self._piece_shares(name, pieces)
                part = self._parts_of(name, component, of_class, table, rng)
                codes[name] = self._place(
                    name, of_class, part, pieces, rng, within=self.within[name], owner=self.parts[name]
                )
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

    def _draw_guided(
        self,
        name: str,
        component: np.ndarray,
        of_class: np.ndarray,
        codes: dict[str, np.ndarray],
        given: dict[str, Pieces],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Values of a guided column, given those of its guide."""
        guided = self.guided[name]
        at = self.guides.runs[guided.guide][self.cells[guided.guide].index(codes[guided.guide])]
        table = guided.shares.reshape(-1, len(guided.owner))
        row = of_class * guided.shares.shape[1] + at
        weights = self._run_weights(name, given)
        if weights is None:
            code = systematic_by_group(component, self.columns[name], rng)
            edges = np.searchsorted(guided.owner, np.arange(len(guided.owner) + 1))
            group = np.unique(row * (guided.owner[-1] + 1) + code, return_inverse=True)[1]
            run = evenly_by_group(group, row, table, edges[code], edges[code + 1], rng)
        else:
            met, group = np.unique(component * guided.shares.shape[1] + at, return_inverse=True)
            order = np.argsort(group, kind="stable")
            first = order[np.searchsorted(group[order], np.arange(len(met)))]
            run = np.empty(len(component), dtype=np.int64)
            run[order] = systematic_by_group(group[order], weights[component[first]] * table[row[first]], rng)
        return self._place(name, of_class, run, given.get(name), rng, within=guided.inside, owner=guided.runs)

    def _values(self, name: str, drawn: np.ndarray, pieces: Pieces | None, rng: np.random.Generator) -> np.ndarray:
        """Codes for drawn cells, or pieces of them."""
        return self.cells[name].place(drawn, rng) if pieces is None else pieces.place(drawn, self.cells[name], rng)

    def _place(
        self,
        name: str,
        of_class: np.ndarray,
        part: np.ndarray,
        pieces: Pieces | None,
        rng: np.random.Generator,
        *,
        within: np.ndarray,
        owner: np.ndarray,
    ) -> np.ndarray:
        """Values inside parts, from the fine table as it is in their class: `within` (classes, cells) given a part,
        `owner` the part of every cell."""
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
        return self._values(name, drawn, pieces, rng)

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
            cells = {name: self.cells[name].index(codes[name]) for name in self.groups}
            for name, table in self.columns.items():
                joint = joint + np.log(table)[:, self.parts[name][cells[name]]]
                placed += self._log_inside(name, of_class, cells) + self.cells[name].log_shares(
                    codes[name], cells[name]
                )
            components = np.repeat(np.arange(len(self.weights)), self.weights.shape[1])
            joint = np.where(components[:, None] == of_class, joint, -np.inf)
            top = joint.max(axis=0)
            top = np.where(np.isfinite(top), top, 0.0)
            return np.log(np.exp(joint - top).sum(axis=0)) + top + placed

    def _log_inside(self, name: str, of_class: np.ndarray, cells: dict[str, np.ndarray]) -> np.ndarray:
        """The logarithm of each row's cell given its part, or of a guided column given its code and the guide."""
        if name not in self.guides.of:
            return np.log(self.within[name][of_class, cells[name]])
        guided = self.guided[name]
        at, run = self.guides.runs[guided.guide][cells[guided.guide]], guided.runs[cells[name]]
        return np.log(guided.shares[of_class, at, run]) + np.log(guided.inside[of_class, cells[name]])
