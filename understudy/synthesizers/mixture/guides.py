"""Columns that follow from others inside their bins: which do, and how finely that is counted.

Two-way tables of coarse codes tell how columns go together from bin to bin. Some columns go together to the digit: the
distance of a flight follows from where it goes, a rate of interest from a grade, a length from a width. Such columns
are found in the released tables, and counted once more, in runs that are finer than bins.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Ledger, Streams, gaussian
from understudy.synthesizers.mixture.coarse import cut_at_quantiles
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, Pair
from understudy.synthesizers.mixture.plan import Plan
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay
from understudy.table.cells import Cells
from understudy.table.table import Table

# What a guide must tell of a column: of what is open inside its bins, and of all rows, beyond what noise may feign.
LEAST_TOLD = 0.2
LEAST_ROWS = 0.05
DOUBT = 2.0  # standard deviations
CLEAR_ROWS = 3.0  # times the noise: codes with fewer rows tell nothing


@dataclass(frozen=True, eq=False)
class FineTables:
    """Released: by guided column, the counts of its guide's runs by its own, with noise of standard deviation `noise`.

    `of`: by guided column, its guide; guides come before what they guide. `runs`: by column of either kind, the run
    that every fine cell lies in.
    """

    of: dict[str, str]
    runs: dict[str, np.ndarray]
    counts: dict[str, np.ndarray]
    noise: float


def choose_guides(
    one_way: OneWay, coarse: Coarse, pairs: list[Pair], found: Interactions, *, most: int
) -> dict[str, str]:
    """By column, the column that tells most of where its values lie; guides come before what they guide.

    At most `most` columns have one. A column that guides others may have a guide itself, but none in a circle. Sees
    released numbers alone.
    """
    told = {}
    for pair, table, noise in zip(pairs, found.pairs, found.pair_noise, strict=True):
        counts = _counts(one_way, coarse, pair, table)
        free = [1 - 1 / coarse.size(name) for name in pair]
        variance = noise**2 * coarse.label_classes * math.prod(free)
        for guide, name, of_guide in ((*pair, counts), (*pair[::-1], counts.T)):
            told[guide, name] = _told(of_guide, one_way, coarse, guide, name, variance)
    of: dict[str, str] = {}
    for guide, name in sorted(told, key=lambda pair: -told[pair]):
        if told[guide, name] <= 0 or len(of) == most:
            break
        if name not in of and name not in _above(guide, of):
            of[name] = guide
    return dict(sorted(of.items(), key=lambda item: len(_above(item[0], of))))


def _above(name: str, of: dict[str, str]) -> list[str]:
    """The column itself, its guide, and on to the one that has none."""
    found = [name]
    while found[-1] in of:
        found.append(of[found[-1]])
    return found


def _counts(one_way: OneWay, coarse: Coarse, pair: Pair, table: np.ndarray) -> np.ndarray:
    """The two-way table of a pair, all classes together, from its interactions and its columns."""
    table = table.sum(axis=0)
    table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    first, second = (np.bincount(coarse.groups[name], weights=one_way.counts[name]) for name in pair)
    return (
        table
        + (first[:, None] - first.mean()) / len(second)
        + (second - second.mean()) / len(first)
        + one_way.total / (len(first) * len(second))
    )


def _told(counts: np.ndarray, one_way: OneWay, coarse: Coarse, guide: str, name: str, variance: float) -> float:
    """How many rows' codes a guide tells of a column beyond chance (the numerator of Goodman and Kruskal's tau).

    A code counts by how much is open inside it: not at all if it is a single value. 0 where it is too little.
    """
    groups, cells = coarse.groups[name], one_way.counts[name]
    held = np.bincount(groups, weights=cells)
    alone = np.bincount(groups, weights=cells**2) / np.maximum(held, 1e-9) ** 2
    inside = np.where(held > 0, 1 - np.minimum(alone, 1), 0.0)
    by_guide = np.bincount(coarse.groups[guide], weights=one_way.counts[guide])
    clear = by_guide > max(CLEAR_ROWS * math.sqrt(variance), 1.0)
    counts, by_guide = counts[clear], by_guide[clear][:, None]
    by_chance = by_guide.sum() / one_way.total * held**2 / one_way.total
    explained = ((counts**2 - variance) / by_guide).sum(axis=0) - by_chance
    spread = (2 * variance**2 + 4 * variance * np.maximum(counts, 0) ** 2) / by_guide**2
    rows = float(explained @ inside) - DOUBT * math.sqrt(float((spread @ inside**2).sum()))
    open_rows = float((held - held**2 / one_way.total) @ inside)
    return rows if rows > max(LEAST_TOLD * open_rows, LEAST_ROWS * one_way.total) else 0.0


def cut_runs(cells: Cells, groups: np.ndarray, counts: np.ndarray, runs: int) -> np.ndarray:
    """The run of every cell, in the order of the codes: codes cut into parts of at most 1/`runs` of all rows.

    Ordered columns are cut at quantiles; of others, frequent values are runs of their own.
    """
    found, first = np.empty_like(groups), 0
    target = counts.sum() / runs
    for code in range(groups.max() + 1):
        inside = np.flatnonzero(groups == code)
        if cells.ordered:
            most = math.ceil(counts[inside].sum() / target) if target > 0 else 1
            found[inside] = first + cut_at_quantiles(counts[inside], max(most, 1))
        else:
            frequent = counts[inside] >= target
            found[inside] = first + np.where(frequent, np.cumsum(frequent) - 1, np.count_nonzero(frequent))
        first = int(found[inside].max()) + 1
    return found


def release_fine(
    table: Table,
    one_way: OneWay,
    coarse: Coarse,
    of: dict[str, str],
    plan: Plan,
    *,
    streams: Streams,
    ledger: Ledger,
) -> FineTables:
    """The counts of every guided column by the runs of its guide, all in one Gaussian release.

    Guarantee: which columns are counted, and how their cells make up runs, follows from numbers released before. A row
    falls into one run of each column, missing ones included, and so adds 1 to one cell of each guided column's table:
    adding or removing it moves all of them together by exactly the root of their number in L2.
    """
    names = list(dict.fromkeys([*of.values(), *of]))
    wanted = plan.runs(len(of))
    runs = {name: cut_runs(one_way.cells[name], coarse.groups[name], one_way.counts[name], wanted) for name in names}
    sizes = {name: int(found.max()) + 1 for name, found in runs.items()}
    exact = {name: np.zeros(sizes[guide] * sizes[name], dtype=np.int64) for name, guide in of.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        place = {name: runs[name][one_way.cells[name].index(block[name])] for name in names}
        for name, guide in of.items():
            exact[name] += np.bincount(place[guide] * sizes[name] + place[name], minlength=len(exact[name]))
    sensitivity = math.sqrt(len(of))
    stacked = gaussian(
        np.concatenate(list(exact.values())),
        l2_sensitivity=sensitivity,
        noise_multiplier=plan.fine_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=f"finer two-way tables of {len(of)} pair" + "s" * (len(of) > 1),
    )
    parts = np.split(stacked, np.cumsum([len(counts) for counts in exact.values()])[:-1])
    counts = {name: part.reshape(-1, sizes[name]) for name, part in zip(exact, parts, strict=True)}
    return FineTables(of, runs, counts, plan.fine_multiplier * sensitivity)
