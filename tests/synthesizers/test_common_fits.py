"""Of every method: what a fit refuses before it reads a row, and what it tells on its way."""

import math
from typing import Any

import pytest
from common_helpers import REAL, SCHEMA, SECRET, quick_fit

from understudy.errors import OptionError, SchemaError
from understudy.synthesizers.api import fit, make_budget, make_config, method_module
from understudy.table.read import read_table


class Untouchable:
    """A source that nobody may open."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("the rows were touched")


def test_an_unknown_option_is_refused_by_its_nearest_name(method: str):
    known = list(method_module(method).Config.__dataclass_fields__)
    wrong = f"{known[0]}s" if known else "anything"
    with pytest.raises(OptionError, match=f"{method} has no option {wrong!r}") as caught:
        fit(Untouchable(), SCHEMA, method=method, **{wrong: 1})
    assert (f"did you mean {known[0]!r}" if known else "it takes none") in str(caught.value)
    with pytest.raises(OptionError, match="it takes"):
        make_config(method_module(method), {"zzz": 1})


def test_an_unknown_method_is_refused_by_its_nearest_name():
    with pytest.raises(OptionError, match=r"method 'mixtur' is not known \(did you mean 'mixture'\?\)"):
        fit(Untouchable(), SCHEMA, method="mixtur")


@pytest.mark.parametrize("where", ["column", "schema"])
def test_facts_that_were_read_off_the_rows_are_refused(method: str, where: str):
    marked = SCHEMA.columns["age"].model_copy(update={"source": {"high": "data"}})
    change = {"columns": SCHEMA.columns | {"age": marked}} if where == "column" else {"source": {"rows": "data"}}
    schema = SCHEMA.model_copy(update=change)
    with pytest.raises(SchemaError, match=r"not confirmed as public \((age.high|rows)\)"):
        fit(Untouchable(), schema, method=method)
    assert schema.confirmed().unconfirmed() == []


def test_a_schema_that_declares_no_rows_is_refused(method: str):
    with pytest.raises(SchemaError, match="must declare `rows:`"):
        fit(Untouchable(), SCHEMA.model_copy(update={"rows": None}), method=method)


@pytest.mark.parametrize(
    "given", [{"epsilon": 0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"delta": 1.5}, {"seed": -1}]
)
def test_wrong_budgets_and_seeds_are_refused(method: str, given: dict[str, Any]):
    with pytest.raises(OptionError, match=next(iter(given))):
        fit(Untouchable(), SCHEMA, method=method, **given)


def test_a_careless_delta_is_warned_about():
    with pytest.warns(UserWarning, match="would allow a method that publishes a row"):
        make_budget(SCHEMA, 1.0, 0.01)
    assert make_budget(SCHEMA, 1.0, None).delta == 1e-6


def test_a_table_read_with_another_schema_is_refused(method: str):
    other = SCHEMA.model_copy(update={"rows": 301})
    with pytest.raises(SchemaError, match="another schema"):
        quick_fit(method, read_table(REAL, other))


def test_progress_is_told_and_ends(method: str):
    told: list[tuple] = []
    quick_fit(method, progress=lambda *step: told.append(step))
    assert told[0][:2] == ("reading", 0.0)
    assert all(0 <= step[1] <= 1 for step in told)
    assert told[-1][1] == 1.0
    assert not any(SECRET in str(step) for step in told)
