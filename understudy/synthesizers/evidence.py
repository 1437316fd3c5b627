"""Conditions on synthetic rows (`where`), as pieces of a column's fine cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import OptionError
from understudy.schema import Boolean, Categorical, Column, Schema
from understudy.table.cells import Cells
from understudy.table.codec import codec


@dataclass(frozen=True, eq=False)
class Pieces:
    """What a condition leaves of a column: parts of cells, from code `first` to code `last`, both included."""

    cell: np.ndarray
    share: np.ndarray  # of the cell's values
    first: np.ndarray
    last: np.ndarray

    def place(self, pieces: np.ndarray, cells: Cells, rng: np.random.Generator) -> np.ndarray:
        """A code for each piece, spread evenly over it."""
        first, last = self.first[pieces], self.last[pieces]
        if cells.size is None:
            spread = first + rng.random(len(pieces)) * (last - first)
            return np.where(np.isnan(first), np.nan, np.clip(spread, first, last)).astype(cells.dtype)
        return rng.integers(first, last, endpoint=True, dtype=np.uint64).astype(cells.dtype)


def conditions(schema: Schema, cells: Mapping[str, Cells], where: Mapping[str, Any] | None) -> dict[str, Pieces]:
    """Reads `where`: a value, a list of values, None for missing, or a (low, high) tuple, both included."""
    found = {}
    for name, condition in (where or {}).items():
        if name not in cells:
            raise OptionError(f"where: {name!r} is not a modelled column; choose from {', '.join(cells)}")
        column = schema.modelled[name]
        if isinstance(condition, tuple):
            intervals = [_range(name, column, condition)]
        elif isinstance(condition, list | set | np.ndarray):
            intervals = [(code, code) for code in _codes(name, column, list(condition))]
        else:
            intervals = [(code, code) for code in _codes(name, column, [condition])]
        found[name] = _pieces(name, cells[name], intervals)
    return found


def _codes(name: str, column: Column, values: list[Any]) -> list[Any]:
    if not values:
        raise OptionError(f"where: {name!r} needs at least one value")
    plain = [None if value is None else value for value in values]
    try:
        encoded = codec(column).encode(pa.array(pd.Series(plain, dtype=object), from_pandas=True))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise OptionError(f"where: the values for {name!r} must all be of one type") from None
    if encoded.bad.any() or encoded.clipped:
        raise OptionError(f"where: a value for {name!r} is outside what the schema declares for it")
    return list(dict.fromkeys(encoded.codes.tolist()))


def _range(name: str, column: Column, condition: tuple[Any, ...]) -> tuple[Any, Any]:
    if (
        len(condition) != 2
        or isinstance(column, Boolean)
        or (isinstance(column, Categorical) and column.kind != "ordinal")
    ):
        raise OptionError(f"where: {name!r} takes a value or a list; a (low, high) tuple is for ordered columns")
    low, high = condition
    if isinstance(column, Categorical):
        low, high = column.values[0] if low is None else low, column.values[-1] if high is None else high
    else:
        low, high = column.low if low is None else low, column.high if high is None else high
    first, last = _codes(name, column, [low])[0], _codes(name, column, [high])[0]
    if first > last:
        raise OptionError(f"where: the range for {name!r} must go from low to high")
    return first, last


def _pieces(name: str, cells: Cells, intervals: list[tuple[Any, Any]]) -> Pieces:
    rows = []
    for first, last in intervals:
        if (cells.size is None and np.isnan(first)) or first == cells.size:
            rows.append((cells.values, 1.0, first, first))  # the missing cell
            continue
        rows += _overlaps(cells, first, last)
    if not rows or not any(share > 0 for _, share, _, _ in rows):
        raise OptionError(f"where: {name!r} is a real number, which has no single values; give a (low, high) range")
    cell, share, first, last = zip(*rows, strict=True)
    kind = np.float64 if cells.size is None else np.uint64
    return Pieces(np.array(cell), np.array(share), np.array(first, dtype=kind), np.array(last, dtype=kind))


def _overlaps(cells: Cells, first: Any, last: Any) -> list[tuple[int, float, Any, Any]]:
    rows = []
    lowest = max(int(np.searchsorted(cells.starts, first, side="right")) - 1, 0)
    for cell in range(lowest, cells.values):
        start = cells.starts[cell].item()
        if start > last:
            break
        end = cells.starts[cell + 1].item() if cell + 1 < cells.values else cells.end
        a = max(first, start)
        if cells.size is None:
            point = end <= np.nextafter(np.float32(start), np.float32(np.inf))
            b = start if point else min(last, end)
            share = 1.0 if point else (b - a) / (end - start)
        else:
            b = min(last, end - 1)
            share = (b - a + 1) / (end - start)
        rows.append((cell, share, a, b))
    return rows
