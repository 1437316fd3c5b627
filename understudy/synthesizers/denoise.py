"""Better histograms from noisy ones: post-processing of released counts, which costs no privacy."""

import numpy as np


def project_to_total(counts: np.ndarray, total: float) -> np.ndarray:
    """The nearest counts (in squared error) that are not negative and sum to `total`.

    >>> project_to_total(np.array([5.0, -1.0, 2.0]), 6.0).tolist()
    [4.5, 0.0, 1.5]
    """
    descending = np.sort(counts)[::-1]
    surplus = np.cumsum(descending) - total
    ranks = np.arange(1, len(counts) + 1)
    kept = np.flatnonzero(descending - surplus / ranks > 0)
    last = kept[-1] if len(kept) else 0
    return np.maximum(counts - surplus[last] / (last + 1), 0.0)
