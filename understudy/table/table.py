"""The only holder of private rows: one compact array of codes a modelled column."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from understudy.errors import DataError
from understudy.notebook import card
from understudy.schema import Column, Image, Schema
from understudy.schema.shown import column_words
from understudy.table.codec import codec
from understudy.table.pictures import image_codec


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Codes of the private rows. Nothing in here may be shown, saved or sent: not even the number of rows.

    `notes` counts clipped cells by column, for the steward alone.
    """

    schema: Schema
    _codes: Mapping[str, np.ndarray]
    rows: int
    notes: Mapping[str, int] = field(default_factory=dict)

    def codes(self, name: str) -> np.ndarray:
        """The codes of a modelled column, read-only; of an image column, its pixels: one row of numbers an image."""
        if name not in self._codes:
            raise DataError(f"column {name!r} has no codes; modelled columns are {', '.join(self._codes)}")
        return self._codes[name]

    def learnt(self) -> "Table":
        """The same rows without columns that rules determine (`Schema.learnt`), which a method need not see."""
        schema = self.schema.learnt()
        if schema is self.schema:
            return self
        kept = _held(schema)
        notes = {name: count for name, count in self.notes.items() if name in kept}
        return Table(schema, {name: self._codes[name] for name in kept}, self.rows, notes)

    def blocks(self, rows_per_block: int) -> Iterator[dict[str, np.ndarray]]:
        """The rows in order, as dicts of array slices (views, not copies)."""
        if rows_per_block < 1:
            raise DataError(f"rows_per_block must be at least 1, got {rows_per_block}")
        for first in range(0, self.rows, rows_per_block):
            yield {name: codes[first : first + rows_per_block] for name, codes in self._codes.items()}

    @classmethod
    def from_codes(cls, schema: Schema, codes: Mapping[str, np.ndarray]) -> "Table":
        """A table from codes made elsewhere, checked against the schema and brought to its types."""
        columns = _held(schema)
        if set(codes) != set(columns):
            raise DataError(f"codes must be given for exactly the modelled columns: {', '.join(columns)}")
        arrays = {}
        for name, column in columns.items():
            coder = image_codec(column) if isinstance(column, Image) else codec(column)
            problem = ""
            try:
                arrays[name] = np.array(coder.check(codes[name]))
            except DataError as error:
                problem = str(error)
            if problem:
                raise DataError(f"column {name!r}: {problem}")
            arrays[name].flags.writeable = False
        lengths = {len(array) for array in arrays.values()}
        if len(lengths) != 1:
            raise DataError("codes must have the same length in all columns")
        return cls(schema, arrays, lengths.pop())

    def __repr__(self) -> str:
        return f"Table(private rows of {len(self._codes)} columns: {', '.join(self._codes)})"

    def _repr_html_(self) -> str:
        columns = _held(self.schema)
        return card(
            "Table",
            headings=("column", "kind", "public facts"),
            rows=[(name, column.kind, column_words(column)) for name, column in columns.items()],
            notes=["Private rows: neither they nor their number are shown."],
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Table holds private rows and cannot be pickled or copied; read it again where it is needed")


def _held(schema: Schema) -> dict[str, Column]:
    """The columns that a table holds codes of: the modelled ones, and the image."""
    return {**schema.modelled, **schema.images}
