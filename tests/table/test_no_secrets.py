"""Whatever is wrong with a table, no message and no chained exception shows a cell of it."""

import gzip
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table.check import check_table
from understudy.table.draft import draft
from understudy.table.frame import write_frame
from understudy.table.read import read_table

SECRET = "Zaphod-4711"
SCHEMA = Schema.loads("""
columns:
  whole: {kind: integer, low: 0, high: 9}
  broken: {kind: real, low: 0, high: 9}
  stepped: {kind: real, low: 0, high: 9, resolution: 0.5}
  word: {kind: categorical, values: [a, b]}
  number: {kind: categorical, values: [1, 2]}
  rank: {kind: ordinal, values: [a, b]}
  truth: {kind: boolean}
  iso: {kind: datetime, low: 2020-01-01, high: 2020-12-31}
  german: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day, format: "%d.%m.%Y"}
  note: {kind: text}
""")
GOOD = {
    "whole": "1",
    "broken": "1.5",
    "stepped": "1.5",
    "word": "a",
    "number": "1",
    "rank": "a",
    "truth": "yes",
    "iso": "2020-02-02",
    "german": "02.02.2020",
    "note": "n",
}
HEADER = ",".join(GOOD)
ROW = ",".join(GOOD.values())


def whole_chain(error):
    """Everything that an exception carries or would print."""
    seen, queue = [], [error]
    while queue:
        one = queue.pop()
        if one is not None and one not in seen:
            seen.append(one)
            queue += [one.__cause__, one.__context__]
    parts = [f"{one} {one!r} {one.args} {vars(one)} {getattr(one, '__notes__', '')}" for one in seen]
    return "\n".join([*parts, *traceback.format_exception(error)])


def result_or_error(act):
    """What `act` gives, or the DataError that it raises."""
    try:
        return act()
    except DataError as error:
        return error


def assert_silent(act, expected=DataError):
    with pytest.raises(expected) as caught:
        act()
    assert SECRET not in whole_chain(caught.value)


def files():
    rows = f"{HEADER}\n{ROW}\n"
    yield "ragged", rows + f"{SECRET},1\n"
    yield "ragged and long", rows + f"{ROW},{SECRET}\n"
    yield "no header", f"{SECRET},1,2,3\n{SECRET},1,2,3\n"
    yield "no header, a cell twice", f"{SECRET},{SECRET},2,3\n{SECRET},1,2,3\n"
    yield "open quote", rows + f'{ROW[:-1]}"{SECRET}\n{ROW}\n'
    yield "broken quote", rows + f'{ROW[:-1]}"{SECRET}" {SECRET}\n{SECRET}\n'
    yield "latin-1", rows.encode() + f"{SECRET}\xe9,{ROW}\n".encode("latin-1")
    yield "cut gzip", gzip.compress((rows + f"{SECRET}\n" * 50).encode())[:-9]
    yield "long row", rows + ROW[:-1] + SECRET * 400_000 + "\n"
    for name in GOOD:
        if name != "note":
            yield f"bad {name}", rows + ",".join({**GOOD, name: SECRET}.values()) + "\n"


FILES = dict(files())


@pytest.mark.parametrize("case", FILES)
def test_csv(case, tmp_path):
    content = FILES[case]
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_silent(lambda: read_table(path, SCHEMA))


@pytest.mark.parametrize("case", FILES)
def test_check_and_draft_are_silent_too(case, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(FILES[case] if isinstance(FILES[case], bytes) else FILES[case].encode())
    checked = result_or_error(lambda: check_table(path, SCHEMA))
    if isinstance(checked, DataError):
        assert SECRET not in whole_chain(checked)
    else:
        assert SECRET not in "\n".join(checked.lines()) + repr(checked)
    drafted = result_or_error(lambda: draft(path))
    if isinstance(drafted, DataError):  # a draft is for the steward and shows values; its errors do not
        assert SECRET not in whole_chain(drafted)


class Awkward:
    def __str__(self):
        raise RuntimeError(SECRET)

    __repr__ = __str__


CELLS = {
    "text": SECRET,
    "bytes": SECRET.encode(),
    "broken bytes": SECRET.encode() + b"\xff",
    "list": [SECRET],
    "mapping": {SECRET: SECRET},
    "object": Awkward(),
    "tuple": (SECRET, 1),
    "set": {SECRET},
}


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", [name for name in GOOD if name != "note"])
def test_frames(name, cell, alone):
    cells = [CELLS[cell]] if alone else [GOOD[name], CELLS[cell], 3, None]
    series = np.empty(len(cells), dtype=object)
    series[:] = cells
    data = {other: [good] * len(cells) for other, good in GOOD.items()}
    assert_silent(lambda: read_table(pd.DataFrame(data | {name: pd.Series(series, dtype=object)}), SCHEMA))


@pytest.mark.parametrize("name", [name for name in GOOD if name != "note"])
def test_arrow_and_parquet(name, tmp_path):
    for cells in (pa.array([SECRET]), pa.array([SECRET]).dictionary_encode(), pa.array([SECRET.encode() + b"\xff"])):
        table = pa.table({other: [good] for other, good in GOOD.items()} | {name: cells})
        assert_silent(lambda table=table: read_table(table, SCHEMA))
        pa.parquet.write_table(table, tmp_path / "t.parquet")
        assert_silent(lambda: read_table(tmp_path / "t.parquet", SCHEMA))


def test_damaged_parquet(tmp_path):
    table = pa.table({name: [good] * 1000 for name, good in (GOOD | {"note": SECRET}).items()})
    pa.parquet.write_table(table, tmp_path / "t.parquet", compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "t.parquet").read_bytes())
    for damage in (slice(8, 200), slice(len(content) // 2, len(content) // 2 + 400), slice(-200, -8)):
        broken = content.copy()
        broken[damage] = SECRET.encode() * (len(broken[damage]) // len(SECRET)) + b"x" * (
            len(broken[damage]) % len(SECRET)
        )
        (tmp_path / "t.parquet").write_bytes(broken)
        read = result_or_error(lambda: read_table(tmp_path / "t.parquet", SCHEMA))
        assert SECRET not in (whole_chain(read) if isinstance(read, DataError) else repr(read))


def test_a_table_shows_neither_rows_nor_their_number():
    rows = pd.DataFrame({name: [good] * 4711 for name, good in GOOD.items()})
    table = read_table(rows, SCHEMA)
    assert "4711" not in repr(table) + str(table)


def test_writing_is_silent(tmp_path):
    frame = pd.DataFrame({SECRET[:3]: [SECRET]})
    assert_silent(lambda: write_frame(frame, SCHEMA, tmp_path / "t.csv"))
