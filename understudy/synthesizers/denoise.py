"""Better histograms from noisy ones: post-processing of released counts, which costs no privacy."""

import math

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


def smooth_ordered(counts: np.ndarray, noise: float) -> np.ndarray:
    """Drops Haar wavelet details that noise alone could have made; keeps spikes and steps that stand out of it.

    The transform is orthonormal, so white noise of standard deviation `noise` stays white; details below the
    universal threshold noise * sqrt(2 log n) (Donoho & Johnstone 1994) are set to zero.

    >>> smooth_ordered(np.array([10.0, 11.0, 9.0, 90.0]), noise=0.8).round(1).tolist()
    [10.5, 10.5, 9.0, 90.0]
    """
    length = len(counts)
    if length < 2 or noise == 0:
        return counts.copy()
    averages = np.zeros(1 << (length - 1).bit_length())
    averages[:length] = counts  # beyond the end the true counts are zero
    details = []
    while len(averages) > 1:
        even, odd = averages[0::2], averages[1::2]
        averages, detail = (even + odd) / math.sqrt(2), (even - odd) / math.sqrt(2)
        details.append(detail)
    threshold = noise * math.sqrt(2 * math.log(length))
    for detail in reversed(details):
        kept = np.where(np.abs(detail) > threshold, detail, 0.0)
        wider = np.empty(2 * len(averages))
        wider[0::2], wider[1::2] = (averages + kept) / math.sqrt(2), (averages - kept) / math.sqrt(2)
        averages = wider
    return averages[:length]
