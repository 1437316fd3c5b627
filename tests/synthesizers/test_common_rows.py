"""Of every method: synthetic rows have the form of the schema, as many as were asked for."""

from typing import Any

import pandas as pd
import pytest
from common_helpers import INTEGERS, MAY_MISS, REAL, SCHEMA, check_form

from understudy.errors import OptionError
from understudy.synthesizers.api import Model


@pytest.mark.parametrize("n", [1, 7, 500])
def test_rows_have_the_form_of_the_schema(model: Model, n: int):
    rows = model.sample(n, seed=0)
    check_form(rows, SCHEMA, n)
    assert rows["patient"].tolist() == [f"p-{number}" for number in range(1, n + 1)]
    assert "notes" not in rows


def test_all_kinds_of_values_are_made(model: Model):
    rows = model.sample(500, seed=0)
    for name in MAY_MISS:
        assert rows[name].isna().any(), name
        assert rows[name].notna().any(), name
    for name in INTEGERS:
        assert rows[name].nunique() > 5
    assert set(rows["sick"]) == {True, False}


def test_as_many_rows_as_the_table_had_about(model: Model):
    assert isinstance(model.rows, int)
    assert len(model.sample(seed=0)) == model.rows
    assert abs(model.rows - len(REAL)) < 120  # noisy, at epsilon 1


def test_draws_repeat_with_a_seed_alone(model: Model):
    pd.testing.assert_frame_equal(model.sample(50, seed=4), model.sample(50, seed=4))
    assert not model.sample(50).equals(model.sample(50))


@pytest.mark.parametrize("n", [0, -3, 2.5, True, "many"])
def test_a_wrong_number_of_rows_is_refused(model: Model, n: Any):
    with pytest.raises(OptionError, match="n must be a whole number"):
        model.sample(n)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": "sick=true"}, "where must map columns to conditions"),
        ({"where": ["sick"]}, "where must map columns to conditions"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": "lucky"}, "seed must be a whole number from 0"),
    ],
)
def test_a_wrong_condition_or_seed_is_refused(model: Model, given: dict, says: str):
    with pytest.raises(OptionError, match=says):
        model.sample(3, **given)
