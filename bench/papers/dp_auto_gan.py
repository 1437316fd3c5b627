"""The ADULT tables of the DP-auto-GAN paper, with our methods: `python -m bench.papers.dp_auto_gan`.

Every method at the paper's three epsilons, five times, each fit in a process of its own with noise of its own; the
paper's figures beside ours. Writes bench/results/<date>-dp-auto-gan.md, .json and .html (the pictures).

Rows that were made and figures that were measured are kept in bench/.cache, so that a run goes on where it was broken
off: the first seed of everything comes first, then the other seeds; each time what is dear (every column's prediction)
comes last. `--minutes` ends a run in time; with 0 the results are written from what is at hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.cells import ROOT, Record, make_rows, ours, packages, read_made, version
from bench.datasets import load
from bench.papers import adult, figures, pages
from bench.papers.published import COMPARED, DELTA, EPSILONS
from understudy.synthesizers.api import METHODS

BESIDE = ("mixture", "independent")
SEEDS = (0, 1, 2, 3, 4)
CPU_SECONDS = 15 * 60
WORKERS = 2

RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "dp-auto-gan"
WATCHED = ("understudy", "numpy", "jax", "optax", "dp-accounting", "opendp", "scikit-learn", "xgboost-cpu")


@dataclass(frozen=True)
class Job:
    """One made table, and what is to be measured on it."""

    method: str
    epsilon: float
    seed: int
    part: str
    source: str  # digest of the code that makes the rows, taken once: a tree may change while a run goes on


def key_of(job: Job) -> dict[str, Any]:
    referee = hashlib.sha256(Path(adult.__file__).read_bytes()).hexdigest()[:12]
    made = {"method": job.method, "epsilon": job.epsilon, "delta": DELTA, "seed": job.seed}
    return {**made, "part": job.part, "version": job.source, "referee": referee}


def plan(methods: tuple[str, ...], epsilons: tuple[float, ...], seeds: tuple[int, ...], source: str) -> list[Job]:
    """What to do, in an order that makes a run that ends early as complete as it can be."""
    cells = [(method, epsilon) for epsilon in reversed(epsilons) for method in methods]
    passes = [(seed, part) for some in (seeds[:1], seeds[1:]) for part in adult.PARTS for seed in some]
    return [Job(*cell, seed, part, source) for seed, part in passes for cell in cells]


def rows_path(job: Job) -> Path:
    return CACHE / job.source / f"{job.method}-{job.epsilon:g}-{job.seed}.csv.gz"


def work(job: Job) -> dict[str, Any]:
    """Makes the rows, unless they are at hand, and measures; in a process of the pool."""
    path, spent = rows_path(job), rows_path(job).with_suffix(".json")
    train, test, schema = adult.adult()
    if spent.exists():
        outcome, made = json.loads(spent.read_text()), read_made(path, schema)
    else:
        outcome, made = make_rows(
            load("adult"), ours(job.method), job.seed, epsilon=job.epsilon, delta=DELTA, cpu_seconds=CPU_SECONDS
        )
        if made is None:
            return outcome
        path.parent.mkdir(parents=True, exist_ok=True)
        made.to_csv(path, index=False)
        spent.write_text(json.dumps(outcome))  # last: a table without it was cut off while it was written
    return outcome | adult.judge(job.part, made, (train, test, schema))


def run(jobs: list[Job], record: Record, *, workers: int, minutes: float) -> list[dict[str, Any]]:
    """Does what is not on record, and gives back all cells that are done. A cell that failed is tried again."""
    begin = time.monotonic()
    todo = [job for job in jobs if (record.get(key_of(job)) or {}).get("status") != "ok"]
    context = multiprocessing.get_context("spawn")  # the parent may hold threads, which a fork would cut off
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running: dict[Any, Job] = {}
        while todo or running:
            while len(running) < workers and time.monotonic() - begin < 60 * minutes:
                making = {rows_path(job) for job in running.values()}  # a table's second part waits for its rows
                ready = next((at for at, job in enumerate(todo) if rows_path(job) not in making), None)
                if ready is None:
                    break
                job = todo.pop(ready)
                running[pool.submit(work, job)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                cell = record.add(key_of(job), future.result())
                print(job.method, job.epsilon, job.seed, job.part, cell["status"], f"({len(todo)} to go)", flush=True)
    return [cell for job in jobs if (cell := record.get(key_of(job))) is not None]


def facts(options: argparse.Namespace) -> dict[str, Any]:
    chosen = [("--methods", options.methods), ("--epsilons", options.epsilons), ("--seeds", options.seeds)]
    words = [str(word) for name, values in chosen for word in (name, *values)]
    return {
        "date": date.today().isoformat(),
        "command": " ".join(["python", "-m", "bench.papers.dp_auto_gan", *words]),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "source": version("ours"),
        "packages": [line for line in packages("ours") if line.partition("==")[0].lower() in WATCHED],
        "delta": DELTA,
        "seeds": len(options.seeds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = tuple(name for name in (*COMPARED, *BESIDE) if name in METHODS)
    parser.add_argument("--methods", nargs="+", default=usual, choices=tuple(METHODS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start nothing after this time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    jobs = plan(tuple(options.methods), tuple(options.epsilons), tuple(options.seeds), version("ours"))
    cells = run(jobs, Record(CACHE / "cells.jsonl"), workers=options.workers, minutes=options.minutes)
    told, rows = facts(options), pages.summarise(cells)
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{told['date']}-dp-auto-gan"
    stem.with_suffix(".json").write_text(json.dumps({**told, "summary": rows, "cells": cells}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(pages.markdown(rows, told))
    shown = figures.shown([cell for cell in cells if cell["key"]["seed"] == options.seeds[0]], jobs, rows_path)
    stem.with_suffix(".html").write_text(figures.html(shown, told))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
