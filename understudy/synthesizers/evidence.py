"""Conditions on synthetic rows (`where`), as pieces of a column's fine cells."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import OptionError
from understudy.schema import Boolean, Categorical, Column, Integer, Real, Schema
from understudy.table.cells import Cells
from understudy.table.codec import codec
from understudy.table.parse import parse_number


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
        else:
            several = pd.api.types.is_list_like(condition) and not isinstance(condition, Mapping)
            values = list(condition) if several else [condition]
            if not values:
                raise OptionError(f"where: {name!r} needs at least one value")
            # A value that is named twice counts once; NaN, the missing code of floats, is equal to nothing.
            codes = {str(code): code for code in (_code(name, column, value) for value in values)}
            intervals = [(code, code) for code in codes.values()]
        found[name] = _pieces(name, cells[name], intervals)
    return found


def _code(name: str, column: Column, value: Any) -> Any:
    """The code that a cell with this value would get."""
    value = pd.Timestamp(value) if isinstance(value, np.datetime64) else value
    try:
        encoded = codec(column).encode(pa.array(pd.Series([value], dtype=object), from_pandas=True))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        encoded = None  # nothing that a table could hold
    if encoded is None or encoded.bad or encoded.clipped:
        raise OptionError(f"where: a value for {name!r} is outside what the schema declares for it")
    return encoded.codes.item()


def _range(name: str, column: Column, condition: tuple[Any, ...]) -> tuple[Any, Any]:
    if (
        len(condition) != 2
        or isinstance(column, Boolean)
        or (isinstance(column, Categorical) and column.kind != "ordinal")
    ):
        raise OptionError(f"where: {name!r} takes a value or a list; a (low, high) tuple is for ordered columns")
    low, high = condition
    if isinstance(column, Categorical):
        lowest, highest = column.values[0], column.values[-1]
    else:
        lowest, highest = column.low, column.high
    first = _code(name, column, lowest if low is None else low)
    last = _code(name, column, highest if high is None else high)
    if codec(column).missing in (first, last) or first != first or last != last:
        raise OptionError(f"where: an end of the range for {name!r} is missing; give a value, or None for no limit")
    if isinstance(column, Integer | Real) and column.resolution is not None:
        # Cells are read at the nearest step, which for an end between two steps may lie outside of the range.
        first += low is not None and _steps(column, low) > first + 1e-6
        last -= high is not None and _steps(column, high) < last - 1e-6
    if first > last:
        raise OptionError(f"where: the range for {name!r} must go from low to high, with a value in between")
    return first, last


def _steps(column: Integer | Real, value: Any) -> float:
    number = parse_number(value) if isinstance(value, str) else value
    number = int(number) if isinstance(number, Integral) else float(number)  # large whole numbers keep their digits
    return (number - column.low) / column.resolution


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
    lowest = max(int(np.searchsorted(cells.starts, cells.starts.dtype.type(first), side="right")) - 1, 0)
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
