"""Where does which method win? The evidence behind `auto`: `python -m bench.auto`.

Small tables and small budgets, where methods part ways: every table x epsilon x seed x method, in one process, judged
by a quick referee (total variation distance of pairs and triples, AUC of logistic regression). Writes
bench/results/<date>-auto.json and .md. `--cells FILE` takes the cells of an earlier results file and fits nothing: for
a changed rule on the same evidence. `--unlabelled` takes the labels out of the schemas (they stay as columns), and
writes bench/results/<date>-auto-unlabelled.json and .md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from datetime import date
from pathlib import Path
from typing import Any

import understudy as us
from bench.cells import ROOT, Record, version
from bench.datasets import load
from bench.peers.domain import plain
from bench.referee import BINS, SEED, TRIPLES
from understudy.evaluation.distributions import tvd
from understudy.evaluation.prediction import train_on_synthetic
from understudy.privacy import Budget, default_delta

# Datasets, and how many of their training rows: None for all.
TABLES: tuple[tuple[str, int | None], ...] = (
    ("titanic", None),
    ("german_credit", None),
    ("cervical", None),
    ("pums_small", None),
    ("adult", 1000),
    ("bank", 3000),
    ("acs_excerpts", None),
    ("adult", 10_000),
    ("creditcard", None),
    ("covtype", None),
)
METHODS = ("mixture", "independent")
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SEEDS = (0, 1)
TEST_ROWS = 5000

RESULTS = ROOT / "bench" / "results"
CELLS = ROOT / "bench" / ".cache" / "auto.jsonl"
FIGURES = {"tvd2": "TVD2", "tvd3": "TVD3", "auc": "AUC"}

PREFACE = f"""\
Means over {len(SEEDS)} seeds, ± half of their range; delta is the default (from the declared rows). Lower is better for
TVD2 and TVD3 (mean total variation distance of all pairs and of {TRIPLES} triples of columns), higher for AUC (logistic
regression trained on synthetic rows, tested on real ones; `-` where the schema has no label or the synthetic rows one
class). Noise is seeded, with the scale that a release has. The best of a line is in bold; `auto` is the method that the
rule picks."""


def tables(wanted: tuple[tuple[str, int | None], ...], *, labelled: bool = True) -> dict[str, dict[str, Any]]:
    """Rows, test rows and schema of every table; a part of a dataset declares the size of that part."""
    found = {}
    for dataset, rows in wanted:
        data = load(dataset)
        schema = us.Schema.load(data.schema_path).confirmed()  # public tables: what only the rows told is public too
        train, test = plain(data.train, schema), plain(data.test, schema).head(TEST_ROWS)
        if rows is not None:
            train = train.sample(rows, random_state=SEED).reset_index(drop=True)
            schema = schema.model_copy(update={"rows": rows})
        if not labelled:
            schema = schema.model_copy(update={"label": None})
        name = f"{dataset} {len(train):,}" + ("" if labelled else ", no label")
        found[name] = {"train": train, "test": test, "schema": schema}
    return found


def measure(table: dict[str, Any], method: str, epsilon: float, seed: int) -> dict[str, float]:
    """Fits, draws as many rows as the table has, judges."""
    train, test, schema = table["train"], table["test"], table["schema"]
    begin = time.process_time()
    model = us.fit(train, schema, method=method, epsilon=epsilon, seed=seed)
    made = plain(model.sample(len(train), seed=seed), schema)
    figures = {"cpu_seconds": time.process_time() - begin}
    for order, sets in ((2, None), (3, TRIPLES)):
        result = tvd(train, made, schema, holdout=test, order=order, bins=BINS, sets=sets, seed=SEED)
        figures |= {f"tvd{order}": result.value, f"tvd{order}_real": result.reference}
    if schema.label is not None:
        result = train_on_synthetic(
            train, made, schema, holdout=test, models=("logistic_regression",), rows=TEST_ROWS, seed=SEED
        )
        figures |= {"auc": result.value, "auc_real": result.reference}
    return {name: value for name, value in figures.items() if value is not None}


def run(
    methods: tuple[str, ...], seeds: tuple[int, ...], record: Record, *, labelled: bool = True
) -> list[dict[str, Any]]:
    cells = []
    digest = version("ours")
    for name, table in tables(TABLES, labelled=labelled).items():
        schema = table["schema"]
        for epsilon in EPSILONS:
            for method in methods:
                for seed in seeds:
                    key = {"table": name, "epsilon": epsilon, "method": method, "seed": seed, "version": digest}
                    cell = record.get(key)
                    if cell is None:
                        shape = {"rows": schema.rows, "columns": len(schema.modelled)}
                        cell = record.add(key, shape | measure(table, method, epsilon, seed))
                        print(name, epsilon, method, seed, round(cell["tvd2"], 3), flush=True)
                    cells.append(cell)
    return cells


def summarise(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One line a table and epsilon: mean and half range of every figure by method."""
    groups: dict[tuple[str, float], dict[str, list[dict]]] = {}
    for cell in cells:
        place = (cell["key"]["table"], cell["key"]["epsilon"])
        groups.setdefault(place, {}).setdefault(cell["key"]["method"], []).append(cell)
    lines = []
    for (table, epsilon), methods in groups.items():
        first = next(iter(methods.values()))[0]
        line = {"table": table, "epsilon": epsilon, "rows": first["rows"], "columns": first["columns"], "methods": {}}
        for method, group in methods.items():
            figures = {name: [cell[name] for cell in group if name in cell] for name in FIGURES}
            line["methods"][method] = {
                name: {"mean": statistics.fmean(values), "spread": (max(values) - min(values)) / 2}
                for name, values in figures.items()
                if values
            }
        lines.append(line)
    return lines


