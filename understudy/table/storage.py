"""Where code arrays live while a table is read: in memory, or past a limit in unlinked temporary files."""

import mmap
import tempfile
from typing import IO

import numpy as np

from understudy.errors import DataError

SPILL_BYTES = 1 << 30


class CodeStore:
    """Grows one array a column, block by block, never holding more than one column twice."""

    def __init__(self, dtypes: dict[str, np.dtype], spill_bytes: int = SPILL_BYTES) -> None:
        self._dtypes = dtypes
        self._blocks: dict[str, list[np.ndarray]] = {name: [] for name in dtypes}
        self._files: dict[str, IO[bytes]] = {}
        self._spill_bytes = spill_bytes
        self._bytes = 0
        self.rows = 0

    def append(self, block: dict[str, np.ndarray]) -> None:
        """Adds rows: one array a column, all of one length and of the declared types."""
        self.rows += len(next(iter(block.values())))
        for name, codes in block.items():
            self._bytes += codes.nbytes
            self._blocks[name].append(codes)
        if self._files or self._bytes > self._spill_bytes:
            self._spill()

    def _spill(self) -> None:
        # The files have no name from the start and belong to this user alone: nothing is left behind, whatever happens.
        problem = ""
        try:
            for name, blocks in self._blocks.items():
                if name not in self._files:
                    self._files[name] = tempfile.TemporaryFile(prefix="understudy-")  # noqa: SIM115
                for codes in blocks:
                    self._files[name].write(np.ascontiguousarray(codes).data)
                blocks.clear()
        except OSError as error:
            problem = error.strerror or "it cannot be written"
        if problem:
            self.close()
            raise DataError(
                f"the table is larger than spill_bytes={self._spill_bytes} and the temporary directory does not take it"
                f" ({problem}); set TMPDIR to a larger disk, or raise spill_bytes"
            )

    def finish(self) -> dict[str, np.ndarray]:
        """The arrays, read-only; the store is empty afterwards."""
        arrays = {}
        for name, dtype in self._dtypes.items():
            blocks = self._blocks.pop(name)
            if name in self._files:
                arrays[name] = self._mapped(self._files[name], dtype)
            else:
                arrays[name] = np.concatenate(blocks) if blocks else np.empty(0, dtype)
            arrays[name].flags.writeable = False
        self.close()
        return arrays

    def _mapped(self, file: IO[bytes], dtype: np.dtype) -> np.ndarray:
        file.flush()
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=dtype)

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files = {}
