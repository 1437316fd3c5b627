"""What a report is made of, besides an evaluation: shares, associations and guarantees, never rows."""

from dataclasses import dataclass

from understudy.privacy.certificate import Certificate, Finding


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Shares of rows by cell of one column; `real` is None in a report for the public.

    `ordered` cells lie along an axis (numbers, dates) and are drawn as steps; others get a bar each. Shares of missing
    cells stand beside ordered ones, as they have no place on the axis.
    """

    name: str
    kind: str
    ordered: bool
    cells: tuple[str, ...]
    synthetic: tuple[float, ...]
    real: tuple[float, ...] | None = None
    missing_synthetic: float = 0.0
    missing_real: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """Association of every pair of columns, from 0 (independent) to 1, in both tables; `of` counts all columns."""

    names: tuple[str, ...]
    real: tuple[tuple[float, ...], ...]
    synthetic: tuple[tuple[float, ...], ...]
    of: int


@dataclass(frozen=True, kw_only=True)
class MeanImages:
    """The mean image of one class in both tables, as PNG files, and how far they lie apart."""

    name: str
    real: bytes | None
    synthetic: bytes | None


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Some synthetic images as one PNG file, a row a class where there are classes; `means` only for the steward."""

    column: str
    samples: bytes
    classes: tuple[str, ...]
    means: tuple[MeanImages, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What one attacker showed in a game: the bound that counts, and both rules' numbers in words."""

    canary: str
    view: str
    score: str
    runs: int
    bound: float
    counted: str
    gaussian: str

    @property
    def who(self) -> str:
        return f"{self.canary}, {self.view}"


@dataclass(frozen=True, kw_only=True)
class AuditedStep:
    """A mechanism that was played against: its claim and the lower bound."""

    words: str
    runs: int
    delta: float
    epsilon: float
    bound: float


@dataclass(frozen=True, kw_only=True)
class Audited:
    """An audit of a method, on made-up rows. note: where it is not an audit of what the page is about."""

    epsilon: float
    confidence: float
    holds: bool
    statement: str
    shown: tuple[Shown, ...]
    steps: tuple[AuditedStep, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A certificate, what recomputing it found, and its ledger in words: (purpose, event) a use of the rows."""

    certificate: Certificate
    findings: tuple[Finding, ...]
    ledger: tuple[tuple[str, str], ...]

    @property
    def holds(self) -> bool:
        return all(finding.ok for finding in self.findings)
