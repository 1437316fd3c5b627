"""Codes from the schema alone: round trips, rules for every type of cell, and cells that do not see each other."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import DataError
from understudy.schema import Boolean, Categorical, Datetime, Id, Integer, Ordinal, Real
from understudy.table import parse
from understudy.table.codec import (
    CLIPPED,
    MISSING,
    NOT_BOOLEAN,
    OUTSIDE,
    codec,
    float32_bounds,
    smallest_dtype,
)
from understudy.table.sources import open_source

SPAN = {"low": "2019-01-01", "high": "2023-12-31"}
WORDS = ("a", "b", " spaced ", "", "Ünï↯", "数", "1", "true", "no")

COLUMNS = {
    "categorical": Categorical(values=WORDS),
    "categorical with missing": Categorical(values=WORDS, missing=True),
    "categorical of numbers": Categorical(values=[1, 2.5, -7, 10**12]),
    "categorical of booleans": Categorical(values=[True, False]),
    "categorical of all": Categorical(values=["N", 1, 2.5]),
    "one value": Categorical(values=["only"]),
    "ordinal": Ordinal(values=["low", "middle", "high"], missing=True),
    "boolean": Boolean(),
    "boolean with missing": Boolean(missing=True),
    "integer": Integer(low=-5, high=400),
    "integer with missing": Integer(low=0, high=254, missing=True),
    "integer in steps": Integer(low=-10, high=90, resolution=5),
    "integer limits": Integer(low=-(2**63), high=2**63 - 3),
    "integer limits with missing": Integer(low=-(2**63) + 2, high=2**63 - 1, missing=True),
    "integer as int16": Integer(low=-5, high=400, dtype="int16", missing=True),
    "integer as float": Integer(low=-5, high=400, dtype="float32", missing=True),
    "real": Real(low=-1.5, high=2.5),
    "real with missing": Real(low=0.1, high=0.7, missing=True),
    "real of all sizes": Real(low=-3e38, high=3e38, missing=True),
    "real near one": Real(low=1 - 1e-5, high=1 + 1e-5),
    "real in steps": Real(low=-1.3, high=250, resolution=0.1, missing=True),
    "real in thirds": Real(low=0, high=2, resolution=1 / 3),
    "real in tiny steps": Real(low=0, high=1e9, resolution=1e-4),
    "day": Datetime(**SPAN, resolution="day", missing=True),
    "hour": Datetime(**SPAN, resolution="hour"),
    "second": Datetime(low="0001-01-01", high="9999-12-31"),
    "day in format": Datetime(**SPAN, resolution="day", format="%d/%m/%Y"),
}


def codes_of(column):
    coder = codec(column)
    if coder.size is None:
        low, high = float32_bounds(column.low, column.high)
        numbers = st.floats(low, high, width=32)
        return st.one_of(numbers, st.just(float("nan"))) if column.missing else numbers
    return st.integers(0, coder.size if column.missing else coder.size - 1)


def as_read(series):
    """The series as Arrow, the way a DataFrame is read."""
    blocks = list(open_source(series.to_frame("a")).blocks(["a"]))
    return blocks[0]["a"] if blocks else pa.nulls(0)


@pytest.mark.parametrize("name", COLUMNS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_codes_survive_decoding_and_encoding(name, data):
    column = COLUMNS[name]
    coder = codec(column)
    codes = np.array(data.draw(st.lists(codes_of(column), max_size=20)), dtype=coder.dtype)
    series = coder.decode(codes)
    assert len(series) == len(codes)
    encoded = coder.encode(as_read(series))
    assert encoded.codes.dtype == coder.dtype
    assert not encoded.bad
    assert encoded.clipped == 0
    np.testing.assert_array_equal(encoded.codes, codes)


@pytest.mark.parametrize("name", COLUMNS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_codes_survive_being_written_as_text(name, data):
    column = COLUMNS[name]
    if "integer as float" in name:
        column = column.model_copy(update={"dtype": "float64"})  # float32 rounds nothing here, but prints 3.0
    coder = codec(column)
    codes = np.array(data.draw(st.lists(codes_of(column), max_size=20)), dtype=coder.dtype)
    series = coder.decode(codes)
    form = getattr(column, "format", None)
    texts = [
        None if absent else value.strftime(form) if form else str(value)
        for value, absent in zip(series, series.isna(), strict=True)
    ]
    encoded = coder.encode(pa.array(texts, type=pa.string()))
    assert not encoded.bad
    np.testing.assert_array_equal(encoded.codes, codes)


REALS = [name for name, column in COLUMNS.items() if codec(column).size is None]


@pytest.mark.parametrize("name", REALS)
@given(data=st.data())
def test_reals_are_the_shortest_decimals_that_stand_for_them(name, data):
    """None has a digit that single precision does not tell, none lies outside the bounds, none is another number."""
    column = COLUMNS[name]
    codes = np.array(data.draw(st.lists(codes_of(column), max_size=20)), dtype=np.float32)
    decoded = codec(column).decode(codes)
    assert decoded.dtype == np.float64
    for code, value in zip(codes, decoded.tolist(), strict=True):
        shortest = float(str(code))
        expected = shortest if column.low <= shortest <= column.high else float(code)
        np.testing.assert_equal(value, float("nan") if np.isnan(code) else expected)
        np.testing.assert_equal(np.float32(value), code)


def test_a_real_whose_shortest_decimal_is_outside_the_bounds_stays_inside():
    low = float(np.nextafter(np.float32(0.1), np.float32(1))) - 1e-12  # between 0.1 and the float32 after it
    column = Real(low=low, high=0.2)
    code = np.array(float32_bounds(low, 0.2)[:1], dtype=np.float32)
    assert codec(column).decode(code)[0] >= low
    assert codec(column).encode(as_read(codec(column).decode(code))).clipped == 0


@given(numbers=st.lists(st.decimals(-99_999, 99_999, places=2), max_size=20))
def test_decimals_of_few_digits_come_back_as_they_were_written(numbers):
    column = Real(low=-1e5, high=1e5)
    texts = [str(number) for number in numbers if len(number.as_tuple().digits) <= 6]
    decoded = codec(column).decode(codec(column).encode(pa.array(texts, type=pa.string())).codes)
    assert decoded.tolist() == [float(text) for text in texts]


def test_reals_in_single_precision_are_the_codes_themselves():
    codes = np.array([0.1, 9.20624], dtype=np.float32)
    decoded = codec(Real(low=0, high=10, dtype="float32")).decode(codes)
    assert decoded.dtype == np.float32
    np.testing.assert_array_equal(decoded.to_numpy(), codes)


ODD = """
1|1.0|+1|01| 2.5 |1e2|0x1F|nan|NaN|nan(7)|inf|-Infinity|1e400|9007199254740993|9223372036854775808|3.5|true|No|y|T|N
-9223372036854775809|111111111111111111111111111111|2020-01-01|2020-01-01T10:00|2020-01-01 10:00:00+02:00|2020-13-01
0001-01-01|31/12/2020|a|?|2020-01-01 10:00:00.123456789|1_000|\u0661|1,5|--1|.|5.|.5|NA|-9|-9.0||  |x
0000-01-01|-0|1e20| 4
"""
odd_texts = st.one_of(
    st.sampled_from([None, *ODD.replace("\n", "|").split("|")]),
    st.text(max_size=5),
    st.integers().map(str),
    st.floats().map(repr),
)


def outcome(encoded, length):
    """What became of each cell: its code, or the rules it breaks."""
    rules = [set() for _ in range(length)]
    for rule, positions in {**encoded.bad, CLIPPED: encoded.clipped_at}.items():
        for position in positions:
            rules[position].add(rule)
    return [(repr(code), frozenset(broken)) for code, broken in zip(encoded.codes.tolist(), rules, strict=True)]


@pytest.mark.parametrize("name", COLUMNS)
@settings(deadline=None, max_examples=60)
@given(texts=st.lists(odd_texts, max_size=8), sentinels=st.sampled_from([(), ("?", "NA", "-9"), ("1e20", "-9.5")]))
def test_a_cell_is_read_without_regard_to_its_neighbours(name, texts, sentinels):
    coder = codec(COLUMNS[name], sentinels)
    together = outcome(coder.encode(pa.array(texts, type=pa.string())), len(texts))
    alone = [outcome(coder.encode(pa.array([text], type=pa.string())), 1)[0] for text in texts]
    assert together == alone


@pytest.mark.parametrize("beside", ["4", " 4", "+4", "nan", None])
@pytest.mark.parametrize(
    ("column", "sentinels", "text"),
    [
        (Real(low=0, high=40, missing=True), ("1e20",), "1e20"),
        (Real(low=0, high=40, missing=True), ("-99999999999999999999",), "-99999999999999999999"),
        (Real(low=0, high=40, resolution=0.5, missing=True), ("1e20",), "1e20"),
        (Integer(low=0, high=40, missing=True), ("1e20",), "1e20"),
    ],
)
def test_a_huge_missing_value_is_missing_beside_any_cell(column, sentinels, text, beside):
    """A space in one row's cell must not move the rows of a fill value from the bound to missing."""
    coder = codec(column, sentinels)
    for texts in ([text, beside], [beside, text]):
        code = coder.encode(pa.array(texts, type=pa.string())).codes[texts.index(text)]
        np.testing.assert_equal(code, coder.missing)


