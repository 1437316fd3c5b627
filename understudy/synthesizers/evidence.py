"""Conditions on synthetic rows (`where`), as pieces of a column's fine cells."""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import OptionError
from understudy.schema import Boolean, Categorical, Column, Integer, Real, Schema
from understudy.schema.shown import column_words
from understudy.table.cells import Cells
from understudy.table.codec import codec
from understudy.table.parse import parse_number

STEP_TOLERANCE = 1e-6  # of a step: what decimals like 0.1 lose in binary


@dataclass(frozen=True, eq=False)
class Pieces:
    """What a condition leaves of a column: parts of cells, from code `first` to code `last`, both included."""

    cell: np.ndarray
    share: np.ndarray  # of the cell's values
    first: np.ndarray
    last: np.ndarray

    def place(self, pieces: np.ndarray, cells: Cells, rng: np.random.Generator) -> np.ndarray:
        """A code for each piece, spread over it as over its cell."""
        first, last = self.first[pieces], self.last[pieces]
        if cells.size is None:
            missing = np.isnan(first)
            cell = np.minimum(self.cell[pieces], cells.values - 1)
            first, last = (np.where(missing, cells.starts[cell], ends) for ends in (first, last))
            spread = np.clip(cells.spread_reals(cell, first, last, rng), first, last)
            return np.where(missing, np.nan, spread).astype(cells.dtype)
        return cells.spread(first, last + np.uint64(1), rng).astype(cells.dtype)


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
            codes = {str(code): code for code in (_value_code(name, column, value) for value in values)}
            intervals = [(code, code) for code in codes.values()]
        found[name] = _pieces(name, cells[name], intervals)
    return found


def _value_code(name: str, column: Column, value: Any) -> Any:
    """The code of a value that rows can have: one between two steps is not silently another."""
    code, clipped = _encoded(name, column, value)
    if clipped:
        raise _outside(name, column)
    if isinstance(column, Integer | Real) and column.resolution is not None and code != codec(column).missing:
        _check_on_a_step(name, column, code, _number(value))
    return code


def _encoded(name: str, column: Column, value: Any) -> tuple[Any, bool]:
    """The code that a cell with this value would get, and whether it had to be moved to the bounds for it."""
    value = pd.Timestamp(value) if isinstance(value, np.datetime64) else value
    try:
        encoded = codec(column).encode(pa.array(pd.Series([value], dtype=object), from_pandas=True))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        encoded = None  # nothing that a table could hold
    if encoded is None or encoded.bad:
        raise _outside(name, column)
    return encoded.codes.item(), bool(encoded.clipped)


def _outside(name: str, column: Column) -> OptionError:
    return OptionError(
        f"where: a value for {name!r} is outside what the schema declares for it ({column_words(column)})"
    )


def _check_on_a_step(name: str, column: Integer | Real, code: int, number: int | float | None) -> None:
    def written(step: int) -> Any:
        coder = codec(column)
        return coder.decode(np.array([step], dtype=coder.dtype))[0].item()

    nearest = column.low + code * column.resolution  # exact for whole numbers
    rounding = 0 if isinstance(column, Integer) else STEP_TOLERANCE * column.resolution + 4e-16 * abs(nearest)
    # In the column's own type a value may have few digits: what the model writes is taken back.
    if number is None or abs(number - nearest) <= rounding or number == written(code):
        return
    below = code if number > nearest else code - 1
    raise OptionError(
        f"where: a value for {name!r} lies between two that exist: its resolution is {column.resolution}, and the "
        f"nearest are {written(below)} and {written(below + 1)}; name one of these, or give a (low, high) range"
    )


def _range(name: str, column: Column, condition: tuple[Any, ...]) -> tuple[Any, Any]:
    """The first and the last code of a range, cut at the declared bounds where it is wider."""
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
    first, low_side = _end(name, column, lowest if low is None else low)
    last, high_side = _end(name, column, highest if high is None else high)
    if low_side > 0 or high_side < 0:
        facts = column.facts()  # with dates as the schema writes them
        raise OptionError(
            f"where: the range for {name!r} lies outside of what the schema declares; give one that overlaps with "
            f"{facts['low']} to {facts['high']}"
        )
    if isinstance(column, Integer | Real) and column.resolution is not None:
        # Cells are read at the nearest step, which for an end between two steps may lie outside of the range.
        first += low is not None and _steps(column, low) > first + STEP_TOLERANCE
        last -= high is not None and _steps(column, high) < last - STEP_TOLERANCE
    if first > last:
        raise OptionError(f"where: the range for {name!r} must go from low to high, with a value in between")
    return first, last


def _end(name: str, column: Column, value: Any) -> tuple[Any, int]:
    """The code of a range's end, moved to the bounds if need be, and where it was: -1 below them, 1 above, 0 inside."""
    number = _number(value) if isinstance(column, Integer | Real) else None
    if number is not None and number < column.low:
        return _encoded(name, column, column.low)[0], -1
    if number is not None and number > column.high:
        return _encoded(name, column, column.high)[0], 1
    code, clipped = _encoded(name, column, value)
    if code != code or code == codec(column).missing:
        raise OptionError(f"where: an end of the range for {name!r} is missing; give a value, or None for no limit")
    return code, 0 if not clipped else -1 if code == 0 else 1  # times, which have steps


def _steps(column: Integer | Real, value: Any) -> float:
    return (_number(value) - column.low) / column.resolution


def _number(value: Any) -> int | float | None:
    """A number as `where` may give it, infinite ones among them; None if it is none."""
    if isinstance(value, str):
        return parse_number(value.strip())
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real | Decimal):
        return None
    return int(value) if isinstance(value, numbers.Integral) else float(value)  # large whole numbers keep their digits


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
        if cells.size is None and not np.isnan(cells.points[cell]):
            a = b = cells.points[cell].item()
            share = float(first <= a <= last)
        elif cells.size is None:
            b = min(last, end)
            share = cells.share_of_reals(cell, a, b)
        else:
            b = min(last, end - 1)
            share = cells.share(a, b + 1, start, end)
        rows.append((cell, share, a, b))
    return rows
