"""`understudy evaluate`: how close synthetic rows are to real ones."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.cli.options import JsonOption, SchemaOption, TableArgument
from understudy.schema import Schema


def evaluate(
    table: TableArgument,
    synthetic: Annotated[Path, typer.Argument(metavar="SYNTHETIC", help="Synthetic rows: CSV or Parquet.")],
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
    rows = []
    for result in found:
        value = screen.number(result.value) if result.value is not None else "undefined"
        ideal = screen.number(result.ideal)
        rows.append((result.name, value, screen.number(result.reference), ideal, ", ".join(result.worst_columns(2))))
    screen.print_table(("metric", "value", "fresh", "best", "weakest columns"), rows, right=("value", "fresh", "best"))
    undefined = [result for result in found if result.undefined]
    for result in undefined:
        screen.note(f"{result.name} is undefined: {result.undefined}")
