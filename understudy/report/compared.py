"""What a page about a comparison of methods is made of: figures, words and costs, never rows."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Point:
    """Mean of a figure over repeats, and its standard deviation (None for a single one)."""

    epsilon: float
    mean: float
    spread: float | None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One method's points, smallest epsilon first."""

    method: str
    points: tuple[Point, ...]


@dataclass(frozen=True, kw_only=True)
class TradeOff:
    """A figure against epsilon for all methods, and what fresh real rows score (None where there is no such number)."""

    heading: str
    told: str
    curves: tuple[Curve, ...]
    fresh: float | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a fit of a method takes, as means over all of its fits; None where none came to an end."""

    method: str
    fit_seconds: float | None
    processor_seconds: float | None
    peak_megabytes: float | None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of words under headings; `numbers` are the headings of number columns."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compared:
    """All that the page shows."""

    title: str
    banner: str
    simulated: bool
    methods: tuple[str, ...]
    advice: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    verdicts: Grid
    overall: TradeOff | None
    trade_offs: tuple[TradeOff, ...]
    costs: tuple[Cost, ...]
    cost_note: str
    summary: Grid
    cells: Grid
    failures: Grid
    setting: Grid
    choose_command: str
    simulate_command: str
