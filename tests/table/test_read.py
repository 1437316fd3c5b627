"""Files and frames into tables: every source gives the same codes, and every trouble a message with a remedy."""

import gzip
import io
import os
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table import sources
from understudy.table.check import check_table
from understudy.table.read import read_table

SCHEMA = Schema.loads("""
columns:
  age: {kind: integer, low: 0, high: 99, missing: true}
  work: {kind: categorical, values: [office, "field, far", "say \\"hi\\""], missing: true}
  pay: {kind: real, low: 0, high: 1000, resolution: 0.5}
  day: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day}
  ok: {kind: boolean}
  key: {kind: id}
  notes: {kind: text}
""")
CSV = '''age,work,pay,day,ok,key,notes
31,office,10.5,2020-01-02,yes,7,"a ""quoted"" note"
,"field, far",0,2020-12-31,0,8,"two
lines"
250,"say ""hi""",1000,2020-06-15,TRUE,9,
,,3,2020-01-01,f,10,é
'''
CODES = {
    "age": [31, 100, 99, 100],
    "work": [0, 1, 2, 3],
    "pay": [21, 0, 2000, 6],
    "day": [1, 365, 166, 0],
    "ok": [1, 0, 1, 0],
}


def check(table, notes=True):
    assert {name: table.codes(name).tolist() for name in CODES} == CODES
    assert table.rows == 4
    assert dict(table.notes) == ({"age": 1} if notes else {})


def frame():
    return pd.DataFrame(
        {
            "age": pd.array([31, None, 250, None], dtype="Int64"),
            "work": pd.Categorical(["office", "field, far", 'say "hi"', None]),
            "pay": [10.5, 0.0, 1000.0, 3.0],
            "day": pd.to_datetime(["2020-01-02", "2020-12-31", "2020-06-15", "2020-01-01"]),
            "ok": [True, False, True, False],
            "key": [7, 8, 9, 10],
            "notes": ["a", "b", "c", "d"],
        }
    )


def as_csv(tmp_path, change=lambda text: text, name="t.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(change(CSV).encode(encoding))
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\n\n" + text + "\n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("31,office,10.5", '" 31 ", office ,"10.5 "'),
        lambda text: text.replace("age,work,", '"age", work ,'),
        lambda text: text.replace("\n,,3", '\n"","",3'),
    ],
    ids=["plain", "crlf", "bom", "blank lines", "no last newline", "blanks", "header blanks", "quoted empty"],
)
def test_csv(tmp_path, change):
    check(read_table(as_csv(tmp_path, change), SCHEMA))


@pytest.mark.parametrize("delimiter", ";\t|")
def test_delimiters(tmp_path, delimiter):
    def change(text):
        rows = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
        return rows.to_csv(index=False, sep=delimiter)

    check(read_table(as_csv(tmp_path, change), SCHEMA))


def test_gzip_by_content(tmp_path):
    for name in ("t.csv.gz", "t.csv"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(CSV.encode()))
        check(read_table(path, SCHEMA))


def test_parquet(tmp_path):
    frame().to_parquet(tmp_path / "t.parquet", row_group_size=3)
    check(read_table(tmp_path / "t.parquet", SCHEMA))
    (tmp_path / "t.parquet").rename(tmp_path / "odd name")
    check(read_table(str(tmp_path / "odd name"), SCHEMA))


def test_parquet_names_with_dots(tmp_path):
    schema = Schema.loads("columns: {home.dest: {kind: integer, low: 0, high: 9}, home: {kind: boolean}}")
    pa.parquet.write_table(pa.table({"home.dest": [1, 2], "home": [True, False]}), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", schema).codes("home.dest").tolist() == [1, 2]


def test_frames_and_arrow():
    check(read_table(frame(), SCHEMA))
    table = pa.Table.from_pandas(frame())
    check(read_table(table, SCHEMA))
    check(read_table(table.to_batches()[0], SCHEMA))
    check(read_table(table.to_reader(max_chunksize=3), SCHEMA))


def test_frames_of_objects():
    mixed = frame().astype(object)
    mixed["age"] = [31, None, "250", float("nan")]
    mixed["pay"] = ["10.5", 0, 1000.0, 3]
    mixed["ok"] = [True, "no", 1, 0.0]
    check(read_table(mixed, SCHEMA))
    odd = frame()
    odd["age"] = pd.arrays.SparseArray([31.0, np.nan, 250.0, np.nan])
    odd["day"] = pd.PeriodIndex(["2020-01-02", "2020-12-31", "2020-06-15", "2020-01-01"], freq="D")
    check(read_table(odd, SCHEMA))


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        ("['1', '2', else]", [1.0, 2.0, 1.0]),
        ("['true', 'false', else]", [True, False]),
        ("['2020-01-01T00:00:00', else]", [pd.Timestamp("2020-01-01")]),
        ("['2020-01-01', else]", [date(2020, 1, 1)]),
        ("['1.5', else]", [Decimal("1.5"), Decimal("2")]),
        ("['1', else]", [Decimal("1.0"), Decimal("1"), 1, Decimal("1E-45")]),
    ],
)
@pytest.mark.parametrize(
    "more",
    [
        *("else", "1.0", 3, 2.5, True, datetime(2021, 1, 1, 5), date(2021, 1, 1), b"1", None),
        *(Fraction(1, 2), Decimal("1E+40"), 2**64, np.float16(0.5), np.timedelta64(1, "s"), complex(1)),
    ],
    ids=repr,
)
def test_no_row_changes_how_another_is_read(values, cells, more):
    schema = Schema.loads(f"columns: {{a: {{kind: categorical, values: {values}, other: else, missing: true}}}}")

    def codes(*rows):
        return read_table(pd.DataFrame({"a": pd.Series(rows, dtype=object)}), schema).codes("a").tolist()

    alone = [codes(cell)[0] for cell in cells]
    assert alone[0] == 0
    assert codes(*cells) == alone
    assert codes(*cells, more)[:-1] == alone
    assert codes(more, *cells)[1:] == alone


