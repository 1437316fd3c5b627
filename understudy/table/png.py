"""One PNG file as an array. What an image becomes depends on that image alone."""

import io
import struct
import warnings
from pathlib import Path

import numpy as np

from understudy.schema.columns import MOST_PIXELS_A_SIDE
from understudy.table.pictures import Picture

START = b"\x89PNG\r\n\x1a\n"
HEADER_BYTES = 24  # the start, a chunk's length and name, then width and height


def png_size(path: Path) -> tuple[int, int] | None:
    """Height and width, as the file's first bytes tell them; None if it is no PNG file."""
    try:
        with path.open("rb") as file:
            return _size(file.read(HEADER_BYTES))
    except OSError:
        return None


def _size(head: bytes) -> tuple[int, int] | None:
    if len(head) < HEADER_BYTES or not head.startswith(START):
        return None
    width, height = struct.unpack(">II", head[16:])
    return height, width


def read_png(path: Path, size: tuple[int, int]) -> Picture:
    """The image as uint8 of (height, width), or (height, width, 3); None if it cannot be read.

    A file of another size is not opened any further, and its (height, width) is all that is given back: a huge image
    could not be held.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEADER_BYTES)
            found = _size(head)
            if found is None or found != size or max(size) > MOST_PIXELS_A_SIDE:
                return found
            return _decoded(head + file.read())
    except Exception:  # whatever a damaged file makes of the decoder; its message may quote the file
        return None


def _decoded(data: bytes) -> np.ndarray:
    """16 bits are cut to the upper 8; what is transparent lies on white; a palette is looked up."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            picture.load()
            if picture.mode.startswith("I"):
                return (np.asarray(picture).astype(np.int64) >> 8).astype(np.uint8)
            if picture.mode in ("LA", "PA", "RGBA") or "transparency" in picture.info:
                layer = picture.convert("RGBA")
                picture = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
            return np.asarray(picture.convert("L" if picture.mode in ("1", "L") else "RGB"))
