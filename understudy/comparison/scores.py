"""How well a candidate fits the table, as a score that one row moves by a proven bound."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.evaluation.choices import column_sets
from understudy.privacy import Streams
from understudy.schema import Schema
from understudy.synthesizers.rules_held import draw_rows
from understudy.table.cells import cells_of
from understudy.table.table import Table

SCORE_ROWS = 20_000
SCORE_CELLS = 16
MOST_PAIRS = 300
ROWS_PER_BLOCK = 1 << 16
# Scores are summed on this grid, where floats add without rounding: a row moves them by the bound and not a bit more.
STEPS_PER_COUNT = 2.0**10
# More rows than this no table has; a candidate's released number can be any under much noise.
MOST_ROWS = 2.0**33


def score_tables(
    table: Table, schema: Schema, candidates: Mapping[str, Any], streams: Streams
) -> tuple[np.ndarray, float]:
    """Minus the sum over P pairs of columns of the L1 distance between the table's counts and a candidate's, and P.

    A pair's table has coarse public cells (`coarse_cells`); a candidate's counts are its shares among a fixed number of
    rows drawn from it, times the median of the candidates' released numbers of rows (the declared number may be far
    off, and would then drown all differences). More than 300 pairs are thinned out by a public draw.

    Sensitivity: the candidates' counts, the cells and the pairs are fixed by what was released before, or public. A row
    that is added or removed moves one count of each pair's table by 1, so by the triangle inequality each distance by
    at most 1 and their sum by at most P. It may move it up for one candidate and down for another: not monotone.
    Counts are whole and candidates' counts, of at most 2^33 rows, lie on a grid of 2^-10: sums over 300 pairs stay
    below 2^43, where they are exact, so rounding adds nothing.
    """
    groups = {name: coarse_cells(column) for name, column in schema.modelled.items()}
    pairs = scored_pairs(schema)
    released_rows = float(np.median([released.rows for released in candidates.values()]))
    total = min(max(1.0, released_rows), MOST_ROWS)
    real = count_pairs({name: table.codes(name) for name in schema.modelled}, groups, pairs)
    scores = np.empty(len(candidates))
    for at, released in enumerate(candidates.values()):
        drawn = draw_rows(schema, released.sample, SCORE_ROWS, streams.sampling)
        made = count_pairs(drawn, groups, pairs)
        scores[at] = -sum(
            float(np.abs(counts - _on_grid(total * (others / SCORE_ROWS))).sum())
            for counts, others in zip(real, made, strict=True)
        )
    return scores, float(len(pairs))


def scored_pairs(schema: Schema) -> list[tuple[str, ...]]:
    """All pairs of columns, or 300 by a public draw; the single column of a table that has no other."""
    names = list(schema.modelled)
    return column_sets(names, min(2, len(names)), MOST_PAIRS, seed=0)[0]


def coarse_cells(column: Any) -> tuple[Any, np.ndarray, int]:
    """A column's public cells and the coarse group of each, neighbours together; missing is a group of its own."""
    cells = cells_of(column)
    groups = np.arange(cells.values) * min(SCORE_CELLS, cells.values) // cells.values
    if cells.missing:
        groups = np.append(groups, groups.max() + 1)
    return cells, groups, int(groups.max()) + 1


def count_pairs(
    codes: Mapping[str, np.ndarray], groups: Mapping[str, tuple[Any, np.ndarray, int]], pairs: Sequence[tuple[str, ...]]
) -> list[np.ndarray]:
    """Exact counts of every pair's coarse cells, block by block."""
    sizes = [math.prod(groups[name][2] for name in pair) for pair in pairs]
    counts = [np.zeros(size, dtype=np.int64) for size in sizes]
    rows = len(next(iter(codes.values())))
    for first in range(0, rows, ROWS_PER_BLOCK):
        coarse = {
            name: which[cells.index(codes[name][first : first + ROWS_PER_BLOCK])]
            for name, (cells, which, _) in groups.items()
        }
        for pair, count in zip(pairs, counts, strict=True):
            place = coarse[pair[0]]
            for name in pair[1:]:
                place = place * groups[name][2] + coarse[name]
            count += np.bincount(place, minlength=len(count))
    return counts


def _on_grid(numbers: np.ndarray) -> np.ndarray:
    return np.rint(numbers * STEPS_PER_COUNT) / STEPS_PER_COUNT
