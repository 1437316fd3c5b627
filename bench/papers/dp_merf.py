"""Tables 2 and 3 of the DP-MERF paper, with our methods: `python -m bench.papers.dp_merf`.

Eight tables at epsilon 1 and without privacy, MNIST and Fashion-MNIST at epsilon 9.6, 2.9 and 1.3; twelve classifiers,
five seeds, each fit in a process of its own with noise of its own; the paper's figures beside ours. Writes
bench/results/<date>-dp-merf.md, .json, and a picture of made images a set.

What was made and measured is kept in bench/.cache, so that a run goes on where it was broken off: first the classifiers
on real rows, once a dataset, then the first seed of everything, epsilon 1 first. `--minutes` ends a run in time; with 0
the results are written from what is at hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from pathlib import Path
from typing import Any

from bench.cells import ROOT, Record, make_rows, ours, packages, read_made, version
from bench.datasets import FILES, Dataset, locate
from bench.papers import dp_merf_images as images
from bench.papers import dp_merf_judge as judge
from bench.papers import dp_merf_pages as pages
from bench.papers import dp_merf_tasks as tasks
from bench.papers.dp_merf_published import DELTA
from understudy.evaluation import encoding, models
from understudy.synthesizers.api import METHODS, method_module

COMPARED = ("dp-merf", "dp-cgan", "mixture", "independent")
EPSILONS = (1.0, inf)
DATASETS = (*tasks.RECIPES, *images.NAMES)
SEEDS = (0, 1, 2, 3, 4)
CPU_SECONDS = 15 * 60
WORKERS = 2
REAL = "real"  # in the place of a method: classifiers trained on real rows

RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "dp-merf"
WATCHED = ("understudy", "numpy", "jax", "optax", "dp-accounting", "opendp", "scikit-learn", "xgboost-cpu")


@dataclass(frozen=True)
class Job:
    """One made table or set of images to be measured, or real rows."""

    dataset: str
    method: str
    epsilon: str  # as text, with "inf"; "" for real rows
    seed: int
    source: str  # digest of the code that makes the rows, taken once: a tree may change while a run goes on


def key_of(job: Job) -> dict[str, Any]:
    made = {"dataset": job.dataset, "method": job.method, "epsilon": job.epsilon, "delta": DELTA, "seed": job.seed}
    return {**made, "version": job.source, "referee": referee(job.dataset)}


def referee(dataset: str) -> str:
    """Digest of the code that prepares a dataset and judges it."""
    files = [images if dataset in images.NAMES else tasks, judge, models, encoding]
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file.__file__).read_bytes())
    return digest.hexdigest()[:12]


def makes_images(method: str) -> bool:
    return getattr(method_module(method), "IMAGES", False)


def plan(
    methods: tuple[str, ...],
    datasets: tuple[str, ...],
    epsilons: tuple[float, ...],
    seeds: tuple[int, ...],
    source: str,
) -> list[Job]:
    """What to do, in an order that makes a run that ends early as complete as it can be."""
    jobs = [Job(dataset, REAL, "", 0, "") for dataset in datasets]
    cells = [
        (dataset, method, epsilon)
        for without_privacy in (False, True)
        for method in methods
        for dataset in datasets
        for epsilon in (images.EPSILONS if dataset in images.NAMES else EPSILONS)
        if epsilon in epsilons and (epsilon == inf) == without_privacy
        if dataset not in images.NAMES or makes_images(method)
    ]
    jobs += [Job(dataset, method, f"{epsilon:g}", seed, source) for seed in seeds for dataset, method, epsilon in cells]
    return jobs


def made_path(job: Job) -> Path:
    ending = "npz" if job.dataset in images.NAMES else "csv.gz"
    return CACHE / job.source / f"{job.dataset}-{job.method}-{job.epsilon}-{job.seed}.{ending}"


def work(job: Job) -> dict[str, Any]:
    """Makes the rows, unless they are at hand, and measures; in a process of the pool."""
    begin = time.process_time()
    outcome = work_image(job) if job.dataset in images.NAMES else work_table(job)
    return outcome | {"judge_seconds": time.process_time() - begin}


def work_table(job: Job) -> dict[str, Any]:
    task = tasks.task(job.dataset)
    if job.method == REAL:
        return {"status": "ok"} | judge.judge_table(task, task.train)
    path, spent = made_path(job), made_path(job).with_suffix(".json")
    if spent.exists():
        outcome, made = json.loads(spent.read_text()), read_made(path, task.schema)
    else:
        with tempfile.TemporaryDirectory() as folder:
            schema = Path(folder) / "schema.yaml"
            task.schema.save(schema)
            data = Dataset(task.name, task.train, task.test, schema, task.schema.label, task.note)
            outcome, made = make_rows(
                data, ours(job.method), job.seed, epsilon=float(job.epsilon), delta=DELTA, cpu_seconds=CPU_SECONDS
            )
        if made is None:
            return outcome
        made = made.sample(min(len(made), judge.TRAINED), random_state=job.seed)  # more are not looked at
        path.parent.mkdir(parents=True, exist_ok=True)
        made.to_csv(path, index=False)
        spent.write_text(json.dumps(outcome))  # last: a table without it was cut off while it was written
    return outcome | judge.judge_table(task, made)


def work_image(job: Job) -> dict[str, Any]:
    if job.method == REAL:
        return {"status": "ok"} | images.judge_images(job.dataset, images.real(job.dataset, "train"))
    path, spent = made_path(job), made_path(job).with_suffix(".json")
    if spent.exists():
        outcome = json.loads(spent.read_text())
    else:
        outcome = images.make_images(
            job.dataset, job.method, float(job.epsilon), DELTA, job.seed, path, seconds=4 * CPU_SECONDS
        )
        if outcome["status"] != "ok":
            return outcome
        spent.write_text(json.dumps(outcome))
    return outcome | images.judge_images(job.dataset, images.read(path))


def on_record(record: Record, job: Job, earlier: tuple[str, ...]) -> dict[str, Any] | None:
    """The cell of a job: of its own source, or else a good one of an earlier source that counts as well."""
    cells = [record.get(key_of(replace(job, source=source))) for source in (job.source, *earlier)]
    good = [cell for cell in cells if cell is not None and cell["status"] == "ok"]
    return good[0] if good else cells[0]


def run(
    jobs: list[Job], record: Record, *, workers: int, minutes: float, earlier: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Does what is not on record, and gives back all cells that are done. A cell that failed is tried again."""
    begin = time.monotonic()
    todo = [job for job in jobs if (on_record(record, job, earlier) or {}).get("status") != "ok"]
    context = multiprocessing.get_context("spawn")  # the parent may hold threads, which a fork would cut off
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        running: dict[Any, Job] = {}
        while todo or running:
            while todo and len(running) < workers and time.monotonic() - begin < 60 * minutes:
                job = todo.pop(0)
                running[pool.submit(work, job)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                cell = record.add(key_of(job), future.result())
                print(
                    job.dataset, job.method, job.epsilon, job.seed, cell["status"], f"({len(todo)} to go)", flush=True
                )
    return [cell for job in jobs if (cell := on_record(record, job, earlier)) is not None]


def at_hand(datasets: tuple[str, ...]) -> tuple[str, ...]:
    """Those whose files are there, or could be fetched; of the others the reader is told."""
    found = []
    for name in datasets:
        family = name if name in images.NAMES else tasks.RECIPES[name].dataset
        try:
            for file in FILES[family]:
                locate(family, file)
        except OSError as missing:
            print(f"{name} is left out: {missing}", flush=True)
        else:
            found.append(name)
    return tuple(found)


def facts(options: argparse.Namespace, cells: list[dict[str, Any]]) -> dict[str, Any]:
    chosen = {name: getattr(options, name) for name in ("methods", "datasets", "epsilons", "seeds", "earlier")}
    words = [str(word) for name, values in chosen.items() if values for word in (f"--{name}", *values)]
    return {
        "date": date.today().isoformat(),
        "command": " ".join(["python", "-m", "bench.papers.dp_merf", *words]),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "sources": list(dict.fromkeys(source for cell in cells if (source := cell["key"]["version"]))),
        "packages": [line for line in packages("ours") if line.partition("==")[0].lower() in WATCHED],
        "delta": DELTA,
        "seeds": len(options.seeds),
        "caps": {"table": [judge.TRAINED, judge.TESTED], "images": [images.TRAINED, images.TRAINED]},
    }


def about(dataset: str) -> dict[str, Any]:
    """What a page says of a table: rows of both parts, and the share of the class that is looked for."""
    task = tasks.task(dataset)
    searched = "largest class" if task.positive is None else f"{task.schema.label} {task.positive}"
    sizes = {"train": len(task.train), "test": len(task.test), "columns": len(task.schema.modelled)}
    return {"dataset": dataset, **sizes, "searched": searched, "base_rate": task.base_rate, "note": task.note}


def job_of(key: dict[str, Any]) -> Job:
    return Job(key["dataset"], key["method"], key["epsilon"], key["seed"], key["version"])


def draw(jobs: list[Job], stem: Path) -> list[str]:
    """A picture a set and method, of the first seed: real images, then made ones, largest epsilon first."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        if job.dataset in images.NAMES and job.method != REAL and made_path(job).exists():
            groups.setdefault((job.dataset, job.method), []).append(job)
    drawn = []
    for (dataset, method), made in groups.items():
        first = [job for job in made if job.seed == made[0].seed]
        blocks = [images.by_class(images.read(made_path(job)), 2) for job in first]
        path = stem.with_name(f"{stem.name}-{dataset}-{method}.png")
        images.write_png(path, images.grid([images.by_class(images.real(dataset, "test"), 2), *blocks]))
        drawn.append(path.name)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = tuple(name for name in COMPARED if name in METHODS)
    parser.add_argument("--methods", nargs="+", default=usual, choices=tuple(METHODS))
    parser.add_argument("--datasets", nargs="+", default=DATASETS, choices=DATASETS)
    parser.add_argument("--epsilons", nargs="+", type=float, default=(*EPSILONS, *images.EPSILONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--minutes", type=float, default=inf, help="start nothing after this time")
    parser.add_argument("--earlier", nargs="+", default=(), help="digests of earlier sources whose cells count as well")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the workers' linear algebra: one core each
    source = version("ours")
    options.datasets = at_hand(tuple(options.datasets))
    jobs = plan(tuple(options.methods), options.datasets, tuple(options.epsilons), tuple(options.seeds), source)
    record, earlier = Record(CACHE / "cells.jsonl"), tuple(options.earlier)
    cells = run(jobs, record, workers=options.workers, minutes=options.minutes, earlier=earlier)
    told, lines = facts(options, cells), pages.summarise(cells)
    told["tables"] = [about(name) for name in options.datasets if name in tasks.RECIPES]
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{told['date']}-dp-merf"
    told["pictures"] = draw([job_of(cell["key"]) for cell in cells], stem)
    stem.with_suffix(".json").write_text(pages.as_json(told, lines, cells))
    stem.with_suffix(".md").write_text(pages.markdown(lines, told))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
