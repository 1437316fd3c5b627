"""The pass of `dp-merf` over the rows beside reading the file: its ratio, and the peak of memory, as rows grow.

`python -m bench.speed.embedding` writes bench/results/<date>-embedding.md and .json. Every size runs in a process of
its own, where the file is read, columns are counted and rows are embedded one after the other: read the ratio.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from itertools import pairwise
from pathlib import Path

from bench.speed.rows import BASE, RESULTS, make_file, schema_text

SIZES = (100_000, 1_000_000, 10_000_000)


def fit_once(path: str, schema: str) -> dict[str, float]:
    """In a child: reads and fits with a single step of the generator; when each stage began, by clock and processor."""
    import understudy as us

    begun: dict[str, tuple[float, float]] = {}

    def progress(stage: str, done: float, note: str = "") -> None:
        begun.setdefault(stage, (time.perf_counter(), time.process_time()))

    us.fit(path, us.Schema.load(schema), method="dp-merf", epsilon=1.0, steps=1, progress=progress)
    order = ["reading", "counting columns", "embedding rows", "adding noise", "matching the embedding"]
    parts = {}
    for stage, after in pairwise(order):
        clock, processor = (end - start for start, end in zip(begun[stage], begun[after], strict=True))
        parts[stage], parts[f"{stage}, processor"] = round(clock, 2), round(processor, 2)
    parts["peak MiB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return parts


def measure(rows: int) -> dict[str, float]:
    shape = BASE | {"rows": rows}
    with tempfile.TemporaryDirectory() as folder:
        path, schema = Path(folder) / "table.parquet", Path(folder) / "table.yaml"
        make_file(path, **shape)
        schema.write_text(schema_text(**shape))
        done = subprocess.run(
            [sys.executable, "-m", "bench.speed.embedding", "fit", str(path), str(schema)],
            capture_output=True,
            text=True,
            check=True,
        )
        found = {
            "rows": rows,
            "file MiB": round(path.stat().st_size / 2**20, 1),
            **json.loads(done.stdout.splitlines()[-1]),
        }
    found["pass / reading"] = round(found["embedding rows"] / found["reading"], 2)
    found["pass / reading, processor"] = round(found["embedding rows, processor"] / found["reading, processor"], 2)
    print(json.dumps(found), flush=True)
    return found


def write_results(found: list[dict[str, float]]) -> None:
    facts = {"date": date.today().isoformat(), "machine": f"{platform.machine()}, Python {platform.python_version()}"}
    stem = RESULTS / f"{facts['date']}-embedding"
    stem.with_suffix(".json").write_text(json.dumps({**facts, "found": found}, indent=1) + "\n")
    names = list(found[0])
    lines = [
        "# dp-merf: the pass over the rows beside reading the file",
        "",
        f"{facts['date']}, {facts['machine']}; `python -m bench.speed.embedding`. {BASE['columns']} columns, Parquet;",
        "seconds by the clock and of processor time. The pass: all pairs of columns, and Fourier features of numbers.",
        "Exact noise, which does not depend on the rows, stands beside it, with the import of what draws it.",
        "",
        f"| {' | '.join(names)} |",
        f"| {' | '.join('---:' for _ in names)} |",
        *(f"| {' | '.join(f'{row[name]:,}' for name in names)} |" for row in found),
    ]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*")
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    given = parser.parse_args()
    if given.what[:1] == ["fit"]:
        print(json.dumps(fit_once(*given.what[1:])))
        return
    write_results([measure(rows) for rows in SIZES if rows <= given.largest])


if __name__ == "__main__":
    main()
