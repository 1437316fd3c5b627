"""Coarse codes of a column, cut from its released fine table: post-processing, so it costs nothing."""

import numpy as np

from understudy.table.cells import Cells


def coarse_groups(cells: Cells, counts: np.ndarray, *, bins: int, most_codes: int, rare: float) -> np.ndarray:
    """The coarse code of every fine cell; missing keeps a code of its own, the last.

    Ordered columns are cut at quantiles of `counts`, with spikes alone in their bin; where the schema declares public
    bins, at their edges alone, and neighbours are joined if there are more than `bins`. Unordered ones keep their
    frequent values apart and pool those counted less often than `rare`.
    """
    counts = counts[: cells.values]
    if cells.bins is not None:
        groups = cut_at_quantiles(np.bincount(cells.bins, weights=counts), bins)[cells.bins]
    elif cells.ordered:
        groups = cut_at_quantiles(counts, bins)
    else:
        groups = pool_rare(counts, most_codes, rare)
    if cells.missing:
        groups = np.append(groups, groups.max() + 1)
    return groups.astype(np.int64)


def cut_at_quantiles(counts: np.ndarray, bins: int) -> np.ndarray:
    """At most `bins` runs of neighbouring cells with about equal counts; a cell larger than that is a run of its own.

    >>> cut_at_quantiles(np.array([1.0, 1.0, 8.0, 1.0, 1.0]), 3).tolist()
    [0, 0, 1, 2, 2]
    """
    if len(counts) <= bins:
        return np.arange(len(counts))
    groups = np.zeros(len(counts), dtype=np.int64)
    group, held, left = 0, 0.0, float(counts.sum())
    target = left / bins
    for cell, count in enumerate(counts):
        full = held > 0 and held + count > target and (held >= target / 2 or count >= target)
        if full and group < bins - 1:
            left -= held
            group, held = group + 1, 0.0
            target = left / (bins - group)
        groups[cell] = group
        held += count
    return groups


def pool_rare(counts: np.ndarray, most: int, rare: float) -> np.ndarray:
    """Frequent values keep codes of their own; the rest, if there are two or more, share the last code.

    >>> pool_rare(np.array([50.0, 1.0, 40.0, 2.0]), most=10, rare=5.0).tolist()
    [0, 2, 1, 2]
    """
    keep = counts >= rare
    if len(counts) > most:
        rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        keep &= rank < most - 1
    if np.count_nonzero(~keep) < 2:
        return np.arange(len(counts))
    return np.where(keep, np.cumsum(keep) - 1, np.count_nonzero(keep))
