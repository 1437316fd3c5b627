"""Round numbers: as frequent in synthetic rows as in real ones, and never moved past the bound.

That they are charged as planned is seen with all that is released of columns (`test_zoom`).

Each privacy check is a function that also runs on code with a bug planted in it, where it must fail.
"""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from rounding_checks import check_post_processing, check_sensitivity

import understudy as us
from understudy.errors import ModelFileError
from understudy.privacy import Budget, Ledger, Streams
from understudy.schema import Categorical, Datetime, Integer, Real, Schema
from understudy.synthesizers import rounding as rounding_module
from understudy.synthesizers.columns import released_cells
from understudy.synthesizers.one_way import fine_cells, release_one_way
from understudy.synthesizers.rounding import (
    RoundCounts,
    Rounding,
    grain_of,
    plan_rounding,
    scales_of,
)
from understudy.table.cells import cells_of
from understudy.table.grain import Scale, scale_of
from understudy.table.read import read_table

ROWS = 4_000
SCHEMA = Schema(
    rows=ROWS,
    columns={
        "income": Integer(low=0, high=500_000, missing=True),
        "price": Real(low=-50.0, high=900.0, resolution=0.01),
        "steps": Integer(low=0, high=30_000),
        "town": Categorical(values=("a", "b")),
    },
)


def frame(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Nine incomes of ten are multiples of 500, four of five prices are whole, steps are anything."""
    rng = np.random.default_rng(seed)
    income = np.minimum(rng.lognormal(10, 0.7, rows), 490_000)
    income = np.where(rng.random(rows) < 0.9, np.round(income / 500) * 500, np.round(income)).astype(int)
    price = rng.gamma(3, 40, rows).clip(0, 890)
    return pd.DataFrame(
        {
            "income": pd.array(np.where(rng.random(rows) < 0.05, 0, income), dtype="Int64").copy(),
            "price": np.where(rng.random(rows) < 0.8, np.round(price), np.round(price, 2)),
            "steps": rng.gamma(4, 1_500, rows).clip(0, 30_000).astype(int),
            "town": rng.choice(["a", "b"], rows),
        }
    )


@pytest.fixture(scope="module")
def table():
    return read_table(frame(), SCHEMA)


def shares(rows: pd.DataFrame) -> tuple[float, float, float]:
    income = rows["income"].dropna()
    return (
        float((income % 500 == 0).mean()),
        float(np.isclose(rows["price"] % 1, 0, atol=1e-6).mean()),
        float((rows["steps"] % 10 == 0).mean()),
    )


@pytest.mark.parametrize("method", ["independent", "mixture"])
def test_synthetic_numbers_are_as_round_as_real_ones(table, method: str, tmp_path) -> None:
    options = {"steps": 10} if method == "mixture" else {}
    model = us.fit(table, SCHEMA, method=method, epsilon=3.0, seed=3, **options)
    rows = model.sample(ROWS, seed=0)
    # Without it: next to no multiples of 500 beyond those that stand out by themselves, one whole price in a hundred.
    np.testing.assert_allclose(shares(rows), shares(frame()), atol=0.08)
    model.save(tmp_path / "model.understudy")
    pd.testing.assert_frame_equal(us.load(tmp_path / "model.understudy").sample(ROWS, seed=0), rows)


def test_times_are_as_round_as_real_ones() -> None:
    """Half of all admissions are noted at the quarter of an hour, a fifth without a time, the rest to the second."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 365 * 86_400, ROWS)
    kind = rng.random(ROWS)
    seconds = np.where(kind < 0.5, seconds // 900 * 900, np.where(kind < 0.7, seconds // 86_400 * 86_400, seconds))
    schema = Schema(rows=ROWS, columns={"admitted": Datetime(low="2023-01-01", high="2023-12-31")})
    frame = pd.DataFrame({"admitted": pd.Timestamp("2023-01-01") + pd.to_timedelta(seconds, unit="s")})
    model = us.fit(frame, schema, method="independent", epsilon=1.0, seed=1)
    made = (model.sample(ROWS, seed=0)["admitted"] - pd.Timestamp("2023-01-01")).dt.total_seconds()
    for unit in (86_400, 900, 60):
        assert (made % unit == 0).mean() == pytest.approx((seconds % unit == 0).mean(), abs=0.05)


def test_conditions_keep_round_numbers(table) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=1.0, seed=3)
    rows = model.sample(2_000, seed=0, where={"income": (20_100, 24_900)})
    assert rows["income"].between(20_100, 24_900).all()
    assert (rows["income"] % 500 == 0).mean() == pytest.approx(0.9, abs=0.08)


def test_probabilities_of_all_values_sum_to_one(table) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=1.0, seed=3)
    codes = np.arange(30_001, dtype=np.uint16)
    cells = model.released.cells["steps"]
    index = cells.index(codes)
    fine = model.released.fine["steps"]
    assert np.exp(np.log(fine / fine.sum())[index] + cells.log_shares(codes, index)).sum() == pytest.approx(1.0)


