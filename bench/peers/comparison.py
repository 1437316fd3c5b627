"""A comparison of methods, ours and peers': all cells, their summary, and the page that shows it.

Same rows, same public facts, same budget, same referee; every fit in a process of its own. Cells that are done are kept
and not run again.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

from bench.cells import ROOT, Method, Record, packages, run_cell, version
from bench.datasets import load
from bench.peers.plot import plot
from understudy import Schema

DELTA = 1e-5
CPU_SECONDS = 15 * 60

RESULTS = ROOT / "bench" / "results"
CELLS = ROOT / "bench" / ".cache" / "foundation.jsonl"  # one record for all comparisons: a cell is run once

WATCHED = (
    *("understudy", "numpy", "jax", "dpmm", "smartnoise-synth", "mbi", "opendp", "scikit-learn", "xgboost-cpu"),
    *("datasynthesizer", "pandas", "torch"),
)
# What each peer is told and what it still takes from the rows. All get the schema's values and bounds.
USE = {
    "dpmm": "its own pipelines; values and bounds are declared. PrivTree cuts numeric columns with a tenth of the "
    "budget, which is taken out of epsilon.",
    "smartnoise": "columns as public cells, through a transformer fitted to the declared codes; left alone, the "
    "library would read categories off the rows.",
    "datasynthesizer": "correlated mode (PrivBayes, two parents) on 20 public cells a numeric column, all domains "
    "declared. Pure epsilon-DP, so that delta is of no use to it. The number of rows is read off the table. It also "
    "releases one-way tables with the full epsilon, for rows whose parents were never seen, and does not count "
    "them: what it is given as epsilon 1 is up to 2.",
}

FIGURES = {
    "tvd2": "TVD2",
    "tvd3": "TVD3",
    "auc_logistic_regression": "AUC log. reg.",
    "auc_random_forest": "AUC forest",
    "auc_xgboost": "AUC XGBoost",
    "c2st": "C2ST",
}
COSTS = {"fit_seconds": "fit (s)", "cpu_seconds": "processor (s)", "peak_mib": "peak memory (MiB)"}

PREFACE = """\
epsilon {epsilon:g}, delta {delta:g}, unit one row; mean ± standard deviation over the seeds. Lower is better for TVD2,
TVD3 and C2ST (0.5 is ideal), higher for AUC. The line `real rows` is what real rows score in the place of synthetic
ones: test rows for TVD and C2ST, training rows for AUC. Seconds are by the clock, on a machine that may have been busy;
processor seconds count all threads, start-up included."""


def key_of(dataset: str, method: Method, seed: int, epsilon: float) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "method": method.name,
        "seed": seed,
        "epsilon": epsilon,
        "delta": DELTA,
        "version": version(method.runner),
    }


def run(
    datasets: tuple[str, ...],
    methods: tuple[Method, ...],
    seeds: tuple[int, ...],
    record: Record,
    *,
    epsilon: float,
    minutes: float = math.inf,
) -> list[dict]:
    """All cells, those at hand from the record. A method that ran out of time on a dataset is not asked again there."""
    cells, begin = [], time.monotonic()
    for dataset in datasets:
        data = load(dataset)
        for method in methods:
            for seed in seeds:
                key = key_of(dataset, method, seed, epsilon)
                cell = record.get(key)
                if cell is None:
                    earlier = [c for c in cells if c["key"]["dataset"] == dataset and c["key"]["method"] == method.name]
                    late = time.monotonic() - begin >= 60 * minutes
                    if late or any(c["status"].startswith("not done") for c in earlier):
                        continue
                    outcome = run_cell(data, method, seed, epsilon=epsilon, delta=DELTA, cpu_seconds=CPU_SECONDS)
                    cell = record.add(key, outcome)
                    print(dataset, method.name, seed, cell["status"], flush=True)
                cells.append(cell)
    return cells


def summarise(cells: list[dict]) -> list[dict[str, Any]]:
    """Mean and spread (standard deviation over the seeds) of every number, a row for each dataset and method."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for cell in cells:
        groups.setdefault((cell["key"]["dataset"], cell["key"]["method"]), []).append(cell)
    rows = []
    for (dataset, method), group in groups.items():
        done = [cell for cell in group if cell["status"] == "ok"]
        row: dict[str, Any] = {
            "dataset": dataset,
            "method": method,
            "seeds": len(done),
            "problems": sorted({cell["status"] for cell in group if cell["status"] != "ok"}),
        }
        for name in sorted({name for cell in done for name in cell} - {"key", "status"}):
            values = [cell[name] for cell in done if name in cell]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            row[name] = {"mean": statistics.fmean(values), "spread": spread}
        rows.append(row)
    return rows


