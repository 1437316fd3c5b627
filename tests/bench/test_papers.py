"""The paper's figures are read right, cells are counted right, and a figure that is not reached is told."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from bench.cells import Record
from bench.papers import adult, dp_auto_gan, figures, pages, published
from understudy import Schema

SCHEMA = Schema.load(dp_auto_gan.ROOT / "bench" / "schemas" / "adult.yaml")


def made_up(rows: int, seed: int) -> pd.DataFrame:
    """Rows of ADULT's schema whose income follows from relationship and education, and nothing else from anything."""
    rng = np.random.default_rng(seed)
    frame = {}
    for name, column in SCHEMA.modelled.items():
        if column.kind == "integer":
            frame[name] = rng.integers(column.low, column.high + 1, rows).astype(float)
        else:
            frame[name] = rng.choice(column.values, rows)
    high = (np.isin(frame["relationship"], ["Husband", "Wife"])) & (frame["education-num"] > 6)
    return pd.DataFrame(frame | {"income": np.where(high, ">50K", "<=50K")})


def cell(part: str, seed: int, *, method: str = "dp-vae", epsilon: float = 1.01, status: str = "ok", **found) -> dict:
    key = {"method": method, "epsilon": epsilon, "seed": seed, "part": part}
    return {"key": key, "status": status, **found}


def test_every_printed_total_is_the_sum_of_its_columns() -> None:
    figures_printed = published.diversity()
    totals = {place: value for place, value in figures_printed.items() if place[1] == "total"}
    assert len(totals) == 24
    for (measure, _, method, epsilon), total in totals.items():
        columns = [figures_printed[measure, column, method, epsilon] for column in published.CATEGORICAL]
        assert sum(columns) == pytest.approx(total, abs=0.015), (measure, method, epsilon)


def test_each_method_stands_beside_its_own_row() -> None:
    for method in published.NAMES:
        assert all(published.printed("jsd", method, epsilon) is not None for epsilon in published.EPSILONS)
    assert published.printed("jsd", "dp-syn", 0.36) == published.Printed(0.25, higher=False)
    assert published.printed("accuracy", "dp-auto-gan", 0.36) == published.Printed(pytest.approx(0.7466), higher=True)
    assert published.printed("jsd", "mixture", 0.36) is None
    assert published.Printed(0.8, higher=True).reached(0.8)
    assert not published.Printed(0.8, higher=True).reached(0.799)
    assert not published.Printed(0.2, higher=False).reached(0.201)


def test_the_measures_tell_good_rows_from_bad() -> None:
    real = (made_up(1500, 0), made_up(800, 1), SCHEMA)
    good = made_up(1500, 2)
    bad = good.assign(income=np.random.default_rng(3).permutation(good["income"]), sex="Female")
    better, worse = (adult.judge("tables", frame, real) for frame in (good, bad))
    assert (better["collapsed"], worse["collapsed"]) == (0.0, 1.0)
    assert better["jsd:sex"] < 0.001 < 0.2 < worse["jsd:sex"]
    assert better["jsd"] == pytest.approx(sum(better[f"jsd:{column}"] for column in published.CATEGORICAL))
    assert worse["mu_kl"] > better["mu_kl"] + 0.2
    assert worse["accuracy"] + 0.1 < better["accuracy"]
    assert abs(better["accuracy"] - better["accuracy_real"]) < 0.05
    assert worse["auc_logistic_regression"] < 0.6 < 0.9 < better["auc_logistic_regression"]
    assert worse["tvd2"] > better["tvd2"] + 0.01
    assert better["tvd2_real"] == worse["tvd2_real"]


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """The bench with rows that are drawn instead of fitted, and one cheap figure a part; the calls are kept."""
    calls = []

    def make_rows(data, method, seed, *, epsilon, delta, cpu_seconds):
        calls.append((method.name, epsilon, seed))
        time.sleep(0.02)
        if method.name == "independent":
            return {"status": "failed: no luck"}, None
        return {"status": "ok", "cpu_seconds": 2.0}, made_up(50, seed)

    monkeypatch.setattr(dp_auto_gan, "make_rows", make_rows)
    monkeypatch.setattr(dp_auto_gan, "load", lambda name: None)
    monkeypatch.setattr(dp_auto_gan, "ProcessPoolExecutor", lambda workers, **_: ThreadPoolExecutor(workers))
    monkeypatch.setattr(dp_auto_gan, "CACHE", tmp_path)
    monkeypatch.setattr(adult, "adult", lambda: (made_up(60, 8), made_up(60, 9), SCHEMA))
    monkeypatch.setattr(adult, "judge", lambda part, made, real: {f"{part}_rows": float(len(made))})
    return calls, Record(tmp_path / "cells.jsonl")


