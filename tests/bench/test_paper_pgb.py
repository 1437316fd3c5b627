"""The page of the boosting paper's tables: means over seeds, gains, the paper's figures beside ours, pictures."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from bench.papers import pgb, pgb_pages, pgb_pictures, pgb_published, pgb_tasks

TOLD = {"date": "2026-01-01", "source": "abc", "numpy": "2"}


def cell(seed: int, quality: float, gain: float = 0.1) -> dict:
    lines = {"last": {"quality": quality, "quality_real": 0.99}, "PGB auto": {"quality": quality + gain}}
    return {"key": {"task": "gaussians25", "epsilon": 1.0, "method": "dp-wgan", "seed": seed}, "lines": lines}


def test_lines_are_means_over_seeds_with_the_papers_figures():
    lines = pgb_pages.summarise([cell(0, 0.5), cell(1, 0.7)])
    assert [(line["line"], line["seeds"]) for line in lines] == [("last", 2), ("PGB auto", 2)]
    assert lines[0]["quality"] == {"mean": 0.6, "error": pytest.approx(0.1)}
    page = pgb_pages.markdown(lines, TOLD, ["p.png"])
    assert "| dp-wgan | last | 2 | 0.600 ± 0.100 (0.031) |" in page
    assert "| dp-wgan | PGB auto | 2 | 0.700 ± 0.100 (0.044) |" in page
    assert "| real rows |  |  | 0.990 |" in page
    assert "![](p.png)" in page


def test_gains_are_differences_seed_by_seed():
    """The spread of a gain is that of the differences, however far apart the seeds are."""
    page = pgb_pages.markdown(pgb_pages.summarise([cell(0, 0.2, 0.05), cell(1, 0.8, 0.15)]), TOLD, [])
    assert "| dp-wgan | PGB auto | **+0.100 ± 0.050** |" in page
    worse = pgb_pages.markdown(pgb_pages.summarise([cell(0, 0.5, -0.25)]), TOLD, [])
    assert "| dp-wgan | PGB auto | -0.250 |" in worse


def test_less_is_better_for_distances():
    lines = {"last": {"tvd2": 0.3}, "PGB auto": {"tvd2": 0.2}, "PGB+DRS auto": {"tvd2": 0.4}}
    key = {"task": "titanic", "epsilon": 2.0, "method": "dp-vae", "seed": 0}
    page = pgb_pages.markdown(pgb_pages.summarise([{"key": key, "lines": lines}]), TOLD, [])
    assert "| dp-vae | PGB auto | **-0.100** |" in page
    assert "| dp-vae | PGB+DRS auto | +0.100 |" in page


def test_a_line_without_a_figure_says_so():
    lines = {"last": {"auc_xgboost": 0.5, "tvd2": 0.1}, "DRS": {"auc_xgboost": None, "tvd2": 0.2}}
    key = {"task": "titanic", "epsilon": 2.0, "method": "dp-wgan", "seed": 0}
    page = pgb_pages.markdown(pgb_pages.summarise([{"key": key, "lines": lines}]), TOLD, [])
    assert "| dp-wgan | last | 1 | 0.500 (0.530) |" in page
    assert "| dp-wgan | DRS | 1 | - |" in page


def test_splits_are_compared_as_shares_of_real_rows():
    """A split may be easier than the paper's: each seed is held against its own real rows."""
    keys = [{"task": "titanic-splits", "epsilon": 2.0, "method": "dp-wgan", "seed": seed} for seed in range(2)]
    figures = [{"auc_xgboost": 0.4, "auc_xgboost_real": 0.8}, {"auc_xgboost": 0.9, "auc_xgboost_real": 0.9}]
    cells = [{"key": key, "lines": {"last": one}} for key, one in zip(keys, figures, strict=True)]
    page = pgb_pages.markdown(pgb_pages.summarise(cells), TOLD, [])
    assert "| dp-wgan | last | 0.750 ± 0.250 (0.686) |" in page  # the paper: .530 of .773


def test_pictures_of_all_kinds(tmp_path):
    rng = np.random.default_rng(0)
    rows = {"Var1": rng.normal(size=50).tolist(), "Var2": rng.normal(size=50).tolist()}
    (tmp_path / "gaussians25-dp-wgan-1.json").write_text(json.dumps({"last": rows, "PGB auto": rows}))
    (tmp_path / "gaussians25-dp-vae-1.json").write_text(json.dumps({"last": rows}))  # one method is shown
    rmse = {line: {"rmse": rng.uniform(30, 40, (6, 2)).tolist()} for line in ("last", "PGB auto")}
    for method in ("dp-wgan", "dp-vae"):
        (tmp_path / f"acs2019-{method}-1.json").write_text(json.dumps(rmse))
    np.savez(tmp_path / "mnist-dp-merf-10.npz", last=rng.integers(0, 255, (56, 140), dtype=np.uint8))
    made = pgb_pictures.pictures([tmp_path], tmp_path / "out", lambda: pd.DataFrame(rows))
    assert sorted(path.name for path in made) == [
        "out-acs2019.png",
        "out-gaussians25-dp-wgan-1.png",
        "out-mnist-dp-merf-10.png",
    ]
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in made)


def test_tasks_have_the_papers_epsilons():
    printed = {(task, epsilon) for task, epsilon, _ in pgb_published.PUBLISHED if math.isfinite(epsilon)}
    assert printed == {
        (task, epsilon) for task, epsilon in pgb.TASKS.items() if task not in ("adult", *pgb_tasks.SPLITS)
    }
    assert all(len(figures) == len(pgb_published.LINES) for figures in pgb_published.PUBLISHED.values())
    assert {measure for _, _, measure in pgb_published.PUBLISHED} <= set(pgb_pages.MEASURES)
    assert pgb_published.published("mnist", 10.0, "score", "last") == 8.07
    assert pgb_published.published("adult", 1.0, "tvd2", "last") is None


def test_a_changed_referee_is_another_cell(monkeypatch, tmp_path):
    first = pgb.key_of("titanic", "dp-wgan", 2.0, 0, "abc")
    assert first == pgb.key_of("titanic", "dp-wgan", 2.0, 0, "abc")
    assert first["referee"] != pgb.key_of("mnist", "dp-merf", 10.0, 0, "abc")["referee"]
