"""What was promised about a release, in a form that anyone can recompute without data.

A certificate lists every touch of the rows and the epsilon that follows. It is not signed: whoever can change it can
also write another. What checking shows is that its parts agree: the claim follows from the entries, and the released
arrays and the schema are those that it names.
"""

import datetime
import hashlib
import json
import math
import numbers
import platform
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import metadata
from typing import Any

import numpy as np

from understudy.errors import CertificateError, OptionError
from understudy.notebook import card
from understudy.privacy import accountant
from understudy.privacy.events import event_from_dict, told
from understudy.privacy.ledger import Entry, Ledger

FORMAT = 1
UNIT = "one row"
NEIGHBOURS = "add-or-remove-one"
OS_ENTROPY, SEEDED = "os-entropy", "seeded"
# Other versions and machines round differently in the last digits; a claim may be short by no more than this.
TOLERANCE = 1e-6
_DIGEST_LENGTH = 64


@dataclass(frozen=True)
class Finding:
    """One thing that was checked: whether it holds, what it is, and how that was seen."""

    ok: bool
    what: str
    detail: str


@dataclass(frozen=True, repr=False)
class Certificate:
    """The guarantee of one release. `epsilon` is the claim; `rdp`, `pld`, `analytic` are what each accountant said."""

    method: str
    entries: tuple[Entry, ...]
    delta: float
    epsilon: float
    rdp: float | None
    pld: float | None
    analytic: float | None
    schema_digest: str
    arrays_digest: str
    rng: str
    created: str
    versions: dict[str, str]
    format: int = FORMAT
    unit: str = UNIT
    neighbours: str = NEIGHBOURS

    def __post_init__(self) -> None:
        _validate(self)

    @staticmethod
    def issue(
        *, method: str, ledger: Ledger, arrays: Mapping[str, np.ndarray], schema_digest: str, seeded: bool
    ) -> "Certificate":
        """The certificate of everything in the ledger, for these released arrays."""
        found = accountant.epsilon(ledger.events, ledger.budget.delta)
        return Certificate(
            method=method,
            entries=ledger.entries,
            delta=ledger.budget.delta,
            epsilon=found.value,
            rdp=found.rdp,
            pld=found.pld,
            analytic=found.analytic,
            schema_digest=schema_digest,
            arrays_digest=arrays_digest(arrays),
            rng=SEEDED if seeded else OS_ENTROPY,
            created=datetime.datetime.now(datetime.UTC).date().isoformat(),
            versions=current_versions(),
        )

    def to_json(self) -> str:
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["entries"] = [{"purpose": e.purpose, "event": e.event.to_dict()} for e in self.entries]
        for name in ("epsilon", "rdp", "pld", "analytic"):
            data[name] = "inf" if data[name] == math.inf else data[name]
        return json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n"

    @staticmethod
    def from_json(text: str) -> "Certificate":
        """Reads what `to_json` wrote; anything else is a CertificateError."""
        try:
            data = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
        except (ValueError, RecursionError, TypeError):
            raise CertificateError("certificate: not valid JSON; ask for the file again") from None
        names = {f.name for f in fields(Certificate)}
        if not isinstance(data, dict) or set(data) != names:
            raise CertificateError(f"certificate: must have exactly the fields {', '.join(sorted(names))}")
        if data["format"] != FORMAT:
            raise CertificateError(f"certificate: format must be {FORMAT}; this version reads no other")
        for name in ("epsilon", "rdp", "pld", "analytic"):
            data[name] = math.inf if data[name] == "inf" else data[name]
        return Certificate(**(data | {"entries": _entries(data["entries"])}))

    def check(
        self,
        *,
        arrays: Mapping[str, np.ndarray] | None = None,
        schema_digest: str | None = None,
        release: bool = False,
    ) -> list[Finding]:
        """Recomputes what can be; `release` also asks whether the release may leave the house. All must be ok."""
        findings = [*self._check_epsilons()]
        if arrays is not None:
            same = arrays_digest(arrays) == self.arrays_digest
            findings.append(Finding(same, "released arrays", _match(same)))
        if schema_digest is not None:
            same = schema_digest == self.schema_digest
            findings.append(Finding(same, "schema", _match(same)))
        if release:
            findings += self._check_release()
        return findings

    def _check_epsilons(self) -> list[Finding]:
        try:
            with np.errstate(divide="raise"):
                found = accountant.epsilon([entry.event for entry in self.entries], self.delta)
        except ArithmeticError:
            return [Finding(False, "epsilon", "cannot be recomputed: an entry's numbers are beyond all reason")]
        holds = _at_most(found.value, self.epsilon)
        findings = [
            Finding(
                bool(self.entries),
                "uses of the rows",
                f"{len(self.entries)} listed" if self.entries else "none is listed, and no model comes of nothing",
            ),
            Finding(
                holds,
                "epsilon",
                f"claimed {_show(self.epsilon)}, recomputed {_show(found.value)} at delta {self.delta:g} "
                f"from {len(self.entries)} entries",
            ),
        ]
        for name in ("rdp", "pld", "analytic"):
            claimed, recomputed = getattr(self, name), getattr(found, name)
            # Saying nothing under one accountant is no false claim; a number that cannot be had again is.
            ok = claimed is None or (recomputed is not None and _at_most(recomputed, claimed))
            silent = claimed is None and recomputed is None
            told = (
                "has no formula for these uses"
                if silent
                else f"stated {_show(claimed)}, recomputed {_show(recomputed)}"
            )
            findings.append(Finding(ok, name, told))
        return findings

    def _check_release(self) -> list[Finding]:
        private = math.isfinite(self.epsilon)
        fresh = self.rng == OS_ENTROPY
        return [
            Finding(
                private, "private", "epsilon is finite" if private else "epsilon is infinite: nothing is guaranteed"
            ),
            Finding(
                fresh,
                "randomness",
                "noise came from the operating system"
                if fresh
                else "made with a seed, with which the noise can be subtracted; fit again without one",
            ),
        ]

    def holds(self, **given: Any) -> bool:
        """Whether every finding of `check` is ok."""
        return all(finding.ok for finding in self.check(**given))

    def __repr__(self) -> str:
        uses = f"{len(self.entries)} use{'s' * (len(self.entries) != 1)} of the rows"
        claim = f"epsilon {rounded_up(self.epsilon, 4)}, delta {rounded_up(self.delta, 4)}"
        return f"Certificate({self.method}, {claim}, {uses}, {self.rng})"

    def _repr_html_(self) -> str:
        stated = {name: getattr(self, name) for name in ("epsilon", "delta", "rdp", "pld", "analytic")}
        return card(
            "Certificate",
            [
                ("method", self.method),
                *((name, value) for name, value in stated.items() if value is not None),
                ("unit", f"{self.unit}, {self.neighbours}"),
                ("noise from", self.rng),
                ("made", f"{self.created}, version {self.versions.get('understudy', 'unknown')}"),
            ],
            headings=("use of the rows", "event"),
            rows=[(entry.purpose, told(entry.event.to_dict())) for entry in self.entries],
            notes=[self.statement()],
        )

    def statement(self) -> str:
        """The guarantee in two plain sentences."""
        if not math.isfinite(self.epsilon):
            return (
                f"This release (method {self.method}) was made without privacy: it can reveal anything about a row. "
                "Treat it like the original table."
            )
        factor = rounded_up(math.exp(self.epsilon)) if self.epsilon < 700 else f"exp({rounded_up(self.epsilon)})"
        delta = rounded_up(self.delta)
        first = (
            f"Adding any one row to the table, or removing it, makes any conclusion drawn from this release (method "
            f"{self.method}) at most {factor} times as likely, plus a chance of {delta} "
            f"(epsilon {rounded_up(self.epsilon)}, delta {delta})."
        )
        if self.rng == SEEDED:
            return f"{first} But it was made with a seed, and whoever knows it can undo the noise: not for release."
        uses = "The one use" if len(self.entries) == 1 else f"All {len(self.entries)} uses"
        counted = "was counted" if len(self.entries) == 1 else "were counted"
        return f"{first} {uses} of the rows {counted}, with noise from the operating system."