def test_the_order_of_columns_and_the_index_do_not_matter():
    shuffled = frame()[list(reversed(frame().columns))]
    shuffled.index = [5, 5, 5, 5]
    check(read_table(shuffled, SCHEMA))


def test_columns_that_are_not_modelled_may_be_absent():
    check(read_table(frame().drop(columns=["key", "notes"]), SCHEMA))


def test_blocks_join_up(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 256)
    monkeypatch.setattr(sources, "rows_per_block", lambda columns: 7)
    schema = Schema.loads("columns: {a: {kind: integer, low: 0, high: 999}, b: {kind: real, low: 0, high: 1000}}")
    data = pd.DataFrame({"a": np.arange(500), "b": np.arange(500) / 2})
    data.to_csv(tmp_path / "t.csv", index=False)
    data.to_parquet(tmp_path / "t.parquet")
    for source in (tmp_path / "t.csv", tmp_path / "t.parquet", data, pa.Table.from_pandas(data)):
        for spill in (0, 2000, 1 << 30):
            table = read_table(source, schema, spill_bytes=spill)
            assert table.codes("a").tolist() == list(range(500))
            assert table.codes("b").tolist() == (np.arange(500) / 2).tolist()


def test_texts_for_missing_cells(tmp_path):
    text = "a,b\nNA,NA\n?,x\n-9,null\n"
    (tmp_path / "t.csv").write_text(text)
    columns = (
        "columns: {a: {kind: integer, low: 0, high: 9, missing: true}, b: {kind: categorical, values: [NA, x, 'null']}}"
    )
    with pytest.raises(DataError, match="'a': 2 cells not a number"):
        read_table(tmp_path / "t.csv", Schema.loads(columns))
    table = read_table(tmp_path / "t.csv", Schema.loads(f"missing_values: ['?', NA, -9]\n{columns}"))
    assert table.codes("a").tolist() == [10, 10, 10]
    assert table.codes("b").tolist() == [0, 1, 2]


def test_one_column_with_empty_lines(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n\n3\n")
    schema = Schema.loads("columns: {a: {kind: integer, low: 0, high: 9, missing: true}}")
    assert read_table(tmp_path / "t.csv", schema).codes("a").tolist() == [1, 10, 3]


def test_a_row_outside_the_domain_changes_nothing_but_itself():
    schema = Schema.loads("""
columns:
  a: {kind: categorical, values: [x, y, rest], other: rest}
  b: {kind: integer, low: 0, high: 9}
""")
    rows = pd.DataFrame({"a": ["x", "y"], "b": [1, 2]})
    odd = pd.concat([rows, pd.DataFrame({"a": ["never seen"], "b": [10**9]})])
    one, two = read_table(rows, schema), read_table(odd, schema)
    for name in ("a", "b"):
        assert one.codes(name).dtype == two.codes(name).dtype
        assert one.codes(name).tolist() == two.codes(name).tolist()[:2]
    assert [two.codes(name)[2] for name in ("a", "b")] == [2, 9]


def _spoilt(content):
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 255 for byte in content[middle : middle + 8]) + content[middle + 8 :]


SMALL = Schema.loads("columns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean}, c: {kind: text}}")


