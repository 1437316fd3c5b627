"""Decimals of reals without a resolution: as frequent in synthetic rows as in real ones, counted within the bound.

Each privacy check is a function that also runs on code with a bug planted in it, where it must fail.
"""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from rounding_checks import check_post_processing, check_sensitivity

import understudy as us
from understudy.errors import ModelFileError, OptionError
from understudy.privacy import Budget, Ledger, Streams
from understudy.schema import Categorical, Integer, Real, Schema
from understudy.synthesizers import rounding as rounding_module
from understudy.synthesizers.columns import released_cells
from understudy.synthesizers.decimal_weights import decimal_grain_of
from understudy.synthesizers.evidence import conditions
from understudy.synthesizers.rounding import RoundCounts, Rounding, plan_rounding, release_rounding, scales_of
from understudy.table.cells import cells_of
from understudy.table.decimals import Decimals, decimals_of
from understudy.table.read import read_table

ROWS = 4_000
SCHEMA = Schema(
    rows=ROWS,
    columns={
        "rate": Real(low=0.0, high=3.0, missing=True),
        "change": Real(low=-50.0, high=50.0),
        "mass": Real(low=0.0, high=30.0, log=True),
        "age": Integer(low=0, high=120),
        "town": Categorical(values=("a", "b")),
    },
)


