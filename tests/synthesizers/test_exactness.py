"""With next to no noise the model is as near to the table as a fresh sample would be, in every pair of columns."""

import itertools

import numpy as np
import pandas as pd
import pytest

from understudy.schema import Schema
from understudy.synthesizers.api import Model, fit
from understudy.synthesizers.one_way import fine_cells
from understudy.table.read import read_table

HUGE = 1e4
SCHEMA = Schema.loads("""
rows: 10000
label: sick
columns:
  town: {kind: categorical, values: [a, b, c, d]}
  age: {kind: integer, low: 0, high: 5}
  degree: {kind: ordinal, values: [none, school, college], missing: true}
  pay: {kind: integer, low: 0, high: 900}
  sick: {kind: boolean}
""")
PAIRS = list(itertools.combinations(SCHEMA.columns, 2))


def people(rows: int, seed: int) -> pd.DataFrame:
    """Every column leans on another: the town on the age, the degree on both, the illness on the town, pay on two."""
    rng = np.random.default_rng(seed)
    age = rng.choice(6, rows, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    town = np.where(rng.random(rows) < 0.85, age % 4, rng.integers(0, 4, rows))
    degree = np.clip(age // 2 + (rng.random(rows) < 0.2), 0, 2)
    sick = (town == 1) ^ (rng.random(rows) < 0.1)
    pay = np.clip(100 * degree + 200 * sick + rng.normal(100, 30, rows), 0, 900).astype(int)
    known = (town != 3) | (rng.random(rows) < 0.1)
    return pd.DataFrame(
        {
            "town": np.array(list("abcd"))[town],
            "age": age,
            "degree": pd.Series(np.array(["none", "school", "college"])[degree]).where(known),
            "pay": pay,
            "sick": sick,
        }
    )


REAL, FRESH = people(10_000, 0), people(10_000, 1)


def distance(one: pd.DataFrame, other: pd.DataFrame, pair: tuple[str, str]) -> float:
    """Total variation of two two-way tables, missing as a value, pay in steps of 50."""
    tables = []
    for frame in (one, other):
        cut = frame.assign(pay=frame["pay"] // 50)
        codes = [cut[name].astype(object).where(cut[name].notna(), "missing").astype(str) for name in pair]
        tables.append(pd.crosstab(*codes, normalize=True))
    first, second = tables[0].align(tables[1], fill_value=0)
    return float(np.abs(first - second).to_numpy().sum() / 2)


@pytest.fixture(scope="module", params=[True, False], ids=["split by label", "label like any other"])
def model(request: pytest.FixtureRequest) -> Model:
    return fit(REAL, SCHEMA, epsilon=HUGE, seed=0, method="mixture", split_label=request.param)


@pytest.fixture(scope="module")
def drawn(model: Model) -> pd.DataFrame:
    return model.sample(50_000, seed=1)


def test_every_pair_is_as_near_as_a_fresh_sample(drawn: pd.DataFrame):
    far = {pair: distance(drawn, REAL, pair) / distance(FRESH, REAL, pair) for pair in PAIRS}
    assert max(far.values()) < 1, far


def test_columns_alone_would_not_pass():
    alone = fit(REAL, SCHEMA, method="independent", epsilon=HUGE, seed=0).sample(50_000, seed=1)
    far = {pair: distance(alone, REAL, pair) / distance(FRESH, REAL, pair) for pair in PAIRS}
    assert min(far.values()) > 2, far


def test_conditions_give_the_tables_own_conditional_shares(model: Model):
    """Differences of a conditional share from the table's: five standard errors of the table's own."""
    for where, keep in (
        ({"town": "b"}, REAL["town"] == "b"),
        ({"degree": None}, REAL["degree"].isna()),
        ({"age": (4, 5), "sick": True}, (REAL["age"] >= 4) & REAL["sick"]),
    ):
        found, real = model.sample(20_000, where=where, seed=3), REAL[keep]
        for column, value in (("sick", True), ("town", "b"), ("age", 1)):
            share = (real[column] == value).mean()
            error = 5 * np.sqrt(max(share * (1 - share), 0.01) / len(real))
            assert (found[column] == value).mean() == pytest.approx(share, abs=error), (where, column)


def test_likely_rows_score_higher(model: Model):
    rng = np.random.default_rng(0)
    shuffled = pd.DataFrame({name: REAL[name].array[rng.permutation(len(REAL))] for name in REAL})
    scores = {name: model.log_prob(frame).mean() for name, frame in (("fresh", FRESH), ("shuffled", shuffled))}
    own = model.log_prob(model.sample(10_000, seed=4)).mean()
    # A model close to the truth gives fresh rows what it gives its own; shuffled ones it finds far less likely.
    assert scores["fresh"] == pytest.approx(own, abs=0.15)
    assert scores["shuffled"] < scores["fresh"] - 1


@pytest.mark.parametrize("method", ["independent", "mixture"])
def test_one_way_tables_are_the_tables_own(method: str):
    fine = fit(REAL, SCHEMA, method=method, epsilon=HUGE, seed=0).released.fine
    table = read_table(REAL, SCHEMA)
    for name, cells in fine_cells(SCHEMA).items():
        exact = np.bincount(cells.index(table.codes(name)), minlength=cells.count)
        # Smoothing may level neighbours that differ by less than the noise; noise itself is far below one row.
        np.testing.assert_allclose(fine[name], exact, atol=0.6, err_msg=name)