def refused(content, said, tmp_path, schema=SMALL, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        read_table(path, schema)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ["empty"]),
        ("\n\n", ["empty"]),
        ("\ufeff", ["empty"]),
        ("a,b,c\n", ["empty", "at least one row"]),
        ("a,b,c", ["empty", "at least one row"]),
        ("a,b,b\n1,1,1\n", ["column 3", "earlier", "rename"]),
        ("a,b,\n1,1,1\n", ["column 3 has no name"]),
        ("a,c\n1,1\n", ["'b'", "not in the table"]),
        ("a,b,c,d\n1,1,1,1\n", ["'d'", "not in the schema", "kind: text"]),
        ("p,q,r\n1,1,1\n", ["'a', 'b'", "another table", "header line"]),
        ("a,b,c\n1,1,x\n1,1\n1,1,x\n1,1,x,x\n", ["2 rows", "rows 2, 4", "understudy check TABLE -s SCHEMA -o CSV"]),
        ("a,b,c\n1,1,x\nz,1,x\n2,,x\n", ["'a': 1 cell not a number (row 2)", "'b': 1 cell missing", "(row 3)"]),
        ("a,b,c\n" + "z,1,x\n" * 9, ["9 cells", "rows 1, 2, 3, 4, 5, ..."]),
        ("a,b,c\n1,1,x\n1\nz,1,x\n", ["1 row with", "(row 2)", "1 cell not a number (row 3)"]),
        ('a,b,c\n1,1,x\n2,1,"open\n3,1,x\n4,1,x\n', ["quote", "close or double"]),
        (b"a,b,c\n1,1,x\n\xe9,1,x\n", ["UTF-8", "iconv"]),
        (b"\xe9,b,c\n1,1,x\n", ["UTF-8", "iconv"]),
        (b"a,b,c\n1,1,caf\xe9\n", ["UTF-8", "iconv"]),
        (b"a,b,c\n1,caf\xe9\n", ["UTF-8", "iconv"]),
        ("a,b,c\n1,1,x\n".encode("utf-16"), ["UTF-16"]),
        (gzip.compress(b"a,b,c\n" + b"1,1,x\n" * 1000, mtime=0)[:-20], ["damaged or cut off"]),
        (_spoilt(gzip.compress(b"a,b,c\n" + bytes(range(48, 58)) * 5000, mtime=0)), ["damaged or cut off"]),
        (b"PK\x03\x04rest", ["Excel"]),
        (b"PAR1 is not enough", ["damaged"]),
    ],
    ids=lambda part: repr(part)[:30],
)
def test_refused_files(content, said, tmp_path):
    refused(content, said, tmp_path)


def test_a_name_that_promises_parquet(tmp_path):
    refused("a,b,c\n1,1,x\n", ["not a Parquet file"], tmp_path, name="t.parquet")


def test_a_literal_quote_inside_a_field_is_no_open_quote(tmp_path):
    (tmp_path / "t.csv").write_text('a,b,c\n1,1,5" pipe\n2,1,x\n')
    assert read_table(tmp_path / "t.csv", SMALL).codes("a").tolist() == [1, 2]


@pytest.mark.parametrize("block", [1 << 21, 16, 17, 18, 19])
def test_utf8_across_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", block)
    schema = Schema.loads("columns: {a: {kind: categorical, values: [é, 数数, 😀]}}")
    (tmp_path / "t.csv").write_text("a\n" + "é\n数数\n😀\n" * 20, encoding="utf-8")
    assert read_table(tmp_path / "t.csv", schema).codes("a").tolist() == [0, 1, 2] * 20
    (tmp_path / "t.csv").write_bytes(b"a\n" + "é\n数数\n😀\n".encode() * 20 + "é".encode()[:1])
    with pytest.raises(DataError, match="UTF-8"):
        read_table(tmp_path / "t.csv", schema)


def test_rows_longer_than_a_block(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", 64)
    refused("a,b,c\n1,1," + "x" * 500 + "\n", ["longer than", "quote"], tmp_path)


def test_row_numbers_count_skipped_rows_and_lines_in_quotes(tmp_path):
    refused('a,b,c\n1,1,"two\nlines"\n1\n\n2,1,x\nz,1,x\n1\nz,1,x\n', ["rows 2, 5", "(rows 4, 6)"], tmp_path)


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "none.csv", SMALL)
    with pytest.raises(DataError, match="directory"):
        read_table(tmp_path, SMALL)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe"):
        read_table(tmp_path / "pipe", SMALL)
    with pytest.raises(DataError, match="path, a DataFrame or an Arrow table, got list"):
        read_table([1, 2], SMALL)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,1,x\n")
    (tmp_path / "t.csv").chmod(0)
    with pytest.raises(DataError, match="Permission denied"):
        read_table(tmp_path / "t.csv", SMALL)


def test_refused_frames():
    with pytest.raises(DataError, match="unique"):
        read_table(pd.DataFrame([[1, True, False]], columns=["a", "b", "b"]), SMALL)
    with pytest.raises(DataError, match="empty"):
        read_table(pd.DataFrame({"a": [], "b": []}), SMALL)
    with pytest.raises(DataError, match=r"'a': 1 cell missing.*row 2"):
        read_table(pd.DataFrame({"a": [1, None], "b": [True, False]}), SMALL)
    with pytest.raises(DataError, match="'a': 2 cells of a type that cannot be read"):
        read_table(pd.DataFrame({"a": [[1], [2]], "b": [True, False]}), SMALL)


@pytest.mark.parametrize("name", [None, np.nan])
def test_a_column_without_a_name_is_refused_by_its_place(name):
    frame = pd.DataFrame([[1, True, 5.0]], columns=pd.Index(["a", "b", name], dtype=object))
    for read in (read_table, check_table):
        with pytest.raises(DataError, match=r"column 3 \(counted from 1\) has no name; name it, or drop it"):
            read(frame, SMALL)


def test_many_findings_are_cut_short():
    schema = Schema(columns={f"c{i}": {"kind": "boolean"} for i in range(30)})
    with pytest.raises(DataError, match="and 10 more"):
        read_table(pd.DataFrame({f"c{i}": ["x"] for i in range(30)}), schema)
