"""The rows of a comparison: which are fitted and which are held back, and how a process is handed them."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.comparison.simulated import simulated_codes
from understudy.errors import DataError, OptionError, SchemaError
from understudy.evaluation.inputs import column_facts
from understudy.evaluation.view import View
from understudy.schema import Schema
from understudy.table.read import codecs, read_table
from understudy.table.table import Table

HELD_BACK = 0.25
# With fewer rows on either side no figure means anything.
FEWEST_ROWS = 10
MOST_HELD_BACK = 50_000  # of made-up rows, which are free

PARTS = ("fitted", "held_back")

Codes = Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Codes of the rows to fit and of those held back from it. Private, and never written to a disk."""

    fitted: Codes
    held_back: Codes

    def pack(self) -> bytes:
        """As bytes for a pipe: plain arrays, columns by their number."""
        arrays = {f"{part}.{at}": codes for part in PARTS for at, codes in enumerate(getattr(self, part).values())}
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    @staticmethod
    def unpack(data: bytes, schema: Schema) -> "Rows":
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            parts = ({name: arrays[f"{part}.{at}"] for at, name in enumerate(kept_columns(schema))} for part in PARTS)
            return Rows(*parts)


def split_rows(source: Any, schema: Schema, holdout: Any, coins: int) -> Rows:
    """Reads the table; `holdout` is a table of its own, or the share of rows to hold back.

    Each row is held back or not by a coin of its own, so that which rows a fit sees depends on no other row.
    """
    table = source if isinstance(source, Table) else read_table(source, schema)
    if table.schema.digest() != schema.digest():
        raise SchemaError("the table was read with another schema than the one given; read it again with this one")
    codes = {name: table.codes(name) for name in kept_columns(schema)}
    if isinstance(holdout, float):
        held = np.random.default_rng(coins).random(table.rows) < holdout
        rows = Rows({name: c[~held] for name, c in codes.items()}, {name: c[held] for name, c in codes.items()})
    else:
        other = holdout if isinstance(holdout, Table) else read_table(holdout, schema)
        rows = Rows(codes, {name: other.codes(name) for name in kept_columns(schema)})
    for part, word in zip(PARTS, ("to fit", "held back"), strict=True):
        if len(next(iter(getattr(rows, part).values()))) < FEWEST_ROWS:
            raise DataError(
                f"there are too few rows {word}: at least {FEWEST_ROWS} are needed; give a larger table, or rows held "
                "back as a table of their own"
            )
    return rows


def kept_columns(schema: Schema) -> list[str]:
    """The columns that a table has codes of: the modelled ones, and the image."""
    return [*schema.modelled, *schema.images]


def check_holdout(holdout: Any) -> Any:
    """A share as a float between 0 and 1, or the table that was given; None is the usual share."""
    if holdout is None:
        return HELD_BACK
    if isinstance(holdout, bool) or (isinstance(holdout, int | float) and not 0 < holdout < 1):
        raise OptionError(f"holdout must be a table, or a share between 0 and 1, got {holdout!r}")
    return float(holdout) if isinstance(holdout, int | float) else holdout


def simulated_rows(schema: Schema, number: int) -> Rows:
    """Made-up table `number`: the declared rows to fit, and as many of the same process (up to a limit) held back."""
    end = max(schema.rows or 0, FEWEST_ROWS)
    codes = simulated_codes(schema, end + min(end, MOST_HELD_BACK), seed=number)
    return Rows({name: c[:end] for name, c in codes.items()}, {name: c[end:] for name, c in codes.items()})


def view_of(codes: Codes, schema: Schema) -> View:
    """Codes as the metrics take them, without a way through files and words."""
    coders = codecs(schema)
    facts = {name: column_facts(name, schema.modelled[name], coder) for name, coder in coders.items()}
    wide = {
        name: codes[name].astype(np.min_scalar_type(facts[name].outside)) if facts[name].categorical else codes[name]
        for name in coders
    }
    pixels = next((codes[name] for name in schema.images), None)
    return View(facts, wide, len(next(iter(codes.values()))), pixels=pixels)