def test_the_first_seed_comes_first() -> None:
    jobs = dp_auto_gan.plan(("a", "b"), (0.5, 1.0), (7, 8), "v")
    passes = [(7, "tables"), (7, "columns"), (8, "tables"), (8, "columns")]
    assert [(job.seed, job.part) for job in jobs] == [one for one in passes for _ in range(4)]
    assert len({(job.method, job.epsilon) for job in jobs[:4]}) == 4


def test_a_run_goes_on_where_it_was_broken_off(quick) -> None:
    calls, record = quick
    jobs = dp_auto_gan.plan(("mixture",), (0.51, 1.01), (0, 1), "v1")
    assert dp_auto_gan.run(jobs, record, workers=1, minutes=0.0) == []
    cells = dp_auto_gan.run(jobs, record, workers=1, minutes=1.0)
    assert len(cells) == 8
    assert len(calls) == 4  # rows are made once for both parts
    assert dp_auto_gan.run(jobs, Record(record.path), workers=1, minutes=1.0) == cells
    assert len(calls) == 4
    dp_auto_gan.run(dp_auto_gan.plan(("mixture",), (1.01,), (0,), "v2"), record, workers=1, minutes=1.0)
    assert len(calls) == 5  # other code makes other rows


def test_the_two_parts_of_a_table_share_its_rows(quick) -> None:
    calls, record = quick
    jobs = dp_auto_gan.plan(("mixture",), (1.01,), (0,), "v1")
    assert len(dp_auto_gan.run(jobs, record, workers=2, minutes=1.0)) == 2
    assert len(calls) == 1


def test_a_failed_fit_is_told_and_tried_again(quick) -> None:
    calls, record = quick
    jobs = dp_auto_gan.plan(("independent",), (1.01,), (0,), "v1")
    cells = dp_auto_gan.run(jobs, record, workers=1, minutes=1.0)
    assert pages.not_reached(pages.summarise(cells)) == ["independent at 1.01: failed: no luck"]
    dp_auto_gan.run(jobs, record, workers=1, minutes=1.0)
    assert len(calls) == 4  # neither part is taken for done


def test_lines_have_mean_spread_and_the_seeds_of_each_part() -> None:
    cells = [cell("tables", seed, jsd=float(seed), collapsed=float(seed == 2), cpu_seconds=3.0) for seed in (0, 1, 2)]
    cells += [cell("columns", 0, pca=0.5, cpu_seconds=3.0, points={"age": [0.1, 0.2]})]
    (line,) = pages.summarise(cells)
    assert line["jsd"] == {"mean": 1.0, "spread": 1.0, "most": 2.0, "seeds": 3}
    assert (line["seeds_tables"], line["seeds_columns"], line["cpu_seconds"]["seeds"]) == (3, 1, 3)
    assert line["collapsed"]["most"] == 1.0
    assert "points" not in line


