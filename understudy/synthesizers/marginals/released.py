"""What the methods of this folder release: conditional tables of coarse codes, and the fine tables inside them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.marginals.network import Family, Network, draw_by_row
from understudy.synthesizers.one_way import check_tables, fine_cells
from understudy.table.cells import Cells

ROWS_PER_DRAW = 1 << 17


@dataclass(frozen=True, eq=False)
class Released:
    """Released values alone: `groups` maps each column's fine cells to its coarse codes, whose joint distribution is
    the network's; `fine` holds the cells' counts."""

    schema: Schema
    network: Network
    groups: dict[str, np.ndarray]
    fine: dict[str, np.ndarray]
    rows: int

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"table.{number}": table for number, table in enumerate(self.network.tables)}
        for number, name in enumerate(self.fine):
            arrays[f"fine.{number}"] = self.fine[name]
            arrays[f"groups.{number}"] = self.groups[name].astype(np.int32)
        return arrays

    def facts(self) -> dict[str, Any]:
        families = [{"column": family.column, "parents": list(family.parents)} for family in self.network.families]
        return {"rows": self.rows, "families": families}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        families = tuple(
            Family(int(family["column"]), tuple(int(parent) for parent in family["parents"]))
            for family in facts["families"]
        )
        tables = tuple(arrays[f"table.{number}"] for number in range(len(families)))
        names = list(schema.modelled)
        released = cls(
            schema=schema,
            network=Network(families, tables),
            groups={name: arrays[f"groups.{number}"].astype(np.int64) for number, name in enumerate(names)},
            fine={name: arrays[f"fine.{number}"] for number, name in enumerate(names)},
            rows=int(facts["rows"]),
        )
        check_tables(released.cells, released.fine)
        released._check()
        return released

    def _check(self) -> None:
        """Refuses parts that do not make a network together, such as those of a damaged file."""
        for name, groups in self.groups.items():
            if groups.shape != (self.cells[name].count,) or set(groups.tolist()) != set(range(groups.max() + 1)):
                raise ValueError(f"column {name!r}: must have a coarse code for every cell, numbered without gaps")
        families = {family.column: family for family in self.network.families}
        if sorted(family.column for family in self.network.families) != list(range(len(self.groups))):
            raise ValueError("families: must have every column once")
        sizes = [int(groups.max()) + 1 for groups in self.groups.values()]
        drawn: set[int] = set()
        for family, table in zip(self.network.families, self.network.tables, strict=True):
            if not set(family.parents) <= drawn or len(set(family.parents)) != len(family.parents):
                raise ValueError("families: a column must come after its parents")
            if family.parents and not set(family.parents) <= set(families[family.parents[-1]].axes):
                raise ValueError("families: the parents of a column must lie in one family")
            if table.shape != tuple(sizes[column] for column in family.axes):
                raise ValueError("tables: must have the shape of their columns' codes")
            if not (table >= 0).all() or not np.allclose(table.sum(axis=-1), 1, atol=1e-3):
                raise ValueError("tables: must not be negative, and must sum to 1")
            drawn.add(family.column)

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return fine_cells(self.schema)

    @cached_property
    def within(self) -> dict[str, np.ndarray]:
        """The probability of every fine cell given its coarse code."""
        shares = {}
        for name, groups in self.groups.items():
            counts = self.fine[name] + 1e-9 * (self.fine[name].sum() + 1)
            shares[name] = counts / np.bincount(groups, weights=counts)[groups]
        return shares

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows as codes. Conditions are exact: they enter the network as evidence on coarse codes."""
        given = conditions(self.schema, self.cells, where)
        numbers = {name: number for number, name in enumerate(self.groups)}
        network = self.network
        if given:
            network = network.given({numbers[name]: self._evidence(name, pieces) for name, pieces in given.items()})
            if network is None:
                raise OptionError(f"where: no synthetic row has {' and '.join(map(repr, given))} like this; loosen it")
        parts = []
        for first in range(0, n, ROWS_PER_DRAW):
            codes = network.draw(min(ROWS_PER_DRAW, n - first), rng)
            parts.append([self._place(name, codes[numbers[name]], given.get(name), rng) for name in self.groups])
        return {name: np.concatenate([part[number] for part in parts]) for name, number in numbers.items()}

    def _evidence(self, name: str, pieces: Pieces) -> np.ndarray:
        """How much of each coarse code a condition leaves."""
        groups = self.groups[name]
        mass = self.within[name][pieces.cell] * pieces.share
        return np.bincount(groups[pieces.cell], weights=mass, minlength=groups.max() + 1)

    def _place(self, name: str, coarse: np.ndarray, pieces: Pieces | None, rng: np.random.Generator) -> np.ndarray:
        """Values inside coarse codes, from the fine table."""
        within, groups = self.within[name], self.groups[name]
        mass, owner = (within, groups) if pieces is None else (within[pieces.cell] * pieces.share, groups[pieces.cell])
        table = np.zeros((groups.max() + 1, len(mass)))
        table[owner, np.arange(len(mass))] = mass
        drawn = draw_by_row(coarse, table, rng)
        return self.cells[name].place(drawn, rng) if pieces is None else pieces.place(drawn, self.cells[name], rng)

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Natural logarithm of each row's probability (density, for reals without a resolution)."""
        cell = {name: self.cells[name].index(codes[name]) for name in self.groups}
        coarse = {number: groups[cell[name]] for number, (name, groups) in enumerate(self.groups.items())}
        inside = sum(
            np.log(self.within[name])[at] + self.cells[name].log_shares(codes[name], at) for name, at in cell.items()
        )
        return self.network.log_prob(coarse) + inside
