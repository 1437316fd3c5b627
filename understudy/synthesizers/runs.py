"""Disjoint runs of a column's codes: counted, and divided into parts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.table.cells import Cells

FEWEST_PARTS = 32  # of a run that is divided: with fewer, a value would take more looks than there are
MOST_OF_A_RUN = 4096  # where few stand out: two looks then tell single floats in cells of 16 million


@dataclass(frozen=True, eq=False)
class Runs:
    """Disjoint runs of codes, in order: from `starts` up to `ends`, which are left out."""

    starts: np.ndarray
    ends: np.ndarray

    @property
    def codes(self) -> np.ndarray:
        """How many codes every run holds; of reals, how many floats."""
        if self.starts.dtype == np.float32:
            return _rank(self.ends) - _rank(self.starts)
        return (self.ends - self.starts).astype(np.int64)

    @property
    def widths(self) -> np.ndarray:
        return (self.ends - self.starts).astype(np.float64)

    def take(self, chosen: np.ndarray) -> "Runs":
        return Runs(self.starts[chosen], self.ends[chosen])

    def count(self, codes: np.ndarray) -> np.ndarray:
        """How many codes fall into each run; a missing code falls into none."""
        place = np.searchsorted(self.starts, codes, side="right") - 1
        inside = (place >= 0) & (codes < self.ends[place])
        return np.bincount(place[inside], minlength=len(self.starts))

    def divide(self, most: int) -> "Runs":
        """Each run in up to `most` parts of about equal width; single codes where there are no more of them."""
        starts, ends = [], []
        for first, last, codes in zip(self.starts, self.ends, self.codes.tolist(), strict=True):
            edges = _edges(first, last, codes, most)
            starts.append(edges[:-1])
            ends.append(edges[1:])
        return Runs(np.concatenate(starts), np.concatenate(ends))


def _edges(first: np.number, last: np.number, codes: int, most: int) -> np.ndarray:
    parts = min(codes, most)
    if not isinstance(first, np.float32):
        return np.array([int(first) + codes * i // parts for i in range(parts + 1)], dtype=np.uint64)
    if codes <= most:  # float by float: by width, some of those nearer to 0 would be left together
        return _float(_rank(first) + np.arange(codes + 1))
    return np.unique(np.linspace(float(first), float(last), parts + 1).astype(np.float32))


def _rank(floats: np.ndarray) -> np.ndarray:
    """The place of every float32 in the order of all of them; both zeros have the same."""
    bits = np.asarray(floats, dtype=np.float32).view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def _float(ranks: np.ndarray) -> np.ndarray:
    bits = np.where(ranks < 0, -ranks | 0x80000000, ranks)
    return bits.astype(np.uint32).view(np.float32)


def all_runs(cells: Cells) -> Runs:
    """The cells of a column, without missing."""
    if cells.size is None:  # the last cell holds the upper bound
        end: np.number = np.nextafter(np.float32(cells.end), np.float32(np.inf))
    else:
        end = np.uint64(cells.size)
    return Runs(cells.starts, np.append(cells.starts[1:], end).astype(cells.starts.dtype))


def divide_all(runs: Mapping[str, Runs], weights: Mapping[str, np.ndarray], most_parts: int) -> dict[str, Runs]:
    """By column, the parts of its runs, `most_parts` of all columns together at most.

    Columns that need less than their share leave the rest to the others, and so do runs of a column. Where even
    FEWEST_PARTS of every run are too many, the runs of most weight are divided and the others are not.
    """
    if not runs:
        return {}
    needed = {name: int(np.minimum(r.codes, MOST_OF_A_RUN).sum()) for name, r in runs.items()}
    most = fair_level(np.array(list(needed.values())), most_parts)
    divided = {}
    for name, found in runs.items():
        share = min(needed[name], most)
        heaviest = np.argsort(-weights[name], kind="stable")
        least = np.cumsum(np.minimum(found.codes, FEWEST_PARTS)[heaviest])
        kept = found.take(np.sort(heaviest[least <= share]))
        if len(kept.starts):
            divided[name] = kept.divide(fair_level(np.minimum(kept.codes, MOST_OF_A_RUN), share))
    return divided


def fair_level(needs: np.ndarray, most: int) -> int:
    """The largest number that all may have at most, so that together they have no more than `most`.

    >>> fair_level(np.array([5, 100, 100]), 65), fair_level(np.array([5, 6]), 100)
    (30, 6)
    """
    ordered = np.sort(needs)
    # If the k smallest have all that they need, the others share what is left.
    below = np.cumsum(ordered) - ordered
    levels = (most - below) // np.arange(len(ordered), 0, -1)
    short = np.flatnonzero(levels < ordered)
    return int(levels[short[0]] if len(short) else ordered[-1])
