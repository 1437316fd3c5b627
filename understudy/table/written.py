"""Files that are complete or not there at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from understudy.errors import DataError


@contextmanager
def written_whole(path: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A file that takes its name only when all of it is written; `mode` are its permissions before the umask."""
    if path.exists() and not path.is_file():
        # Renaming over it would replace a device or fail on a folder.
        raise DataError(f"output {str(path)!r}: it exists and is not a plain file; choose another name")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    problem = ""
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        problem = error.strerror or "it cannot be written"
    finally:
        with suppress(OSError):
            os.unlink(beside)
    if problem:
        raise DataError(f"output {str(path)!r}: {problem}; nothing was written, choose another place")