def test_a_fraction_among_missing_values_leaves_whole_numbers_alone():
    coder = codec(Integer(low=0, high=40, missing=True), ("9.5",))
    assert coder.encode(pa.array(["9", "9.0"])).codes.tolist() == [9, 9]


@pytest.mark.parametrize("beside", ["2020-01-01", "2020-01-01T10:00:00.5"])
def test_the_year_0_is_no_time_beside_any_cell(beside):
    coder = codec(Datetime(low=datetime(2019, 1, 1), high=datetime(2021, 1, 1), resolution="day"))
    assert next(iter(coder.encode(pa.array(["0000-01-01", beside])).bad.values())).tolist() == [0]


@pytest.mark.parametrize("name", COLUMNS)
@settings(deadline=None, max_examples=30)
@given(texts=st.lists(odd_texts, max_size=8))
def test_types_and_lengths_do_not_depend_on_the_rows(name, texts):
    coder = codec(COLUMNS[name])
    for array in (pa.array(texts, type=pa.string()), pa.array(texts, type=pa.string()).dictionary_encode()):
        encoded = coder.encode(array)
        assert encoded.codes.dtype == coder.dtype
        assert encoded.codes.shape == (len(texts),)


@pytest.mark.parametrize("name", COLUMNS)
def test_all_missing_and_no_rows(name):
    coder = codec(COLUMNS[name])
    for array in (pa.nulls(3), pa.nulls(3, pa.string()), pa.nulls(3, pa.float64()), pa.nulls(3, pa.timestamp("ns"))):
        encoded = coder.encode(array)
        if COLUMNS[name].missing:
            assert coder.decode(encoded.codes).isna().all()
        else:
            assert encoded.bad[MISSING].tolist() == [0, 1, 2]
    assert len(coder.encode(pa.nulls(0)).codes) == 0
    assert len(coder.decode(np.empty(0, coder.dtype))) == 0


