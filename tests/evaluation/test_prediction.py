import numpy as np
import pandas as pd
import pytest
from scipy import stats

from understudy.errors import OptionError
from understudy.evaluation import models
from understudy.evaluation.dimension_wise import dimension_wise_prediction
from understudy.evaluation.models import CLASSIFIERS, REGRESSORS, classification_scores, classify, regress
from understudy.evaluation.prediction import score_label, train_on_synthetic
from understudy.evaluation.ranking import kendall_tau, ranking_agreement
from understudy.evaluation.regression import coefficient_overlap, regression_similarity
from understudy.evaluation.subgroups import subgroup_scores
from understudy.schema import Schema

QUICK = ("logistic_regression", "decision_tree")


def separable(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    return (np.eye(3)[labels] * 4 + rng.normal(size=(rows, 3))).astype(np.float32), labels


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "xgboost"])
def test_every_classifier_learns(name):
    rows, labels = separable(300, 0)
    test, truth = separable(100, 1)
    found = classify(name, rows, labels, test, 3, seed=0)
    assert classification_scores(truth, found.scores, positive=None)["roc_auc"] > (0.9 if name != "adaboost" else 0.8)


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_learns(name):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 3)).astype(np.float32)
    target = rows[:, 0] * 3 + 7
    found = regress(name, rows[:500], target[:500], rows[500:], seed=0)
    assert np.corrcoef(found.scores, target[500:])[0, 1] > 0.8


def test_a_model_that_is_not_installed_is_named_and_left_out(monkeypatch, real, synthetic, schema, holdout):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    result = train_on_synthetic(real, synthetic, schema, holdout=holdout, models=("xgboost", "decision_tree"))
    assert result.value is not None
    assert "not installed" in result.details["undefined_models"]["xgboost"]
    assert any("not installed" in note for note in result.notes)
    alone = train_on_synthetic(real, synthetic, schema, holdout=holdout, models=("xgboost",))
    assert alone.value is None
    assert alone.undefined == "no model could be trained"


def test_classes_that_training_rows_lack_rank_last():
    rows, labels = separable(200, 0)
    test, truth = separable(100, 1)
    kept = labels != 2
    found = classify("logistic_regression", rows[kept], labels[kept], test, 3, seed=0)
    assert (found.scores[:, 2] < found.scores[:, :2].min()).all()
    assert 0 < classification_scores(truth, found.scores, positive=None)["roc_auc"] < 1


def test_scores_stand_beside_those_of_real_rows(real, synthetic, schema, holdout):
    result = train_on_synthetic(real, synthetic, schema, holdout=holdout, models=QUICK)
    by_model = result.details["models"]
    assert set(by_model) == set(QUICK)
    assert set(by_model["decision_tree"]["real"]) == {"roc_auc", "pr_auc", "f1", "accuracy"}
    assert result.value == pytest.approx(np.mean([by_model[name]["synthetic"]["roc_auc"] for name in QUICK]))
    assert result.reference == pytest.approx(np.mean([by_model[name]["real"]["roc_auc"] for name in QUICK]))


def test_a_label_that_lies_costs_score(real, schema, holdout):
    wrong = real.assign(sick=~real.sick)
    result = train_on_synthetic(real, wrong, schema, holdout=holdout, models=QUICK)
    assert result.value < 0.5 < result.reference


@pytest.mark.parametrize("who", ["synthetic", "real", "holdout"])
def test_one_class_only_is_undefined_with_a_reason(who, real, synthetic, schema, holdout):
    tables = {"real": real, "synthetic": synthetic, "holdout": holdout}
    tables[who] = tables[who].assign(sick=True)
    arguments = (tables["real"], tables["synthetic"], schema)
    for metric in (train_on_synthetic, ranking_agreement):
        result = metric(*arguments, holdout=tables["holdout"], models=("decision_tree", "lda", "gaussian_naive_bayes"))
        assert result.value is None
        assert result.undefined == f"the {who} label has one class only"
    beside = subgroup_scores(*arguments, holdout=tables["holdout"], models=QUICK, by="degree")
    assert beside.value is None
    assert "one class only" in beside.undefined


