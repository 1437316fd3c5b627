"""The default method on tables of odd shapes, each made up and fitted in a process of its own.

`python -m bench.speed.shapes` writes bench/results/<date>-shapes.md and .json: seconds, processor seconds and peak
memory of the whole process (start, making the table, fit at epsilon 1, drawing as many rows, at most 50,000), and how
far single columns and pairs of columns are from the table, beside what a second table of the same kind scores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).resolve().parents[1] / "results"
EPSILON, DELTA = 1.0, 1e-6
MOST_COMPARED = 20_000  # rows for the distances
MOST_DRAWN = 50_000

Made = tuple[pd.DataFrame, str]


def hidden(rng: np.random.Generator, rows: int, factors: int = 5) -> np.ndarray:
    """What the columns of a table lean on."""
    return rng.normal(size=(rows, factors))


def numbers(rng: np.random.Generator, rows: int, columns: int) -> Made:
    values = hidden(rng, rows) @ np.random.default_rng(0).normal(size=(5, columns)) + rng.normal(size=(rows, columns))
    frame = pd.DataFrame(values.astype(np.float32), columns=[f"x{number}" for number in range(columns)])
    facts = "".join(f"  {name}: {{kind: real, low: -12, high: 12}}\n" for name in frame)
    return frame, facts


def flags(rng: np.random.Generator, rows: int, columns: int) -> Made:
    """Sparse, like codes of diagnoses."""
    odds = hidden(rng, rows) @ np.random.default_rng(0).normal(size=(5, columns)) - 4
    frame = pd.DataFrame(rng.random(odds.shape) < 1 / (1 + np.exp(-odds)), columns=[f"f{n}" for n in range(columns)])
    return frame, "".join(f"  {name}: {{kind: boolean}}\n" for name in frame)


def many_categories(rng: np.random.Generator, rows: int, values: int) -> Made:
    code = np.minimum(rng.zipf(1.3, rows), values) - 1
    frame = pd.DataFrame({"code": [f"c{c}" for c in code], "group": np.array(list("abcdef"))[code % 6]})
    frame["amount"] = (code % 97) + rng.integers(0, 20, rows)
    words = ", ".join(f"c{number}" for number in range(values))
    facts = f"  code: {{kind: categorical, values: [{words}]}}\n"
    facts += "  group: {kind: categorical, values: [a, b, c, d, e, f]}\n"
    return frame, facts + "  amount: {kind: integer, low: 0, high: 200}\n"


def mostly_missing(rng: np.random.Generator, rows: int, columns: int) -> Made:
    frame, _ = numbers(rng, rows, columns)
    frame = frame.mask(rng.random(frame.shape) < 0.9)
    return frame, "".join(f"  {name}: {{kind: real, low: -12, high: 12, missing: true}}\n" for name in frame)


SHAPES: dict[str, tuple[int, Callable[[np.random.Generator, int], Made]]] = {
    "2 numeric columns, 200 rows": (200, lambda rng, rows: numbers(rng, rows, 2)),
    "20 numeric columns, 500 rows": (500, lambda rng, rows: numbers(rng, rows, 20)),
    "50 numeric columns, 100,000 rows": (100_000, lambda rng, rows: numbers(rng, rows, 50)),
    "300 numeric columns, 5,000 rows": (5_000, lambda rng, rows: numbers(rng, rows, 300)),
    "1,071 sparse flags, 40,000 rows": (40_000, lambda rng, rows: flags(rng, rows, 1071)),
    "a column of 10,000 categories, 50,000 rows": (50_000, lambda rng, rows: many_categories(rng, rows, 10_000)),
    "15 columns, nine cells in ten missing, 20,000 rows": (20_000, lambda rng, rows: mostly_missing(rng, rows, 15)),
    "14 numeric columns, 1,000,000 rows": (1_000_000, lambda rng, rows: numbers(rng, rows, 14)),
}


def measure(shape: str) -> dict[str, Any]:
    """In a process of its own: everything from nothing to synthetic rows."""
    import understudy as us
    from understudy import Schema
    from understudy.evaluation.distributions import tvd

    rows, make = SHAPES[shape]
    frame, facts = make(np.random.default_rng(1), rows)
    schema = Schema.loads(f"rows: {rows}\ncolumns:\n{facts}")
    begin, busy = time.perf_counter(), time.process_time()
    model = us.fit(frame, schema, epsilon=EPSILON, delta=DELTA)
    seconds, processor = time.perf_counter() - begin, time.process_time() - busy
    drawn = model.sample(min(rows, MOST_DRAWN))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    fresh, _ = make(np.random.default_rng(2), min(rows, MOST_COMPARED))
    found = {"shape": shape, "method": model.method, "seconds": seconds, "processor": processor, "peak_mib": peak}
    for order in (1, 2):
        sets = 200 if len(schema.modelled) > 20 else None
        few = [one[:MOST_COMPARED] for one in (frame, drawn, fresh)]
        distance = tvd(few[0], few[1], schema, holdout=few[2], order=order, bins=20, sets=sets, seed=0)
        found |= {f"tvd{order}": distance.value, f"tvd{order}_real": distance.reference}
    return found


def in_a_process(shape: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.speed.shapes", "--measure", shape]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"shape": shape, "problem": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def markdown(lines: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    text = [
        f"# The default on odd shapes, {facts['date']}",
        "",
        f"epsilon {EPSILON:g}, delta {DELTA:g}; `{facts['command']}`, Python {facts['python']}, {facts['cores']} cores",
        "that others may have used: read seconds loosely. TVD of columns and of pairs (200 of them where there are",
        "many), in brackets what a second table of the same kind scores.",
        "",
        "| table | method | fit (s) | processor (s) | peak memory (MiB) | TVD1 | TVD2 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for line in lines:
        if "problem" in line:
            text.append(f"| {line['shape']} | | | | | {line['problem']} | |")
            continue
        far = [f"{line[f'tvd{order}']:.3f} ({line[f'tvd{order}_real']:.3f})" for order in (1, 2)]
        cost = f"{line['seconds']:.0f} | {line['processor']:.0f} | {line['peak_mib']:,.0f}"
        text.append(f"| {line['shape']} | {line['method']} | {cost} | {far[0]} | {far[1]} |")
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--measure", choices=list(SHAPES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    lines = []
    for shape in options.shapes:
        lines.append(in_a_process(shape))
        print(lines[-1], flush=True)
    facts = {
        "date": date.today().isoformat(),
        "command": "python -m bench.speed.shapes",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    stem = options.results / f"{facts['date']}-shapes"
    stem.with_suffix(".json").write_text(json.dumps({**facts, "lines": lines}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(lines, facts))


if __name__ == "__main__":
    main()
