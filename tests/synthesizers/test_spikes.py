"""Counts that stand out: as many as keep noise a small share of them, alone and in company."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.synthesizers.spikes import FALSE_SHARE, spikes, stand_out, usual_around


def test_of_pure_noise_hardly_anything_stands_out() -> None:
    rng = np.random.default_rng(0)
    found = [stand_out(rng.normal(size=2_000)).any() for _ in range(400)]
    assert np.mean(found) < 2 * FALSE_SHARE


@pytest.mark.parametrize(("many", "height", "found_at_least"), [(1, 5.5, 0.8), (150, 4.0, 0.8), (150, 3.0, 0.4)])
def test_the_share_of_noise_is_kept(many: int, height: float, found_at_least: float) -> None:
    rng = np.random.default_rng(1)
    false, found = [], []
    for _ in range(100):
        scores = rng.normal(size=2_000)
        scores[:many] += height
        taken = stand_out(scores)
        false.append(taken[many:].sum() / max(taken.sum(), 1))
        found.append(taken[:many].mean())
    # The mean share of noise is FALSE_SHARE times the part of counts that are noise.
    assert np.mean(false) < FALSE_SHARE + 3 * np.std(false) / 10
    assert np.mean(found) > found_at_least


@given(st.lists(st.floats(-10, 10), max_size=50).map(np.array))
def test_what_stands_out_is_the_largest(scores: np.ndarray) -> None:
    taken = stand_out(scores)
    assert len(taken) == len(scores)
    if taken.any() and not taken.all():
        assert scores[taken].min() > scores[~taken].max()


def test_counts_that_are_free_already_stand_out() -> None:
    assert stand_out(np.array([np.inf, -1.0, 0.0])).tolist() == [True, False, False]


def test_cells_are_compared_by_their_size() -> None:
    """A cell of one value among wide ones holds less, and is no dip; one that holds as much as they do is a spike."""
    sizes = np.full(200, 50.0)
    sizes[100:102] = 1.0
    counts = 20.0 * sizes
    np.testing.assert_allclose(usual_around(counts, sizes), counts)
    counts[101] = 1_000.0
    assert np.flatnonzero(spikes(counts, sizes, noise=30.0)).tolist() == [101]


def test_a_slope_has_no_spikes() -> None:
    counts = np.linspace(0, 1_000, 300) + np.random.default_rng(0).normal(0, 20, 300)
    assert not spikes(counts, np.ones(300), noise=20.0).any()
