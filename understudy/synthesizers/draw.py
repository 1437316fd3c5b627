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
    uniform = _spaced_by_group(groups, len(table), rng)
    cumulated = np.cumsum(table, axis=1, dtype=np.float64)
    totals = cumulated[:, -1:]
    cumulated /= np.where(totals > 0, totals, 1.0)  # a row of zeros is fine as long as no group asks for it
    width = table.shape[1]
    # One search for all rows: group g's cumulated weights lie between g and g + 1.
    flat = (cumulated + np.arange(len(table))[:, None]).ravel()
    found = np.searchsorted(flat, groups + uniform, side="right") - groups * width
    return np.clip(found, 0, _last_positive_by_row(table)[groups])


def evenly_by_group(
    groups: np.ndarray,
    rows: np.ndarray,
    table: np.ndarray,
    first: np.ndarray,
    end: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """For each draw a column of `table[rows]` from `first` up to `end`, drawn by its weights.

    Draws of one group share evenly spaced uniform numbers, in random order: where their weights are alike, columns come
    as often as the weights say. Each draw by itself follows its own weights.

    >>> table = np.array([[0.0, 1.0, 1.0, 9.0]])
    >>> zero, rng = np.zeros(8, dtype=int), np.random.default_rng(0)
    >>> np.bincount(evenly_by_group(zero, zero, table, zero, zero + 3, rng)).tolist()
    [0, 4, 4]
    """
    uniform = _spaced_by_group(groups, len(np.bincount(groups)), rng)
    cumulated = np.cumsum(table, axis=1, dtype=np.float64)
    cumulated = np.concatenate([np.zeros((len(table), 1)), cumulated], axis=1)
    below, above = cumulated[rows, first], cumulated[rows, end]
    wanted = np.minimum(below + uniform * (above - below), np.nextafter(above, below))  # never a column without weight
    found, last = first.copy(), end - 1
    # A draw has few columns to go through: those of its own that end at or below what it wants.
    for _ in range(int((end - first).max(initial=1)) - 1):
        found += (found < last) & (cumulated[rows, found + 1] <= wanted)
    return found


def _spaced_by_group(groups: np.ndarray, number: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform numbers, evenly spaced within each of `number` groups and in random order there."""
    n = len(groups)
    sizes = np.bincount(groups, minlength=number)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shuffled = np.argsort(groups + 0.999999 * rng.random(n))  # an order within each group
    position = np.empty(n)
    position[shuffled] = np.arange(n)
    return (position - starts[groups] + rng.random(number)[groups]) / sizes[groups]


def _last_positive(weights: np.ndarray) -> int:
    return int(np.flatnonzero(weights > 0)[-1])


def _last_positive_by_row(table: np.ndarray) -> np.ndarray:
    return table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)
