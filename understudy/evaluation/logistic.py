"""Logistic regression by maximum likelihood, without the penalty that would spoil the theory of its propensities."""

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-8


def fit_probabilities(matrix: NDArray, truth: NDArray, *, steps: int = 30) -> tuple[NDArray[np.float64], int]:
    """Fitted probabilities and the rank of the design without its intercept.

    Newton's method on the principal directions of the design: dependent columns (one-hot levels add up to 1, constants)
    fall away there, which makes the rank plain and the Hessian invertible. Where a direction separates the classes the
    likelihood has no maximum; the steps stop when the probabilities do.

    >>> rows = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    >>> probabilities, rank = fit_probabilities(rows, np.array([0, 0, 1, 0, 1, 1]))
    >>> probabilities.round(3).tolist(), rank
    ([0.333, 0.333, 0.333, 0.667, 0.667, 0.667], 1)
    """
    design, rank = principal_design(matrix)
    design = np.column_stack([np.ones(len(design)), design])
    share = float(truth.mean())
    weights = np.zeros(design.shape[1])
    weights[0] = np.log(share / (1 - share))
    linear = design @ weights
    loss = _loss(linear, truth)
    for _ in range(steps):
        probabilities = _sigmoid(linear)
        gradient = design.T @ (truth - probabilities)
        curvature = np.maximum(probabilities * (1 - probabilities), _TINY)
        hessian = (design * curvature[:, None]).T @ design
        hessian[np.diag_indices_from(hessian)] += _TINY * len(truth)
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while size > 1e-4 and _loss(linear + size * (design @ step), truth) > loss:
            size /= 2
        linear = linear + size * (design @ step)
        before, loss = loss, _loss(linear, truth)
        if before - loss < 1e-9 * max(abs(before), 1.0):
            break
    return _sigmoid(linear), rank


def principal_design(matrix: NDArray) -> tuple[NDArray[np.float64], int]:
    """Centred columns rotated to uncorrelated ones of variance 1, without the directions in which nothing varies."""
    centred = matrix - matrix.mean(axis=0, dtype=np.float64)
    spread = np.sqrt((centred**2).mean(axis=0))
    centred = centred[:, spread > 1e-7] / spread[spread > 1e-7]
    values, directions = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = values > 1e-6 * max(values.max(initial=0.0), 1.0)
    return centred @ (directions[:, kept] / np.sqrt(values[kept])), int(kept.sum())


def _sigmoid(linear: NDArray) -> NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-np.clip(linear, -35, 35)))


def _loss(linear: NDArray, truth: NDArray) -> float:
    return float((np.logaddexp(0.0, linear) - truth * linear).mean())
