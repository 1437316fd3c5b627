"""White-box games against single mechanisms: the worst pair of inputs, and the best score that there is.

These have power where games on the whole path have little: what a mechanism gives away is seen before anything is made
of it. Each is played at a claim of its own, found by the accountant for the event that the mechanism charges.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.auditing.bounds import LowerBound, epsilon_lower_bound, gaussian_lower_bound
from understudy.errors import OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Event,
    Gaussian,
    Ledger,
    OneOfMany,
    Parallel,
    PoissonSampled,
    PureDp,
    SelfComposed,
    Streams,
    gaussian,
    noise_multiplier,
    select,
    select_permute_and_flip,
)
from understudy.privacy import epsilon as epsilon_of
from understudy.privacy.calibrate import calibrate
from understudy.schema import Schema
from understudy.table.table import Table

# Small enough that no sampled row could be published with that chance, large enough that events of this chance are
# seen: bounds by counting say little at deltas that no number of runs reaches.
COUNTED_DELTA, GAUSSIAN_DELTA = 1e-2, 1e-6
RATE, CRITICS, ROUNDS = 0.5, 2, 2
# The log-odds of the pick that betrays the row, with it: rarer picks tell more, and need more runs.
_ODDS = -1.0
USUAL_RUNS = 4_000
_COMPILED = 10  # times as many runs where they are made by compiled code, and cost next to nothing


@dataclass(frozen=True)
class StepGame:
    """A mechanism that was played against: the claim at the game's delta, and what was shown."""

    name: str
    words: str
    epsilon: float
    delta: float
    bound: LowerBound

    @property
    def holds(self) -> bool:
        return self.bound.epsilon <= self.epsilon


@dataclass(frozen=True)
class Worlds:
    """Scores of both worlds and the event that is claimed. gaussian: it is Gaussian, so that mu may be bounded."""

    with_row: NDArray
    without: NDArray
    event: Event
    gaussian: bool = False


Player = Callable[[float, int, Streams], Worlds]


def gaussian_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """A count of 0 or 1: as many of them as there are runs, each with noise of its own."""
    budget = Budget(epsilon, GAUSSIAN_DELTA)
    multiplier = noise_multiplier(budget)
    with_row, without = (
        gaussian(
            np.full(runs, count, dtype=np.int64),
            l2_sensitivity=1.0,
            noise_multiplier=multiplier,
            streams=streams,
            ledger=Ledger(budget),
            purpose="a count",
        )
        for count in (1, 0)
    )
    return Worlds(with_row, without, Gaussian(multiplier), gaussian=True)


def _picks(picker: Callable, scores: Iterable[float], runs: int, epsilon: float, **rest) -> NDArray:
    given = np.array(list(scores))
    event = PureDp(epsilon) if picker is select_permute_and_flip else BoundedRange(epsilon)
    paid = Ledger(Budget(math.inf, COUNTED_DELTA)).prepay(event, runs, "picks")
    picked = [
        picker(given, sensitivity=1.0, epsilon=epsilon, ledger=paid, purpose="picks", **rest) for _ in range(runs)
    ]
    return (np.array(picked) == 0).astype(float)


def select_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """Two candidates; the row adds one to the score of the first, which lags behind so that it is rarely taken."""
    behind = (_ODDS - epsilon) / epsilon
    with_row, without = (
        _picks(select, (behind + row, 0.0), runs, epsilon, monotone=True, streams=streams) for row in (1, 0)
    )
    return Worlds(with_row, without, BoundedRange(epsilon))


def select_both_ways_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """The row adds one to the first score and takes one from the second."""
    behind = 2 * (_ODDS - epsilon) / epsilon
    with_row, without = (
        _picks(select, (behind + row, -row), runs, epsilon, monotone=False, streams=streams) for row in (1.0, 0.0)
    )
    return Worlds(with_row, without, BoundedRange(epsilon))


def permute_and_flip_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """The row brings the first score up to the second: the chance of the first pick grows by exp(epsilon) exactly."""
    with_row, without = (
        _picks(select_permute_and_flip, (row - 1.0, 0.0), runs, epsilon, monotone=True, streams=streams)
        for row in (1, 0)
    )
    return Worlds(with_row, without, PureDp(epsilon))


def step_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """One training step on all rows: the noisy sum along the canary's gradient."""
    from understudy.training.dpsgd import DpSgd
    from understudy.training.probe import canary_sums

    multiplier = noise_multiplier(Budget(epsilon, GAUSSIAN_DELTA))
    plan = DpSgd(rate=1.0, steps=_COMPILED * runs, clip=0.5, noise_multiplier=multiplier, expected_batch=16.0, chunks=4)
    with_row, without = (canary_sums(plan, with_canary=row, streams=streams) for row in (True, False))
    return Worlds(with_row, without, Gaussian(multiplier), gaussian=True)


def sampled_step_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """Two training steps, each on half of the rows by fair coins: the likelihood ratio of both sums."""
    from understudy.training.dpsgd import DpSgd, sgd_event
    from understudy.training.probe import canary_sums

    multiplier = _calibrated(epsilon, sgd_event, RATE)
    plan = DpSgd(
        rate=RATE,
        steps=_COMPILED * runs * ROUNDS,
        clip=0.5,
        noise_multiplier=multiplier,
        expected_batch=16 * RATE,
        chunks=4,
    )
    with_row, without = (
        _log_ratio(canary_sums(plan, with_canary=row, streams=streams), RATE, multiplier) for row in (True, False)
    )
    return Worlds(with_row, without, sgd_event(RATE, ROUNDS, multiplier))


