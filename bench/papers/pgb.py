"""The tables of the Post-GAN boosting paper, with our GANs: `python -m bench.papers.pgb`.

25 Gaussians at epsilon 1 (quality score) and Titanic at epsilon 2 (AUC of three classifiers), and ADULT at epsilon 1
beside them: the last generator alone, with rejection (DRS), boosted (PGB) and both, all at the same total epsilon.
Writes bench/results/<date>-pgb.md and .json, and a picture of the 25 Gaussians (.png).

Fits that are done are kept in bench/.cache, so that a run goes on where it was broken off; `--minutes` ends it in time,
and with 0 the results are written from what is at hand.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import math
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import understudy as us
from bench.cells import ROOT, Record, version
from bench.datasets import load
from bench.papers import pgb_pages as pages
from bench.peers.domain import plain
from bench.referee import BINS, MODELS, SEED
from understudy.boosting.method import reject
from understudy.evaluation.distributions import tvd
from understudy.evaluation.modes import gaussians_quality
from understudy.evaluation.prediction import train_on_synthetic

TASKS = {"gaussians25": 1.0, "titanic": 2.0, "adult": 1.0}
GANS = ("dp-wgan", "dp-cgan", "dp-auto-gan")
METHODS = (*GANS, "dp-vae")
# How the boosted fits differ: what the game is played with.
VARIANTS = {"critics": "critics", "auto": "auto"}
MODEL_ROWS = 10_000
RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "pgb"


def key_of(task: str, method: str, epsilon: float, seed: int, source: str) -> dict[str, Any]:
    referee = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return {"task": task, "method": method, "epsilon": epsilon, "seed": seed, "version": source, "referee": referee}


def source_version() -> str:
    files = sorted((ROOT / "understudy" / "boosting").rglob("*.py"))
    digest = hashlib.sha256(version("ours").encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def measure(task: str, method: str, epsilon: float, seed: int, keep: Path) -> dict[str, Any]:
    """One seed of a method on a task: every line's figures, at one total epsilon."""
    data = load(task)
    schema = us.Schema.load(data.schema_path).confirmed()
    train, test = plain(data.train, schema), plain(data.test, schema)
    table = us.read_table(train, schema)
    options = {"method": method, "epsilon": epsilon, "seed": seed}
    begin = time.perf_counter()
    kept = {"checkpoints": 1} if method in GANS else {}
    last = us.fit(table, schema, **options, **kept)
    lines, spent = {"last": last}, {"last": last.certificate.epsilon}
    if method in GANS:
        lines["DRS"] = reject(last, seed=seed)
    for name, kinds in VARIANTS.items():
        if name == "critics" and method not in GANS:
            continue
        boosted = us.fit(table, schema, **options, boost={"distinguishers": kinds})
        both = dataclasses.replace(boosted, released=dataclasses.replace(boosted.released, drs=True))
        lines |= {f"PGB {name}": boosted, f"PGB+DRS {name}": both}
        spent[name] = boosted.certificate.epsilon
    if any(math.isfinite(epsilon) and total > epsilon * (1 + 1e-6) for total in spent.values()):
        raise RuntimeError(f"a fit spent more than epsilon {epsilon:g}: {spent}")
    seconds = time.perf_counter() - begin
    figures = {}
    for name, model in lines.items():
        made = plain(model.sample(len(train), seed=seed), schema)
        figures[name] = judge(task, made, train, test, schema)
        if task == "gaussians25" and seed == 0:
            keep.mkdir(parents=True, exist_ok=True)
            made.iloc[:5000].to_csv(keep / f"{task}-{method}-{epsilon:g}-{name}.csv", index=False)
    return {"status": "ok", "seconds": seconds, "lines": figures}


def judge(
    task: str, made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: us.Schema
) -> dict[str, float | None]:
    if task == "gaussians25":
        found = gaussians_quality(train, made, schema, holdout=test)
        return {"quality": found.value, "quality_real": found.reference}
    found = tvd(train, made, schema, holdout=test, order=2, bins=BINS, seed=SEED)
    figures = {"tvd2": found.value, "tvd2_real": found.reference}
    caps = {"rows": MODEL_ROWS, "test_rows": MODEL_ROWS, "seed": SEED}
    found = train_on_synthetic(train, made, schema, holdout=test, models=MODELS, **caps)
    for model, scores in found.details.get("models", {}).items():
        for side in ("synthetic", "real"):
            figures[f"auc_{model}" + "_real" * (side == "real")] = scores.get(side, {}).get("roc_auc")
    return figures


def run(options: argparse.Namespace, source: str) -> list[dict]:
    begin, record = time.monotonic(), Record(CACHE / "cells.jsonl")
    cells = []
    # All methods and tasks with the first seed, then with the others: a run that ends early is as broad as it can be.
    for seed in options.seeds:
        for task in options.tasks:
            for method in options.methods:
                if method == "dp-cgan" and task == "gaussians25":
                    continue  # no label
                key = key_of(task, method, options.epsilon or TASKS[task], seed, source)
                cell = record.get(key)
                if cell is None and time.monotonic() - begin < 60 * options.minutes:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        cell = record.add(key, measure(task, method, key["epsilon"], seed, CACHE / source))
                    print(task, method, seed, f"{cell['seconds']:.0f} s", flush=True)
                    for name, figures in cell["lines"].items():
                        shown = {k: round(v, 4) for k, v in figures.items() if v is not None and "real" not in k}
                        print("  ", name, shown, flush=True)
                if cell is not None:
                    cells.append(cell)
    return cells


def at_hand(options: argparse.Namespace) -> list[dict]:
    """Cells of earlier versions of the code, the newest of each."""
    found = {}
    for cell in Record(CACHE / "cells.jsonl").cells.values():
        key = cell["key"]
        wanted = key["task"] in options.tasks and key["method"] in options.methods and key["seed"] in options.seeds
        if wanted and key["version"] in options.sources:
            found[key["task"], key["method"], key["epsilon"], key["seed"]] = cell
    order = {name: at for at, name in enumerate((*TASKS, *METHODS))}
    return [found[key] for key in sorted(found, key=lambda key: (order[key[0]], order[key[1]], *key[2:]))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(20)))
    parser.add_argument("--epsilon", type=float, default=None, help="another than the paper's; inf: without privacy")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after this time")
    parser.add_argument("--sources", nargs="+", default=None, help="run nothing: the page from cells of these versions")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    sources = options.sources or [source_version()]
    cells = at_hand(options) if options.sources else run(options, sources[0])
    if not cells:
        print("nothing measured yet")
        return
    told = {"date": date.today().isoformat(), "source": ", ".join(sources), "numpy": np.__version__}
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{told['date']}-pgb"
    lines = pages.summarise(cells)
    stem.with_suffix(".json").write_text(json.dumps({**told, "summary": lines, "cells": cells}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(pages.markdown(lines, told))
    kept = sorted(path for source in sources for path in (CACHE / source).glob("gaussians25-dp-wgan-*.csv"))
    if kept:
        pages.picture(load("gaussians25").train, kept, stem.with_suffix(".png"))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
