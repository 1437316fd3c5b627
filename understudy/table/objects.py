"""Cells of a DataFrame's column as Arrow, each read by itself: no row may change how another is read."""

import numbers
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

AS_TEXT = "text"  # cells that are read as what they look like
MOST_DIGITS = 400  # of a decimal number that is written out


def arrow_by_kind(series: pd.Series) -> pa.Array:
    """One Arrow array, or a union with one part for each kind of object in the column.

    Arrow would bring a column of mixed objects to a type that holds all of them, so that one row could change how
    every other is read (1.0 beside a text would turn into the text 1.0): each kind is converted by itself.
    """
    if series.dtype != object:
        converted = _converted(series)
        if converted is not None:
            return converted
        series = series.astype(object)  # such as a pandas category of mixed values
    if pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty"):
        return _as_objects(series)
    absent = series.isna().to_numpy()
    kinds = np.zeros(len(series), dtype=np.int8)  # missing cells go with any
    kinds[~absent], names = pd.factorize(np.array([_kind(cell) for cell in series[~absent]], dtype=object))
    if len(names) < 2:
        return _as_text(series) if AS_TEXT in names else _as_objects(series)
    offsets = np.empty(len(series), dtype=np.int32)
    parts = []
    for number in range(len(names)):
        where = np.flatnonzero(kinds == number)
        offsets[where] = np.arange(len(where))
        parts.append((_as_text if names[number] == AS_TEXT else _as_objects)(series.iloc[where]))
    return pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), pa.array(offsets), parts)


def _kind(cell: Any) -> str:
    """Cells of one kind become one Arrow type, whatever they hold: none of them can change how another is read."""
    if isinstance(cell, bool | np.bool_):
        return "truth"
    if isinstance(cell, datetime):
        return f"time {cell.tzinfo}"
    if isinstance(cell, numbers.Integral):
        return "whole number" if -(2**63) <= cell < 2**63 else AS_TEXT
    for kind in (str, float, np.float32, date, bytes):
        if isinstance(cell, kind):
            return kind.__name__
    if isinstance(cell, Decimal):  # Arrow's type for them has as many digits as all of them together need
        return AS_TEXT
    alone = _converted(pd.Series([cell], dtype=object))
    return AS_TEXT if alone is None else f"other {alone.type}"


def _as_objects(series: pd.Series) -> pa.Array:
    converted = _converted(series)
    return _as_text(series) if converted is None else converted


def _as_text(series: pd.Series) -> pa.Array:
    """Numbers past 64 bits or with exact digits, and objects that Arrow does not know: what they look like."""
    return pa.array([None if absent else _text(cell) for cell, absent in zip(series, series.isna(), strict=True)])


def _text(cell: Any) -> str:
    """
    >>> _text(Decimal("1.50")), _text(Decimal("2.0")), _text(Decimal("1E+3")), _text(2**64)
    ('1.5', '2', '1000', '18446744073709551616')
    """
    if isinstance(cell, Decimal) and cell.is_finite() and abs(cell.adjusted()) < MOST_DIGITS:
        digits = format(cell, "f")  # 1.0 and 1 are the same number, and must be the same text
        return digits.rstrip("0").rstrip(".") if "." in digits else digits
    return str(cell)


def _converted(series: pd.Series) -> pa.Array | None:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
