"""Checking a table: counts by column and rule, and the offending cells in a file for the steward alone."""

import csv
import stat

import pandas as pd
import pytest

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table import check, sources
from understudy.table.check import check_table, write_offending
from understudy.table.codec import CLIPPED, MISSING, OUTSIDE
from understudy.table.parse import NOT_A_NUMBER
from understudy.table.read import RAGGED, read_table

SCHEMA = Schema.loads("""
columns:
  a: {kind: integer, low: 0, high: 9}
  b: {kind: categorical, values: [x, y]}
  c: {kind: text}
""")
ROWS = "a,b,c\n1,x,n\nseven,x,n\n100,z,n\n1\n,y,n\n-5,y,n\n1,y,n,n\n2,,n\n"
EXPECTED = {
    (None, RAGGED): [4, 7],
    ("a", NOT_A_NUMBER): [2],
    ("a", CLIPPED): [3, 6],
    ("a", MISSING): [5],
    ("b", OUTSIDE): [3],
    ("b", MISSING): [8],
}


@pytest.fixture(params=[1 << 21, 16])
def path(request, tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "CSV_BLOCK_BYTES", request.param)
    (tmp_path / "t.csv").write_text(ROWS)
    return tmp_path / "t.csv"


def test_counts_and_row_numbers(path):
    result = check_table(path, SCHEMA)
    assert {key: found.rows for key, found in result.findings.items()} == EXPECTED
    assert {key: found.count for key, found in result.findings.items()} == {k: len(v) for k, v in EXPECTED.items()}
    assert not result.fits
    assert "column 'b': 1 cell not among the declared values (row 3)" in result.lines()
    assert "seven" not in "".join(result.lines())


def test_offending_cells_go_to_the_steward_alone(path, tmp_path):
    count = write_offending(path, SCHEMA, tmp_path / "offending.csv")
    with (tmp_path / "offending.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert count == len(rows) == sum(map(len, EXPECTED.values()))
    told = {}
    for row in rows:
        told.setdefault((row["column"] or None, row["rule"]), []).append(int(row["row"]))
    assert told == EXPECTED
    assert {row["value"] for row in rows} == {"seven", "100", "-5", "z", ""}
    assert stat.S_IMODE((tmp_path / "offending.csv").stat().st_mode) == 0o600


def test_only_the_first_cells_of_a_rule_are_written(path, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "MOST_WRITTEN", 1)
    assert write_offending(path, SCHEMA, tmp_path / "offending.csv") == len(EXPECTED)


def test_clipped_cells_do_not_stand_in_the_way():
    rows = pd.DataFrame({"a": [1, 50], "b": ["x", "y"]})
    result = check_table(rows, SCHEMA)
    assert result.fits
    assert list(result.findings) == [("a", CLIPPED)]
    assert dict(read_table(rows, SCHEMA).notes) == {"a": 1}


def test_a_table_that_fits(tmp_path):
    rows = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert check_table(rows, SCHEMA).findings == {}
    assert write_offending(rows, SCHEMA, tmp_path / "none.csv") == 0


def test_check_and_read_agree(path):
    with pytest.raises(DataError) as caught:
        read_table(path, SCHEMA)
    for line in check_table(path, SCHEMA).lines():
        assert (line in str(caught.value)) is ("clipped" not in line)


def test_wrong_columns_are_refused():
    with pytest.raises(DataError, match="another table"):
        check_table(pd.DataFrame({"q": [1]}), SCHEMA)
    with pytest.raises(DataError, match="empty"):
        check_table(pd.DataFrame({"a": [], "b": []}), SCHEMA)
