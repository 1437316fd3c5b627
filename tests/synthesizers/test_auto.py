"""The rule that picks a method: public, pure, and only ever a method that exists."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, BudgetFile, default_delta
from understudy.schema import Schema
from understudy.synthesizers import api, auto
from understudy.synthesizers.auto import choose


def schema_of(columns: int, rows: int, *, label: bool = True) -> Schema:
    facts = {f"c{number}": {"kind": "boolean"} for number in range(columns)}
    return Schema(columns=facts, rows=rows, label="c0" if label else None)


# As measured (bench/results): declared rows, columns, label, epsilon, and the method that won there.
MEASURED = [
    (900, 8, True, 0.01, "independent"),
    (900, 8, True, 0.1, "mixture"),
    (1000, 6, False, 0.03, "independent"),
    (1000, 6, False, 0.1, "independent"),
    (900, 8, False, 1.0, "mixture"),
    (3000, 17, False, 0.1, "independent"),
    (6000, 23, False, 1.0, "mixture"),
    (600, 36, True, 0.1, "independent"),
    (600, 36, True, 3.0, "mixture"),
    (3000, 17, True, 0.01, "independent"),
    (6000, 23, True, 0.03, "mixture"),
    (30_000, 13, True, 1.0, "mixture"),
    (30_000, 2, True, 1.0, "aim"),
    (3000, 3, False, 1.0, "aim"),
    (30_000, 6, True, 1.0, "aim"),
    (3000, 6, True, 0.3, "mixture"),
]


@pytest.mark.parametrize(("rows", "columns", "label", "epsilon", "winner"), MEASURED)
def test_the_rule_picks_what_measured_best(rows: int, columns: int, label: bool, epsilon: float, winner: str) -> None:
    choice = choose(schema_of(columns, rows, label=label), Budget(epsilon, default_delta(rows)))
    assert choice.method == winner
    assert f"{rows:,} declared rows" in choice.why
    assert (repr("c0") in choice.why) == (label and winner != "aim")


def test_more_rows_or_budget_never_take_dependence_away() -> None:
    def picks(grid: list[tuple[int, int, float]]) -> list[str]:
        return [choose(schema_of(columns, rows), Budget(e, 1e-6)).method for columns, rows, e in grid]

    by_epsilon = picks([(10, 1000, float(e)) for e in np.geomspace(0.001, 10, 25)])
    by_rows = picks([(10, int(rows), 0.1) for rows in np.geomspace(10, 1e6, 25)])
    by_columns = picks([(columns, 1000, 0.1) for columns in range(40, 1, -1)])
    for found in (by_epsilon, by_rows, by_columns):
        assert found[0] == "independent"
        assert found[-1] == "mixture"
        assert sorted(found) == found  # "independent" comes before "mixture", and there is one change


def test_edges_have_an_answer() -> None:
    assert choose(schema_of(1, 10), Budget(1.0, 1e-6)).method == "independent"
    assert choose(schema_of(3, 1), Budget(math.inf, 1e-6)).method == "mixture"
    assert choose(schema_of(2, 10**9), Budget(1e-9, 1e-300)).method == "independent"
    with pytest.raises(SchemaError, match="must declare `rows:`"):
        choose(schema_of(3, 10).model_copy(update={"rows": None}), Budget(1.0, 1e-6))
    for columns in (1, 2, 300):
        for epsilon in (1e-6, 1.0, math.inf):
            assert choose(schema_of(columns, 100), Budget(epsilon, 1e-6)).method in api.METHODS


def test_combinations_are_counted_where_few_cells_hold_many_rows() -> None:
    """Cells of all columns together, not columns alone: one of many categories, or of numbers, makes them many."""
    budget = Budget(1.0, 1e-6)
    many = {"kind": "categorical", "values": [f"v{number}" for number in range(500)]}
    numbers = {"kind": "real", "low": 0.0, "high": 1.0}
    two = {f"c{number}": {"kind": "boolean"} for number in range(2)}
    found = [choose(Schema(columns=two | more, rows=5000), budget).method for more in ({}, {"m": many}, {"n": numbers})]
    assert found == ["aim", "mixture", "aim"]
    narrow, wide = ({"columns": columns, "rows": 10**7} for columns in (auto.FEW_COLUMNS, auto.FEW_COLUMNS + 1))
    assert [choose(schema_of(**facts), budget).method for facts in (narrow, wide)] == ["aim", "mixture"]


def test_a_label_is_what_noisy_pairs_are_worth_it_for() -> None:
    budget = Budget(0.1, 1e-6)
    assert choose(schema_of(13, 1000), budget).method == "mixture"
    assert choose(schema_of(13, 1000, label=False), budget).method == "independent"


ROWS = pd.DataFrame({f"c{number}": np.arange(200) % (number + 2) == 0 for number in range(3)})


def test_a_model_records_the_method_that_was_used(tmp_path: Path) -> None:
    schema = schema_of(3, 200)
    book = BudgetFile.create(tmp_path / "budget.json", Budget(4.0, 1e-6))
    options = {"epsilon": 0.01, "seed": 1, "budget_file": book}
    model = us.fit(ROWS, schema, **options)
    assert api.DEFAULT_METHOD == auto.NAME
    assert (model.method, model.certificate.method) == ("independent", "independent")
    model.save(tmp_path / "m.understudy")
    assert us.load(tmp_path / "m.understudy").method == "independent"
    assert "fit of method independent" in book.path.read_text()
    named = us.fit(ROWS, schema, method="independent", **options)
    for mine, theirs in zip(model.released.arrays().values(), named.released.arrays().values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_options_are_those_of_the_method_that_was_picked() -> None:
    schema = schema_of(3, 200)
    model = us.fit(ROWS, schema, method="auto", epsilon=0.5, seed=1, components=2, steps=2)
    assert (model.method, model.config["components"]) == ("mixture", 2)
    with pytest.raises(OptionError, match="auto picked independent") as caught:
        us.fit(ROWS, schema, method="auto", epsilon=0.01, components=2)
    assert "name the method" in str(caught.value)
    with pytest.raises(OptionError, match="independent has no option") as caught:
        us.fit(ROWS, schema, method="independent", components=2)
    assert "picked" not in str(caught.value)


def test_nearest_names_include_the_rule() -> None:
    with pytest.raises(OptionError, match="did you mean 'auto'"):
        us.fit(ROWS, schema_of(3, 200), method="autp")


def test_a_choice_is_plain_and_frozen() -> None:
    choice = choose(schema_of(3, 200), Budget(1.0, 1e-6))
    assert dataclasses.asdict(choice) == {"method": choice.method, "why": choice.why}
    assert choice == choose(schema_of(3, 200), Budget(1.0, 1e-6))
