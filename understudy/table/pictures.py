"""Images as cells: what a source hands over for one image, and the codec that makes rows of pixels of it.

Sources differ in what they find (a palette, an alpha channel, another size), so a cell says what it holds, and one
codec decides, from the schema and that one cell, whether it fits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import DataError
from understudy.schema import Image
from understudy.table.codec import Encoded

# No cell is null. Height 0: it cannot be read. No pixels, but a height: another size than was asked for, not opened.
# `file` is for the steward's own list of offending cells.
CELL = pa.struct(
    {
        "height": pa.int32(),
        "width": pa.int32(),
        "channels": pa.int32(),
        "pixels": pa.large_binary(),
        "file": pa.string(),
    }
)
NOT_AN_IMAGE = "that cannot be read as an image; it takes PNG files, or uint8 arrays of height x width (x 3)"
COLOUR = "in colour, but the schema says channels: 1; turn the images grey first, or declare channels: 3"


def wrong_size(column: Image) -> str:
    """The rule that an image of another size breaks."""
    return (
        f"of another size than the declared {column.height} x {column.width} pixels; resize the images first,"
        " or declare the height and width that they have"
    )


Picture = np.ndarray | tuple[int, int] | None


def cells_of_arrays(arrays: Iterable[Picture], files: Iterable[str] | None = None) -> pa.Array:
    """Cells of images as they come: arrays (height, width) or (height, width, 1 or 3) of uint8; None is unreadable.

    A pair (height, width) is an image of that size that was not opened.
    """
    rows = []
    for array in arrays:
        if isinstance(array, tuple):
            rows.append((*array, 0, None))
        elif _is_image(array):
            channels = 1 if array.ndim == 2 else array.shape[2]
            rows.append((array.shape[0], array.shape[1], channels, array.tobytes()))
        else:
            rows.append((0, 0, 0, None))
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    named = [None] * len(rows) if files is None else list(files)
    fields = [pa.array(values, type=field.type) for values, field in zip([*columns, named], CELL, strict=True)]
    return pa.StructArray.from_arrays(fields, fields=list(CELL))


def cells_of_block(images: np.ndarray) -> pa.Array:
    """Cells of many images of one size, without a copy: uint8 of (n, height, width) or (n, height, width, 1 or 3)."""
    images = np.ascontiguousarray(images)
    count, height, width = images.shape[:3]
    channels = 1 if images.ndim == 3 else images.shape[3]
    ends = np.arange(count + 1, dtype=np.int64) * (height * width * channels)
    pixels = pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(images)])
    sizes = [pa.array(np.full(count, size, dtype=np.int32)) for size in (height, width, channels)]
    return pa.StructArray.from_arrays([*sizes, pixels, pa.nulls(count, pa.string())], fields=list(CELL))


def _is_image(array: Picture) -> bool:
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or not array.size:
        return False
    return array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3))


def described(cell: dict[str, Any]) -> str:
    """An offending cell for the steward's own list: its file and size, never its pixels."""
    channels = f" x {cell['channels']}" if cell["channels"] else ""
    size = f"{cell['height']} x {cell['width']}{channels}" if cell["height"] else "unreadable"
    return f"{cell['file']}: {size}" if cell["file"] else size


@dataclass(frozen=True)
class ImageCodec:
    """An image is a row of `pixels` numbers, by rows, then columns, then channels; nothing is missing or clipped."""

    column: Image

    @property
    def dtype(self) -> np.dtype:
        return np.dtype((np.uint8, (self.column.pixels,)))

    def encode(self, array: pa.Array) -> Encoded:
        """Rows of pixels. Grey into three channels is repeated; colour into one is taken only if it is grey."""
        column, count = self.column, len(array)
        height, width, channels, pixels, _ = array.flatten()
        height, width, channels = (side.to_numpy() for side in (height, width, channels))
        unread = height == 0
        misfit = ~unread & ((height != column.height) | (width != column.width))
        usable = ~(unread | misfit)
        codes = np.zeros((count, column.pixels), dtype=np.uint8)
        coloured = np.zeros(count, dtype=bool)
        for number in (1, 3):
            where = np.flatnonzero(usable & (channels == number))
            if len(where):
                images = _gather(pixels, where, column.height * column.width * number)
                if number > column.channels:
                    coloured[where] = _differ(images)
                    images = images[:, ::3]
                elif number < column.channels:
                    images = np.repeat(images, 3, axis=1)
                codes[where] = images
        codes[coloured] = 0
        bad = {NOT_AN_IMAGE: unread, wrong_size(column): misfit, COLOUR: coloured}
        nothing = np.zeros(0, dtype=np.int64)
        return Encoded(codes, nothing, {rule: np.flatnonzero(where) for rule, where in bad.items() if where.any()})

    def decode(self, codes: np.ndarray) -> pd.Series:
        """An object column of arrays (height, width), or (height, width, 3)."""
        images = np.asarray(codes).reshape(len(codes), *self.column.shape)
        series = np.empty(len(images), dtype=object)
        for at in range(len(images)):
            series[at] = images[at].copy()
        return pd.Series(series)

    def check(self, codes: np.ndarray) -> np.ndarray:
        """The codes themselves, or a DataError if they are not rows of this many pixels."""
        codes = np.asarray(codes)
        if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != self.column.pixels:
            raise DataError(
                f"codes of an image must be uint8, one row of {self.column.pixels} numbers an image"
                f" (height x width x channels), got {codes.dtype} in {codes.ndim} dimensions"
            )
        return codes


def image_codec(column: Image) -> ImageCodec:
    """The codec of an image column, from the schema alone."""
    return ImageCodec(column)


def _differ(images: np.ndarray) -> np.ndarray:
    """Which rows of interleaved red, green and blue are not grey."""
    red, green, blue = (images[:, channel::3] for channel in range(3))
    return ((red != green) | (green != blue)).any(axis=1)


def _gather(pixels: pa.Array, where: np.ndarray, size: int) -> np.ndarray:
    """The given cells as rows of `size` numbers."""
    chosen = pixels if len(where) == len(pixels) else pixels.take(pa.array(where))
    _, ends, data = chosen.buffers()
    first = int(np.frombuffer(ends, dtype=np.int64)[chosen.offset])
    flat = np.frombuffer(data, dtype=np.uint8, count=len(chosen) * size, offset=first)
    return flat.reshape(len(chosen), size)
