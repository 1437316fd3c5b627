"""`understudy draft`: a first schema, guessed from the rows and marked so."""

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import TableArgument, check_output
from understudy.errors import OptionError


def draft(
    table: TableArgument,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="SCHEMA", help="Where to write it (.yaml, .json).")],
    force: Annotated[bool, typer.Option("--force", help="Replace a schema that is there already.")] = False,
) -> None:
    """Guess a schema from a table, and mark every fact that was read off its rows.

    Such facts are private until a person has checked them: see `understudy confirm`.
    """
    check_output(output, table)
    if output.exists() and not force:
        raise OptionError(f"output {str(output)!r}: there is a schema already; --force replaces it")
    from understudy.table.draft import HEADER
    from understudy.table.draft import draft as guess
    from understudy.table.written import written_whole

    schema = guess(table)
    text = schema.dumps(style="json") if output.suffix == ".json" else schema.dumps(header=HEADER)
    # It holds categories and bounds of private rows: for its owner alone, until they are confirmed.
    with written_whole(output, mode=0o600) as file:
        file.write(text.encode())
    rows = []
    for name, column in schema.columns.items():
        read = [fact for fact in column.from_data() if fact != "kind"]
        values = getattr(column, "values", None)
        facts = [f"{len(values)} values" if fact == "values" else fact for fact in read]
        rows.append((name, column.kind, ", ".join(facts)))
    screen.print_table(("column", "kind", "read off the rows"), rows)
    screen.say()
    screen.say(f"Wrote {output}: {len(schema.columns)} columns, {len(schema.unconfirmed())} facts from private rows.")
    screen.say(
        "Keep it as private as the table. Next: open it, put what is publicly known (a code book, a form, a law) in "
        "place of what was read, look at the kinds, name a label if there is one, round the number of rows. Then:"
    )
    screen.say(f"  understudy confirm {output}", style="bold")
