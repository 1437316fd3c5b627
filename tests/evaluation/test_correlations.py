import numpy as np
import pandas as pd
import pytest
from scipy import stats

from understudy.evaluation.correlations import (
    _dense,
    corrected_ratios,
    corrected_v,
    correlation_ratio,
    cramers_v,
    pairwise_correlations,
    spearman,
)
from understudy.evaluation.projection import pca_marginal
from understudy.schema import Schema

NUMBERS = Schema(columns={name: {"kind": "real", "low": -10, "high": 10, "missing": True} for name in "xy"})


def pair(correlation: float, rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, rows))
    return pd.DataFrame({"x": x, "y": correlation * x + (1 - correlation**2) ** 0.5 * noise})


def test_spearman_difference_is_scipys():
    real, other = pair(0.8, 300, 0), pair(-0.2, 200, 1)
    expected = [stats.spearmanr(frame.x, frame.y).statistic for frame in (real, other)]
    result = spearman(real, other, NUMBERS)
    assert result.value == pytest.approx(abs(expected[0] - expected[1]), abs=1e-5)
    assert result.details["worst"][0]["real"] == pytest.approx(expected[0], abs=1e-5)


def test_pairwise_correlations_skip_missing_cells():
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(100, 3))
    columns[:, 2] += columns[:, 0]
    columns[::7, 0] = np.nan
    columns[::5, 2] = np.nan
    expected = pd.DataFrame(columns).corr().to_numpy()
    np.testing.assert_allclose(pairwise_correlations(columns), expected, atol=1e-12)


def test_a_constant_column_has_no_correlation_and_says_so():
    real = pair(0.5, 50, 0)
    result = spearman(real, real.assign(y=1.0), NUMBERS)
    assert result.value is None
    assert "varies" in result.undefined
    assert set(result.undefined_columns) == {"x", "y"}


def test_corrected_v_is_bergsmas():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 3, 400), rng.integers(0, 4, 400)
    left = np.where(rng.random(400) < 0.3, right % 3, left)
    table = pd.crosstab(left, right).to_numpy()
    phi2 = stats.contingency.chi2_contingency(table, correction=False).statistic / 400
    rows, columns = 3 - 4 / 399, 4 - 9 / 399
    expected = np.sqrt(max(0, phi2 - 6 / 399) / (min(rows, columns) - 1))
    assert corrected_v(_dense(left), _dense(right)) == pytest.approx(expected)


def test_corrections_make_short_samples_agree_with_long_ones():
    """Without them, independent columns look associated in short samples, and two lengths disagree."""
    rng = np.random.default_rng(0)
    short = [corrected_v(_dense(rng.integers(0, 20, 500)), _dense(rng.integers(0, 20, 500))) for _ in range(20)]
    assert np.mean(short) < 0.05  # uncorrected: sqrt(361 / 500 / 19) = 0.19
    ratios = [corrected_ratios(rng.normal(size=(500, 1)), rng.integers(0, 50, 500))[0] for _ in range(20)]
    assert np.mean(ratios) < 0.12  # uncorrected: sqrt(49 / 499) = 0.31


def test_correlation_ratio_is_that_of_group_means():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 200)
    values = rng.normal(size=(200, 2)) + codes[:, None]
    values[::9, 1] = np.nan
    for at, found in enumerate(corrected_ratios(values, codes)):
        kept = ~np.isnan(values[:, at])
        groups = [values[kept & (codes == code), at] for code in range(4)]
        within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (kept.sum() - 4)
        assert found == pytest.approx(np.sqrt(1 - within / values[kept, at].var(ddof=1)))


def test_mixed_and_categorical_associations_see_their_loss(real, schema, shuffle_cells):
    for metric in (cramers_v, correlation_ratio):
        assert metric(real, shuffle_cells(real, 0), schema).value > 0.01


def test_pca_marginal_moves_with_the_table():
    real = pair(0.5, 2000, 0)
    near, far = pca_marginal(real, real + 0.1, NUMBERS), pca_marginal(real, real + 1.0, NUMBERS)
    assert 0 < near.value < far.value
    # A shift by one standard deviation in both columns, along the main direction, seen from all sides.
    assert far.value == pytest.approx(np.sqrt(2) * (2 / np.pi) / np.sqrt(2), rel=0.1)


def test_pca_marginal_gives_points_for_two_plots(real, synthetic, schema):
    result = pca_marginal(real, synthetic, schema, points=50)
    assert np.asarray(result.details["real_points"]).shape == (50, 2)
    assert np.asarray(result.details["synthetic_points"]).shape == (50, 2)
    assert 0 < sum(result.details["explained"]) <= 1
