"""From frames and files to the coded tables that metrics compare, through the schema."""

from os import PathLike

import numpy as np
import pandas as pd
import pyarrow as pa

from understudy.errors import DataError, OptionError
from understudy.evaluation.view import Facts, View
from understudy.schema import Schema
from understudy.schema.columns import Boolean, Categorical, Datetime, Integer
from understudy.table import codec as codecs
from understudy.table import parse

Source = pd.DataFrame | str | PathLike | View


def open_tables(
    real: Source, synthetic: Source, schema: Schema, holdout: Source | None
) -> tuple[View, View, View | None]:
    """All tables as codes of one schema; tables that are open already pass through."""
    if not isinstance(schema, Schema):
        raise OptionError(f"schema must be a Schema, got {type(schema).__name__}; load one with Schema.load(path)")
    return (
        open_table(real, schema, role="real"),
        open_table(synthetic, schema, role="synthetic"),
        None if holdout is None else open_table(holdout, schema, role="holdout"),
    )


def open_table(source: Source, schema: Schema, *, role: str) -> View:
    """One table as codes. Cells outside the domain are an error in the real table alone; elsewhere they are counted.

    A synthetic table may hold anything, and a metric should say so rather than stop: an undeclared category becomes a
    category of its own, a number beyond the bounds is clipped, and anything else that cannot be read counts as missing.
    """
    if isinstance(source, View):
        return source
    frame = _frame(source, role)
    absent = [name for name in schema.modelled if name not in frame.columns]
    if absent:
        shown = ", ".join(repr(name) for name in absent[:5]) + (" ..." if len(absent) > 5 else "")
        raise DataError(f"the {role} table lacks {len(absent)} of the schema's columns: {shown}; add or rename them")
    if len(frame) == 0:
        raise DataError(f"the {role} table has no rows; give at least one")
    facts, codes, outside = {}, {}, {}
    for name, column in schema.modelled.items():
        if isinstance(frame[name], pd.DataFrame):
            raise DataError(f"the {role} table has two columns named {name!r}; rename one")
        codec = codecs.codec(column, schema.missing_values)
        facts[name] = column_facts(name, column, codec)
        codes[name], strange = _coded(frame[name], codec, facts[name])
        if strange and role == "real":
            rule, count = next(iter(strange.items()))
            raise DataError(
                f"the real table does not fit the schema: column {name!r} has {count} cells that are {rule};"
                " correct the schema or the table"
            )
        if strange:
            outside[name] = sum(strange.values())
    return View(facts, codes, len(frame), outside)


def _frame(source: Source, role: str) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    raise OptionError(f"the {role} table must be a DataFrame or a path, got {type(source).__name__}")


def column_facts(name: str, column: object, codec: codecs.Codec) -> Facts:
    """The schema's facts in the terms of the metrics."""
    if isinstance(column, Categorical | Boolean):
        return Facts(name, column.kind, True, codec.size, tuple(str(value) for value in codec.values))
    if isinstance(codec, codecs.StepCodec):
        low, high, step = float(codec.low), float(codec.high), float(codec.step)
    else:
        low, high, step = column.low, column.high, 1.0
    edges = None if isinstance(column, Datetime) else column.bins
    if edges is not None and codec.size is not None:
        edges = tuple((edge - low) / step for edge in edges)
    log = not isinstance(column, Datetime) and column.log
    return Facts(name, column.kind, False, codec.size, (), low, high, log, edges)


def _coded(series: pd.Series, codec: codecs.Codec, facts: Facts) -> tuple[np.ndarray, dict[str, int]]:
    encoded = codec.encode(_arrow(series))
    codes = encoded.codes
    if facts.categorical:
        codes = codes.astype(np.min_scalar_type(facts.outside))
    strange = {rule: len(positions) for rule, positions in encoded.bad.items()}
    if encoded.clipped:
        strange[codecs.CLIPPED] = encoded.clipped
    for rule, positions in encoded.bad.items():
        if rule in (codecs.OUTSIDE, codecs.NOT_BOOLEAN):
            codes[positions] = facts.outside
        elif rule == parse.NOT_WHOLE and isinstance(codec.column, Integer):
            # A table from elsewhere may hold 39.6 for an age: it counts as strange, and is measured as 40.
            rounded = pd.to_numeric(series.iloc[positions]).round()
            codes[positions] = codec.encode(_arrow(rounded)).codes
        else:
            codes[positions] = codec.missing
    return codes, strange


def _arrow(series: pd.Series) -> pa.Array:
    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        # Columns of mixed types, such as numbers and words.
        return pa.array([None if pd.isna(cell) else str(cell) for cell in series.tolist()], type=pa.large_string())
