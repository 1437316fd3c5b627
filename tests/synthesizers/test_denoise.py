"""Denoising: nearest consistent counts, and smoothing that only drops what noise could have made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.synthesizers.denoise import project_to_total

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
