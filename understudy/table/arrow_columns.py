"""Columns of a frame as plain Arrow values, in the types that the schema dictates."""

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import DataError
from understudy.schema import Categorical, Column, Datetime, Id, Integer, Real


def arrow_column(series: pd.Series, column: Column, *, as_text: bool, exact: bool = False) -> pa.Array:
    """A column as plain Arrow values: the type comes from the schema, so that every part of a file has the same.

    exact: with all digits also as text, where shorter ones could break a rule between columns.
    """
    if isinstance(column, Categorical):
        return _plain_values(series, column)
    if isinstance(column, Datetime):
        if as_text and column.format:
            return pa.array(series.dt.strftime(column.format), from_pandas=True, type=pa.string())
        times = pa.array(series, from_pandas=True).cast(pa.timestamp("s"))
        return times.cast(pa.date32()) if column.resolution == "day" else times
    if isinstance(column, Real) and as_text and exact:
        return pa.array(series, from_pandas=True, type=pa.float64())
    if isinstance(column, Real) and column.resolution is None and as_text:
        return pa.array(series, from_pandas=True, type=pa.float32())  # no more digits than the codes hold
    if isinstance(column, Real):
        return pa.array(series, from_pandas=True, type=pa.from_numpy_dtype(column.dtype or "float64"))
    if isinstance(column, Integer):
        return pa.array(series, from_pandas=True, type=pa.from_numpy_dtype(column.dtype or "int64"))
    if isinstance(column, Id):
        return pa.array(series, type=pa.string() if column.prefix else pa.int64())
    return pa.array(series, from_pandas=True, type=pa.bool_())


def _plain_values(series: pd.Series, column: Categorical) -> pa.Array:
    kinds = {type(value) for value in column.values}
    if kinds <= {int, float} or len(kinds) == 1:
        values = pa.array(column.values)
    else:
        values = pa.array([str(value) for value in column.values])  # a file's column has one type: text holds all
    if isinstance(series.dtype, pd.CategoricalDtype) and tuple(series.cat.categories) == column.values:
        indices = series.cat.codes.to_numpy()
    else:
        indices = pd.Index(column.values, dtype=object).get_indexer(pd.Index(series, dtype=object))
        if np.any((indices < 0) & series.notna().to_numpy()):
            raise DataError(f"column {series.name!r} holds values that the schema does not declare")
    return values.take(pa.array(indices, mask=indices < 0))