@pytest.mark.parametrize(
    ("size", "name"),
    [(1, "uint8"), (255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32"), (2**32, "uint64")],
)
def test_the_smallest_type_that_holds_the_missing_code(size, name):
    assert smallest_dtype(size).name == name


WHOLE = Integer(low=0, high=100, missing=True)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["0", " 7", "100 ", None, ""]),
        pa.array(["0.0", "7.0", "1e2", None, "nan"]),
        pa.array(["0", "7", "100", None, None]).dictionary_encode(),
        pa.array(["0", "7", "100", None, None], type=pa.large_string()),
        pa.array(["0", "7", "100", None, None], type=pa.string_view()),
        pa.array([b"0", b"7", b"100", None, None]),
        pa.array([0, 7, 100, None, None], type=pa.int8()),
        pa.array([0, 7, 100, None, None], type=pa.uint64()),
        pa.array([0, 7, 100, None, float("nan")], type=pa.float32()),
        pa.array([0, 7, 100, None, float("nan")], type=pa.float16()),
        pa.array([Decimal("0.00"), Decimal("7.00"), Decimal("100.00"), None, None]),
        pa.chunked_array([[0, 7], [100, None], [None]]),
        pa.chunked_array([pa.array(["0", "7"]).dictionary_encode(), pa.array(["100", None, None]).dictionary_encode()]),
    ],
    ids=lambda array: str(array.type),
)
def test_whole_numbers_of_any_type(array):
    encoded = codec(WHOLE).encode(array)
    assert encoded.codes.tolist() == [0, 7, 100, 101, 101]
    assert not encoded.bad


