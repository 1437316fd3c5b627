"""Codes back to a DataFrame with the schema's columns, types and categories, and that to a file."""

import csv
import gzip
import io
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from understudy.errors import DataError
from understudy.schema import Datetime, Id, Image, Integer, Real, Schema
from understudy.schema.columns import Categorical, Column
from understudy.table.codec import codec
from understudy.table.pictures import image_codec
from understudy.table.sources import listed
from understudy.table.written import written_whole

ROWS_PER_PART = 1 << 17
SPECIAL = frozenset('",\r\n')


def frame(schema: Schema, codes: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """A DataFrame in the schema's order; ids are made anew, 1 to n, and text columns are left out.

    Images are objects: one uint8 array (height, width), or (height, width, 3), a cell.
    """
    rows = len(next(iter(codes.values())))
    series = {}
    for name, column in schema.columns.items():
        if column.modelled:
            series[name] = codec(column).decode(codes[name])
        elif isinstance(column, Image):
            series[name] = image_codec(column).decode(codes[name])
        elif isinstance(column, Id):
            numbers = np.arange(1, rows + 1)
            series[name] = pd.Series([f"{column.prefix}{n}" for n in numbers] if column.prefix else numbers)
    return pd.DataFrame(series)


def write_frame(table: pd.DataFrame, schema: Schema, path: str | os.PathLike[str]) -> None:
    """Writes CSV (.csv, .csv.gz) or Parquet (.parquet), complete or not at all."""
    path = Path(path)
    unknown = [name for name in table.columns if name not in schema.columns]
    if unknown:
        raise DataError(f"output {str(path)!r}: columns {listed(unknown)} are not in the schema")
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        write = _write_parquet
    elif name.endswith((".csv", ".csv.gz")):
        write = _write_csv
    else:
        raise DataError(f"output {str(path)!r}: the name must end in .csv, .csv.gz or .parquet")
    with written_whole(path) as file:
        write(table, schema, file, name)


def _parts(table: pd.DataFrame, schema: Schema, *, as_text: bool) -> Iterator[pa.Table]:
    columns = {name: schema.columns[name] for name in table.columns}
    for first in range(0, max(len(table), 1), ROWS_PER_PART):
        part = table.iloc[first : first + ROWS_PER_PART]
        yield pa.table({name: arrow_column(part[name], column, as_text=as_text) for name, column in columns.items()})


def arrow_column(series: pd.Series, column: Column, *, as_text: bool) -> pa.Array:
    """A column as plain Arrow values: the type comes from the schema, so that every part of a file has the same."""
    if isinstance(column, Categorical):
        return _plain_values(series, column)
    if isinstance(column, Datetime):
        if as_text and column.format:
            return pa.array(series.dt.strftime(column.format), from_pandas=True, type=pa.string())
        times = pa.array(series, from_pandas=True).cast(pa.timestamp("s"))
        return times.cast(pa.date32()) if column.resolution == "day" else times
    if isinstance(column, Real) and column.resolution is None and as_text:
        return pa.array(series, from_pandas=True, type=pa.float32())  # no more digits than the codes hold
    if isinstance(column, Real):
        return pa.array(series, from_pandas=True, type=pa.from_numpy_dtype(column.dtype or "float64"))
    if isinstance(column, Integer):
        return pa.array(series, from_pandas=True, type=pa.from_numpy_dtype(column.dtype or "int64"))
    if isinstance(column, Id):
        return pa.array(series, type=pa.string() if column.prefix else pa.int64())
    return pa.array(series, from_pandas=True, type=pa.bool_())


def _plain_values(series: pd.Series, column: Categorical) -> pa.Array:
    kinds = {type(value) for value in column.values}
    if kinds <= {int, float} or len(kinds) == 1:
        values = pa.array(column.values)
    else:
        values = pa.array([str(value) for value in column.values])  # a file's column has one type: text holds all
    if isinstance(series.dtype, pd.CategoricalDtype) and tuple(series.cat.categories) == column.values:
        indices = series.cat.codes.to_numpy()
    else:
        indices = pd.Index(column.values, dtype=object).get_indexer(pd.Index(series, dtype=object))
        if np.any((indices < 0) & series.notna().to_numpy()):
            raise DataError(f"column {series.name!r} holds values that the schema does not declare")
    return values.take(pa.array(indices, mask=indices < 0))


def _write_parquet(table: pd.DataFrame, schema: Schema, file: IO[bytes], name: str) -> None:
    writer = None
    for part in _parts(table, schema, as_text=False):
        writer = writer or pa.parquet.ParquetWriter(file, part.schema)
        writer.write_table(part)
    writer.close()


def _write_csv(table: pd.DataFrame, schema: Schema, file: IO[bytes], name: str) -> None:
    target: Any = file
    if name.endswith(".gz"):
        # No name and no time inside, so that equal rows give equal files.
        target = gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0)
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(table.columns)
    target.write(header.getvalue().encode())
    options = pa.csv.WriteOptions(
        include_header=False, quoting_style="needed" if _needs_quotes(table, schema) else "none"
    )
    for part in _parts(table, schema, as_text=True):
        pa.csv.write_csv(part, pa.PythonFile(target, mode="w") if target is not file else target, options)
    if target is not file:
        target.close()


def _needs_quotes(table: pd.DataFrame, schema: Schema) -> bool:
    """Arrow quotes every text or none; none is prettier where the schema's own texts allow it."""
    texts: list[str] = []
    for name in table.columns:
        column = schema.columns[name]
        if isinstance(column, Categorical):
            texts += [value for value in column.values if isinstance(value, str)]
        elif isinstance(column, Id):
            texts.append(f"{column.prefix}1")
        elif isinstance(column, Datetime) and column.format:
            texts.append(column.low.strftime(column.format))
    return any(not text or SPECIAL & set(text) for text in texts)
