"""Weights by the likelihood of picks: right slopes, right maximum, caution where picks are noise, nothing but picks."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from understudy.boosting import distinguishers, game
from understudy.boosting.likelihood import CAUTIONS, Account, choose_caution, explain, likely_weights, log_chances
from understudy.boosting.method import Picks, boost, weigh
from understudy.boosting.pool import Pool
from understudy.boosting.settings import Boosting
from understudy.privacy import Budget, Ledger, Streams
from understudy.table.table import Table

CELLS = 12


def simulated(
    real: np.ndarray, *, rounds: int, strength: float, seed: int = 0, both_ways: bool = True
) -> tuple[Account, np.ndarray, float]:
    """A game about indicators of 12 codes, of which the pool has equal shares and the rows those of `real`."""
    values = np.kron(np.eye(CELLS), np.ones(50)).astype(np.float32)
    family = distinguishers.Dense(values, lambda codes: np.zeros((CELLS, 0)))
    rng, rate = np.random.default_rng(seed), game.usual_rate(values.shape[1], rounds)
    log_weights, total = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    picks, expected = np.empty(rounds, dtype=np.int32), np.empty((rounds, CELLS), dtype=np.float32)
    for number in range(rounds):
        weights = game.normalised(log_weights)
        total += weights
        expected[number] = family.expectations(weights)
        scores = strength * (real - expected[number])
        scores = np.concatenate([scores, -scores]) if both_ways else scores
        picks[number] = np.argmax(scores + rng.gumbel(size=len(scores)))
        value = values[picks[number] % CELLS]
        log_weights += rate * (1 - value if picks[number] >= CELLS else value)
    return Account(family, picks, expected, strength, both_ways), total / rounds, strength / rate


def off(account: Account, weights: np.ndarray, real: np.ndarray) -> float:
    return float(np.abs(account.family.expectations(weights) - real).sum() / 2)


@pytest.mark.parametrize("both_ways", [True, False])
def test_chances_of_all_picks_sum_to_one_and_slopes_are_right(both_ways: bool):
    real = np.random.default_rng(0).dirichlet(np.ones(CELLS))
    account, _, _ = simulated(real, rounds=30, strength=25.0, both_ways=both_ways)
    every = [
        log_chances(Account(account.family, np.full(30, pick), account.expected, 25.0, both_ways), real)[0]
        for pick in range(CELLS * (1 + both_ways))
    ]
    assert np.exp(every).sum(axis=0) == pytest.approx(1.0, abs=1e-5)
    _, slope = log_chances(account, real)
    for cell in range(CELLS):
        moved = [log_chances(account, real + sign * 1e-2 * np.eye(CELLS)[cell])[0].sum() for sign in (1, -1)]
        assert (moved[0] - moved[1]) / 2e-2 == pytest.approx(slope[cell], rel=0.02, abs=0.5)


def test_the_maximum_is_found():
    """No step from it, in any direction, does better."""
    real = np.random.default_rng(1).dirichlet(np.ones(CELLS))
    account, _, pull = simulated(real, rounds=200, strength=60.0)
    found = explain(account, pull)

    def value(theta: np.ndarray) -> float:
        weights = game.normalised(account.family.sum_of(theta)).astype(np.float64)
        divergence = (weights * np.log(weights * len(weights))).sum()
        return log_chances(account, account.family.expectations(weights))[0].sum() - pull * divergence

    best = value(found.theta)
    assert best > value(np.zeros(CELLS)) + 10
    for step in np.random.default_rng(2).normal(size=(50, CELLS)) * 0.1:
        assert value(found.theta + step) < best + 0.01


def test_picks_that_are_noise_are_not_followed():
    equal = np.full(CELLS, 1 / CELLS)
    cautions, likely, averaged = [], [], []
    for seed in range(6):
        account, average, pull = simulated(equal, rounds=1000, strength=20.0, seed=seed)
        weights, caution = likely_weights(account, pull)
        cautions.append(caution)
        likely.append(off(account, weights, equal))
        averaged.append(off(account, average, equal))
    assert sum(caution > 1 for caution in cautions) >= 5
    assert np.mean(likely) < 0.75 * np.mean(averaged)


def test_picks_that_know_something_are_followed():
    real = np.linspace(1, 9, CELLS) / np.linspace(1, 9, CELLS).sum()
    for seed in range(3):
        account, average, pull = simulated(real, rounds=1000, strength=150.0, seed=seed)
        weights, _ = likely_weights(account, pull)
        equal = np.full_like(weights, 1 / len(weights))
        assert off(account, weights, real) < 0.3 * off(account, equal, real)
        assert off(account, weights, real) < 1.2 * off(account, average, real)


def test_few_picks_cannot_ask_for_caution():
    equal = np.full(CELLS, 1 / CELLS)
    chosen = [choose_caution(*simulated(equal, rounds=8, strength=5.0, seed=seed)[::2]) for seed in range(8)]
    assert set(chosen) <= set(CAUTIONS)
    assert np.median(chosen) == 1.0


def test_sums_of_distinguishers_agree_with_their_values(tiny_pool: Pool):
    for kinds in ("critics", "marginals", ["critics", "marginals"]):
        family = distinguishers.distinguishers(tiny_pool, kinds)
        factors = np.random.default_rng(0).normal(size=family.count)
        one_by_one = sum(factors[number] * family.of_pool(number) for number in range(family.count))
        assert family.sum_of(factors) == pytest.approx(one_by_one, abs=1e-4)


def test_rows_reach_the_weights_by_picks_alone(
    tiny_pool: Pool, neighbours: list[tuple[Table, list[Table]]], monkeypatch: pytest.MonkeyPatch
):
    """Two neighbouring tables that gave the same picks have the same weights, to the last bit."""
    family = distinguishers.distinguishers(tiny_pool, ["critics", "marginals"])
    monkeypatch.setattr(game, "select", _given_picks())
    table, more = neighbours[2]
    first = _weighed(family, table, tiny_pool)
    for other in more[::12]:
        again = _weighed(family, other, tiny_pool)
        assert first[0].tobytes() == again[0].tobytes()
        assert first[1].tobytes() == again[1].tobytes()
        assert first[2] == again[2]


def _given_picks() -> Callable[..., int]:
    state = {"round": 0}

    def select(scores: np.ndarray, **_) -> int:
        state["round"] = (state["round"] + 1) % 40
        return (7 * state["round"] ** 2) % len(scores)

    return select


def _weighed(family: game.Family, table: Table, pool: Pool) -> tuple[np.ndarray, np.ndarray, float | None]:
    streams, ledger = Streams.from_seed(0), Ledger(Budget(100.0, 1e-6))
    options = {"rounds": 40, "epsilon": 0.3, "streams": streams, "ledger": ledger}
    played = game.play(family, table, pool_size=pool.size, rows=pool.rows, **options)
    return weigh(played, family, pool, Picks(40, 0.3), Boosting())


def test_averages_where_asked_for_and_where_there_is_no_likelihood(plain, rows, monkeypatch: pytest.MonkeyPatch):
    quick = {"rounds": 40, "pool_rows": 400, "seed": 1}
    average = boost([plain], rows, epsilon=0.5, weights="average", **quick)
    likely = boost([plain], rows, epsilon=0.5, **quick)
    assert (average.released.picks == likely.released.picks).all()
    assert (average.released.weights != likely.released.weights).any()
    assert average.released.settings["caution"] is None
    assert likely.released.settings["caution"] in CAUTIONS
    assert boost([plain], rows, epsilon=math.inf, **quick).released.settings["caution"] is None
    monkeypatch.setattr(game, "MOST_KEPT", 10)
    too_many = boost([plain], rows, epsilon=0.5, **quick)
    assert (too_many.released.weights == average.released.weights).all()
