"""A simulated table like the paper's health records, 1,071 sparse binary columns: `python -m bench.papers.ehr`.

The paper's MIMIC-III table may not be passed on, so this one is made: patients have a few hidden conditions, each of
which makes some codes much likelier; how common codes are follows a power law, as in such records. Figures, against
fresh rows of the same process: distance and correlation of every code's frequency (dimension-wise probability),
correlation of the co-occurrence of frequent codes, and how well the presence of frequent codes is predicted from the
others by a model trained on synthetic rows (dimension-wise prediction). Writes bench/results/<date>-ehr.{md,json}.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

import understudy as us
from bench.cells import ROOT

ROWS, COLUMNS, CONDITIONS = 27_912, 1_071, 30
FREQUENT = 60  # columns whose pairs and predictions are looked at
PREDICTED = 12
EPSILONS = (0.81, 2.70)  # the paper's smallest and largest for MIMIC-III
DELTA = 1e-5
METHODS = ("dp-auto-gan", "dp-vae", "independent")


def schema() -> us.Schema:
    lines = [f"  code{number:04d}: {{kind: boolean}}" for number in range(COLUMNS)]
    return us.Schema.loads("\n".join([f"rows: {ROWS // 1000 * 1000}", "columns:", *lines]))


def records(rows: int, seed: int) -> pd.DataFrame:
    """Rows of the process. What conditions do is drawn once, from a seed of its own."""
    world = np.random.default_rng(20_261_116)
    base = np.minimum(0.35 / (1 + np.arange(COLUMNS)) ** 0.9, 0.3)
    touched = world.random((CONDITIONS, COLUMNS)) < 0.05
    log_lift = np.where(touched, world.uniform(1.0, 3.0, touched.shape), 0.0)
    share = world.uniform(0.02, 0.2, CONDITIONS)
    rng = np.random.default_rng(seed)
    has = rng.random((rows, CONDITIONS)) < share
    chance = np.minimum(base * np.exp(has @ log_lift), 0.95)
    codes = rng.random((rows, COLUMNS)) < chance
    return pd.DataFrame(codes, columns=[f"code{number:04d}" for number in range(COLUMNS)])


def judge(made: np.ndarray, fresh: np.ndarray) -> dict[str, float]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    frequent = np.argsort(-fresh.mean(axis=0))[:FREQUENT]
    upper = np.triu_indices(FREQUENT, 1)
    together, wanted = ((t[:, frequent].T @ t[:, frequent] / len(t))[upper] for t in (made, fresh))
    dependence, real_dependence = (np.nan_to_num(np.corrcoef(t[:, frequent].T))[upper] for t in (made, fresh))
    scores = []
    for target in frequent[:PREDICTED]:
        others = np.setdiff1d(frequent, target)
        if 0 < made[:5000, target].sum() < 5000:
            model = LogisticRegression(max_iter=300).fit(made[:5000][:, others], made[:5000, target])
            scores.append(roc_auc_score(fresh[:5000, target], model.predict_proba(fresh[:5000][:, others])[:, 1]))
        else:
            scores.append(0.5)
    return {
        "frequency_distance": float(np.abs(made.mean(axis=0) - fresh.mean(axis=0)).mean()),
        "frequency_correlation": float(np.corrcoef(made.mean(axis=0), fresh.mean(axis=0))[0, 1]),
        "pair_distance": float(np.abs(together - wanted).mean()),
        "dependence_correlation": float(np.corrcoef(dependence, real_dependence)[0, 1]),
        "prediction_auc": float(np.mean(scores)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--results", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    real, fresh, other = (records(ROWS, seed) for seed in (1, 2, 3))
    fresh_rows = fresh.to_numpy(np.float32)
    cells = [{"method": "fresh rows", **judge(other.to_numpy(np.float32), fresh_rows)}]
    table = us.read_table(real, schema())
    for epsilon in options.epsilons:
        for method in options.methods:
            for seed in options.seeds:
                begin, processor = time.perf_counter(), time.process_time()
                model = us.fit(table, schema(), method=method, epsilon=epsilon, delta=DELTA)
                cost = {"seconds": time.perf_counter() - begin, "processor_seconds": time.process_time() - processor}
                made = model.sample(ROWS, seed=seed).to_numpy(np.float32)
                cells.append({"method": method, "epsilon": epsilon, "seed": seed, **judge(made, fresh_rows), **cost})
                print(cells[-1], flush=True)
    write(cells, options.results)


def write(cells: list[dict], results: Path) -> None:
    titles = [name for name in cells[0] if name != "method"]
    lines = [
        f"# Simulated health records, {date.today().isoformat()}",
        "",
        f"{ROWS:,} rows, {COLUMNS:,} binary columns, delta {DELTA:g}; `python -m bench.papers.ehr`; "
        "a machine that may have been busy. One line a fit; the first: what fresh rows of the same process score.",
        "",
        "| method | epsilon | " + " | ".join(title.replace("_", " ") for title in titles) + " | processor (s) |",
        "| --- |" + " ---: |" * (len(titles) + 2),
    ]
    for cell in cells:
        shown = " | ".join(f"{cell[title]:.4f}" for title in titles)
        cost = f"{cell['processor_seconds']:.0f}" if "processor_seconds" in cell else ""
        lines.append(f"| {cell['method']} | {cell.get('epsilon', '')} | {shown} | {cost} |")
    results.mkdir(parents=True, exist_ok=True)
    stem = results / f"{date.today().isoformat()}-ehr"
    stem.with_suffix(".json").write_text(json.dumps(cells, indent=1) + "\n")
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
