"""What conditions may name: values that exist, and ranges that overlap with what the schema declares."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.independent import Released
from understudy.synthesizers.one_way import fine_cells
from understudy.table.codec import codec

SCHEMA = Schema.loads("""
columns:
  age: {kind: integer, low: 10, high: 13}
  mass: {kind: real, low: 0, high: 100, resolution: 0.1}
  wage: {kind: real, low: 0, high: 10}
  seen: {kind: datetime, low: 2020-01-01, high: 2020-01-31, resolution: day}
""")


@pytest.fixture(scope="module")
def columns() -> Released:
    return Released(SCHEMA, {name: np.ones(cells.count) for name, cells in fine_cells(SCHEMA).items()}, 100)


@pytest.mark.parametrize("value", [0.25, "0.25", 0.21, [0.1, 0.25], np.float32(0.25), Decimal("0.2999")])
def test_a_value_between_two_steps_is_refused_with_its_neighbours(columns: Released, value: object):
    with pytest.raises(OptionError, match="'mass' lies between two that exist") as caught:
        columns.sample(10, np.random.default_rng(0), {"mass": value})
    assert "its resolution is 0.1, and the nearest are 0.2 and 0.3; name one of these" in str(caught.value)


def test_values_on_a_step_are_taken_however_they_are_written(columns: Released):
    for value in (0.3, "0.3", "0.30", 0.1 + 0.2, np.float32(0.3), Decimal("0.3"), 99.9, 100, 0, [0.1, 99.7]):
        columns.sample(10, np.random.default_rng(0), {"mass": value})


def test_whole_numbers_have_steps_too():
    """Also where they are too large for a float to tell them apart."""
    schema = Schema.loads(f"columns: {{id: {{kind: integer, low: {10**18}, high: {10**18 + 50}, resolution: 5}}}}")
    model = Released(schema, {"id": np.ones(11)}, 11)
    rng = np.random.default_rng(0)
    assert set(model.sample(5, rng, {"id": 10**18 + 15})["id"].tolist()) == {3}
    with pytest.raises(OptionError, match=f"the nearest are {10**18 + 15} and {10**18 + 20};"):
        model.sample(5, rng, {"id": 10**18 + 17})
    with pytest.raises(OptionError, match=f"the nearest are {10**18 + 45} and {10**18 + 50};"):
        model.sample(5, rng, {"id": 10**18 + 48})


def test_what_a_model_writes_is_taken_back():
    """In single precision 1234.1 is a long way from a step, for a number of steps."""
    schema = Schema.loads("columns: {mass: {kind: real, low: 0, high: 5000, resolution: 0.1, dtype: float32}}")
    cells = fine_cells(schema)["mass"]
    model = Released(schema, {"mass": np.ones(cells.count)}, 11)
    written = codec(schema.modelled["mass"]).decode(np.array([12341], dtype=np.uint16))[0]
    assert abs(float(written) - 1234.1) > 1e-5
    assert set(model.sample(5, np.random.default_rng(0), {"mass": written})["mass"].tolist()) == {12341}


@pytest.mark.parametrize(
    ("wider", "same"),
    [
        ({"age": (9, 12)}, {"age": (10, 12)}),
        ({"age": (11, 14)}, {"age": (11, 13)}),
        ({"age": (-(10**40), 10**40)}, {"age": (10, 13)}),
        ({"age": (12, math.inf)}, {"age": (12, 13)}),
        ({"age": ("-inf", "11")}, {"age": (10, 11)}),
    ],
)
def test_a_range_wider_than_the_bounds_is_cut_at_them(columns: Released, wider: dict, same: dict):
    cut, given = (columns.sample(200, np.random.default_rng(3), where) for where in (wider, same))
    for name in SCHEMA.columns:
        np.testing.assert_array_equal(cut[name], given[name])


def test_wider_ranges_of_reals_and_times(columns: Released):
    rng = np.random.default_rng(0)
    assert columns.sample(500, rng, {"wage": (9, 20)})["wage"].min() >= 9
    assert set(columns.sample(500, rng, {"mass": (99.85, 200)})["mass"].tolist()) == {999, 1000}
    assert set(columns.sample(500, rng, {"mass": (-5.03, 0.1)})["mass"].tolist()) == {0, 1}
    assert set(columns.sample(90, rng, {"seen": ("2019-05-01", "2020-01-02")})["seen"].tolist()) == {0, 1}
    assert set(columns.sample(90, rng, {"seen": ("2020-01-30", pd.Timestamp("2024-01-01"))})["seen"].tolist()) == {
        29,
        30,
    }
    for ends in (("2019-01-01", "2019-12-31"), ("2020-02-01", None)):
        with pytest.raises(OptionError, match=r"'seen' lies outside .* overlaps with 2020-01-01 to 2020-01-31"):
            columns.sample(5, rng, {"seen": ends})
