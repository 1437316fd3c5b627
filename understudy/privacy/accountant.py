"""From events to an epsilon: Renyi DP, privacy-loss distributions, and the exact Gaussian formula.

Each bound is valid for the same table and the same row, so the smallest is too. Composition happens on curves and
distributions; an epsilon is read off once, at the end (adding epsilons wastes about a third of a budget).
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from understudy.errors import OptionError
from understudy.privacy import loss_distributions, renyi
from understudy.privacy.events import Event, Gaussian, NonPrivate, Parallel, PoissonSampled, SelfComposed
from understudy.privacy.gaussian_dp import gaussian_epsilon

Leaves = tuple[tuple[Event, int], ...]


@dataclass(frozen=True)
class Epsilon:
    """What each accountant says (None where it does not apply); `value` is the smallest."""

    rdp: float | None
    pld: float | None
    analytic: float | None

    @property
    def value(self) -> float:
        return min(bound for bound in (self.rdp, self.pld, self.analytic) if bound is not None)


def epsilon(events: Iterable[Event], delta: float) -> Epsilon:
    """The epsilon of all events together at this delta, for one row added or removed.

    >>> epsilon([Gaussian(3.7306)] , 1e-5).analytic < 1.00001
    True
    """
    if not 0 < delta < 1:
        raise OptionError(f"delta must lie between 0 and 1, got {delta}")
    leaves = flatten(events)
    return Epsilon(rdp_epsilon(leaves, delta), pld_epsilon(leaves, delta), analytic_epsilon(leaves, delta))


def flatten(events: Iterable[Event], *, onto: Leaves = ()) -> Leaves:
    """Counts of the elementary events, in a fixed order: one by one or by count is the same composition.

    `onto` has what was flattened before.

    >>> flatten([Gaussian(2.0), SelfComposed(Gaussian(2.0), 3)])
    ((Gaussian(noise_multiplier=2.0), 4),)
    """
    counts: Counter[Event] = Counter(dict(onto))
    for event in events:
        _count(event, 1, counts)
    return tuple(sorted(counts.items(), key=lambda item: repr(item[0])))


def _count(event: Event, times: int, counts: Counter[Event]) -> None:
    match event:
        case SelfComposed(inner, count):
            _count(inner, times * count, counts)
        case PoissonSampled(rate, inner) if rate == 1.0:
            _count(inner, times, counts)
        case Parallel(branches):
            largest = _largest(branches)
            if len(largest) == 1:
                _count(largest[0], times, counts)
            else:
                counts[Parallel(largest)] += times
        case _:
            counts[event] += times


def _largest(branches: tuple[Event, ...]) -> tuple[Event, ...]:
    """The branches without those that another one plainly covers, in a fixed order."""
    kept: list[Event] = []
    for branch in sorted(set(branches), key=repr):
        if not any(_covers(other, branch) for other in kept):
            kept = [other for other in kept if not _covers(branch, other)] + [branch]
    return tuple(kept)


def _covers(large: Event, small: Event) -> bool:
    """Whether the parameters alone show that `large` leaks at least as much: less noise, a higher rate, more runs."""
    match large, small:
        case Gaussian(z), Gaussian(other):
            return z <= other
        case Gaussian(z), PoissonSampled(_, Gaussian(other)):
            return z <= other
        case PoissonSampled(rate, Gaussian(z)), PoissonSampled(other_rate, Gaussian(other)):
            return rate >= other_rate and z <= other
        case SelfComposed(event, count), SelfComposed(other, other_count):
            return count >= other_count and _covers(event, other)
        case SelfComposed(event, _), _:
            return _covers(event, small)
    return large == small


def analytic_epsilon(leaves: Leaves, delta: float) -> float | None:
    """Exact, where every event is a Gaussian release (in parallel parts: the part with the least noise)."""
    precision = gaussian_precision(leaves)
    if precision is None:
        return None
    return gaussian_epsilon(precision**-0.5, delta) if precision else 0.0


def gaussian_precision(leaves: Leaves) -> float | None:
    """The sum of count/z^2 (the square of the Gaussian DP parameter mu), None unless all events are Gaussian."""
    total = 0.0
    for event, count in leaves:
        match event:
            case Gaussian(z):
                total += count / z**2
            case Parallel(branches):
                # Gaussian pairs are totally ordered by mu, so the largest dominates the others.
                parts = [gaussian_precision(flatten([branch])) for branch in branches]
                if None in parts:
                    return None
                total += count * max(parts)
            case _:
                return None
    return total


@lru_cache(maxsize=1024)
def rdp_epsilon(leaves: Leaves, delta: float) -> float:
    """From the sum of the Renyi curves, or from the sum of epsilons where all events are pure."""
    return renyi.total(renyi.curve(event).times(count) for event, count in leaves).epsilon(delta)


@lru_cache(maxsize=1024)
def pld_epsilon(leaves: Leaves, delta: float, *, coarse: bool = False) -> float | None:
    """From the composed privacy-loss distributions; None where an event has none, or floats cannot resolve delta.

    The grid is 1e-4, or ten times that for a first look (`coarse`) and where Renyi DP says that epsilon is above 30;
    above 1,000, where a distribution would fill the memory and nobody is protected, there is none.
    """
    rough = rdp_epsilon(leaves, delta)
    if rough > 1_000:
        return math.inf if any(isinstance(event, NonPrivate) for event, _ in leaves) else None
    interval = loss_distributions.INTERVAL * (10 if coarse or rough > 30 else 1)
    return loss_distributions.epsilon(leaves, delta, interval)


def exceeds(leaves: Leaves, limit: float, delta: float) -> float | None:
    """None if the events stay within `limit`, else their epsilon; the cheap accountants are asked first."""
    smallest = math.inf
    for ask in (analytic_epsilon, rdp_epsilon, pld_epsilon):
        found = ask(leaves, delta)
        if found is not None:
            smallest = min(smallest, found)
            if found <= limit:
                return None
            if ask is analytic_epsilon:
                break  # exact: the others can only be larger
    return smallest
