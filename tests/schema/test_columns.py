"""Facts of columns: what is accepted, and that what is refused is refused with the fact and a remedy."""

from datetime import date, datetime

import pytest

from understudy.errors import SchemaError
from understudy.schema import Boolean, Categorical, Datetime, Id, Integer, Ordinal, Real, Text
from understudy.schema.problems import RefusalError
from understudy.table.cells import cells_of


def test_facts_keep_their_types():
    column = Categorical(values=["a", 1, 2.5, "01"], other="a")
    assert column.values == ("a", 1, 2.5, "01")
    assert [type(value) for value in column.values] == [str, int, float, str]


def test_columns_are_frozen():
    with pytest.raises(Exception, match="frozen"):
        Boolean().missing = True


def test_whole_floats_are_whole_numbers():
    assert Integer(low=0, high=1e6).high == 1_000_000


REFUSED = {
    "no values": (Categorical, {"values": []}, "at least one"),
    "values twice": (Categorical, {"values": ["a", "b", "a"]}, "unique"),
    "number and its text": (Categorical, {"values": [1, "1"]}, "look the same"),
    "one and one point zero": (Categorical, {"values": [1, 1.0]}, "look the same"),
    "true among words": (Categorical, {"values": [True, "maybe"]}, "quote"),
    "true and one": (Categorical, {"values": [True, 1]}, "quote"),
    "null among values": (Categorical, {"values": ["a", None]}, "missing: true"),
    "nan among values": (Categorical, {"values": [1.5, float("nan")]}, "finite"),
    "a date among values": (Categorical, {"values": [date(2019, 1, 1)]}, "quote dates"),
    "lone surrogate": (Categorical, {"values": ["\ud800"]}, "UTF-8"),
    "too many values": (Categorical, {"values": list(range(63_001))}, "63000"),
    "other not a value": (Categorical, {"values": ["a"], "other": "b"}, "add it to values"),
    "other a list": (Ordinal, {"values": ["a"], "other": ["a"]}, "other must"),
    "values is text": (Ordinal, {"values": "abc"}, "list"),
    "low above high": (Integer, {"low": 3, "high": 2}, "low=3 must be below high=2"),
    "low is high": (Integer, {"low": 3, "high": 3}, "categorical"),
    "high missing": (Integer, {"low": 3}, "high is missing"),
    "low is text": (Integer, {"low": "3", "high": 5}, "low must be a whole number, got '3'"),
    "low is true": (Integer, {"low": True, "high": 5}, "whole number"),
    "low is broken": (Integer, {"low": 1.5, "high": 5}, "whole number"),
    "beyond 64 bits": (Integer, {"low": 0, "high": 2**63}, "64 bits"),
    "span of 64 bits": (Integer, {"low": -(2**63), "high": 2**63 - 1}, "narrower"),
    "uneven steps": (Integer, {"low": 0, "high": 7, "resolution": 5}, "use high=5 or high=10"),
    "resolution zero": (Integer, {"low": 0, "high": 7, "resolution": 0}, "at least 1"),
    "dtype too small": (Integer, {"low": 0, "high": 300, "dtype": "uint8"}, "wider"),
    "dtype unsigned": (Integer, {"low": -1, "high": 3, "dtype": "uint8"}, "wider"),
    "unknown dtype": (Integer, {"low": 0, "high": 3, "dtype": "int7"}, "'int8'"),
    "log below zero": (Integer, {"low": -1, "high": 9, "log": True}, "at least 0"),
    "no zero inside": (Integer, {"low": 1, "high": 9, "zero_inflated": True}, "needs 0 between"),
    "zero off the grid": (Integer, {"low": -3, "high": 7, "resolution": 5, "zero_inflated": True}, "whole number of"),
    "log is a word": (Integer, {"low": 0, "high": 9, "log": "maybe"}, "true or false"),
    "bins not rising": (Real, {"low": 0, "high": 9, "bins": [1, 3, 3]}, "increase"),
    "bins outside": (Real, {"low": 0, "high": 9, "bins": [1, 10]}, "between"),
    "bins is a number": (Real, {"low": 0, "high": 9, "bins": 3}, "list of numbers"),
    "infinite bound": (Real, {"low": 0, "high": float("inf")}, "must be a number"),
    "beyond single precision": (Real, {"low": 0, "high": 1e39}, "3.4e38"),
    "too near": (Real, {"low": 1.0, "high": 1.0 + 1e-9}, "resolution"),
    "uneven real steps": (Real, {"low": 0, "high": 1, "resolution": 0.3}, "steps"),
    "too fine": (Real, {"low": 0, "high": 1e12, "resolution": 1e-6}, "coarser"),
    "negative resolution": (Real, {"low": 0, "high": 1, "resolution": -0.1}, "above 0"),
    "real zero off the grid": (Real, {"low": -0.5, "high": 1.5, "resolution": 1, "zero_inflated": True}, "needs 0"),
    "real dtype": (Real, {"low": 0, "high": 1, "dtype": "int8"}, "float32"),
    "not a date": (Datetime, {"low": "soon", "high": "2020-01-01"}, "date or time"),
    "date is a number": (Datetime, {"low": 2019, "high": "2020-01-01"}, "date or time"),
    "zoned": (Datetime, {"low": "2019-01-01T00:00:00Z", "high": "2020-01-01"}, "time zone"),
    "parts of seconds": (Datetime, {"low": "2019-01-01T00:00:00.5", "high": "2020-01-01"}, "whole second"),
    "off the day": (Datetime, {"low": "2019-01-01T08:00", "high": "2020-01-01", "resolution": "day"}, "whole day"),
    "week": (Datetime, {"low": "2019-01-01", "high": "2020-01-01", "resolution": "week"}, "'day'"),
    "lossy format": (Datetime, {"low": "2019-01-01", "high": "2020-01-01", "format": "%Y"}, "read back"),
    "no format": (Datetime, {"low": "2019-01-01", "high": "2020-01-01", "format": "%"}, "read back"),
    "end before start": (Datetime, {"low": "2021-01-01", "high": "2020-01-01"}, "below"),
    "missing on id": (Id, {"missing": True}, "unknown fact 'missing'"),
    "misspelt fact": (Integer, {"low": 0, "high": 1, "zero_inflatd": True}, "did you mean 'zero_inflated'"),
    "facts on text": (Text, {"low": 0}, "unknown fact 'low'"),
    "source of no fact": (Integer, {"low": 0, "high": 1, "source": {"lw": "data"}}, "'lw'"),
    "source of a word": (Boolean, {"source": "mine"}, "public or data"),
    "source of a fact": (Boolean, {"source": {"missing": "mine"}}, "for missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    kind, facts, said = REFUSED[case]
    with pytest.raises(SchemaError) as caught:
        kind(**facts)
    message = str(caught.value)
    assert said in message
    assert "pydantic" not in message
    assert "input_value" not in message


def test_all_problems_are_told_at_once():
    with pytest.raises(SchemaError) as caught:
        Integer(lo=1, high="x")
    assert "low is missing" in str(caught.value)
    assert "high must be a whole number" in str(caught.value)
    assert "did you mean 'low'" in str(caught.value)


@pytest.mark.parametrize(
    ("resolution", "high"),
    [
        ("day", datetime(2020, 12, 31)),
        ("hour", datetime(2020, 12, 31, 23)),
        ("minute", datetime(2020, 12, 31, 23, 59)),
        ("second", datetime(2020, 12, 31, 23, 59, 59)),
    ],
)
def test_a_bare_date_as_high_means_the_whole_day(resolution, high):
    for bare in ("2020-12-31", date(2020, 12, 31)):
        assert Datetime(low="2020-01-01", high=bare, resolution=resolution).high == high


def test_facts_leave_out_defaults_and_source():
    column = Integer(low=0, high=9, missing=True, source={"low": "data"})
    assert column.facts() == {"kind": "integer", "low": 0, "high": 9, "missing": True}
    assert column.from_data() == ["low"]
    assert Integer(low=0, high=9, source="data").from_data() == ["kind", "low", "high"]
    assert Integer(low=0, high=9).from_data() == []


def test_no_more_bins_than_cells_can_be_numbered():
    most = Integer(low=0, high=200_000, bins=range_of(63_000))
    assert cells_of(most).count <= 2**16
    with pytest.raises(RefusalError, match="at most 63000"):
        Integer(low=0, high=200_000, bins=range_of(63_001))


def range_of(count):
    return [float(3 * edge + 1) for edge in range(count)]
