"""Pairs of neighbouring tables that are easy to tell apart: one row, and a table that shows it as well as any.

Made from a schema alone, with rows of public numbers; or from a given table, whose rows stay where they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.table.cells import cells_of
from understudy.table.codec import codec
from understudy.table.table import Table

Codes = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbours: a table `without` the row, as codes, and the row. `words` say what is worst about them."""

    name: str
    words: str
    schema: Schema
    without: Codes
    row: Codes

    def table(self, with_row: bool) -> Table:
        if not with_row:
            return Table.from_codes(self.schema, self.without)
        joined = {name: np.concatenate([codes, self.row[name]]) for name, codes in self.without.items()}
        return Table.from_codes(self.schema, joined)

    @property
    def rows(self) -> int:
        return len(next(iter(self.without.values())))


def stepped_rows(schema: Schema, rows: int) -> Codes:
    """A table in which every other cell of a column has three times the rows, columns shuffled independently.

    Public: the schema and a fixed seed decide it. Cells far above the noise, and neighbours that differ by far more
    than noise explains, are neither pooled nor cut off at zero nor levelled by whatever a method does with its counts,
    so that no evidence is lost on the way.
    """
    rng = np.random.default_rng(0)
    made = {}
    for name, column in schema.modelled.items():
        cells = cells_of(column)
        steps = np.repeat(np.arange(cells.count), 1 + 2 * (np.arange(cells.count) % 2))
        made[name] = cells.place(rng.permutation(np.resize(steps, rows)), np.random.default_rng(1))
    for name, image in schema.images.items():
        made[name] = np.zeros((rows, image.pixels), dtype=np.uint8)
    return made


def corner(schema: Schema, base: Codes) -> Pair:
    """The highest value of every number and the last declared value of everything else."""
    return Pair("corner", "a row at the corner of the domain", schema, base, _row(schema, -1))


def duplicate(schema: Schema, base: Codes) -> Pair:
    """A row that is in the table already: its cells are filled, and a count tells one more from one less."""
    row = {name: codes[:1].copy() for name, codes in base.items()}
    return Pair("duplicate", "a second copy of a row that is there already", schema, base, row)


def rare(schema: Schema, base: Codes) -> Pair:
    """The last value of every column, which no other row has."""
    row = _row(schema, -1)
    others = _row(schema, 0)
    cleared = {}
    for name, codes in base.items():
        taken = (codes == row[name]).reshape(len(codes), -1).all(axis=1)
        cleared[name] = np.where(taken.reshape(-1, *[1] * (codes.ndim - 1)), others[name], codes).astype(codes.dtype)
    return Pair("rare", "a row of values that no other row has", schema, cleared, row)


def outlier(schema: Schema, base: Codes) -> Pair:
    """All other rows are the same, at one end of the domain; this one lies at the other end."""
    alike = {name: np.repeat(codes, len(base[name]), axis=0) for name, codes in _row(schema, 0).items()}
    return Pair("outlier", "a row far from all others, which are alike", schema, alike, _row(schema, -1))


def missing(schema: Schema, base: Codes) -> Pair:
    """Missing wherever the schema allows it; the lowest value elsewhere."""
    return Pair("missing", "a row that is missing everywhere it may be", schema, base, _row(schema, 0, absent=True))


CANARIES: dict[str, Callable[[Schema, Codes], Pair]] = {
    "duplicate": duplicate,
    "corner": corner,
    "outlier": outlier,
    "rare": rare,
    "missing": missing,
}


def pair_from_schema(name: str, schema: Schema, rows: int) -> Pair:
    """A pair of made-up tables of so many rows, and one more."""
    return _maker(name)(schema, stepped_rows(schema, rows))


def pair_from_table(name: str, table: Table) -> Pair:
    """A pair around a given table (`rare` and `outlier` change its other rows). What is learnt from such games is as
    private as the table: each is a release of its own.
    """
    names = [*table.schema.modelled, *table.schema.images]
    return _maker(name)(table.schema, {column: np.asarray(table.codes(column)) for column in names})


def _maker(name: str) -> Callable[[Schema, Codes], Pair]:
    if name not in CANARIES:
        raise OptionError(f"canary {name!r} is not known; choose from {', '.join(CANARIES)}")
    return CANARIES[name]


def _row(schema: Schema, end: int, *, absent: bool = False) -> Codes:
    """One row at the low (0) or high (-1) end of every column, or missing where it may be."""
    made = {}
    for name, column in schema.modelled.items():
        coded = codec(column)
        if absent and column.missing:
            code = coded.missing
        elif coded.size is None:
            code = column.low if end == 0 else column.high
        else:
            code = 0 if end == 0 else coded.size - 1
        made[name] = np.array([code], dtype=coded.dtype)
    for name, image in schema.images.items():
        made[name] = np.full((1, image.pixels), 0 if end == 0 else 255, dtype=np.uint8)
    return made
