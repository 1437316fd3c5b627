"""The made-up tables that a method is tried on: one kind of rows with columns of every type, one with images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.schema import Schema
from understudy.table.table import Table

DECLARED, ROWS, DAYS = 60, 53, 365
Codes = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Ground:
    """Tables of one schema.

    usual: rows in which columns hang together, the canary last. extremes: single rows, the canary first. far: as
    different from the usual table as can be: one row; other values, another number of rows, a class without rows.
    secret: a cell of the canary that would be recognised anywhere.
    """

    name: str
    schema: Schema
    usual: Codes
    extremes: Mapping[str, Mapping[str, Any]]
    far: Mapping[str, Codes]
    secret: float | None = None

    @property
    def canary(self) -> Mapping[str, Any]:
        return next(iter(self.extremes.values()))

    def table(self, codes: Codes) -> Table:
        return Table.from_codes(self.schema, codes)


def plus(codes: Mapping[str, np.ndarray], row: Mapping[str, Any]) -> Codes:
    """The rows and one more behind them: coins that were thrown row by row stay with their rows."""
    return {name: np.concatenate([column, np.asarray(row[name])[None]]) for name, column in codes.items()}


def alike(row: Mapping[str, Any], count: int) -> Codes:
    """A table of one row, many times."""
    return {name: np.repeat(np.asarray(value)[None], count, axis=0) for name, value in row.items()}


SCHEMA = Schema.loads(f"""
rows: {DECLARED}
label: ill
columns:
  age: {{kind: integer, low: 0, high: 90}}
  wage: {{kind: real, low: 0, high: 1000, missing: true}}
  town: {{kind: categorical, values: [Aachen, Bern, Ulm, Other], other: Other, missing: true}}
  degree: {{kind: ordinal, values: [none, school, college]}}
  ill: {{kind: boolean}}
  seen: {{kind: datetime, low: 2021-01-01, high: 2021-12-31, resolution: day}}
""")
# Its wage is exact in every float type, and rare in anything else.
CANARY = {"age": 90, "wage": 613.0625, "town": 2, "degree": 2, "ill": 1, "seen": DAYS - 1}
LOWEST = {"age": 0, "wage": 0.0, "town": 0, "degree": 0, "ill": 0, "seen": 0}
ABSENT = {"age": 45, "wage": np.nan, "town": 4, "degree": 1, "ill": 0, "seen": 100}


def usual_codes(rows: int = ROWS, seed: int = 0) -> Codes:
    """Rows of the first schema, the canary last."""
    rng = np.random.default_rng(seed)
    age = rng.integers(5, 85, rows - 1)
    codes = {
        "age": age,
        "wage": np.where(rng.random(rows - 1) < 0.2, np.nan, np.round(10 * age + rng.uniform(0, 99, rows - 1), 2)),
        "town": rng.choice(5, rows - 1, p=[0.4, 0.3, 0.15, 0.05, 0.1]),
        "degree": rng.integers(0, 3, rows - 1),
        "ill": (age + rng.normal(0, 20, rows - 1) > 50).astype(int),
        "seen": rng.integers(0, DAYS, rows - 1),
    }
    return plus(codes, CANARY)


def _pictures() -> Ground:
    """Small images of three classes, each bright in a corner of its own; the canary has pixels of no pattern."""
    schema = Schema.loads(f"""
rows: {DECLARED}
label: kind
columns:
  kind: {{kind: categorical, values: [left, right, below]}}
  scan: {{kind: image, height: 4, width: 4}}
""")
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, ROWS - 1)
    bright = np.zeros((3, 4, 4))
    bright[0, :2, :2], bright[1, :2, 2:], bright[2, 2:, :] = 1, 1, 1
    scan = (190 * bright[kind] + rng.integers(0, 60, (ROWS - 1, 4, 4))).reshape(ROWS - 1, 16).astype(np.uint8)
    canary = {"kind": 2, "scan": rng.integers(0, 256, 16, dtype=np.uint8)}
    black, white = ({"kind": k, "scan": np.full(16, shade, dtype=np.uint8)} for k, shade in ((0, 0), (1, 255)))
    return Ground(
        "images",
        schema,
        plus({"kind": kind, "scan": scan}, canary),
        {"the canary": canary, "a black image": black, "a white image": white},
        {"one row": alike(canary, 1), "one kind of row": alike(black, ROWS - 16)},
    )


TABLES = Ground(
    "tables",
    SCHEMA,
    usual_codes(),
    {"the canary": CANARY, "lowest values": LOWEST, "missing cells": ABSENT},
    {"one row": alike(CANARY, 1), "one kind of row": alike(ABSENT, ROWS - 16)},
    secret=CANARY["wage"],
)
PICTURES = _pictures()
