"""Tables from wherever they are, as a stream of Arrow arrays: CSV, Parquet, DataFrames, Arrow.

Errors of Arrow's readers quote rows, so none of them is passed on or chained.
"""

import codecs
import csv
import gzip
import io
import os
import stat
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.schema.fields import is_text
from understudy.table.objects import arrow_by_kind
from understudy.table.pictures import cells_of_arrays

CELLS_PER_BLOCK = 1 << 21
IMAGES_PER_BLOCK = 1024
CSV_BLOCK_BYTES = 1 << 21
HEADER_BYTES = 1 << 20
BROKEN = (pa.ArrowException, OSError, EOFError, ValueError, zlib.error)  # what reading a damaged file may raise
DELIMITERS = ",;\t|"
UTF8_REMEDY = "save it as UTF-8 (for instance with `iconv -f latin1 -t utf-8`)"

Block = dict[str, pa.Array]


class Source(ABC):
    """An open table: `names` of its columns, and its rows in blocks. `ragged` fills up while a CSV file is read.

    `images` are the columns whose blocks are cells of images (`pictures.CELL`).
    """

    def __init__(self, label: str, names: list[str], images: Collection[str] = ()) -> None:
        self.label = label
        self.names = names
        self.images = list(images)
        self.ragged: list[int] = []
        first = {name: place for place, name in reversed([*enumerate(names, start=1)])}
        again = [place for place, name in enumerate(names, start=1) if first[name] < place]
        if again:
            # By their place: where a file has no header line, its first row's cells stand here.
            raise DataError(
                f"{label}: column names must be unique, but column {again[0]} has the name of an earlier one; rename"
                " it, or is there no header line?"
            )

    @abstractmethod
    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        """Arrays of the given columns, all of one length within a block."""

    def row_numbers(self, positions: np.ndarray) -> np.ndarray:
        """Row numbers (the first row is 1, a header does not count) of positions among the rows that were read."""
        skipped = np.array(self.ragged, dtype=np.int64) - 1
        return positions + np.searchsorted(skipped - np.arange(len(skipped)), positions, side="right") + 1


def open_source(source: Any, schema: Schema | None = None) -> Source:
    """Opens a path, DataFrame or Arrow table; the schema helps to find a CSV file's delimiter, images and labels."""
    if isinstance(source, pd.DataFrame):
        return FrameSource(source, schema)
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source), schema)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if hasattr(source, "__arrow_c_stream__"):
        return ArrowSource(source)
    raise DataError(f"a table must be a path, a DataFrame or an Arrow table, got {type(source).__name__}")


def _open_path(path: Path, schema: Schema | None) -> Source:
    from understudy.table import image_sources  # stands on this file

    label = f"table {str(path)!r}"
    problem = ""
    start = b""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb") as file:
                start = file.read(4)
        elif not stat.S_ISDIR(mode):
            problem = "it is a pipe or a device; give one CSV, Parquet or .npz file, or a folder of PNG images"
    except FileNotFoundError:
        problem = "there is no such file"
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    if problem:
        raise DataError(f"{label}: {problem}")
    if stat.S_ISDIR(mode):
        if schema is not None and not schema.images:
            raise DataError(
                f"{label}: it is a directory; give one CSV or Parquet file, or for a folder of PNG images a schema with"
                " a column of kind image"
            )
        return image_sources.FolderSource(label, path, schema)
    if start == b"PAR1":
        return ParquetSource(label, path)
    if path.suffix.lower() == ".npz":
        return image_sources.NpzSource(label, path, schema)
    if start[:2] == b"PK":
        raise DataError(f"{label}: must be CSV or Parquet, but it is a zip or Excel file; export it as CSV")
    if path.suffix in (".parquet", ".pq"):
        raise DataError(f"{label}: it is not a Parquet file, whatever its name says")
    expected = () if schema is None else schema.columns
    return CsvSource(label, path, expected, is_gzip=start[:2] == b"\x1f\x8b")