def markdown(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    preface = PREFACE.format(epsilon=facts["epsilon"], delta=DELTA)
    lines = [f"# {facts['title']}, {facts['date']}", "", preface, ""]
    if facts.get("picture"):
        lines += [f"![Quality against processor seconds]({facts['picture']})", ""]
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        group = [row for row in rows if row["dataset"] == dataset]
        told = facts["datasets"][dataset]
        lines += [
            f"## {dataset}",
            "",
            f"{told['rows']:,} training rows, {told['columns']} modelled columns; {told['note']}.",
        ]
        if told["confirmed"]:
            lines.append(f"Facts read off this public table and confirmed here: {', '.join(told['confirmed'])}.")
        titles = [*FIGURES.values(), *COSTS.values()]
        lines += ["", "| method | " + " | ".join(titles) + " |", "| --- |" + " ---: |" * len(titles)]
        real = [_shown(group, f"{name}_real") for name in FIGURES]
        lines.append("| real rows | " + " | ".join([*real, *("" for _ in COSTS)]) + " |")
        for row in group:
            if row["seeds"]:
                shown = [_number(row.get(name), 3) for name in FIGURES] + [_number(row.get(name), 0) for name in COSTS]
                mark = "" if row["seeds"] == facts["seeds"] else f" ({row['seeds']} seed{'s' * (row['seeds'] > 1)})"
                lines.append(f"| {row['method']}{mark} | " + " | ".join(shown) + " |")
            for problem in row["problems"]:
                lines.append(f"| {row['method']} | {problem} |" + " |" * (len(titles) - 1))
        lines.append("")
    lines += [
        "## How the peers are used",
        "",
        *(f"- **{runner}**: {told}" for runner, told in facts["use"].items()),
        "",
    ]
    lines += ["## Versions", "", f"Python {facts['python']}, {facts['cores']} cores."]
    lines += [f"- {runner}: {', '.join(shown)}" for runner, shown in facts["packages"].items()]
    return "\n".join(lines) + "\n"


def _shown(group: list[dict[str, Any]], name: str) -> str:
    found = [row[name]["mean"] for row in group if name in row]
    return f"{found[0]:.3f}" if found else ""


def _number(entry: dict[str, float] | None, digits: int) -> str:
    if entry is None:
        return "undefined"
    return f"{entry['mean']:,.{digits}f} ± {entry['spread']:.{digits}f}"


def facts_of(
    datasets: tuple[str, ...], methods: tuple[Method, ...], seeds: int, title: str, epsilon: float
) -> dict[str, Any]:
    told = {}
    for name in datasets:
        data = load(name)
        schema = Schema.load(data.schema_path)
        confirmed = [f"{fact} of {column}" for column, fact in schema.unconfirmed()]
        told[name] = {
            "rows": len(data.train),
            "columns": len(schema.modelled),
            "note": data.note,
            "confirmed": confirmed,
        }
    listed = {method.runner: packages(method.runner) for method in methods}
    return {
        "title": title,
        "epsilon": epsilon,
        "date": date.today().isoformat(),
        "seeds": seeds,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "datasets": told,
        "packages": {
            runner: [line for line in lines if line.partition("==")[0].lower() in WATCHED]
            for runner, lines in listed.items()
        },
        "use": {runner: USE[runner] for runner in listed if runner in USE},
    }


def compare(
    datasets: tuple[str, ...],
    methods: tuple[Method, ...],
    seeds: tuple[int, ...],
    *,
    title: str,
    results: Path,
    name: str,
    record: Path = CELLS,
    epsilon: float = 1.0,
    minutes: float = math.inf,
) -> Path:
    """Runs what is not at hand, then writes <date>-<name>.json, .md and .png; returns the page's path."""
    cells = run(datasets, methods, seeds, Record(record), epsilon=epsilon, minutes=minutes)
    rows, facts = summarise(cells), facts_of(datasets, methods, len(seeds), title, epsilon)
    results.mkdir(parents=True, exist_ok=True)
    page, data, picture = (results / f"{facts['date']}-{name}.{ending}" for ending in ("md", "json", "png"))
    facts["picture"] = picture.name if plot(rows, picture) else None
    data.write_text(json.dumps({**facts, "summary": rows, "cells": cells}, indent=1) + "\n")
    page.write_text(markdown(rows, facts))
    return page
