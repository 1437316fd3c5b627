"""Weights of round numbers: sums, draws and probabilities that agree with each other for any domain."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.schema import Categorical, Datetime, Integer, Real
from understudy.table.cells import cells_of
from understudy.table.codec import codec
from understudy.table.grain import Grain, Scale, scale_of


def some_grain(low: int, size: int, seed: int = 0) -> Grain:
    scale = Scale(low, size)
    return Grain(scale, np.random.default_rng(seed).uniform(0.1, 3.0, scale.classes))


@given(st.integers(-3_000, 3_000), st.integers(2, 3_000), st.integers(0, 99))
def test_sums_are_those_of_single_codes(low: int, size: int, seed: int):
    grain = some_grain(low, size, seed)
    one_by_one = np.append(0.0, np.cumsum(grain.of_codes(np.arange(size))))
    np.testing.assert_allclose(grain.below(np.arange(size + 1)), one_by_one, rtol=1e-9)


@given(st.integers(-10_000, 10_000), st.integers(2, 5_000))
def test_every_value_but_zero_is_in_one_class(low: int, size: int):
    scale = Scale(low, size)
    found = scale.classes_of(np.arange(size))
    values = np.arange(size) + low
    assert ((found == -1) == (values == 0)).all()
    np.testing.assert_array_equal(np.bincount(found[found >= 0], minlength=scale.classes), scale.values)
    for decade, start in zip(scale.decades, scale.starts[:-1], strict=True):
        for number, unit in enumerate(decade.units):
            assert (values[found == start + number] % unit == 0).all()


def test_a_missing_code_is_in_no_class():
    assert Scale(low=1, size=200).classes_of(np.array([200, 9], dtype=np.uint8)).tolist() == [-1, 3]


@settings(max_examples=20)
@given(st.integers(-200, 200), st.integers(0, 99))
def test_draws_follow_the_weights(low: int, seed: int):
    grain = some_grain(low, 400, seed)
    first, end = 37, 301
    drawn = grain.place(np.full(40_000, first), np.full(40_000, end), np.random.default_rng(seed))
    shares = grain.of_codes(np.arange(400)) * (np.arange(400) >= first) * (np.arange(400) < end)
    expected = shares / shares.sum()
    found = np.bincount(drawn.astype(int), minlength=400) / 40_000
    assert found[expected == 0].sum() == 0
    assert np.abs(found - expected).max() < 6 * np.sqrt(expected.max() / 40_000)


def test_few_draws_and_many_follow_the_same_weights():
    """Many draws search a list of all codes, few do without."""
    grain = some_grain(1, 5_000)
    first, end = np.array([90, 4_000]), np.array([160, 4_950])
    runs = np.repeat([0, 1], 20_000)
    many = grain.place(first[runs], end[runs], np.random.default_rng(0))
    few = [
        grain.place(first[part], end[part], np.random.default_rng(n)) for n, part in enumerate(runs.reshape(-1, 100))
    ]
    edges = np.array([0, 95, 100, 101, 150, 160, 4_199, 4_200, 4_500, 4_900, 5_000])
    shares = [np.histogram(drawn, edges)[0] / len(runs) for drawn in (many, np.concatenate(few))]
    np.testing.assert_allclose(shares[0], shares[1], atol=0.015)


def test_draws_stay_inside_runs_of_any_length():
    grain = some_grain(0, 10**9)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 10**9 - 10**6, 2_000)
    end = first + rng.integers(1, 10**6, 2_000)
    drawn = grain.place(first, end, rng).astype(np.int64)
    assert ((drawn >= first) & (drawn < end)).all()


@pytest.mark.parametrize(
    ("column", "scale"),
    [
        (Integer(low=0, high=99), Scale(0, 100)),
        (Integer(low=0, high=98), None),  # few values show by themselves
        (Integer(low=-5, high=5_000), Scale(-5, 5_006)),
        (Real(low=-1.0, high=20.0, resolution=0.01), Scale(-100, 2_101)),
        (Real(low=0.005, high=20.005, resolution=0.01), None),  # never a multiple of anything
        (Real(low=0.0, high=20.0), None),
        (Integer(low=0, high=2**50), None),
        (Datetime(low="2020-01-01", high="2024-01-01", resolution="day"), None),
        (Datetime(low="2020-01-01 06:00", high="2020-03-01", resolution="hour"), Scale(30, 60 * 24 - 6 + 24, (1, 24))),
        (
            Datetime(low="2020-01-01", high="2020-01-31", resolution="minute"),
            Scale(1440, 31 * 1440, (1, 5, 15, 30, 60, 1440)),
        ),
        (Categorical(values=tuple(map(str, range(200)))), None),
    ],
)
def test_which_columns_have_a_scale(column, scale):
    assert scale_of(column, codec(column).size) == scale


def test_cells_share_out_their_codes_by_the_grain():
    column = Integer(low=0, high=9_999, missing=True)
    plain = cells_of(column, most=64)
    cells = dataclasses.replace(plain, grain=some_grain(0, 10_000))
    assert cells.sizes.sum() == pytest.approx(cells.grain.below(np.array([10_000]))[0])
    codes = np.arange(10_001, dtype=np.uint16)
    index = cells.index(codes)
    chance = np.exp(cells.log_shares(codes, index))
    np.testing.assert_allclose(np.bincount(index, weights=chance), np.ones(cells.count))
    even = np.exp(plain.log_shares(codes, index))
    np.testing.assert_allclose(np.bincount(index, weights=even), np.ones(cells.count))
    placed = cells.place(np.repeat(np.arange(cells.count), 50), np.random.default_rng(0))
    np.testing.assert_array_equal(cells.index(placed), np.repeat(np.arange(cells.count), 50))