RULES = [
    (WHOLE, ["3.5"], parse.NOT_WHOLE),
    (WHOLE, [3.5], parse.NOT_WHOLE),
    (WHOLE, ["x"], parse.NOT_A_NUMBER),
    (WHOLE, ["0x10"], parse.NOT_A_NUMBER),
    (WHOLE, ["1 000"], parse.NOT_A_NUMBER),
    (WHOLE, ["inf"], parse.INFINITE),
    (WHOLE, [float("inf")], parse.INFINITE),
    (WHOLE, [b"\xff"], parse.NOT_TEXT),
    (WHOLE, [[1]], parse.WRONG_TYPE),
    (WHOLE, [date(2020, 1, 1)], parse.WRONG_TYPE),
    (Integer(low=0, high=1), [None], MISSING),
    (Integer(low=0, high=1), [float("nan")], MISSING),
    (Real(low=0, high=1), ["x"], parse.NOT_A_NUMBER),
    (Real(low=0, high=1), ["-inf"], parse.INFINITE),
    (Real(low=0, high=1), ["1e999"], parse.INFINITE),
    (Real(low=0, high=1), [float("-inf")], parse.INFINITE),
    (Real(low=0, high=1), [{"a": 1}], parse.WRONG_TYPE),
    (Real(low=0, high=1, resolution=0.5), [float("inf")], parse.INFINITE),
    (Categorical(values=["a", "b"]), ["c"], OUTSIDE),
    (Categorical(values=["a", "b"]), ["A"], OUTSIDE),
    (Categorical(values=["a", "b"]), [b"\xff"], OUTSIDE),
    (Categorical(values=["a", "b"]), [["a"]], parse.WRONG_TYPE),
    (Categorical(values=["a", "b"]), [""], MISSING),
    (Categorical(values=[1, 2]), ["1.5"], OUTSIDE),
    (Categorical(values=[1, 2]), [3], OUTSIDE),
    (Boolean(), ["maybe"], NOT_BOOLEAN),
    (Boolean(), [2], NOT_BOOLEAN),
    (Boolean(), [0.5], NOT_BOOLEAN),
    (Datetime(**SPAN), ["soon"], parse.NOT_A_TIME),
    (Datetime(**SPAN), ["2020-02-30"], parse.NOT_A_TIME),
    (Datetime(**SPAN, resolution="day", format="%d/%m/%Y"), ["2020-01-01"], parse.NOT_A_TIME),
    (Datetime(**SPAN), [7], parse.NOT_A_TIME),
    (Datetime(**SPAN), [True], parse.NOT_A_TIME),
]


@pytest.mark.parametrize(("column", "cells", "rule"), RULES, ids=lambda part: str(part)[:30])
def test_broken_rules(column, cells, rule):
    encoded = codec(column).encode(pa.array(cells))
    assert {broken: positions.tolist() for broken, positions in encoded.bad.items()} == {rule: [0]}
    assert encoded.clipped == 0


@pytest.mark.parametrize(
    ("column", "cells", "values"),
    [
        (Integer(low=0, high=10), ["-1", "11", "9" * 25, "5"], [0, 10, 10, 5]),
        (Integer(low=0, high=10), [-1.0, 1e300, 11.0, 5.0], [0, 10, 10, 5]),
        (
            Integer(low=0, high=2**63 - 1),
            pa.array([2**64 - 1, 2**63, 2**63 + 5, 5], type=pa.uint64()),
            [2**63 - 1] * 3 + [5],
        ),
        (Integer(low=0, high=2**63 - 1), [2.0**63, 1e300, -1.0, 5.0], [2**63 - 1, 2**63 - 1, 0, 5]),
        (Integer(low=-(2**63), high=5), [6.0, -1e300, 1e300, 5.0], [5, -(2**63), 5, 5]),
        (Real(low=-1, high=1), ["-2", "1.0000001", "1e300", "0.5"], [-1, 1, 1, 0.5]),
        (Real(low=-1, high=1, resolution=0.5), [-1.1, 1.1, 9.0, 0.5], [-1, 1, 1, 0.5]),
        (
            Datetime(**SPAN, resolution="day"),
            ["2018-12-31", "2024-01-01", "0001-01-01", "2023-12-31T23:59:59"],
            [datetime(2019, 1, 1), datetime(2023, 12, 31), datetime(2019, 1, 1), datetime(2023, 12, 31)],
        ),
    ],
)
def test_numbers_outside_the_bounds_are_clipped_and_counted(column, cells, values):
    encoded = codec(column).encode(pa.array(cells))
    assert encoded.clipped_at.tolist() == [0, 1, 2]
    assert encoded.clipped == 3
    assert codec(column).decode(encoded.codes).tolist() == values


