"""Private Post-GAN Boosting (Neunhoeffer, Wu & Dwork): distinguishers against weights on a pool of synthetic rows.

Each round the exponential mechanism picks the distinguisher D that tells real rows from the weighted pool best, and
multiplicative weights move the pool towards what D takes for real. The index of D is all that the rows give away.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from understudy.boosting.exact import UNIT
from understudy.errors import OptionError
from understudy.privacy import BoundedRange, Ledger, NonPrivate, Streams, select
from understudy.progress import Progress, silent
from understudy.table.table import Table

LARGEST_RATE = 1.0
FEWEST_ROUNDS, MOST_ROUNDS = 20, 1000  # by rule
USUAL_COUNT = 1000  # of distinguishers, as far as the rule for rounds is concerned: it asks for the logarithm alone
MOST_KEPT = 1 << 25  # means of distinguishers, one a round and distinguisher: 128 MB
CONFIDENCE = 0.05  # the chance at which `alpha` may fail


class Family(Protocol):
    """Distinguishers of one kind: values in [0, 1], on a grid of 1/UNIT where real rows are concerned."""

    @property
    def count(self) -> int: ...

    def of_pool(self, number: int) -> np.ndarray:
        """One distinguisher's values on the pool."""

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        """Every distinguisher's mean over the pool with these weights, which sum to 1."""

    def sum_of(self, factors: np.ndarray) -> np.ndarray:
        """The sum of all distinguishers on the pool, each times its factor."""

    def sums(self, table: Table) -> np.ndarray:
        """Every distinguisher's sum over the rows in steps of 1/UNIT, int64: private. A row adds 0 to UNIT to each."""


@dataclass(frozen=True, eq=False)
class Played:
    """What a game leaves: picks (all that the rows gave away), and what follows from them and the pool alone.

    weights: of the pool's rows, the average over the rounds. average: of the picked distinguishers, on the pool.
    alpha: with probability 0.95, (weights, average) is an alpha-approximate equilibrium (`equilibrium_bound`).
    expected: the mean of every distinguisher under the weights of each round, (rounds, distinguishers); None where
    these are too many to keep. rate: of the weights.
    """

    picks: np.ndarray
    weights: np.ndarray
    average: np.ndarray
    alpha: float
    expected: np.ndarray | None
    rate: float


