"""What every peer's runner shares. Runs inside the peers' environments: Python, NumPy and pandas only."""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("train", type=Path, help="CSV of the rows to learn from")
    parser.add_argument("domain", type=Path, help="the public facts: JSON (peers) or a schema file (ours)")
    parser.add_argument("output", type=Path, help="CSV to write")
    parser.add_argument("--method", required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True, help="rows to make")
    return parser.parse_args()


def read(options: argparse.Namespace) -> tuple[pd.DataFrame, dict[str, Any]]:
    facts = json.loads(options.domain.read_text())["columns"]
    frame = pd.read_csv(options.train, dtype=str, keep_default_na=False, na_values=[""])[list(facts)]
    numeric = [name for name, fact in facts.items() if "edges" in fact]
    return frame.assign(**{name: frame[name].astype(float) for name in numeric}), facts


def encode(frame: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, int]]:
    """Public cells: integer codes a column and the number of codes, the last one for missing where that can be."""
    codes, sizes = {}, {}
    for name, fact in facts.items():
        if "edges" in fact:
            edges = np.asarray(fact["edges"])
            size = len(edges) - 1
            cells = np.searchsorted(edges, frame[name].to_numpy(), side="right") - 1
            cells = np.clip(cells, 0, size - 1)
        else:
            size = len(fact["values"])
            place = {value: code for code, value in enumerate(fact["values"])}
            cells = frame[name].map(place).fillna(0).to_numpy().astype(int)
        absent = frame[name].isna().to_numpy()
        if absent.any() and not fact["missing"]:
            sys.exit(f"column {name!r} misses cells that its facts do not allow")
        codes[name] = np.where(absent, size, cells).astype(int)
        sizes[name] = size + bool(fact["missing"])
    return pd.DataFrame(codes), sizes


def decode(codes: pd.DataFrame, facts: dict[str, Any], rng: np.random.Generator) -> pd.DataFrame:
    """Values for codes: uniform inside a numeric cell, on the column's grid."""
    columns = {}
    for name, fact in facts.items():
        cells = codes[name].to_numpy().astype(int)
        if "edges" in fact:
            edges = np.asarray(fact["edges"])
            absent = cells >= len(edges) - 1
            cells = np.minimum(cells, len(edges) - 2)
            left, right = edges[cells], edges[cells + 1]
            step = fact["resolution"]
            if step:
                count = np.maximum(np.round((right - left) / step), 1)
                values = left + step * np.floor(rng.random(len(cells)) * count)
            else:
                values = left + rng.random(len(cells)) * (right - left)
            values = np.clip(values, fact["low"], fact["high"])
            columns[name] = np.where(absent, np.nan, values)
        else:
            words = np.array([*fact["values"], None], dtype=object)
            columns[name] = words[np.minimum(cells, len(fact["values"]))]
    return pd.DataFrame(columns)


def run(make: Callable[[argparse.Namespace, pd.DataFrame, dict[str, Any]], tuple[pd.DataFrame, float]]) -> None:
    """Reads, lets the peer work, writes the rows and says what was spent.

    `make` returns the rows and the seconds that the fit took.
    """
    options = arguments()
    frame, facts = read(options)
    begin = time.perf_counter()
    rows, fit_seconds = make(options, frame, facts)
    finish(options, rows[list(facts)], fit_seconds, time.perf_counter() - begin)


def finish(options: argparse.Namespace, rows: pd.DataFrame, fit_seconds: float, total_seconds: float) -> None:
    """Writes the rows, and prints one JSON line: seconds by the clock, of processor time, and peak memory."""
    rows.to_csv(options.output, index=False)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spent = {
        "fit_seconds": fit_seconds,
        "total_seconds": total_seconds,
        "cpu_seconds": sum(one.ru_utime + one.ru_stime for one in used),
        "peak_mib": peak_mib(),
    }
    print(json.dumps(spent))


def peak_mib() -> float:
    """The largest memory of this process. On Linux getrusage would give its parent's, if that was larger when it
    started this one; the kernel's own high-water mark begins with the program."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
