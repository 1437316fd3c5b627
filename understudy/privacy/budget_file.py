"""One budget for repeated fits on one table, kept in a JSON file beside it.

Every fit is written down before it touches a row (`reserve`), so that a crash in the middle counts as spent, and
settled with its certificate afterwards (`commit`). All fits together are composed on curves, not by adding epsilons.

Each record carries a hash of itself and of the record before. That shows a record that was changed, dropped or
reordered by accident or by someone who did not recompute the rest. It cannot show an older copy of the file put back in
place while no program had it open, nor a file rewritten from start to end by someone who knows the format: keep the
newest hash (`head`) elsewhere if that matters. And it counts only fits that were told to use it.
"""

import datetime
import hashlib
import json
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from understudy.errors import BudgetError, OptionError
from understudy.notebook import card
from understudy.privacy import accountant
from understudy.privacy.certificate import Certificate
from understudy.privacy.events import ApproxDp, Event, event_from_dict
from understudy.privacy.ledger import TOLERANCE, Budget

FORMAT = 1
_LOCK_PATIENCE = 60.0
_FIELDS = {
    "reserve": {"kind", "id", "when", "purpose", "events", "previous", "hash"},
    "commit": {"kind", "id", "when", "certificate", "events", "previous", "hash"},
}


def fit_delta(total: Budget) -> float:
    """The delta to run a fit with: a tenth of the file's, so that a reserved fit leaves room for settled ones."""
    return total.delta / 10


class BudgetFile:
    """The file as it was last read; `reserve` and `commit` read it again under a lock before they write."""

    def __init__(self, path: Path, header: dict[str, Any], records: tuple[dict[str, Any], ...]) -> None:
        self.path = path
        self._header = header
        self._records = records

    @staticmethod
    def create(path: str | Path, budget: Budget) -> "BudgetFile":
        """A new file; an existing one is never replaced."""
        path = _real_path(path)
        if not budget.private:
            raise OptionError("budget file: epsilon must be finite; an infinite budget needs no file")
        header = {
            "format": FORMAT,
            "table": secrets.token_hex(16),
            "epsilon": budget.epsilon,
            "delta": budget.delta,
        }
        with _locked(path):
            if path.exists():
                raise OptionError(f"budget file {path.name} exists already; load it, or choose another name")
            _write(path, header, ())
        return BudgetFile(path, header, ())

    @staticmethod
    def load(path: str | Path) -> "BudgetFile":
        """Reads the file and checks every hash; a file that does not add up is a BudgetError."""
        path = _real_path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise OptionError(f"budget file {path.name} does not exist; create it with its total budget") from None
        except (OSError, UnicodeDecodeError):
            raise BudgetError(f"budget file {path.name} cannot be read; restore it from a backup") from None
        header, records = _parse(text, path.name)
        return BudgetFile(path, header, records)

    @property
    def budget(self) -> Budget:
        return Budget(self._header["epsilon"], self._header["delta"])

    @property
    def fit_delta(self) -> float:
        """The delta to run a fit with."""
        return fit_delta(self.budget)

    @property
    def head(self) -> str:
        """Hash of the newest record; with it, nobody can take back a fit unseen."""
        return self._records[-1]["hash"] if self._records else _hash(self._header)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that counts: the certificate's events of settled fits, the reserved ones of all others."""
        counted = {record["id"]: record["events"] for record in self._records}
        return tuple(event_from_dict(event) for events in counted.values() for event in events)

    @property
    def open_reservations(self) -> dict[str, str]:
        """Fits that were announced and not settled (running, or crashed), by id, with their purpose."""
        settled = {record["id"] for record in self._records if record["kind"] == "commit"}
        return {r["id"]: r["purpose"] for r in self._records if r["kind"] == "reserve" and r["id"] not in settled}

    def __repr__(self) -> str:
        fits = len({record["id"] for record in self._records})
        return (
            f"BudgetFile({self.path.name}, total epsilon {self.budget.epsilon:g}, delta {self.budget.delta:g}, "
            f"{fits} fit{'s' * (fits != 1)}, {len(self.open_reservations)} not settled)"
        )

    def _repr_html_(self) -> str:
        waiting = self.open_reservations
        entered = [record for record in self._records if record["kind"] == "reserve"]
        return card(
            f"Budget file {self.path.name}",
            [("spent", f"epsilon {self.spent():.4g} of {self.budget.epsilon:g}"), ("delta", self.budget.delta)],
            headings=("fit", "entered", "counts"),
            rows=[
                (
                    r["purpose"],
                    r["when"],
                    "as reserved: not settled" if r["id"] in waiting else "as its certificate says",
                )
                for r in entered
            ],
        )

    def spent(self) -> float:
        """Epsilon of all fits together, at the file's delta."""
        return accountant.epsilon(self.events, self.budget.delta).value

    def remaining_allows(self, ask: Budget | Sequence[Event]) -> bool:
        """Whether a fit with this budget, or these events, still fits."""
        return _excess(self, _events_of(ask)) is None

    def reserve(self, ask: Budget | Sequence[Event], purpose: str) -> str:
        """Writes a fit down before it runs and returns its id; raises BudgetError, without a trace, if it does not fit.

        Events that are known in advance are counted as they are. A `Budget` counts as the worst mechanism with that
        epsilon and delta until `commit` tells the events; give it `fit_delta`, which leaves room for the settled fits.
        """
        if not isinstance(purpose, str) or not purpose:
            raise OptionError("budget file: purpose must say in words what the fit is for")
        events = _events_of(ask)
        with _locked(self.path):
            self._refresh()
            over = _excess(self, events)
            if over is not None:
                raise BudgetError(
                    f"budget file {self.path.name}: {purpose} would bring epsilon to {over:.6g}, above its total of "
                    f"{self.budget.epsilon:g} at delta {self.budget.delta:g}; ask for less epsilon (and for a "
                    f"delta of at most {self.fit_delta:g}), or have the owner of the table decide on a larger total"
                )
            name = secrets.token_hex(8)
            self._append(
                {"kind": "reserve", "id": name, "purpose": purpose, "events": [event.to_dict() for event in events]}
            )
        return name

    def commit(self, reservation: str, certificate: Certificate, spent: Sequence[Event] | None = None) -> None:
        """Settles a reservation with what the fit really did; the certificate's events count from then on.

        spent: those of them that are new, where a model rests on others whose fits have entries of their own. If the
        total is passed after all, they are written down all the same (the rows were touched), and a BudgetError says
        that the release must not leave the house.
        """
        events = [entry.event for entry in certificate.entries] if spent is None else spent
        with _locked(self.path):
            self._refresh()
            if reservation not in self.open_reservations:
                raise OptionError(f"budget file {self.path.name}: {reservation!r} is no open reservation")
            self._append(
                {
                    "kind": "commit",
                    "id": reservation,
                    "certificate": _certificate_digest(certificate),
                    "events": [event.to_dict() for event in events],
                }
            )
        over = _excess(self, ())
        if over is not None:
            raise BudgetError(
                f"budget file {self.path.name}: the fit spent more than was reserved, epsilon is now {over:.6g} of "
                f"{self.budget.epsilon:g}; do not release its result"
            )

    def holds(self, certificate: Certificate) -> bool:
        """Whether a fit was settled with this very certificate, and all that it rests on was counted."""
        digest = _certificate_digest(certificate)
        settled = any(record["kind"] == "commit" and record["certificate"] == digest for record in self._records)
        counted = Counter(map(_event_text, self.events))
        return settled and Counter(_event_text(entry.event) for entry in certificate.entries) <= counted

    def _refresh(self) -> None:
        current = BudgetFile.load(self.path)
        known = len(self._records)
        if current._header != self._header or current._records[:known] != self._records:
            raise BudgetError(
                f"budget file {self.path.name}: records that were there before are gone or changed; restore the file"
            )
        self._records = current._records

    def _append(self, record: dict[str, Any]) -> None:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        record = record | {"when": now, "previous": self.head}
        record["hash"] = _hash(record)
        records = (*self._records, record)
        _write(self.path, self._header, records)
        self._records = records


