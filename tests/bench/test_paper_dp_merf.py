"""The DP-MERF paper's tasks are made as its code makes them, its figures are read, and what falls short is told."""

import json
from concurrent.futures import ThreadPoolExecutor
from math import inf

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from bench.cells import Record
from bench.datasets import SETTING, Dataset
from bench.papers import dp_merf, dp_merf_images, dp_merf_judge, dp_merf_pages, dp_merf_published, dp_merf_tasks
from bench.papers.dp_merf_tasks import RECIPES, Recipe, Task, adapted, thinned
from understudy import Schema

SCHEMA = Schema.loads("""
rows: 600
label: ill
columns:
  age: {kind: integer, low: 0, high: 120}
  size: {kind: categorical, values: [s, m, l]}
  ill: {kind: categorical, values: ["yes", "no"]}
""")


def people(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 121, rows).astype(float)
    ill = np.where(age + rng.normal(0, 10, rows) > 90, "yes", "no")
    return pd.DataFrame({"age": age, "size": rng.choice(["s", "m", "l"], rows), "ill": ill})


def made_task() -> Task:
    return Task("adult", people(600, 1), people(400, 2), SCHEMA, "yes", "made up")


def cell(seed: int = 0, *, dataset="adult", method="dp-merf", epsilon="1", status="ok", **found) -> dict:
    key = {"dataset": dataset, "method": method, "epsilon": epsilon, "seed": seed}
    return {"key": key, "status": status, **found}


# The paper's figures


def test_every_line_of_the_paper_has_its_figure() -> None:
    for dataset in RECIPES:
        measures = [name for name in dp_merf_published.MEASURES if (name == "f1_weighted") == (dataset in FEW)]
        for measure in measures:
            for method, epsilon in (("real", ""), ("dp-merf", "1"), ("dp-merf", "inf"), ("dp-cgan", "1")):
                assert dp_merf_published.printed(dataset, method, epsilon, measure) is not None
    for dataset in dp_merf_images.NAMES:
        for epsilon in dp_merf_images.EPSILONS:
            for measure in dp_merf_published.IMAGE_MEASURES:
                assert dp_merf_published.printed(dataset, "dp-merf", f"{epsilon:g}", measure) is not None
    assert dp_merf_published.printed("intrusion", "dp-merf", "1", "f1_weighted") == 0.85
    assert dp_merf_published.printed("intrusion", "dp-merf", "1", "f1_macro") is None  # its F1 there is weighted
    assert dp_merf_published.printed("mnist", "dp-merf", "2.9", "accuracy") == 0.56
    assert dp_merf_published.printed_share("mnist", "dp-merf", "2.9", "accuracy") == pytest.approx(0.56 / 0.87)


FEW = ("covtype", "intrusion")  # more than two classes


# Tasks


def test_a_class_is_thinned_row_by_row() -> None:
    recipe = Recipe("x", "ill", 100, "", kept={"no": 0.25})
    frame = people(8000, 3)
    found = thinned(frame, recipe)
    before, after = frame["ill"].value_counts(), found["ill"].value_counts()
    assert after["yes"] == before["yes"]
    assert after["no"] == pytest.approx(0.25 * before["no"], rel=0.08)
    assert thinned(frame, recipe).equals(found)
    changed = thinned(frame.assign(size="s"), recipe)  # a row's coin depends on no cell but its own label
    assert changed["age"].equals(found["age"])


def test_coded_labels_are_thinned_in_any_spelling() -> None:
    recipe = Recipe("x", "y", 100, "", kept={"0": 0.0})
    for zero, one in ((0, 1), (0.0, 1.0), ("0", "1"), (False, True)):
        assert thinned(pd.DataFrame({"y": [zero, one, zero]}), recipe)["y"].tolist() == [one]