def test_without_a_label_the_reason_says_what_to_do(real, synthetic, schema, holdout):
    plain = schema.model_copy(update={"label": None})
    result = train_on_synthetic(real, synthetic, plain, holdout=holdout)
    assert result.value is None
    assert "label" in result.undefined
    named = train_on_synthetic(real, synthetic, plain, holdout=holdout, label="sick", models=QUICK)
    assert named.value is not None
    with pytest.raises(OptionError, match="label must be a modelled column"):
        train_on_synthetic(real, synthetic, plain, holdout=holdout, label="patient")


def test_a_numeric_label_is_regressed(real, synthetic, schema, holdout, shuffle_cells):
    options = {"holdout": holdout, "label": "wage", "models": ("ridge", "random_forest")}
    good = train_on_synthetic(real, synthetic, schema, **options)
    bad = train_on_synthetic(real, shuffle_cells(real, 0), schema, **options)
    assert set(good.details["models"]["ridge"]["real"]) == {"r2", "rmse"}
    assert good.reference > 0.5
    assert bad.value < 0.1 < good.value


def test_unknown_models_are_refused(real, synthetic, schema, holdout):
    with pytest.raises(OptionError, match=r"models must be among .*got 'oracle'"):
        train_on_synthetic(real, synthetic, schema, holdout=holdout, models=("oracle",))


def test_rows_are_capped(real, synthetic, schema, holdout):
    found = score_label(real, synthetic, schema, holdout=holdout, models=("decision_tree",), rows=50, test_rows=40)
    assert found.facts["rows"] == {"real": 50, "synthetic": 50, "test": 40}


def test_two_jobs_give_what_one_gives(real, synthetic, schema, holdout):
    options = {"holdout": holdout, "models": (*QUICK, "mlp", "bagging")}
    one, two = (train_on_synthetic(real, synthetic, schema, jobs=jobs, **options) for jobs in (1, 2))
    assert one == two


def test_kendall_tau_is_scipys():
    rng = np.random.default_rng(0)
    for _ in range(10):
        left, right = rng.integers(0, 5, (2, 12))
        assert kendall_tau(left, right) == pytest.approx(stats.kendalltau(left, right).statistic)
    assert kendall_tau(np.ones(4), np.arange(4)) is None


def test_a_ranking_needs_three_models(real, synthetic, schema, holdout):
    result = ranking_agreement(real, synthetic, schema, holdout=holdout, models=QUICK)
    assert result.value is None
    assert "at least 3 models" in result.undefined


def test_subgroups_are_scored_apart(real, synthetic, schema, holdout):
    """Labels that are right for one group and wrong for the other show up in the group's score alone."""
    people = pd.concat([real, synthetic])
    harmed = people.assign(sick=people.sick ^ (people.degree == "college"))
    result = subgroup_scores(people, harmed, schema, holdout=holdout, models=("decision_tree",), by="degree")
    groups = result.details["groups"]
    assert groups["college"]["synthetic"] < groups["college"]["real"] - 0.1
    assert abs(groups["none"]["synthetic"] - groups["none"]["real"]) < 0.15
    assert result.value == min(group["synthetic"] for group in groups.values())
    with pytest.raises(OptionError, match="by must be a categorical"):
        subgroup_scores(real, synthetic, schema, holdout=holdout, by="age")


def test_dimension_wise_prediction_uses_the_right_score_and_flags_one_class(real, schema, holdout, shuffle_cells):
    flat = shuffle_cells(real, 0).assign(town="Bern")
    result = dimension_wise_prediction(
        real, flat, schema, holdout=holdout, columns=("sick", "town", "wage"), rows=300, test_rows=300
    )
    assert result.undefined_columns == {"town": "the synthetic column has one class only"}
    mine, theirs = result.details["points"]["wage"]
    assert mine > 0.5
    assert theirs < 0.1
    assert result.per_column["wage"] == pytest.approx(mine - theirs)
    assert result.details["thresholds"]["0.05"] == pytest.approx(result.value)


