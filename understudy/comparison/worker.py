"""One cell in a process of its own, which reads a job and rows from standard input.

Figures go back as one line of JSON. Nothing else is said: libraries' warnings and tracebacks may hold values.
"""

import json
import os
import struct
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

LENGTH = struct.Struct("<Q")
PACKAGE = Path(__file__).parents[1]


def main() -> None:
    """Reads, fits, measures, answers. The pipe stays open: when it closes, whoever asked is gone, and so is this."""
    stdin = sys.stdin.buffer
    job, rows = json.loads(receive(stdin)), receive(stdin)
    threading.Thread(target=_leave_with_the_asker, args=(stdin,), daemon=True).start()
    answer = run(job, rows)
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")
    sys.stdout.flush()
    os._exit(0)  # libraries' threads must not keep a finished cell alive


def send(pipe: IO[bytes], *parts: bytes) -> None:
    """Parts one after the other, each with its length before it."""
    for part in parts:
        pipe.write(LENGTH.pack(len(part)))
        pipe.write(part)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes:
    return pipe.read(LENGTH.unpack(pipe.read(LENGTH.size))[0])


def _leave_with_the_asker(pipe: IO[bytes]) -> None:
    pipe.read()
    os._exit(1)


def run(job: dict[str, Any], rows: bytes) -> dict[str, Any]:
    """The outcome of a job as a cell's fields; a refusal is one too. What nobody expected is told without values."""
    from understudy.comparison.grid import FAILED, REFUSED
    from understudy.errors import UnderstudyError

    try:
        return measure(job, rows)
    except UnderstudyError as error:
        return {"status": REFUSED, "message": str(error)}
    except MemoryError:
        return {"status": FAILED, "message": "not enough memory"}
    except Exception as error:
        message = f"something unexpected happened ({type(error).__name__} in {_place(error)}); this is a defect"
        return {"status": FAILED, "message": message}


def measure(job: dict[str, Any], rows: bytes) -> dict[str, Any]:
    """Fits one method, draws as many rows as it was fitted to, and compares those with the real ones."""
    import numpy as np

    from understudy.comparison.grid import figures_of
    from understudy.comparison.tables import Rows, simulated_rows, view_of
    from understudy.evaluation.suite import evaluate
    from understudy.schema import Schema
    from understudy.synthesizers import api
    from understudy.table.table import Table

    schema = Schema.loads(job["schema"])
    given = Rows.unpack(rows, schema) if rows else simulated_rows(schema, job["simulated"])
    table = Table.from_codes(schema, given.fitted)
    fit_begin, processor_begin = time.perf_counter(), time.process_time()
    model = api.fit(
        table,
        schema,
        method=job["method"],
        epsilon=float(job["epsilon"]),
        delta=job["delta"],
        seed=job["seed"],
        # JSON has lists alone; methods declare tuples.
        **{name: tuple(value) if isinstance(value, list) else value for name, value in job["options"].items()},
    )
    fit_seconds = time.perf_counter() - fit_begin
    sample_begin = time.perf_counter()
    synthetic = model.draw(table.rows, np.random.default_rng(job["seed"]))
    sample_seconds = time.perf_counter() - sample_begin
    processor_seconds, peak = time.process_time() - processor_begin, peak_megabytes()
    views = (view_of(codes, schema) for codes in (given.fitted, synthetic, given.held_back))
    real, made, fresh = views
    found = evaluate(real, made, schema, holdout=fresh, which=job["which"], jobs=1)
    figures = figures_of(found)
    spent = model.certificate.epsilon
    return {
        "status": "ok",
        "figures": {name: vars(figure) for name, figure in figures.items()},
        "spent": "inf" if np.isinf(spent) else spent,
        "fit_seconds": round(fit_seconds, 3),
        "sample_seconds": round(sample_seconds, 3),
        "processor_seconds": round(processor_seconds, 3),
        "peak_megabytes": round(peak, 1),
    }


def peak_megabytes() -> float:
    """The most memory that this process has held, libraries included.

    Linux tells it by program; `ru_maxrss` also counts what the parent held when it started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def _place(error: Exception) -> str:
    """The innermost line of this package, without the path to it."""
    import traceback

    place = "a library"
    for frame in traceback.extract_tb(error.__traceback__):
        if PACKAGE in Path(frame.filename).parents:
            place = f"{Path(frame.filename).relative_to(PACKAGE.parent).as_posix()}, line {frame.lineno}"
    return place