def test_the_attack_classes_are_those_of_the_task_page() -> None:
    frame = pd.DataFrame({"duration": range(5), "label": ["smurf", "normal", "spy", "rootkit", "nmap"]})
    found = RECIPES["intrusion"].relabel(frame)
    assert found["attack"].tolist() == ["dos", "normal", "r2l", "probe"]  # rootkit is U2R, which the paper leaves out
    assert "label" not in found


def test_vowels_and_seizures_become_the_label() -> None:
    letters = RECIPES["isolet"].relabel(pd.DataFrame({"f1": 0.0, "label": range(1, 27)}))
    assert [chr(64 + at) for at in 1 + np.flatnonzero(letters["vowel"])] == list("AEIOU")
    assert RECIPES["epileptic"].relabel(pd.DataFrame({"y": [1, 2, 5]}))["seizure"].tolist() == [1, 0, 0]


def test_every_recipe_has_a_schema_with_its_label() -> None:
    for name, recipe in RECIPES.items():
        plain_schema = Schema.load(dp_merf.ROOT / "bench" / "schemas" / f"{recipe.dataset}.yaml")
        schema = adapted(plain_schema, recipe)
        assert (schema.label, schema.rows) == (recipe.label, recipe.rows)
        assert not set(recipe.left_out) & set(schema.columns)
        task = Task(name, pd.DataFrame(), pd.DataFrame(), schema, recipe.positive, "")
        assert (task.positive_code is None) == (name in FEW)
        assert schema.unconfirmed() == [one for one in plain_schema.unconfirmed() if one[0] not in recipe.left_out]


def test_a_task_is_split_by_the_papers_share(monkeypatch, tmp_path) -> None:
    path = tmp_path / "s.yaml"
    SCHEMA.save(path)
    data = Dataset("x", people(300, 4), people(100, 5), path, "ill", "")
    monkeypatch.setattr(dp_merf_tasks, "load", lambda name: data)
    dp_merf_tasks.task.cache_clear()
    monkeypatch.setitem(RECIPES, "pooled", Recipe("x", "ill", 300, "", positive="yes", train_share=0.7))
    monkeypatch.setitem(RECIPES, "official", Recipe("x", "ill", 300, "", positive="yes"))
    monkeypatch.setitem(
        RECIPES, "first", Recipe("x", "ill", 300, "", positive="yes", train_share=0.7, train_file_only=True)
    )
    sizes = {name: dp_merf_tasks.task(name) for name in ("pooled", "official", "first")}
    assert {name: (len(one.train), len(one.test)) for name, one in sizes.items()} == {
        "pooled": (280, 120),
        "official": (300, 100),
        "first": (210, 90),
    }
    official = sizes["official"]
    assert official.base_rate == pytest.approx((data.test["ill"] == "yes").mean())
    assert official.positive_code == 0
    dp_merf_tasks.task.cache_clear()


# The judge


@pytest.fixture
def few(monkeypatch) -> None:
    """Three quick classifiers for the twelve."""
    names = ("logistic_regression", "decision_tree", "gaussian_naive_bayes")
    usual = dp_merf_judge.twelve.__kwdefaults__
    monkeypatch.setattr(dp_merf_judge.twelve, "__kwdefaults__", {**usual, "names": names})


@pytest.mark.usefixtures("few")
def test_the_judge_tells_good_rows_from_bad() -> None:
    task, good = made_task(), people(600, 6)
    bad = good.assign(ill=np.random.default_rng(0).permutation(good["ill"]))
    better, worse, flipped = (
        dp_merf_judge.judge_table(task, made)
        for made in (good, bad, good.assign(ill=good["ill"].map({"yes": "no", "no": "yes"})))
    )
    assert flipped["roc_auc"] < 0.2 < 0.9 < better["roc_auc"]
    assert flipped["decided_roc"] < 0.3 < worse["decided_roc"] < 0.6 < 0.8 < better["decided_roc"]
    assert worse["decided_pr"] < 0.4 < 0.6 < better["decided_pr"]
    assert (better["classifiers"], better["trained_on"], len(better["models"])) == (3, 600, 3)
    assert better["roc_auc"] == pytest.approx(np.mean([one["roc_auc"] for one in better["models"].values()]), abs=1e-3)