def test_other_takes_what_is_not_declared_and_changes_nothing_else():
    column = Categorical(values=["a", "b", "rest"], other="rest", missing=True)
    plain, odd = (codec(column).encode(pa.array(cells)) for cells in (["a", "b", None], ["a", "b", None, "zzz", "b"]))
    assert odd.codes.tolist() == [0, 1, 3, 2, 1]
    assert odd.codes[:3].tolist() == plain.codes.tolist()
    assert odd.codes.dtype == plain.codes.dtype
    assert not odd.bad


@pytest.mark.parametrize(
    ("values", "cells", "codes"),
    [
        ([1, 2], ["1", "2.0", " 1 ", "+2", "1e0"], [0, 1, 0, 1, 0]),
        ([1, 2], [1.0, 2.0], [0, 1]),
        ([1, 2], [Decimal("1.0"), Decimal("2")], [0, 1]),
        ([1, 2.5], ["2.50", "1.0"], [1, 0]),
        (["1", "2"], [1, 2], [0, 1]),
        (["1", "2"], [1.0, 2.0], [0, 1]),
        (["01", "1"], ["01", "1", " 01"], [0, 1, 0]),
        ([10**30, 1], [str(10**30), "1"], [0, 1]),
        ([" a", "a"], [" a", "a", "a "], [0, 1, 1]),
        ([True, False], ["yes", "F", "TRUE", "0"], [0, 1, 0, 1]),
        ([True, False], [True, False], [0, 1]),
        (["true", "false"], [True, False], [0, 1]),
        (["True", "False"], [True, False], [0, 1]),
        (["yes", "no"], ["yes", "no "], [0, 1]),
        (["2020-01-01", "b"], [date(2020, 1, 1)], [0]),
        (["", "a"], ["", "a"], [0, 1]),
    ],
)
def test_declared_values_are_found_in_other_types(values, cells, codes):
    encoded = codec(Categorical(values=values)).encode(pa.array(cells))
    assert not encoded.bad
    assert encoded.codes.tolist() == codes


def test_booleans_in_all_spellings():
    words = ["true", "T", "Yes", "y", "1", "1.0", "FALSE", "f", "no", "N", "0", " true "]
    assert codec(Boolean()).encode(pa.array(words)).codes.tolist() == [1] * 6 + [0] * 5 + [1]
    for array in (pa.array([True, False]), pa.array([1, 0]), pa.array([1.0, 0.0])):
        assert codec(Boolean()).encode(array).codes.tolist() == [1, 0]


def test_missing_values_of_the_schema():
    sentinels = ("?", "NA", "-9")
    cells = pa.array(["?", " NA", "-9", "-9.0", "5"])
    assert codec(WHOLE, sentinels).encode(cells).codes.tolist() == [101, 101, 101, 101, 5]
    assert np.isnan(codec(Real(low=0, high=9, missing=True), sentinels).encode(cells).codes).tolist() == [True] * 4 + [
        False
    ]
    assert codec(WHOLE, sentinels).encode(pa.array([-9, 5])).codes.tolist() == [101, 5]
    words = Categorical(values=["NA", "b"], missing=True)  # declared: stays a value
    assert codec(words, sentinels).encode(pa.array(["NA", "?", "b"])).codes.tolist() == [0, 2, 1]
    assert codec(words).encode(pa.array(["NA", None])).codes.tolist() == [0, 2]
    assert codec(Boolean(missing=True), sentinels).encode(pa.array(["?", "yes"])).codes.tolist() == [2, 1]
    day = Datetime(**SPAN, resolution="day", missing=True)
    assert codec(day, sentinels).encode(pa.array(["?", "2019-01-02"])).codes.tolist() == [codec(day).size, 1]


