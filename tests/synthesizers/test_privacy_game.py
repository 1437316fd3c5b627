"""A distinguishing game, played to the end: whoever sees a release guesses whether one row was in the table.

The best guesser wins as often as the claim allows and no more: a lower bound on epsilon from many games lies below the
claim, and above half of it, so that a claim which is too small by a factor of two cannot hide.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, norm

from understudy.privacy import Budget, Ledger, Streams, gaussian, gaussian_epsilon, noise_multiplier
from understudy.progress import silent
from understudy.schema import Schema
from understudy.synthesizers import independent
from understudy.synthesizers import one_way as one_way_module
from understudy.synthesizers.mixture import fit as fit_module
from understudy.synthesizers.mixture import method as mixture
from understudy.synthesizers.mixture import pairs as pairs_module
from understudy.synthesizers.mixture.plan import make_plan
from understudy.table.table import Table

BUDGET = Budget(4.0, 1e-6)
GAMES = 2_000
MISTAKE = 1e-4  # the chance that the bound is wrong

# Unordered columns of equal size with well-filled cells: nothing is smoothed or pooled, no cell falls below zero, so
# that post-processing keeps all of the evidence.
SCHEMA = Schema.loads("""
rows: 1000
columns:
  a: {kind: categorical, values: [p, q, r, s]}
  b: {kind: categorical, values: [p, q, r, s]}
  c: {kind: categorical, values: [p, q, r, s]}
""")


def table_with(target: bool) -> Table:
    rng = np.random.default_rng(0)
    # Counts that differ by more than noise explains: none of them is smoothed away.
    codes = {name: rng.permutation(np.repeat(np.arange(4), [50, 150, 250, 350])) for name in "abc"}
    if target:
        codes = {name: np.append(column, 0) for name, column in codes.items()}
    return Table.from_codes(SCHEMA, codes)


TABLES = table_with(False), table_with(True)


def epsilon_lower_bound(without: np.ndarray, with_row: np.ndarray, delta: float) -> float:
    """From how often a threshold tells the two apart: Clopper-Pearson on both errors, then Gaussian DP's epsilon."""
    # The threshold comes from the first tenth of the games, the errors from the rest.
    first = len(without) // 10
    threshold = (without[:first].mean() + with_row[:first].mean()) / 2
    wrongs = int((without[first:] > threshold).sum()), int((with_row[first:] <= threshold).sum())
    games = len(without) - first
    false_alarm, miss = (beta.ppf(1 - MISTAKE / 2, wrong + 1, games - wrong) for wrong in wrongs)
    separation = norm.ppf(1 - false_alarm) - norm.ppf(miss)
    return gaussian_epsilon(1 / separation, delta) if separation > 0 else 0.0


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same budget thousands of times: its noise is worked out once, and the fit, which sees no row, left out."""
    monkeypatch.setattr(independent, "noise_multiplier", lru_cache(noise_multiplier))
    # Most of the budget for the pairs, so that a bug in their release shows in few games.
    plan = make_plan(mixture.Config(one_way_share=0.2), SCHEMA, BUDGET)
    monkeypatch.setattr(mixture, "make_plan", lambda *_: plan)
    monkeypatch.setattr(Ledger, "spent", lambda _: 0.0)  # for the progress line

    def no_fit(targets: Any, **_: Any) -> Any:
        return fit_module.Fitted(np.ones((1, 1)), np.full((1, 1, 12), 0.25), 0, 0.0)

    monkeypatch.setattr(fit_module, "fit_mixture", no_fit)
    monkeypatch.setattr(Ledger, "_refuse_if_over", lambda *_: None)  # `test_privacy_train` sees to the charges


def play_independent(table: Table, streams: Streams) -> float:
    released, _ = independent.train(independent.Config(), SCHEMA, table, BUDGET, streams=streams, progress=silent)
    return sum(counts[0] for counts in released.arrays().values())


def play_mixture(table: Table, streams: Streams) -> float:
    """The best statistic of both releases: the row's cells, each release weighed by its noise."""
    seen: list[pairs_module.Interactions] = []
    release = mixture.release_pairs

    def watched(*args: Any, **options: Any) -> pairs_module.Interactions:
        seen.append(release(*args, **options))
        return seen[-1]

    mixture.release_pairs = watched
    try:
        released, _ = mixture.train(mixture.Config(), SCHEMA, table, BUDGET, streams=streams, progress=silent)
    finally:
        mixture.release_pairs = release
    plan = mixture.make_plan()
    fine = sum(counts[0] for counts in released.fine.values())
    # What the row adds to each is known: (e - 1/4)(e - 1/4), e - 1/4, and so is what of the noise is in its way.
    pairs = sum(pairs_module.interactions(found)[0, 0, 0] for found in seen[0].pairs)
    columns = sum(pairs_module.deviations(found)[0, 0] for found in seen[0].margins.values())
    noise = one_way_module.one_way_noise(one_way_module.fine_cells(SCHEMA), plan.one_way_multiplier)
    assert len(set(noise.values())) == 1  # all columns alike: one weight for all
    return fine / noise["a"][0] ** 2 + pairs / seen[0].pair_noise[0] ** 2 + columns / seen[0].margin_noise ** 2


def play(game: Callable[[Table, Streams], float], games: int = GAMES) -> tuple[np.ndarray, np.ndarray]:
    streams = Streams.from_seed(1)
    return tuple(np.array([game(table, streams) for _ in range(games)]) for table in TABLES)


@pytest.mark.parametrize("game", [play_independent, play_mixture])
def test_the_bound_lies_below_the_claim_and_above_half_of_it(game, quick):
    found = epsilon_lower_bound(*play(game), BUDGET.delta)
    assert BUDGET.epsilon / 2 < found < BUDGET.epsilon


def half_noise(values: np.ndarray, *, noise_multiplier: float, **rest: Any) -> np.ndarray:
    return gaussian(values, noise_multiplier=noise_multiplier / 2, **rest)


def one_table_sensitivity(values: np.ndarray, *, l2_sensitivity: float, **rest: Any) -> np.ndarray:
    return gaussian(values, l2_sensitivity=1.0, **rest)


@pytest.mark.parametrize("bug", [half_noise, one_table_sensitivity])
@pytest.mark.parametrize(("game", "module"), [(play_independent, one_way_module), (play_mixture, pairs_module)])
def test_planted_bugs_lose_the_game(game, module: ModuleType, bug, quick, monkeypatch):
    monkeypatch.setattr(module, "gaussian", bug)
    assert epsilon_lower_bound(*play(game, 800), BUDGET.delta) > BUDGET.epsilon


def test_the_bound_is_right_about_a_known_gaussian():
    """The ruler itself: on a Gaussian of known noise it stays below its epsilon, but not by much."""
    rng = np.random.default_rng(0)
    scale = noise_multiplier(BUDGET)
    found = epsilon_lower_bound(rng.normal(0, scale, 100_000), rng.normal(1, scale, 100_000), BUDGET.delta)
    assert 0.9 * BUDGET.epsilon < found < BUDGET.epsilon
    alike = epsilon_lower_bound(rng.normal(0, scale, GAMES), rng.normal(0, scale, GAMES), BUDGET.delta)
    assert alike < BUDGET.epsilon / 4
    assert math.isclose(gaussian_epsilon(scale, BUDGET.delta), BUDGET.epsilon, rel_tol=1e-6)