def test_sparse_columns_are_left_out_by_their_real_share():
    rng = np.random.default_rng(0)
    schema = Schema(columns={"a": {"kind": "boolean"}, "b": {"kind": "boolean"}, "rare": {"kind": "boolean"}})

    def table(rows: int, share: float) -> pd.DataFrame:
        a = rng.random(rows) < 0.5
        return pd.DataFrame({"a": a, "b": a ^ (rng.random(rows) < 0.1), "rare": rng.random(rows) < share})

    real, other, fresh = table(1000, 0.02), table(1000, 0.4), table(1000, 0.02)
    result = dimension_wise_prediction(real, other, schema, holdout=fresh)
    kept = np.mean([result.per_column["a"], result.per_column["b"]])
    assert result.details["thresholds"]["0.01"] == pytest.approx(result.value)
    assert result.details["thresholds"]["0.025"] == pytest.approx(kept)


def linear(rows: int, seed: int, slope: float = 2.0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x, z, noise = rng.normal(size=(3, rows))
    group = rng.integers(0, 3, rows)
    y = slope * x + 0.5 * z + group + noise
    return pd.DataFrame({"y": y, "x": x, "z": z, "group": group, "w": rng.normal(size=rows)})


LINEAR = Schema(
    label="y",
    columns={
        **{name: {"kind": "real", "low": -50, "high": 50} for name in ("y", "x", "z", "w")},
        "group": {"kind": "categorical", "values": [0, 1, 2]},
    },
)


def test_regression_similarity_matches_least_squares():
    real, other, fresh = linear(300, 0), linear(200, 1, slope=1.0), linear(400, 2)
    result = regression_similarity(real, other, LINEAR, holdout=fresh)
    assert len(result.details["models"]) == 4

    def rmse(train: pd.DataFrame) -> float:
        columns = [np.ones(len(train)), train.x, train.z, train.w]
        weights = np.linalg.lstsq(np.column_stack(columns), train.y, rcond=None)[0]
        test = np.column_stack([np.ones(len(fresh)), fresh.x, fresh.z, fresh.w])
        return float(np.sqrt(((fresh.y - test @ weights) ** 2).mean())) / 100

    (model,) = (m for m in result.details["models"] if set(m["regressors"]) == {"x", "z", "w"})
    assert model["real"] == pytest.approx(rmse(real), rel=1e-4)
    assert model["other"] == pytest.approx(rmse(other), rel=1e-4)
    assert result.value > 5 * result.reference


def test_coefficients_of_fresh_rows_overlap_and_wrong_ones_do_not():
    result = coefficient_overlap(linear(2000, 0), linear(2000, 1, slope=1.0), LINEAR, holdout=linear(2000, 2))
    assert result.per_column["x"] == 0.0
    assert result.per_column["w"] > 0.3
    assert result.reference > 0.4


def test_confidence_intervals_are_those_of_least_squares():
    from understudy.evaluation.inputs import open_table
    from understudy.evaluation.regression import _Design

    frame = linear(150, 3)
    view = open_table(frame, LINEAR, role="real")
    design = _Design.of(view, "y")
    found = design.products(view).intervals()
    matrix = np.column_stack(
        [np.ones(150), *(frame[name] / 100 + 0.5 for name in "xzw"), *(frame.group == group for group in (1, 2))]
    ).astype(float)
    inverse = np.linalg.inv(matrix.T @ matrix)
    target = frame.y / 100 + 0.5
    weights = inverse @ matrix.T @ target
    error = ((target - matrix @ weights) ** 2).sum() / (150 - 6)
    at = design.columns["x"][0]
    spread = 1.96 * np.sqrt(error * inverse[1, 1])
    assert found[at] == pytest.approx((weights[1] - spread, weights[1] + spread), rel=1e-4)


def test_a_target_must_be_numeric(real, synthetic, schema, holdout):
    with pytest.raises(OptionError, match="target must be a numeric column"):
        regression_similarity(real, synthetic, schema, holdout=holdout, target="town")
    words = Schema(columns={"town": schema.columns["town"]})
    assert "no numeric column" in regression_similarity(real, synthetic, words, holdout=holdout).undefined
