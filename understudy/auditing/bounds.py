"""Lower bounds on epsilon, from how well scores tell two worlds apart: the table with a row, and without it.

A mechanism that is (epsilon, delta)-DP has P(E) <= exp(epsilon) Q(E) + delta for every event E of its output, in both
directions. Whoever sees P(E) large and Q(E) small has shown that epsilon is at least log((P(E) - delta) / Q(E)). Rates
are known from finitely many runs alone, so each is replaced by its Clopper-Pearson bound on the unfavourable side.

The event is chosen on a part of the runs (`CHOOSING`) and measured on the rest: with one event fixed in advance, the
stated confidence is exact, whatever the scores are. Two bounds of one set of runs each have the stated confidence; to
say that all of k bounds hold, ask each for confidence 1 - (1 - c) / k (`shared_confidence`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import OptionError
from understudy.privacy.gaussian_dp import gaussian_epsilon

COUNTED, GAUSSIAN, ONE_RUN = "counted", "gaussian", "one-run"
# Every fourth run helps to choose the event, and is not counted.
CHOOSING = 4
ANY = "any mechanism"
GDP_ONLY = "a mechanism whose every event is Gaussian; otherwise an indication, not a bound"
# How many of the highest scores are called members and of the lowest outsiders, as shares of all canaries: the list is
# fixed, and each entry pays its part of the error.
_GUESSED = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
_MOST_THRESHOLDS = 400
_PAIRED = 0.8  # of 1 - confidence, in a Gaussian bound
_LARGEST_MU = 30.0


@dataclass(frozen=True)
class LowerBound:
    """Epsilon is at least this much, with this confidence, for mechanisms of the kind that `holds_for` names.

    runs: of each world, that were counted (guesses and canaries, for one run). ceiling: the largest epsilon that so
    many runs could have shown, had every guess been right. threshold: scores above it, or not above it where `above` is
    false, count as the guess "with the row". mu: of Gaussian DP, where the rule is `gaussian`.
    """

    epsilon: float
    rule: str
    confidence: float
    delta: float
    runs: tuple[int, int]
    ceiling: float
    threshold: float | None = None
    above: bool = True
    mu: float | None = None
    holds_for: str = ANY


def epsilon_lower_bound(
    scores_with: ArrayLike, scores_without: ArrayLike, delta: float, confidence: float = 0.95
) -> LowerBound:
    """For any mechanism: counts of one event, chosen on every fourth run and counted on the others.

    The event is a threshold on the scores, either side, in either direction of adding and removing. Both of its rates
    get half of 1 - confidence.

    >>> found = epsilon_lower_bound([1.0] * 400, [0.0] * 400, delta=1e-6)
    >>> round(found.epsilon, 2), found.runs, found.epsilon == found.ceiling
    (4.39, (300, 300), True)
    """
    level = _level(delta, confidence) / 2
    chosen, counted = _split(scores_with, scores_without)
    threshold, above, adding = _choose(
        chosen,
        lambda p, q, n, m: _log_ratio(least_rate(p, n, level), most_rate(q, m, level), delta),
        both_directions=True,
    )
    hits, alarms = _positives(counted, threshold, above)
    n, m = len(counted[0]), len(counted[1])
    if not adding:
        hits, alarms, n, m = alarms, hits, m, n
    found = _log_ratio(least_rate(hits, n, level), most_rate(alarms, m, level), delta)
    sizes = (len(counted[0]), len(counted[1]))
    ceiling = largest_bound(*sizes, delta, confidence)
    # Where removal is what betrays the row, the event is the guess "without": told as the other side of the threshold.
    return LowerBound(
        max(0.0, float(found)), COUNTED, confidence, delta, sizes, ceiling, threshold, above if adding else not above
    )


def event_lower_bound(
    hits: int, runs_with: int, alarms: int, runs_without: int, delta: float, confidence: float = 0.95
) -> LowerBound:
    """For any mechanism and an event that was fixed before anything was run: all runs count, none is spent on choosing.

    hits, alarms: in how many runs the event was seen, with the row and without it.

    >>> found = event_lower_bound(30, 40, 0, 40, delta=1e-6)
    >>> round(found.epsilon, 2), round(found.ceiling, 2)
    (1.9, 2.34)
    """
    level = _level(delta, confidence) / 2
    if not (0 <= hits <= runs_with and 0 <= alarms <= runs_without and runs_with and runs_without):
        raise OptionError("hits and alarms must lie between 0 and the runs, of which there must be some")
    found = _log_ratio(least_rate(hits, runs_with, level), most_rate(alarms, runs_without, level), delta)
    runs = (runs_with, runs_without)
    best = _log_ratio(least_rate(runs_with, runs_with, level), most_rate(0, runs_without, level), delta)
    return LowerBound(max(0.0, float(found)), COUNTED, confidence, delta, runs, max(0.0, float(best)))


def gaussian_lower_bound(
    scores_with: ArrayLike, scores_without: ArrayLike, delta: float, confidence: float = 0.95
) -> LowerBound:
    """For mechanisms that are Gaussian-DP: the least mu that the scores allow, and its epsilon at delta.

    Of a mu-GDP mechanism, error rates satisfy Phi^-1(1 - false alarms) - Phi^-1(misses) <= mu (Dong, Roth & Su 2022).
    Averaged over all thresholds that says: a score with the row passes one without it with a chance of at most
    Phi(mu / sqrt 2). Runs are paired, so that this chance has a Clopper-Pearson bound of its own, from all runs and
    with no threshold to choose. That takes four fifths of 1 - confidence; the last fifth goes to one threshold, chosen
    on every fourth run, which shows more where the worlds hardly overlap. The larger counts. High scores mean "with".

    It is a lower bound for a mechanism that *is* mu-GDP for some mu, such as any number of Gaussian releases. For
    others (sampled rows, choices) a mu that holds at some error rates need not hold at delta: there the number is an
    indication.
    """
    level = _level(delta, confidence)
    if delta == 0:
        raise OptionError("delta must be above 0 for a bound by Gaussian DP, got 0")
    chosen, counted = _split(scores_with, scores_without)
    mu = max(
        _paired_mu(scores_with, scores_without, _PAIRED * level),
        _threshold_mu(chosen, counted, (1 - _PAIRED) * level / 2),
    )
    runs = (len(np.asarray(scores_with)), len(np.asarray(scores_without)))
    ceiling = largest_bound(*runs, delta, confidence, rule=GAUSSIAN)
    return LowerBound(_epsilon_of(mu, delta), GAUSSIAN, confidence, delta, runs, ceiling, mu=mu, holds_for=GDP_ONLY)


def _paired_mu(scores_with: ArrayLike, scores_without: ArrayLike, level: float) -> float:
    pairs = min(len(np.asarray(scores_with)), len(np.asarray(scores_without)))
    first, second = np.asarray(scores_with)[:pairs], np.asarray(scores_without)[:pairs]
    # Ties are decided by coins that know nothing of the scores.
    coins = np.random.default_rng(pairs).random(pairs) < 0.5
    wins = int(np.where(first == second, coins, first > second).sum())
    return _mu_of_chance(float(least_rate(wins, pairs, level)))


def _threshold_mu(chosen, counted, level: float) -> float:
    def separation(hits: NDArray, alarms: NDArray, n: int, m: int) -> NDArray:
        return _mu(most_rate(alarms, m, level), most_rate(n - hits, n, level))

    threshold, above, _ = _choose(chosen, separation, both_directions=False)
    hits, alarms = _positives(counted, threshold, above)
    return max(0.0, float(separation(hits, alarms, len(counted[0]), len(counted[1]))))


def _mu_of_chance(chance: float) -> float:
    from scipy.special import ndtri

    return max(0.0, min(_LARGEST_MU, math.sqrt(2) * float(ndtri(chance))))


def one_run_lower_bound(
    scores: ArrayLike, included: Sequence[bool] | NDArray, delta: float, confidence: float = 0.95
) -> LowerBound:
    """For any mechanism, from one run on a table that each of many canaries joined by a fair coin of its own.

    scores: one a canary, from the output alone, high for members. included: the coins. The highest scores are guessed
    to be members, as many of the lowest to be outsiders. Of r guesses, the number of right ones is at most as large as
    a binomial of chance exp(epsilon) / (1 + exp(epsilon)), up to delta (Steinke, Nasr & Jagielski 2023, theorem 5.2).
    Five numbers of guesses are tried, and each pays a fifth of 1 - confidence.
    """
    level = _level(delta, confidence)
    scores, included = np.asarray(scores, dtype=float), np.asarray(included, dtype=bool)
    _check(scores, "scores")
    if scores.shape != included.shape or len(scores) < 2:
        raise OptionError(f"included must have one coin a score, at least two; got {included.shape}")
    order = np.argsort(scores, kind="stable")
    canaries = len(scores)
    sides = sorted({max(1, int(canaries * share)) for share in _GUESSED})
    best, best_guesses = 0.0, 2 * sides[0]
    for side in sides:
        right = int(included[order[-side:]].sum() + (~included[order[:side]]).sum())
        found = _one_run(canaries, 2 * side, right, delta, level / len(sides))
        if found > best:
            best, best_guesses = found, 2 * side
    ceiling = max(_one_run(canaries, 2 * side, 2 * side, delta, level / len(sides)) for side in sides)
    return LowerBound(best, ONE_RUN, confidence, delta, (best_guesses, canaries), ceiling)


def one_run_p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """The largest chance that an (epsilon, delta)-DP mechanism lets so many of the guesses be right.

    >>> one_run_p_value(10, 10, 10, 0.0, 0.0) == 0.5**10
    True
    """
    from scipy.stats import binom

    chance = 1 / (1 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return min(1.0, tail)
    # The chance of being 1 to i below, by the i that makes most of a failure that adds i right guesses.
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    return min(1.0, tail + 2 * canaries * delta * float((below / np.arange(1, right + 1)).max()))


def largest_bound(
    runs_with: int, runs_without: int, delta: float, confidence: float = 0.95, *, rule: str = COUNTED
) -> float:
    """What so many runs could show at best, every guess being right: below a claim, no audit can reach it.

    As in `LowerBound.runs`: for `counted` those that are counted, for `gaussian` all.

    >>> [round(largest_bound(n, n, 1e-6), 2) for n in (30, 300, 3000)]
    [2.03, 4.39, 6.7]
    """
    level = _level(delta, confidence)
    if rule == GAUSSIAN:
        pairs = min(runs_with, runs_without)
        sizes = [runs - -(-runs // CHOOSING) for runs in (runs_with, runs_without)]
        wrong = [float(most_rate(0, size, (1 - _PAIRED) * level / 2)) for size in sizes]
        by_pairs = _mu_of_chance(float(least_rate(pairs, pairs, _PAIRED * level)))
        return _epsilon_of(max(by_pairs, float(_mu(*wrong))), delta)
    wrong = (float(most_rate(0, runs_with, level / 2)), float(most_rate(0, runs_without, level / 2)))
    return max(0.0, *(float(_log_ratio(1 - miss, alarm, delta)) for miss, alarm in (wrong, wrong[::-1])))


def shared_confidence(confidence: float, bounds: int) -> float:
    """The confidence of each bound, so that all of them hold together with the one given (Bonferroni)."""
    return 1 - (1 - confidence) / max(1, bounds)


def _one_run(canaries: int, guesses: int, right: int, delta: float, level: float) -> float:
    """The largest epsilon that is refuted; the chance grows with epsilon, so bisection finds it."""
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        return one_run_p_value(canaries, guesses, right, epsilon, delta) - level

    if excess(0.0) >= 0:
        return 0.0
    return 50.0 if excess(50.0) < 0 else float(brentq(excess, 0.0, 50.0, xtol=1e-6)) - 1e-6


def _level(delta: float, confidence: float) -> float:
    if not 0 <= delta < 1:
        raise OptionError(f"delta must be at least 0 and below 1, got {delta}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, got {confidence}")
    return 1 - confidence


def _check(scores: NDArray, name: str) -> None:
    if scores.ndim != 1 or np.isnan(scores).any():
        raise OptionError(f"{name} must be a list of numbers without NaN")


def _split(scores_with: ArrayLike, scores_without: ArrayLike) -> tuple[tuple[NDArray, NDArray], ...]:
    """Every fourth run to choose by, the others to count."""
    worlds = [np.asarray(scores, dtype=float) for scores in (scores_with, scores_without)]
    for scores, name in zip(worlds, ("scores_with", "scores_without"), strict=True):
        _check(scores, name)
        if len(scores) < 2:
            raise OptionError(f"{name} must have at least 2 runs, one to choose an event and one to count it")
    keep = [np.arange(len(scores)) % CHOOSING != 0 for scores in worlds]
    return tuple(s[~k] for s, k in zip(worlds, keep, strict=True)), tuple(
        s[k] for s, k in zip(worlds, keep, strict=True)
    )


def _choose(chosen, value, *, both_directions: bool) -> tuple[float, bool, bool]:
    """The threshold, its side and the direction with the largest value on the runs that are kept for choosing.

    Where the few runs show nothing at all, the event with the largest difference of rates is taken.
    """
    pool = np.unique(np.concatenate(chosen))
    if len(pool) > _MOST_THRESHOLDS:
        pool = pool[np.linspace(0, len(pool) - 1, _MOST_THRESHOLDS).astype(int)]
    best, found = (-math.inf, -math.inf), (float(pool[0]), True, True)
    n, m = len(chosen[0]), len(chosen[1])
    for above in (True, False):
        hits, alarms = _positives(chosen, pool, above)
        for adding in (True, False) if both_directions else (True,):
            numbers = (hits, alarms, n, m) if adding else (alarms, hits, m, n)
            values = np.maximum(np.asarray(value(*numbers), dtype=float), 0.0)
            gaps = numbers[0] / numbers[2] - numbers[1] / numbers[3]
            at = int(np.lexsort((gaps, values))[-1])
            if (values[at], gaps[at]) > best:
                best, found = (float(values[at]), float(gaps[at])), (float(pool[at]), above, adding)
    return found


def _positives(worlds, threshold, above: bool) -> tuple[NDArray, NDArray]:
    """How many runs of each world lie on the side of the threshold that is guessed to be "with"."""
    thresholds = np.asarray(threshold)
    counts = []
    for scores in worlds:
        at_most = np.searchsorted(np.sort(scores), thresholds, side="right")
        counts.append(len(scores) - at_most if above else at_most)
    return counts[0], counts[1]


def least_rate(hits, runs: int, level: float):
    """Clopper and Pearson's lower bound on a rate, seen `hits` times in so many runs; wrong with chance `level`.

    >>> float(least_rate(0, 10, 0.05)), round(float(least_rate(10, 10, 0.05)), 3)
    (0.0, 0.741)
    """
    from scipy.stats import beta

    hits = np.asarray(hits)
    return np.where(hits > 0, beta.ppf(level, np.maximum(hits, 1), runs - np.maximum(hits, 1) + 1), 0.0)


def most_rate(hits, runs: int, level: float):
    """The upper bound, likewise."""
    return 1.0 - least_rate(runs - np.asarray(hits), runs, level)


def _log_ratio(rate, other, delta: float):
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.asarray(rate) - delta, 0.0)) - np.log(other)


def _mu(false_alarms, misses):
    from scipy.special import ndtri

    # An upper bound of 1 says nothing, and gives minus infinity.
    return np.minimum(-ndtri(np.asarray(false_alarms)) - ndtri(np.asarray(misses)), _LARGEST_MU)


def _epsilon_of(mu: float, delta: float) -> float:
    return gaussian_epsilon(1 / mu, delta) if mu > 1e-6 else 0.0
