"""What in a table does not fit its schema: counts for a look, and the cells themselves for the steward alone."""

import csv
import io
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.notebook import card
from understudy.schema import Schema
from understudy.schema.ruleset import Ruleset
from understudy.table.codec import CLIPPED, Encoded
from understudy.table.pictures import described
from understudy.table.read import RAGGED, Finding, all_codecs, check_names, encoded_blocks, told
from understudy.table.rules import BREAKING, broken_rows, rule_names
from understudy.table.sources import Source, open_source
from understudy.table.written import written_whole

MOST_WRITTEN = 10_000


@dataclass(frozen=True, repr=False)
class CheckResult:
    """Findings by (column, rule); the column is None for whole rows. Computed from private rows: for the steward."""

    findings: dict[tuple[str | None, str], Finding]

    @property
    def fits(self) -> bool:
        """Whether the table can be read; clipped cells and rows that break a rule do not stand in the way."""
        return all(rule == CLIPPED or rule.startswith(BREAKING) for _, rule in self.findings)

    def lines(self) -> list[str]:
        """One sentence a finding: where and why, never what."""
        return [told(name, rule, found) for (name, rule), found in self.findings.items()]

    def __repr__(self) -> str:
        return f"CheckResult({'fits' if self.fits else 'does not fit'}; lines() has the findings)"

    def _repr_html_(self) -> str:
        return card(
            "The table fits its schema" if self.fits else "The table does not fit its schema",
            headings=("finding",),
            rows=[(line,) for line in self.lines()],
            notes=["Computed from private rows: for the data steward alone."],
        )


@dataclass(frozen=True)
class _Offence:
    """Cells of one block of one column that do not fit, or whole rows that break a rule of the schema."""

    column: str | None
    rule: str
    rows: np.ndarray
    cells: pa.Array | None
    positions: np.ndarray


def _offences(source: Source, schema: Schema) -> Iterator[_Offence]:
    check_names(source, schema)
    rules = schema.ruleset() if schema.rules else None
    first = 0
    for arrays, encoded in encoded_blocks(source, all_codecs(schema)):
        for name, part in encoded.items():
            for rule, positions in {**part.bad, CLIPPED: part.clipped_at}.items():
                if len(positions):
                    yield _Offence(name, rule, source.row_numbers(first + positions), arrays[name], positions)
        if rules is not None:
            for rule, positions in zip(rule_names(schema), _rule_breaks(rules, encoded), strict=True):
                if len(positions):
                    yield _Offence(None, rule, source.row_numbers(first + positions), None, positions)
        first += len(next(iter(arrays.values())))


def _rule_breaks(rules: Ruleset, encoded: Mapping[str, Encoded]) -> Iterator[np.ndarray]:
    """Positions that break each rule in turn; rows with a cell that cannot be read are counted for that cell alone."""
    codes = {name: encoded[name].codes for name in rules.axes}
    for rule, broken in zip(rules.rules, broken_rows(rules, codes), strict=True):
        for name in rule.involved:
            for positions in encoded[name].bad.values():
                broken[positions] = False
        yield np.flatnonzero(broken)


def check_table(source: Any, schema: Schema) -> CheckResult:
    """Counts what does not fit, by column and rule, in one pass and little memory.

    Rows that break a declared rule are counted after clipping, as a fit would see them.
    """
    opened = open_source(source, schema)
    findings: dict[tuple[str | None, str], Finding] = {}
    for offence in _offences(opened, schema):
        findings.setdefault((offence.column, offence.rule), Finding()).add(offence.rows)
    if opened.ragged:
        findings = {(None, RAGGED): Finding.of(opened.ragged)} | findings
    return CheckResult(findings)


def write_offending(source: Any, schema: Schema, path: str | os.PathLike[str]) -> int:
    """Writes the offending cells (row, column, rule, value) to a CSV file that only its owner may read.

    Of rows that break a rule of the schema, their numbers alone.
    At most 10,000 lines for each column and rule. Returns the number of lines written.
    """
    opened = open_source(source, schema)
    written: Counter[tuple[str | None, str]] = Counter()
    with written_whole(Path(path), mode=0o600) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["row", "column", "rule", "value"])
        for offence in _offences(opened, schema):
            room = MOST_WRITTEN - written[offence.column, offence.rule]
            if offence.cells is None:
                lines = offence.rows[:room]
                written[None, offence.rule] += len(lines)
                writer.writerows([row, "", offence.rule, ""] for row in lines)
                continue
            values = offence.cells.take(pa.array(offence.positions[:room])).to_pylist()
            if offence.column in schema.images:
                values = [described(cell) for cell in values]
            written[offence.column, offence.rule] += len(values)
            for row, value in zip(offence.rows, values, strict=False):
                writer.writerow([row, offence.column, offence.rule, "" if value is None else value])
        for row in opened.ragged[:MOST_WRITTEN]:
            written[None, RAGGED] += 1
            writer.writerow([row, "", RAGGED, ""])
        text.flush()
        text.detach()
    return written.total()
