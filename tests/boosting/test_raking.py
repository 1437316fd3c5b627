"""Raking: columns as the pool has them, pairs as the game left them, and where rows are few, nothing at all."""

import dataclasses
import math

import numpy as np
import pytest
from boosting_helpers import PEOPLE

from understudy.boosting.method import boost, reject
from understudy.boosting.raking import RARE, bear_columns, raked
from understudy.privacy import Budget
from understudy.schema import Boolean, Categorical, Integer
from understudy.table.cells import cells_of

COLUMNS = {
    "age": Integer(low=0, high=999),
    "town": Categorical(values=("a", "b", "c", "d")),
    "ill": Boolean(),
}
CELLS = {name: cells_of(column) for name, column in COLUMNS.items()}


@pytest.fixture
def drawn() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    town = rng.choice(4, size=5000, p=[0.5, 0.3, 0.199, 0.001]).astype(np.uint8)
    return {
        "age": rng.integers(0, 1000, 5000).astype(np.uint16),
        "town": town,
        "ill": (rng.random(5000) < 0.4).astype(np.uint8),
    }


def shares(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.bincount(codes, weights=weights, minlength=4)


def test_columns_come_back_and_pairs_stay(drawn):
    """Weights that favour a town, and in it the ill: the town's share is put back, what is ill in it is kept."""
    together = (drawn["town"] == 0) & (drawn["ill"] == 1)
    weights = np.where(together, 5.0, 1.0) * np.where(drawn["town"] == 1, 3.0, 1.0)
    weights /= weights.sum()
    found = raked(weights, drawn, CELLS)
    equal = np.full(5000, 1 / 5000)
    assert found.sum() == pytest.approx(1)
    for name in ("town", "ill"):
        np.testing.assert_allclose(shares(drawn[name], found), shares(drawn[name], equal), atol=0.003)
    assert abs(shares(drawn["town"], weights)[1] - shares(drawn["town"], equal)[1]) > 0.05
    # The odds ratio of a pair is what raking never touches, up to what other columns do.
    assert found[together].sum() > 1.3 * together.mean()


def test_rare_codes_are_taken_together(drawn):
    assert 0 < (drawn["town"] == 3).sum() < RARE
    weights = np.where(drawn["town"] == 3, 0.0, 1.0)
    found = raked(weights / weights.sum(), drawn, CELLS)
    assert np.isfinite(found).all()
    assert found[drawn["town"] == 3].sum() == 0


def test_weights_without_a_code_stay_without(drawn):
    weights = (drawn["ill"] == 0).astype(float)
    found = raked(weights / weights.sum(), drawn, CELLS)
    assert found[drawn["ill"] == 1].sum() == 0
    assert found.sum() == pytest.approx(1)


def test_public_facts_tell_where_columns_are_kept():
    def schema(rows: int):
        return PEOPLE.model_copy(update={"rows": rows})

    assert not bear_columns(schema(900), Budget(2.0, 1e-6))
    assert bear_columns(schema(17_000), Budget(1.0, 1e-6))
    assert not bear_columns(schema(17_000), Budget(0.05, 1e-6))
    assert bear_columns(schema(10), Budget(math.inf, 1e-6))


def test_models_keep_columns_where_rows_bear_it(plain, gan, rows):
    few = boost([plain], rows, epsilon=0.5, rounds=20, pool_rows=1000)
    assert few.released.settings["columns_kept"] is False
    assert (few.released.row_weights == few.released.weights).all()
    kept = dataclasses.replace(few.released, settings={**few.released.settings, "columns_kept": True})
    assert (kept.row_weights != kept.weights).any()
    pool = kept.pool["town"]
    np.testing.assert_allclose(np.bincount(pool, weights=kept.row_weights), np.bincount(pool) / len(pool), atol=0.005)
    assert reject(gan, pool_rows=300, seed=0).released.settings["columns_kept"] is False
