"""What choosing rows evenly brings: the same fits, drawn both ways: `python -m bench.even`.

Tables of the bench and fresh ones of `bench.fresh`, several methods; every fit is drawn from as its method draws, and
evenly, and judged by the referee. Finished cells are kept; writes bench/results/<date>-even.json and .md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import date
from typing import Any

import understudy as us
from bench import fresh
from bench.cells import ROOT, Record, version
from bench.datasets import load
from bench.peers.comparison import FIGURES
from bench.peers.domain import plain
from bench.referee import judge

EPSILON, DELTA = 1.0, 1e-5
OWN = ("titanic", "german_credit", "acs_excerpts", "bank", "cardio", "adult")
TABLES = (*OWN, *fresh.TABLES)
METHODS = ("mixture", "mst", "independent")
CELLS = ROOT / "bench" / ".cache" / "even.jsonl"

PREFACE = f"""\
Epsilon {EPSILON:g}, delta {DELTA:g}; mean of {{seeds}} seeds. In each cell: as the method draws, then evenly, from the
same fits with the same seeds. Lower is better for TVD2, TVD3 and C2ST (0.5 is ideal), higher for AUC. Seconds of a draw
by the clock, on a machine that may have been busy."""


def table(name: str) -> dict[str, Any]:
    if name in fresh.TABLES:
        return fresh.load(name)
    data = load(name)
    schema = us.Schema.load(data.schema_path).confirmed()
    return {"train": plain(data.train, schema), "test": plain(data.test, schema), "schema": schema}


def measure(found: dict[str, Any], method: str, seed: int) -> dict[str, Any]:
    train, schema = found["train"], found["schema"]
    model = us.fit(train, schema, method=method, epsilon=EPSILON, delta=DELTA, seed=seed)
    draws: dict[str, Any] = {}
    for even in (False, True):
        begin = time.perf_counter()
        made = model.sample(len(train), seed=seed, even=even)
        seconds = time.perf_counter() - begin
        figures = judge(plain(made, schema), train, found["test"], schema, fresh.CAPS)
        draws["even" if even else "drawn"] = {"seconds": seconds, **figures}
    return {"rows": len(train), "columns": len(schema.modelled), **draws}


def run(names: list[str], methods: list[str], seeds: int, record: Record) -> list[dict[str, Any]]:
    cells, digest = [], version("ours")
    for name in names:
        found = table(name)
        for method in methods:
            for seed in range(seeds):
                key = {"table": name, "method": method, "seed": seed, "version": digest}
                cell = record.get(key) or record.add(key, measure(found, method, seed))
                cells.append(cell)
                shown = [f"{title} {_both([cell], figure)}" for figure, title in FIGURES.items()]
                print(name, method, seed, *shown, _both([cell], "seconds"), flush=True)
    return cells


def _both(cells: list[dict[str, Any]], figure: str) -> str:
    """The mean of a figure as drawn, and evenly; nothing where it is not defined."""
    places = 1 if figure == "seconds" else 4
    means = [
        statistics.fmean(cell[way][figure] for cell in cells)
        for way in ("drawn", "even")
        if all(figure in cell[way] for cell in cells)
    ]
    return ", ".join(f"{mean:.{places}f}" for mean in means)


def markdown(cells: list[dict[str, Any]], when: str) -> str:
    seeds = len({cell["key"]["seed"] for cell in cells})
    text = [f"# Rows as they are drawn, and chosen evenly, {when}", "", PREFACE.format(seeds=seeds), ""]
    for method in dict.fromkeys(cell["key"]["method"] for cell in cells):
        text += [f"## {method}", "", f"| table | {' | '.join(FIGURES.values())} | draw (s) |"]
        text += ["| --- |" + " ---: |" * (len(FIGURES) + 1)]
        of_method = [cell for cell in cells if cell["key"]["method"] == method]
        for name in dict.fromkeys(cell["key"]["table"] for cell in of_method):
            group = [cell for cell in of_method if cell["key"]["table"] == name]
            shown = [_both(group, figure) for figure in (*FIGURES, "seconds")]
            text.append(f"| {name} ({group[0]['rows']:,} x {group[0]['columns']}) | {' | '.join(shown)} |")
        text += [f"| mean difference | {' | '.join(_difference(of_method, figure) for figure in FIGURES)} | |", ""]
    return "\n".join(text)


def _difference(cells: list[dict[str, Any]], figure: str) -> str:
    """Even less drawn, the mean over cells with its standard error."""
    found = [cell["even"][figure] - cell["drawn"][figure] for cell in cells if figure in cell["drawn"]]
    if len(found) < 2:
        return ""
    return f"{statistics.fmean(found):+.4f} ± {statistics.stdev(found) / len(found) ** 0.5:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    names = options.tables.split(",")
    if set(names) - set(TABLES):
        parser.error(f"--tables: choose from {', '.join(TABLES)}")
    cells = run(names, options.methods.split(","), options.seeds, Record(CELLS))
    when = date.today().isoformat()
    stem = fresh.RESULTS / f"{when}-even"
    stem.with_suffix(".json").write_text(json.dumps({"date": when, "cells": cells}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(cells, when))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