def question_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """Two questions to one of two critics, drawn in secret, of which the row is behind one."""
    from understudy.synthesizers.gs_wgan.ask import Asking, asking_event
    from understudy.synthesizers.gs_wgan.probe import answers

    multiplier = _calibrated(epsilon, asking_event, CRITICS)
    asking = Asking(critics=CRITICS, steps=_COMPILED * runs * ROUNDS, batch=4, clip=1.0, noise_multiplier=multiplier)
    with_row, without = (
        _log_ratio(answers(asking, with_row=row, streams=streams), 1 / CRITICS, multiplier) for row in (True, False)
    )
    return Worlds(with_row, without, asking_event(CRITICS, ROUNDS, multiplier))


def boosting_worlds(epsilon: float, runs: int, streams: Streams) -> Worlds:
    """One pick of a distinguisher: the row has the value 1 under the first, and 0 under the second."""
    from understudy.boosting.game import play

    schema = Schema.loads("rows: 100\ncolumns: {a: {kind: boolean}}")
    behind = (epsilon - _ODDS) / epsilon  # by how many rows the first falls short of the pool
    events, picks = BoundedRange(epsilon), []
    for row in (True, False):
        table = Table.from_codes(schema, {"a": np.array([0] * 20 + [1] * row, dtype=np.uint8)})
        family = _TwoDistinguishers(behind / 100)
        made = np.empty(runs)
        for run in range(runs):
            ledger = Ledger(Budget(math.inf, COUNTED_DELTA))
            made[run] = play(
                family,
                table,
                pool_size=1,
                rows=100,
                rounds=1,
                epsilon=epsilon,
                rate=0.1,
                both_ways=False,
                streams=streams,
                ledger=ledger,
            ).picks[0]
        picks.append((made == 0).astype(float))
    return Worlds(picks[0], picks[1], events)


@dataclass(frozen=True)
class _TwoDistinguishers:
    """The first is 1 for rows of code 1; the second 0 for all. The pool is made so that the first lags behind."""

    lag: float
    count: int = 2

    def of_pool(self, number: int) -> NDArray:
        return np.zeros(1)

    def expectations(self, weights: NDArray) -> NDArray:
        return np.array([self.lag, 0.0])

    def sums(self, table: Table) -> NDArray:
        from understudy.boosting.exact import UNIT

        return np.array([int(table.codes("a").sum()) * UNIT, 0], dtype=np.int64)


@lru_cache(maxsize=64)
def _calibrated(epsilon: float, event_of: Callable[[float, int, float], Event], sampled: float) -> float:
    """The noise at which so many rounds cost epsilon: seconds of work, and the same for every game."""
    return calibrate(lambda noise: [event_of(sampled, ROUNDS, noise)], Budget(epsilon, COUNTED_DELTA))


def _log_ratio(sums: NDArray, rate: float, multiplier: float) -> NDArray:
    """log of (1 - rate) N(0, z^2) + rate N(1, z^2) over N(0, z^2), added up over the rounds of a run."""
    ratio = np.log1p(rate * np.expm1((2 * sums - 1) / (2 * multiplier**2)))
    return ratio.reshape(-1, ROUNDS).sum(axis=1)


MECHANISMS: dict[str, tuple[str, Player]] = {
    "gaussian": ("a count with Gaussian noise", gaussian_worlds),
    "select": ("a choice by the exponential mechanism", select_worlds),
    "select-both-ways": ("such a choice, with scores that move both ways", select_both_ways_worlds),
    "permute-and-flip": ("a choice by permute-and-flip", permute_and_flip_worlds),
    "training-step": ("a training step on all rows", step_worlds),
    "sampled-step": ("two training steps on samples of the rows", sampled_step_worlds),
    "question": ("two questions to one of several critics", question_worlds),
    "boosting-pick": ("a pick of boosting", boosting_worlds),
}


def play_mechanism(
    name: str,
    epsilon: float,
    *,
    runs: int = USUAL_RUNS,
    confidence: float = 0.95,
    streams: Streams | None = None,
) -> StepGame:
    """Plays one mechanism so many times in either world, calibrated to spend about `epsilon`, and judges it."""
    if name not in MECHANISMS:
        raise OptionError(f"mechanism {name!r} is not known; choose from {', '.join(MECHANISMS)}")
    words, player = MECHANISMS[name]
    worlds = player(epsilon, runs, Streams.from_entropy() if streams is None else streams)
    delta = GAUSSIAN_DELTA if worlds.gaussian else COUNTED_DELTA
    rule = gaussian_lower_bound if worlds.gaussian else epsilon_lower_bound
    claim = epsilon_of([worlds.event], delta).value
    return StepGame(name, words, claim, delta, rule(worlds.with_row, worlds.without, delta, confidence))


def mechanisms_of(events: Iterable[Event], *, boosted: bool = False) -> list[str]:
    """The mechanisms behind what was charged, in the order of `MECHANISMS`; boosted: its picks are among the events."""
    found: set[str] = {"boosting-pick"} if boosted else set()
    for event in events:
        _add(event, found, many=False)
    return [name for name in MECHANISMS if name in found]


def _add(event: Event, found: set[str], *, many: bool) -> None:
    if isinstance(event, SelfComposed):
        _add(event.event, found, many=True)
    elif isinstance(event, Parallel):
        for part in event.events:
            _add(part, found, many=many)
    elif isinstance(event, PoissonSampled):
        found.add("sampled-step")
    elif isinstance(event, OneOfMany):
        found.add("question")
    elif isinstance(event, BoundedRange):
        found.update(("select", "select-both-ways"))
    elif isinstance(event, PureDp):
        found.add("permute-and-flip")
    elif isinstance(event, Gaussian):
        # Many equal ones are steps of a training on all rows.
        found.add("training-step" if many else "gaussian")
