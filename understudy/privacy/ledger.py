"""One budget for everything that touches the rows, and the book in which each touch is written first."""

import math
import numbers
from dataclasses import dataclass

from understudy.errors import BudgetError, OptionError
from understudy.privacy import accountant
from understudy.privacy.events import Event, SelfComposed

# Room for rounding when shares of a budget are added up again: one part in a thousand million of epsilon.
TOLERANCE = 1e-9
# Above this, noise falls below the grid of exact sampling; no one is protected long before.
_LARGEST_EPSILON = 1e6


@dataclass(frozen=True)
class Budget:
    """The total (epsilon, delta) for one row added or removed; epsilon may be infinite, which guarantees nothing.

    >>> Budget(1.0, 1e-6)
    Budget(epsilon=1.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, numbers.Real):
                raise OptionError(f"{name} must be a number, got {type(value).__name__}")
            object.__setattr__(self, name, float(value))
        if not self.epsilon > 0:
            raise OptionError(f"epsilon must be above 0 (usually 0.1 to 10; inf for no privacy), got {self.epsilon}")
        if _LARGEST_EPSILON < self.epsilon < math.inf:
            raise OptionError(
                f"epsilon must be at most {_LARGEST_EPSILON:g}, got {self.epsilon:g}; "
                "such a number guarantees nothing, use inf to say so"
            )
        if not 0 < self.delta < 1:
            raise OptionError(
                f"delta must lie between 0 and 1, well below one over the number of rows, got {self.delta}"
            )

    @property
    def private(self) -> bool:
        return math.isfinite(self.epsilon)


def default_delta(rows: int) -> float:
    """min(1e-6, 1/(10 rows)), from the declared, public number of rows.

    >>> default_delta(1_000), default_delta(10_000_000)
    (1e-06, 1e-08)
    """
    if isinstance(rows, bool) or not isinstance(rows, numbers.Integral) or rows < 1:
        raise OptionError(f"rows must be a whole number above 0, got {rows}")
    return min(1e-6, 1 / (10 * int(rows)))


@dataclass(frozen=True)
class Entry:
    """One touch of the rows, and what it was for (public words, no values)."""

    event: Event
    purpose: str


class Ledger:
    """Refuses whatever would pass the budget, before it happens.

    Guarantee: the entries together never pass `budget` under `accountant.epsilon` (by more than TOLERANCE, relative).
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._entries: list[Entry] = []
        self._leaves: accountant.Leaves = ()

    def charge(self, event: Event, purpose: str) -> None:
        """Writes the event down, or raises BudgetError and leaves no trace. Call it before drawing noise."""
        if not isinstance(event, Event):
            raise OptionError(f"charge: event must be a privacy event, got {type(event).__name__}")
        if not isinstance(purpose, str) or not purpose:
            raise OptionError("charge: purpose must say in words what the release is for")
        leaves = accountant.flatten([event], onto=self._leaves)
        if self.budget.private:
            self._refuse_if_over(leaves, purpose)
        self._entries.append(Entry(event, purpose))
        self._leaves = leaves

    def prepay(self, event: Event, count: int, purpose: str) -> "Prepaid":
        """Charges `count` equal events at once, and gives a ledger to draw them from.

        For long loops: one check and one entry in place of `count`. Rounds that are not used stay charged.
        """
        self.charge(SelfComposed(event, count), purpose)
        return Prepaid(event, count)

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(entry.event for entry in self._entries)

    def spent(self) -> float:
        """Epsilon of everything charged so far, at the budget's delta."""
        return accountant.epsilon(self.events, self.budget.delta).value

    def _refuse_if_over(self, leaves: accountant.Leaves, purpose: str) -> None:
        over = accountant.exceeds(leaves, self.budget.epsilon * (1 + TOLERANCE), self.budget.delta)
        if over is None:
            return
        if math.isinf(over):
            raise BudgetError(
                f"{purpose}: no finite epsilon holds for this release at delta {self.budget.delta:g}; "
                "add noise, or set epsilon=inf to go without privacy (nothing was released)"
            )
        raise BudgetError(
            f"{purpose}: would bring epsilon to {over:.6g}, above the budget of {self.budget.epsilon:g} "
            f"at delta {self.budget.delta:g}; raise epsilon, or ask for less (nothing was released)"
        )


class Prepaid:
    """Stands in for a ledger where the charge was made in advance: lets through that event, that many times."""

    def __init__(self, event: Event, count: int) -> None:
        self.event = event
        self.left = count

    def charge(self, event: Event, purpose: str) -> None:
        if event != self.event:
            raise BudgetError(
                f"{purpose}: {event} is not what was paid in advance, {self.event}; charge the ledger itself"
            )
        if self.left == 0:
            raise BudgetError(f"{purpose}: all rounds that were paid in advance are used up; prepay more of them")
        self.left -= 1
