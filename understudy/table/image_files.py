"""Images out: an .npz file, a folder of PNG files, or one picture with a grid of them."""

import io
import math
import os
import secrets
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.schema.fields import value_key
from understudy.table.arrow_columns import arrow_column
from understudy.table.image_sources import FILE, LIST, label_column
from understudy.table.pictures import cells_of_arrays, image_codec

A_CLASS = 10  # images in a row of the grid
MOST_IN_GRID = 100
LEAST_SIDE = 56  # small images are drawn with larger pixels, up to about this side
PAPER = 255
FORBIDDEN = frozenset('/\\:*?"<>|\0')


def pixels_of(table: pd.DataFrame, schema: Schema) -> tuple[str, np.ndarray]:
    """The image column's name, and its images as one array (n, height, width) or (n, height, width, 3)."""
    name, column = next(iter(schema.images.items()))
    if name not in table.columns:
        raise DataError(f"the rows have no image column {name!r}; take all columns that the model gives")
    encoded = image_codec(column).encode(cells_of_arrays(table[name]))
    if encoded.bad:
        rule, where = next(iter(encoded.bad.items()))
        raise DataError(f"column {name!r}: {len(where)} cells {rule}")
    return name, encoded.codes.reshape(len(table), *column.shape)


def write_npz(table: pd.DataFrame, schema: Schema, file: IO[bytes]) -> None:
    """One array a column, under its name: what `read_table` reads again."""
    name, images = pixels_of(table, schema)
    arrays = {other: _plain_array(table[other], schema, other) for other in table.columns if other != name}
    # Not by `np.savez`: its own arguments are names that a column may have, and which they are depends on its version.
    with zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for column, values in {name: images, **arrays}.items():
            with archive.open(f"{column}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)


def _plain_array(series: pd.Series, schema: Schema, name: str) -> np.ndarray:
    """A column as a NumPy array without objects: missing numbers are NaN, missing texts empty."""
    values = arrow_column(series, schema.columns[name], as_text=False)
    if pa.types.is_temporal(values.type):
        return values.cast(pa.timestamp("s")).to_numpy(zero_copy_only=False)
    if pa.types.is_boolean(values.type) and values.null_count:
        values = values.cast(pa.string())
    if pa.types.is_string(values.type):
        return np.array(values.fill_null("").to_pylist(), dtype=str)
    return values.to_numpy(zero_copy_only=False)


def check_folder(path: Path) -> None:
    """Refuses a folder that holds anything, and one whose parent is not there."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"output {str(path)!r}: the folder must be new or empty; nothing was written, name another")
    if not path.absolute().parent.is_dir():
        raise DataError(f"output {str(path)!r}: the folder around it does not exist; make it first")


def write_folder(table: pd.DataFrame, schema: Schema, path: Path) -> None:
    """PNG files in one sub-folder a class where the label is all there is beside the image, else with `labels.csv`."""
    check_folder(path)
    name, images = pixels_of(table, schema)
    others = [other for other in table.columns if other != name]
    classes = _classes(table, schema, others)
    beside = path.absolute().with_name(f".{path.absolute().name}.{secrets.token_hex(4)}")
    problem = ""
    try:
        beside.mkdir()
        files = [f"{at:0{len(str(len(images)))}d}.png" for at in range(1, len(images) + 1)]
        if classes is not None:
            files = [f"{folder}/{file}" for folder, file in zip(classes, files, strict=True)]
            for folder in set(classes):
                (beside / folder).mkdir()
        for file, image in zip(files, images, strict=True):
            (beside / file).write_bytes(png_bytes(image))
        if others and classes is None:
            with (beside / LIST).open("wb") as listing:
                columns = {other: arrow_column(table[other], schema.columns[other], as_text=True) for other in others}
                pa.csv.write_csv(pa.table({FILE: files, **columns}), listing)
        # Takes the place of an empty folder, and of nothing else: the whole of it is there, or nothing.
        os.rename(beside, path)
    except OSError as error:
        problem = error.strerror or "it cannot be written"
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    if problem:
        raise DataError(f"output {str(path)!r}: {problem}; nothing was written, choose another place")


def _classes(table: pd.DataFrame, schema: Schema, others: list[str]) -> list[str] | None:
    """The sub-folder of every image, where a label alone says it and its values can be names of folders."""
    if not others:
        return None
    if FILE in others:
        raise DataError(f"a folder lists its images in a column {FILE!r}, which the schema has too; write .npz instead")
    label = label_column(schema)
    values = getattr(schema.columns[others[0]], "values", None)
    if others != [label] or values is None or table[label].isna().any():
        return None
    names = [value_key(value) for value in values]
    if not all(_names_folder(word) for word in names):
        return None
    return [value_key(value) for value in table[label]]


def _names_folder(word: str) -> bool:
    """Whether a value can be a sub-folder that is read again as a class: hidden ones are not."""
    return bool(word) and word == word.strip() and word != LIST and word[0] != "." and not FORBIDDEN & set(word)


def png_bytes(image: np.ndarray) -> bytes:
    """One image, (height, width) or (height, width, 3), as a PNG file."""
    from PIL import Image as Pillow

    buffer = io.BytesIO()
    Pillow.fromarray(image).save(buffer, format="PNG")
    return buffer.getvalue()


def write_grid(table: pd.DataFrame, schema: Schema, file: IO[bytes]) -> None:
    """One picture: a row of images a class, or a square of them where there is no label."""
    _, images = pixels_of(table, schema)
    label = label_column(schema)
    classes: Sequence[np.ndarray] | None = None
    values = getattr(schema.columns[label], "values", None) if label in table.columns else None
    if values is not None:
        keys = np.array([value_key(value) for value in table[label].astype(object).fillna("")], dtype=object)
        classes = [np.flatnonzero(keys == value_key(value)) for value in values]
    file.write(png_bytes(grid(images, classes)))


def grid(images: np.ndarray, classes: Sequence[np.ndarray] | None) -> np.ndarray:
    """Images side by side with a thin border: a row for each of `classes` (positions), or a square without them.

    >>> grid(np.zeros((5, 60, 60), dtype=np.uint8), None).shape  # three across, two down
    (123, 184)
    """
    if classes is None:
        chosen = min(len(images), MOST_IN_GRID)
        across = math.isqrt(max(chosen - 1, 0)) + 1
        lines = [list(range(first, min(first + across, chosen))) for first in range(0, chosen, across)]
    else:
        lines = [list(found[:A_CLASS]) for found in classes[:MOST_IN_GRID] if len(found)]
        across = max((len(line) for line in lines), default=1)
    scale = max(1, round(LEAST_SIDE / max(images.shape[1:3])))
    height, width = (side * scale + 1 for side in images.shape[1:3])
    sheet = np.full((len(lines) * height + 1, across * width + 1, *images.shape[3:]), PAPER, dtype=np.uint8)
    for row, line in enumerate(lines):
        for column, at in enumerate(line):
            large = images[at].repeat(scale, axis=0).repeat(scale, axis=1)
            top, left = row * height + 1, column * width + 1
            sheet[top : top + height - 1, left : left + width - 1] = large
    return sheet
