"""The ruler itself: never above the truth more often than it says, near it where it can be."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from understudy.auditing import bounds
from understudy.errors import OptionError
from understudy.privacy import Budget, gaussian_epsilon, noise_multiplier

DELTA = 1e-6
RULES = {bounds.COUNTED: bounds.epsilon_lower_bound, bounds.GAUSSIAN: bounds.gaussian_lower_bound}


def gaussian_scores(epsilon: float, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scale = noise_multiplier(Budget(epsilon, DELTA))
    return rng.normal(1, scale, runs), rng.normal(0, scale, runs)


def coin_scores(epsilon: float, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Randomised response, the worst of all pure mechanisms; what comes after the coin tells nothing more."""
    truth = 1 / (1 + math.exp(-epsilon))
    worlds = rng.random(runs) < truth, rng.random(runs) >= truth
    return tuple(bit + 0.1 * rng.random(runs) for bit in worlds)


def too_often(wrong: int, tries: int, level: float) -> bool:
    return binomtest(wrong, tries, level, alternative="greater").pvalue < 1e-4


@pytest.mark.parametrize("runs", [40, 400])
def test_the_stated_confidence_is_kept_on_coins(runs):
    rng = np.random.default_rng(3)
    found = [bounds.epsilon_lower_bound(*coin_scores(1.0, runs, rng), 0.0, 0.8).epsilon for _ in range(400)]
    assert not too_often(sum(e > 1.0 for e in found), 400, 0.2)


def test_a_threshold_chosen_on_the_counted_runs_would_break_the_confidence(monkeypatch):
    """The check above can fail: without the hold-out, on scores without information."""
    rng = np.random.default_rng(4)
    scores = [(rng.random(40), rng.random(40)) for _ in range(400)]
    honest = sum(bounds.epsilon_lower_bound(*pair, 0.0, 0.8).epsilon > 0 for pair in scores)
    assert not too_often(honest, 400, 0.2)
    monkeypatch.setattr(bounds, "_split", lambda a, b: ((np.array(a), np.array(b)),) * 2)
    assert too_often(sum(bounds.epsilon_lower_bound(*pair, 0.0, 0.8).epsilon > 0 for pair in scores), 400, 0.2)


def test_the_confidence_of_gaussian_bounds_is_kept():
    truth = 1.0
    found = [bounds.gaussian_lower_bound(*gaussian_scores(truth, 60, seed), DELTA, 0.8).epsilon for seed in range(400)]
    wrong = sum(e > truth for e in found)
    assert not too_often(wrong, 400, 0.2)
    assert wrong > 0  # not so careful that it could never be wrong


@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 20_000), (4.0, 4_000)])
def test_gaussian_bounds_come_near_a_known_gaussian(epsilon, runs):
    found = bounds.gaussian_lower_bound(*gaussian_scores(epsilon, runs, 1), DELTA)
    assert 0.8 * epsilon < found.epsilon < epsilon
    assert found.epsilon == gaussian_epsilon(1 / found.mu, DELTA)
    assert found.epsilon < found.ceiling
    half = bounds.gaussian_lower_bound(*gaussian_scores(epsilon * 1.5, runs, 1), DELTA)
    assert half.epsilon > epsilon  # noise that is too small is seen


def test_counts_come_near_coins():
    found = bounds.epsilon_lower_bound(*coin_scores(2.0, 10_000, np.random.default_rng(0)), 0.0)
    assert 1.8 < found.epsilon < 2.0


@pytest.mark.parametrize("rule", list(RULES))
def test_scores_of_any_sign_and_either_direction_do(rule):
    """An event that is likely without the row tells as much as one that is likely with it."""
    near, far = gaussian_scores(30.0, 2_000, 2)
    plain, negative = (RULES[rule](a, b, DELTA) for a, b in ((near, far), (-near, -far)))
    assert 0 < 0.8 * plain.epsilon < negative.epsilon
    # Only the world without ever has a high score: removal betrays the row, not adding it.
    rng = np.random.default_rng(0)
    without = np.where(rng.random(1000) < 0.3, 5.0, 0.0)
    assert bounds.epsilon_lower_bound(np.zeros(1000), without, DELTA).epsilon > 3


