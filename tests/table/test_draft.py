"""Drafts: the guessed kind of each column, everything marked as read off the data, and a draft that fits its table."""

import string

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import DataError, SchemaError
from understudy.schema import Categorical, Image, Schema
from understudy.table import profile, sources
from understudy.table.check import check_table
from understudy.table.draft import HEADER, draft
from understudy.table.read import read_table

RNG = np.random.default_rng(7)
N = 3000
MOMENTS = pd.Timestamp("2019-03-01") + pd.to_timedelta(RNG.integers(0, 1000, N), unit="D")

COLUMNS = {
    "age": (RNG.integers(17, 91, N), {"kind": "integer", "low": 15, "high": 90}),
    "weight": (np.round(RNG.normal(80, 10, N), 1), {"kind": "real", "resolution": 0.1}),
    "score": (RNG.normal(0, 1, N), {"kind": "real", "resolution": None}),
    "single": (  # 3.9 as a statistics program writes it that holds numbers in single precision
        [f"{value:.15g}" for value in np.round(RNG.normal(8, 2, N), 1).astype(np.float32)],
        {"kind": "real", "resolution": 0.1},
    ),
    "whole floats": (RNG.integers(100, 900, N).astype(float), {"kind": "integer"}),
    "gain": (np.where(RNG.random(N) < 0.6, 0, RNG.integers(1, 5000, N)), {"kind": "integer", "zero_inflated": True}),
    "income": (RNG.lognormal(7, 2, N).round(2), {"kind": "real", "log": True}),
    "trace": (RNG.lognormal(-7, 2, N), {"kind": "real", "log": True, "resolution": None}),
    "grade": (RNG.integers(1, 6, N), {"kind": "ordinal", "values": (1, 2, 3, 4, 5)}),
    "zero one": (RNG.integers(0, 2, N), {"kind": "categorical", "values": (0, 1)}),
    "truth": (RNG.random(N) < 0.5, {"kind": "boolean"}),
    "yes no": (RNG.choice(["yes", "no"], N), {"kind": "categorical", "values": ("no", "yes")}),
    "colour": (RNG.choice(["red", "green", "blue"], N), {"kind": "categorical", "values": ("blue", "green", "red")}),
    "zip": ([f"0{n}" for n in RNG.integers(100, 120, N)], {"kind": "categorical"}),
    "constant": (np.full(N, 7), {"kind": "categorical", "values": (7,)}),
    "key": ([f"K{n:05d}" for n in range(N)], {"kind": "id"}),
    "row_id": (RNG.permutation(N), {"kind": "id"}),
    "counter": (np.arange(N) * 3, {"kind": "id"}),
    "story": ([f"once upon a time {n}" for n in range(N)], {"kind": "text"}),
    "names": ([f"n{n}" for n in RNG.integers(0, 2000, N)], {"kind": "text"}),
    "nothing": ([None] * N, {"kind": "text"}),
    "day": (MOMENTS.strftime("%Y-%m-%d"), {"kind": "datetime", "resolution": "day", "format": None}),
    "german": (MOMENTS.strftime("%d.%m.%Y"), {"kind": "datetime", "resolution": "day", "format": "%d.%m.%Y"}),
    "american": (MOMENTS.strftime("%m/%d/%Y"), {"kind": "datetime", "resolution": "day", "format": "%m/%d/%Y"}),
    "minute": (
        (MOMENTS + pd.to_timedelta(RNG.integers(0, 1440, N), unit="min")).strftime("%Y-%m-%d %H:%M"),
        {"kind": "datetime", "resolution": "minute"},
    ),
    "marked": (
        np.where(RNG.random(N) < 0.1, "NA", RNG.integers(0, 500, N).astype(str)),
        {"kind": "integer", "missing": True},
    ),
    "gaps": (pd.Series(RNG.integers(0, 500, N)).where(RNG.random(N) < 0.9), {"kind": "integer", "missing": True}),
    "question": (RNG.choice(["a", "b", "?"], N), {"kind": "categorical", "values": ("a", "b"), "missing": True}),
}


@pytest.fixture(scope="module")
def data():
    return pd.DataFrame({name: values for name, (values, _) in COLUMNS.items()})


