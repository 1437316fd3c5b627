"""Rows chosen evenly: closer to the model in pairs, and otherwise rows like any others."""

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.synthesizers import even
from understudy.synthesizers.even import Tables, choose, choose_evenly, pairs_of, tables_to_draw

NEVER = {"columns": ["a", "b"], "never": [[{"from": 10}, "1"]]}


def skewed_rows(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Three columns that go together, with rare values, missing reals and a rare class."""
    shares = 0.6 ** np.arange(12)
    a = rng.choice(12, n, p=shares / shares.sum()).astype(np.uint8)
    b = np.where(rng.random(n) < 0.6, a % 5, rng.integers(0, 5, n)).astype(np.uint8)
    c = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + a).astype(np.float32)
    return {"a": a, "b": b, "c": c, "d": (rng.random(n) < 0.05).astype(np.uint8)}


def pair_shares(rows: dict[str, np.ndarray]) -> np.ndarray:
    return np.bincount(rows["a"].astype(int) * 5 + rows["b"], minlength=60) / len(rows["a"])


def truth() -> np.ndarray:
    shares = 0.6 ** np.arange(12) / (0.6 ** np.arange(12)).sum()
    return np.concatenate([share * (0.6 * (np.arange(5) == a % 5) + 0.08) for a, share in enumerate(shares)])


@pytest.mark.parametrize(("n", "ratio"), [(300, 0.85), (5000, 0.6)])
def test_pairs_lie_closer_to_the_model_than_those_of_a_plain_draw(n, ratio):
    rng = np.random.default_rng(0)
    plain, chosen = [], []
    for _ in range(6):
        plain.append(np.abs(pair_shares(skewed_rows(n, rng)) - truth()).sum())
        rows = choose_evenly([skewed_rows(n, rng) for _ in range(16)], "d", rng)
        chosen.append(np.abs(pair_shares(rows) - truth()).sum())
    assert np.mean(chosen) < ratio * np.mean(plain)


def rare_share(n: int, tables: int) -> tuple[float, float, float]:
    """Of rows in cells that expect less than half a row: their mean share in tables of n chosen rows, their true
    share, and the standard error of the first if rows were drawn alone."""
    rng = np.random.default_rng(1)
    chosen = (choose_evenly([skewed_rows(n, rng) for _ in range(8)], "d", rng) for _ in range(tables))
    found = np.mean([pair_shares(rows) for rows in chosen], axis=0)
    rare = truth() * n < 0.5
    assert rare.sum() > 20
    share = truth()[rare].sum()
    return found[rare].sum(), share, np.sqrt(share / (n * tables))


def test_rare_rows_come_as_often_as_in_the_pool():
    found, share, error = rare_share(200, 150)
    assert abs(found - share) < 4 * error


def test_rare_rows_are_shunned_where_cells_are_matched_one_by_one(monkeypatch):
    """The test above can fail: this is what it would see if rare places of a table were cells of their own."""
    monkeypatch.setattr(even, "EXPECTED", 0.02)
    found, share, error = rare_share(200, 60)
    assert found < share - 4 * error


def test_rows_of_the_pool_are_chosen_each_once():
    rng = np.random.default_rng(2)
    pool = skewed_rows(4000, rng)
    chosen = choose(pool, 500, "d", rng)
    assert len(chosen) == len(set(chosen.tolist())) == 500
    assert chosen.min() >= 0
    assert chosen.max() < 4000


def test_the_same_seed_chooses_the_same_rows():
    pool = skewed_rows(4000, np.random.default_rng(3))
    first, second = (choose(pool, 500, "d", np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)


def test_tables_count_every_row_once():
    rng = np.random.default_rng(4)
    pool = skewed_rows(2000, rng)
    tables = Tables.of(pool, 400, "d", rng)
    cells = tables.cells(np.arange(2000))
    assert np.array_equal(np.bincount(cells.ravel(), minlength=len(tables.totals)), tables.totals)
    assert tables.totals.sum() == 2000 * cells.shape[1]
    # six pairs, three of them by the label's classes as well, and the real column in finer runs
    assert cells.shape[1] == 6 + 3 + 1


def test_constant_columns_are_chosen_from():
    columns = {"a": np.zeros(800, dtype=np.uint8), "b": np.full(800, np.nan)}
    assert len(choose(columns, 100, None, np.random.default_rng(0))) == 100


def test_a_label_of_many_classes_splits_no_pairs():
    rng = np.random.default_rng(5)
    pool = {"a": rng.integers(0, 3, 3000), "b": rng.integers(0, 3, 3000), "y": rng.integers(0, 14, 3000)}
    assert Tables.of(pool, 1000, "y", rng).cells(np.arange(1)).shape[1] == 3


def test_very_many_columns_have_a_part_of_their_pairs_and_all_with_the_label():
    pairs = pairs_of(200, 7, np.random.default_rng(0))
    assert len(pairs) == len(set(pairs)) == even.MOST_PAIRS + 199
    assert sum(7 in pair for pair in pairs) == 199


def test_what_is_too_small_or_too_large_is_drawn_once():
    assert tables_to_draw(49, 10) == 1
    assert tables_to_draw(1000, 1) == 1
    assert tables_to_draw(10_000_000, 5) == 1
    assert tables_to_draw(1000, 10) > 1


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(6)
    codes = skewed_rows(2000, rng)
    columns = {
        "a": {"kind": "integer", "low": 0, "high": 11},
        "b": {"kind": "categorical", "values": [str(value) for value in range(5)]},
        "d": {"kind": "boolean"},
    }
    schema = us.Schema.model_validate({"columns": columns, "rows": 2000, "label": "d", "rules": [NEVER]})
    frame = pd.DataFrame({"a": codes["a"], "b": codes["b"].astype(str), "d": codes["d"].astype(bool)})
    return us.fit(frame, schema, method="independent", epsilon=5.0, seed=0)


def test_a_model_draws_evenly_unless_told_otherwise(model):
    plain = model.sample(1000, seed=1, even=False)
    assert model.sample(1000, seed=1).equals(model.sample(1000, seed=1, even=True))
    assert not model.sample(1000, seed=1).equals(plain)
    assert plain.equals(model.sample(1000, seed=1, even=False))


def test_chosen_rows_hold_rules_and_conditions(model):
    rows = model.sample(600, seed=2, where={"b": ["1", "2"]})
    assert len(rows) == 600
    assert set(rows["b"]) == {"1", "2"}
    assert (rows["a"] >= 10).sum() == ((rows["a"] >= 10) & (rows["b"] == "2")).sum()