def listed(names: Collection[str], most: int = 10) -> str:
    """Names for a message: the first few.

    >>> listed(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    shown = ", ".join(repr(name) for name in list(names)[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def rows_per_block(columns: int) -> int:
    return max(1024, min(1 << 17, CELLS_PER_BLOCK // max(columns, 1)))


class FrameSource(Source):
    def __init__(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        names = _frame_names(frame)
        if schema is not None:
            images = [name for name in names if name in schema.images]
        else:
            images = [name for place, name in enumerate(names) if _starts_with_image(frame.iloc[:, place])]
        super().__init__("the DataFrame", names, images)
        self._frame = frame

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        size = rows_per_block(len(columns))
        if set(columns) & set(self.images):
            size = min(size, IMAGES_PER_BLOCK)
        places = {name: self.names.index(name) for name in columns}
        for first in range(0, len(self._frame), size):
            part = self._frame.iloc[first : first + size]
            yield {name: self._arrow(name, part.iloc[:, place]) for name, place in places.items()}

    def _arrow(self, name: str, series: pd.Series) -> pa.Array:
        if name in self.images:
            return cells_of_arrays(series)
        if isinstance(series.dtype, pd.PeriodDtype):
            series = series.dt.to_timestamp()
        elif isinstance(series.dtype, pd.SparseDtype):
            series = series.sparse.to_dense()
        failed = False
        try:
            return arrow_by_kind(series)
        except Exception:
            failed = True
        if failed:
            raise DataError(
                f"{self.label}: column {name!r} holds objects that cannot be read; turn them into text or numbers"
            )


def _frame_names(frame: pd.DataFrame) -> list[str]:
    """The columns' names as text; one without a name would be called nan, like any other without."""
    for place, name in enumerate(frame.columns, start=1):
        if (pd.api.types.is_scalar(name) and pd.isna(name)) or not str(name).strip():
            raise DataError(f"the DataFrame: column {place} (counted from 1) has no name; name it, or drop it")
    return [str(name) for name in frame.columns]


def _starts_with_image(series: pd.Series) -> bool:
    return series.dtype == object and len(series) > 0 and getattr(series.iloc[0], "ndim", 0) in (2, 3)


class ArrowSource(Source):
    def __init__(self, table: Any) -> None:
        self._reader = pa.RecordBatchReader.from_stream(table)
        super().__init__("the Arrow table", self._reader.schema.names)

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        size = rows_per_block(len(columns))
        for batch in self._reader:
            for first in range(0, batch.num_rows, size):
                part = batch.slice(first, size)
                yield {name: part.column(name) for name in columns}


class ParquetSource(Source):
    def __init__(self, label: str, path: Path) -> None:
        self._path = path
        self._file = self._open(label, [])
        super().__init__(label, self._file.schema_arrow.names)

    def _open(self, label: str, dictionaries: list[str]) -> pa.parquet.ParquetFile:
        # Read in small pieces as they are needed: a file may be one row group of any size.
        options = {"pre_buffer": False, "buffer_size": 1 << 16, "read_dictionary": dictionaries}
        return _told(
            lambda: pa.parquet.ParquetFile(self._path, **options),
            f"{label}: the Parquet file is damaged or of an unknown version; write it again",
        )

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        texts = [name for name in columns if pa.types.is_string(self._file.schema_arrow.field(name).type)]
        batches = self._open(self.label, texts).iter_batches(
            batch_size=rows_per_block(len(columns)), columns=list(columns), use_threads=False
        )
        damaged = f"{self.label}: the Parquet file is damaged; write it again"
        while (batch := _told(lambda: next(batches, None), damaged)) is not None:
            yield {name: batch.column(name) for name in columns}


def _told(read: Callable[[], Any], message: str) -> Any:
    """What `read` gives; its errors, which may quote private rows, are replaced by the message."""
    try:
        return read()
    except BROKEN:
        pass
    raise DataError(message)


