"""Factors by code and class: rare codes that a fit left behind are mended, and nothing else moves."""

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from mixture_error import plain_error, random_mixture, random_targets, shares_of

import understudy as us
from understudy.schema import Boolean, Integer, Schema
from understudy.synthesizers.mixture import factors
from understudy.synthesizers.mixture.error import Tables
from understudy.synthesizers.mixture.factors import with_factors
from understudy.synthesizers.mixture.fit import Fitted
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, deviations, interactions
from understudy.synthesizers.mixture.targets import Targets, make_targets
from understudy.synthesizers.one_way import OneWay, fine_cells

SCHEMA = Schema(
    rows=20_000,
    label="y",
    columns={"a": Integer(low=0, high=3), "b": Integer(low=0, high=4), "c": Integer(low=0, high=2), "y": Boolean()},
)
SIZES = {"a": 4, "b": 5, "c": 3}
COARSE = Coarse({name: np.arange(size) for name, size in SIZES.items()}, "y", 2)
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
ROWS = np.array([15_000.0, 5_000.0])
LEFT, RARE = 60.0, 300.0  # rows of a's last code in the second class: those that the fit left, and those there are not
NOISE = 15.0


def shares(rare: float) -> dict[str, np.ndarray]:
    """Each column's shares by class; columns are independent there. `rare`: rows of a's last code in the second."""
    last = np.array([RARE, rare]) / ROWS
    first = np.array([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]])
    return {
        "a": np.column_stack([first * (1 - last)[:, None], last]),
        "b": np.array([[0.1, 0.2, 0.4, 0.2, 0.1], [0.6, 0.1, 0.1, 0.1, 0.1]]),
        "c": np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]),
    }


@pytest.fixture(scope="module")
def targets() -> Targets:
    """Tables of rows none of which is in a's last code and the second class, with the noise of a release."""
    rng = np.random.default_rng(0)
    counts = {name: ROWS[:, None] * share for name, share in shares(0.0).items()}
    pairs = [interactions(counts[a][:, :, None] * counts[b][:, None] / ROWS[:, None, None]) for a, b in PAIRS]
    noisy = Interactions(
        [table + rng.normal(0, NOISE, table.shape) for table in pairs],
        [NOISE] * len(pairs),
        {name: deviations(count) + rng.normal(0, NOISE, count.shape) for name, count in counts.items()},
        NOISE,
    )
    one_way = OneWay(
        fine_cells(SCHEMA),
        {name: count.sum(axis=0) for name, count in counts.items()} | {"y": ROWS},
        ROWS.sum(),
        noise=dict.fromkeys(SCHEMA.modelled, (5.0,)),
    )
    return make_targets(SCHEMA, one_way, COARSE, PAIRS, noisy)


def mixture(rare: float) -> Fitted:
    """Two components a class, both with the same columns."""
    codes = np.concatenate(list(shares(rare).values()), axis=1).astype(np.float32)
    weights = np.repeat(ROWS[:, None] / ROWS.sum() / 2, 2, axis=1)
    return Fitted(weights, np.repeat(codes[:, None], 2, axis=1), 10, 0.5)


def rows_of(fitted: Fitted) -> np.ndarray:
    return ROWS.sum() * np.einsum("ck,ckd->cd", fitted.weights, fitted.probabilities)


def test_a_rare_code_that_a_class_does_not_have_loses_its_rows_there(targets: Targets):
    before, after = rows_of(mixture(LEFT)), rows_of(with_factors(targets, mixture(LEFT)))
    assert before[1, 3] == pytest.approx(LEFT, rel=1e-3)
    assert after[1, 3] < 0.5 * LEFT
    assert after[0, 3] == pytest.approx(RARE, abs=NOISE)
    # Codes of many rows were right, and are told well enough to stay.
    common = before > 1000
    np.testing.assert_allclose(after[common], before[common], rtol=0.02)


def test_columns_still_sum_to_one(targets: Targets):
    found = with_factors(targets, mixture(LEFT))
    for place in np.split(found.probabilities, np.cumsum(targets.sizes)[:-1], axis=2):
        np.testing.assert_allclose(place.sum(axis=2), 1, rtol=1e-5)
    assert found.probabilities.dtype == np.float32
    assert (found.probabilities >= 0).all()


def test_tables_that_tell_nothing_leave_the_fit_as_it_is(targets: Targets):
    names = ("pair_weights", "margin_weights", "one_weights")
    silent = replace(targets, **{name: np.zeros_like(getattr(targets, name)) for name in names})
    np.testing.assert_allclose(
        with_factors(silent, mixture(LEFT)).probabilities, mixture(LEFT).probabilities, rtol=1e-5
    )


@pytest.mark.parametrize("empty", [False, True])
def test_gradients_are_those_of_the_error_of_the_fit(empty: bool):
    rng = np.random.default_rng(1)
    targets = random_targets(rng, empty=empty)
    tables = Tables.of(targets)
    weights, logits = random_mixture(rng)
    logs = rng.normal(size=(len(weights), len(targets.ones)))
    shares = factors._scaled(np.asarray(shares_of(logits)), logs, tables.member)
    found = factors._gradient(tables, weights, shares)
    wanted = jax.grad(lambda logs: plain_error(targets, weights, shares_of(logits + logs[:, None])))(logs)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_a_fit_has_factors_where_there_is_noise(monkeypatch: pytest.MonkeyPatch):
    asked = []
    monkeypatch.setattr(factors, "with_factors", lambda targets, fitted: asked.append(1) or fitted)
    rng = np.random.default_rng(2)
    rows = {"a": rng.integers(0, 4, 500), "b": rng.integers(0, 5, 500), "c": rng.integers(0, 3, 500)}
    rows["y"] = rows["a"] > 1
    for epsilon, times in ((0.1, 1), (float("inf"), 1)):
        us.fit(pd.DataFrame(rows), SCHEMA, method="mixture", epsilon=epsilon, seed=0)
        assert len(asked) == times