@pytest.fixture(scope="module")
def drafts(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("draft")
    data.to_csv(path / "t.csv", index=False)
    data.to_parquet(path / "t.parquet", row_group_size=700)
    return {
        "csv": (draft(path / "t.csv"), path / "t.csv"),
        "parquet": (draft(path / "t.parquet"), path / "t.parquet"),
        "frame": (draft(data), data),
    }


@pytest.mark.parametrize("source", ["csv", "parquet", "frame"])
@pytest.mark.parametrize("name", COLUMNS)
def test_guesses(name, source, drafts):
    column = drafts[source][0].columns[name]
    for fact, value in COLUMNS[name][1].items():
        assert getattr(column, fact) == value, (fact, column)
    assert column.source == "data"
    assert not getattr(column, "missing", False) or COLUMNS[name][1].get("missing")


@pytest.mark.parametrize("source", ["csv", "parquet", "frame"])
def test_a_draft_fits_its_table_and_reads_back(source, drafts):
    schema, table = drafts[source]
    assert check_table(table, schema).findings == {}
    assert read_table(table, schema).rows == N
    assert Schema.loads(schema.dumps(header=HEADER)) == schema
    assert schema.missing_values == ("?", "NA")
    assert schema.rows == 3000


def test_everything_is_marked(drafts):
    schema = drafts["csv"][0]
    marked = {name for name, _ in schema.unconfirmed()}
    assert marked == {None, *COLUMNS}
    assert (None, "rows") in schema.unconfirmed()
    assert (None, "missing_values") in schema.unconfirmed()
    assert ("age", "kind") in schema.unconfirmed()
    assert schema.label is None


def test_a_category_with_an_order_keeps_it(tmp_path):
    levels = ["low", "middle", "high"]  # none of the rows is in the middle
    data = pd.DataFrame({"level": pd.Categorical(RNG.choice(["low", "high"], 90), categories=levels, ordered=True)})
    data["plain"] = pd.Categorical(data["level"].astype(str))
    data.to_parquet(tmp_path / "t.parquet", row_group_size=40)
    for source in (data, tmp_path / "t.parquet"):
        schema = draft(source)
        assert schema.columns["level"].facts() == {"kind": "ordinal", "values": tuple(levels)}
        assert schema.columns["plain"].kind == "categorical"
        assert ("level", "values") in schema.unconfirmed()
    intervals = pd.DataFrame({"age": pd.cut(RNG.integers(0, 30, 90), [-1, 9, 19, 29]), "x": RNG.random(90)})
    assert intervals["age"].cat.ordered
    assert draft(intervals).columns["age"].kind != "ordinal"  # no schema declares intervals


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_and_spans_that_are_values_fit_their_draft(unit, tmp_path):
    one_day = pa.array([86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]] * 30, pa.int64())
    clock = pa.array([3600, 7200, None] * 10, pa.int32()).cast(pa.time32("s"))
    table = pa.table(
        {
            "constant": one_day.cast(pa.timestamp(unit)),
            "zoned": one_day.cast(pa.timestamp(unit, "Asia/Tokyo")),
            "span": pa.array([1, 2, 3] * 10, pa.int64()).cast(pa.duration(unit)),
            "clock": clock,
        }
    )
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        schema = draft(source)
        assert {column.kind for column in schema.columns.values()} == {"categorical"}
        assert check_table(source, schema).findings == {}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (pd.DataFrame(index=range(3)), "no columns"),
        (pa.table({}), "no columns"),
        (pd.DataFrame(RNG.random((5, 3))), "names, not numbers"),
        *(
            (pd.DataFrame([[1, "x"]] * 5, columns=pd.Index(["a", name], dtype=object)), r"column 2 \(counted from 1\)")
            for name in (None, np.nan, pd.NA, pd.NaT, "", " ")
        ),
    ],
)
def test_tables_without_named_columns_are_refused(data, says):
    with pytest.raises(DataError, match=says):
        draft(data)


def test_years_may_be_names_of_a_frames_columns():
    frame = pd.DataFrame({"country": list("abcde") * 8, "1999": RNG.random(40), "2000": RNG.random(40)})
    assert list(draft(frame).columns) == ["country", "1999", "2000"]


def test_bounds_and_rows_are_rounded():
    schema = draft(
        pd.DataFrame({"a": np.arange(12285, 1484705, 50)[RNG.permutation(29448)], "b": RNG.random(29448) * 97})
    )
    assert (schema.columns["a"].low, schema.columns["a"].high) == (0, 1_500_000)
    assert (schema.columns["b"].low, schema.columns["b"].high) == (0, 100)
    assert schema.rows == 30_000


