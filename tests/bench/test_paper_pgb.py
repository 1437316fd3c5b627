"""The page of the boosting paper's tables: means over seeds, the paper's figures beside ours, a picture."""

import numpy as np
import pandas as pd

from bench.papers import pgb, pgb_pages


def cell(seed: int, quality: float) -> dict:
    lines = {"last": {"quality": quality, "quality_real": 0.99}, "PGB auto": {"quality": quality + 0.1}}
    return {"key": {"task": "gaussians25", "epsilon": 1.0, "method": "dp-wgan", "seed": seed}, "lines": lines}


def test_lines_are_means_over_seeds_with_the_papers_figures():
    lines = pgb_pages.summarise([cell(0, 0.5), cell(1, 0.7)])
    assert [(line["line"], line["seeds"]) for line in lines] == [("last", 2), ("PGB auto", 2)]
    assert lines[0]["quality"]["mean"] == 0.6
    page = pgb_pages.markdown(lines, {"date": "2026-01-01", "source": "abc", "numpy": "2"})
    assert "| dp-wgan | last | 2 | 0.600 ± 0.100 (0.031) |" in page
    assert "| dp-wgan | PGB auto | 2 | 0.700 ± 0.100 (0.044) |" in page
    assert "| real rows |  |  | 0.990 |" in page


def test_a_picture_has_a_panel_a_line(tmp_path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["Var1", "Var2"])
    made = [tmp_path / f"gaussians25-dp-wgan-1-{line}.csv" for line in ("PGB auto", "last")]
    for path in made:
        rows.to_csv(path, index=False)
    pgb_pages.picture(rows, made, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"


def test_tasks_have_the_papers_epsilons():
    assert {task: pgb.TASKS[task] for task in ("gaussians25", "titanic")} == {"gaussians25": 1.0, "titanic": 2.0}
    assert {(task, epsilon) for task, epsilon, _ in pgb_pages.PUBLISHED if epsilon < 100} == {
        ("gaussians25", 1.0),
        ("titanic", 2.0),
    }
