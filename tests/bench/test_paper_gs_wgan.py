"""The GS-WGAN thesis' figures: what is judged, which cells are run, and the page they end up on."""

import argparse

import numpy as np
import pandas as pd
import pytest

import understudy as us
from bench.papers import gs_wgan

SCHEMA = us.Schema.loads("""
rows: 1000
label: ill
columns:
  ill: {kind: boolean}
  age: {kind: integer, low: 20, high: 80}
  smoker: {kind: boolean}
""")


def rows(count: int = 600, seed: int = 0) -> np.ndarray:
    """Two columns and a label that goes with the first."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=count)
    return np.stack([first, rng.normal(size=count), (first + rng.normal(size=count) > 0).astype(float)], axis=1)


def cell(auc: float, seed: int, method: str = "mixture", epsilon: float = 1.0) -> dict:
    figures = {"auc": auc, "mean_error": 0.01, "std_error": 0.02, "correlation_error": 0.03, "correlation_kept": 0.9}
    key = {"method": method, "epsilon": epsilon, "critics": gs_wgan.RULE, "seed": seed}
    return {"key": key, "cpu_seconds": 10.0, "peak_mib": 100.0, **figures}


def test_numbers_are_inside_the_bounds_with_the_label_last():
    frame = pd.DataFrame({"ill": [1, 0], "age": [-150, 16_020], "smoker": [0, 1]})
    assert gs_wgan.numbers(frame, SCHEMA).tolist() == [[20.0, 0.0, 1.0], [80.0, 1.0, 0.0]]


def test_the_judge_knows_good_rows_from_bad_ones():
    train, test = rows(seed=0), rows(seed=1)
    same = gs_wgan.judge(train, train, test)
    assert same["mean_error"] == same["std_error"] == same["correlation_error"] == 0
    assert same["correlation_kept"] == pytest.approx(1)
    assert same["auc"] > 0.75
    shuffled = train.copy()
    shuffled[:, -1] = shuffled[::-1, -1]
    bad = gs_wgan.judge(shuffled, train, test)
    assert bad["correlation_kept"] < 0.3
    assert bad["auc"] < same["auc"]
    moved = gs_wgan.judge(train + np.array([train[:, 0].std(), 0, 0]), train, test)
    assert moved["mean_error"] == pytest.approx(1 / 3)


def test_rows_of_one_class_have_no_area():
    train = rows()
    alone = train.copy()
    alone[:, -1] = 1
    figures = gs_wgan.judge(alone, train, train)
    assert "auc" not in figures
    assert np.isfinite(list(figures.values())).all()


def test_one_seed_of_everything_comes_first():
    options = argparse.Namespace(critics=[0, 500], epsilons=[1.0, 2.0], seeds=[0, 1])
    keys = gs_wgan.keys(options)
    assert [key["seed"] for key in keys] == [0] * 8 + [1] * 8
    assert {key["method"] for key in keys} == {"gs-wgan", *gs_wgan.BESIDE}
    assert len({str(key) for key in keys}) == len(keys)


def test_lines_are_means_and_spreads_over_fits():
    text = gs_wgan.lines([cell(0.7, 0), cell(0.8, 1), cell(0.6, 0, "independent")])
    assert text[2].startswith("| independent |  | 1 | 1 | 0.600 |")
    assert text[3].startswith("| mixture |  | 1 | 2 | 0.750 ± 0.071 |")


def test_the_page_tells_real_rows_and_the_thesis():
    facts = {"date": "2026-01-01", "command": "run", "python": "3", "cores": 2, "source": "abc"}
    page = gs_wgan.markdown([cell(0.7, 0)], {"auc": 0.79, "correlation_error": 0.005}, facts)
    assert "Real rows: AUC 0.790" in page
    assert "0.717 at a claimed 6.45" in page
    assert "100 MiB" in page


def test_a_cell_without_a_figure_leaves_its_place_empty():
    without = cell(0.7, 0)
    del without["auc"]
    assert gs_wgan.lines([without])[2].startswith("| mixture |  | 1 | 1 |  |")