def test_few_rows_leave_the_whole_budget_to_the_tables() -> None:
    scales = scales_of(SCHEMA)
    assert plan_rounding(scales, 100, 5.0) == Rounding({}, 0.0, 5.0)
    assert plan_rounding(scales, 100_000, 5.0).scales == scales
    assert plan_rounding({}, 100_000, 5.0).events == []


def test_one_row_moves_the_counts_by_no_more_than_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    check_sensitivity(monkeypatch, SCHEMA, frame(300), columns=3)


def test_a_row_that_counts_for_every_unit_that_divides_it_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = np.bincount

    def every_unit(classes: np.ndarray, minlength: int, **options: object) -> np.ndarray:
        return counted(classes, minlength=minlength, **options)[::-1].cumsum()[::-1]

    monkeypatch.setattr(rounding_module.np, "bincount", every_unit)
    with pytest.raises(AssertionError):
        check_sensitivity(monkeypatch, SCHEMA, frame(300), columns=3)


def test_only_released_numbers_come_out(monkeypatch: pytest.MonkeyPatch, table) -> None:
    check_post_processing(monkeypatch, table, read_table(frame(50, seed=9), SCHEMA))


def exact_counts(values: np.ndarray, scale: Scale, noise: float, seed: int = 0) -> RoundCounts:
    classes = scale.classes_of(values - scale.low)
    counts = np.bincount(classes[classes >= 0], minlength=scale.classes)
    return RoundCounts(scale, counts + np.random.default_rng(seed).normal(0, noise, len(counts)), noise)


def grain_for(values: np.ndarray, high: int, noise: float):
    column = Integer(low=0, high=high)
    cells = cells_of(column)
    exact = np.bincount(cells.index(values), minlength=cells.count).astype(float)
    return grain_of(exact_counts(values, Scale(0, high + 1), noise), cells, [exact], (1.0,))


def test_values_that_are_not_round_have_no_grain() -> None:
    values = np.random.default_rng(0).integers(0, 10_000, 20_000)
    weights = grain_for(values, 9_999, noise=20.0).of_codes(np.arange(1_000, 10_000))
    assert np.abs(weights - 1).max() < 0.35
    assert weights.mean() == pytest.approx(1.0, abs=0.01)


def test_no_cell_is_without_size_in_the_longest_columns() -> None:
    """Weights far apart and sums over four billion codes: a cell of one unlikely value still has its own."""
    column = Integer(low=0, high=2**32 - 1)
    cells = cells_of(column)
    scale = scale_of(column, 2**32)
    counts = np.zeros(scale.classes)
    counts[-1] = 1e6
    exact = np.zeros(cells.count)
    grain = grain_of(RoundCounts(scale, counts, 1.0), cells, [exact], (1.0,))
    assert grain.weights.min() >= 1e-3
    assert (dataclasses.replace(cells, grain=grain).sizes > 5e-4).all()


def test_one_common_value_says_nothing_of_the_others() -> None:
    """Half of all work 40 hours: 30 and 50 are no more frequent for it."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < 0.5, 40, rng.integers(1, 100, 20_000))
    grain = grain_for(values, 120, noise=10.0)
    assert grain.of_codes(np.array([30, 50])) == pytest.approx([1.0, 1.0], abs=0.3)


def test_a_column_without_a_grain_is_smoothed_by_the_width_of_its_cells() -> None:
    """Cells of one round value beside cells of fifty hold a fiftieth of them, where rows are spread evenly."""
    schema = Schema(rows=5_000, columns={"amount": Integer(low=0, high=100_000)})
    values = np.random.default_rng(0).integers(20_000, 60_000, 5_000)
    table = read_table(pd.DataFrame({"amount": values}), schema)
    found = release_one_way(
        table, fine_cells(schema), noise_multiplier=5.0, streams=Streams.from_seed(0), ledger=Ledger(Budget(1e6, 1e-6))
    )
    cells = found.cells["amount"]
    single = cells.widths == 1
    assert found.counts["amount"][single].sum() < 0.1 * found.total  # treated alike, they had a tenth and more


def test_without_privacy_round_numbers_are_kept_too(table) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=math.inf)
    np.testing.assert_allclose(shares(model.sample(ROWS, seed=0)), shares(frame()), atol=0.03)


@pytest.mark.parametrize("weights", [np.ones(3), np.full(31, -1.0), np.full(31, np.nan)])
def test_damaged_weights_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(ValueError, match="'income'"):
        released_cells(SCHEMA, {}, {"income": weights})


def test_a_damaged_file_is_refused(table, tmp_path) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=1.0, seed=3)
    model.released.grains["income"] = model.released.grains["income"][:-1]
    model.save(tmp_path / "model.understudy")
    with pytest.raises(ModelFileError):
        us.load(tmp_path / "model.understudy")
