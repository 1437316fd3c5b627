"""What every runner of a game against a peer shares. Runs inside the peers' environments: Python, NumPy, pandas only.

A runner gets a job as JSON on standard input: two neighbouring tables, what is declared about them, and how often to
fit. It fits both in turns, each time with fresh noise (but where the peer's own default is a fixed seed), and prints a
line of JSON with readings for every fit.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

LIKE, EQUAL, ONLY = "cells like its own", "rows like it", "cells that it alone could have"
PARTS = 10  # cells of a number, between the ends of what is declared

Job = dict[str, Any]
Fit = Callable[[Job, pd.DataFrame], tuple[pd.DataFrame, dict[str, float]]]


def frame_of(job: Job, *, with_row: bool) -> pd.DataFrame:
    """The table, the canary last; missing cells are None in categories, NaN in numbers."""
    rows = [*job["others"], *([job["canary"]] if with_row else [])]
    columns = {}
    for place, (name, facts) in enumerate(job["columns"].items()):
        values = [row[place] for row in rows]
        columns[name] = pd.Series(values, dtype=object if "values" in facts else float)
        if "values" not in facts and None not in values:
            columns[name] = columns[name].astype(int)
    return pd.DataFrame(columns)


def readings(job: Job, made: pd.DataFrame) -> dict[str, float]:
    """What synthetic rows tell of the canary: cells and rows like it, and cells that no other row could account for."""
    alike, alone = [], np.zeros(len(made), dtype=int)
    for place, (name, facts) in enumerate(job["columns"].items()):
        own, others = job["canary"][place], [row[place] for row in job["others"]]
        cells = made[name]
        absent = cells.isna().to_numpy()
        if own is None:
            alike.append(absent)
        elif "values" in facts:
            alike.append((cells.astype(object) == own).to_numpy())
        else:
            width = (facts["high"] - facts["low"]) / PARTS
            near = (pd.to_numeric(cells) - own).abs().to_numpy() <= width
            alike.append(near & ~absent)
        if "values" in facts:
            known = cells.isin([value for value in others if value is not None]).to_numpy()
        else:
            numbers = pd.to_numeric(cells).to_numpy(dtype=float)
            # A bound that is drawn from noise may lie beyond the rows; twice as far is nobody else's.
            known = np.abs(numbers) <= 2 * max(abs(value) for value in others if value is not None)
        alone = alone + ~(known | (absent & (None in others)))
    same = np.stack(alike)
    return {LIKE: float(same.sum()), EQUAL: float(same.all(axis=0).sum()), ONLY: float(alone.sum())}


def play(fit: Fit) -> None:
    """Reads a job, plays its worlds in turns until runs or seconds are over, and prints a line for every fit."""
    job = json.loads(sys.stdin.read())
    tables = {world: frame_of(job, with_row=world) for world in (True, False)}
    begin = time.monotonic()
    for number in range(2 * job["runs"]):
        world = number % 2 == 0
        since = time.monotonic()
        with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made, further = fit(job, tables[world].copy())
                line = {"with": world, "readings": readings(job, made) | further}
            except Exception as error:  # an error that one world alone causes is a reading like any other
                line = {"with": world, "failed": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(line | {"seconds": round(time.monotonic() - since, 3)}), flush=True)
        if time.monotonic() - begin > job["seconds"] and not world:
            return
