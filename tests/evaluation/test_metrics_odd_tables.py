"""Tables that nobody would draw up and everybody meets: no metric may crash, or give a number without a meaning."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from understudy.evaluation import evaluate
from understudy.evaluation.suite import REGISTRY
from understudy.schema import Schema

MODEL_METRICS = (
    "dimension_wise_prediction",
    "pmse_ratio_tree",
    "c2st",
    "classifier_score",
    "train_on_synthetic",
    "ranking_agreement",
    "subgroup_scores",
)
COUNTING = [name for name in REGISTRY if name not in MODEL_METRICS]
OPTIONS = {
    "tvd_1way": {"order": 1},
    "tvd_2way": {"order": 2},
    "tvd_3way": {"order": 3},
    "pmse_ratio_tree": {"model": "tree", "permutations": 2},
    "train_on_synthetic": {"models": ("gaussian_naive_bayes", "decision_tree")},
    "ranking_agreement": {"models": ("gaussian_naive_bayes", "bernoulli_naive_bayes", "decision_tree")},
    "subgroup_scores": {"models": ("decision_tree",), "by": "label"},
}

# Facts of a column, and a function from a random generator and a number of rows to its cells.
KINDS = {
    "one category": ({"kind": "categorical", "values": ["only"]}, lambda rng, n: ["only"] * n),
    "unicode": (
        {"kind": "categorical", "values": ["é", "日本", "🙂", "a b", ""], "missing": True},
        lambda rng, n: rng.choice(["é", "日本", "🙂", "a b"], n).tolist(),
    ),
    "all missing number": (
        {"kind": "real", "low": 0, "high": 1, "missing": True},
        lambda rng, n: [None] * n,
    ),
    "all missing category": (
        {"kind": "categorical", "values": ["x", "y"], "missing": True},
        lambda rng, n: [None] * n,
    ),
    "constant": ({"kind": "integer", "low": 0, "high": 9}, lambda rng, n: [7] * n),
    "huge": (
        {"kind": "integer", "low": -(2**62), "high": 2**62},
        lambda rng, n: [int(value) for value in rng.integers(-(2**62), 2**62, n)],
    ),
    "beyond": (
        {"kind": "real", "low": 0, "high": 1, "missing": True},
        lambda rng, n: rng.normal(0, 1e6, n).tolist(),
    ),
    "sparse number": (
        {"kind": "real", "low": -1, "high": 1, "missing": True},
        lambda rng, n: [None if rng.random() < 0.7 else float(rng.uniform(-1, 1)) for _ in range(n)],
    ),
    "flag": ({"kind": "boolean", "missing": True}, lambda rng, n: rng.choice([True, False, None], n).tolist()),
    "day": (
        {"kind": "datetime", "low": "2000-01-01", "high": "2000-12-31", "resolution": "day"},
        lambda rng, n: [pd.Timestamp("2000-01-01") + pd.Timedelta(days=int(d)) for d in rng.integers(0, 366, n)],
    ),
}


@st.composite
def odd_tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=0, max_size=4))
    columns = {f"{at} {kind}": KINDS[kind] for at, kind in enumerate(kinds)}
    columns["label"] = ({"kind": "categorical", "values": ["p", "q"]}, None)
    schema = Schema(label="label", columns={name: facts for name, (facts, _) in columns.items()})
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def table() -> pd.DataFrame:
        rows = draw(st.sampled_from([1, 2, 3, 8, 40, 100]))
        classes = draw(st.sampled_from([["p"], ["q"], ["p", "q"]]))
        cells = {name: make(rng, rows) for name, (_, make) in columns.items() if make is not None}
        return pd.DataFrame({**cells, "label": rng.choice(classes, rows)})

    return schema, table(), table(), draw(st.sampled_from([None, 1])) and table()


def check(names, case):
    schema, real, synthetic, holdout = case
    for name in names:
        result = REGISTRY[name].metric(real, synthetic, schema, holdout=holdout, **OPTIONS.get(name, {}))
        for number, reason in (
            (result.value, result.undefined),
            (result.reference, result.reference_undefined),
        ):
            assert (number is None) != (reason is None), name
            if number is not None:
                assert math.isfinite(number), name
                assert result.range[0] - 1e-9 <= number <= result.range[1] + 1e-9, (name, number)
            else:
                assert len(reason) > 10, name
        if holdout is None:
            assert result.reference is None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_tables())
def test_counting_metrics_give_a_number_or_a_reason(case):
    check(COUNTING, case)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd_tables())
def test_model_metrics_give_a_number_or_a_reason(case):
    check(MODEL_METRICS, case)


def test_three_hundred_columns():
    rng = np.random.default_rng(0)
    names = [f"c{at}" for at in range(300)]
    half = {name: {"kind": "boolean"} for name in names[:150]}
    schema = Schema(label="c0", columns={**half, **{n: {"kind": "real", "low": -9, "high": 9} for n in names[150:]}})

    def table(rows: int) -> pd.DataFrame:
        flags = rng.random((rows, 150)) < 0.3
        columns = [*flags.T, *rng.normal(size=(150, rows))]
        return pd.DataFrame(dict(zip(names, columns, strict=True)))

    found = evaluate(table(80), table(70), schema, holdout=table(60), jobs=1)
    assert all(result.value is not None for result in found)
    assert "5000 of 44850 sets" in found["tvd_2way"].notes[0]
    assert "200 of 4455100 sets" in found["tvd_3way"].notes[0]


def test_new_categories_everywhere(real, synthetic, schema, holdout):
    strange = synthetic.assign(town="Atlantis", degree="doctor", sick="perhaps", smoker="sometimes")
    found = evaluate(real, strange, schema, holdout=holdout, jobs=1)
    assert found.outside["synthetic"] == dict.fromkeys(("town", "degree", "sick", "smoker"), len(strange))
    assert found["train_on_synthetic"].undefined == "no synthetic row has a label"
    assert found["lost_categories"].value == 1.0
    assert found["c2st"].value > 0.95


@pytest.mark.parametrize("rows", [1, 2])
def test_tables_of_a_row_or_two(rows, real, synthetic, schema):
    for which in ("fast", "full"):
        found = evaluate(real.iloc[:rows], synthetic.iloc[:rows], schema, holdout=real.iloc[:rows], which=which, jobs=1)
        for result in found:
            assert (result.value is None) == (result.undefined is not None)
