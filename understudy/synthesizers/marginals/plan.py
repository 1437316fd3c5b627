"""Noise and resolution of the methods here, decided before a row is read: from public facts alone."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from understudy.errors import OptionError, SchemaError
from understudy.privacy import BoundedRange, Budget, Event, Gaussian, SelfComposed
from understudy.privacy.calibrate import calibrate
from understudy.privacy.events import NonPrivate
from understudy.privacy.ledger import Entry
from understudy.schema import Schema
from understudy.synthesizers.planned import Planned, gaussian_event, one_way_entry
from understudy.table.cells import cells_of

FEWEST_BINS = 4
LARGEST_BINS, LARGEST_STEPS = 65_536, 1_000_000  # that may be asked for; what is asked for is cut to MOST_CELLS
# Bins of a numeric column: this many times the cube root of rows over noise (the balance of detail against noise).
BINS_FACTOR = 2.0
MOST_CELLS = 600_000  # of all tables together: exact noise costs some 20 microseconds a cell


@dataclass(frozen=True)
class Round:
    """Some tables that are chosen from the same scores, and released together."""

    picks: int
    selection_epsilon: float  # of one pick; infinite without privacy
    multiplier: float  # of the tables' noise

    @property
    def noise(self) -> float:
        """Standard deviation of a cell: a row touches one cell of each table."""
        return self.multiplier * math.sqrt(self.picks)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will be measured, with which noise and at which resolution."""

    one_way_multiplier: float
    rounds: tuple[Round, ...]
    choosing: bool  # false where there are no more candidates than picks
    bins: int
    most_codes: int

    @property
    def tables(self) -> int:
        return sum(one.picks for one in self.rounds)


@dataclass(frozen=True)
class Shares:
    """Shares of the budget, of 1/z^2: what adds up when Gaussian releases are composed."""

    one_way: float
    selection: float
    tables: tuple[float, ...]
    picks: tuple[int, ...]

    def multipliers(self, noise: float) -> tuple[float, ...]:
        return tuple(noise / math.sqrt(share) for share in self.tables)

    def selection_epsilon(self, noise: float) -> float:
        """Of one pick: the zCDP of all, picks * epsilon^2 / 8, is the share of the budget's 1/(2 z^2)."""
        return math.sqrt(4 * self.selection / sum(self.picks)) / noise if noise else math.inf

    def events(self, noise: float) -> list[Event]:
        events: list[Event] = [Gaussian(noise / math.sqrt(self.one_way))]
        for picks, multiplier in zip(self.picks, self.multipliers(noise), strict=True):
            if self.selection:
                events.append(SelfComposed(BoundedRange(self.selection_epsilon(noise)), picks))
            events.append(Gaussian(multiplier))
        return events


def shares_of(one_way: float, selection: float, picks: tuple[int, ...], *, growth: float, choosing: bool) -> Shares:
    """Shares of rounds grow by `growth` a table; nothing goes to a choice that there is not."""
    if not picks:
        return Shares(1.0, 0.0, (), ())
    selection = selection if choosing else 0.0
    weights = [count * growth**number for number, count in enumerate(picks)]
    tables = tuple((1 - one_way - selection) * weight / sum(weights) for weight in weights)
    return Shares(one_way, selection, tables, picks)


@lru_cache(maxsize=32)
def calibrated(shares: Shares, budget: Budget) -> float:
    """Remembered, since a plan is made twice: to be checked before anything is spent, and to be carried out."""
    return calibrate(shares.events, budget)


def make_plan(
    shares: Shares, schema: Schema, budget: Budget, *, bins: int | None, most_bins: int, most_codes: int
) -> Plan:
    """Finds the noise by inverting the accountant, and the resolution that it is worth."""
    noise = calibrated(shares, budget)
    rounds = tuple(
        Round(picks, shares.selection_epsilon(noise), multiplier)
        for picks, multiplier in zip(shares.picks, shares.multipliers(noise), strict=True)
    )
    bins = bins or _bins(schema.rows, max((one.noise for one in rounds), default=0.0), most_bins)
    bins, most_codes = _within_limits(schema, bins, most_codes, sum(shares.picks))
    return Plan(
        one_way_multiplier=noise / math.sqrt(shares.one_way),
        rounds=rounds,
        choosing=shares.selection > 0,
        bins=bins,
        most_codes=most_codes,
    )


def planned_tables(schema: Schema, plan: Plan, fact: tuple[str, str]) -> Planned:
    """What a plan will charge, round by round; `fact` says what is chosen."""
    entries = [one_way_entry(schema, plan.one_way_multiplier)]
    for number, one in enumerate(plan.rounds, start=1):
        of_round = f", round {number}" if len(plan.rounds) > 1 else ""
        if plan.choosing:
            pick = BoundedRange(one.selection_epsilon) if one.multiplier else NonPrivate()
            entries.append(Entry(SelfComposed(pick, one.picks), f"choice of tables{of_round}"))
        entries.append(Entry(gaussian_event(one.multiplier), f"tables{of_round}"))
    noises = dict.fromkeys(f"{one.noise:.3g}" for one in plan.rounds)
    return Planned(
        tuple(entries),
        (
            fact,
            ("a cell", f"gets noise of {', '.join(noises) or 'no'} rows (standard deviation) in its table"),
            ("bins", f"up to {plan.bins} a numeric column"),
        ),
    )


def _bins(rows: int, noise: float, most: int) -> int:
    return min(max(round(BINS_FACTOR * (rows / noise) ** (1 / 3)), FEWEST_BINS), most) if noise else most


def _within_limits(schema: Schema, bins: int, most_codes: int, tables: int) -> tuple[int, int]:
    """Fewer bins and codes where two-way tables would grow past what memory and time allow."""
    cells = [cells_of(column) for column in schema.modelled.values()]
    while max(bins, most_codes) > 2:
        sizes = sorted(min(c.values, bins if c.ordered else most_codes) + c.missing for c in cells)
        if tables * math.prod(sizes[-2:]) <= MOST_CELLS:
            break
        bins, most_codes = max(int(bins * 0.8), 2), max(int(most_codes * 0.8), 2)
    return bins, most_codes


def check_columns(method: str, schema: Schema, most: int) -> None:
    """Refuses tables so wide that candidates could not all be looked at, nor the model be fitted, in useful time."""
    columns = len(schema.modelled)
    if columns > most:
        raise SchemaError(
            f"{method} takes at most {most} modelled columns, got {columns}; drop columns (kind: text leaves one out), "
            "or use -m mixture"
        )


def check_share(name: str, value: Any) -> None:
    if not isinstance(value, float) or not 0 < value < 0.5:
        raise OptionError(f"{name} must be a number between 0 and 0.5, got {value!r}")


def check_whole(name: str, value: Any, least: int, most: int, *, optional: bool = False) -> None:
    """Refuses also what memory or time could not bear: such a fit would break off after its budget is spent."""
    whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    if not whole and not (optional and value is None):
        raise OptionError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
