"""Weights that explain a game's picks best: a function of picks and released values alone, so it costs nothing.

In round t a distinguisher D_j is picked with probability proportional to exp(epsilon rows (m_j - E_t D_j)), m_j being
its mean over the real rows and E_t D_j its mean under the weights of that round, which are public. Weights w of the
pool that are taken for the real rows, m_j = E_w D_j, therefore give all picks a likelihood. Wanted are those with the
largest

    log likelihood - pull * KL(w || equal weights),

which have the form exp(sum over j of theta_j D_j). Multiplicative weights end near those with pull = epsilon rows /
rate, but take every pick at its word; here one that the others speak against moves little. And picks are many, so that
they can tell how far they are to be trusted at all: where a pool is close to the rows already they are mostly noise,
and weights that follow them lead away. A larger pull is taken where it foretells half of the picks from the other half
clearly better (`choose_caution`).
"""

from dataclasses import dataclass, replace

import numpy as np

from understudy.boosting.game import Family, normalised

CAUTIONS = (30.0, 10.0, 3.0, 1.0)  # times the pull of multiplicative weights; from the most careful on
SURE = 2.0  # standard errors by which more caution must foretell picks better
_ITERATIONS, _ENOUGH = 300, 1e-3  # steps of the ascent, and a gain of log likelihood that ends it
_ENTRIES = 1 << 20  # of rounds by distinguishers at a time


@dataclass(frozen=True, eq=False)
class Account:
    """What is public about the picks of a game.

    expected: E_t D_j, (rounds, distinguishers). strength: epsilon of a pick times the released number of rows.
    """

    family: Family
    picks: np.ndarray
    expected: np.ndarray
    strength: float
    both_ways: bool

    def of(self, rounds: np.ndarray) -> "Account":
        return replace(self, picks=self.picks[rounds], expected=self.expected[rounds])


@dataclass(frozen=True, eq=False)
class Explained:
    """theta, the weights that it gives to the pool, and the means of all distinguishers under these."""

    theta: np.ndarray
    weights: np.ndarray
    means: np.ndarray


def likely_weights(account: Account, pull: float) -> tuple[np.ndarray, float]:
    """The weights of the pool that explain the picks best, and the caution that the picks asked for.

    pull: that of multiplicative weights, epsilon rows / rate.
    """
    caution = choose_caution(account, pull)
    return explain(account, caution * pull).weights, caution


def choose_caution(account: Account, pull: float) -> float:
    """Which of `CAUTIONS` foretells picks best: each half of the rounds, every other one, from the rest.

    1 unless another gains more than `SURE` standard errors of the rounds' differences: few picks cannot tell, and then
    they are followed as far as multiplicative weights do.
    """
    rounds = np.arange(len(account.picks))
    foretold = np.zeros((len(CAUTIONS), len(rounds)))
    for half in (0, 1):
        learnt, rest = account.of(rounds % 2 == half), account.of(rounds % 2 != half)
        found = None
        for place, caution in enumerate(CAUTIONS):
            found = explain(learnt, caution * pull, start=found)
            foretold[place, rounds % 2 != half] = log_chances(rest, found.means)[0]
    return clearly_better(foretold)


def clearly_better(foretold: np.ndarray) -> float:
    """The caution with the largest sum of log chances, if it or another one passes the last by `SURE` standard errors.

    >>> clearly_better(np.array([[0.0] * 4, [2.0, 1.0, 2.0, 1.0], [1.0] * 4, [0.0] * 4]))
    10.0
    >>> clearly_better(np.array([[0.0] * 4, [9.0, -8.0, 9.0, -8.0], [0.0] * 4, [0.0] * 4]))
    1.0
    """
    gains = foretold - foretold[-1]
    errors = gains.std(axis=1) * np.sqrt(gains.shape[1])
    if not (gains.sum(axis=1) > SURE * errors)[:-1].any():
        return CAUTIONS[-1]
    return CAUTIONS[int(np.argmax(gains.sum(axis=1)))]


def explain(account: Account, pull: float, start: Explained | None = None) -> Explained:
    """Climbs by natural gradients, which for weights on exp(sum theta_j D_j) are those with respect to the means."""
    found = start or _at(account, np.zeros(account.family.count))
    value, slope = _value(account, found, pull)
    step = 1 / (pull + account.strength**2 * len(account.picks) / account.family.count)
    for _ in range(_ITERATIONS):
        direction = slope - pull * found.theta
        tried = _at(account, found.theta + step * direction)
        reached, slope_there = _value(account, tried, pull)
        gain = reached - value
        if gain > 0:
            found, value, slope, step = tried, reached, slope_there, 1.5 * step
        else:
            step /= 2
        if abs(gain) < _ENOUGH:
            break
    return found


def log_chances(account: Account, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of every pick's probability if `means` are the real ones, and the slope of their sum in these."""
    family, rounds = account.family, len(account.picks)
    place, against = account.picks % family.count, account.picks >= family.count
    chances, slope = np.empty(rounds), np.zeros(family.count)
    block = max(1, _ENTRIES // family.count)
    for first in range(0, rounds, block):
        some = slice(first, first + block)
        scores = np.asarray(account.strength * (means - account.expected[some]), dtype=np.float32)
        most = (np.abs(scores) if account.both_ways else scores).max(axis=1, keepdims=True)
        towards = np.exp(scores - most)
        away = np.exp(-scores - most) if account.both_ways else np.zeros_like(towards)
        total = (towards + away).sum(axis=1, dtype=np.float64)[:, None]
        own = scores[np.arange(len(scores)), place[some]]
        chances[some] = np.where(against[some], -own, own) - most[:, 0] - np.log(total[:, 0])
        slope -= ((towards - away) / total).sum(axis=0)
    slope += np.bincount(place, weights=np.where(against, -1.0, 1.0), minlength=family.count)
    return chances, account.strength * slope


def _at(account: Account, theta: np.ndarray) -> Explained:
    weights = normalised(account.family.sum_of(theta)).astype(np.float64)
    return Explained(theta, weights, account.family.expectations(weights))


def _value(account: Account, at: Explained, pull: float) -> tuple[float, np.ndarray]:
    chances, slope = log_chances(account, at.means)
    divergence = float(_entropies(at.weights).sum()) + np.log(len(at.weights))
    return float(chances.sum()) - pull * divergence, slope


def _entropies(weights: np.ndarray) -> np.ndarray:
    return weights * np.log(np.maximum(weights, np.finfo(np.float64).tiny))


def shrunk(average: np.ndarray, caution: float) -> np.ndarray:
    """The mean distinguisher, as little to be trusted as the weights: drawn to its mean over the pool.

    >>> shrunk(np.array([0.2, 0.8]), 3.0).round(2).tolist()
    [0.4, 0.6]
    """
    return average.mean() + (average - average.mean()) / caution
