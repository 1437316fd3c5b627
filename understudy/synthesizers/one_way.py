"""One-way tables of every column at fine public resolution, released together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy.privacy import Ledger, Streams, gaussian
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Schema
from understudy.synthesizers.decimal_weights import decimal_grain_of
from understudy.synthesizers.denoise import project_to_total
from understudy.synthesizers.ladder import climb, run_variance, share_out, widths_of
from understudy.synthesizers.rounding import RoundCounts, grain_of
from understudy.synthesizers.smooth import FEWEST_CELLS as FEWEST_SMOOTHED
from understudy.synthesizers.smooth import smooth
from understudy.table.cells import MOST_CELLS, Cells, cells_of
from understudy.table.decimals import Decimals
from understudy.table.table import Table

ROWS_PER_BLOCK = 1 << 16
# A table's part of the budget grows with its cells to the power 2/3, which makes the sum of all errors least; counts of
# an ordered column are smoothed, so that beyond some cells more of them need no more.
MOST_SMOOTHED = 16
# Weights are whole numbers, so that weighted counts are too: some eighths are fine enough.
PARTS = 8
MOST_IN_ALL = 300_000  # numeric cells of all columns together, at some 20 microseconds each
FEWEST_CELLS = 128
# Pieces of a column in which it is smoothed, fewer a column where there are very many: 256 take some 40 milliseconds.
MOST_PIECES_IN_ALL = 16_000
FEWEST_PIECES, MOST_PIECES = 64, 256


@dataclass(frozen=True, eq=False)
class OneWay:
    """Released fine tables: counts by column, not negative, each summing to `total`.

    `noise`: by column, the standard deviation of the counts on each rung (one, but for long ordered columns).
    """

    cells: dict[str, Cells]
    counts: dict[str, np.ndarray]
    total: float
    noise: dict[str, tuple[float, ...]]

    def cell_noise(self, name: str) -> float:
        """Standard deviation of the count of a single cell, before anything was done with it."""
        return self.noise[name][0]

    def coarse_variance(self, name: str, groups: np.ndarray) -> np.ndarray:
        """About the variance of each coarse code's count, which adds up its cells'."""
        return run_variance(np.bincount(groups), self.noise[name])


def check_tables(cells: Mapping[str, Cells], counts: Mapping[str, np.ndarray]) -> None:
    """Refuses tables that no release could have made, such as those of a damaged file."""
    for name, c in cells.items():
        table = counts[name]
        if table.shape != (c.count,) or not (np.isfinite(table) & (table >= 0)).all() or not table.sum() > 0:
            raise ValueError(f"column {name!r}: must have {c.count} counts that are not negative")


def fine_cells(schema: Schema) -> dict[str, Cells]:
    """The public cells of every modelled column: fewer a column where there are very many, since noise costs time."""
    most = min(max(MOST_IN_ALL // max(len(schema.modelled), 1), FEWEST_CELLS), MOST_CELLS)
    return {name: cells_of(column, most=most) for name, column in schema.modelled.items()}


def rungs_of(cells: Cells) -> tuple[int, ...]:
    """The widths at which a column is counted: ordered ones on a ladder, others cell by cell."""
    return widths_of(cells.values) if cells.ordered else (1,)


def table_weights(cells: Mapping[str, Cells]) -> dict[str, tuple[int, ...]]:
    """By column and rung, the whole number that counts are multiplied by before they get noise; public."""
    return {name: tuple(_weight(c, width) for width in rungs_of(c)) for name, c in cells.items()}


def _weight(cells: Cells, width: int) -> int:
    runs = min(-(-cells.values // width), MOST_SMOOTHED) if cells.ordered else cells.count
    return max(round(PARTS * runs ** (1 / 3)), 1)


def _sensitivity(weights: Mapping[str, tuple[int, ...]]) -> float:
    """How far one row moves all weighted counts together in L2: by one weight in each table."""
    return math.sqrt(sum(weight**2 for rungs in weights.values() for weight in rungs))


def one_way_noise(cells: Mapping[str, Cells], noise_multiplier: float) -> dict[str, tuple[float, ...]]:
    """Standard deviation of the released counts by column and rung, from public facts alone."""
    weights = table_weights(cells)
    scale = noise_multiplier * _sensitivity(weights)
    return {name: tuple(scale / weight for weight in rungs) for name, rungs in weights.items()}


def check_one_way(schema: Schema, *, noise_multiplier: float) -> None:
    """Refuses noise that `release_one_way` could not draw, before a row is read."""
    cells = fine_cells(schema)
    check_counts(
        l2_sensitivity=_sensitivity(table_weights(cells)),
        noise_multiplier=noise_multiplier,
        purpose=f"one-way tables of {len(cells)} columns",
    )


def release_one_way(
    table: Table,
    cells: dict[str, Cells],
    *,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
    rounded: Mapping[str, RoundCounts] | None = None,
) -> OneWay:
    """Counts every column's cells, long ordered columns on wider rungs too, and releases all tables at once.

    Guarantee: every table is multiplied by a public whole number w. One row adds w to one cell of each table (to none
    on the wider rungs of a column where it is missing), so adding or removing it moves the stacked counts by at most
    sqrt(sum of w^2) in L2; one Gaussian event with `noise_multiplier` is charged. Everything after the noise (dividing
    by w, smoothing, the total, consistency) sees released numbers alone.

    rounded: counts of round numbers that were released before, by column that has them; its values follow them.
    """
    exact = {name: np.zeros(c.count, dtype=np.int64) for name, c in cells.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        for name, c in cells.items():
            exact[name] += np.bincount(c.index(block[name]), minlength=c.count)
    weights = table_weights(cells)
    tables = [
        (name, width, weight)
        for name, c in cells.items()
        for width, weight in zip(rungs_of(c), weights[name], strict=True)
    ]
    counted = [weight * _rung(exact[name], cells[name], width) for name, width, weight in tables]
    stacked = gaussian(
        np.concatenate(counted),
        l2_sensitivity=_sensitivity(weights),
        noise_multiplier=noise_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=f"one-way tables of {len(cells)} columns",
    )
    parts = np.split(stacked, np.cumsum([len(counts) for counts in counted])[:-1])
    noisy: dict[str, list[np.ndarray]] = {name: [] for name in cells}
    for (name, _, weight), part in zip(tables, parts, strict=True):
        noisy[name].append(part / weight)
    noise = one_way_noise(cells, noise_multiplier)
    for name, found in (rounded or {}).items():
        cells = {**cells, name: _grained(cells[name], noisy[name], noise[name], found)}
    return consistent(cells, noisy, noise=noise)


def _rung(counts: np.ndarray, cells: Cells, width: int) -> np.ndarray:
    """Counts of runs of `width` cells; missing, which lies beside the order, is counted with the cells alone."""
    return counts if width == 1 else climb(counts[: cells.values], width)


def consistent(
    cells: dict[str, Cells], noisy: dict[str, list[np.ndarray]], *, noise: dict[str, tuple[float, ...]]
) -> OneWay:
    """Smooths all tables and brings them to the same total, which is estimated from all of them."""
    sums, variances = zip(*(_total(cells[name], noisy[name], noise[name]) for name in cells), strict=True)
    weights = 1 / np.maximum(variances, 1e-9)
    total = max(float(np.dot(weights, sums) / weights.sum()), 1.0)
    most_pieces = min(max(MOST_PIECES_IN_ALL // len(cells), FEWEST_PIECES), MOST_PIECES)
    counts = {name: _smoothed(c, noisy[name], noise[name], total, most_pieces) for name, c in cells.items()}
    return OneWay(cells, counts, total, noise)


def _grained(cells: Cells, rungs: list[np.ndarray], noise: tuple[float, ...], found: RoundCounts) -> Cells:
    weigh = decimal_grain_of if isinstance(found.scale, Decimals) else grain_of
    return replace(cells, grain=weigh(found, cells, [rungs[0][: cells.values], *rungs[1:]], noise))


def _total(cells: Cells, rungs: list[np.ndarray], noise: tuple[float, ...]) -> tuple[float, float]:
    """All rows as the widest rung tells them, and the variance of that."""
    missing = rungs[0][cells.values :] if len(rungs) > 1 else np.zeros(0)
    variance = len(rungs[-1]) * noise[-1] ** 2 + len(missing) * noise[0] ** 2
    return float(rungs[-1].sum() + missing.sum()), variance


def _smoothed(
    cells: Cells, rungs: list[np.ndarray], noise: tuple[float, ...], total: float, most_pieces: int
) -> np.ndarray:
    if not all(noise):
        return project_to_total(rungs[0], total)
    if not cells.ordered or cells.values < FEWEST_SMOOTHED:
        even = np.ones(cells.count)
        return share_out(rungs[0], noise[0] ** 2 * even, even, total)
    values, missing = np.split(rungs[0], [cells.values])
    ladder = [values, *rungs[1:]]
    parts = np.append(ladder[-1].sum(), missing)
    variances = np.append(len(ladder[-1]) * noise[-1] ** 2, np.full(len(missing), noise[0] ** 2))
    parts += (total - parts.sum()) * variances / variances.sum()
    parts = project_to_total(parts, total)
    return np.append(smooth(ladder, noise, parts[0], cells.sizes, most_pieces=most_pieces), parts[1:])
