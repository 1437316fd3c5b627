"""What a peer is told: the rows as plain text, and the schema's public facts as JSON.

Peers get the same facts as our own methods (values, bounds, log scale, missing), so that none of them spends privacy on
finding what is public. Numeric columns come with public cells, for the peers that take discrete columns only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from understudy import Schema

NUMERIC = ("integer", "real")
# Equal cells a numeric column, on its linear or log scale: the usual domain of published runs of MST and AIM.
CELLS = 100


def domain(schema: Schema) -> dict[str, Any]:
    """The facts of the modelled columns, in order."""
    columns = {name: _facts(column) for name, column in schema.modelled.items()}
    return {"columns": columns, "label": schema.label, "rows": schema.rows}


def _facts(column: Any) -> dict[str, Any]:
    if column.kind in NUMERIC:
        return {
            "kind": column.kind,
            "low": column.low,
            "high": column.high,
            "resolution": column.resolution,
            "log": column.log,
            "missing": column.missing,
            "edges": public_edges(column),
        }
    if column.kind == "boolean":
        return {"kind": "categorical", "values": ["0", "1"], "missing": column.missing}
    if column.kind in ("categorical", "ordinal"):
        return {"kind": "categorical", "values": [text(value) for value in column.values], "missing": column.missing}
    raise ValueError(f"peers are not given columns of kind {column.kind}")


def public_edges(column: Any) -> list[float]:
    """Edges of public cells [e0, e1), [e1, e2), ...: one cell a value where there are few values, otherwise equal cells
    on the declared scale; zero has a cell of its own where the schema says that it is frequent."""
    low, high, step = float(column.low), float(column.high), column.resolution
    if column.bins is not None:
        return sorted({low, *map(float, column.bins), high})
    if step and round((high - low) / step) < CELLS:
        return [low + step * i for i in range(round((high - low) / step) + 1)] + [high + step]
    if column.log:
        edges = np.expm1(np.linspace(np.log1p(low), np.log1p(high), CELLS + 1))
    else:
        edges = np.linspace(low, high, CELLS + 1)
    if step:  # cells begin at values that occur
        edges = low + step * np.unique(np.ceil((edges - low) / step - 1e-9))
    if column.zero_inflated:
        after = float(step) if step else (high - low) * 1e-6
        edges = np.union1d(edges[(edges <= 0) | (edges >= after)], [0.0, after])
    edges[0], edges[-1] = low, high + (step or 0)  # the last cell holds `high` too
    return [float(edge) for edge in np.unique(edges)]


def text(value: object) -> str:
    """One spelling for a value, whatever type it came as: 1, 1.0, True and "1" are all "1".

    >>> [text(value) for value in (1, 1.0, True, "1", "yes", 0.5)]
    ['1', '1', '1', '1', 'yes', '0.5']
    """
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def plain(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The modelled columns with numbers clipped to the public bounds as floats, all else in its one spelling; missing
    cells are NaN. Ours and the peers' rows meet in this form."""
    columns = {}
    for name, column in schema.modelled.items():
        series = frame[name]
        if column.kind in NUMERIC:
            columns[name] = pd.to_numeric(series).astype(np.float64).clip(column.low, column.high)
        elif column.kind == "datetime" and column.format is not None:
            columns[name] = pd.to_datetime(series, format=column.format).dt.strftime(column.format)
        else:
            words = series.astype(object).map(text, na_action="ignore")
            columns[name] = words.where(series.notna(), np.nan)
    return pd.DataFrame(columns).reset_index(drop=True)
