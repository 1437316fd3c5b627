"""Columns cut into few cells, along what is public or along the real rows, so that tables can be counted."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.view import Facts, View


@dataclass(frozen=True)
class Cut:
    """Edges of a numeric column: cell i holds edges[i-1] < code <= edges[i]; the last cell is for missing.

    With `left_closed`, as public bins are, a code on an edge belongs to the cell that begins there.
    """

    edges: NDArray
    missing: int
    left_closed: bool = False

    @property
    def size(self) -> int:
        return len(self.edges) + 2

    def __call__(self, codes: NDArray) -> NDArray[np.int32]:
        if codes.dtype.kind == "f":
            absent = np.isnan(codes)
        else:
            absent = codes == self.missing
        cells = np.searchsorted(self.edges, codes, side="right" if self.left_closed else "left").astype(np.int32)
        cells[absent] = len(self.edges) + 1
        return cells


def quantile_cut(codes: NDArray, missing: int, bins: int) -> Cut:
    """Cut at the real quantiles; few distinct values get a cell each.

    Quantiles that fall together are merged, so a spike (the zeros of a zero-inflated column) fills a cell of its own.
    One more edge lies just below the real minimum and one at the maximum: values that no real row reaches share no cell
    with real ones, also where the real column is constant. Reals are cut halfway between values that occur, and just
    beyond the outermost: a value that is off in the last digit of single precision is not another one.

    >>> cut = quantile_cut(np.array([0, 0, 0, 5, 7], dtype=np.uint8), missing=255, bins=20)
    >>> cut(np.array([0, 5, 6, 7, 200, 255], dtype=np.uint8)).tolist()
    [0, 1, 2, 2, 3, 4]
    """
    present = codes[~np.isnan(codes)] if codes.dtype.kind == "f" else codes[codes != missing]
    if len(present) == 0:
        return Cut(np.array([], dtype=codes.dtype), missing)
    distinct, counts = np.unique(present, return_counts=True)
    if len(distinct) <= bins:
        edges = distinct
    else:
        # An edge is a value that occurs, so integer codes stay exact integers however large they are.
        ranks = np.linspace(0, len(present) - 1, bins + 1).astype(np.int64)
        edges = distinct[np.unique(np.searchsorted(np.cumsum(counts), ranks, side="right"))]
    if codes.dtype.kind == "f":
        return Cut(_halfway(edges, distinct), missing)
    if edges[0] > 0:
        edges = np.concatenate([np.array([edges[0] - 1], dtype=codes.dtype), edges])
    return Cut(edges, missing)


def _halfway(edges: NDArray, distinct: NDArray) -> NDArray:
    values = distinct.astype(np.float64)
    slack = 2e-7 * max(values[-1] - values[0], abs(values[0]), abs(values[-1])) or 2e-7
    middles = np.append((values[:-1] + values[1:]) / 2, values[-1] + slack)
    return np.unique([values[0] - slack, *middles[np.searchsorted(distinct, edges)]])


def equal_cut(codes: NDArray, missing: int, bins: int) -> Cut:
    """`bins` equal cells between the real minimum and maximum, and one beyond each end.

    >>> cut = equal_cut(np.array([10, 20], dtype=np.uint8), missing=255, bins=2)
    >>> cut(np.array([9, 10, 15, 16, 20, 21, 255], dtype=np.uint8)).tolist()
    [0, 1, 1, 2, 2, 3, 4]
    """
    present = codes[~np.isnan(codes)] if codes.dtype.kind == "f" else codes[codes != missing]
    if len(present) == 0:
        return Cut(np.array([], dtype=np.float64), missing)
    low, high = float(present.min()), float(present.max())
    below = np.nextafter(low, -np.inf) if codes.dtype.kind == "f" else low - 0.5
    edges = np.unique(np.concatenate([[below], np.linspace(low, high, bins + 1)[1:]]))
    return Cut(edges, missing)


@dataclass(frozen=True)
class CellTables:
    """Two or three tables with every column as cells of one shared partition.

    `cuts` has the edges of the columns that were cut; the cells of the others are their values, missing and outside.
    """

    sizes: dict[str, int]
    cuts: dict[str, Cut]
    real: dict[str, NDArray]
    synthetic: dict[str, NDArray]
    holdout: dict[str, NDArray] | None


def cut_tables(real: View, synthetic: View, holdout: View | None, *, bins: int = 20, equal: bool = False) -> CellTables:
    """Categorical columns keep their values (missing, and values outside the domain, are cells of their own); numeric
    columns are cut at public bin edges where the schema has them, otherwise at `bins` real quantiles.

    With `equal`, every column is cut into `bins` equal parts between the real minimum and maximum (the NIST score).
    """
    sizes: dict[str, int] = {}
    cuts: dict[str, Cut] = {}
    cells: tuple[dict, dict, dict] = ({}, {}, {})
    for name, facts in real.facts.items():
        codes = real.codes[name]
        if facts.categorical and not (equal and facts.size > bins):
            sizes[name] = facts.size + 2
            apply = _unchanged
        else:
            if equal:
                cut = equal_cut(codes, facts.missing, bins)
            elif facts.edges is not None:
                cut = Cut(np.asarray(facts.edges), facts.missing, left_closed=True)
            else:
                cut = quantile_cut(codes, facts.missing, bins)
            sizes[name], apply = cut.size, cut
            cuts[name] = cut
        for view, into in zip((real, synthetic, holdout), cells, strict=True):
            if view is not None:
                into[name] = apply(view.codes[name])
    return CellTables(sizes, cuts, cells[0], cells[1], cells[2] if holdout is not None else None)


def cell_labels(facts: Facts, cut: Cut | None) -> list[str]:
    """What a plot writes below each cell."""
    if cut is None:
        return [facts.label(code) for code in range(facts.size + 2)]
    # Codes are steps above the lower bound; the edges of a column held as floats are values already.
    step = 1.0 if facts.size is None else (facts.high - facts.low) / max(facts.size - 1, 1)
    offset = 0.0 if facts.size is None else facts.low
    ends = [_text(facts, offset + float(edge) * step) for edge in cut.edges]
    below, above = ("below", "from") if cut.left_closed else ("up to", "above")
    if not ends:
        return ["all", "(missing)"]
    between = [f"{first} to {last}" for first, last in pairwise(ends)]
    return [f"{below} {ends[0]}", *between, f"{above} {ends[-1]}", "(missing)"]


def _text(facts: Facts, value: float) -> str:
    if facts.kind == "datetime":
        return str(np.datetime64(round(value), "s")).removesuffix("T00:00:00")
    if facts.kind != "real":
        return str(round(value))
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.6g}"


def _unchanged(codes: NDArray) -> NDArray:
    return codes