def play(
    family: Family,
    table: Table,
    *,
    pool_size: int,
    rows: int,
    rounds: int,
    epsilon: float,
    rate: float | None = None,
    both_ways: bool = True,
    streams: Streams,
    ledger: Ledger,
    progress: Progress = silent,
) -> Played:
    """Plays `rounds` rounds; `rows` is the released number of rows, `epsilon` that of one pick, `rate` of the weights.

    Guarantee: `rounds` times `BoundedRange(epsilon)`, charged before a row is looked at. Scores are S_j = sum over rows
    of D_j - rows * E_phi D_j with D_j in [0, 1]; the second term is public given earlier picks. One more row adds
    D_j(row) to S_j, between 0 and 1 for all j, so that the scores are monotone with sensitivity 1. All of it is in
    whole steps of 1/UNIT, so this holds exactly, not up to rounding. `both_ways` adds 1 - D_j for every D_j, which is a
    distinguisher like any other. An infinite epsilon gives the best response in every round, without any guarantee.
    """
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise OptionError(f"rounds must be a whole number of at least 1, got {rounds!r}")
    rate = usual_rate(pool_size, rounds) if rate is None else rate
    if not (math.isfinite(rate) and rate > 0):
        raise OptionError(f"rate must be positive and finite, got {rate!r}")
    purpose = f"{rounds} picks of a distinguisher"
    paid = ledger.prepay(BoundedRange(epsilon) if math.isfinite(epsilon) else NonPrivate(), rounds, purpose)
    sums = family.sums(table)
    if both_ways:
        sums = np.concatenate([sums, table.rows * UNIT - sums])
    log_weights, total, average = np.zeros(pool_size), np.zeros(pool_size), np.zeros(pool_size)
    picks = np.empty(rounds, dtype=np.int32)
    kept = np.empty((rounds, family.count), dtype=np.float32) if rounds * family.count <= MOST_KEPT else None
    for number in range(rounds):
        weights = normalised(log_weights)
        total += weights
        expected = family.expectations(weights)
        if kept is not None:
            kept[number] = expected
        if both_ways:
            expected = np.concatenate([expected, 1 - expected])
        pick = select(
            steps_above(sums, expected, rows),
            sensitivity=1.0,
            epsilon=epsilon,
            monotone=True,
            streams=streams,
            ledger=paid,
            purpose=purpose,
        )
        values = family.of_pool(pick % family.count)
        values = 1 - values if pick >= family.count else values
        log_weights += rate * values
        average += values
        picks[number] = pick
        if number % max(1, rounds // 20) == 0:
            progress("boosting", number / rounds)
    return Played(
        picks=picks,
        weights=total / rounds,
        average=average / rounds,
        alpha=equilibrium_bound(len(sums), pool_size, rounds, rows, epsilon, rate),
        expected=kept,
        rate=rate,
    )


def steps_above(sums: np.ndarray, expected: np.ndarray, rows: int) -> np.ndarray:
    """S_j: by how much real rows pass the weighted pool. What is subtracted is public, and rounded to the same grid, so
    that the difference of whole numbers is exact; below 2^53 steps it stays so as a float.
    """
    public = np.rint(rows * UNIT * expected).astype(np.int64)
    return (sums - public) / UNIT


def normalised(log_weights: np.ndarray) -> np.ndarray:
    """Weights that sum to 1, from their logarithms up to a constant.

    >>> normalised(np.array([-1e6, 0.0, 0.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    # Single precision is seven digits of a public number, and several times faster.
    weights = np.exp((log_weights - log_weights.max()).astype(np.float32))
    weights /= weights.sum(dtype=np.float64)
    return weights


def usual_rate(pool_size: int, rounds: int) -> float:
    """The rate of multiplicative weights with the smallest bound on their regret, sqrt(8 log|B| / T), or less.

    >>> round(usual_rate(20_000, 400), 3), usual_rate(20_000, 40)
    (0.445, 1.0)
    """
    return min(LARGEST_RATE, math.sqrt(8 * math.log(max(pool_size, 2)) / rounds))


def usual_rounds(rows: int, pool_size: int, strength: float) -> int:
    """The number of rounds with the smallest expected bound for picks that share a budget: public facts alone.

    strength: the epsilon of a pick times the square root of the rounds, which one budget leaves nearly the same however
    many there are (a pick costs epsilon^2/8 of zCDP). As in `equilibrium_bound`, at the best rate and with the expected
    loss of a pick, log(J) / (epsilon rows), the gap is at most sqrt(log|B| / (2 T)) + log(J) sqrt(T) / (strength rows):
    least where T = strength rows sqrt(log|B| / 2) / log(J). With few rows many picks would all be noise.

    >>> usual_rounds(900, 20_000, 0.3), usual_rounds(10_000, 20_000, 0.16), usual_rounds(60_000, 20_000, 1.2)
    (87, 515, 1000)
    """
    if math.isinf(strength):
        return MOST_ROUNDS
    best = strength * rows * math.sqrt(math.log(max(pool_size, 2)) / 2) / math.log(USUAL_COUNT)
    return round(min(max(best, FEWEST_ROUNDS), MOST_ROUNDS))


def equilibrium_bound(
    distinguishers: int, pool_size: int, rounds: int, rows: int, epsilon: float, rate: float
) -> float:
    """alpha: how far the averages are at most from an equilibrium of U(phi, D) = mean D + 1 - E_phi D (theorem 3).

    The averages' gap is at most the regret of multiplicative weights, log|B| / (rate T) + rate / 8, and the largest
    loss of T picks by the exponential mechanism, log(J T / beta) / (epsilon rows) with probability 1 - beta. Public
    sizes and the released number of rows alone go in: it is a promise, not a measurement, and is not charged.
    """
    regret = math.log(max(pool_size, 2)) / (rate * rounds) + rate / 8
    missed = 0.0 if math.isinf(epsilon) else math.log(distinguishers * rounds / CONFIDENCE) / (epsilon * rows)
    return regret + missed
