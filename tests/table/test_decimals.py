"""Masses of decimals: sums, draws and densities that agree with each other for any bounds."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.schema import Integer, Real
from understudy.table.cells import Cells, cells_of, refined
from understudy.table.decimals import DecimalGrain, Decimals, decimals_of

BOUNDS = [(0.0, 3.0), (0.0, 30.0), (-50.0, 200.0), (10.0, 100.0), (0.05, 1.0), (-1.0, 1.0), (1e6, 3e6), (0.0, 2e-6)]


def some_grain(low: float, high: float, seed: int = 0) -> DecimalGrain:
    scale = decimals_of(Real(low=low, high=high))
    return scale.weighted(np.random.default_rng(seed).uniform(0.1, 3.0, scale.classes))


@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_number_but_zero_is_in_one_class(bounds: tuple[float, float]):
    scale = decimals_of(Real(low=bounds[0], high=bounds[1]))
    points = scale.points(np.arange(scale.steps.size))
    assert (np.diff(points) > 0).all()
    assert points[0] >= np.float32(scale.low)
    assert points[-1] <= np.float32(scale.high)
    found = scale.classes_of(points)
    assert ((found == -1) == (points == 0)).all()
    assert (found < scale.steps.classes).all()
    beside = np.nextafter(points[:-1], np.float32(np.inf))
    found = scale.classes_of(beside)
    assert (found >= scale.steps.classes)[np.abs(beside) > 1.001 / 10.0**scale.places].all()
    assert (scale.classes_of(np.array([np.nan], dtype=np.float32)) == -1).all()


@given(st.decimals(-49, 199, places=2))
def test_decimals_are_told_by_their_digits(number):
    scale = decimals_of(Real(low=-50, high=200))
    assert scale.places == 2
    (found,) = scale.classes_of(np.array([float(number)], dtype=np.float32))
    step = int(number * 100)
    if step == 0:
        assert found == -1
        return
    decade = next(d for d in range(len(scale.steps.decades)) if scale.steps.starts[d + 1] > found)
    unit = scale.steps.decades[decade].units[found - scale.steps.starts[decade]]
    assert len(str(abs(step))) == len(str(scale.steps.decades[decade].units[-1]))
    assert step % unit == 0
    assert not any(step % larger == 0 for larger in scale.steps.decades[decade].units if larger > unit)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_even_weights_are_what_is_spread_alone(bounds: tuple[float, float]):
    scale = decimals_of(Real(low=bounds[0], high=bounds[1]))
    weights = np.append(np.zeros(scale.steps.classes), np.ones(len(scale.steps.decades)))
    grain = scale.weighted(weights)
    ends = np.sort(np.random.default_rng(0).uniform(*bounds, (50, 2)).astype(np.float32), axis=1)
    first, last = ends[:, 0], ends[:, 1]
    np.testing.assert_allclose(grain.spread_over(first, last), last.astype(float) - first, rtol=1e-5, atol=1e-12)
    assert (grain.heaped_on(first, last) == 0).all()


@settings(max_examples=30)
@given(st.sampled_from(BOUNDS), st.integers(0, 99))
def test_masses_of_runs_are_those_of_their_multiples(bounds: tuple[float, float], seed: int):
    grain = some_grain(*bounds, seed)
    points = grain.scale.points(np.arange(grain.scale.steps.size))
    masses = grain.heaps.of_codes(np.arange(len(points))) / 10.0**grain.scale.places
    rng = np.random.default_rng(seed)
    ends = np.sort(np.append(rng.uniform(*bounds, (20, 2)), rng.choice(points, (20, 2)), axis=0), axis=1)
    ends = np.clip(ends.astype(np.float32), points[0], points[-1])
    found = grain.heaped_on(ends[:, 0], ends[:, 1])
    expected = [masses[(points >= first) & (points <= last)].sum() for first, last in ends]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=masses.min() * 1e-3)


@settings(max_examples=20)
@given(st.sampled_from(BOUNDS), st.integers(0, 99))
def test_draws_follow_the_masses(bounds: tuple[float, float], seed: int):
    grain = some_grain(*bounds, seed)
    rng = np.random.default_rng(seed)
    first, last = np.sort(rng.uniform(*bounds, 2)).astype(np.float32)
    n = 20_000
    drawn = grain.place(np.full(n, first), np.full(n, last), rng)
    assert drawn.dtype == np.float32
    assert (drawn >= first).all()
    assert (drawn <= last).all()
    edges = np.linspace(first, last, 9)
    held = grain.spread_over(edges[:-1], edges[1:])
    inner = np.nextafter(edges.astype(np.float32), np.float32(np.inf))
    held = held + grain.heaped_on(np.append(first, inner[1:-1]), edges[1:].astype(np.float32))
    found = np.histogram(drawn, np.append(first, inner[1:]))[0] / n
    assert np.abs(found - held / held.sum()).max() < 6 * np.sqrt(0.25 / n)
    heaped = grain.heaped_on(first[None], last[None])[0]
    on_points = (grain.scale.nearest(drawn)[1] == drawn).mean()
    assert on_points == pytest.approx(heaped / held.sum(), abs=0.03)


@pytest.mark.parametrize(
    ("column", "decimals"),
    [
        (Real(low=0, high=3), Decimals(0.0, 3.0, 4)),
        (Real(low=-50, high=200), Decimals(-50.0, 200.0, 2)),
        (Real(low=0, high=1), Decimals(0.0, 1.0, 5)),
        (Real(low=0, high=3, resolution=0.01), None),
        (Real(low=2016.5, high=2016.9), None),  # five digits make four steps of it
        (Real(low=-3e38, high=3e38), None),
        (Real(low=0, high=1e-38), None),
        (Integer(low=0, high=3), None),
    ],
)
def test_which_columns_have_decimals(column, decimals):
    assert decimals_of(column) == decimals


def all_floats(first: float, last: float) -> np.ndarray:
    ends = np.array([first, last], dtype=np.float32).view(np.int32)
    return np.arange(ends[0], ends[1] + 1, dtype=np.int32).view(np.float32)


def narrow_cells() -> Cells:
    """A column of which every float can be looked at."""
    return cells_of(Real(low=0.99, high=1.01, missing=True), most=16)


def test_probabilities_of_all_floats_sum_to_one():
    """A density times the width of what is rounded to a float; the missing code has a cell of its own."""
    cells = dataclasses.replace(narrow_cells(), grain=some_grain(0.99, 1.01))
    assert cells.grain.scale.places == 4
    codes = all_floats(0.99, 1.01)
    index = cells.index(codes)
    chance = np.exp(cells.log_shares(codes, index)) * np.spacing(codes)
    np.testing.assert_allclose(np.bincount(index, weights=chance), np.ones(cells.values), rtol=2e-4)
    missing = np.array([np.nan], dtype=np.float32)
    assert cells.log_shares(missing, cells.index(missing)).tolist() == [0.0]
    # It can fail: without the masses of decimals, much is missing.
    bare = cells.grain.densities[cells.grain.scale.decade_of(codes)] / cells.sizes[index] * np.spacing(codes)
    assert np.bincount(index, weights=bare).max() < 0.95


def test_cells_draw_their_own_codes():
    cells = dataclasses.replace(narrow_cells(), grain=some_grain(0.99, 1.01))
    wanted = np.repeat(np.arange(cells.count), 200)
    placed = cells.place(wanted, np.random.default_rng(0))
    np.testing.assert_array_equal(cells.index(placed), wanted)


def test_a_common_value_has_a_cell_of_its_own_and_leaves_the_rest_theirs():
    column = Real(low=0, high=3)
    grain = some_grain(0, 3)
    cells = dataclasses.replace(cells_of(column), grain=grain)
    value = np.float32(0.33)
    cut = refined(cells, np.array([value, np.nextafter(value, np.float32(1))]))
    assert cut.grain is grain
    (cell,) = cut.index(np.array([value]))
    assert cut.points[cell] == value
    assert cut.log_shares(np.array([value]), np.array([cell])).tolist() == [0.0]
    drawn = cut.place(np.repeat([cell - 1, cell, cell + 1], 300), np.random.default_rng(0))
    assert (drawn[300:600] == value).all()
    assert (drawn[:300] < value).all()
    assert (drawn[600:] > value).all()


@st.composite
def columns_of_reals(draw) -> Real:
    low = draw(st.floats(-1e4, 1e4, width=32) | st.floats(-1, 1) | st.just(0.0))
    width = draw(st.floats(0.1, 1e6) | st.sampled_from([1.0, 10.0, 100.0]))
    high = low + width
    inside = low <= 0 <= high
    return Real(low=low, high=high, log=draw(st.booleans()) and low >= 0, zero_inflated=inside and draw(st.booleans()))


@settings(max_examples=100)
@given(columns_of_reals(), st.integers(0, 99))
def test_cells_of_any_bounds_have_sizes_and_draw_their_own_codes(column: Real, seed: int):
    scale = decimals_of(column)
    if scale is None:
        return
    rng = np.random.default_rng(seed)
    grain = scale.weighted(10.0 ** rng.uniform(-6, 3, scale.classes))
    cells = dataclasses.replace(cells_of(column, most=64), grain=grain)
    assert (cells.sizes > 0).all()
    wanted = np.repeat(np.arange(cells.values), 5)
    placed = cells.place(wanted, rng)
    np.testing.assert_array_equal(cells.index(placed), wanted)
    assert np.isfinite(cells.log_shares(placed, wanted)).all()
    for cell in np.flatnonzero(np.isnan(cells.points)):
        first, end = float(cells.starts[cell]), float(np.append(cells.starts[1:], cells.end)[cell])
        assert cells.share_of_reals(cell, first, end) == pytest.approx(1.0)
        middle = float(np.float32((first + end) / 2))
        parts = cells.share_of_reals(cell, first, middle) + cells.share_of_reals(cell, middle, end)
        heaped = grain.heaped_on(np.array([middle]), np.array([middle]))[0] / cells.sizes[cell]
        assert parts - heaped == pytest.approx(1.0)  # a decimal in the middle is in both


def test_a_cell_that_is_tiny_beside_the_bounds_still_has_a_size():
    column = Real(low=-1, high=1.1e-16, zero_inflated=True)
    cells = dataclasses.replace(cells_of(column, most=64), grain=some_grain(column.low, column.high))
    assert cells.starts[-1] == np.nextafter(np.float32(0), np.float32(1))
    assert (cells.sizes > 0).all()
