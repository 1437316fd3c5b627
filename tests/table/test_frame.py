"""Codes to frames and files: types from the schema, ids made anew, files whole or absent."""

import gzip
import os
import resource
import stat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table import frame as frames
from understudy.table.frame import frame, write_frame
from understudy.table.read import read_table
from understudy.table.written import written_whole

SCHEMA = Schema.loads("""
columns:
  key: {kind: id}
  number: {kind: categorical, values: [3, 1], missing: true}
  word: {kind: categorical, values: [plain, "a, b", 'say "x"', "", "two\\nlines"], missing: true}
  mixed: {kind: categorical, values: [N, 1, 2.5]}
  flag: {kind: categorical, values: [true, false]}
  rank: {kind: ordinal, values: [low, high]}
  truth: {kind: boolean, missing: true}
  whole: {kind: integer, low: -5, high: 5, missing: true}
  small: {kind: integer, low: 0, high: 9, dtype: int8}
  real: {kind: real, low: 0, high: 1, resolution: 0.1, missing: true}
  loose: {kind: real, low: 0, high: 1, dtype: float32}
  day: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day, missing: true}
  german: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day, format: "%d.%m.%Y"}
  hour: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: hour}
  person: {kind: id, prefix: P-}
  notes: {kind: text}
""")
CODES = {
    "number": [0, 1, 2],
    "word": [1, 5, 4],
    "mixed": [0, 1, 2],
    "flag": [0, 1, 0],
    "rank": [0, 1, 1],
    "truth": [1, 2, 0],
    "whole": [0, 11, 10],
    "small": [0, 9, 5],
    "real": [1, 11, 10],
    "loose": [0.25, 0.5, 1.0],
    "day": [0, 366, 365],
    "german": [0, 1, 2],
    "hour": [0, 25, 2],
}
CODES = {name: np.array(codes) for name, codes in CODES.items()}


def test_frames_have_the_schemas_columns_and_types():
    made = frame(SCHEMA, CODES)
    assert list(made.columns) == [name for name in SCHEMA.columns if name != "notes"]
    assert made["key"].tolist() == [1, 2, 3]
    assert made["person"].tolist() == ["P-1", "P-2", "P-3"]
    assert made["number"].tolist()[:2] == [3, 1]
    assert made["truth"].isna().tolist() == [False, True, False]
    assert made["real"].tolist()[0] == 0.1
    assert made["small"].dtype == "int8"
    assert made["loose"].dtype == "float32"


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "T.CSV"])
@pytest.mark.parametrize("rows_per_part", [2, 1000])
def test_files_read_back_to_the_same_codes(name, rows_per_part, tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "ROWS_PER_PART", rows_per_part)
    write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / name)
    table = read_table(tmp_path / name, SCHEMA)
    for column, codes in CODES.items():
        np.testing.assert_array_equal(table.codes(column), codes.astype(table.codes(column).dtype))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_csv_as_a_person_would_write_it(tmp_path):
    schema = Schema.loads("""
columns:
  word: {kind: categorical, values: [plain, b], missing: true}
  whole: {kind: integer, low: 0, high: 5, missing: true}
  german: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day, format: "%d.%m.%Y"}
  day: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day}
  "odd, name": {kind: boolean}
""")
    codes = {"word": [0, 2], "whole": [6, 3], "german": [1, 2], "day": [1, 2], "odd, name": [0, 1]}
    write_frame(frame(schema, {name: np.array(c) for name, c in codes.items()}), schema, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (
        'word,whole,german,day,"odd, name"\nplain,,02.01.2020,2020-01-02,false\n,3,03.01.2020,2020-01-03,true\n'
    )


def test_csv_shows_no_digits_beyond_single_precision(tmp_path):
    schema = Schema.loads("columns: {a: {kind: real, low: 0, high: 1}}")
    write_frame(frame(schema, {"a": np.array([0.1, 0.7], dtype=np.float32)}), schema, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a\n0.1\n0.7\n"
    assert read_table(tmp_path / "t.csv", schema).codes("a").tolist() == np.float32([0.1, 0.7]).tolist()


def test_equal_rows_give_equal_gzip_files(tmp_path):
    for name in ("one.csv.gz", "two.csv.gz"):
        write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / name)
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.csv.gz").read_bytes()).startswith(b"key,number")


def test_parquet_has_plain_types(tmp_path):
    write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / "t.parquet")
    types = {field.name: str(field.type) for field in pa.parquet.read_schema(tmp_path / "t.parquet")}
    assert types == {
        "key": "int64",
        "number": "int64",
        "word": "string",
        "mixed": "string",
        "flag": "bool",
        "rank": "string",
        "truth": "bool",
        "whole": "int64",
        "small": "int8",
        "real": "double",
        "loose": "float",
        "day": "date32[day]",
        "german": "date32[day]",
        "hour": "timestamp[ms]",
        "person": "string",
    }


def test_no_rows(tmp_path):
    empty = frame(SCHEMA, {name: codes[:0] for name, codes in CODES.items()})
    for name in ("t.csv", "t.parquet"):
        write_frame(empty, SCHEMA, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 0


def test_a_frame_that_went_through_other_hands(tmp_path):
    made = frame(SCHEMA, CODES)
    made["word"] = made["word"].astype(object)
    made["rank"] = made["rank"].astype(str)
    write_frame(made, SCHEMA, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", SCHEMA).codes("word").tolist() == [1, 5, 4]
    made["rank"] = ["low", "high", "higher"]
    with pytest.raises(DataError, match="'rank'"):
        write_frame(made, SCHEMA, tmp_path / "t.csv")


def test_unknown_endings_and_columns(tmp_path):
    with pytest.raises(DataError, match=r"\.csv, \.csv\.gz or \.parquet"):
        write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="'zzz' are not in the schema"):
        write_frame(pd.DataFrame({"zzz": [1]}), SCHEMA, tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_failing_write_leaves_what_was_there(name, tmp_path):
    (tmp_path / name).write_text("before")
    big = frame(SCHEMA, {column: np.tile(codes, 20_000) for column, codes in CODES.items()})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # stands for a full disk
    try:
        with pytest.raises(DataError, match="nothing was written"):
            write_frame(big, SCHEMA, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "before"


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="No such file or directory"):
        write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / "none" / "t.csv")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(DataError, match="not a plain file"):
        write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_an_interrupted_write_leaves_nothing(tmp_path):
    def write():
        with written_whole(tmp_path / "t") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert list(tmp_path.iterdir()) == []


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_frame(frame(SCHEMA, CODES), SCHEMA, tmp_path / "t.csv")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t.csv").stat().st_mode) == 0o640
