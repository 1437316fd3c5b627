"""Private rows as a matrix of coarse codes, cut from released one-way tables."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from understudy.privacy import Ledger, Streams
from understudy.schema import Schema
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.neural.plans import MOST_BINS, MOST_CODES
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay, fine_cells, release_one_way
from understudy.table.table import Table
from understudy.training.heads import Blocks


@dataclass(frozen=True, eq=False)
class Layout:
    """Released facts about coarse codes: which fine cells each holds, by column, and the one-way tables behind them."""

    schema: Schema
    one_way: OneWay
    groups: dict[str, np.ndarray]

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks(tuple(int(groups.max()) + 1 for groups in self.groups.values()))

    @cached_property
    def shares(self) -> list[np.ndarray]:
        """The released share of every coarse code, by column."""
        counts = [np.bincount(groups, weights=self.one_way.counts[name]) for name, groups in self.groups.items()]
        return [count / max(count.sum(), 1e-12) for count in counts]

    def place_of(self, name: str) -> int:
        return list(self.groups).index(name)


def release_layout(
    table: Table,
    schema: Schema,
    *,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
    bins: int = MOST_BINS,
) -> Layout:
    """Charges one Gaussian for all one-way tables (`release_one_way`); the cuts are made from what it released."""
    one_way = release_one_way(
        table, fine_cells(schema), noise_multiplier=noise_multiplier, streams=streams, ledger=ledger
    )
    groups = {
        name: coarse_groups(
            cells,
            one_way.counts[name],
            bins=bins,
            most_codes=MOST_CODES,
            rare=0.0 if name == schema.label else 2 * one_way.cell_noise(name),
        )
        for name, cells in one_way.cells.items()
    }
    return Layout(schema, one_way, groups)


def coarse_rows(table: Table, layout: Layout) -> np.ndarray:
    """(rows, columns) of coarse codes: private, for `training.loop` alone. A row's codes depend on that row alone."""
    dtype = np.uint8 if max(layout.blocks.sizes) <= 256 else np.uint16
    rows = np.empty((table.rows, len(layout.groups)), dtype=dtype)
    first = 0
    for block in table.blocks(ROWS_PER_BLOCK):
        for place, (name, groups) in enumerate(layout.groups.items()):
            codes = block[name]
            rows[first : first + len(codes), place] = groups[layout.one_way.cells[name].index(codes)]
        first += len(codes)
    return rows
