"""Runs of codes: parts are disjoint, hold every code of their run once, and are never more than there is time for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.schema import Integer, Real
from understudy.synthesizers.runs import FEWEST_PARTS, MOST_OF_A_RUN, Runs, all_runs, divide_all, fair_level
from understudy.table.cells import cells_of

COLUMNS = {
    "steps": Integer(low=0, high=250_000),
    "few": Integer(low=-3, high=9_000),
    "reals": Real(low=-4.0, high=4.0),
    "log": Real(low=0.0, high=1e6, log=True),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("most", [1, 7, 128, 5_000])
def test_parts_hold_every_code_of_their_run_once(name: str, most: int) -> None:
    cells = cells_of(COLUMNS[name])
    runs = all_runs(cells).take(np.array([0, 3, 4, cells.values - 1]))
    parts = runs.divide(most)
    assert (parts.starts < parts.ends).all()
    assert (parts.ends[:-1] <= parts.starts[1:]).all()
    assert parts.codes.sum() == runs.codes.sum()
    assert len(parts.starts) <= most * len(runs.starts)
    inside = np.searchsorted(runs.starts, parts.starts, side="right") - 1
    assert (parts.ends <= runs.ends[inside]).all()


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 300))
def test_floats_are_told_one_by_one_where_there_are_few(first: float, codes: int) -> None:
    """Also across zero and across powers of two, where their distance changes."""
    floats = [np.float32(first)]
    for _ in range(codes):
        floats.append(np.nextafter(floats[-1], np.float32(np.inf)))
    if not np.isfinite(floats[-1]):
        return
    run = Runs(np.array(floats[:1]), np.array(floats[-1:]))
    parts = run.divide(codes)
    np.testing.assert_array_equal(parts.starts, floats[:-1])
    np.testing.assert_array_equal(parts.ends, floats[1:])
    assert (parts.count(np.array([*floats[:-1], np.float32(np.nan)])) == 1).all()


def test_codes_outside_of_all_runs_count_nowhere() -> None:
    runs = Runs(np.array([10, 20], dtype=np.uint64), np.array([15, 21], dtype=np.uint64))
    assert runs.count(np.array([0, 9, 10, 14, 15, 19, 20, 21, 99], dtype=np.uint16)).tolist() == [2, 1]


@pytest.mark.parametrize("most_parts", [1_000, 64_000])
def test_a_look_has_no_more_parts_than_there_is_time_for(most_parts: int) -> None:
    runs = {name: all_runs(cells_of(column)) for name, column in COLUMNS.items()}
    weights = {name: np.arange(len(found.starts)) for name, found in runs.items()}
    parts = divide_all(runs, weights, most_parts)
    held = {name: len(found.starts) for name, found in parts.items()}
    assert sum(held.values()) <= most_parts
    assert sum(held.values()) > 0.8 * most_parts
    assert set(held) == set(COLUMNS)
    # A column of narrow cells leaves what it does not need to the others.
    if most_parts == 64_000:
        assert held["few"] == runs["few"].codes.sum() < most_parts // 4 < held["reals"]


def test_where_runs_are_too_many_the_heaviest_are_divided() -> None:
    runs = Runs(np.arange(0, 10_000, 100, dtype=np.uint64), np.arange(100, 10_001, 100, dtype=np.uint64))
    weights = np.arange(100.0)
    weights[7] = 1_000.0
    parts = divide_all({"a": runs}, {"a": weights}, 5 * FEWEST_PARTS)["a"]
    assert sorted(set((parts.starts // 100).tolist())) == [7, 96, 97, 98, 99]


def test_one_run_is_not_divided_further_than_pays() -> None:
    runs = Runs(np.array([0], dtype=np.uint64), np.array([10**9], dtype=np.uint64))
    assert len(divide_all({"a": runs}, {"a": np.ones(1)}, 10**6)["a"].starts) == MOST_OF_A_RUN


@given(st.lists(st.integers(1, 1_000), min_size=1, max_size=20), st.integers(0, 5_000))
def test_the_fair_level_is_the_largest_that_fits(needs: list[int], most: int) -> None:
    level = fair_level(np.array(needs), most)
    assert np.minimum(needs, level).sum() <= most
    assert level == max(needs) or np.minimum(needs, level + 1).sum() > most
