import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from understudy.errors import OptionError
from understudy.evaluation.logistic import fit_probabilities
from understudy.evaluation.telling_apart import c2st, pmse, pmse_ratio
from understudy.schema import Schema

NUMBERS = Schema(columns={name: {"kind": "real", "low": -10, "high": 10} for name in "abcd"})


def normal(rows: int, seed: int, shift: float = 0.0, correlation: float = 0.0) -> pd.DataFrame:
    values = np.random.default_rng(seed).normal(size=(rows, 4)) + shift
    values[:, 1] = correlation * values[:, 0] + (1 - correlation**2) ** 0.5 * values[:, 1]
    return pd.DataFrame(values, columns=list("abcd"))


def test_logistic_fit_is_the_maximum_likelihood_fit():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    rows = np.column_stack([rows, rows[:, 0] + rows[:, 1], np.ones(400)])  # a dependent column and a constant
    truth = (rng.random(400) < 1 / (1 + np.exp(-rows[:, 0] + 0.5 * rows[:, 1]))).astype(float)
    found, rank = fit_probabilities(rows, truth)
    expected = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(rows[:, :3], truth)
    assert rank == 3
    np.testing.assert_allclose(found, expected.predict_proba(rows[:, :3])[:, 1], atol=1e-5)


def test_separated_tables_end_at_the_worst_value():
    result = pmse(normal(200, 0), normal(200, 1, shift=5.0), NUMBERS)
    assert result.value == pytest.approx(0.25, abs=1e-3)
    assert result.range[1] == pytest.approx(0.25)


def test_the_null_expectation_is_right_for_fresh_rows_of_any_share():
    """Mean ratio 1 over many fresh pairs; half of it or twice as much would be seen."""
    for rows in (200, 800):
        ratios = [pmse_ratio(normal(400, 2 * seed), normal(rows, 2 * seed + 1), NUMBERS).value for seed in range(60)]
        # The ratio is chi-squared with 4 degrees over 4: its mean over 60 has a standard error of 0.09.
        assert 0.7 < np.mean(ratios) < 1.3


def test_the_analytic_null_is_the_mean_over_permuted_origins():
    first, second = normal(150, 0), normal(300, 1, shift=0.3)
    both = pd.concat([first, second], ignore_index=True)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        order = rng.permutation(len(both))
        found.append(pmse(both.iloc[order[:150]], both.iloc[order[150:]], NUMBERS).value)
    expected = pmse_ratio(first, second, NUMBERS).details["expected"]
    assert np.mean(found) == pytest.approx(expected, rel=0.35)


def test_trees_see_what_main_effects_cannot():
    real, other = normal(1500, 0), normal(1500, 1, correlation=0.9)
    fresh = normal(1500, 2)
    linear = pmse_ratio(real, other, NUMBERS, holdout=fresh)
    tree = pmse_ratio(real, other, NUMBERS, holdout=fresh, model="tree", permutations=5)
    assert linear.value < 4
    assert tree.value > 1.3
    assert tree.reference == pytest.approx(1.0, abs=0.2)


def test_nothing_that_varies_has_no_ratio():
    schema = Schema(columns={"x": {"kind": "categorical", "values": ["a"]}})
    frame = pd.DataFrame({"x": ["a"] * 50})
    for model in ("logistic", "tree"):
        result = pmse_ratio(frame, frame, schema, model=model)
        assert result.value is None
        assert "varies" in result.undefined
    assert pmse(frame, frame, schema).value == 0.0
    with pytest.raises(OptionError, match="model must be logistic or tree"):
        pmse_ratio(frame, frame, schema, model="forest")


def test_c2st_is_half_for_fresh_rows_and_one_for_strangers():
    real, fresh = normal(600, 0), normal(600, 1)
    same = c2st(real, normal(600, 2), NUMBERS, holdout=fresh)
    assert same.value == pytest.approx(0.5, abs=0.08)
    assert same.reference == pytest.approx(0.5, abs=0.08)
    strange = c2st(real, normal(600, 2).assign(c=9.0), NUMBERS, holdout=fresh)
    assert strange.value > 0.99
    assert max(strange.details["importance"], key=strange.details["importance"].get) == "c"


def test_c2st_without_holdout_rows_says_so():
    result = c2st(normal(100, 0), normal(100, 1), NUMBERS)
    assert "without holdout rows" in result.notes[0]
    few = c2st(normal(4, 0), normal(100, 1), NUMBERS)
    assert few.value is None
    assert "at least 6 rows" in few.undefined
