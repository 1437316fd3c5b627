"""`understudy check`: what in a table does not fit its schema."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import JsonOption, SchemaOption, TableArgument, check_output
from understudy.schema import Schema


def check(
    table: TableArgument,
    schema: SchemaOption,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="CSV", help="Write the offending cells here, for your eyes alone."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Count the cells that do not fit the schema, by column and rule. Exit code 1 if the table cannot be fitted.

    Rows that break a rule between columns are counted too; they do not stand in the way of a fit.
    Computed from private rows: for the data steward, not for release.
    """
    if output is not None:
        check_output(output, table, schema)
    from understudy.table.check import check_table, write_offending

    facts = Schema.load(schema)
    result = check_table(table, facts)
    if json:
        screen.print_json(
            {
                "fits": result.fits,
                "findings": [
                    {"column": name, "rule": rule, "count": found.count, "rows": found.rows}
                    for (name, rule), found in result.findings.items()
                ],
            }
        )
    else:
        for line in result.lines():
            screen.say(f"- {line}")
        screen.say("The table fits its schema." if result.fits else "The table does not fit its schema.")
    if output is not None and result.findings:
        count = write_offending(table, facts, output)
        screen.note(f"wrote {count} offending cells and rows to {output}: private values, for the data steward alone")
    if not result.fits:
        raise typer.Exit(1)
