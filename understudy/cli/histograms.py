"""Shares of rows by cell, for the charts of a report."""

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.cells import Cut, cell_labels
from understudy.evaluation.view import Facts, View
from understudy.report import Histogram

BINS = 30
# Beyond these quantiles lie the end cells: a single far value must not squeeze all others into one cell.
ENDS = (0.001, 0.999)


def histograms(synthetic: View, real: View | None) -> tuple[Histogram, ...]:
    """One histogram a column; cells follow the real rows if there are any, otherwise the synthetic ones alone."""
    return tuple(_histogram(facts, synthetic, real) for facts in synthetic.facts.values())


def _histogram(facts: Facts, synthetic: View, real: View | None) -> Histogram:
    ruler = synthetic if real is None else real
    codes = {"synthetic": synthetic.codes[facts.name]}
    if real is not None:
        codes["real"] = real.codes[facts.name]
    if facts.categorical:
        labels, cells, size = cell_labels(facts, None), codes, facts.size + 2
    else:
        cut = _cut(facts, ruler)
        labels, size = cell_labels(facts, cut), cut.size
        cells = {role: cut(found) for role, found in codes.items()}
    shares = {role: np.bincount(found, minlength=size) / len(found) for role, found in cells.items()}
    missing = dict.fromkeys(shares, 0.0)
    if not facts.categorical:
        missing = {role: float(found[-1]) for role, found in shares.items()}
        shares = {role: found[:-1] for role, found in shares.items()}
    filled = _filled(facts, shares)
    told = {role: tuple(float(share) for share in found[filled]) for role, found in shares.items()}
    return Histogram(
        name=facts.name,
        kind=facts.kind,
        ordered=not facts.categorical,
        cells=tuple(label for label, kept in zip(labels, filled, strict=False) if kept),
        synthetic=told["synthetic"],
        real=told.get("real"),
        missing_synthetic=missing["synthetic"],
        missing_real=missing.get("real", 0.0),
    )


def _filled(facts: Facts, shares: dict[str, NDArray]) -> NDArray[np.bool_]:
    """Which cells to show: categories that occur; along an axis, all but empty end cells, so that gaps stay gaps."""
    filled = np.any([found > 0 for found in shares.values()], axis=0)
    if not facts.categorical:
        filled[1:-1] = True
    return filled


def _cut(facts: Facts, ruler: View) -> Cut:
    """Public bins where the schema has them, else about BINS cells of equal width, on the column's own scale."""
    if facts.edges is not None:
        return Cut(np.asarray(facts.edges), facts.missing, left_closed=True)
    codes = ruler.codes[facts.name][~ruler.absent(facts.name)]
    if len(codes) == 0:
        return Cut(np.array([]), facts.missing, left_closed=True)
    low, high = (float(end) for end in np.quantile(codes, ENDS))
    if facts.size is None:
        edges = _float_edges(facts, low, high)
    else:
        edges = _step_edges(facts, int(low), int(np.ceil(high)))
    return Cut(edges, facts.missing, left_closed=True)


def _float_edges(facts: Facts, low: float, high: float) -> NDArray:
    if high <= low:
        return np.array([low, np.nextafter(np.float32(low), np.float32(np.inf))], dtype=np.float64)
    if facts.log:
        return np.expm1(np.linspace(np.log1p(low), np.log1p(high), BINS + 1))
    return np.linspace(low, high, BINS + 1)


def _step_edges(facts: Facts, low: int, high: int) -> NDArray[np.int64]:
    """Whole steps: equal cells hold equally many values, or the chart would show combs that are not in the data."""
    if not facts.log:
        width = -(-(high - low + 1) // BINS)
        return np.arange(low, high + width + 1, width, dtype=np.int64)
    step = (facts.high - facts.low) / max(facts.size - 1, 1)
    first, last = (np.log1p(facts.low + code * step) for code in (low, high + 1))
    values = np.expm1(np.linspace(first, last, BINS + 1))
    return np.unique(np.round((values - facts.low) / step).astype(np.int64))
