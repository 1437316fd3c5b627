"""Independent noisy columns: right histograms, no dependence between columns. A floor for other methods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.privacy import Budget, Ledger, Streams, noise_multiplier
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.columns import check_columns, found_cuts, found_grains, release_columns, released_cells
from understudy.synthesizers.draw import systematic
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.one_way import check_tables
from understudy.table.cells import Cells
from understudy.table.table import Table

NAME = "independent"
SUMMARY = "every column by itself from its noisy histogram; keeps no dependence"


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses a budget for which no exact noise can be drawn."""
    check_columns(schema, noise_multiplier=noise_multiplier(budget))


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple["Released", Ledger]:
    """Charges Gaussians that make up the whole budget for one-way tables (`release_columns` says why it is enough)."""
    ledger = Ledger(budget)
    progress("counting columns", 0.0)
    one_way = release_columns(table, schema, noise_multiplier=noise_multiplier(budget), streams=streams, ledger=ledger)
    progress("counting columns", 1.0)
    cuts, grains = found_cuts(schema, one_way), found_grains(one_way)
    return Released(schema, one_way.counts, round(one_way.total), cuts, grains), ledger


@dataclass(frozen=True, eq=False)
class Released:
    """The consistent fine tables, the rows that they sum to, where common values cut their public cells, and how often
    round numbers come.
    """

    schema: Schema
    fine: dict[str, np.ndarray]
    rows: int
    cuts: dict[str, np.ndarray] = field(default_factory=dict)
    grains: dict[str, np.ndarray] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"fine.{number}": counts for number, counts in enumerate(self.fine.values())}
        for number, name in enumerate(self.fine):
            if name in self.cuts:
                arrays[f"cuts.{number}"] = self.cuts[name]
            if name in self.grains:
                arrays[f"grain.{number}"] = self.grains[name]
        return arrays

    def facts(self) -> dict[str, Any]:
        return {"rows": self.rows}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        fine = {name: arrays[f"fine.{number}"] for number, name in enumerate(schema.modelled)}
        cuts = {n: arrays[f"cuts.{i}"] for i, n in enumerate(schema.modelled) if f"cuts.{i}" in arrays}
        grains = {n: arrays[f"grain.{i}"] for i, n in enumerate(schema.modelled) if f"grain.{i}" in arrays}
        released = cls(schema, fine, int(facts["rows"]), cuts, grains)
        check_tables(released.cells, fine)
        return released

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return released_cells(self.schema, self.cuts, self.grains)

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        given = conditions(self.schema, self.cells, where)
        return {name: self._draw(name, n, given.get(name), rng) for name in self.schema.modelled}

    def _draw(self, name: str, n: int, pieces: Pieces | None, rng: np.random.Generator) -> np.ndarray:
        weights = self.fine[name] if pieces is None else self.fine[name][pieces.cell] * pieces.share
        if not weights.sum() > 0:
            raise OptionError(f"where: no synthetic row has {name!r} like this; loosen it")
        drawn = rng.permutation(systematic(weights, n, rng))
        return self.cells[name].place(drawn, rng) if pieces is None else pieces.place(drawn, self.cells[name], rng)

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Natural logarithm of each row's probability (density, for reals without a resolution)."""
        with np.errstate(divide="ignore"):
            return sum(
                np.log(counts / counts.sum())[cell] + self.cells[name].log_shares(codes[name], cell)
                for name, counts in self.fine.items()
                for cell in [self.cells[name].index(codes[name])]
            )
