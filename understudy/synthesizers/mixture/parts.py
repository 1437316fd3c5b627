"""Parts of coarse codes, by component: columns that go together do so inside their bins too.

Two-way tables know coarse codes alone. A component whose share of an ordered column rises from bin to bin is taken to
rise inside the bins as well: the logarithm of its share changes evenly from the middle of one bin to the middle of the
next. Bins of several cells are cut into a few parts for that, and the components' probabilities are those of the parts.
Sees released numbers alone, and costs no privacy.
"""

import numpy as np

from understudy.synthesizers.mixture.coarse import cut_at_quantiles
from understudy.synthesizers.mixture.inside import TINY, between
from understudy.table.cells import Cells

PARTS = 4  # of a bin, at most
ROWS_PER_PART = 100  # at least: fewer rows are drawn more evenly from a whole bin than they would gain by its parts
MOST_LEAN = 6.0  # below the log of a component's largest share of any bin, shares are taken for that
ROUNDS = 10  # of bringing both sides of the table to what they are known to be


def part_codes(cells: Cells, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A finer code for every cell, in the order of the codes: bins of an ordered column in up to PARTS even parts."""
    if not cells.ordered or len(groups) == groups.max() + 1:
        return groups
    parts, first = np.empty_like(groups), 0
    for code in range(groups.max() + 1):
        inside = np.flatnonzero(groups == code)
        most = min(PARTS, int(counts[inside].sum() / ROWS_PER_PART))
        parts[inside] = first + cut_at_quantiles(counts[inside], max(most, 1))
        first = parts[inside[-1]] + 1
    return parts


def part_probabilities(
    cells: Cells,
    groups: np.ndarray,
    parts: np.ndarray,
    counts: np.ndarray,
    within: np.ndarray,
    weights: np.ndarray,
    table: np.ndarray,
) -> np.ndarray:
    """The probabilities of all parts for the components of one class, from those of coarse codes, `table` (K, codes).

    `within` is the probability of every cell given its code in that class, `weights` (K,) are the components'. Every
    component keeps its codes, and all of them together, weighted, keep the parts that `within` gives to each code.
    """
    owner = np.zeros(parts.max() + 1, dtype=np.int64)
    owner[parts] = groups
    wanted = np.bincount(parts, weights=within, minlength=len(owner))
    if len(owner) == table.shape[1]:
        return table
    lean = _lean(cells, groups, parts, counts, within, weights, table) * wanted
    shares = weights[:, None] * table
    shares = (shares / np.maximum(shares.sum(axis=0), np.finfo(float).tiny))[:, owner]
    sums = np.equal.outer(owner, np.arange(table.shape[1])).astype(np.float64)
    for _ in range(ROUNDS):
        together = (shares * lean).sum(axis=0)
        lean = lean * np.divide(wanted, together, out=np.ones_like(wanted), where=together > 0)
        lean = lean / (lean @ sums)[:, owner]
    return table[:, owner] * lean


def _lean(
    cells: Cells,
    groups: np.ndarray,
    parts: np.ndarray,
    counts: np.ndarray,
    within: np.ndarray,
    weights: np.ndarray,
    table: np.ndarray,
) -> np.ndarray:
    """How much more of each part a component has than its class, up to a factor for each code."""
    together = weights @ table
    level = np.log(np.maximum(table, np.finfo(float).tiny)) - np.log(np.maximum(together, np.finfo(float).tiny))
    level = np.maximum(level, level.max(axis=1, keepdims=True) - MOST_LEAN)
    values = slice(0, cells.values)
    found = np.ones((len(table), parts.max() + 1))
    counts = counts + TINY * (counts.sum() + 1)  # a bin may be empty
    held = within[values] + TINY
    mean = np.zeros((cells.values, parts[values].max() + 1))
    mean[np.arange(cells.values), parts[values]] = held
    mean /= mean.sum(axis=0)
    found[:, : mean.shape[1]] = between(groups[values], counts[values], np.exp(level)) @ mean
    return found
