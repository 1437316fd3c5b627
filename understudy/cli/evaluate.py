"""`understudy evaluate`: how close synthetic rows are to real ones."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.cli.options import JsonOption, SchemaOption, TableArgument
from understudy.schema import Schema

WIDE = 80  # below this many columns there is no room to name columns beside the numbers


def evaluate(
    table: TableArgument,
    synthetic: Annotated[
        Path, typer.Argument(metavar="SYNTHETIC", help="Synthetic rows: CSV, Parquet; images: .npz, folder.")
    ],
    schema: SchemaOption,
    holdout: Annotated[
        Path | None,
        typer.Option("--holdout", metavar="TABLE", help="Real rows that the fit never saw: the yardstick."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All metrics (minutes), not the fast ones (seconds).")] = False,
    json: JsonOption = False,
) -> None:
    """Compare synthetic rows with the real table, beside what fresh real rows would score.

    Computed from private rows: outside the guarantee, for the data steward alone.
    """
    facts = Schema.load(schema)
    from understudy.evaluation import suite

    with listening() as progress:
        found = suite.evaluate(
            table, synthetic, facts, holdout=holdout, which="full" if full else "fast", progress=progress
        )
    if json:
        print(found.to_json(indent=2))
        return
    for line in found.notes:
        screen.note(line, style="yellow")
    wide = screen.out.width >= WIDE
    headings = ("metric", "value", "fresh", "best", *(["weakest columns"] if wide else []))
    rows = []
    for result in found:
        value = "undefined" if result.value is None else screen.number(result.value)
        numbers = result.name, value, screen.number(result.reference), screen.number(result.ideal)
        rows.append((*numbers, *([", ".join(result.worst_columns(2))] if wide else [])))
    screen.print_table(headings, rows, right=("value", "fresh", "best"))
    for result in found:
        if result.undefined:
            screen.note(f"{result.name} is undefined: {result.undefined}")
