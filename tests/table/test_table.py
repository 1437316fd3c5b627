"""The holder of private rows, and where its arrays live."""

import copy
import os
import pickle
import tempfile

import numpy as np
import pandas as pd
import pytest

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table import storage
from understudy.table.read import read_table
from understudy.table.storage import CodeStore
from understudy.table.table import Table

SCHEMA = Schema.loads("""
columns:
  a: {kind: integer, low: 10, high: 300, missing: true}
  b: {kind: boolean}
  c: {kind: real, low: 0, high: 1}
  key: {kind: id}
""")
CODES = {"a": np.arange(10), "b": np.arange(10) % 2, "c": np.linspace(0, 1, 10)}


def test_codes_and_blocks():
    table = Table.from_codes(SCHEMA, CODES)
    assert table.rows == 10
    assert [table.codes(name).dtype.name for name in "abc"] == ["uint16", "uint8", "float32"]
    blocks = list(table.blocks(4))
    assert [len(block["a"]) for block in blocks] == [4, 4, 2]
    for name in "abc":
        np.testing.assert_array_equal(np.concatenate([block[name] for block in blocks]), table.codes(name))
    with pytest.raises(DataError, match="rows_per_block"):
        list(table.blocks(0))
    with pytest.raises(DataError, match="modelled columns are a, b, c"):
        table.codes("key")


def test_codes_cannot_be_written_to():
    given = {name: codes.copy() for name, codes in CODES.items()}
    table = Table.from_codes(SCHEMA, given)
    given["b"][:] = 1
    assert table.codes("b").tolist() == [0, 1] * 5
    with pytest.raises(ValueError, match="read-only"):
        table.codes("b")[0] = 1
    rows = pd.DataFrame({"a": [10], "b": [True], "c": [0.5]})
    for spill in (0, 1 << 30):
        with pytest.raises(ValueError, match="read-only"):
            read_table(rows, SCHEMA, spill_bytes=spill).codes("b")[0] = 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"a": np.arange(10) + 290}, "column 'a'"),
        ({"b": np.arange(10)}, "column 'b'"),
        ({"b": np.full(10, -1)}, "column 'b'"),
        ({"c": np.full(10, np.nan)}, "column 'c'"),
        ({"c": np.zeros(9)}, "same length"),
        ({"d": np.zeros(10)}, "exactly the modelled columns"),
    ],
)
def test_codes_are_checked(change, said):
    with pytest.raises(DataError, match=said):
        Table.from_codes(SCHEMA, CODES | change)


def test_the_missing_code_needs_missing_to_be_declared():
    assert Table.from_codes(SCHEMA, CODES | {"a": np.full(10, 291)}).rows == 10
    with pytest.raises(DataError, match="column 'b'"):
        Table.from_codes(SCHEMA, CODES | {"b": np.full(10, 2)})


@pytest.mark.parametrize("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_rows_are_not_sent_anywhere(send):
    with pytest.raises(TypeError, match="private"):
        send(Table.from_codes(SCHEMA, CODES))


def test_repr_names_columns_only():
    assert repr(Table.from_codes(SCHEMA, CODES)) == "Table(private rows of 3 columns: a, b, c)"


DTYPES = {"x": np.dtype("uint8"), "y": np.dtype("float32")}


def fill(store, sizes=(5, 0, 20, 1, 13)):
    rng = np.random.default_rng(0)
    blocks = [{"x": rng.integers(0, 9, size).astype("u1"), "y": rng.random(size, dtype="f4")} for size in sizes]
    for block in blocks:
        store.append(block)
    return {name: np.concatenate([block[name] for block in blocks]) for name in DTYPES}


@pytest.mark.parametrize("slab_rows", [1, 4, 13, 1000])
@pytest.mark.parametrize("spill_bytes", [0, 40, 10**6])
def test_stores_keep_every_row(slab_rows, spill_bytes, monkeypatch):
    monkeypatch.setattr(storage, "SLAB_ROWS", slab_rows)
    store = CodeStore(DTYPES, spill_bytes)
    expected = fill(store)
    assert store.rows == 39
    for name, codes in store.finish().items():
        assert codes.dtype == DTYPES[name]
        np.testing.assert_array_equal(codes, expected[name])


def test_a_store_without_rows():
    assert {name: len(codes) for name, codes in CodeStore(DTYPES).finish().items()} == {"x": 0, "y": 0}


def test_spilled_rows_leave_no_file_and_are_for_the_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    modes = []
    original = tempfile.TemporaryFile

    def watched(*args, **kwargs):
        file = original(*args, **kwargs)
        modes.append(os.fstat(file.fileno()).st_mode & 0o777)
        assert os.fstat(file.fileno()).st_nlink == 0
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", watched)
    store = CodeStore(DTYPES, 0)
    fill(store)
    arrays = store.finish()
    assert modes == [0o600, 0o600]
    assert list(tmp_path.iterdir()) == []
    assert len(arrays["x"]) == 39


def test_a_temporary_directory_that_takes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(DataError, match="TMPDIR"):
        fill(CodeStore(DTYPES, 0))