def markdown(lines: list[dict[str, Any]], picks: dict[tuple[str, float], str], when: str) -> str:
    methods = list(dict.fromkeys(method for line in lines for method in line["methods"]))
    titles = [f"{title} {method}" for title in FIGURES.values() for method in methods]
    text = [f"# Which method where, {when}", "", PREFACE, ""]
    text += [f"| table | columns | epsilon | {' | '.join(titles)} | auto |"]
    text += ["| --- | ---: | ---: |" + " ---: |" * len(titles) + " --- |"]
    for line in lines:
        shown = [_shown(line, name, method) for name in FIGURES for method in methods]
        pick = picks[line["table"], line["epsilon"]]
        text.append(f"| {line['table']} | {line['columns']} | {line['epsilon']:g} | {' | '.join(shown)} | {pick} |")
    text += ["", "## How often the rule picks the better one", "", *_score(lines, picks)]
    return "\n".join(text) + "\n"


def _best(line: dict[str, Any], name: str) -> str | None:
    """The method with the best mean, where more than one has the figure."""
    means = {method: found[name]["mean"] for method, found in line["methods"].items() if name in found}
    if len(means) < 2:
        return None
    return (max if name == "auc" else min)(means, key=means.__getitem__)


def _shown(line: dict[str, Any], name: str, method: str) -> str:
    entry = line["methods"][method].get(name)
    if entry is None:
        return "-"
    text = f"{entry['mean']:.3f} ± {entry['spread']:.3f}"
    return f"**{text}**" if _best(line, name) == method else text


def _score(lines: list[dict[str, Any]], picks: dict[tuple[str, float], str]) -> list[str]:
    methods = list(lines[0]["methods"])
    text = ["| figure | lines | auto | " + " | ".join(f"always {method}" for method in methods) + " |"]
    text += ["| --- | ---: | ---: |" + " ---: |" * len(methods)]
    comparable = {name: [line for line in lines if _best(line, name) is not None] for name in FIGURES}
    for name, told in comparable.items():
        hits = sum(_best(line, name) == picks[line["table"], line["epsilon"]] for line in told)
        always = [str(sum(_best(line, name) == method for line in told)) for method in methods]
        text.append(f"| {FIGURES[name]} | {len(told)} | {hits} | {' | '.join(always)} |")
    for name, told in comparable.items():
        if told:
            chosen = [line["methods"][picks[line["table"], line["epsilon"]]][name]["mean"] for line in told]
            fixed = [[line["methods"][method][name]["mean"] for line in told] for method in methods]
            means = [f"{statistics.fmean(values):.3f}" for values in (chosen, *fixed)]
            text.append(f"| mean {FIGURES[name]} | {len(told)} | {' | '.join(means)} |")
    return text


def picked(lines: list[dict[str, Any]], *, labelled: bool = True) -> dict[tuple[str, float], str]:
    """What the public rule says about every line."""
    from understudy.synthesizers.auto import choose

    schemas = {name: table["schema"] for name, table in tables(TABLES, labelled=labelled).items()}
    picks = {}
    for line in lines:
        schema = schemas[line["table"]]
        budget = Budget(line["epsilon"], default_delta(schema.rows))
        picks[line["table"], line["epsilon"]] = choose(schema, budget).method
    return picks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--more", nargs="+", default=(), help=f"methods besides {' and '.join(METHODS)}")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    parser.add_argument("--cells", type=Path, help="a results file whose cells are taken instead of new fits")
    parser.add_argument("--unlabelled", action="store_true", help="without the schemas' labels")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.cells is not None:
        cells = json.loads(options.cells.read_text())["cells"]
    else:
        methods, seeds = (*METHODS, *options.more), tuple(options.seeds)
        cells = run(methods, seeds, Record(CELLS), labelled=not options.unlabelled)
    lines, when = summarise(cells), date.today().isoformat()
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / (f"{when}-auto-unlabelled" if options.unlabelled else f"{when}-auto")
    stem.with_suffix(".json").write_text(json.dumps({"date": when, "summary": lines, "cells": cells}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(lines, picked(lines, labelled=not options.unlabelled), when))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
