"""How a fit of `mixture` grows with rows, columns, cells and components, beside DuckDB counting the same tables.

`python -m bench.speed.rows` writes bench/results/<date>-speed.md and .json. Every measurement runs in a process of its
own; DuckDB and the fit read the same Parquet file in the same run, one after the other, on a machine that may be busy:
read the ratio, not the seconds.
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
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).resolve().parents[1] / "results"
ROWS_PER_GROUP = 1 << 20
BASE = {"rows": 1_000_000, "columns": 14, "values": 24}
COMPONENTS, FITS = (50, 100, 200, 400, 800), 12  # of each fit, on 100,000 rows


def make_file(path: Path, *, rows: int, columns: int, values: int) -> None:
    """Columns that lean on a hidden class, alternately categories and integers, `values` of each; written in parts."""
    rng = np.random.default_rng(0)
    writer = None
    for first in range(0, rows, ROWS_PER_GROUP):
        n = min(ROWS_PER_GROUP, rows - first)
        hidden = rng.integers(0, values, n)
        data = {}
        for number in range(columns):
            drawn = np.where(rng.random(n) < 0.5, hidden, rng.integers(0, values, n))
            if number % 2:
                data[f"n{number}"] = pa.array(drawn.astype(np.int32))
            else:
                data[f"c{number}"] = pa.DictionaryArray.from_arrays(
                    pa.array(drawn.astype(np.int32)), pa.array([f"value {v}" for v in range(values)])
                ).cast(pa.string())
        part = pa.table(data)
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def schema_text(*, rows: int, columns: int, values: int) -> str:
    lines = [f"rows: {rows}", "columns:"]
    for number in range(columns):
        if number % 2:
            lines.append(f"  n{number}: {{kind: integer, low: 0, high: {values - 1}}}")
        else:
            words = ", ".join(f"value {v}" for v in range(values))
            lines.append(f"  c{number}: {{kind: categorical, values: [{words}]}}")
    return "\n".join(lines) + "\n"


def fit_once(path: str, schema: str, components: str | None = None) -> None:
    """In a child: reads and fits, printing seconds and peak memory; with a number of components, FITS of so many."""
    import understudy as us

    begin = time.perf_counter()
    table = us.read_table(path, us.Schema.load(schema))
    read = time.perf_counter() - begin
    stages: dict[str, float] = {}

    def progress(stage: str, done: float, note: str = "") -> None:
        stages.setdefault(stage, time.perf_counter() - begin)

    options = {} if components is None else {"method": "mixture", "components": int(components), "fits": FITS}
    us.fit(table, us.Schema.load(schema), epsilon=1.0, progress=progress, **options)
    total = time.perf_counter() - begin
    counted = stages.get("fitting", total)
    _tell(total=total, read=read, counted=counted)


def duckdb_once(path: str, columns: list[str]) -> None:
    """In a child: the same two-way counts, one grouped query a pair, over the file read once into memory."""
    import duckdb

    begin = time.perf_counter()
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("create table t as select * from read_parquet(?)", [path])
    for first, second in combinations(columns, 2):
        connection.execute(f'select "{first}", "{second}", count(*) from t group by 1, 2').fetchall()
    _tell(total=time.perf_counter() - begin)


def _tell(**seconds: float) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**{name: round(value, 2) for name, value in seconds.items()}, "peak_mib": round(peak)}))


def _child(*arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.speed.rows", *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def make(folder: Path, **shape: int) -> tuple[Path, Path]:
    """A table and its schema."""
    path, schema = folder / "table.parquet", folder / "table.yaml"
    # Made in a process of its own: a child's peak memory is never told below that of the process that started it.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as maker:
        maker.submit(make_file, path, **shape).result()
    schema.write_text(schema_text(**shape))
    return path, schema


def measure(folder: Path, *, with_duckdb: bool, **shape: int) -> dict[str, object]:
    path, schema = make(folder, **shape)
    names = [f"{'n' if number % 2 else 'c'}{number}" for number in range(shape["columns"])]
    found = {
        "shape": shape,
        "file_mib": round(path.stat().st_size / 2**20),
        "fit": _child("fit", str(path), str(schema)),
    }
    if with_duckdb:
        found["duckdb"] = _child("duckdb", str(path), *names)
        found["ratio"] = round(found["fit"]["counted"] / found["duckdb"]["total"], 2)
    print(json.dumps(found), flush=True)
    return found


def measure_components(folder: Path) -> list[dict[str, float]]:
    path, schema = make(folder, **BASE | {"rows": 100_000})
    found = [{"components": number, **_child("fit", str(path), str(schema), str(number))} for number in COMPONENTS]
    print(json.dumps(found), flush=True)
    return found


def shapes(largest: int) -> list[dict[str, int]]:
    grown = [BASE | {"rows": rows} for rows in (10_000, 100_000, 1_000_000, 10_000_000) if rows <= largest]
    grown += [BASE | {"rows": 100_000, "columns": columns} for columns in (4, 28, 56)]
    grown += [BASE | {"rows": 100_000, "values": values} for values in (4, 12, 32)]
    return grown


def write_results(found: list[dict], by_components: list[dict]) -> None:
    names = [
        "rows",
        "columns",
        "values",
        "file MiB",
        "read s",
        "counted s",
        "whole fit s",
        "peak MiB",
        "DuckDB s",
        "counted / DuckDB",
    ]
    lines = [
        f"# Speed of `mixture`, {date.today().isoformat()}",
        "",
        "`python -m bench.speed.rows`. Seconds by the clock since the start of reading, on a machine that may be busy;",
        "`counted` is when all tables are counted and noised. DuckDB loads the same file and counts the same two-way",
        "tables in the same run, with two threads.",
        f"Python {platform.python_version()}, {platform.machine()}, OS-entropy noise, epsilon 1.",
        "",
        f"| {' | '.join(names)} |",
        "|" + " --- |" * len(names),
    ]
    for one in found:
        s, f, d = one["shape"], one["fit"], one.get("duckdb", {})
        lines.append(
            f"| {s['rows']:,} | {s['columns']} | {s['values']} | {one['file_mib']} | {f['read']} | {f['counted']} "
            f"| {f['total']} | {f['peak_mib']:.0f} | {d.get('total', '')} | {one.get('ratio', '')} |"
        )
    lines += [
        "",
        f"By components of each of {FITS} fits, 100,000 rows of {BASE['columns']} columns of {BASE['values']} values:",
        "",
        "| components | fitting s | peak MiB |",
        "| --- | --- | --- |",
        *(
            f"| {one['components']} | {one['total'] - one['counted']:.2f} | {one['peak_mib']} |"
            for one in by_components
        ),
    ]
    name = RESULTS / f"{date.today().isoformat()}-speed"
    name.with_suffix(".md").write_text("\n".join(lines) + "\n")
    record = {"shapes": found, "components": by_components}
    name.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    if sys.argv[1:2] == ["fit"]:
        return fit_once(*sys.argv[2:])
    if sys.argv[1:2] == ["duckdb"]:
        return duckdb_once(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=10_000_000, help="most rows (10,000,000 needs a 0.5 GB file)")
    largest = parser.parse_args().largest
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(Path(folder), with_duckdb=True, **shape) for shape in shapes(largest)]
        write_results(found, measure_components(Path(folder)))


if __name__ == "__main__":
    main()
