"""Rows chosen so that pairs of columns come as often as the model says, with hardly any luck of the draw.

A table of n drawn rows misses its model's two-way tables by the luck of n draws, however good the model is. Here
several such tables are drawn, and n of all their rows are taken: one drawn table whose rows are exchanged for others
until its counts are close to a share of all rows' counts. What is matched: pairs of columns, also within each class of
the label, and every column in fine runs by class. Kernel thinning (Dwivedi and Mackey 2021) has the same aim for
smooth functions.

It sees drawn rows alone: post-processing of a release, at no cost of privacy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Codes = Mapping[str, np.ndarray]

FEWEST_ROWS = 50  # below this there is nothing to balance
MOST_TABLES = 16
POOL_CELLS = 1 << 22  # of all tables drawn: rows times columns
MOST_PAIRS = 400  # of columns; beyond this those with the label, and others by chance
BINS = 16  # of a column in pairs
RUNS = 64  # of a column by itself
MOST_CLASSES = 10  # of the label
EXPECTED = 2.0  # rows in a cell: rarer cells of a table are one cell together, or rare rows would be shunned
LOOK = 256  # rows that a round considers to give away; twice as many to take in
TAKE = 16
ROUNDS = 600
PATIENCE = 25  # rounds without a hundredth of gain


def tables_to_draw(n: int, columns: int, *, drawn: int | None = None) -> int:
    """How many tables of n rows are drawn to choose n rows from; 1 where choosing is not worth its time.

    drawn: rows that were drawn to get one table of n, where not all were kept.

    >>> [tables_to_draw(n, 14) for n in (10, 900, 33_000, 100_000, 1_000_000)]
    [1, 16, 9, 2, 1]
    >>> tables_to_draw(33_000, 14, drawn=99_000)
    3
    """
    if n < FEWEST_ROWS or columns < 2:
        return 1
    return max(1, min(MOST_TABLES, POOL_CELLS // (max(n, drawn or n) * columns)))


def choose_evenly(tables: Sequence[Codes], label: str | None, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """As many rows of several tables as each has, which together are as close to all as exchanging rows brings."""
    pool = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    chosen = choose(pool, len(next(iter(pool.values()))) // len(tables), label, rng)
    return {name: codes[chosen] for name, codes in pool.items()}


def choose(pool: Codes, n: int, label: str | None, rng: np.random.Generator) -> np.ndarray:
    """Places of n rows of the pool whose tables are close to all of its rows' tables; starts from its first n."""
    tables = Tables.of(pool, n, label, rng)
    wanted = tables.totals * (n / len(tables.codes))
    weights = 1 / np.maximum(wanted, EXPECTED)
    inside, outside = np.arange(n), np.arange(n, len(tables.codes))
    excess = np.bincount(tables.cells(inside).ravel(), minlength=len(wanted)) - wanted
    best, since, take = np.inf, 0, TAKE
    for _ in range(ROUNDS):
        force = weights * excess
        error = float(force @ excess)
        if error > best:
            take = max(2, take // 2)  # too many at once pass the aim together
        since = 0 if error < 0.99 * best else since + 1
        best = min(best, error)
        if since > PATIENCE:
            break
        leaving = rng.choice(n, min(LOOK, n), replace=False)
        joining = rng.choice(len(outside), min(2 * LOOK, len(outside)), replace=False)
        leaving_cells, joining_cells = tables.cells(inside[leaving]), tables.cells(outside[joining])
        cost_of_leaving = (weights - 2 * force)[leaving_cells].sum(axis=1)
        cost_of_joining = (weights + 2 * force)[joining_cells].sum(axis=1)
        a, b = np.argsort(cost_of_leaving)[:take], np.argsort(cost_of_joining)[:take]
        a, b = a[: len(b)], b[: len(a)]
        shared = np.where(leaving_cells[a] == joining_cells[b], 2 * weights[leaving_cells[a]], 0.0).sum(axis=1)
        better = cost_of_leaving[a] + cost_of_joining[b] - shared < 0
        a, b = a[better], b[better]
        inside[leaving[a]], outside[joining[b]] = outside[joining[b]], inside[leaving[a]]
        np.add.at(excess, joining_cells[b].ravel(), 1.0)
        np.add.at(excess, leaving_cells[a].ravel(), -1.0)
    return inside


@dataclass(frozen=True, eq=False)
class Tables:
    """Counts of the pool, and which cell of every table a row is in.

    A table has up to three columns of `codes`; a row's place in it is the sum of its codes times `strides`, and
    `cell_of` leads from places to cells, since rare places of a table are one cell.
    """

    codes: np.ndarray  # (rows, columns)
    columns: np.ndarray  # (tables, 3)
    strides: np.ndarray  # (tables, 3)
    starts: np.ndarray  # (tables,)
    cell_of: np.ndarray
    totals: np.ndarray  # rows of the pool in each cell

    @classmethod
    def of(cls, pool: Codes, n: int, label: str | None, rng: np.random.Generator) -> "Tables":
        """All tables of a pool of which n rows are to be taken."""
        bins = int(min(BINS, max(2, math.sqrt(n / EXPECTED))))
        runs = int(min(RUNS, max(bins, n / EXPECTED)))
        coarse, fine = zip(*(runs_of(column, bins, runs) for column in pool.values()), strict=True)
        classes = list(pool).index(label) if label in pool else None
        if classes is not None and coarse[classes].max() >= MOST_CLASSES:
            classes = None
        tables: list[tuple[int, ...]] = []
        for pair in pairs_of(len(pool), classes, rng):
            tables += [pair] if classes is None or classes in pair else [pair, (*pair, classes)]
        finer = [b for a, b in zip(coarse, fine, strict=True) if b.max() > a.max()]
        by_class = () if classes is None else (classes,)
        tables += [(len(coarse) + place, *by_class) for place in range(len(finer))]
        codes = np.stack([*coarse, *finer], axis=1).astype(np.int32)
        return cls._counted(codes, tables, n / len(codes))

    @classmethod
    def _counted(cls, codes: np.ndarray, tables: list[tuple[int, ...]], share: float) -> "Tables":
        sizes = codes.max(axis=0).astype(np.int64) + 1
        columns, strides = np.zeros((2, len(tables), 3), dtype=np.int64)
        starts, cell_of, totals = [], [], []
        places = cells = 0
        by_column = np.ascontiguousarray(codes.T)
        for number, table in enumerate(tables):
            columns[number, : len(table)] = table
            strides[number, : len(table)] = np.cumprod([1, *sizes[list(table[:-1])]])
            counts = np.bincount(sum(by_column[i] * stride for i, stride in zip(table, strides[number], strict=False)))
            common = counts * share >= EXPECTED
            kept = int(common.sum())
            cell_of.append(cells + np.where(common, np.cumsum(common) - 1, kept))
            totals.append([*counts[common], counts[~common].sum()])
            starts.append(places)
            places, cells = places + len(counts), cells + kept + 1
        return cls(
            codes, columns, strides.astype(np.int32), np.array(starts), np.concatenate(cell_of), np.concatenate(totals)
        )

    def cells(self, rows: np.ndarray) -> np.ndarray:
        """The cells of these rows, (rows, tables)."""
        codes = self.codes[rows]
        places = sum(codes[:, self.columns[:, i]] * self.strides[:, i] for i in range(3))
        return self.cell_of[places + self.starts]


def pairs_of(columns: int, label: int | None, rng: np.random.Generator) -> list[tuple[int, int]]:
    """All pairs of columns; of very many, those with the label and as many others by chance as are looked at."""
    pairs = list(combinations(range(columns), 2))
    if len(pairs) <= MOST_PAIRS:
        return pairs
    with_label = [pair for pair in pairs if label in pair]
    others = [pair for pair in pairs if label not in pair]
    drawn = rng.choice(len(others), MOST_PAIRS, replace=False)
    return with_label + [others[place] for place in drawn]


def runs_of(values: np.ndarray, *numbers: int) -> list[np.ndarray]:
    """For each number, codes of up to so many runs of values, of about as many rows each; missing is a value.

    >>> [codes.tolist() for codes in runs_of(np.array([5.0, 1.0, 2.0, 2.0]), 8, 2)]
    [[2, 0, 1, 1], [1, 0, 1, 1]]
    """
    found, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    return [
        index if len(found) <= number else np.unique(np.floor(middles * number), return_inverse=True)[1][index]
        for number in numbers
    ]
