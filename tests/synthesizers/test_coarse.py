"""Coarse codes: every cell in one group, runs for ordered columns, never more groups than planned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.schema import Boolean, Categorical, Integer, Ordinal, Real
from understudy.synthesizers.mixture.coarse import coarse_groups, cut_at_quantiles, pool_rare
from understudy.table.cells import cells_of

released_counts = st.lists(st.sampled_from([0.0, 0.3, 1.0, 5.0, 80.0, 1e4]), min_size=1, max_size=60).map(np.array)


@given(released_counts, st.integers(2, 12))
def test_ordered_cells_are_cut_into_runs(counts: np.ndarray, bins: int):
    groups = cut_at_quantiles(counts, bins)
    assert len(groups) == len(counts)
    assert groups[0] == 0
    assert set(np.diff(groups)) <= {0, 1}  # contiguous, and numbered without gaps
    assert groups.max() < max(bins, 1)
    if len(counts) <= bins:
        assert groups.tolist() == list(range(len(counts)))


@given(st.lists(st.floats(0.5, 1.5), min_size=40, max_size=200).map(np.array), st.integers(2, 12))
def test_runs_hold_about_equal_counts(counts: np.ndarray, bins: int):
    held = np.bincount(cut_at_quantiles(counts, bins), weights=counts)
    assert len(held) == bins
    # A closed run misses its target by less than one cell, which the runs after it share: so the target moves by at
    # most cell / (runs left) at each cut, a harmonic sum in all, and the run itself by one cell more.
    mean, cell = counts.sum() / bins, 1.5
    drift = cell * sum(1 / left for left in range(1, bins))
    assert held.max() <= mean + drift + cell
    assert held[:-1].min() >= (mean - drift) / 2 - cell


def test_a_spike_is_alone():
    counts = np.ones(100)
    counts[40] = 300
    groups = cut_at_quantiles(counts, 6)
    assert np.flatnonzero(groups == groups[40]).tolist() == [40]


@given(released_counts, st.integers(2, 20), st.floats(0, 100))
def test_frequent_values_stay_apart_and_rare_ones_pool(counts: np.ndarray, most: int, rare: float):
    groups = pool_rare(counts, most, rare)
    sizes = np.bincount(groups)
    assert (sizes > 0).all()  # numbered without gaps
    assert len(sizes) <= max(most, 1) or len(counts) <= most
    pooled = np.flatnonzero(sizes[groups] > 1)
    if len(pooled):
        assert len(set(groups[pooled])) == 1
        assert groups[pooled[0]] == groups.max()
        apart = np.setdiff1d(np.arange(len(counts)), pooled)
        assert (counts[apart] >= rare).all()
        # Nothing pooled was counted more often than something kept, unless it is below `rare` all the same.
        if len(apart):
            assert counts[pooled].max() <= counts[apart].min() or counts[pooled].max() < rare


COLUMNS = [
    Integer(low=0, high=4, missing=True),
    Integer(low=-50, high=5000),
    Real(low=0, high=1, missing=True, zero_inflated=True),
    Ordinal(values=tuple("abcdefgh")),
    Categorical(values=tuple(map(str, range(90))), missing=True),
    Boolean(missing=True),
    Integer(low=0, high=99, bins=(0, 10, 20, 60), missing=True),
    Categorical(values=("only",)),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.kind)
@given(seed=st.integers(0, 2**32), bins=st.integers(2, 32), most=st.integers(2, 64), rare=st.floats(0, 50))
def test_every_column_is_grouped_within_limits(column, seed: int, bins: int, most: int, rare: float):
    cells = cells_of(column)
    rng = np.random.default_rng(seed)
    counts = rng.exponential(rng.choice([0.1, 10.0, 1e3]), cells.count) * (rng.random(cells.count) < 0.7)
    groups = coarse_groups(cells, counts, bins=bins, most_codes=most, rare=rare)
    assert len(groups) == cells.count
    assert sorted(set(groups)) == list(range(groups.max() + 1))
    if cells.missing:
        assert np.flatnonzero(groups == groups[-1]).tolist() == [cells.count - 1]
        assert groups[-1] == groups.max()
    values = groups[: cells.values]
    if cells.ordered:
        assert (np.diff(values) >= 0).all()
        assert values.max() < bins  # what the plan reckons with
        if cells.bins is not None:
            assert not np.diff(values)[np.diff(cells.bins) == 0].any()  # no cut inside a public bin
    else:
        assert values.max() < max(most, 2)


def test_public_bins_win_over_quantiles():
    cells = cells_of(Integer(low=0, high=9, bins=(0, 3, 8)))
    groups = coarse_groups(cells, np.arange(10.0), bins=3, most_codes=64, rare=0.0)
    assert groups.tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    joined = coarse_groups(cells, np.arange(10.0), bins=2, most_codes=64, rare=0.0)
    assert joined.tolist() in ([0] * 3 + [1] * 7, [0] * 8 + [1] * 2)
