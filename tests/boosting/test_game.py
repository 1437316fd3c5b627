"""The game: a row moves every score by 0 to 1, the index alone comes out, rounds are charged, weights are finite."""

import dataclasses
import math
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from understudy.boosting import distinguishers, game
from understudy.boosting.exact import UNIT
from understudy.boosting.pool import Pool
from understudy.errors import BudgetError, OptionError
from understudy.privacy import BoundedRange, Budget, Ledger, NonPrivate, SelfComposed, Streams
from understudy.table.table import Table

EPSILON = 0.3
PICKS = [0, 7, 3, 20, 11]


def families(pool: Pool, source: ModuleType = distinguishers) -> dict[str, game.Family]:
    functions = [lambda codes: codes["age"] / 2, lambda codes: np.nan_to_num(codes["wage"] * 0 + 1)]
    return {
        "critics": source.critics(pool),
        "classifiers": source.classifiers(pool),
        "marginals": source.marginals(pool),
        "functions": source.of_functions(pool, functions),
        "joined": source.distinguishers(pool, ["critics", "marginals", *functions]),
    }


def play(family: game.Family, table: Table, pool: Pool, source: ModuleType = game, **options):
    settings = {"rounds": len(PICKS), "epsilon": EPSILON, "streams": Streams.from_seed(0)} | options
    settings.setdefault("ledger", Ledger(Budget(100.0, 1e-6)))
    return source.play(family, table, pool_size=pool.size, rows=pool.rows, **settings)


def scores_of(
    family: game.Family, table: Table, pool: Pool, source: ModuleType = game
) -> tuple[np.ndarray, game.Played]:
    """The scores of every round when the picks are given, as they are for two tables that gave the same picks."""
    seen: list[np.ndarray] = []
    usual = source.select

    def select(scores: np.ndarray, **_) -> int:
        seen.append(np.array(scores))
        return PICKS[len(seen) - 1] % len(scores)

    source.select = select
    try:
        played = play(family, table, pool, source)
    finally:
        source.select = usual
    return np.stack(seen), played


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    x = EPSILON * scores
    return x - x.max(axis=-1, keepdims=True) - np.log(np.exp(x - x.max(axis=-1, keepdims=True)).sum(-1, keepdims=True))


def faults(pool: Pool, neighbours: list, kinds=distinguishers, source: ModuleType = game, names=None) -> list[str]:
    """What is wrong on any pair of neighbours, by brute force over all distinguishers, rounds and rows."""
    found, most = [], 0.0
    for name, family in families(pool, kinds).items():
        if names and name not in names:
            continue
        for base, larger in neighbours:
            before, outcome = scores_of(family, base, pool, source)
            for table in larger:
                after, other = scores_of(family, table, pool, source)
                moved = after - before
                most = max(most, moved.max())
                if moved.min() < 0 or moved.max() > 1:
                    found.append(f"{name}: a score moved by {moved.min()} to {moved.max()}")
                ratios = log_probabilities(after) - log_probabilities(before)
                if np.ptp(ratios, axis=1).max() > EPSILON * (1 + 1e-9):
                    found.append(f"{name}: log ratios span more than epsilon")
                if not all((getattr(outcome, x) == getattr(other, x)).all() for x in ("weights", "average", "picks")):
                    found.append(f"{name}: more than the picks came out")
    if not found and most < 0.9:
        found.append("the bound was never reached: the test shows nothing")
    return found


def test_one_row_moves_scores_by_at_most_one_all_the_same_way(tiny_pool: Pool, neighbours: list):
    assert faults(tiny_pool, neighbours) == []


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        # The score itself comes out through the weights.
        (game, "log_weights += rate * values", "log_weights += rate * values * sums[pick]"),
        # The private number of rows in place of the released one.
        (game, "np.rint(rows * UNIT * expected)", "np.rint((sums.max() / UNIT + rows) * UNIT * expected)"),
        (game, "table.rows * UNIT - sums", "-sums"),
        # A subsample's sum scaled up to all rows.
        (distinguishers, "self.evaluate(block).sum(axis=1, dtype=np.int64)",
         "2 * self.evaluate(block)[:, ::2].sum(axis=1, dtype=np.int64)"),
        # The mean, scaled by the released number of rows.
        (distinguishers, "return total * UNIT", "return total * UNIT * 5 // max(1, table.rows)"),
        (distinguishers, "np.where(np.isnan(found), 0.5, np.clip(found, 0.0, 1.0))", "found * 1.5"),
    ],
)  # fmt: skip
def test_planted_bugs_are_found(tiny_pool, neighbours, copy_of: Callable[..., ModuleType], module, old, new):
    copied = copy_of(module, (old, new))
    some = ("functions", "marginals")
    if module is game:
        assert faults(tiny_pool, neighbours, source=copied, names=some)
    else:
        assert faults(tiny_pool, neighbours, kinds=copied, names=some)