@pytest.mark.usefixtures("few")
def test_rows_with_one_class_are_no_result() -> None:
    found = dp_merf_judge.judge_table(made_task(), people(100, 7).assign(ill="no"))
    assert found["status"].startswith("no classifier could be trained: the training rows have one class")


def test_decided_areas_are_those_of_the_decision() -> None:
    truth = np.array([0, 0, 0, 1, 1])
    scores = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.6, 0.4]])
    found = dp_merf_judge.scored(truth, scores, 1)
    assert found["decided_roc"] == pytest.approx((2 / 3 + 1 / 2) / 2)  # the mean of the two classes' recalls
    assert found["roc_auc"] == pytest.approx(5 / 6)
    mirrored = dp_merf_judge.scored(1 - truth, scores[:, ::-1], 0)
    assert mirrored == pytest.approx(found)


def test_f1_of_many_classes_is_weighted_and_plain() -> None:
    truth = np.array([0, 0, 0, 1, 2])
    scores = np.eye(3)[[0, 0, 0, 0, 2]]
    found = dp_merf_judge.scored(truth, scores, None)
    each = np.array([6 / 7, 0.0, 1.0])
    assert found["f1_weighted"] == pytest.approx(each @ [0.6, 0.2, 0.2])
    assert found["f1_macro"] == pytest.approx(each.mean())
    assert found["accuracy"] == 0.8


# Images


def pictures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    images = rng.integers(0, 40, (count, 28, 28))
    images[np.arange(count), labels * 2, :] = 250  # a bright line tells the class
    return images.astype(np.uint8), labels


@pytest.mark.usefixtures("few")
def test_images_are_judged_by_accuracy(monkeypatch) -> None:
    monkeypatch.setattr(dp_merf_images, "real", lambda name, part: pictures(200, 1))
    images, labels = pictures(300, 2)
    good = dp_merf_images.judge_images("mnist", (images, labels))
    bad = dp_merf_images.judge_images("mnist", (images, np.random.default_rng(3).permutation(labels)))
    assert bad["accuracy"] < 0.3 < 0.8 < good["accuracy"]
    assert bad["f1_macro"] < 0.3 < 0.8 < good["f1_macro"]


def test_boosted_trees_of_images_rank_what_they_never_saw_last() -> None:
    images, labels = pictures(120, 5)
    rows = images.reshape(120, -1)[:, ::28] / 255
    kept = labels < 3
    found = dp_merf_images.classify_images("gradient_boosting", rows[kept], labels[kept], rows, 10, 0)
    assert found.scores.shape == (120, 10)
    assert (found.scores[:, 3:].max(axis=1) < found.scores[:, :3].min(axis=1)).all()
    assert (found.scores.argmax(axis=1)[kept] == labels[kept]).mean() > 0.8
    alone = dp_merf_images.classify_images("gradient_boosting", rows, np.zeros(120, int), rows, 10, 0)
    assert alone.undefined == "the training rows have one class only"


def test_a_grid_has_a_column_a_class_and_stays_small(tmp_path) -> None:
    images, labels = pictures(300, 4)
    block = dp_merf_images.by_class((images, labels), 2)
    assert block.shape == (2, 10, 28, 28)
    for one in range(10):
        assert np.array_equal(block[1, one], images[labels == one][1])
    drawn = dp_merf_images.grid([block, block])
    assert drawn.shape == (2 * 2 * 28 + 2, 280)
    assert np.array_equal(drawn[28:56, 28:56], block[1, 1])
    dp_merf_images.write_png(tmp_path / "grid.png", drawn)
    assert (tmp_path / "grid.png").stat().st_size < 300_000
    lacking = dp_merf_images.by_class((images[labels != 3], labels[labels != 3]), 2)
    assert not lacking[:, 3].any()


