"""The tables of the Post-GAN boosting paper, with our GANs: `python -m bench.papers.pgb`.

25 Gaussians (epsilon 1, quality score), Titanic (2, three classifiers; on the official split, and on one of its own for
each seed), two excerpts of the American Community Survey in the place of the paper's censuses (1 and 0.795), MNIST
(10), and ADULT beside them: the last generator alone, with rejection (DRS), boosted (PGB) and both, all at the same
total epsilon. Writes bench/results/<date>-pgb.md and .json, and pictures (.png).

Fits that are done are kept in bench/.cache, so that a run goes on where it was broken off; `--minutes` ends it in time,
and with 0 the results are written from what is at hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from bench.cells import ROOT, Record, version
from bench.datasets import load
from bench.papers import pgb_fits as fits
from bench.papers import pgb_pages as pages
from bench.papers import pgb_tasks as tasks
from bench.papers.pgb_pictures import pictures
from bench.peers.domain import plain

TASKS = {
    "titanic": 2.0,
    "titanic-splits": 2.0,
    "gaussians25": 1.0,
    "acs2019": 1.0,
    "acs2018": 0.795,
    "mnist": 10.0,
    "adult": 1.0,
}
IMAGES = ("mnist",)
METHODS = (*fits.CRITICS, "gs-wgan", "dp-vae")
IMAGE_METHODS = ("dp-merf",)
RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "pgb"


def key_of(task: str, method: str, epsilon: float, seed: int, source: str) -> dict[str, Any]:
    """Everything that decides a cell's outcome: the fits' code, and the referee's of this task."""
    files = ("pgb_fits.py", "pgb_images.py" if task in IMAGES else "pgb_tasks.py")
    code = b"".join((Path(__file__).parent / file).read_bytes() for file in files)
    referee = hashlib.sha256(code).hexdigest()[:12]
    return {"task": task, "method": method, "epsilon": epsilon, "seed": seed, "version": source, "referee": referee}


def source_version() -> str:
    files = sorted((ROOT / "understudy" / "boosting").rglob("*.py"))
    digest = hashlib.sha256(version("ours").encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def measure(task: str, method: str, epsilon: float, seed: int, keep: Path) -> dict[str, Any]:
    """One seed of a method on a task: every line's figures, at one total epsilon."""
    found = tasks.setup(task, seed)
    begin, cpu = time.perf_counter(), time.process_time()
    lines = fits.fitted(found.table, found.schema, method, epsilon, seed)
    spent = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
    figures, drawn = {}, {}
    for name, model in lines.items():
        made = plain(model.sample(len(found.train), seed=seed), found.schema)
        figures[name], drawn[name] = tasks.judge(found, made)
        if task == "gaussians25" and seed == 0:
            drawn[name] = {column: made[column].iloc[:5000].tolist() for column in made}
    if seed == 0 and any(drawn.values()):
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{task}-{method}-{epsilon:g}.json").write_text(json.dumps(drawn))
    return {"status": "ok", **spent, "lines": figures}


def run(options: argparse.Namespace, source: str) -> list[dict]:
    begin, record = time.monotonic(), Record(CACHE / "cells.jsonl")
    cells = []
    # All methods and tasks with the first seed, then with the others: a run that ends early is as broad as it can be.
    for seed in options.seeds:
        for task in options.tasks:
            for method in options.methods:
                if not goes_with(method, task):
                    continue
                key = key_of(task, method, options.epsilon or TASKS[task], seed, source)
                cell = record.get(key)
                if cell is None and time.monotonic() - begin < 60 * options.minutes:
                    cell = record.add(key, _measured(key))
                    print(task, method, f"{key['epsilon']:g}", seed, f"{cell['cpu_seconds']:.0f} s", flush=True)
                    for name, figures in cell["lines"].items():
                        shown = {k: round(v, 4) for k, v in figures.items() if v is not None and "real" not in k}
                        print("  ", name, shown, flush=True)
                if cell is not None:
                    cells.append(cell)
    return cells


def goes_with(method: str, task: str) -> bool:
    """Methods of images with images; no conditional GAN where there is no label.

    >>> goes_with("dp-cgan", "gaussians25"), goes_with("dp-merf", "mnist"), goes_with("dp-merf", "titanic")
    (False, True, False)
    """
    if (task in IMAGES) != (method in IMAGE_METHODS):
        return False
    return not (method == "dp-cgan" and task == "gaussians25")


def _measured(key: dict[str, Any]) -> dict[str, Any]:
    keep = CACHE / key["version"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if key["task"] in IMAGES:
            from bench.papers import pgb_images

            return pgb_images.measure(key["task"], key["method"], key["epsilon"], key["seed"], keep)
        return measure(key["task"], key["method"], key["epsilon"], key["seed"], keep)


def at_hand(options: argparse.Namespace) -> list[dict]:
    """Cells of earlier versions of the code, the newest of each."""
    found = {}
    for cell in Record(CACHE / "cells.jsonl").cells.values():
        key = cell["key"]
        wanted = key["task"] in options.tasks and key["method"] in options.methods and key["seed"] in options.seeds
        if wanted and key["version"] in options.sources:
            found[key["task"], key["method"], key["epsilon"], key["seed"]] = cell
    order = {name: at for at, name in enumerate((*TASKS, *METHODS, *IMAGE_METHODS))}
    return [found[key] for key in sorted(found, key=lambda key: (order[key[0]], key[2], order[key[1]], key[3]))]


def main() -> None:
    every = (*METHODS, *IMAGE_METHODS)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=list(every), choices=list(every))
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
    drawn = pictures([CACHE / source for source in sources], stem, lambda: load("gaussians25").train.iloc[:5000])
    stem.with_suffix(".md").write_text(pages.markdown(lines, told, [path.name for path in drawn]))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
