"""Tables of few columns: where is `aim` closer than `mixture`? The evidence behind that line of `auto`:
`python -m bench.narrow`.

Columns of public tables, drawn by a seed, with and without the label, many rows and few; every table x method in one
process, judged as in `bench.auto`. Sorted by what the rule looks at: the declared rows of a mean cell of all columns
together over its noise. Writes bench/results/<date>-narrow.json and .md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import understudy as us
from bench.auto import RESULTS, measure
from bench.cells import ROOT, Record, version
from bench.datasets import load
from bench.peers.domain import plain
from bench.referee import SEED
from understudy.privacy import Budget, default_delta
from understudy.synthesizers.auto import choose, held_by_a_cell

DATASETS = ("adult", "bank", "cardio", "covtype", "acs_excerpts", "titanic", "german_credit")
WIDTHS = (2, 3, 4, 6, 8)
ROWS = (30_000, 3_000)
METHODS = ("mixture", "aim")
EPSILON = 1.0
CELLS = ROOT / "bench" / ".cache" / "narrow.jsonl"
# Groups of the page, by what a mean cell holds.
EDGES = (0.0, 0.1, 1.0, 5.0, 10.0, 40.0, math.inf)

PREFACE = f"""\
Epsilon {EPSILON:g}, one fit each, delta the default. Lower is better for TVD2 and TVD3, higher for AUC (logistic
regression; `-` without a label). `held`: declared rows of a mean cell of all columns together over its noise; `auto` is
the method that the rule picks."""


def tables() -> Iterator[tuple[str, dict[str, Any]]]:
    """Some columns of each dataset, the same ones whenever this is run."""
    for width in WIDTHS:
        for dataset in DATASETS:
            data = load(dataset)
            schema = us.Schema.load(data.schema_path).confirmed()
            train, test = plain(data.train, schema), plain(data.test, schema).head(5000)
            for labelled in (True, False):
                draw = random.Random(f"{dataset} {width} {labelled}")
                others = [name for name in train if name != schema.label]
                if len(others) < width - labelled:
                    continue
                names = draw.sample(others, width - labelled)
                names = [name for name in train if name in names or (labelled and name == schema.label)]
                for rows in ROWS if len(train) > ROWS[-1] else (len(train),):
                    part = train[names].sample(min(rows, len(train)), random_state=SEED).reset_index(drop=True)
                    facts = {"columns": {name: schema.columns[name] for name in names}, "rows": len(part), "rules": ()}
                    facts["label"] = schema.label if labelled else None
                    told = f"{dataset} {len(part):,}, {width} columns" + (", label" if labelled else "")
                    yield told, {"train": part, "test": test[names], "schema": schema.model_copy(update=facts)}


def run(record: Record) -> list[dict[str, Any]]:
    lines, digest = [], version("ours")
    for name, table in tables():
        schema = table["schema"]
        budget = Budget(EPSILON, default_delta(schema.rows))
        held, pick = held_by_a_cell(schema, budget), choose(schema, budget).method
        line = {"table": name, "columns": list(schema.columns), "held": held, "auto": pick, "methods": {}}
        for method in METHODS:
            key = {"table": name, "columns": line["columns"], "method": method, "version": digest}
            found = record.get(key) or record.add(key, measure(table, method, EPSILON, 0))
            line["methods"][method] = {figure: value for figure, value in found.items() if figure != "key"}
        lines.append(line)
        shown = {method: round(found["tvd2"], 4) for method, found in line["methods"].items()}
        print(name, f"{held:.3g}", pick, shown, flush=True)
    return lines


def markdown(lines: list[dict[str, Any]], when: str) -> str:
    text = [f"# Few columns: which method where, {when}", "", PREFACE, "", *_groups(lines), ""]
    text += ["| table | held | TVD2 mixture | aim | TVD3 mixture | aim | AUC mixture | aim | auto |"]
    text += ["| --- | ---: |" + " ---: |" * 6 + " --- |"]
    for line in sorted(lines, key=lambda line: -line["held"]):
        shown = [
            f"{line['methods'][method][name]:.4f}" if name in line["methods"][method] else "-"
            for name in ("tvd2", "tvd3", "auc")
            for method in METHODS
        ]
        text.append(f"| {line['table']} | {line['held']:.3g} | {' | '.join(shown)} | {line['auto']} |")
    return "\n".join(text) + "\n"


def _groups(lines: list[dict[str, Any]]) -> list[str]:
    """Lines by what a mean cell holds: how much larger distances are with `mixture`, and how often `aim` is closer."""
    text = ["| held | tables | TVD2, mixture over aim | TVD3 | aim closer in TVD2 | in TVD3 | AUC, mixture less aim |"]
    text += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for low, high in pairwise(EDGES):
        group = [line["methods"] for line in lines if low <= line["held"] < high]
        if not group:
            continue
        cells = [f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} and more", str(len(group))]
        ratios = [
            [one["mixture"][name] / one["aim"][name] for one in group if name in one["aim"]]
            for name in ("tvd2", "tvd3")
        ]
        cells += [f"{statistics.geometric_mean(found):.2f}" if found else "-" for found in ratios]
        cells += [f"{sum(ratio > 1 for ratio in found)} of {len(found)}" for found in ratios]
        areas = [one["mixture"]["auc"] - one["aim"]["auc"] for one in group if all("auc" in m for m in one.values())]
        cells.append(f"{statistics.fmean(areas):+.3f}" if areas else "-")
        text.append(f"| {' | '.join(cells)} |")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    lines, when = run(Record(CELLS)), date.today().isoformat()
    options.results.mkdir(parents=True, exist_ok=True)
    stem = options.results / f"{when}-narrow"
    stem.with_suffix(".json").write_text(json.dumps({"date": when, "lines": lines}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(lines, when))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
