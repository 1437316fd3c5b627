"""How far neighbouring bins of an ordered column move together in a gradient step.

What one bin has to do with other columns, the next one mostly has too; noise knows no neighbours. A step that spreads
over neighbours learns what they share first, and what sets them apart only if it stays in the tables. Nothing is ruled
out by it: every bin also moves alone. Sees released counts alone, and costs no privacy.
"""

import numpy as np

from understudy.table.cells import Cells

ALONE = 0.2  # part of a step that a bin takes by itself
REACH = 1.5  # bins: standard deviation of the bell over which the rest spreads
# A single value that is so many times as frequent as its neighbours (no work, forty hours) is not like them.
SPIKE = 4.0


def ties_of(cells: Cells, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The matrix that a column's gradients are multiplied with; missing, spikes and unordered codes move alone."""
    ties = np.eye(int(groups.max()) + 1)
    if not cells.ordered:
        return ties
    bins = int(groups[: cells.values].max()) + 1
    apart = np.abs(np.arange(bins)[:, None] - np.arange(bins))
    bell = (1 - ALONE) * np.exp(-0.5 * (apart / REACH) ** 2)
    smooth = ~spikes(groups[: cells.values], counts[: cells.values])
    ties[:bins, :bins] += np.where(np.outer(smooth, smooth) & (apart > 0), bell, 0.0)
    return ties


def spikes(groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The bins that hold a single value which stands out of the bins around it.

    >>> spikes(np.array([0, 0, 1, 2, 2]), np.array([1.0, 1.0, 9.0, 2.0, 2.0])).tolist()
    [False, True, False]
    """
    cells = np.bincount(groups)
    density = np.bincount(groups, weights=counts) / cells
    padded = np.pad(density, 1, mode="reflect") if len(density) > 1 else np.full(3, density[0])
    around = (padded[:-2] + padded[2:]) / 2
    return (cells == 1) & (density > SPIKE * around)
