"""Systematic draws: right on average, as near to the shares as whole rows allow, and never where the weight is zero."""

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from understudy.synthesizers.draw import systematic, systematic_by_group

weight_lists = st.lists(st.sampled_from([0.0, 0.1, 1.0, 2.5, 1e-9, 40.0]), min_size=1, max_size=12).filter(
    lambda weights: sum(weights) > 0
)


def is_rounded(counts: np.ndarray, shares: np.ndarray, n: int) -> bool:
    expected = shares * n
    return bool(((counts > expected - 1 - 1e-6) & (counts < expected + 1 + 1e-6)).all())


@given(weight_lists, st.integers(1, 500), st.integers(0, 2**32))
@example([0.0, 1.0, 0.0], 3, 0)
def test_counts_are_the_shares_rounded(weights: list[float], n: int, seed: int):
    weights = np.array(weights)
    drawn = systematic(weights, n, np.random.default_rng(seed))
    assert (np.diff(drawn) >= 0).all()
    counts = np.bincount(drawn, minlength=len(weights))
    assert counts.sum() == n
    assert is_rounded(counts, weights / weights.sum(), n)
    assert not counts[weights == 0].any()


def test_draws_are_right_on_average_and_not_otherwise():
    weights = np.array([0.05, 0.0, 0.6, 0.35])
    rng = np.random.default_rng(1)
    runs, n = 4_000, 3
    counts = sum(np.bincount(systematic(weights, n, rng), minlength=4) for _ in range(runs))
    means = counts / runs
    # A run's count lies within one of its mean: its standard deviation is at most a half.
    tolerance = 5 * 0.5 / math.sqrt(runs)
    np.testing.assert_allclose(means, n * weights, atol=tolerance)
    assert np.abs(means - n * np.array([0.15, 0.0, 0.5, 0.35])).max() > tolerance


@given(st.data(), st.integers(0, 2**32))
def test_every_group_gets_its_own_shares(data: st.DataObject, seed: int):
    rows, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    weight = st.sampled_from([0.0, 0.5, 1.0, 7.0])
    table = np.array([[data.draw(weight) for _ in range(width)] for _ in range(rows)])
    table[table.sum(axis=1) == 0, 0] = 1.0
    groups = np.sort(data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=60)))
    drawn = systematic_by_group(groups, table, np.random.default_rng(seed))
    for group in np.unique(groups):
        counts = np.bincount(drawn[groups == group], minlength=width)
        assert is_rounded(counts, table[group] / table[group].sum(), int((groups == group).sum()))
        assert not counts[table[group] == 0].any()


def test_a_group_without_rows_may_have_no_weights():
    """A condition can rule a component out: its row is all zeros, and no row of the draw belongs to it."""
    table = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    groups = np.repeat([1, 3], [400, 100])
    drawn = systematic_by_group(groups, table, np.random.default_rng(0))
    assert np.bincount(drawn[groups == 1], minlength=3).tolist() == [0, 100, 300]
    assert set(drawn[groups == 3]) == {0}


def test_rows_of_a_group_are_exchangeable_and_independent_between_calls():
    table, groups = np.array([[1.0, 3.0]]), np.zeros(4, dtype=np.int64)
    rng = np.random.default_rng(3)
    runs = 4_000
    first = np.array([systematic_by_group(groups, table, rng) for _ in range(runs)])
    second = np.array([systematic_by_group(groups, table, rng) for _ in range(runs)])
    for position in range(4):
        assert chisquare(np.bincount(first[:, position], minlength=2), [runs / 4, 3 * runs / 4]).pvalue > 1e-6
    # Two columns of one component must not go together because both were drawn in order.
    both = np.bincount(2 * first[:, 0] + second[:, 0], minlength=4)
    assert chisquare(both, runs * np.array([1, 3, 3, 9]) / 16).pvalue > 1e-6


def test_many_groups_keep_their_precision():
    table = np.full((3_000, 64), 1.0)
    groups = np.repeat(np.arange(3_000), 64)
    drawn = systematic_by_group(groups, table, np.random.default_rng(0))
    assert (np.bincount(groups * 64 + drawn, minlength=3_000 * 64) == 1).all()