def test_a_failed_image_fit_is_told(monkeypatch, tmp_path) -> None:
    np.savez(tmp_path / "train.npz", images=pictures(5, 0)[0], labels=pictures(5, 0)[1])
    monkeypatch.setattr(dp_merf_images, "locate", lambda name, file: tmp_path / "train.npz")
    found = dp_merf_images.make_images("mnist", "no-such", 1.0, 1e-5, 0, tmp_path / "made" / "m.npz", seconds=100)
    assert found["status"].startswith("failed: ")
    assert "no-such" in found["status"]
    late = dp_merf_images.make_images("mnist", "no-such", 1.0, 1e-5, 0, tmp_path / "m.npz", seconds=0)
    assert late["status"] == "not done within 0 minutes"


# Runs


def test_real_rows_and_the_first_seed_come_first(monkeypatch) -> None:
    monkeypatch.setattr(dp_merf, "makes_images", lambda method: method == "dp-merf")
    jobs = dp_merf.plan(("dp-merf", "mixture"), ("credit", "mnist"), (1.0, inf, 9.6, 1.3), (3, 4), "v")
    assert [(job.dataset, job.method) for job in jobs[:2]] == [("credit", "real"), ("mnist", "real")]
    first, second = jobs[2:8], jobs[8:]
    assert [(job.dataset, job.method, job.epsilon) for job in first] == [
        ("credit", "dp-merf", "1"),
        ("mnist", "dp-merf", "9.6"),
        ("mnist", "dp-merf", "1.3"),
        ("credit", "mixture", "1"),
        ("credit", "dp-merf", "inf"),
        ("credit", "mixture", "inf"),
    ]
    assert ({job.seed for job in first}, {job.seed for job in second}, len(second)) == ({3}, {4}, 6)
    assert not [job for job in jobs if job.dataset == "mnist" and job.method == "mixture"]


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """The bench with rows that are drawn instead of fitted; the calls are kept."""
    calls = []

    def make_rows(data, method, seed, *, epsilon, delta, cpu_seconds):
        assert Schema.load(data.schema_path).digest() == SCHEMA.digest()
        calls.append((method.name, epsilon, seed))
        if method.name == "dp-cgan":
            return {"status": "failed: no luck"}, None
        return {"status": "ok", "cpu_seconds": 2.0}, people(60, seed)

    monkeypatch.setattr(dp_merf, "make_rows", make_rows)
    monkeypatch.setattr(dp_merf, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    monkeypatch.setattr(dp_merf, "CACHE", tmp_path)
    monkeypatch.setattr(dp_merf_tasks, "task", lambda name: made_task())
    monkeypatch.setattr(dp_merf_judge, "judge_table", lambda task, made: {"decided_roc": float(len(made))})
    return calls, Record(tmp_path / "cells.jsonl")


def test_a_run_goes_on_where_it_was_broken_off(quick) -> None:
    calls, record = quick
    jobs = dp_merf.plan(("mixture",), ("adult",), (1.0, inf), (0, 1), "v1")
    assert dp_merf.run(jobs, record, workers=1, minutes=0.0) == []
    cells = dp_merf.run(jobs, record, workers=1, minutes=1.0)
    assert [cell["decided_roc"] for cell in cells] == [600, 60, 60, 60, 60]
    assert sorted(calls) == [("mixture", 1.0, 0), ("mixture", 1.0, 1), ("mixture", inf, 0), ("mixture", inf, 1)]
    assert dp_merf.run(jobs, Record(record.path), workers=1, minutes=1.0) == cells
    assert len(calls) == 4
    dp_merf.run(dp_merf.plan(("mixture",), ("adult",), (1.0,), (0,), "v2"), record, workers=1, minutes=1.0)
    assert len(calls) == 5  # other code makes other rows
    later = dp_merf.plan(("mixture",), ("adult",), (1.0, inf), (0, 1), "v3")
    assert dp_merf.run(later, record, workers=1, minutes=1.0, earlier=("v2", "v1"))[1]["key"]["version"] == "v2"
    assert len(calls) == 5  # unless earlier code is said to count
    assert dp_merf.job_of(dp_merf.key_of(later[1])) == later[1]


def test_rows_at_hand_are_judged_again_without_a_fit(quick, monkeypatch) -> None:
    calls, record = quick
    jobs = dp_merf.plan(("mixture",), ("adult",), (1.0,), (0,), "v1")
    dp_merf.run(jobs, record, workers=1, minutes=1.0)
    monkeypatch.setattr(dp_merf, "referee", lambda dataset: "another")
    assert len(dp_merf.run(jobs, record, workers=1, minutes=1.0)) == 2
    assert len(calls) == 1


def test_a_failed_fit_is_told_and_tried_again(quick) -> None:
    calls, record = quick
    jobs = dp_merf.plan(("dp-cgan",), ("adult",), (1.0,), (0,), "v1")
    cells = dp_merf.run(jobs, record, workers=1, minutes=1.0)
    assert dp_merf_pages.not_reached(dp_merf_pages.summarise(cells)) == ["adult, dp-cgan at 1: failed: no luck"]
    dp_merf.run(jobs, record, workers=1, minutes=1.0)
    assert len(calls) == 2


def test_a_dataset_that_is_not_there_is_left_out_and_named(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv(SETTING, str(tmp_path))
    (tmp_path / "creditcard").mkdir()
    (tmp_path / "creditcard" / "creditcard_sample.csv").touch()
    assert dp_merf.at_hand(("credit", "mnist")) == ("credit",)
    said = capsys.readouterr().out
    assert "mnist is left out" in said
    assert "mnist/train.npz" in said


def test_a_picture_shows_the_first_seed_of_every_epsilon(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(dp_merf, "makes_images", lambda method: True)
    monkeypatch.setattr(dp_merf, "CACHE", tmp_path)
    monkeypatch.setattr(dp_merf_images, "real", lambda name, part: pictures(100, 1))
    jobs = dp_merf.plan(("dp-merf",), ("mnist", "fashion_mnist"), (9.6, 1.3), (0, 1), "v")
    assert dp_merf.draw(jobs, tmp_path / "day-dp-merf") == []
    for seed, job in enumerate(job for job in jobs if job.dataset == "mnist" and job.method == "dp-merf"):
        dp_merf.made_path(job).parent.mkdir(exist_ok=True)
        images, labels = pictures(100, seed)
        np.savez(dp_merf.made_path(job), images=images, labels=labels)
    assert dp_merf.draw(jobs, tmp_path / "day-dp-merf") == ["day-dp-merf-mnist-dp-merf.png"]
    drawn = imread(tmp_path / "day-dp-merf-mnist-dp-merf.png")
    assert drawn.shape[:2] == (3 * 2 * 28 + 2 * 2, 280)


# Pages

FACTS = {
    "date": "2024-01-01",
    "command": "python -m this",
    "python": "3.11",
    "cores": 2,
    "sources": ["abc", "def"],
    "packages": ["numpy==2"],
    "delta": 1e-5,
    "seeds": 2,
    "caps": {"table": [20000, 20000], "images": [10000, 10000]},
    "tables": [
        {"dataset": "adult", "train": 1234, "test": 567, "columns": 13, "note": "N"}
        | {"searched": "income x", "base_rate": 0.4}
    ],
    "pictures": ["g.png"],
}


def lines_of(roc: float) -> list[dict]:
    cells = [cell(dataset="adult", method="real", epsilon="", decided_roc=0.8, roc_auc=0.9)]
    cells += [cell(seed, decided_roc=roc + 0.02 * seed, roc_auc=0.85, cpu_seconds=4.0) for seed in (0, 1)]
    return dp_merf_pages.summarise([*cells, cell(0, dataset="mnist", epsilon="1.3", accuracy=0.5, f1_macro=0.45)])


def test_lines_have_mean_spread_and_what_is_kept() -> None:
    real, ours, _ = lines_of(0.7)
    assert ours["seeds"] == 2
    assert ours["decided_roc"]["mean"] == pytest.approx(0.71)
    assert ours["decided_roc"]["spread"] == pytest.approx(0.02 / 2**0.5)
    assert ours["kept"] == pytest.approx({"decided_roc": 0.71 / 0.8, "roc_auc": 0.85 / 0.9})
    assert real["kept"]["decided_roc"] == 1.0


def test_what_is_not_reached_is_listed() -> None:
    assert dp_merf_pages.not_reached(lines_of(0.72)) == ["mnist, dp-merf at 1.3: F1 0.450, the paper 0.460"]
    # 0.70 is over the paper's 0.650, but 0.875 of ours after real rows is below its 0.650 / 0.730.
    found = dp_merf_pages.not_reached(lines_of(0.69))
    assert found[0] == "adult, dp-merf at 1: ROC (decided) kept 0.875, the paper 0.890"
    found = dp_merf_pages.not_reached(lines_of(0.6))
    assert found[0] == "adult, dp-merf at 1: ROC (decided) 0.610, the paper 0.650"


def test_the_page_puts_the_paper_beside_ours() -> None:
    page = dp_merf_pages.markdown(lines_of(0.69), FACTS)
    assert "| adult | ROC (decided) | real rows |  |  | 0.800 | 0.730 |  |  |  |" in page
    assert "| adult | ROC (decided) | dp-merf | 1 | 2 | 0.700 ± 0.014 | 0.650 | 0.875 | 0.890 ✗ | 4 |" in page
    assert "| adult | ROC AUC | dp-merf | 1 | 2 | 0.850 ± 0.000 |  | 0.944 |  | 4 |" in page
    assert "| mnist | F1 | dp-merf | 1.3 | 1 | 0.450 | 0.460 ✗ | - | 0.535 | - |" in page
    assert "| adult | 1,234 | 567 | 13 | 0.400 (income x) | N |" in page
    assert "- not all measured: 3 fits of 4" in page
    assert "![](g.png)" in page
    assert "source abc, def; numpy==2" in page
    assert "Nothing was measured." in dp_merf_pages.markdown([], FACTS)


def test_results_are_read_back_as_they_were_written() -> None:
    cells, lines = [cell(decided_roc=0.7, models={"lda": {"decided_roc": 0.7}})], lines_of(0.7)
    found = json.loads(dp_merf_pages.as_json(FACTS, lines, cells))
    assert found == {**FACTS, "summary": lines, "cells": cells}
    assert json.loads(dp_merf_pages.as_json(FACTS, [], [])) == {**FACTS, "summary": [], "cells": []}


def test_the_docs_quote_the_newest_results() -> None:
    newest = max(dp_merf.RESULTS.glob("*-dp-merf.json"))
    docs = (dp_merf.ROOT / "docs" / "papers" / "dp-merf.md").read_text(encoding="utf-8")
    assert f"bench/results/{newest.stem}.md" in docs
    found = json.loads(newest.read_text(encoding="utf-8"))
    assert dp_merf_pages.summarise(found["cells"]) == found["summary"]
    assert newest.with_suffix(".md").read_text(encoding="utf-8") == dp_merf_pages.markdown(found["summary"], found)
    for line in found["summary"]:
        for name in (*dp_merf_published.MEASURES, *dp_merf_published.IMAGE_MEASURES):
            shown = name in line and dp_merf_published.printed(line["dataset"], "real", "", name) is not None
            assert not shown or dp_merf_pages.row(line, name) in docs, (line["dataset"], line["method"], name)
