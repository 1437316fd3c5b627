"""Values inside coarse codes, by class of the label.

Two-way tables know coarse codes alone. Where a class becomes more frequent from bin to bin of an ordered column, it
does so inside the bins too: the logarithm of its share is taken to change evenly from the middle of one bin to the
middle of the next, and on to the ends. Sees released numbers alone, and costs no privacy.
"""

import numpy as np

from understudy.synthesizers.mixture.ties import spikes
from understudy.table.cells import Cells

ROUNDS = 10  # of bringing both sides of the table to what they are known to be
TINY = 1e-9
MOST_LEVEL = 50.0  # of a logarithm: lines that go on far beyond two close middles mean nothing


def inside(cells: Cells, groups: np.ndarray, counts: np.ndarray, by_class: np.ndarray) -> np.ndarray:
    """The probability of every fine cell given its coarse code and the class, (classes, cells).

    `by_class` (classes, codes) is how much of each class has each code. Summed over the classes, cells keep the shares
    of their codes that `counts` tell.
    """
    counts = counts + TINY * (counts.sum() + 1)
    even = counts / np.bincount(groups, weights=counts)[groups]
    if len(by_class) == 1 or not cells.ordered or len(even) == by_class.shape[1]:
        return np.tile(even, (len(by_class), 1))
    by_class = by_class + TINY * by_class.sum()
    shares = by_class / by_class.sum(axis=0)
    cell_shares = shares[:, groups]
    values = slice(0, cells.values)
    cell_shares[:, values] = between(groups[values], counts[values], shares)
    return _held(even * cell_shares, groups, even, by_class)


def between(groups: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Each class's share of every cell, up to a factor. The way from one middle to the next is measured in rows passed.

    Single values that stand out of their neighbours have shares of their own, which tell nothing of the bins around.
    """
    bins = np.arange(groups[-1] + 1)
    passed = np.cumsum(counts) - counts / 2
    middles = np.bincount(groups, weights=passed * counts) / np.bincount(groups, weights=counts)
    alone = spikes(groups, counts)
    smooth = bins[~alone]
    if len(smooth) < 2:
        return shares[:, groups]
    # A line is a sum of what each bin has to do with it: once for every bin, not once for every class or component.
    lines = np.array([_line(passed, middles[smooth], level) for level in np.eye(len(smooth))])
    level = np.clip(np.log(shares[:, smooth]) @ lines, -MOST_LEVEL, MOST_LEVEL)
    return np.where(alone[groups], shares[:, groups], np.exp(level))


def _line(at: np.ndarray, middles: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Straight from one middle to the next, and beyond the outermost ones as between them and their neighbours."""
    found = np.interp(at, middles, levels)
    first = (levels[1] - levels[0]) / (middles[1] - middles[0])
    last = (levels[-1] - levels[-2]) / (middles[-1] - middles[-2])
    found = np.where(at < middles[0], levels[0] + first * (at - middles[0]), found)
    return np.where(at > middles[-1], levels[-1] + last * (at - middles[-1]), found)


def _held(joint: np.ndarray, groups: np.ndarray, even: np.ndarray, by_class: np.ndarray) -> np.ndarray:
    """Scaled until cells have their parts of a code and classes their codes; then as parts of a class's code."""
    wanted = even * by_class.sum(axis=0)[groups]
    codes = by_class.shape[1]
    for _ in range(ROUNDS):
        joint = joint * (wanted / joint.sum(axis=0))
        held = np.array([np.bincount(groups, weights=of_class, minlength=codes) for of_class in joint])
        joint = joint * (by_class / held)[:, groups]
    return joint / by_class[:, groups]
