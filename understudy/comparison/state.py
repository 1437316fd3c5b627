"""Cells that are done, kept as lines of JSON beside the page, so that a run that was stopped can go on."""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.comparison.grid import FAILED, STOPPED, Cell, Job
from understudy.errors import DataError, OptionError

FORMAT = 1
NOTE = (
    "Figures of a comparison, computed from real rows unless the table is simulated: for the data steward alone, "
    "outside the guarantee. Holds no row."
)


@dataclass(frozen=True)
class State:
    """An open state file: its salt and coins (a seed for the split), and the cells that it had."""

    path: Path | None
    salt: str
    coins: int
    head: dict[str, Any]
    cells: dict[str, Cell]

    def fingerprint(self, *parts: object) -> str:
        """What tells this table from others without its contents: a keyed hash of, say, a file's size and date."""
        return hmac.new(bytes.fromhex(self.salt), repr(parts).encode(), hashlib.sha256).hexdigest()

    def had(self, job: Job, limit: float | None) -> Cell | None:
        """The cell, if it need not be run again: refusals repeat, accidents may not, and patience may have grown."""
        cell = self.cells.get(job.key())
        if cell is None or cell.status == FAILED:
            return None
        if cell.status == STOPPED and (limit is None or cell.limit is None or limit > cell.limit):
            return None
        return cell

    def keep(self, job: Job, cell: Cell) -> None:
        """One more line, written at once."""
        self.cells[job.key()] = cell
        if self.path is not None:
            if not self.path.exists():
                _append(self.path, self.head, new=True)
            _append(self.path, {"key": job.key(), "table": job.table, "schema": job.schema, "cell": cell.to_dict()})


def open_state(path: Path | None, table: Iterable[object], schema: str) -> State:
    """The state at `path`, or a new one; one that belongs to another table or schema is refused, never replaced.

    `table`: what decides the table's fingerprint.
    """
    if path is None or not path.exists():
        # Its head is written with the first cell: a call that is refused leaves no file behind.
        state = State(path, secrets.token_hex(16), secrets.randbits(63), {}, {})
        state.head.update(format=FORMAT, note=NOTE, salt=state.salt, coins=state.coins)
        state.head.update(table=state.fingerprint(*table), schema=schema)
        return state
    header, lines = _read(path)
    state = State(path, header["salt"], header["coins"], header, {})
    if (header["table"], header["schema"]) != (state.fingerprint(*table), schema):
        what = (
            "schema" if header["schema"] != schema else "table, of one that has changed since, or held back other rows"
        )
        raise OptionError(
            f"state file {str(path)!r} holds fits of another {what}; move it away to begin anew, or give another "
            "name for the page (nothing was changed)"
        )
    state.cells.update({line["key"]: Cell.from_dict(line["cell"]) for line in lines})
    return state


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    problem = ""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        header = json.loads(lines[0])
        if header["format"] != FORMAT or not {"salt", "coins", "table", "schema"} <= set(header):
            raise ValueError
        bytes.fromhex(header["salt"])
        found = []
        for line in lines[1:]:
            # A line may be half written where a machine went down: that cell is run again.
            with suppress(ValueError):
                found.append(json.loads(line))
        for record in found:
            Cell.from_dict(record["cell"])
        return header, found
    except OSError as error:
        problem = f"it cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        problem = "it is not a state file of `understudy compare`, or it is damaged"
    raise OptionError(
        f"state file {str(path)!r}: {problem}; move it away, or name the page otherwise (nothing was changed)"
    )


def _append(path: Path, record: dict[str, Any], *, new: bool = False) -> None:
    line = json.dumps(record, allow_nan=False) + "\n"
    problem = ""
    try:
        flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT | os.O_EXCL if new else 0)
        with open(os.open(path, flags, 0o600), "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                line = line if file.read(1) == b"\n" else "\n" + line
            file.write(line.encode())
            os.fsync(file.fileno())
    except OSError as error:
        problem = error.strerror or "it cannot be written"
    if problem:
        raise DataError(f"state file {str(path)!r}: {problem}; choose another place with -o")
