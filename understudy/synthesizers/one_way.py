"""One-way tables of every column at fine public resolution, released together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Ledger, Streams, gaussian
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Schema
from understudy.synthesizers.denoise import project_to_total, smooth_ordered
from understudy.table.cells import Cells, cells_of
from understudy.table.table import Table

ROWS_PER_BLOCK = 1 << 16
FEWEST_TO_SMOOTH = 8


@dataclass(frozen=True, eq=False)
class OneWay:
    """Released fine tables: counts by column, not negative, each summing to `total`."""

    cells: dict[str, Cells]
    counts: dict[str, np.ndarray]
    total: float
    noise: float


def check_tables(cells: Mapping[str, Cells], counts: Mapping[str, np.ndarray]) -> None:
    """Refuses tables that no release could have made, such as those of a damaged file."""
    for name, c in cells.items():
        table = counts[name]
        if table.shape != (c.count,) or not (np.isfinite(table) & (table >= 0)).all() or not table.sum() > 0:
            raise ValueError(f"column {name!r}: must have {c.count} counts that are not negative")


def fine_cells(schema: Schema) -> dict[str, Cells]:
    """The public cells of every modelled column."""
    return {name: cells_of(column) for name, column in schema.modelled.items()}


def check_one_way(schema: Schema, *, noise_multiplier: float) -> None:
    """Refuses noise that `release_one_way` could not draw, before a row is read."""
    columns = len(schema.modelled)
    check_counts(
        l2_sensitivity=math.sqrt(columns),
        noise_multiplier=noise_multiplier,
        purpose=f"one-way tables of {columns} columns",
    )


def release_one_way(
    table: Table, cells: dict[str, Cells], *, noise_multiplier: float, streams: Streams, ledger: Ledger
) -> OneWay:
    """Counts every column's cells and releases all tables at once.

    Guarantee: one row adds 1 to one cell in each of the k tables, so adding or removing it moves the stacked counts by
    exactly sqrt(k) in L2; one Gaussian event with `noise_multiplier` is charged. Everything after the noise (smoothing,
    the total, consistency) sees released numbers alone.
    """
    exact = {name: np.zeros(c.count, dtype=np.int64) for name, c in cells.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        for name, c in cells.items():
            exact[name] += np.bincount(c.index(block[name]), minlength=c.count)
    sensitivity = math.sqrt(len(cells))
    stacked = gaussian(
        np.concatenate(list(exact.values())),
        l2_sensitivity=sensitivity,
        noise_multiplier=noise_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=f"one-way tables of {len(cells)} columns",
    )
    ends = np.cumsum([c.count for c in cells.values()])
    noisy = dict(zip(cells, np.split(stacked, ends[:-1]), strict=True))
    return consistent(cells, noisy, noise=noise_multiplier * sensitivity)


def consistent(cells: dict[str, Cells], noisy: dict[str, np.ndarray], *, noise: float) -> OneWay:
    """Smooths ordered columns and brings every table to the same total, which is estimated from all of them."""
    # A table of m cells tells the total with variance m * noise^2: weigh each by the inverse.
    weights = np.array([1 / len(counts) for counts in noisy.values()])
    totals = np.array([counts.sum() for counts in noisy.values()])
    total = max(float(np.dot(weights, totals) / weights.sum()), 1.0)
    counts = {}
    for name, c in cells.items():
        values = noisy[name].copy()
        if c.ordered and c.values > FEWEST_TO_SMOOTH:
            values[: c.values] = smooth_ordered(values[: c.values], noise)
        counts[name] = project_to_total(values, total)
    return OneWay(cells, counts, total, noise)
