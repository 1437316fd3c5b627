import dataclasses
import json
from threading import Event
from time import sleep

import pandas as pd
import pytest

from understudy.errors import OptionError
from understudy.evaluation import Evaluation, MetricResult, evaluate
from understudy.evaluation.parallel import run
from understudy.evaluation.suite import REGISTRY
from understudy.evaluation.telling_apart import c2st

SCALE = {"family": "f", "direction": "lower", "ideal": 0.0, "range": (0.0, 1.0)}


@pytest.fixture(scope="module")
def fast(real, synthetic, schema, holdout):
    return evaluate(real, synthetic, schema, holdout=holdout, by="degree")


def test_fast_set(fast):
    names = [result.name for result in fast]
    assert names == [name for name in REGISTRY if name in names]
    assert {"tvd_2way", "c2st", "train_on_synthetic", "exact_copies", "subgroup_scores"} <= set(names)
    assert fast.rows == {"real": 400, "synthetic": 360, "holdout": 300}
    assert fast["tvd_2way"].value is not None
    with pytest.raises(KeyError, match="no metric 'nothing'"):
        fast["nothing"]


def test_table_has_a_row_a_metric(fast):
    table = fast.table()
    assert list(table.metric) == [result.name for result in fast]
    assert table.value.dtype == "float64"
    assert table.value.isna().sum() == (table.undefined != "").sum() == 0


def test_json_is_strict_and_complete(fast):
    plain = json.loads(fast.to_json(), parse_constant=lambda word: pytest.fail(f"{word} in JSON"))
    assert [record["name"] for record in plain["results"]] == [result.name for result in fast]
    assert plain["results"][0]["reference"] == fast.results[0].reference
    assert "outside the differential privacy guarantee" in plain["notes"][0]


def test_weakest_is_ordered_by_shortfall(fast):
    weakest = fast.weakest(3)
    shortfalls = sorted((result.shortfall for result in fast), reverse=True)
    assert [result.shortfall for result in weakest] == shortfalls[:3]


def test_html_shows_every_metric_and_escapes_names(fast):
    html = fast._repr_html_()
    assert all(f"<td>{result.name}</td>" in html for result in fast)
    evil = MetricResult(name="m", value=0.5, per_column={"<script>": 0.5}, **SCALE)
    shown = Evaluation((evil,), {"real": 1, "synthetic": 1}, "fast", 0)._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown


def test_without_holdout_rows_the_notes_say_what_is_missing(real, synthetic, schema):
    found = evaluate(real, synthetic, schema, jobs=1)
    assert any("No holdout rows" in note for note in found.notes)
    assert found["train_on_synthetic"].value is None
    assert found.table().reference.isna().all()
    assert "undefined: no holdout rows" in found._repr_html_()


def test_the_same_seed_gives_the_same_numbers_on_any_number_of_jobs(fast, real, synthetic, schema, holdout):
    again = evaluate(real, synthetic, schema, holdout=holdout, by="degree", jobs=1)
    assert again.results == fast.results
    assert c2st(real, synthetic, schema, holdout=holdout, seed=1, folds=2).value != fast["c2st"].value


def test_full_set_has_every_metric_that_needs_no_choice(real, synthetic, schema, holdout):
    stages = []
    found = evaluate(
        real,
        synthetic,
        schema,
        holdout=holdout,
        which="full",
        progress=lambda stage, done, note="": stages.append(stage),
    )
    left_out = set(REGISTRY) - {result.name for result in found}
    assert left_out == {"subgroup_scores", "gaussians_quality"}
    assert all(result.value is not None for result in found)
    assert len(found["train_on_synthetic"].details["models"]) >= 11
    assert found["ranking_agreement"].reference is not None
    assert {"metrics", "every column", "train on synthetic, test on real"} <= set(stages)


@pytest.mark.parametrize(
    ("option", "value", "match"),
    [("which", "slow", "which must be fast or full"), ("jobs", 0, "jobs must be"), ("by", "age", "by must be")],
)
def test_wrong_options_are_named(option, value, match, real, synthetic, schema):
    with pytest.raises(OptionError, match=match):
        evaluate(real, synthetic, schema, **{option: value})


def test_libraries_get_their_threads_back_when_tasks_overlap():
    """The first task ends while the second, which began later, still runs: neither may restore the other's limit."""
    import sklearn  # noqa: F401  so that its libraries are among those looked at
    from threadpoolctl import threadpool_info, threadpool_limits

    second_began, first_ended = Event(), Event()

    def first() -> int:
        second_began.wait(10)
        return max(info["num_threads"] for info in threadpool_info())

    def second() -> int:
        second_began.set()
        first_ended.wait(10)
        return max(info["num_threads"] for info in threadpool_info())

    def told(stage: str, done: float, note: str = "") -> None:
        first_ended.set()

    with threadpool_limits(3):
        before = [info["num_threads"] for info in threadpool_info()]
        assert run([(first, ()), (second, ())], jobs=2, progress=told) == [1, 1]
        assert [info["num_threads"] for info in threadpool_info()] == before


def test_an_error_in_a_task_is_raised_and_the_rest_is_not_begun():
    begun = []

    def fails() -> None:
        raise OptionError("told")

    def slow(at: int) -> None:
        begun.append(at)
        sleep(0.02)

    with pytest.raises(OptionError, match="told"):
        run([(fails, ()), *[(slow, (at,)) for at in range(50)]], jobs=1)
    assert len(begun) < 50


def test_a_result_is_a_number_or_a_reason():
    for wrong in ({"value": None}, {"value": 0.5, "undefined": "why"}, {"value": float("nan")}):
        with pytest.raises(ValueError, match="reason"):
            MetricResult(name="m", **SCALE, **wrong)
    with pytest.raises(dataclasses.FrozenInstanceError):
        MetricResult(name="m", value=0.5, **SCALE).value = 0.1


@pytest.mark.parametrize(
    ("direction", "ideal", "ends", "value", "reference", "expected"),
    [
        ("lower", 0.0, (0.0, 1.0), 0.4, 0.1, 0.3),
        ("lower", 0.0, (0.0, 1.0), 0.1, 0.4, 0.0),
        ("lower", 0.5, (0.0, 1.0), 0.75, None, 0.5),
        ("lower", 0.5, (0.0, 1.0), 0.3, None, 0.0),
        ("higher", 1.0, (0.0, 1.0), 0.6, 0.9, 0.3),
        ("target", 0.5, (0.0, 1.0), 0.25, None, 0.5),
        ("lower", 0.0, (0.0, float("inf")), 3.0, 1.0, 0.25),
    ],
)
def test_shortfall(direction, ideal, ends, value, reference, expected):
    result = MetricResult(
        name="m", family="f", direction=direction, ideal=ideal, range=ends, value=value, reference=reference
    )
    assert result.shortfall == pytest.approx(expected)


def test_worst_columns_come_first():
    result = MetricResult(name="m", value=0.5, per_column={"a": 0.1, "b": 0.9, "c": 0.9}, **SCALE)
    assert result.worst_columns(2) == ("b", "c")


def test_evaluation_is_frozen(fast):
    with pytest.raises(dataclasses.FrozenInstanceError):
        fast.seed = 1
    assert isinstance(fast.table(), pd.DataFrame)
