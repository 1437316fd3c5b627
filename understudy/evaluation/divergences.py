"""Distances between two coded columns or two histograms: arrays in, one number out, no schema."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def shares(codes: ArrayLike, size: int) -> NDArray[np.float64]:
    """The share of rows in each of `size` cells.

    >>> shares([0, 1, 1, 1], 3).tolist()
    [0.25, 0.75, 0.0]
    """
    counts = np.bincount(np.asarray(codes, dtype=np.intp), minlength=size)
    return counts / counts.sum()


def tv_distance(real: ArrayLike, synthetic: ArrayLike, *, size: int) -> float:
    """Total variation distance of two coded columns; 0 is best, 1 worst.

    >>> tv_distance([0, 0, 1, 1], [0, 1, 1, 1], size=2)
    0.25
    """
    return 0.5 * float(np.abs(shares(real, size) - shares(synthetic, size)).sum())


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> float:
    """1/2 KL(P||M) + 1/2 KL(Q||M) with M the mixture, natural logarithm: at most ln 2.

    >>> round(jensen_shannon([1, 0], [0, 1]), 6) == round(float(np.log(2)), 6)
    True
    >>> jensen_shannon([0.5, 0.5], [0.5, 0.5])
    0.0
    """
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    mixture = (p + q) / 2
    total = 0.0
    for part in (p, q):
        seen = part > 0
        total += float((part[seen] * np.log(part[seen] / mixture[seen])).sum()) / 2
    return max(total, 0.0)


def mu_smoothed_kl(p: ArrayLike, q: ArrayLike) -> float:
    """Sum over the support of P of (P + mu) log((P + mu)/(Q + mu)), mu = exp(-1/(1 - p1)), p1 the largest of P.

    Infinite only if P sits in one cell (then mu is 0) that Q never shows.

    >>> mu_smoothed_kl([0.5, 0.5], [0.5, 0.5])
    0.0
    >>> mu = float(np.exp(-2))
    >>> expected = 2 * (0.5 + mu) * np.log(0.5 + mu) - (0.5 + mu) * (np.log(0.25 + mu) + np.log(0.75 + mu))
    >>> bool(np.isclose(mu_smoothed_kl([0.5, 0.5], [0.25, 0.75]), expected))
    True
    """
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    largest = float(p.max())
    mu = float(np.exp(-1.0 / (1.0 - largest))) if largest < 1.0 else 0.0
    seen = p > 0
    top, bottom = p[seen] + mu, q[seen] + mu
    if np.any(bottom == 0):
        return float("inf")
    return max(float((top * np.log(top / bottom)).sum()), 0.0)


def wasserstein1(first: ArrayLike, second: ArrayLike) -> float:
    """Wasserstein-1 distance of two samples on a line: the area between their distribution functions.

    >>> wasserstein1([0.0, 1.0], [2.0, 3.0])
    2.0
    """
    first, second = np.sort(np.asarray(first, dtype=float)), np.sort(np.asarray(second, dtype=float))
    points = np.sort(np.concatenate([first, second]))
    below_first = np.searchsorted(first, points[:-1], side="right") / len(first)
    below_second = np.searchsorted(second, points[:-1], side="right") / len(second)
    return float((np.abs(below_first - below_second) * np.diff(points)).sum())


def joint_tv_distance(
    real: list[NDArray], synthetic: list[NDArray], sizes: list[int], *, dense_limit: int = 1 << 22
) -> float:
    """Total variation distance of the joint distribution of several coded columns.

    Codes are folded into one number a row; small joint domains are counted in one pass over the rows, large ones
    through the sorted distinct cells, so that memory follows the rows and never the domain.

    >>> a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> joint_tv_distance([a, b], [a, a], [2, 2])
    0.5
    """
    left, right, cells = fold(real, synthetic, sizes)
    if cells > dense_limit:
        _, inverse = np.unique(np.concatenate([left, right]), return_inverse=True)
        left, right = inverse[: len(left)], inverse[len(left) :]
        cells = int(inverse.max()) + 1
    return tv_distance(left, right, size=cells)


def fold(real: list[NDArray], synthetic: list[NDArray], sizes: list[int]) -> tuple[NDArray, NDArray, int]:
    """Several coded columns of two tables as one, and the size of its domain.

    Where the product of sizes would pass 2**62, the columns folded so far are first renumbered by the cells that occur.

    >>> left, right, cells = fold([np.array([1]), np.array([2])], [np.array([0]), np.array([1])], [2, 3])
    >>> left.tolist(), right.tolist(), cells
    ([5], [1], 6)
    """
    left, right, cells = real[0].astype(np.int64), synthetic[0].astype(np.int64), int(sizes[0])
    for next_left, next_right, size in zip(real[1:], synthetic[1:], sizes[1:], strict=True):
        if cells * int(size) >= 1 << 62:
            _, inverse = np.unique(np.concatenate([left, right]), return_inverse=True)
            left, right = inverse[: len(left)], inverse[len(left) :]
            cells = int(inverse.max()) + 1
        left = left * int(size) + next_left
        right = right * int(size) + next_right
        cells *= int(size)
    return left, right, cells
