"""Common values inside fine cells: found where they are, charged as planned, and never moved by more than the bound.

Each privacy check is a function that also runs on code with a bug planted in it, where it must fail.
"""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.cli.plan import looked_for
from understudy.privacy import Budget, Gaussian, Ledger, Streams, accountant, noise_multiplier
from understudy.schema import Categorical, Datetime, Integer, Real, Schema
from understudy.synthesizers import smooth as smooth_module
from understudy.synthesizers import spikes as spikes_module
from understudy.synthesizers import zoom as zoom_module
from understudy.synthesizers.columns import column_facts, plan_columns, release_columns
from understudy.synthesizers.one_way import fine_cells, release_one_way
from understudy.synthesizers.zoom import plan_zoom, reach_of, zoom_in
from understudy.table.cells import cells_of, refined, roundest
from understudy.table.read import read_table

ROWS = 20_000
SCHEMA = Schema(
    rows=ROWS,
    columns={
        "pay": Integer(low=0, high=250_000, missing=True),
        "fee": Real(low=0.0, high=5_000.0),
        "seen": Datetime(low="2020-01-01", high="2024-01-01"),
        "town": Categorical(values=("a", "b")),
    },
)
OPEN = Budget(1e6, 1e-6)
VALUES = {"pay": 31_417, "fee": 123.45}


