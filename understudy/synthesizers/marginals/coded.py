"""Tables of coarse codes: counted, scored against what a model expects, and released."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Ledger, Streams, gaussian
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Schema
from understudy.synthesizers.marginals.network import Columns
from understudy.synthesizers.marginals.plan import Plan
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay, check_one_way
from understudy.table.table import Table

# Choosing looks at every candidate: above this many (row, candidate) counts, it looks at a random part of the rows.
MOST_LOOKS = 2_000_000_000
CELLS_AT_ONCE = 4_000_000  # of tables that are counted in one pass over the rows
# Scores are summed on this grid, where floats add without rounding: one row moves them by the bound and not a bit more.
STEPS_PER_COUNT = 2.0**10


@dataclass(frozen=True, eq=False)
class Coded:
    """How the fine cells of every column map to coarse codes; columns go by their number from here on."""

    one_way: OneWay
    groups: dict[str, np.ndarray]

    @property
    def sizes(self) -> Columns:
        return tuple(int(groups.max()) + 1 for groups in self.groups.values())

    def shape(self, members: Columns) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in members)

    def counts(self) -> list[np.ndarray]:
        """The released one-way tables of coarse codes."""
        return [np.bincount(groups, weights=self.one_way.counts[name]) for name, groups in self.groups.items()]

    def noise(self) -> list[float]:
        """Standard deviation of these counts, about: a code is the sum of some fine cells."""
        variances = [self.one_way.coarse_variance(name, groups) for name, groups in self.groups.items()]
        return [math.sqrt(variance.mean()) for variance in variances]

    def rows(self, table: Table) -> Iterator[list[np.ndarray]]:
        """Blocks of the private table's codes, an array a column."""
        cells = self.one_way.cells
        for block in table.blocks(ROWS_PER_BLOCK):
            yield [groups[cells[name].index(block[name])] for name, groups in self.groups.items()]


def cut(schema: Schema, one_way: OneWay, *, bins: int, most_codes: int, rare: float) -> Coded:
    """Coarse codes from the released one-way tables. Classes of the label are never pooled as rare."""
    groups = {
        name: coarse_groups(
            one_way.cells[name],
            one_way.counts[name],
            bins=bins,
            most_codes=most_codes,
            rare=0.0 if name == schema.label else rare,
        )
        for name in schema.modelled
    }
    return Coded(one_way, groups)


def count_tables(
    blocks: Callable[[], Iterator[Sequence[np.ndarray]]], sizes: Sequence[int], sets: Sequence[Columns]
) -> Iterator[np.ndarray]:
    """Exact counts of each set's table: a row falls into one cell of each.

    `blocks` starts a pass over the rows; as many tables are counted in a pass as memory allows.
    """
    first = 0
    while first < len(sets):
        last, cells = first, 0
        while last < len(sets) and (last == first or cells <= CELLS_AT_ONCE):
            cells += math.prod(sizes[column] for column in sets[last])
            last += 1
        shapes = [tuple(sizes[column] for column in members) for members in sets[first:last]]
        counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        for codes in blocks():
            for members, shape, count in zip(sets[first:last], shapes, counts, strict=True):
                cell = np.ravel_multi_index([codes[column] for column in members], shape)
                count += np.bincount(cell, minlength=len(count))
        yield from (count.reshape(shape) for count, shape in zip(counts, shapes, strict=True))
        first = last


def scores(
    table: Table,
    coded: Coded,
    sets: Sequence[Columns],
    expected: Iterator[np.ndarray],
    *,
    declared_rows: int,
    noise: float,
    streams: Streams,
) -> np.ndarray:
    """How much measuring each set's table would bring: its L1 distance from what is expected of it, less the error that
    noise of standard deviation `noise` would bring to a table of its size.

    Sensitivity: adding or removing a row moves one cell of a set's exact table by 1, and neither the expected table,
    which comes from released numbers alone, nor the error of noise. By the triangle inequality the L1 distance, and so
    the score, moves by at most 1; up or down, so that scores of different sets may move against each other. Both
    tables lie on a grid on which sums are exact, so that rounding adds nothing. Where there are very many rows, only a
    part is looked at, each row by a coin of its own: given the coins, a row moves a score by at most 1 or not at all.
    """
    rate = min(1.0, MOST_LOOKS / (declared_rows * len(sets)))

    def rows() -> Iterator[Sequence[np.ndarray]]:
        for codes in coded.rows(table):
            if rate < 1:
                kept = streams.sampling.random(len(codes[0])) < rate
                yield [column[kept] for column in codes]
            else:
                yield codes

    found = np.empty(len(sets))
    pairs = zip(count_tables(rows, coded.sizes, sets), expected, strict=True)
    for number, (exact, model) in enumerate(pairs):
        noise_error = on_grid(math.sqrt(2 / math.pi) * noise * rate * exact.size)
        found[number] = np.abs(exact - on_grid(model * rate)).sum() - noise_error
    return found


def on_grid(numbers: np.ndarray | float) -> np.ndarray:
    return np.rint(np.multiply(numbers, STEPS_PER_COUNT)) / STEPS_PER_COUNT


def check_noise(schema: Schema, plan: Plan) -> None:
    """Refuses noise that `release_one_way` or `release_tables` could not draw, before a row is read."""
    check_one_way(schema, noise_multiplier=plan.one_way_multiplier)
    for one in plan.rounds:
        if one.picks:
            purpose = f"tables of {one.picks} sets"
            check_counts(l2_sensitivity=math.sqrt(one.picks), noise_multiplier=one.multiplier, purpose=purpose)


def release_tables(
    table: Table,
    coded: Coded,
    sets: Sequence[Columns],
    *,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
) -> list[np.ndarray]:
    """The tables of all sets in one Gaussian release.

    Guarantee: one row adds 1 to one cell of each of the m tables, so adding or removing it moves the stacked counts by
    exactly sqrt(m) in L2. Which tables and which cells there are is public or was released before.
    """
    exact = list(count_tables(lambda: coded.rows(table), coded.sizes, sets))
    stacked = gaussian(
        np.concatenate([count.ravel() for count in exact]),
        l2_sensitivity=math.sqrt(len(sets)),
        noise_multiplier=noise_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=f"tables of {len(sets)} sets of columns",
    )
    ends = np.cumsum([count.size for count in exact])
    return [part.reshape(count.shape) for part, count in zip(np.split(stacked, ends[:-1]), exact, strict=True)]