def _real_path(path: str | Path) -> Path:
    """Through links: writing renames a new file into place, which would leave the one behind a link unchanged."""
    return Path(os.path.realpath(path))


def _excess(file: BudgetFile, more: Iterable[Event]) -> float | None:
    leaves = accountant.flatten([*file.events, *more])
    return accountant.exceeds(leaves, file.budget.epsilon * (1 + TOLERANCE), file.budget.delta)


def _events_of(ask: Budget | Sequence[Event]) -> tuple[Event, ...]:
    if isinstance(ask, Budget):
        if not ask.private:
            raise BudgetError("budget file: a fit with epsilon=inf has no guarantee, and cannot be counted")
        return (ApproxDp(ask.epsilon, ask.delta),)
    return tuple(ask)


def _event_text(event: Event) -> str:
    return json.dumps(event.to_dict(), sort_keys=True)


def _certificate_digest(certificate: Certificate) -> str:
    return hashlib.sha256(certificate.to_json().encode()).hexdigest()


def _hash(record: dict[str, Any]) -> str:
    content = {key: value for key, value in record.items() if key != "hash"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _parse(text: str, name: str) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    def need(ok: bool, message: str) -> None:
        if not ok:
            raise BudgetError(f"budget file {name}: {message}; restore it from a backup")

    try:
        data = json.loads(text)
        need(isinstance(data, dict) and set(data) == {"header", "records"}, "must have a header and records")
        header, records = data["header"], data["records"]
        need(isinstance(header, dict) and set(header) == {"format", "table", "epsilon", "delta"}, "header is not whole")
        need(header["format"] == FORMAT, f"format must be {FORMAT}")
        Budget(header["epsilon"], header["delta"])
        need(isinstance(records, list), "records must be a list")
        reserved: set[str] = set()
        settled: set[str] = set()
        previous = _hash(header)
        for number, record in enumerate(records, start=1):
            where = f"record {number}"
            kind = record.get("kind") if isinstance(record, dict) else None
            need(kind in _FIELDS and set(record) == _FIELDS[kind], f"{where} is not whole")
            need(record["previous"] == previous and record["hash"] == _hash(record), f"{where} was changed")
            if kind == "reserve":
                need(record["id"] not in reserved, f"{where} repeats an id")
                reserved.add(record["id"])
            else:
                need(record["id"] in reserved - settled, f"{where} settles no open reservation")
                settled.add(record["id"])
            for event in record["events"]:
                event_from_dict(event)
            previous = record["hash"]
    except (ValueError, TypeError, RecursionError, OptionError):
        raise BudgetError(f"budget file {name}: not a whole budget file; restore it from a backup") from None
    return header, tuple(records)


def _write(path: Path, header: dict[str, Any], records: Sequence[dict[str, Any]]) -> None:
    """Beside, then renamed: a crash leaves the old file or the new one, never half of it."""
    text = json.dumps({"header": header, "records": list(records)}, indent=1, allow_nan=False)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "x", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    # The rename itself must survive a power cut before the fit starts.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time, freed by the system when it dies; on a file of its own, since the other gets replaced."""
    import fcntl

    with open(path.with_name(f".{path.name}.lock"), "a", encoding="utf-8") as handle:
        deadline = time.monotonic() + _LOCK_PATIENCE
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BudgetError(f"budget file {path.name}: another process holds it; try again later") from None
                time.sleep(0.05)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)