class CsvSource(Source):
    """A CSV file, every column as text: an empty field is null, a quoted empty one the empty text."""

    def __init__(self, label: str, path: Path, expected: Collection[str], *, is_gzip: bool) -> None:
        self._path, self._is_gzip = path, is_gzip
        self._delimiter, self._header = _sniff(label, self._start(label), expected)
        if not all(is_text(name) for name in self._header):
            raise DataError(f"{label}: must be UTF-8; {UTF8_REMEDY}")
        super().__init__(label, [name.strip() for name in self._header])
        if "" in self.names:
            place = self.names.index("") + 1
            raise DataError(f"{label}: column {place} has no name in the header; name it, or write the file without it")

    def _open(self) -> BinaryIO:
        return gzip.open(self._path, "rb") if self._is_gzip else self._path.open("rb")

    def _start(self, label: str) -> str:
        def read() -> bytes:
            with self._open() as file:
                return file.read(HEADER_BYTES)

        start = _told(read, f"{label}: the file is damaged or cut off; write it again")
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(f"{label}: must be UTF-8, but it is UTF-16; save it as UTF-8")
        if not start.strip(b"\xef\xbb\xbf\r\n\t "):
            raise DataError(f"{label}: the file is empty; it needs a header and rows")
        return start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        self.ragged.clear()
        raw = {self._header[self.names.index(name)]: name for name in columns}
        with self._open() as file:
            watched = _Watched(file)
            problem: list[str] = []
            reader = self._attempt(lambda: self._reader(watched, list(raw)), problem)
            while not problem:
                batch = self._attempt(lambda: _next_batch(reader), problem)
                if batch is None or not watched.is_utf8:
                    break
                yield {name: batch.column(field) for field, name in raw.items()}
        if not watched.is_utf8:
            raise DataError(f"{self.label}: must be UTF-8; {UTF8_REMEDY}")
        if problem:
            raise DataError(f"{self.label}: {problem[0]}")
        if watched.quotes % 2 and self._ends_in_quotes():
            raise DataError(
                f"{self.label}: a quote is opened and never closed, which swallows rows; close or double it"
            )

    def _reader(self, file: Any, columns: list[str]) -> pa.csv.CSVStreamingReader:
        return pa.csv.open_csv(
            pa.PythonFile(file, mode="r"),
            # Without threads, since only then the reader knows the numbers of ragged rows.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK_BYTES),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                ignore_empty_lines=len(self._header) > 1,  # in a file of one column an empty line is a missing cell
                invalid_row_handler=self._note_ragged,
            ),
            convert_options=pa.csv.ConvertOptions(
                include_columns=columns,
                column_types={name: pa.string() for name in columns},
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _note_ragged(self, row: pa.csv.InvalidRow) -> str:
        self.ragged.append(row.number - 1)  # the header is row 1 to Arrow
        return "skip"

    def _attempt(self, read: Callable[[], Any], problem: list[str]) -> Any:
        try:
            return read()
        except BROKEN as error:
            said = str(error)
            if "Empty CSV" in said:
                problem.append("it is empty; it needs at least one row")
            elif "straddl" in said or "block size" in said:
                problem.append(f"a row is longer than {CSV_BLOCK_BYTES >> 20} MB; is a quote left open?")
            elif isinstance(error, pa.ArrowException):
                problem.append("it is not a CSV file that can be read; check its quotes and delimiter")
            else:
                problem.append("the file is damaged or cut off; write it again")
        return None

    def _ends_in_quotes(self) -> bool:
        with self._open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="") as text:
            before = csv.field_size_limit(2**31 - 1)
            try:
                for _ in csv.reader(text, delimiter=self._delimiter, strict=True):
                    pass
            except csv.Error as error:
                return "end of data" in str(error)
            finally:
                csv.field_size_limit(before)
        return False


def _next_batch(reader: pa.csv.CSVStreamingReader) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


class _Watched(io.RawIOBase):
    """Passes a file on, character by whole character, and notes what Arrow's reader would not tell.

    An odd number of quotes means that one may have been left open. Bytes that are not UTF-8 end the file here: Arrow
    would let them pass in columns that are not read, and its handler of ragged rows fails on them.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._rest = b""  # the first bytes of a character that goes on in the next chunk
        self.quotes = 0
        self.is_utf8 = True

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        fresh = self._file.read(max(size - len(self._rest), 1)) if self.is_utf8 else b""
        chunk = self._rest + fresh
        try:
            complete = codecs.utf_8_decode(chunk, "strict", not fresh)[1]
        except UnicodeDecodeError:
            self.is_utf8, complete, chunk = False, 0, b""
        self._rest = chunk[complete:]
        self.quotes += chunk.count(b'"')
        return chunk[:complete]


def _sniff(label: str, start: str, expected: Collection[str]) -> tuple[str, list[str]]:
    """The delimiter under which the header shows most of the expected names, or else most names."""
    best: tuple[tuple[int, int], str, list[str]] | None = None
    for delimiter in DELIMITERS:
        try:
            names = next((row for row in csv.reader(io.StringIO(start, newline=""), delimiter=delimiter) if row), [])
        except csv.Error:
            continue
        score = (len({name.strip() for name in names} & set(expected)), len(names))
        if best is None or score > best[0]:
            best = (score, delimiter, names)
    if best is None or not best[2]:
        raise DataError(f"{label}: no header was found in the first line; the first line must name the columns")
    return best[1], best[2]
