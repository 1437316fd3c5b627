"""Associations between pairs of columns: do the columns of the stand-in hang together as the real ones do?"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.choices import column_sets
from understudy.evaluation.compare import Part, Scale, against_holdout
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "distributions"

# Rank correlations of more rows than this move in the third digit at most.
MOST_ROWS = 200_000
MOST_PAIRS = 5000


def spearman(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, seed: int = 0
) -> MetricResult:
    """Mean absolute difference of the rank correlations of all pairs of numeric columns; 0 is best, 2 worst.

    Ranks are those within the column, pairs with a missing cell do not count.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="spearman", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 2.0))
    mine = _rank_correlations(r, seed)
    return against_holdout(
        scale, lambda other: _differences(mine, _rank_correlations(other, seed), "two numeric columns"), s, t
    )


def cramers_v(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, seed: int = 0
) -> MetricResult:
    """Mean absolute difference of Cramer's V over all pairs of categorical columns; 0 is best, 1 worst.

    V is corrected for its bias (Bergsma 2013): otherwise two samples of one population, one longer,
    would differ.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="cramers_v", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    pairs, note = column_sets(r.categorical, 2, MOST_PAIRS, seed)
    mine = _categorical_pairs(r, pairs, seed)
    need = "two categorical columns"
    return against_holdout(
        scale, lambda other: _differences(mine, _categorical_pairs(other, pairs, seed), need, note), s, t
    )


def correlation_ratio(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, seed: int = 0
) -> MetricResult:
    """Mean absolute difference of the correlation ratios of numeric columns given categorical ones; 0 is best, 1 worst.

    The ratio is corrected for the number of categories (Kelley's epsilon), as Cramer's V is.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="correlation_ratio", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    mine = _mixed_pairs(r, seed)
    need = "a numeric and a categorical column"
    return against_holdout(scale, lambda other: _differences(mine, _mixed_pairs(other, seed), need), s, t)


Pairs = dict[tuple[str, str], float | None]


def _differences(mine: Pairs, theirs: Pairs, need: str, note: tuple[str, ...] = ()) -> Part:
    if not mine:
        return Part(undefined=f"{need} are needed, the schema has fewer")
    gaps, by_column = {}, {}
    undefined: dict[str, str] = {}
    for pair, number in mine.items():
        other = theirs[pair]
        if number is None or other is None:
            for name in pair:
                undefined[name] = "no association is defined: a column of the pair does not vary in one of the tables"
            continue
        gaps[pair] = abs(number - other)
        for name in pair:
            by_column.setdefault(name, []).append(gaps[pair])
    undefined = {name: reason for name, reason in undefined.items() if name not in by_column}
    if not gaps:
        return Part(undefined="no pair of columns varies in both tables", undefined_columns=undefined)
    worst = sorted(gaps, key=lambda pair: (-gaps[pair], pair))[:20]
    left_out = len(mine) - len(gaps)
    return Part(
        value=float(np.mean(list(gaps.values()))),
        per_column={name: float(np.mean(parts)) for name, parts in by_column.items()},
        undefined_columns=undefined,
        notes=note + ((f"{left_out} of {len(mine)} pairs left out: a column does not vary",) if left_out else ()),
        details={
            "largest": gaps[worst[0]],
            "worst": [
                {"columns": list(pair), "real": mine[pair], "other": theirs[pair], "difference": gaps[pair]}
                for pair in worst
            ],
        },
    )


def _rank_correlations(view: View, seed: int) -> Pairs:
    names = view.numeric
    if len(names) < 2:
        return {}
    view = view.take(view.sample(MOST_ROWS, seed)) if view.rows > MOST_ROWS else view
    ranks = np.column_stack([_ranks(view.position(name)) for name in names])
    matrix = pairwise_correlations(ranks)
    return {
        (names[i], names[j]): None if np.isnan(matrix[i, j]) else float(matrix[i, j])
        for i, j in combinations(range(len(names)), 2)
    }


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean ranks, as shares of the rows; NaN stays NaN."""
    present = ~np.isnan(values)
    out = np.full(len(values), np.nan)
    _, inverse, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    out[present] = (np.cumsum(counts) - (counts - 1) / 2)[inverse] / max(present.sum(), 1)
    return out


def pairwise_correlations(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson correlations of columns with NaN, each over the rows where both are present; NaN where one does not vary.

    All sums over pairs are matrix products of the columns and their masks: no loop over pairs, no copy a pair.

    >>> x = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, np.nan], [4.0, 8.0]])
    >>> round(float(pairwise_correlations(x)[0, 1]), 6)
    1.0
    """
    mask = (~np.isnan(columns)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.where(mask.sum(axis=0) > 0, np.nansum(columns, axis=0) / mask.sum(axis=0), 0.0)
        filled = np.where(mask > 0, columns - centre, 0.0)
        count = mask.T @ mask
        first = filled.T @ mask / count
        second = (filled**2).T @ mask / count
        product = filled.T @ filled / count
        variance = second - first**2
        covariance = product - first * first.T
        found = covariance / np.sqrt(variance * variance.T)
    # A variance below what rounding leaves of a constant is no variance.
    found[(variance < 1e-12) | (variance.T < 1e-12) | (count < 2)] = np.nan
    return np.clip(found, -1.0, 1.0)


def _categorical_pairs(view: View, pairs: list[tuple[str, str]], seed: int) -> Pairs:
    view = view.take(view.sample(MOST_ROWS, seed)) if view.rows > MOST_ROWS else view
    dense = {name: _dense(view.codes[name]) for name in view.categorical}
    return {(left, right): corrected_v(dense[left], dense[right]) for left, right in pairs}


@dataclass(frozen=True)
class _Dense:
    codes: NDArray[np.int64]
    counts: NDArray[np.int64]


def _dense(codes: NDArray) -> _Dense:
    """Codes renumbered to those that occur."""
    counts = np.bincount(codes)
    seen = counts > 0
    number = np.cumsum(seen) - 1
    return _Dense(number[codes], counts[seen])


def corrected_v(left: _Dense, right: _Dense) -> float | None:
    """Bergsma's bias-corrected Cramer's V; None where one of the columns has one value only.

    >>> same = _dense(np.array([0, 0, 1, 1] * 50))
    >>> round(corrected_v(same, same), 6)
    1.0
    """
    rows, columns, n = len(left.counts), len(right.counts), len(left.codes)
    if rows < 2 or columns < 2:
        return None
    joint = np.bincount(left.codes * columns + right.codes, minlength=rows * columns)
    cells = np.flatnonzero(joint)
    joint = joint[cells]
    expected = left.counts[cells // columns] * right.counts[cells % columns] / n
    # sum (o - e)^2 / e = sum o^2 / e - n, and cells that never occur add nothing to the sum.
    phi2 = float((joint**2 / expected).sum() - n) / n
    corrected = max(0.0, phi2 - (rows - 1) * (columns - 1) / (n - 1))
    side = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return min((corrected / side) ** 0.5, 1.0) if side > 0 else None


def _mixed_pairs(view: View, seed: int) -> Pairs:
    if not view.numeric or not view.categorical:
        return {}
    view = view.take(view.sample(MOST_ROWS, seed)) if view.rows > MOST_ROWS else view
    values = np.column_stack([view.position(name) for name in view.numeric])
    found: Pairs = {}
    for category in view.categorical:
        ratios = corrected_ratios(values, view.codes[category])
        for number, ratio in zip(view.numeric, ratios, strict=True):
            found[number, category] = None if np.isnan(ratio) else float(ratio)
    return found


def corrected_ratios(values: NDArray[np.float64], codes: NDArray) -> NDArray[np.float64]:
    """Of every column of values given the codes, the square root of Kelley's epsilon squared,
    1 - (SSW/(n-k)) / (SST/(n-1)), over the rows where the value is present; NaN where nothing varies.

    >>> corrected_ratios(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1])).tolist()
    [1.0]
    """
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        filled = np.where(present, values - np.nansum(values, axis=0) / count, 0.0)
        total = (filled**2).sum(axis=0)
        # Rows in the order of their codes: sums of a category are sums over a stretch.
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(codes[order].astype(np.int64)) > 0])
        sums = np.add.reduceat(filled[order], starts, axis=0)
        sizes = np.add.reduceat(present[order].astype(np.int64), starts, axis=0)
        groups = (sizes > 0).sum(axis=0)
        between = np.where(sizes > 0, sums**2 / sizes, 0.0).sum(axis=0)
        within = np.maximum(total - between, 0.0) / (count - groups)
        ratios = np.sqrt(np.clip(1.0 - within / (total / (count - 1)), 0.0, 1.0))
    # Rounding leaves a constant column a variance far below that of any column on its public range that varies.
    return np.where((groups < 2) | (count <= groups) | (total < 1e-12 * np.maximum(count, 1)), np.nan, ratios)
