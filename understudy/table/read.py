"""From a file or frame to a Table, or a refusal that says where, and not what, the trouble is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table.codec import Codec, Encoded, codec
from understudy.table.pictures import ImageCodec, image_codec
from understudy.table.sources import Block, Source, listed, open_source
from understudy.table.storage import SPILL_BYTES, CodeStore
from understudy.table.table import Table

AnyCodec = Codec | ImageCodec
RAGGED = "with another number of fields than the header"
SHOWN_ROWS = 5
SHOWN_RULES = 20
CHECK = "`understudy check TABLE -s SCHEMA -o CSV` writes the offending rows to a file for you alone"


@dataclass
class Finding:
    """How often a rule is broken, and the first few rows that do."""

    count: int = 0
    rows: list[int] = field(default_factory=list)

    def add(self, rows: np.ndarray) -> None:
        self.count += len(rows)
        self.rows += [int(row) for row in rows[: SHOWN_ROWS - len(self.rows)]]

    @classmethod
    def of(cls, rows: Sequence[int]) -> "Finding":
        return cls(len(rows), list(rows[:SHOWN_ROWS]))

    def where(self) -> str:
        more = ", ..." if self.count > len(self.rows) else ""
        return f"row{'' if self.count == 1 else 's'} {', '.join(map(str, self.rows))}{more}"


def read_table(source: Any, schema: Schema, *, spill_bytes: int = SPILL_BYTES) -> Table:
    """Reads a path (CSV, also gzipped, Parquet, .npz, a folder of PNG images), DataFrame or Arrow table into codes.

    Values outside a column's domain are refused, or become its `other`; numbers outside its bounds are clipped and
    counted in `Table.notes`. Codes of more than `spill_bytes` live in an unlinked temporary file.
    """
    opened = open_source(source, schema)
    check_names(opened, schema)
    coders = all_codecs(schema)
    store = CodeStore({name: coder.dtype for name, coder in coders.items()}, spill_bytes)
    findings: dict[tuple[str | None, str], Finding] = {}
    clipped = dict.fromkeys(coders, 0)
    try:
        for _, encoded in encoded_blocks(opened, coders):
            for name, part in encoded.items():
                clipped[name] += part.clipped
                for rule, positions in part.bad.items():
                    findings.setdefault((name, rule), Finding()).add(opened.row_numbers(store.rows + positions))
            store.append({name: part.codes for name, part in encoded.items()})
        _refuse(opened, findings)
        rows = store.rows
        return Table(schema, store.finish(), rows, {name: count for name, count in clipped.items() if count})
    finally:
        store.close()


def encoded_blocks(source: Source, coders: dict[str, AnyCodec]) -> Iterator[tuple[Block, dict[str, Encoded]]]:
    """The table's blocks, as they came and as codes; a table without a row is refused at the end."""
    rows = 0
    for arrays in source.blocks(list(coders)):
        yield arrays, {name: coder.encode(arrays[name]) for name, coder in coders.items()}
        rows += len(next(iter(arrays.values())))
    if not rows and not source.ragged:
        raise DataError(f"{source.label}: it is empty; it needs at least one row")


def codecs(schema: Schema) -> dict[str, Codec]:
    """The codec of each modelled column, in order."""
    return {name: codec(column, schema.missing_values) for name, column in schema.modelled.items()}


def all_codecs(schema: Schema) -> dict[str, AnyCodec]:
    """The codecs of all columns that a table holds: the modelled ones, and the image."""
    return codecs(schema) | {name: image_codec(column) for name, column in schema.images.items()}


def check_names(source: Source, schema: Schema) -> None:
    """Refuses a table whose columns are not the schema's; id and text columns may be left out of a file."""
    held = [*schema.modelled, *schema.images]
    absent = [name for name in held if name not in source.names]
    unknown = [name for name in source.names if name not in schema.columns]
    flat = [name for name in schema.images if name not in source.images]
    if flat and not source.images:
        raise DataError(
            f"{source.label}: column {flat[0]!r} is of kind image, and this table has none; images are read from a"
            " folder of PNG files, an .npz file, or a DataFrame with arrays as cells"
        )
    if source.images and not schema.images:
        raise DataError(f"{source.label}: it has images, but the schema declares no column of kind image; add it there")
    if 2 * len(absent) > len(held):
        # The first line may be a row of values: the file's own words must not be shown here.
        raise DataError(
            f"{source.label}: {len(absent)} of the schema's {len(held)} columns are not in the table"
            f" ({listed(absent)}); a schema for another table? or is there no header line?"
        )
    if absent:
        raise DataError(
            f"{source.label}: columns {listed(absent)} are in the schema, but not in the table; check the names"
        )
    if unknown:
        raise DataError(
            f"{source.label}: columns {listed(unknown)} are not in the schema; add them there"
            " (kind: text or kind: id leaves a column out of the model), or remove them from the table"
        )


def told(name: str | None, rule: str, found: Finding) -> str:
    """A finding as a sentence: where and why, never what.

    >>> told("age", "not a number", Finding(2, [3, 9]))
    "column 'age': 2 cells not a number (rows 3, 9)"
    """
    what = "row" if name is None else "cell"
    place = "" if name is None else f"column {name!r}: "
    return f"{place}{found.count} {what}{'s' * (found.count > 1)} {rule} ({found.where()})"


def _refuse(source: Source, findings: dict[tuple[str | None, str], Finding]) -> None:
    if source.ragged:
        findings = {(None, RAGGED): Finding.of(source.ragged)} | findings
    problems = [told(name, rule, found) for (name, rule), found in findings.items()]
    if not problems:
        return
    shown = "".join(f"\n  - {problem}" for problem in problems[:SHOWN_RULES])
    more = f"\n  - and {len(problems) - SHOWN_RULES} more" if len(problems) > SHOWN_RULES else ""
    raise DataError(
        f"{source.label} does not fit its schema:{shown}{more}\n{CHECK};"
        " mend the table, or the schema from public knowledge"
    )
