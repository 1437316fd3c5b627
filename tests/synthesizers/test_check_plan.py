"""What cannot be carried out is refused from public facts alone, before anything is spent or a row is read."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import understudy as us
from understudy.errors import DataError, OptionError
from understudy.privacy import BudgetFile
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Schema
from understudy.synthesizers import api, independent
from understudy.synthesizers.marginals import aim, mst
from understudy.synthesizers.mixture import plan

FEW = Schema.loads("rows: 400\ncolumns: {age: {kind: integer, low: 0, high: 99}, ill: {kind: boolean}}")
MANY = Schema.loads(
    "rows: 400\ncolumns: {" + ", ".join(f"c{number}: {{kind: integer, low: 0, high: 9}}" for number in range(12)) + "}"
)


class Untouchable:
    """A source that nobody may open."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("the rows were touched")


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        (FEW, {"method": "mixture", "one_way_share": 1e-30}, "one-way tables of 2 columns: noise_multiplier"),
        (FEW, {"method": "mixture", "epsilon": 1e-17, "delta": 1e-18}, "too large for exact noise"),
        (MANY, {"method": "mixture", "epsilon": 1e-6}, "no amount of noise"),
        (FEW, {"method": "independent", "epsilon": 1e-17, "delta": 1e-18}, "too large for exact noise"),
        (FEW, {"method": "mst", "bins": 65_537}, "bins must be a whole number from 2 to 65536, got 65537"),
        (FEW, {"method": "mst", "steps": 10**9}, "steps must be a whole number from 1 to 1000000"),
        (FEW, {"method": "aim", "bins": 10**6}, "bins must be a whole number from 2 to 65536"),
        (FEW, {"method": "aim", "steps": 10**9}, "steps must be a whole number from 1 to 1000000"),
        (FEW, {"method": "aim", "tables": 10**9}, "tables must be a whole number from 1 to 10000"),
        (FEW, {"method": "aim", "rounds": 101}, "rounds must be a whole number from 1 to 100,"),
        (FEW, {"method": "aim", "model_size": 10**12}, "model_size must be a whole number from 1 to 30000000"),
    ],
)
def test_a_refused_option_costs_nothing(tmp_path: Path, schema: Schema, options: dict[str, Any], message: str) -> None:
    book = BudgetFile.create(tmp_path / "budget.json", us.Budget(2.0, 1e-6))
    before = book.path.read_bytes()
    with pytest.raises(OptionError, match=message):
        us.fit(Untouchable(), schema, budget_file=book.path, **options)
    assert book.path.read_bytes() == before


@pytest.mark.parametrize(("names", "message"), [(["age", None], r"column 2 .* no name"), (["age", "il"], "'ill'")])
def test_a_frame_with_wrong_names_costs_nothing(tmp_path: Path, names: list[Any], message: str) -> None:
    book = BudgetFile.create(tmp_path / "budget.json", us.Budget(2.0, 1e-6))
    before = book.path.read_bytes()
    frame = pd.DataFrame([[30, True]] * 20, columns=pd.Index(names, dtype=object))
    with pytest.raises(DataError, match=message):
        us.fit(frame, FEW, method="independent", budget_file=book.path)
    assert book.path.read_bytes() == before


def test_the_largest_options_make_a_plan() -> None:
    largest = {"bins": 65_536, "steps": 1_000_000}
    mst.check(mst.Config(**largest), MANY, us.Budget(1.0, 1e-6))
    aim.check(aim.Config(**largest, tables=10_000, rounds=100, model_size=30_000_000), MANY, us.Budget(1.0, 1e-6))


def test_a_fit_that_passes_the_check_is_written_down_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = BudgetFile.create(tmp_path / "budget.json", us.Budget(2.0, 1e-6))
    at_check: list[dict] = []

    def watched(*_: Any) -> None:
        at_check.append(BudgetFile.load(book.path).open_reservations)

    monkeypatch.setattr(independent, "check", watched)
    with pytest.raises(DataError):
        us.fit(object(), FEW, method="independent", budget_file=book.path)
    assert at_check == [{}]
    assert len(BudgetFile.load(book.path).open_reservations) == 1


def test_a_method_without_a_check_is_fitted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(independent, "check")
    api.check_plan(independent, independent.Config(), FEW, us.Budget(1.0, 1e-6))


def test_the_slow_part_of_a_plan_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(plan, "calibrate", lambda *_: asked.append(1) or 5.0)
    plan._calibrated.cache_clear()
    first, second = (plan.make_plan(plan.Config(), MANY, us.Budget(0.1, 1e-6)) for _ in range(2))
    plan._calibrated.cache_clear()  # the stand-in's answer is wrong for everyone else
    assert first == second
    assert first.chosen_pairs > 0
    assert len(asked) == 1


@pytest.mark.parametrize(("multiplier", "sensitivity"), [(1e17, 1.0), (1.0, 1e-18), (-1.0, 1.0), (1.0, float("nan"))])
def test_noise_that_cannot_be_drawn_is_refused_in_advance(multiplier: float, sensitivity: float) -> None:
    with pytest.raises(OptionError):
        check_counts(l2_sensitivity=sensitivity, noise_multiplier=multiplier, purpose="test")
    check_counts(l2_sensitivity=1.0, noise_multiplier=0.0, purpose="no privacy")
    check_counts(l2_sensitivity=1.0, noise_multiplier=1e6, purpose="ordinary")
