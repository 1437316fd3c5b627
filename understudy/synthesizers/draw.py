"""Drawing with less luck: systematic sampling, whose shares are as close to the model as whole rows allow."""

import numpy as np


def systematic(weights: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n indices with probability proportional to weights, sorted; each appears n*p times, rounded up or down.

    >>> np.bincount(systematic(np.array([1.0, 3.0]), 8, np.random.default_rng(0))).tolist()
    [2, 6]
    """
    cumulated = np.cumsum(weights, dtype=np.float64)
    points = (rng.random() + np.arange(n)) * (cumulated[-1] / n)
    return np.minimum(np.searchsorted(cumulated, points, side="right"), _last_positive(weights))


def systematic_by_group(groups: np.ndarray, table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each row a column of `table[groups]`, drawn by its weights: systematic within a group, shuffled.

    `groups` is sorted. Rows of one group are independent of each other across calls, since each call shuffles anew.

    >>> drawn = systematic_by_group(np.array([0, 0, 0, 0]), np.array([[1.0, 1.0]]), np.random.default_rng(0))
    >>> sorted(drawn.tolist())
    [0, 0, 1, 1]
    """
    n = len(groups)
    sizes = np.bincount(groups, minlength=len(table))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shuffled = np.argsort(groups + 0.999999 * rng.random(n))  # an order within each group
    position = np.empty(n)
    position[shuffled] = np.arange(n)
    uniform = (position - starts[groups] + rng.random(len(table))[groups]) / sizes[groups]
    cumulated = np.cumsum(table, axis=1, dtype=np.float64)
    totals = cumulated[:, -1:]
    cumulated /= np.where(totals > 0, totals, 1.0)  # a row of zeros is fine as long as no group asks for it
    width = table.shape[1]
    # One search for all rows: group g's cumulated weights lie between g and g + 1.
    flat = (cumulated + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(flat, groups + uniform, side="right") - groups * width
    return np.clip(found, 0, _last_positive_by_row(table)[groups])


def _last_positive(weights: np.ndarray) -> int:
    return int(np.flatnonzero(weights > 0)[-1])


def _last_positive_by_row(table: np.ndarray) -> np.ndarray:
    return table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
