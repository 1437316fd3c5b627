"""Runs that are done, as lines of JSON that are only ever added, so that an audit that was stopped can go on.

Every line carries a key: a digest of what decides a run (method, columns, settings, budget, canary) and of the
program's own source. Lines of another key are left alone and not used: a run of other code says nothing about this one.
"""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from understudy.auditing.games import Setting
from understudy.auditing.scores import Run
from understudy.errors import DataError, OptionError

FORMAT = "understudy audit runs, 1"


@lru_cache(maxsize=1)
def source_digest() -> str:
    """SHA-256 of the package's source files: any change makes another program of it."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}:{len(text)}:".encode() + text)
    return digest.hexdigest()


def key_of(setting: Setting) -> str:
    said = json.dumps(setting.to_dict() | {"source": source_digest()}, sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def kept_runs(path: Path | None, setting: Setting) -> list[tuple[Run, float]]:
    """Runs of this very setting, with their seconds; a file that is none of ours is refused, never replaced."""
    if path is None or not path.exists():
        return []
    key, found, known = key_of(setting), [], False
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        # A line may be half written where a machine went down: that run is lost, and no other.
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            record = json.loads(line)
            known = known or record.get("format") == FORMAT
            if record.get("key") == key:
                found.append((Run.from_dict(record), float(record["seconds"])))
    if not known:
        raise OptionError(
            f"state file {str(path)!r} is not one of `understudy audit`, or it is damaged; move it away, or name the "
            "output otherwise (nothing was changed)"
        )
    return found


def keeper(path: Path | None, setting: Setting) -> Callable[[Run, float], None]:
    """A function that adds a finished run to the file."""
    key = key_of(setting)

    def keep(run: Run, seconds: float) -> None:
        if path is not None:
            if not path.exists():
                _append(path, {"format": FORMAT})
            _append(path, {"key": key, "seconds": seconds} | run.to_dict())

    return keep


def _append(path: Path, record: dict) -> None:
    line = (json.dumps(record, allow_nan=False) + "\n").encode()
    problem = ""
    try:
        with open(path, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
    except OSError as error:
        problem = error.strerror or "it cannot be written"
    if problem:
        raise DataError(f"state file {str(path)!r}: {problem}; choose another place with -o")
