"""Tables with an image a row: an .npz file of arrays, or a folder of PNG files.

File names may say who is in a picture, so no message holds one: images are told by their place.
"""

import math
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table.pictures import Picture, cells_of_arrays, cells_of_block
from understudy.table.png import png_size, read_png
from understudy.table.sources import CELLS_PER_BLOCK, Block, CsvSource, Source

IMAGES, LABELS = "images", "labels"  # the arrays' usual names, taken for the image column and the label
DRAFTED = {IMAGES: "image", LABELS: "label"}  # what their columns are called where no schema says
LIST = "labels.csv"
FILE = "file"
BROKEN = (OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def images_per_block(pixels: int) -> int:
    return max(1, min(1 << 14, CELLS_PER_BLOCK // max(pixels, 1)))


def label_column(schema: Schema) -> str | None:
    """The column that classes belong to: the label, or else the only modelled column."""
    if schema.label is not None:
        return schema.label
    return next(iter(schema.modelled)) if len(schema.modelled) == 1 else None


def _attempt(read: Callable[[], Any], message: str) -> Any:
    """What `read` gives; its errors, which may quote the file, are replaced by the message."""
    try:
        return read()
    except BROKEN:
        pass
    raise DataError(message)


@dataclass(frozen=True)
class _Array:
    """One array of an .npz file, as its header tells it."""

    member: str
    shape: tuple[int, ...]
    by_columns: bool  # Fortran's order: it cannot be read image by image
    dtype: np.dtype

    @property
    def holds_images(self) -> bool:
        return len(self.shape) == 3 or (len(self.shape) == 4 and self.shape[3] in (1, 3))

    @property
    def bytes_a_row(self) -> int:
        return math.prod(self.shape[1:]) * self.dtype.itemsize


class NpzSource(Source):
    """Arrays by column name; `images` and `labels` stand for the image column and the label."""

    def __init__(self, label: str, path: Path, schema: Schema | None) -> None:
        self._path = path
        damaged = f"{label}: the .npz file is damaged, or not one that numpy.savez writes; write it again"
        arrays = _attempt(self._headers, damaged)
        if not arrays:
            raise DataError(f"{label}: it holds no array; write it with numpy.savez(path, images=..., labels=...)")
        self._arrays = {self._column(name, arrays, schema): array for name, array in arrays.items()}
        if len(self._arrays) < len(arrays):
            raise DataError(f"{label}: two arrays stand for one column; name them like the schema's columns")
        images = [name for name, array in self._arrays.items() if self._is_image(name, array, schema)]
        super().__init__(label, list(self._arrays), images)
        for name, array in self._arrays.items():
            left_out = schema is not None and name in schema.columns and name not in (*schema.modelled, *schema.images)
            if not left_out:
                self._check(name, array)
        if len({array.shape[0] for array in self._arrays.values()}) > 1:
            raise DataError(f"{label}: all arrays must have one entry a row, but their lengths differ")

    def _headers(self) -> dict[str, _Array]:
        found = {}
        with zipfile.ZipFile(self._path) as archive:
            for entry in archive.infolist():
                if not entry.filename.endswith(".npy"):
                    continue
                with archive.open(entry) as file:
                    array = _header(entry.filename, file)
                    if not array.dtype.hasobject and math.prod(array.shape) * array.dtype.itemsize + file.tell() != (
                        entry.file_size
                    ):
                        raise ValueError("a header that does not go with its array")
                found[entry.filename.removesuffix(".npy")] = array
        return found

    @staticmethod
    def _column(name: str, arrays: Collection[str], schema: Schema | None) -> str:
        """The column that an array holds: its own name, or the one that `images` or `labels` stands for."""
        if schema is None:
            meant = DRAFTED.get(name, name)
        elif name in schema.columns or name not in (IMAGES, LABELS):
            meant = name
        else:
            meant = next(iter(schema.images), None) if name == IMAGES else label_column(schema)
        return name if meant is None or (meant != name and meant in arrays) else meant

    @staticmethod
    def _is_image(name: str, array: _Array, schema: Schema | None) -> bool:
        return len(array.shape) > 1 if schema is None else name in schema.images

    def _check(self, name: str, array: _Array) -> None:
        where = f"{self.label}: array {name!r}"
        if array.dtype.hasobject:
            raise DataError(
                f"{where} holds pickled objects, which are never loaded; save it with a plain type (for text:"
                " array.astype(str))"
            )
        if name in self.images:
            if not array.holds_images or not all(array.shape[1:]):
                raise DataError(f"{where} must be n x height x width, or n x height x width x 1 or 3")
            if array.dtype != np.uint8:
                raise DataError(
                    f"{where} must hold whole numbers 0 to 255 of type uint8, got {array.dtype}; bring it to that"
                    " range, then .astype(numpy.uint8)"
                )
        elif len(array.shape) != 1:
            raise DataError(f"{where} must have one dimension: one value a row; images need a column of kind image")
        elif array.dtype.kind not in "biufUSM":
            raise DataError(f"{where} must hold numbers, text, times or true/false, got {array.dtype}")

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        damaged = f"{self.label}: the .npz file is damaged; write it again"
        others = [name for name in columns if name not in self.images]
        plain = {name: _attempt(lambda name=name: self._plain(name), damaged) for name in others}
        pictured = [name for name in columns if name in self.images]
        rows = next(iter(self._arrays.values())).shape[0]
        if not pictured:
            yield from ([plain] if rows else [])
            return
        (name,) = pictured
        images = self._images(self._arrays[name])
        first = 0
        while (block := _attempt(lambda: next(images, None), damaged)) is not None:
            part = {column: array.slice(first, len(block)) for column, array in plain.items()}
            yield {column: cells_of_block(block) if column == name else part[column] for column in columns}
            first += len(block)

    def _plain(self, name: str) -> pa.Array:
        with zipfile.ZipFile(self._path) as archive, archive.open(self._arrays[name].member) as file:
            values = np.lib.format.read_array(file, allow_pickle=False)
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        return pa.array(values.astype(values.dtype.newbyteorder("=")), from_pandas=True)

    def _images(self, array: _Array) -> Iterator[np.ndarray]:
        size = images_per_block(array.bytes_a_row)
        with zipfile.ZipFile(self._path) as archive, archive.open(array.member) as file:
            whole = np.lib.format.read_array(file, allow_pickle=False) if array.by_columns else None
            if whole is None:
                _header(array.member, file)
            for first in range(0, array.shape[0], size):
                count = min(size, array.shape[0] - first)
                if whole is not None:
                    yield whole[first : first + count]
                    continue
                read = file.read(count * array.bytes_a_row)
                yield np.frombuffer(read, dtype=np.uint8).reshape(count, *array.shape[1:])


def _header(member: str, file: IO[bytes]) -> _Array:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError("an unknown version of the format")
    shape, by_columns, dtype = readers[version](file)
    if not shape:
        raise ValueError("a single number, not an array")
    return _Array(member, tuple(shape), by_columns, dtype)


@dataclass(frozen=True)
class _Picture:
    """A PNG file of a folder, and the class that its sub-folder names."""

    path: Path
    label: str | None


class FolderSource(Source):
    """PNG files: one sub-folder a class, or none; or `labels.csv` beside them, with a column `file`.

    The order is that of the names, class by class; with a list, the list's.
    """

    def __init__(self, label: str, path: Path, schema: Schema | None) -> None:
        self._root = path
        image = DRAFTED[IMAGES] if schema is None else next(iter(schema.images), DRAFTED[IMAGES])
        declared = None if schema is None else schema.images.get(image)
        self._given: dict[str, pa.Array] = {}
        if (path / LIST).is_file():
            self._pictures = self._listed(label, schema)
        else:
            self._pictures = _attempt(lambda: _found(label, path), f"{label}: the folder cannot be read")
            if self._pictures and self._pictures[0].label is not None:
                self._given = {_class_column(label, schema): pa.array([found.label for found in self._pictures])}
        if not self._pictures:
            raise DataError(f"{label}: the folder holds no PNG file; it needs at least one image")
        super().__init__(label, [image, *self._given], [image])
        if declared is None:  # a draft looks closely at images of the first one's size alone: others are refused
            self._size = png_size(self._pictures[0].path) or (0, 0)
        else:
            self._size = declared.height, declared.width
        self._per_block = images_per_block(3 * math.prod(self._size))

    def _listed(self, label: str, schema: Schema | None) -> list[_Picture]:
        """The files that the list names, in its order; the list's other columns are the table's."""
        label = f"{label}, {LIST}"
        opened = CsvSource(label, self._root / LIST, () if schema is None else [FILE, *schema.columns], is_gzip=False)
        if FILE not in opened.names:
            raise DataError(f"{label}: it must have a column {FILE!r} with the names of the PNG files")
        parts = list(opened.blocks(opened.names))
        if opened.ragged:
            raise DataError(f"{label}: {len(opened.ragged)} rows have another number of fields than the header")
        columns = {name: pa.chunked_array([part[name] for part in parts]) for name in opened.names} if parts else {}
        files = [(name or "").strip() for name in columns.pop(FILE, pa.chunked_array([], pa.string())).to_pylist()]
        self._given = {name: column.combine_chunks() for name, column in columns.items()}
        found = _attempt(lambda: list(_all_files(label, self._root)), f"{label}: the folder cannot be read")
        there = {path.relative_to(self._root).as_posix() for path in found}
        absent = [place for place, name in enumerate(files, 1) if name not in there]
        if absent:
            raise DataError(
                f"{label}: {len(absent)} of its rows name no PNG file of this folder (the first is row {absent[0]});"
                f" {FILE!r} is a name such as 0001.png, or one with its sub-folder"
            )
        if len(set(files)) < len(files):
            raise DataError(f"{label}: {len(files) - len(set(files))} rows name a file again; each image is one row")
        if len(there) > len(files):
            raise DataError(f"{label}: {len(there) - len(files)} PNG files of the folder are not in the list; add them")
        return [_Picture(self._root / name, None) for name in files]

    def blocks(self, columns: Collection[str]) -> Iterator[Block]:
        (image,) = self.images
        for first in range(0, len(self._pictures), self._per_block):
            part = self._pictures[first : first + self._per_block]
            block = {name: array.slice(first, len(part)) for name, array in self._given.items() if name in columns}
            if image in columns:
                files = [found.path.relative_to(self._root).as_posix() for found in part]
                block[image] = cells_of_arrays(self._opened(part), files)
            yield block

    def _opened(self, pictures: list[_Picture]) -> list[Picture]:
        return [read_png(found.path, self._size) for found in pictures]


def _class_column(label: str, schema: Schema | None) -> str:
    if schema is None:
        return DRAFTED[LABELS]
    name = label_column(schema)
    if name is None:
        raise DataError(
            f"{label}: its sub-folders are classes, but the schema does not say which column they are; declare a"
            " categorical column and name it in `label:`, or put all images into one folder"
        )
    return name


def _found(label: str, root: Path) -> list[_Picture]:
    """The images of a folder, or of its sub-folders with their names; a mixture of both is refused."""
    entries = _entries(root)
    folders = [entry for entry in entries if entry.is_dir()]
    loose = _png_files(label, [entry for entry in entries if not entry.is_dir()])
    if folders and loose:
        raise DataError(
            f"{label}: PNG files lie both in the folder and in its sub-folders; put each into the sub-folder of its"
            " class, or all into one folder"
        )
    pictures = [_Picture(path, None) for path in loose]
    for folder in folders:
        inside = _entries(folder)
        if any(entry.is_dir() for entry in inside):
            raise DataError(f"{label}: a sub-folder has sub-folders; there must be one a class, with images in it")
        pictures += [_Picture(path, folder.name) for path in _png_files(label, inside)]
    return pictures


def _all_files(label: str, root: Path) -> Iterator[Path]:
    """The images of a folder and of its sub-folders."""
    for folder in (root, *(entry for entry in _entries(root) if entry.is_dir())):
        yield from _png_files(label, [entry for entry in _entries(folder) if not entry.is_dir()])


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, by name, without hidden files and the list of labels."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith(".") and entry.name != LIST)


def _png_files(label: str, files: list[Path]) -> list[Path]:
    strange = sum(path.suffix.lower() != ".png" or not path.is_file() for path in files)
    if strange:
        raise DataError(
            f"{label}: {strange} files of the folder are not PNG files by their name; convert them, or move them away"
        )
    return files
