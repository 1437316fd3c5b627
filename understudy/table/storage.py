"""Where code arrays live while a table is read: in memory, or past a limit in unlinked temporary files."""

import mmap
import tempfile
from typing import IO

import numpy as np

from understudy.errors import DataError

SPILL_BYTES = 1 << 30
SLAB_ROWS = 1 << 20
SLAB_BYTES = 1 << 23  # a row of pixels is long: fewer of them then


class _Growing:
    """One column's codes, in slabs from outside the heap so that short-lived arrays leave no holes between."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.slabs: list[np.ndarray] = []
        self.slab_rows = max(1, min(SLAB_ROWS, SLAB_BYTES // dtype.itemsize))
        self.filled = self.slab_rows  # rows in the last slab
        self.file: IO[bytes] | None = None

    def append(self, codes: np.ndarray) -> None:
        done = 0
        while done < len(codes):
            if self.filled == self.slab_rows:
                self._next_slab()
            part = codes[done : done + self.slab_rows - self.filled]
            self.slabs[-1][self.filled : self.filled + len(part)] = part
            self.filled += len(part)
            done += len(part)

    def _next_slab(self) -> None:
        if self.file is not None and self.slabs:
            self._flush()
        self.slabs.append(np.frombuffer(mmap.mmap(-1, self.slab_rows * self.dtype.itemsize), dtype=self.dtype))
        self.filled = 0

    def spill(self) -> None:
        """From now on only the last slab is in memory."""
        # The file has no name from the start and belongs to this user alone: nothing is left behind, whatever happens.
        self.file = tempfile.TemporaryFile(prefix="understudy-")  # noqa: SIM115
        last = self.slabs[-1:]
        for slab in self.slabs[:-1]:
            self.file.write(slab.data)
        self.slabs = last

    def _flush(self) -> None:
        for slab in self.slabs:
            self.file.write(slab[: self.filled].data)
        self.slabs = []

    def finish(self) -> np.ndarray:
        if self.file is not None:
            self._flush()
            self.file.flush()
            return np.frombuffer(mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ), dtype=self.dtype)
        if not self.slabs:
            return np.empty(0, dtype=self.dtype)
        return np.concatenate([*self.slabs[:-1], self.slabs[-1][: self.filled]])


class CodeStore:
    """Grows one array a column, block by block, never holding more than one column twice.

    A type with a shape, such as `np.dtype((np.uint8, (784,)))`, gives a row that many cells.
    """

    def __init__(self, dtypes: dict[str, np.dtype], spill_bytes: int = SPILL_BYTES) -> None:
        self._columns = {name: _Growing(dtype) for name, dtype in dtypes.items()}
        self._row_bytes = sum(dtype.itemsize for dtype in dtypes.values())
        self._spill_bytes = spill_bytes
        self._spilled = False
        self.rows = 0

    def append(self, block: dict[str, np.ndarray]) -> None:
        """Adds rows: one array a column, all of one length and of the declared types."""
        problem = ""
        try:
            for name, codes in block.items():
                self._columns[name].append(codes)
            self.rows += len(next(iter(block.values())))
            if not self._spilled and self.rows * self._row_bytes > self._spill_bytes:
                self._spilled = True
                for column in self._columns.values():
                    column.spill()
        except OSError as error:
            problem = error.strerror or "it cannot be written"
        if problem:
            raise self._refusal(problem)

    def finish(self) -> dict[str, np.ndarray]:
        """The arrays, read-only; the store is empty afterwards."""
        arrays: dict[str, np.ndarray] = {}
        problem = ""
        try:
            for name in list(self._columns):
                arrays[name] = self._columns[name].finish()
                arrays[name].flags.writeable = False
                self._close(self._columns.pop(name))
        except OSError as error:
            problem = error.strerror or "it cannot be written"
        if problem:
            raise self._refusal(problem)
        return arrays

    def _refusal(self, problem: str) -> DataError:
        return DataError(
            f"the table is larger than spill_bytes={self._spill_bytes} and the temporary directory does not take it"
            f" ({problem}); set TMPDIR to a larger disk, or raise spill_bytes"
        )

    def close(self) -> None:
        for column in self._columns.values():
            self._close(column)
        self._columns = {}

    @staticmethod
    def _close(column: _Growing) -> None:
        column.slabs = []
        if column.file is not None:
            column.file.close()
