"""Attacks on output: they catch a synthesizer that copies rows, stay under the bound for honest ones, and their ruler
is right about known cases."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from understudy.auditing.attacks import (
    ATTACKS,
    Attacked,
    attack_output,
    clopper_pearson,
    maker,
    measure,
    most_advantage,
    most_true_positives,
)
from understudy.errors import OptionError
from understudy.schema import Schema

EPSILON, DELTA = 1.0, 1e-6
SCHEMA = Schema.loads("""
rows: 900
label: ill
columns:
  age: {kind: integer, low: 0, high: 90}
  wage: {kind: real, low: 0, high: 1000, resolution: 1, missing: true}
  town: {kind: categorical, values: [a, b, c, d]}
  degree: {kind: ordinal, values: [none, school, college]}
  ill: {kind: boolean}
""")


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 91, rows)
    wage = np.clip(np.round(age * 8 + rng.normal(0, 60, rows)), 0, 1000)
    return pd.DataFrame(
        {
            "age": age,
            "wage": np.where(rng.random(rows) < 0.05, np.nan, wage),
            "town": rng.choice(list("abcd"), rows),
            "degree": rng.choice(["none", "school", "college"], rows),
            "ill": rng.random(rows) < 0.2 + 0.6 * (age > 50),
        }
    )


ROWS = people(1800)


def copies(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    return rows.sample(frac=1, random_state=seed)


def attacked(make, attacks=ATTACKS, **options) -> dict[str, Attacked]:
    found = attack_output(
        make, ROWS, SCHEMA, epsilon=EPSILON, delta=DELTA, attacks=attacks, **({"shadows": 8} | options)
    )
    return {one.attack: one for one in found}


@pytest.fixture(scope="module")
def leaky() -> dict[str, Attacked]:
    return attacked(copies)


@pytest.mark.parametrize("attack", ATTACKS)
def test_copied_rows_are_caught(leaky: dict[str, Attacked], attack: str):
    found = leaky[attack]
    assert found.refuted
    # Kernels blur copies, so that the density shows them in its highest and lowest scores alone.
    assert found.above_bound or attack == "density ratio"
    assert found.model.epsilon_shown.epsilon > EPSILON
    # The model that was trained without the targets shows that they are the reason.
    assert found.control.epsilon_shown.epsilon < EPSILON / 2
    assert found.control.interval[0] < 0 < found.control.interval[1]
    assert found.model.area > (0.65 if attack == "density ratio" else 0.8)
    assert abs(found.control.area - 0.5) < 0.1


def test_few_false_alarms_are_asked_for(leaky: dict[str, Attacked]):
    found = leaky["shadow models"].model
    assert [at.wanted for at in found.at] == [0.01, 0.001]
    for at in found.at:
        assert at.bound < at.bound_measured
        assert at.true.low > at.bound_measured
    assert found.at[0].true.value > 0.3


@pytest.mark.parametrize("method", ["independent", "mixture"])
def test_honest_methods_stay_under_the_bound(method: str):
    options = {"steps": 30, "components": 6} if method == "mixture" else {}
    make = maker(method, SCHEMA, epsilon=EPSILON, delta=DELTA, draws=600, **options)
    attacks = ATTACKS if method == "independent" else ATTACKS[:3]
    for found in attacked(make, attacks).values():
        assert not found.refuted
        assert not found.above_bound
        assert found.model.interval[0] < found.advantage_bound == pytest.approx(0.4621, abs=1e-4)


def test_without_privacy_a_method_may_be_found_out_and_nothing_is_refuted():
    found = attack_output(copies, ROWS, SCHEMA, epsilon=math.inf, delta=DELTA, attacks=("nearest",))[0]
    assert found.advantage_bound == 1.0
    assert not found.refuted
    assert not found.above_bound
    assert json.loads(found.to_json())["epsilon"] == "inf"


def test_the_result_is_strict_json_and_the_same_again(leaky: dict[str, Attacked]):
    data = json.loads(leaky["nearest"].to_json())
    assert data["refuted"] is True
    assert data["model"]["at"][0]["true"]["low"] <= data["model"]["at"][0]["true"]["value"]
    assert attacked(copies, ("nearest",))["nearest"] == leaky["nearest"]
    assert data["members"] + data["outsiders"] == 450


# --- the ruler ---


def test_the_bounds_are_those_of_randomized_response():
    """Telling one's coin truthfully with chance e/(1+e) is exactly epsilon 1, and reaches both bounds."""
    truthful = math.e / (1 + math.e)
    assert most_advantage(1.0, 0.0) == pytest.approx(2 * truthful - 1)
    assert most_true_positives(1.0, 0.0, 1 - truthful) == pytest.approx(truthful)
    for rate in np.linspace(0, 1, 21):
        assert most_true_positives(0.7, 1e-3, rate) - rate <= most_advantage(0.7, 1e-3) + 1e-12
    crossing = (1 - 1e-3) / (1 + math.exp(0.7))
    reached = most_true_positives(0.7, 1e-3, crossing) - crossing
    assert reached == pytest.approx(most_advantage(0.7, 1e-3))


@pytest.mark.parametrize(("claim", "refuted"), [(1.0, False), (0.5, True)])
def test_randomized_response_is_measured_right(claim: float, refuted: bool):
    rng = np.random.default_rng(0)
    coins = rng.random(4000) < 0.5
    told = np.where(rng.random(4000) < math.e / (1 + math.e), coins, ~coins) + 1e-9 * rng.random(4000)
    found = measure(told, coins, epsilon=claim, delta=0.0)
    assert found.interval[0] < most_advantage(1.0, 0.0) < found.interval[1]
    assert 0.8 < found.epsilon_shown.epsilon < 1.0
    assert (found.epsilon_shown.epsilon > claim) == refuted


def test_scores_that_know_nothing_show_nothing():
    rng = np.random.default_rng(1)
    found = measure(rng.random(2000), rng.random(2000) < 0.5, epsilon=1.0, delta=1e-6)
    assert found.interval[0] < 0 < found.interval[1]
    assert found.epsilon_shown.epsilon < 0.2
    assert all(at.false.low <= at.wanted for at in found.at)


def test_intervals_hold_as_often_as_they_say():
    """Over all outcomes of 50 trials with chance 0.1, the interval holds it in at least 95 % of cases."""
    from scipy.stats import binom

    inside = [rate.low <= 0.1 <= rate.high for rate in (clopper_pearson(hits, 50) for hits in range(51))]
    assert 0.95 <= np.dot(inside, binom.pmf(np.arange(51), 50, 0.1)) < 0.999


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"attacks": ("guess",)}, "attack 'guess' is not known"),
        ({"shadows": 1}, "shadows must be at least 4"),
        ({"rows": ROWS.iloc[:50]}, "rows must be at least 160"),
    ],
)
def test_wrong_use_is_refused(given: dict, said: str):
    rows = given.pop("rows", ROWS)
    with pytest.raises(OptionError, match=said):
        attack_output(copies, rows, SCHEMA, epsilon=1.0, delta=DELTA, **given)
