"""What every metric must do, whatever it measures."""

import json
import math

import pandas as pd
import pytest

from understudy.evaluation.result import NO_HOLDOUT
from understudy.evaluation.suite import REGISTRY

QUICK_MODELS = ("logistic_regression", "gaussian_naive_bayes", "decision_tree")
OPTIONS = {
    "tvd_1way": {"order": 1},
    "tvd_2way": {"order": 2},
    "tvd_3way": {"order": 3},
    "nist_3way": {"sets": 20},
    "dimension_wise_prediction": {"columns": ("age", "town", "sick"), "rows": 300},
    "pmse_ratio_tree": {"model": "tree", "permutations": 5},
    "c2st": {"folds": 2},
    "train_on_synthetic": {"models": QUICK_MODELS},
    "ranking_agreement": {"models": QUICK_MODELS},
    "subgroup_scores": {"models": QUICK_MODELS, "by": "degree"},
    "gaussians_quality": {"columns": ("age", "weight"), "modes": [(30, 60), (60, 80)], "variance": 20.0},
}

# A copy of the real rows is the best table there is for these, and the worst for the metrics of disclosure.
ALARMS = {"exact_copies": 1.0, "dcr_share": 1.0, "membership_inference": 0.9, "attribute_inference": 0.3}
AS_REAL = ("train_on_synthetic", "subgroup_scores")
NEED_HOLDOUT = (
    "dimension_wise_prediction",
    "regression_similarity",
    "dcr_share",
    "membership_inference",
    "attribute_inference",
    "train_on_synthetic",
    "ranking_agreement",
    "subgroup_scores",
)

every_metric = pytest.mark.parametrize("name", list(REGISTRY))


def measure(name, real, synthetic, schema, holdout):
    return REGISTRY[name].metric(real, synthetic, schema, holdout=holdout, **OPTIONS.get(name, {}))


@pytest.fixture(scope="module")
def usual(real, synthetic, schema, holdout):
    """Each metric once on the same tables, and proof that it left them alone."""
    known = {}

    def result(name):
        if name not in known:
            before = [frame.copy(deep=True) for frame in (real, synthetic, holdout)]
            known[name] = measure(name, real, synthetic, schema, holdout)
            for frame, copy in zip((real, synthetic, holdout), before, strict=True):
                pd.testing.assert_frame_equal(frame, copy)
        return known[name]

    return result


@every_metric
def test_a_result_has_value_reference_range_and_name(name, usual):
    result = usual(name)
    assert result.name == name
    assert result.value is not None
    assert result.reference is not None
    for number in (result.value, result.reference, *result.per_column.values()):
        assert math.isfinite(number)
        assert result.range[0] - 1e-9 <= number <= result.range[1] + 1e-9
    assert 0.0 <= result.shortfall <= 1.0
    json.dumps(result.to_dict(), allow_nan=False)


@every_metric
def test_a_copy_of_the_real_rows_scores_ideally_or_raises_the_alarm(name, real, schema, holdout):
    # Twins meet twins in the two-sample test only if there are no other rows.
    result = measure(name, real, real.copy(), schema, None if name == "c2st" else holdout)
    if name in ALARMS:
        assert result.value >= ALARMS[name] - 1e-12
        assert result.shortfall > 0.2
    elif name in AS_REAL:
        assert result.value == result.reference
    else:
        assert result.value == pytest.approx(result.ideal, abs=1e-9)


@every_metric
def test_the_order_of_rows_and_columns_does_not_matter(name, usual, real, synthetic, schema, holdout):
    tables = [frame.sample(frac=1, random_state=9).iloc[:, ::-1] for frame in (real, synthetic, holdout)]
    tables = [frame.reset_index(drop=True) for frame in tables]
    again = measure(name, tables[0], tables[1], schema, tables[2])
    expected = usual(name)
    assert again.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12)
    assert again.reference == pytest.approx(expected.reference, rel=1e-9, abs=1e-12)
    assert dict(again.per_column) == pytest.approx(dict(expected.per_column), rel=1e-9, abs=1e-12)


@every_metric
def test_without_holdout_rows_the_reference_says_what_is_missing(name, real, synthetic, schema):
    result = measure(name, real, synthetic, schema, None)
    assert result.reference is None
    assert result.reference_undefined == NO_HOLDOUT
    assert (result.undefined == NO_HOLDOUT) == (name in NEED_HOLDOUT)


# Metrics of one column at a time, of main effects, of how sure a classifier is, of copies, and a ranking of three
# models, which may agree by chance.
BLIND_TO_ASSOCIATIONS = (
    "tvd_1way",
    "wasserstein",
    "jsd",
    "mu_kl",
    "dimension_wise_probability",
    "lost_categories",
    "pmse",
    "pmse_ratio_logistic",
    "classifier_score",
    "exact_copies",
    "dcr_share",
    "membership_inference",
    "attribute_inference",
    "ranking_agreement",
)


@pytest.mark.parametrize("name", [name for name in REGISTRY if name not in BLIND_TO_ASSOCIATIONS])
def test_shuffled_cells_fall_short_of_fresh_rows(name, schema, make_people, shuffle_cells):
    rows = 20_000 if name == "nist_3way" else 3000  # a million cells need rows before they say anything
    real = make_people(rows, 1)
    result = measure(name, real, shuffle_cells(real, 7), schema, make_people(rows, 2))
    assert result.shortfall > 0.005
