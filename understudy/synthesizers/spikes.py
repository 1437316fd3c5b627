"""Which of many noisy counts stand out of what is around them.

How clear a count must be depends on the others. Of 2,000 cells of pure noise one is 3.5 standard deviations off by
chance; but where 150 cells are 5 off and more, one that is 3 off is hardly noise. As many counts are taken as keep the
expected share of noise among them below FALSE_SHARE (Benjamini and Hochberg 1995): a lone one among 2,000 must be 4.1
off, where 150 stand out 2.7 are enough. Sees released counts alone, and costs no privacy.
"""

import numpy as np
from scipy.special import ndtr

FALSE_SHARE = 0.05  # a common choice; from 0.01 to 0.1 columns differ little
FALSE_IN_SHORT = 0.01  # of a short column's cells: a false spike there misleads much of it
SHORT = 256
NEIGHBOURS = 3  # on either side, whose median is what one would expect
MEDIAN_NOISE = 1.1  # that of a count less the median of so few neighbours, beside that of a count
TINY = 1e-12


def stand_out(scores: np.ndarray, share: float = FALSE_SHARE) -> np.ndarray:
    """Which of the scores, standard normal where there is nothing but noise, are too large for that.

    >>> lone, many = np.array([3.5] + 999 * [0.0]), np.array(100 * [3.5] + 900 * [0.0])
    >>> int(stand_out(lone).sum()), int(stand_out(many).sum())
    (0, 100)
    """
    if not len(scores):
        return np.zeros(0, dtype=bool)
    descending = np.sort(scores)[::-1]
    by_chance = len(scores) * ndtr(-descending)
    clear = np.flatnonzero(by_chance <= share * np.arange(1, len(scores) + 1))
    if not len(clear):
        return np.zeros(len(scores), dtype=bool)
    return scores >= descending[clear[-1]]


def usual_around(counts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """What each cell would hold if it were as dense as those around it; never negative.

    `sizes` tell what cells would hold if rows were spread evenly.
    """
    if len(counts) <= 2 * NEIGHBOURS:
        return np.maximum(counts, 0.0)
    medians = _weighted_medians(_neighbours(counts / sizes), _neighbours(sizes))
    return np.maximum(medians, 0.0) * sizes


def spikes(counts: np.ndarray, sizes: np.ndarray, noise: float) -> np.ndarray:
    """Which cells hold clearly more than those around them would let one expect."""
    above = counts - usual_around(counts, sizes)
    return stand_out(above / (MEDIAN_NOISE * noise), false_share(len(counts)))


def false_share(cells: int) -> float:
    """The expected share of noise among the spikes of a column of so many cells."""
    return FALSE_IN_SHORT if cells <= SHORT else FALSE_SHARE


def _neighbours(numbers: np.ndarray) -> np.ndarray:
    """Those on either side of every number, without it; beyond the ends, the same ones again."""
    padded = np.pad(numbers, NEIGHBOURS, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    return np.delete(around, NEIGHBOURS, axis=1)


def _weighted_medians(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of every row: the number with half of the weight on either side, or the mean of the two around that place.

    >>> _weighted_medians(np.array([[3.0, 1.0, 2.0, 9.0]]), np.array([[1.0, 1.0, 1.0, 4.0]])).tolist()
    [9.0]
    >>> _weighted_medians(np.array([[3.0, 1.0, 2.0, 9.0]]), np.ones((1, 4))).tolist()
    [2.5]
    """
    order = np.argsort(numbers, axis=1, kind="stable")
    numbers, passed = np.take_along_axis(numbers, order, 1), np.take_along_axis(weights, order, 1).cumsum(axis=1)
    half, rounding = passed[:, -1:] / 2, passed[:, -1:] * TINY
    first = (passed < half - rounding).sum(axis=1, keepdims=True)
    last = np.minimum((passed <= half + rounding).sum(axis=1, keepdims=True), numbers.shape[1] - 1)
    return (np.take_along_axis(numbers, first, 1) + np.take_along_axis(numbers, last, 1))[:, 0] / 2
