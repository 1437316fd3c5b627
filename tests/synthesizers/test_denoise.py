"""Denoising: nearest consistent counts, and smoothing that only drops what noise could have made."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.synthesizers.denoise import project_to_total, smooth_ordered

count_lists = st.lists(st.floats(-1e4, 1e5), min_size=1, max_size=40).map(np.array)


@given(count_lists, st.floats(1, 1e6))
def test_projection_meets_its_constraints_and_is_the_nearest(counts: np.ndarray, total: float):
    found = project_to_total(counts, total)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-6)
    # Optimality (Karush, Kuhn & Tucker): all positive cells moved by one common shift, the rest by no more of it.
    moved = counts - found
    shift = moved[found > 0].mean()
    scale = 1e-6 * (np.abs(counts).max() + total)
    np.testing.assert_allclose(moved[found > 0], shift, atol=scale)
    assert (moved[found == 0] <= shift + scale).all()


@given(count_lists, st.floats(1, 1e6))
def test_projection_keeps_the_order_and_what_is_consistent(counts: np.ndarray, total: float):
    found = project_to_total(counts, total)
    assert (np.diff(found[np.argsort(counts)]) >= 0).all()
    np.testing.assert_allclose(project_to_total(found, found.sum()), found, atol=1e-6 * (1 + found.max()))


def padded(values: np.ndarray) -> np.ndarray:
    out = np.zeros(1 << (len(values) - 1).bit_length())
    out[: len(values)] = values
    return out


def haar(values: np.ndarray) -> np.ndarray:
    """Orthonormal Haar coefficients, by the matrix itself."""
    length = len(values)
    matrix = np.ones((1, 1))
    while len(matrix) < length:
        above = np.kron(matrix, [1, 1])
        below = np.kron(np.eye(len(matrix)), [1, -1])
        matrix = np.vstack([above, below]) / math.sqrt(2)
    return matrix @ values


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=33).map(np.array), st.floats(0.1, 500))
def test_smoothing_keeps_or_drops_whole_details(counts: np.ndarray, noise: float):
    """Against the transform written as a matrix: every coefficient is kept, or was below the threshold and is gone."""
    threshold = noise * math.sqrt(2 * math.log(len(counts)))
    before = haar(padded(counts))
    expected = np.where((np.abs(before) > threshold) | (np.arange(len(before)) == 0), before, 0.0)
    near = np.abs(np.abs(before) - threshold) < 1e-6
    if near[1:].any():
        return  # a tie may fall either way
    found = smooth_ordered(counts, noise)
    assert len(found) == len(counts)
    wanted = haar(np.eye(len(before))).T @ expected
    np.testing.assert_allclose(found, wanted[: len(counts)], atol=1e-6)


@given(count_lists)
def test_without_noise_nothing_is_smoothed(counts: np.ndarray):
    found = smooth_ordered(counts, 0.0)
    np.testing.assert_array_equal(found, counts)
    assert found is not counts


def test_smoothing_helps_where_counts_are_smooth_and_spares_spikes():
    rng = np.random.default_rng(0)
    place = np.arange(256)
    truth = 400 * np.exp(-(((place - 100) / 40) ** 2))
    truth[[7, 200]] = 900
    noisy = truth + rng.normal(0, 20, 256)
    smoothed = smooth_ordered(noisy, 20.0)
    assert ((smoothed - truth) ** 2).mean() < 0.6 * ((noisy - truth) ** 2).mean()
    assert smoothed[[7, 200]] == pytest.approx(900, abs=100)