def test_what_is_not_reached_is_listed() -> None:
    good = {"jsd": 0.01, "mu_kl": 0.01, "tvd2": 0.02, "tvd3": 0.02, "collapsed": 0.0}
    good |= {f"auc_{model}": 0.85 for model in ("logistic_regression", "random_forest", "xgboost")}
    alone = cell("tables", 0, method="independent", tvd2=0.08, tvd3=0.16, auc_xgboost=0.5, collapsed=0.0)
    assert pages.not_reached(pages.summarise([cell("tables", 0, **good), alone])) == []
    for change, said in (
        ({"jsd": 0.24}, "jsd 0.2400, the paper 0.23"),
        ({"mu_kl": 0.59}, "mu_kl 0.5900, the paper 0.58"),
        ({"collapsed": 2.0}, "up to 2 categorical columns"),
        ({"auc_xgboost": 0.8}, "auc_xgboost 0.800, not over 0.8"),
        ({"tvd3": 0.16}, "tvd3 0.160, independent columns 0.160"),
    ):
        (found,) = pages.not_reached(pages.summarise([cell("tables", 0, **{**good, **change}), alone]))
        assert said in found
    label_lost = {name: value for name, value in good.items() if name != "auc_xgboost"}
    (found,) = pages.not_reached(pages.summarise([cell("tables", 0, **label_lost), alone]))
    assert "auc_xgboost undefined" in found
    accuracy = cell("tables", 0, method="dp-auto-gan", **good, accuracy=0.79)
    (found,) = pages.not_reached(pages.summarise([accuracy]))
    assert "accuracy 0.7900, the paper 0.7919" in found


FACTS = {
    "date": "2024-01-01",
    "command": "python -m this",
    "python": "3.11",
    "cores": 2,
    "source": "abc",
    "packages": ["numpy==2"],
    "delta": 1e-5,
    "seeds": 5,
}


def test_the_page_puts_the_paper_beside_ours() -> None:
    lines = pages.summarise(
        [
            cell("tables", 0, method="dp-syn", epsilon=0.51, jsd=0.3, mu_kl=0.5, **{"jsd:race": 0.04}),
            cell("tables", 1, method="dp-syn", epsilon=0.51, jsd=0.5, mu_kl=0.5, **{"jsd:race": 0.06}),
            cell("columns", 0, method="dp-syn", epsilon=0.51, pca=0.25, pca_real=0.01),
        ]
    )
    page = pages.markdown(lines, FACTS)
    assert "| dp-syn | 0.51 (paper 0.80) | 2 | 0.400 ± 0.141 | 0.27 ✗ | 0.500 ± 0.000 | 1.00 |" in page
    assert "0.050 / 0.053" in page
    assert "- dp-syn at 0.51: jsd 0.4000, the paper 0.27" in page
    assert "| real rows |  |  |  |  |  | 0.010 |" in page
    assert "| 0.250 |" in page  # one seed has no spread
    assert "- not all measured (tables): 2 fits of 5" in page
    assert "- not all measured (columns): 1 fits of 5" in page
    assert "numpy==2" in page


def test_pictures_come_from_the_rows_on_disk(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(figures, "adult", lambda: (made_up(60, 8), made_up(60, 9), SCHEMA))
    jobs = dp_auto_gan.plan(("dp-auto-gan",), (1.01,), (0,), "v")
    path = tmp_path / "made.csv.gz"
    made_up(50, 1).to_csv(path, index=False)
    cells = [cell("columns", 0, method="dp-auto-gan", points={"age": [0.25, 0.75]})]
    (one,) = found = figures.shown(cells, jobs, lambda job: path)
    assert [column.name for column in one.columns] == list(SCHEMA.modelled)
    page = figures.html(found, FACTS)
    assert "age: 0.250 real, 0.750 synthetic" in page
    assert page.count("<svg") == 13 + 1 + 2  # histograms, the scatter, real and synthetic plane
    assert "Nothing was measured" in figures.html([], FACTS)


def test_the_docs_quote_the_newest_results() -> None:
    newest = max(dp_auto_gan.RESULTS.glob("*-dp-auto-gan.json"))
    docs = (dp_auto_gan.ROOT / "docs" / "papers" / "dp-auto-gan.md").read_text(encoding="utf-8")
    assert f"bench/results/{newest.stem}.md" in docs
    found = json.loads(newest.read_text(encoding="utf-8"))
    assert pages.summarise(found["cells"]) == found["summary"]
    for line in found["summary"]:
        if "jsd" in line:
            row = [line["method"], f"{line['epsilon']:g}", str(line["seeds_tables"]), f"{line['jsd']['mean']:.3f}"]
            assert f"| {' | '.join(row)} |" in docs
