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
from understudy.schema import Categorical, Datetime, Id, Image, Schema
from understudy.table import image_files
from understudy.table.arrow_columns import arrow_column
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
    """Writes CSV (.csv, .csv.gz) or Parquet (.parquet), complete or not at all.

    Rows with images: .npz, a new or empty folder (a text that ends in /, or one that is there) for PNG files in one
    sub-folder a class, or .png for a picture with some of them, a row a class.
    """
    kind = output_kind(path, schema)
    path = Path(path)
    unknown = [name for name in table.columns if name not in schema.columns]
    if unknown:
        raise DataError(f"output {str(path)!r}: columns {listed(unknown)} are not in the schema")
    if kind == "folder":
        image_files.write_folder(table, schema, path)
        return
    with written_whole(path) as file:
        if kind == "npz":
            image_files.write_npz(table, schema, file)
        elif kind == "png":
            image_files.write_grid(table, schema, file)
        elif kind == "parquet":
            _write_parquet(table, schema, file)
        else:
            _write_csv(table, schema, file, path.name.lower())


def output_kind(path: str | os.PathLike[str], schema: Schema) -> str:
    """csv, parquet, npz, png or folder: what `write_frame` would write there; refused if the rows do not go with it."""
    text, name = os.fspath(path), Path(path).name.lower()
    if schema.images:
        (image,) = schema.images
        if text.endswith(("/", os.sep)) or Path(path).is_dir():
            return "folder"
        if name.endswith((".npz", ".png")):
            return name[-3:]
        raise DataError(
            f"output {text!r}: the rows have images (column {image!r}); the name must end in .npz (all rows), in /"
            " (a folder of PNG files), or in .png (a picture with some of them)"
        )
    if Path(path).is_dir():
        raise DataError(f"output {text!r}: it is not a plain file; choose another name")
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    raise DataError(f"output {text!r}: the name must end in .csv, .csv.gz or .parquet")


def _parts(table: pd.DataFrame, schema: Schema, *, as_text: bool) -> Iterator[pa.Table]:
    columns = {name: schema.columns[name] for name in table.columns}
    ruled = {name for rule in schema.rules for name in rule.involved}
    for first in range(0, max(len(table), 1), ROWS_PER_PART):
        part = table.iloc[first : first + ROWS_PER_PART]
        yield pa.table(
            {
                name: arrow_column(part[name], column, as_text=as_text, exact=name in ruled)
                for name, column in columns.items()
            }
        )


def _write_parquet(table: pd.DataFrame, schema: Schema, file: IO[bytes]) -> None:
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