def arrays_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over names, dtypes, shapes and little-endian bytes, in the order of the names.

    >>> arrays_digest({"a": np.arange(3, dtype=np.int32)})[:8]
    '40bde986'
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        if array.dtype.kind not in "biuf":
            raise OptionError(f"array {name!r}: must hold numbers, got dtype {array.dtype}")
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        header = json.dumps([name, array.dtype.str, list(np.shape(arrays[name]))])
        # Lengths first, so that no two sets of arrays run together into the same bytes.
        digest.update(f"{len(header.encode())}:{header}{array.nbytes}:".encode())
        digest.update(array.data)
    return digest.hexdigest()


def current_versions() -> dict[str, str]:
    from understudy import __version__

    return {
        "understudy": __version__,
        "dp-accounting": metadata.version("dp-accounting"),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _validate(certificate: Certificate) -> None:
    def need(ok: bool, message: str) -> None:
        if not ok:
            raise CertificateError(f"certificate: {message}")

    c = certificate
    need(type(c.format) is int and c.format == FORMAT, f"format must be {FORMAT}")
    need(c.unit == UNIT, f"unit must be {UNIT!r}")
    need(c.neighbours == NEIGHBOURS, f"neighbours must be {NEIGHBOURS!r}")
    need(isinstance(c.method, str) and c.method != "", "method must be a name")
    need(c.rng in (OS_ENTROPY, SEEDED), f"rng must be {OS_ENTROPY} or {SEEDED}")
    need(_is_number(c.delta) and 0 < c.delta < 1, "delta must lie between 0 and 1")
    need(_is_number(c.epsilon) and c.epsilon >= 0, "epsilon must be a number from 0, or inf")
    for name in ("rdp", "pld", "analytic"):
        value = getattr(c, name)
        need(value is None or (_is_number(value) and value >= 0), f"{name} must be a number from 0, inf or null")
    for name in ("schema_digest", "arrays_digest"):
        need(_is_digest(getattr(c, name)), f"{name} must be {_DIGEST_LENGTH} hexadecimal digits")
    need(isinstance(c.created, str) and _is_date(c.created), "created must be a date such as 2024-05-31")
    need(
        isinstance(c.versions, dict) and all(isinstance(x, str) for item in c.versions.items() for x in item),
        "versions must map names to versions",
    )
    need(isinstance(c.entries, tuple) and all(isinstance(e, Entry) for e in c.entries), "entries must be a list")


def _entries(data: Any) -> tuple[Entry, ...]:
    if not isinstance(data, list):
        raise CertificateError("certificate: entries must be a list")
    return tuple(_entry(item, number) for number, item in enumerate(data, start=1))


def _entry(item: Any, number: int) -> Entry:
    if not isinstance(item, dict) or set(item) != {"event", "purpose"}:
        raise CertificateError(f"certificate: entry {number} must have an event and a purpose")
    if not isinstance(item["purpose"], str) or not item["purpose"]:
        raise CertificateError(f"certificate: entry {number} must say its purpose")
    try:
        return Entry(event_from_dict(item["event"]), item["purpose"])
    except OptionError as error:
        raise CertificateError(f"certificate: entry {number}: {error}") from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not math.isnan(value)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _DIGEST_LENGTH and set(value) <= set("0123456789abcdef")


def _is_date(value: str) -> bool:
    try:
        return datetime.date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _at_most(recomputed: float, claimed: float) -> bool:
    return recomputed <= claimed * (1 + TOLERANCE) + 1e-12


def _match(same: bool) -> str:
    return "the digest is the one in the certificate" if same else "the digest differs from the one in the certificate"


def _show(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.6g}"


def rounded_up(value: float, digits: int = 3) -> str:
    """So many significant digits, rounded up: a claim may be looser than the truth, never tighter.

    >>> rounded_up(1.0), rounded_up(0.98701), rounded_up(1 / 7e6), rounded_up(1 / 7e6, 6), rounded_up(math.inf)
    ('1', '0.988', '1.43e-07', '1.42858e-07', 'inf')
    """
    if not 0 < value < math.inf:
        return "0" if value <= 0 else "inf"
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.{digits}g}"