@pytest.mark.parametrize("rule", list(RULES))
def test_the_ceiling_is_what_perfect_guesses_show(rule):
    for runs in (8, 40, 400):
        found = RULES[rule]([1.0] * runs, [0.0] * runs, DELTA)
        assert found.epsilon == found.ceiling == bounds.largest_bound(*found.runs, DELTA, rule=rule)
        assert found.runs == ((runs - math.ceil(runs / 4) if rule == bounds.COUNTED else runs),) * 2
    assert found.ceiling > 3


def test_infinite_scores_and_ties_are_fine():
    found = bounds.epsilon_lower_bound([0.0] * 200, [-math.inf] * 200, DELTA)
    assert found.epsilon == found.ceiling
    assert bounds.epsilon_lower_bound([1.0] * 50, [1.0] * 50, DELTA).epsilon == 0
    assert bounds.gaussian_lower_bound([1.0] * 50, [1.0] * 50, DELTA).epsilon == 0


@pytest.mark.parametrize(
    ("scores", "delta", "confidence", "what"),
    [
        ([1.0], DELTA, 0.95, "at least 2 runs"),
        ([1.0, math.nan], DELTA, 0.95, "NaN"),
        ([1.0, 2.0], 1.0, 0.95, "delta"),
        ([1.0, 2.0], DELTA, 1.0, "confidence"),
    ],
)
def test_what_cannot_be_bounded_is_refused(scores, delta, confidence, what):
    for rule in RULES.values():
        with pytest.raises(OptionError, match=what):
            rule(scores, scores, delta, confidence)


def one_run(epsilon: float, canaries: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Every canary answers for itself by randomised response."""
    included = rng.random(canaries) < 0.5
    right = rng.random(canaries) < 1 / (1 + math.exp(-epsilon))
    return np.where(included == right, 1.0, 0.0) + 0.1 * rng.random(canaries), included


def test_one_run_keeps_its_confidence_and_comes_near():
    rng = np.random.default_rng(0)
    found = [bounds.one_run_lower_bound(*one_run(1.0, 100, rng), 1e-9, 0.8).epsilon for _ in range(80)]
    assert not too_often(sum(e > 1.0 for e in found), 80, 0.2)
    many = bounds.one_run_lower_bound(*one_run(2.0, 5_000, rng), 1e-9)
    assert 1.6 < many.epsilon < 2.0
    assert many.runs[1] == 5_000
    assert many.epsilon < many.ceiling
    perfect = rng.random(300) < 0.5
    best = bounds.one_run_lower_bound(perfect.astype(float), perfect, DELTA)
    assert 3 < best.epsilon <= best.ceiling


def test_one_run_needs_a_coin_a_score():
    with pytest.raises(OptionError, match="one coin a score"):
        bounds.one_run_lower_bound([1.0, 2.0], [True], DELTA)


def test_another_library_says_the_same():
    auditing = pytest.importorskip("jax_privacy.auditing")
    for canaries, guesses, right, epsilon in ((200, 100, 90, 1.0), (50, 50, 40, 0.5), (1000, 100, 99, 3.0)):
        for delta in (0.0, 1e-5, 1e-3):
            mine = bounds.one_run_p_value(canaries, guesses, right, epsilon, delta)
            assert mine == pytest.approx(auditing._one_run_p_value(canaries, guesses, right, epsilon, delta), rel=1e-6)
    near, far = gaussian_scores(6.0, 1_000, 5)
    found = bounds.epsilon_lower_bound(near, far, DELTA)
    keep = np.arange(1000) % bounds.CHOOSING != 0
    # Their members lie at or above a threshold, ours above it.
    at = auditing.Explicit(np.nextafter(found.threshold, math.inf))
    theirs = auditing.CanaryScoreAuditor(near[keep], far[keep]).epsilon_clopper_pearson(
        0.05, DELTA, one_sided=False, threshold_strategy=at
    )
    assert found.epsilon == pytest.approx(theirs, rel=1e-9)
    # Theirs pays for all thresholds, so it is smaller; both are below the truth.
    gdp = auditing.CanaryScoreAuditor(near, far).epsilon_from_gdp(0.05, DELTA)
    assert 0.7 * gdp < bounds.gaussian_lower_bound(near, far, DELTA).epsilon < 6.0
