"""Weights without privacy: the rows' own means, a prior where rows are few, and no way to them with a finite budget."""

import math

import numpy as np
import pytest

from understudy.boosting import distinguishers
from understudy.boosting.exact import UNIT
from understudy.boosting.matching import matched_weights
from understudy.boosting.method import boost
from understudy.errors import BudgetError
from understudy.privacy import Budget, Ledger, NonPrivate
from understudy.table.table import Table

OPEN = Budget(math.inf, 1e-6)


class Counted:
    """Indicators of three codes that a pool has equally often, and rows with given counts of them."""

    count = 3

    def __init__(self, counts: tuple[int, ...]) -> None:
        self.matrix = np.kron(np.eye(3), np.ones(4))
        self.counts = np.array(counts)

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        return self.matrix @ weights

    def sum_of(self, factors: np.ndarray) -> np.ndarray:
        return factors @ self.matrix

    def sums(self, table: Table) -> np.ndarray:
        return self.counts * UNIT


class Rows:
    """All of a table that is asked for here."""

    def __init__(self, rows: int) -> None:
        self.rows = rows


def shares(counts: tuple[int, ...], *, both_ways: bool = True) -> np.ndarray:
    weights = matched_weights(Counted(counts), Rows(sum(counts)), both_ways=both_ways, ledger=Ledger(OPEN))
    assert weights.sum() == pytest.approx(1.0)
    return weights.reshape(3, 4).sum(axis=1)


def test_many_rows_are_matched_and_few_move_little():
    assert shares((60_000, 30_000, 10_000)) == pytest.approx([0.6, 0.3, 0.1], abs=1e-3)
    assert shares((0, 0, 0)) == pytest.approx(1 / 3)
    few = shares((6, 3, 1))
    assert 1 / 3 < few[0] < 0.6
    assert shares((6, 4, 0)).min() > 0  # a code that no row has keeps some weight


def test_it_is_the_largest_posterior():
    counts = np.array([6, 3, 1])
    found = shares(tuple(counts))
    theta = np.log(found) - np.log(found).mean()  # the prior's mode has a mean of 0: a constant changes no weight
    assert counts.sum() * found - counts + theta == pytest.approx(0.0, abs=1e-3)


def test_one_way_alone_never_moves_away():
    assert shares((10, 45_000, 45_000), both_ways=False) == pytest.approx([0, 0.5, 0.5], abs=1e-2)
    weights = matched_weights(Counted((0, 0, 9)), Rows(100), both_ways=False, ledger=Ledger(OPEN))
    assert weights == pytest.approx(1 / 12)  # every mean lies below the pool's, and there is nothing to move towards


def test_a_finite_budget_refuses_before_a_row_is_looked_at():
    class Untouched(Counted):
        def sums(self, table: Table) -> np.ndarray:
            raise AssertionError("looked at the rows")

    ledger = Ledger(Budget(10.0, 1e-6))
    with pytest.raises(BudgetError):
        matched_weights(Untouched((1, 1, 1)), Rows(3), both_ways=True, ledger=ledger)
    assert not ledger.events


def test_only_boosting_without_privacy_matches(plain, rows, monkeypatch: pytest.MonkeyPatch):
    quick = {"rounds": 20, "pool_rows": 400, "seed": 1}
    entries = boost([plain], rows, epsilon=math.inf, **quick).certificate.entries
    assert [entry.event for entry in entries].count(NonPrivate()) == 1
    average = boost([plain], rows, epsilon=math.inf, weights="average", **quick)
    assert NonPrivate() not in [entry.event for entry in average.certificate.entries]

    def never(*args: object, **kwargs: object) -> None:
        raise AssertionError("matched with a finite epsilon")

    monkeypatch.setattr("understudy.boosting.method.matched_weights", never)
    boost([plain], rows, epsilon=1e6, **quick)


def test_triples_with_the_label_are_for_games_without_privacy(plain, rows, monkeypatch: pytest.MonkeyPatch):
    played = []
    make = distinguishers.marginals

    def noted(pool: object, **options: bool) -> distinguishers.Marginals:
        played.append(make(pool, **options))
        return played[-1]

    monkeypatch.setattr(distinguishers, "marginals", noted)
    for epsilon in (1e6, math.inf):
        boost([plain], rows, epsilon=epsilon, rounds=20, pool_rows=400)
    private, without = (max(len(names) for names in family.tables) for family in played)
    assert (private, without) == (2, 3)
    assert played[1].tables[-1] == ("ill", "age", "town")
    assert played[1].tables[:-1] == played[0].tables