def frame(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Four rates of five are hundredths, nine changes of ten are tenths, masses are anything."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(9, 0.04, rows).clip(0.01, 2.9)
    rate = np.where(rng.random(rows) < 0.8, np.round(rate, 2), rate)
    change = rng.normal(0, 12, rows).clip(-49, 49)
    return pd.DataFrame(
        {
            "rate": np.where(rng.random(rows) < 0.05, np.nan, rate),
            "change": np.where(rng.random(rows) < 0.9, np.round(change, 1), change),
            "mass": rng.gamma(3, 1.5, rows).clip(0.01, 29),
            "age": rng.integers(0, 99, rows),
            "town": rng.choice(["a", "b"], rows),
        }
    )


@pytest.fixture(scope="module")
def table():
    return read_table(frame(), SCHEMA)


def shares(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Of rates in hundredths, changes in tenths, masses in tenths."""
    return tuple(
        float((rows[name].dropna() == rows[name].dropna().round(places)).mean())
        for name, places in (("rate", 2), ("change", 1), ("mass", 1))
    )


@pytest.mark.parametrize("method", ["independent", "mixture"])
def test_synthetic_decimals_are_as_short_as_real_ones(table, method: str, tmp_path) -> None:
    options = {"steps": 10} if method == "mixture" else {}
    model = us.fit(table, SCHEMA, method=method, epsilon=3.0, seed=3, **options)
    rows = model.sample(ROWS, seed=0)
    # Without it next to none are. Cells between decimals keep some of the noise above nothing.
    np.testing.assert_allclose(shares(rows), shares(frame()), atol=0.1)
    model.save(tmp_path / "model.understudy")
    pd.testing.assert_frame_equal(us.load(tmp_path / "model.understudy").sample(ROWS, seed=0), rows)


def test_without_privacy_decimals_are_kept_too(table) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=math.inf)
    np.testing.assert_allclose(shares(model.sample(ROWS, seed=0)), shares(frame()), atol=0.05)


def test_columns_are_as_wide_as_before(table) -> None:
    """Decimals move no mass from one part of a column to another."""
    model = us.fit(table, SCHEMA, method="independent", epsilon=3.0, seed=3)
    rows, real = model.sample(ROWS, seed=0), frame()
    for name in ("rate", "change", "mass"):
        edges = real[name].quantile(np.linspace(0.1, 0.9, 9)) + 1e-4
        found, expected = (np.searchsorted(edges, part[name].dropna()) for part in (rows, real))
        distance = np.abs(np.bincount(found) / len(found) - np.bincount(expected) / len(expected)).sum() / 2
        assert distance < 0.06


# --- conditions and scores ---


@pytest.fixture(scope="module")
def model(table):
    return us.fit(table, SCHEMA, method="independent", epsilon=3.0, seed=3)


def test_conditions_keep_decimals(model) -> None:
    rows = model.sample(2_000, seed=0, where={"rate": (0.3, 0.4)})
    assert rows["rate"].between(0.3, 0.4).all()
    assert (rows["rate"] == rows["rate"].round(2)).mean() == pytest.approx(0.8, abs=0.08)
    assert set(np.arange(30, 41) / 100) <= set(rows["rate"])  # both ends are among them


def test_conditions_have_the_share_of_rows_that_draws_have(model) -> None:
    """Ends inside cells, on a decimal and beside it: the probability of a range is that of drawing one in it."""
    cells, fine = model.released.cells["rate"], model.released.fine["rate"]
    rng = np.random.default_rng(0)
    drawn = cells.place(rng.choice(cells.count, 400_000, p=fine / fine.sum()), rng)
    for low, high in ((0.3, 0.3), (0.3, 0.34), (0.3001, 0.3399), (0.2999, 0.3401), (0.0, 3.0), (0.25017, 0.25019)):
        pieces = conditions(SCHEMA, {"rate": cells}, {"rate": (low, high)})["rate"]
        share = (fine[pieces.cell] / fine.sum() * pieces.share).sum()
        found = ((drawn >= np.float32(low)) & (drawn <= np.float32(high))).mean()
        assert found == pytest.approx(share, abs=5 * math.sqrt(max(share, 1e-5) / 400_000))
        assert pieces.share.max() <= 1 + 1e-12


def test_a_decimal_may_be_asked_for_and_any_other_number_not(model) -> None:
    assert set(model.sample(50, seed=0, where={"rate": 0.31})["rate"]) == {0.31}
    with pytest.raises(OptionError, match="no single values"):
        model.sample(50, seed=0, where={"rate": 0.3123456})


def test_decimals_are_more_probable_than_their_neighbours(model) -> None:
    codes = np.array([0.31, np.nextafter(np.float32(0.31), np.float32(1))], dtype=np.float32)
    cells = model.released.cells["rate"]
    decimal, beside = cells.log_shares(codes, cells.index(codes))
    assert decimal > beside + 5


# --- what is released ---


def test_few_rows_leave_the_counts_to_columns_of_steps() -> None:
    scales = scales_of(SCHEMA)
    assert {name for name, scale in scales.items() if isinstance(scale, Decimals)} == {"rate", "change", "mass"}
    noise = 5.0 / math.sqrt(rounding_module.SHARE)
    assert plan_rounding(scales, 100_000, 5.0).scales == scales
    assert set(plan_rounding(scales, round(31 * noise), 5.0).scales) == {"age"}
    assert plan_rounding(scales, 100, 5.0) == Rounding({}, 0.0, 5.0)


def check_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame(300)
    rows.loc[:2, ["rate", "change", "mass"]] = [[0.0, 0.0, 0.0], [3.0, -50.0, 30.0], [0.5, 1e-5, 0.1]]
    check_sensitivity(monkeypatch, SCHEMA, rows, columns=4)


def test_one_row_moves_the_counts_by_no_more_than_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    check_rows(monkeypatch)


def test_a_row_that_counts_as_a_decimal_and_as_any_number_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = np.bincount

    def twice(classes: np.ndarray, minlength: int, **options: object) -> np.ndarray:
        """Every row of a decade in the class of its other numbers as well."""
        found = counted(classes, minlength=minlength, **options)
        found[-1] += found[1:-1].sum()
        return found

    monkeypatch.setattr(rounding_module.np, "bincount", twice)
    with pytest.raises(AssertionError):
        check_rows(monkeypatch)


def test_classes_follow_from_the_schema_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows outside of the bounds, missing ones and none at all change no shape."""
    lengths = set()

    def answer(counts, **_: object) -> np.ndarray:
        lengths.add(len(counts))
        return counts.astype(float)

    monkeypatch.setattr(rounding_module, "gaussian", answer)
    rounding = plan_rounding(scales_of(SCHEMA), ROWS, 3.0)
    odd = frame(5).assign(rate=[np.nan, 0.0, 3.0, 1e-30, 0.5], change=[-50.0, 50.0, 0.0, -0.0, 1e-8])
    for rows in (frame(50), odd, frame(5).head(1)):
        release_rounding(
            read_table(rows, SCHEMA), rounding, streams=Streams.from_seed(0), ledger=Ledger(Budget(1, 0.1))
        )
    assert len(lengths) == 1


def test_only_released_numbers_come_out(monkeypatch: pytest.MonkeyPatch, table) -> None:
    check_post_processing(monkeypatch, table, read_table(frame(50, seed=9), SCHEMA))


# --- from counts to weights ---


def grain_for(values: np.ndarray, column: Real, noise: float):
    scale, cells = decimals_of(column), cells_of(column)
    codes = values.astype(np.float32)
    classes = scale.classes_of(codes)
    counts = np.bincount(classes[classes >= 0], minlength=scale.classes)
    noisy = counts + np.random.default_rng(0).normal(0, noise, len(counts))
    exact = np.bincount(cells.index(codes), minlength=cells.count).astype(float)
    return decimal_grain_of(RoundCounts(scale, noisy, noise), cells, [exact], (1.0,))


@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_numbers_of_many_digits_have_no_decimals(noise: float) -> None:
    values = np.random.default_rng(0).uniform(0, 3, 20_000)
    grain = grain_for(values, Real(low=0, high=3), noise)
    assert grain.heaped_on(np.array([0.0]), np.array([3.0]))[0] < 0.03 * 3
    assert grain.densities[-3:].min() > 0.97


def test_one_common_value_says_nothing_of_the_others() -> None:
    """Half of all rates are 0.5: 0.6 is no more frequent for it, nor is any other tenth."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(20_000) < 0.5, 0.5, rng.uniform(0.1, 1, 20_000))
    grain = grain_for(values, Real(low=0, high=1), noise=10.0)
    code = np.array([0.6], dtype=np.float32)
    assert grain.heaped_on(code, code)[0] < 0.01


def test_a_decade_of_few_rows_is_like_the_others() -> None:
    """All rates are hundredths; the few above 1, which noise hides, are too."""
    rng = np.random.default_rng(0)
    values = np.append(np.round(rng.uniform(0.1, 1, 5_000), 2), np.round(rng.uniform(1, 3, 20), 2))
    grain = grain_for(values, Real(low=0, high=3), noise=30.0)
    heaped, spread = grain.heaped_on(np.array([1.005]), np.array([1.995])), grain.spread_over(1.005, 1.995)
    assert heaped[0] / (heaped[0] + spread) > 0.8


def test_every_cell_has_a_size() -> None:
    """Where all rows are whole, cells between whole numbers hold little, but not nothing."""
    column = Real(low=0, high=100)
    grain = grain_for(np.random.default_rng(0).integers(0, 100, 50_000).astype(float), column, noise=1.0)
    cells = cells_of(column)
    sizes = dataclasses.replace(cells, grain=grain).sizes
    assert sizes.min() > 5e-4 * cells.widths.min()
    assert sizes.sum() == pytest.approx(100, rel=0.05)


# --- files ---


@pytest.mark.parametrize("weights", [np.ones(3), np.full(30, -1.0), np.full(30, 0.0), np.full(30, np.nan)])
def test_damaged_weights_are_refused(weights: np.ndarray) -> None:
    assert scales_of(SCHEMA)["rate"].classes == 30
    with pytest.raises(ValueError, match="'rate'"):
        released_cells(SCHEMA, {}, {"rate": weights})


def test_a_damaged_file_is_refused(table, tmp_path) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=1.0, seed=3)
    model.released.grains["rate"] = model.released.grains["rate"][:-1]
    model.save(tmp_path / "model.understudy")
    with pytest.raises(ModelFileError):
        us.load(tmp_path / "model.understudy")