def frame(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """A third of `pay` and a quarter of `fee` stand on one value, `seen` on noon of one day in five; the rest is
    spread evenly."""
    rng = np.random.default_rng(seed)
    pay = pd.array(np.where(rng.random(rows) < 1 / 3, VALUES["pay"], rng.integers(0, 250_001, rows)), dtype="Int64")
    pay[rng.random(rows) < 0.1] = pd.NA
    seconds = np.where(rng.random(rows) < 0.2, 43_200 + 86_400 * 100, rng.integers(0, 1461 * 86_400, rows))
    return pd.DataFrame(
        {
            "pay": pay,
            "fee": np.where(rng.random(rows) < 1 / 4, VALUES["fee"], rng.uniform(0, 5_000, rows)),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(seconds, unit="s"),
            "town": rng.choice(["a", "b"], rows),
        }
    )


@pytest.fixture(scope="module")
def table():
    return read_table(frame(), SCHEMA)


def released(table, seed: int = 0, epsilon: float = 1.0):
    ledger = Ledger(Budget(epsilon, 1e-6))
    z = noise_multiplier(ledger.budget)
    return release_columns(table, SCHEMA, noise_multiplier=z, streams=Streams.from_seed(seed), ledger=ledger), ledger


@pytest.mark.parametrize("seed", [0, 1])
def test_values_that_many_rows_share_get_cells_of_their_own(table, seed: int) -> None:
    one_way, _ = released(table, seed)
    for name, value, share in (("pay", 31_417, 0.3), ("fee", np.float32(123.45), 0.25)):
        cells = one_way.cells[name]
        cell = int(cells.index(np.array([value], dtype=cells.dtype))[0])
        assert cells.place(np.full(5, cell), np.random.default_rng(0)).tolist() == [value] * 5
        assert one_way.counts[name][cell] == pytest.approx(share * ROWS, rel=0.08)
    cells = one_way.cells["seen"]
    noon = np.array([43_200 + 86_400 * 100], dtype=cells.dtype)
    assert cells.widths[cells.index(noon)] == 1
    assert len(one_way.cells["town"].starts) == 2


def test_values_of_many_digits_are_counted_where_they_are() -> None:
    """Scores of a formula: no short number stands for them, and rows must still fall into the cell that was found."""
    values = np.sin(np.arange(1.0, 7.0))
    column = np.random.default_rng(0).choice(values, ROWS, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    schema = Schema(rows=ROWS, columns={"score": Real(low=-1.0, high=1.0)})
    table = read_table(pd.DataFrame({"score": column}), schema)
    ledger = Ledger(Budget(1.0, 1e-6))
    z = noise_multiplier(ledger.budget)
    one_way = release_columns(table, schema, noise_multiplier=z, streams=Streams.from_seed(0), ledger=ledger)
    cells = one_way.cells["score"]
    found = cells.index(values.astype(np.float32))
    held = np.array([(column == value).sum() for value in values])
    np.testing.assert_allclose(one_way.counts["score"][found], held, atol=0.01 * ROWS)
    placed = cells.place(found, np.random.default_rng(0))
    np.testing.assert_allclose(placed, values, rtol=1e-5)
    assert len(set(cells.place(np.repeat(found[0], 9), np.random.default_rng(0)).tolist())) == 1
    assert (cells.index(placed) == found).all()


def lattice(rows: int) -> tuple[np.ndarray, Schema, object]:
    """Two hundred values in narrow cells, and nothing beside them."""
    values = 7 + 45 * np.arange(200)
    schema = Schema(rows=rows, columns={"warmth": Integer(low=0, high=9_500)})
    table = read_table(pd.DataFrame({"warmth": np.random.default_rng(0).choice(values, rows)}), schema)
    return values, schema, table


def check_lattice(rows: int, found_at_least: float) -> None:
    values, schema, table = lattice(rows)
    ledger = Ledger(Budget(1.0, 1e-6))
    z = noise_multiplier(ledger.budget)
    one_way = release_columns(table, schema, noise_multiplier=z, streams=Streams.from_seed(0), ledger=ledger)
    cells = one_way.cells["warmth"]
    found = cells.index(values.astype(cells.dtype))
    held = one_way.counts["warmth"]
    assert (cells.widths[found] == 1).mean() > found_at_least
    assert held[found].sum() > 0.95 * rows
    assert held[np.setdiff1d(np.flatnonzero(cells.widths == 1), found)].sum() < spikes_module.FALSE_SHARE * rows


def test_a_lattice_of_many_values_is_found() -> None:
    """All of them, not only as many cells as a look could divide."""
    check_lattice(ROWS, 0.98)


def test_where_many_values_stand_out_fainter_ones_are_found_too() -> None:
    """Some 3.5 times the noise each: none of them would stand out alone."""
    _, schema, _ = lattice(ROWS // 2)
    z = noise_multiplier(Budget(1.0, 1e-6))
    zoom = plan_columns(column_facts(schema), schema.rows, z).zoom
    assert 3 * zoom.noise < schema.rows / 200 < 0.75 * zoom.least
    check_lattice(ROWS // 2, 0.8)


def fixed(limit: float):
    return lambda scores, *_: scores >= limit


def test_a_fixed_limit_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """High ones lose values of a lattice, low ones find values in a smooth column."""
    for module in (zoom_module, spikes_module, smooth_module):
        monkeypatch.setattr(module, "stand_out", fixed(5.0))
    with pytest.raises(AssertionError):
        check_lattice(ROWS // 2, 0.8)
    for module in (zoom_module, spikes_module, smooth_module):
        monkeypatch.setattr(module, "stand_out", fixed(2.5))
    with pytest.raises(AssertionError):
        check_smooth()


def test_floats_are_found_to_the_last_digit() -> None:
    """Sixty numbers of a formula, some close to 0, where floats are a thousand times as dense."""
    values = np.unique(np.sin(np.arange(1.0, 61.0) ** 2).astype(np.float32))
    column = np.random.default_rng(0).choice(values, 4 * ROWS)
    schema = Schema(rows=4 * ROWS, columns={"score": Real(low=-2.0, high=2.0)})
    table = read_table(pd.DataFrame({"score": column}), schema)
    ledger = Ledger(Budget(1.0, 1e-6))
    z = noise_multiplier(ledger.budget)
    one_way = release_columns(table, schema, noise_multiplier=z, streams=Streams.from_seed(0), ledger=ledger)
    cells = one_way.cells["score"]
    placed = cells.place(cells.index(values), np.random.default_rng(0))
    assert (placed == values).mean() > 0.9


def test_a_column_keeps_what_its_cells_held(table) -> None:
    streams, ledger = Streams.from_seed(3), Ledger(OPEN)
    cells = fine_cells(SCHEMA)
    before = release_one_way(table, cells, noise_multiplier=3.0, streams=streams, ledger=ledger)
    zoom = plan_zoom(reach_of(cells), ROWS, 3.0)
    after = zoom_in(table, before, zoom, streams=streams, ledger=ledger)
    for name, old in cells.items():
        new = after.cells[name]
        parents = np.searchsorted(old.starts, new.starts, side="right") - 1
        parents = np.append(parents, np.full(int(new.missing), old.values))
        assert np.isin(old.starts, new.starts).all()
        assert np.bincount(parents, weights=after.counts[name]) == pytest.approx(before.counts[name], abs=1e-6)
        assert (after.counts[name] >= 0).all()


def check_smooth() -> None:
    smooth = frame()
    rng = np.random.default_rng(1)
    smooth["pay"], smooth["fee"] = rng.integers(0, 250_001, ROWS), rng.uniform(0, 5_000, ROWS)
    one_way, _ = released(read_table(smooth, SCHEMA))
    public = fine_cells(SCHEMA)
    for name in ("pay", "fee"):
        assert len(one_way.cells[name].starts) == len(public[name].starts)


def test_a_smooth_column_gets_no_cells() -> None:
    check_smooth()


def test_the_charge_is_that_of_one_gaussian_release(table) -> None:
    for epsilon in (0.5, 1.0, 4.0):
        _, ledger = released(table, epsilon=epsilon)
        z = noise_multiplier(ledger.budget)
        planned = plan_columns(column_facts(SCHEMA), ROWS, z)
        assert planned.rounding.scales
        assert planned.zoom.columns
        assert accountant.flatten(ledger.events) == accountant.flatten(planned.events)
        assert sum(1 / event.noise_multiplier**2 for event in planned.events) == pytest.approx(1 / z**2, rel=1e-12)
        assert epsilon * 0.999 <= accountant.epsilon(ledger.events, 1e-6).value <= epsilon * (1 + 1e-9)


def test_the_charge_is_the_same_whatever_is_found(table) -> None:
    """A table of one row has nothing to look into, and is charged all the same."""
    _, full = released(table)
    one_way, single = released(read_table(frame().iloc[:1], SCHEMA))
    assert full.events == single.events
    assert len(one_way.cells["pay"].starts) == len(fine_cells(SCHEMA)["pay"].starts)


def test_few_rows_leave_the_whole_budget_to_the_tables() -> None:
    few = plan_columns(column_facts(SCHEMA), 60, 5.0)
    assert (few.rounding.scales, few.zoom.columns, few.events) == ({}, (), [Gaussian(5.0)])


def check_sensitivity(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """One row less moves all counts of a look by at most the stated sensitivity, given what was released before.

    The sensitivities of all looks.
    """
    rows = frame(3_000)
    streams, ledger = Streams.from_seed(3), Ledger(OPEN)
    cells = fine_cells(SCHEMA)
    table = read_table(rows, SCHEMA)
    one_way = release_one_way(table, cells, noise_multiplier=0.1, streams=streams, ledger=ledger)
    zoom = plan_zoom(reach_of(cells), ROWS, 0.1)
    fixed: list[np.ndarray] = []

    def looks(part: pd.DataFrame) -> list[tuple[np.ndarray, float]]:
        seen: list[tuple[np.ndarray, float]] = []

        def answer(counts: np.ndarray, *, l2_sensitivity: float, **_: object) -> np.ndarray:
            seen.append((counts, l2_sensitivity))
            return fixed[len(seen) - 1] if fixed else counts.astype(float)

        monkeypatch.setattr(zoom_module, "gaussian", answer)
        zoom_in(read_table(part, SCHEMA), one_way, zoom, streams=streams, ledger=ledger)
        return seen

    first = looks(rows)
    fixed = [counts.astype(float) for counts, _ in first]
    assert len(fixed) == zoom.looks
    furthest = 0.0
    for row in range(30):
        for (whole, sensitivity), (less, _) in zip(looks(rows), looks(rows.drop(index=row)), strict=True):
            moved = math.sqrt(float(((whole - less) ** 2).sum()))
            assert moved <= sensitivity * (1 + 1e-12)
            furthest = max(furthest, moved)
    assert furthest > 1  # rows that stand on the values of several columns were among them
    return [sensitivity for _, sensitivity in first]


def test_one_row_moves_the_counts_by_no_more_than_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = check_sensitivity(monkeypatch)
    assert stated == [math.sqrt(3), math.sqrt(2)]  # `pay` is told after one look, and pays for no noise of the next


def test_a_row_that_counts_in_several_parts_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def cumulative(self: object, codes: np.ndarray) -> np.ndarray:
        place = np.searchsorted(self.starts, codes, side="right") - 1
        return np.cumsum(np.bincount(place[place >= 0], minlength=len(self.starts)))

    monkeypatch.setattr(zoom_module.Runs, "count", cumulative)
    with pytest.raises(AssertionError):
        check_sensitivity(monkeypatch)


def test_noise_for_one_column_less_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    real = zoom_module._release

    def forgetful(table: object, parts: dict, zoom: object, **rest: object) -> dict:
        def sqrt(columns: float) -> float:
            return math.sqrt(columns - 1)

        monkeypatch.setattr(zoom_module, "math", SimpleNamespace(sqrt=sqrt))
        return real(table, parts, zoom, **rest)

    monkeypatch.setattr(zoom_module, "_release", forgetful)
    with pytest.raises(AssertionError):
        check_sensitivity(monkeypatch)


def test_a_model_keeps_its_values_when_saved(tmp_path, table) -> None:
    for method in ("independent", "mixture"):
        model = us.fit(table, SCHEMA, method=method, epsilon=1.0, **({"steps": 10} if method == "mixture" else {}))
        assert model.released.cuts.keys() >= {"pay", "fee"}
        model.save(tmp_path / "model.understudy")
        again = us.load(tmp_path / "model.understudy")
        rows = again.sample(2_000, seed=0)
        pd.testing.assert_frame_equal(rows, model.sample(2_000, seed=0))
        assert (rows["pay"] == VALUES["pay"]).mean() == pytest.approx(0.3, abs=0.05)
        assert np.isclose(rows["fee"], VALUES["fee"], rtol=1e-6).mean() == pytest.approx(0.25, abs=0.05)
        given = again.sample(50, seed=0, where={"pay": VALUES["pay"]})
        assert (given["pay"] == VALUES["pay"]).all()
        (block,) = read_table(frame(200, seed=9), SCHEMA).blocks(200)
        assert np.isfinite(again.released.log_prob(block)).any()


def test_a_plan_says_what_is_looked_for() -> None:
    zoom = plan_columns(column_facts(SCHEMA), ROWS, 3.0).zoom
    assert looked_for(SCHEMA, 3.0) == (
        f"those that {zoom.least:,.0f} rows or more share are looked for in 3 columns; round numbers are counted in 3 "
        "columns"
    )
    few = SCHEMA.model_copy(update={"rows": 60})
    assert looked_for(few, 3.0) == "common ones are not looked for inside cells"


def test_without_privacy_values_are_found_too(table) -> None:
    model = us.fit(table, SCHEMA, method="independent", epsilon=math.inf)
    assert "pay" in model.released.cuts


def test_cuts_keep_bins_and_pass_over_what_is_outside() -> None:
    cells = cells_of(Integer(low=0, high=9_999, bins=(5_000,)))
    finer = refined(cells, np.array([4_999, 5_001, 10_000, 70_000], dtype=np.uint64))
    assert np.isin([4_999, 5_001], finer.starts).all()
    assert finer.starts.max() < 10_000
    assert finer.bins[finer.starts < 5_000].max() < finer.bins[finer.starts >= 5_000].min()
    codes = np.arange(10_000, dtype=np.uint16)
    assert (finer.starts[finer.index(codes)] <= codes).all()


@pytest.mark.parametrize(
    ("first", "end", "expected"),
    [(7.8954, 7.8961, 7.896), (99.96, 100.02, 100.0), (-3.259, -3.241, -3.25), (0.00012, 0.00018, 0.00014)],
)
def test_the_roundest_number_lies_inside(first: float, end: float, expected: float) -> None:
    found = roundest(first, end)
    assert np.float32(first) <= found < np.float32(end)
    assert found == np.float32(expected)