def test_every_round_is_charged_before_rows_are_seen(tiny_pool: Pool, every_row: Table):
    family = families(tiny_pool)["marginals"]
    ledger = Ledger(Budget(100.0, 1e-6))
    play(family, every_row, tiny_pool, rounds=9, ledger=ledger)
    assert ledger.events == (SelfComposed(BoundedRange(EPSILON), 9),)

    class Unseen:
        def __getattr__(self, name: str):
            raise AssertionError("a row was looked at")

    small = Ledger(Budget(0.1, 1e-6))
    with pytest.raises(BudgetError):
        play(family, Unseen(), tiny_pool, rounds=9, ledger=small)
    assert small.events == ()


def test_fewer_rounds_charged_than_played_is_refused(tiny_pool, every_row, copy_of):
    copied = copy_of(game, ("NonPrivate(), rounds, purpose)", "NonPrivate(), rounds - 1, purpose)"))
    with pytest.raises(BudgetError, match="used up"):
        play(families(tiny_pool)["marginals"], every_row, tiny_pool, copied)


class Equal:
    """Distinguishers that cannot be told apart, and a pool of two rows."""

    count = 4

    def of_pool(self, number: int) -> np.ndarray:
        return np.array([0.25, 0.25])

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        return np.full(4, 0.25)

    def sums(self, table: Table) -> np.ndarray:
        return np.full(4, table.rows * UNIT // 4)


def picked(source: ModuleType, every_row: Table, pool: Pool) -> np.ndarray:
    options = {"rounds": 4000, "ledger": Ledger(Budget(1e5, 1e-6)), "both_ways": False, "epsilon": 0.5}
    return source.play(
        Equal(), every_row, pool_size=2, rows=every_row.rows, streams=Streams.from_seed(3), **options
    ).picks


def test_ties_are_broken_by_noise_alone(every_row, tiny_pool, copy_of):
    counts = np.bincount(picked(game, every_row, tiny_pool), minlength=4)
    assert ((counts - 1000) ** 2 / 1000).sum() < 20  # chi-squared, 3 degrees of freedom
    by_value = copy_of(game, ("        pick = select(\n", "        pick = (lambda s, **_: int(np.argmax(s)))(\n"))
    assert np.bincount(picked(by_value, every_row, tiny_pool), minlength=4)[0] == 4000


def test_without_privacy_the_best_response_is_played(tiny_pool: Pool, every_row: Table):
    pool = dataclasses.replace(tiny_pool, rows=every_row.rows)
    family = families(pool)["joined"]
    ledger = Ledger(Budget(math.inf, 1e-6))
    played = play(family, every_row, pool, epsilon=math.inf, ledger=ledger, rounds=200)
    assert ledger.events == (SelfComposed(NonPrivate(), 200),)
    sums = family.sums(every_row)
    uniform = np.full(pool.size, 1 / pool.size)
    before, after = (np.abs(sums / UNIT / pool.rows - family.expectations(w)).max() for w in (uniform, played.weights))
    assert after < 0.5 * before
    scores = game.steps_above(sums, family.expectations(uniform), pool.rows)
    assert played.picks[0] == np.argmax(np.concatenate([scores, -scores]))


def test_the_equilibrium_bound_holds(tiny_pool: Pool, every_row: Table, take):
    """The gap max_D U(phi, D) - min_b U(b, average) of what was played, measured on the rows, stays below alpha."""
    table = take(every_row, [0] * 300 + [5] * 300)
    family = families(tiny_pool)["marginals"]
    for epsilon in (0.05, math.inf):
        ledger = Ledger(Budget(math.inf, 1e-6))
        played = game.play(
            family, table, pool_size=tiny_pool.size, rows=table.rows, rounds=300, epsilon=epsilon,
            streams=Streams.from_seed(1), ledger=ledger,
        )  # fmt: skip
        real, made = family.sums(table) / UNIT / table.rows, family.expectations(played.weights)
        best = max((real - made).max(), (made - real).max())
        mean_real = np.mean(
            [real[p % family.count] if p < family.count else 1 - real[p % family.count] for p in played.picks]
        )
        gap = best - (mean_real - played.average.max())
        assert 0 <= gap <= played.alpha


def test_weights_stay_finite_in_long_games(every_row: Table):
    """10,000 rounds with a pool of 100,000 rows, in which one distinguisher is picked all the time."""
    values = np.linspace(0, 1, 100_000, dtype=np.float32)
    family = distinguishers.Dense(
        np.stack([values, np.round(values)]), lambda codes: np.full((2, len(codes["age"])), UNIT)
    )
    played = game.play(
        family, every_row, pool_size=100_000, rows=every_row.rows, rounds=10_000, epsilon=0.01, rate=5.0,
        both_ways=False, streams=Streams.from_seed(0), ledger=Ledger(Budget(1e5, 1e-6)),
    )  # fmt: skip
    assert np.isfinite(played.weights).all()
    assert (played.weights >= 0).all()
    assert played.weights.sum() == pytest.approx(1)
    assert played.weights[-1] > played.weights[0]


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"rounds": True}, {"rounds": 2.5}, {"rate": 0.0}, {"rate": math.nan}])
def test_wrong_settings_are_refused(tiny_pool: Pool, every_row: Table, wrong: dict):
    with pytest.raises(OptionError, match=f"{next(iter(wrong))} must be"):
        play(families(tiny_pool)["marginals"], every_row, tiny_pool, **wrong)
