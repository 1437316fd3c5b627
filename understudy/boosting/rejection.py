"""Discriminator rejection sampling: a made-up row is kept with a chance that grows with its odds of being real."""

import numpy as np

from understudy.errors import OptionError

QUANTILE = 0.99  # of the pool's odds, taken as their most
FLOOR = 0.02  # no row is kept with less than this chance: a distinguisher that is sure of itself may still be wrong
CERTAIN = 1e-6


def acceptance(
    average: np.ndarray, weights: np.ndarray | None = None, *, quantile: float = QUANTILE, floor: float = FLOOR
) -> np.ndarray:
    """The chance to keep each row, proportional to D / (1 - D) up to a cap and a floor.

    Values at 0 and 1 are moved inwards by a millionth; odds above their `quantile` over the (weighted) pool count as
    that, or a single row would have all others rejected.

    >>> acceptance(np.array([0.0, 0.5, 1.0, 1.0]), quantile=0.9).round(3).tolist()
    [0.02, 0.02, 1.0, 1.0]
    >>> acceptance(np.full(3, 0.5)).tolist()
    [1.0, 1.0, 1.0]
    """
    if not (0 < quantile <= 1 and 0 <= floor <= 1):
        raise OptionError(f"quantile and floor must lie between 0 and 1, got {quantile!r} and {floor!r}")
    average = np.asarray(average, dtype=np.float64)
    if average.ndim != 1 or not len(average) or not ((average >= 0) & (average <= 1)).all():
        raise OptionError("a distinguisher's values must be a list of numbers from 0 to 1")
    inside = np.clip(average, CERTAIN, 1 - CERTAIN)
    log_odds = np.log(inside) - np.log1p(-inside)
    order = np.argsort(log_odds, kind="stable")
    shares = np.full(len(average), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
    cumulated = np.cumsum(shares[order])
    place = np.searchsorted(cumulated, quantile * cumulated[-1])
    cap = log_odds[order[min(place, len(order) - 1)]]
    return np.maximum(np.exp(np.minimum(log_odds - cap, 0.0)), floor)


def reweighted(weights: np.ndarray, average: np.ndarray) -> np.ndarray:
    """Weights of rows after rejection: drawing by `weights` and keeping by `acceptance` draws by their product."""
    kept = weights * acceptance(average, weights)
    return kept / kept.sum()