def test_evidence_from_later_blocks_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 128)
    rows = ["a,b,c,d"] + [f"{i % 7},{i % 5}.0,2020-01-01,01/02/2020" for i in range(200)]
    (tmp_path / "t.csv").write_text("\n".join([*rows, "x,2.5,soon,28/02/2021"]) + "\n")
    columns = draft(tmp_path / "t.csv").columns
    assert [columns[name].kind for name in "abcd"] == ["categorical", "real", "categorical", "datetime"]
    assert columns["d"].format == "%d/%m/%Y"
    assert columns["d"].low.month == 1


def test_too_many_distinct_values_are_not_kept(monkeypatch):
    monkeypatch.setattr(profile, "MOST_DISTINCT", 10)
    columns = draft(pd.DataFrame({"a": [f"w{i % 30}" for i in range(900)], "b": [True] * 900})).columns
    assert columns["a"].kind == "text"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1,2,3\n4,5,6\n", "row of values"),
        ("a,b\n", "empty"),
        ("a,b\n1,2\n1\n", "row 2"),
        ("a\n" + "\n".join(f"some words {i}" for i in range(50)), "by hand"),
    ],
)
def test_tables_that_cannot_be_drafted(content, said, tmp_path):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(DataError, match=said):
        draft(tmp_path / "t.csv")


def test_odd_arrow_types():
    table = pa.table(
        {
            "list": [[1], [2]],
            "bytes": [b"\xff", b"\xfe"],
            "duration": pa.array([1, 2], type=pa.duration("s")),
            "decimal": pa.array([1, 2], type=pa.decimal128(5, 2)),
            "huge": pa.array([2**64 - 1, 2**64 - 2], type=pa.uint64()),
            "ok": [True, False],
        }
    )
    columns = draft(table).columns
    assert columns["list"].kind == "text"
    assert columns["ok"].kind == "boolean"


cells = st.one_of(
    st.none(),
    st.text(string.printable, max_size=6),
    st.integers(-(2**40), 2**40).map(str),
    st.floats(-1e9, 1e9).map(str),
    st.sampled_from(["NA", "?", "true", "2020-01-01", "1e300", "inf", "0", "1"]),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=12))
def test_any_small_table_is_drafted_and_fits_or_is_refused(rows):
    frame = pd.DataFrame(rows, columns=["a", "b"], dtype=object).assign(c=True)
    schema = draft(frame)
    again = Schema.loads(schema.dumps())
    assert again == schema
    for (_, rule), found in check_table(frame, schema).findings.items():
        assert rule in ("infinite",), (rule, found, schema)


def test_a_draft_is_not_yet_public(drafts):
    with pytest.raises(SchemaError):
        Schema.loads(drafts["csv"][0].dumps().replace("source: data", "source: guess"))


def test_images_are_drafted_with_their_classes(tmp_path):
    images = np.zeros((30, 4, 6), dtype=np.uint8)
    np.savez(tmp_path / "t.npz", images=images, labels=np.arange(30) % 15)
    schema = draft(tmp_path / "t.npz")
    assert schema.columns["image"] == Image(height=4, width=6, source="data")
    assert schema.columns["label"] == Categorical(values=list(range(15)), source="data")
    assert schema.label == "label"
    assert (None, "label") in schema.unconfirmed()
    assert [fact for name, fact in schema.unconfirmed() if name == "image"] == ["kind", "height", "width"]
    assert read_table(tmp_path / "t.npz", schema).rows == 30
    assert Schema.loads(schema.dumps(header=HEADER)) == schema
    images = np.dstack([np.zeros((4, 6, 2), dtype=np.uint8), np.ones((4, 6, 1), dtype=np.uint8)])
    frame = pd.DataFrame({"scan": [images, images], "age": [20, 30]})
    drafted = draft(frame)
    assert drafted.columns["scan"] == Image(height=4, width=6, channels=3, source="data")
    assert drafted.label is None


def test_images_of_several_sizes_are_told_by_their_number():
    cells = [np.zeros((4, 6), dtype=np.uint8), np.zeros((4, 7), dtype=np.uint8)]
    with pytest.raises(DataError, match="2 different sizes; resize"):
        draft(pd.DataFrame({"image": cells}))
    with pytest.raises(DataError, match="1 cells that cannot be read as an image"):
        draft(pd.DataFrame({"image": [cells[0], "x"]}))
