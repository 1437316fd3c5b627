"""From frames and files to the coded tables that metrics compare, through the schema."""

import math
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import DataError, OptionError
from understudy.evaluation.view import Facts, View
from understudy.schema import Schema
from understudy.schema.columns import Boolean, Categorical, Column, Datetime
from understudy.table import codec as codecs
from understudy.table import parse
from understudy.table.pictures import image_codec
from understudy.table.read import codecs as codecs_of
from understudy.table.sources import open_source

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
    """One table as codes. Cells that break the schema are an error in the real table; elsewhere they are counted.

    A synthetic table may hold anything, and a metric should say so rather than stop: an undeclared category becomes a
    category of its own, a number beyond the bounds is clipped, a fraction in an integer column is rounded, and anything
    else that cannot be read counts as missing. Columns that the schema does not name are not looked at.
    """
    if isinstance(source, View):
        return source
    opened = open_source(source, schema)
    _check_columns(opened.names, schema, role)
    if schema.images and not opened.images:
        raise DataError(f"the {role} table has no images; give an .npz file, a folder of PNG files, or a DataFrame")
    coders = codecs_of(schema)
    pictured = {name: image_codec(column) for name, column in schema.images.items()}
    facts = {name: column_facts(name, schema.modelled[name], coder) for name, coder in coders.items()}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in coders}
    strange: dict[str, dict[str, int]] = {name: {} for name in coders}
    pixels: list[np.ndarray] = []
    rows = 0
    for arrays in opened.blocks([*coders, *pictured]):
        for name, coder in coders.items():
            parts[name].append(_coded(arrays[name], coder, facts[name], strange[name]))
        for name, coder in pictured.items():
            pixels.append(_images(name, coder.encode(arrays[name]), role))
        rows += len(next(iter(arrays.values())))
    if opened.ragged:
        raise DataError(
            f"the {role} table has {len(opened.ragged)} rows with another number of fields than the header; mend them"
        )
    if not rows:
        raise DataError(f"the {role} table has no rows; it needs at least one")
    if role == "real":
        _refuse(strange)
    codes = {name: np.concatenate(blocks) for name, blocks in parts.items()}
    outside = {name: sum(rules.values()) for name, rules in strange.items() if rules}
    return View(facts, codes, rows, outside, np.concatenate(pixels) if pixels else None)


def _images(name: str, encoded: codecs.Encoded, role: str) -> np.ndarray:
    """Rows of pixels; an image that does not fit cannot be measured, whichever table it is in."""
    if encoded.bad:
        rule, where = next(iter(encoded.bad.items()))
        raise DataError(f"the {role} table: column {name!r}: at least {len(where)} cells {rule}")
    return encoded.codes


def _check_columns(names: list[str], schema: Schema, role: str) -> None:
    held = [*schema.modelled, *schema.images]
    absent = [name for name in held if name not in names]
    if absent:
        shown = ", ".join(repr(name) for name in absent[:10]) + (f" and {len(absent) - 10} more" if absent[10:] else "")
        raise DataError(
            f"the {role} table lacks {len(absent)} of the schema's {len(held)} columns: {shown};"
            " rename its columns, or give the schema that belongs to it"
        )


def _refuse(strange: dict[str, dict[str, int]]) -> None:
    """Clipped numbers are as the schema wants them; anything else means that the schema is not this table's."""
    broken = [
        f"\n  - column {name!r}: {count} cell{'s' * (count > 1)} {rule}"
        for name, rules in strange.items()
        for rule, count in rules.items()
        if rule != codecs.CLIPPED
    ]
    if broken:
        more = f"\n  - and {len(broken) - 20} more" if broken[20:] else ""
        raise DataError(
            f"the real table does not fit its schema:{''.join(broken[:20])}{more}\n"
            "`understudy check TABLE -s SCHEMA` finds the rows; mend the table or the schema"
        )


def column_facts(name: str, column: Column, codec: codecs.Codec) -> Facts:
    """The schema's facts in the terms of the metrics."""
    if isinstance(column, Categorical | Boolean):
        return Facts(name, column.kind, True, codec.size, tuple(str(value) for value in codec.values))
    if isinstance(codec, codecs.StepCodec):
        low, high, step = float(codec.low), float(codec.high), float(codec.step)
    else:
        low, high, step = column.low, column.high, 1.0
    if isinstance(column, Datetime):
        return Facts(name, column.kind, False, codec.size, (), low, high)
    edges = column.bins
    if edges is not None and codec.size is not None:
        # The code of the first step at or above the edge, which is where the table room's cells begin a bin too.
        edges = tuple(math.ceil((edge - low) / step - 1e-9) for edge in edges)
    return Facts(name, column.kind, False, codec.size, (), low, high, column.log, edges)


def _coded(array: Any, codec: codecs.Codec, facts: Facts, strange: dict[str, int]) -> np.ndarray:
    """The codes of one block; what breaks the schema is counted in `strange` by rule."""
    encoded = codec.encode(array)
    codes = encoded.codes.astype(np.min_scalar_type(facts.outside)) if facts.categorical else encoded.codes
    if encoded.clipped:
        strange[codecs.CLIPPED] = strange.get(codecs.CLIPPED, 0) + encoded.clipped
    for rule, positions in encoded.bad.items():
        strange[rule] = strange.get(rule, 0) + len(positions)
        if rule in (codecs.OUTSIDE, codecs.NOT_BOOLEAN):
            codes[positions] = facts.outside
        elif rule == parse.NOT_WHOLE:
            # A table from elsewhere may hold 39.6 for an age: it counts as strange, and is measured as 40.
            rounded = pc.round(parse.plain(array).take(pa.array(positions)).cast(pa.float64()))
            codes[positions] = codec.encode(rounded).codes
        else:
            codes[positions] = codec.missing
    return codes