def test_times_of_any_type():
    coder = codec(Datetime(**SPAN, resolution="hour"))
    moment = datetime(2019, 1, 2, 3, 59, 59)
    zoned = pa.array(
        [pd.Timestamp("2019-01-02 05:30", tz="Europe/Berlin").to_pydatetime()], type=pa.timestamp("us", "Europe/Berlin")
    )
    for array, hour in [
        (pa.array(["2019-01-02T03:59:59"]), 27),
        (pa.array(["2019-01-02 03:59"]), 27),
        (pa.array(["2019-01-02T05:59:59+02:00"]), 27),
        (pa.array(["2019-01-02T03:59:59.999999Z"]), 27),
        (pa.array([moment], type=pa.timestamp("ns")), 27),
        (pa.array([moment], type=pa.timestamp("s")), 27),
        (pa.array([moment.replace(tzinfo=UTC)]), 27),
        (pa.array([date(2019, 1, 2)]), 24),
        (pa.array([date(2019, 1, 2)], type=pa.date64()), 24),
        (zoned, 28),
    ]:
        encoded = coder.encode(array)
        assert not encoded.bad
        assert encoded.codes.tolist() == [hour]


def test_times_before_1970_fall_into_their_own_day():
    coder = codec(Datetime(low="1900-01-01", high="1999-12-31", resolution="day"))
    array = pa.array([datetime(1950, 5, 5, 23, 0)], type=pa.timestamp("ms"))
    assert coder.decode(coder.encode(array).codes)[0] == pd.Timestamp(1950, 5, 5)


def test_a_text_of_high_precision_does_not_shut_out_distant_years():
    coder = codec(Datetime(low="1000-01-01", high="9999-12-31", format="%Y-%m-%d %H:%M:%S.%f"))
    texts = ["1000-01-01 00:00:00.000000", "2020-01-01 00:00:00.123456", "9999-12-31 23:59:59.0"]
    encoded = coder.encode(pa.array(texts))
    assert not encoded.bad
    assert encoded.codes[0] == 0


def test_values_between_steps_go_to_the_nearest():
    assert codec(Integer(low=0, high=20, resolution=5)).encode(pa.array([2, 3, 17, 18])).codes.tolist() == [0, 1, 3, 4]
    assert codec(Real(low=0, high=1, resolution=0.1)).encode(pa.array([0.04, 0.06, 0.97])).codes.tolist() == [0, 1, 10]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("integer", "int64"),
        ("integer with missing", "Int64"),
        ("integer as int16", "Int16"),
        ("integer as float", "float32"),
        ("real", "float64"),
        ("real in steps", "float64"),
        ("boolean", "bool"),
        ("boolean with missing", "boolean"),
        ("day", "datetime64[s]"),
        ("ordinal", "category"),
    ],
)
def test_decoded_types(name, dtype):
    coder = codec(COLUMNS[name])
    assert str(coder.decode(np.zeros(2, coder.dtype)).dtype) == dtype


def test_decoded_categories_are_the_declared_ones_in_order():
    series = codec(COLUMNS["ordinal"]).decode(np.array([2, 0, 3]))
    assert list(series.cat.categories) == ["low", "middle", "high"]
    assert series.cat.ordered
    assert series.isna().tolist() == [False, False, True]
    numbers = codec(COLUMNS["categorical of numbers"]).decode(np.array([0, 2]))
    assert numbers.tolist() == [1, -7]
    assert not numbers.cat.ordered


def test_reals_come_back_with_the_decimals_of_their_resolution():
    values = codec(Real(low=-1.3, high=250, resolution=0.1)).decode(np.arange(0, 2514)).tolist()
    assert all(repr(value) == repr(round(value, 1)) for value in values)
    assert (values[0], values[-1]) == (-1.3, 250.0)


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (Boolean(), [2]),
        (Boolean(missing=True), [3]),
        (Integer(low=0, high=9), [10]),
        (Integer(low=0, high=9), [-1]),
        (Integer(low=0, high=9), [1.0]),
        (Real(low=0, high=9), [9.5]),
        (Real(low=0, high=9), [float("nan")]),
        (Real(low=0, high=9), [3]),
        (Integer(low=0, high=9), [[1]]),
    ],
)
def test_codes_outside_the_domain_are_refused(column, codes):
    with pytest.raises(DataError):
        codec(column).decode(np.array(codes))


def test_single_precision_stays_inside_the_bounds():
    column = Real(low=0.1, high=0.7)
    codes = codec(column).encode(pa.array([0.1, 0.7, 0.0, 1.0])).codes
    assert codes.dtype == np.float32
    assert all(column.low <= float(code) <= column.high for code in codes)
    assert codec(column).check(np.array([0.1, 0.7])).dtype == np.float32


def test_columns_that_are_not_modelled_have_no_codec():
    with pytest.raises(DataError, match="id"):
        codec(Id())
