"""`understudy confirm`: a person vouches that the facts of a schema are public."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.options import check_output
from understudy.schema import Schema

MOST_SHOWN = 60
MARK = re.compile(r"""(["']?)source\1:\s*(["']?)data\2""")
MARKS = re.compile(r"""(["']?)source\1:\s*\{[^{}]*\}""")


def confirm(
    schema: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The file that `understudy draft` wrote.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: all shown facts are public.")] = False,
) -> None:
    """Show all facts that were read off the rows, ask whether they are public, and mark them so."""
    check_output(schema)
    drafted = Schema.load(schema)
    facts = drafted.unconfirmed()
    if not facts:
        screen.say(f"{schema}: every fact is public already; nothing to confirm.")
        return
    screen.print_table(("column", "marked as read off the rows"), _by_column(drafted, facts))
    screen.say()
    screen.say(
        f"These {len(facts)} facts are marked as read off private rows. Anyone may see them after a release, and no "
        "noise covers them: a rare category or the largest value can point at a person."
    )
    if not yes and not _agreed():
        screen.note("not confirmed; nothing was written. Put public facts in their place, and run this again")
        raise typer.Exit(1)
    from understudy.table.written import written_whole

    text = schema.read_bytes().decode("utf-8-sig")
    with written_whole(schema) as file:
        file.write(confirmed_text(text, drafted, json=schema.suffix == ".json").encode())
    screen.say(f"Wrote {schema}: all facts are marked public. Next:")
    screen.say(f"  understudy fit TABLE -s {schema} -e 1 -o MODEL.understudy", style="bold")


def confirmed_text(text: str, schema: Schema, *, json: bool = False) -> str:
    """The file with its marks changed and all else as it was, comments too; written anew where that cannot be done."""
    from understudy.table.draft import HEADER

    header = {f"# {line}" for line in HEADER.splitlines()}
    kept = "".join(line for line in text.splitlines(keepends=True) if line.rstrip() not in header)
    changed = MARKS.sub(lambda found: re.sub(r"\bdata\b", "public", found[0]), kept)
    changed = MARK.sub(lambda found: found[0].replace("data", "public"), changed)
    again = Schema.loads(changed)
    if again.digest() == schema.digest() and not again.unconfirmed():
        return changed
    return schema.confirmed().dumps(style="json" if json else "yaml")


def shown(value: Any) -> str:
    """A fact in words.

    >>> shown(("a", "b")), shown(True)
    ('a, b', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        more = f" and {len(value) - MOST_SHOWN} more (see the file)" if len(value) > MOST_SHOWN else ""
        return ", ".join(map(str, value[:MOST_SHOWN])) + more
    return str(value)


def _by_column(schema: Schema, facts: list[tuple[str | None, str]]) -> list[tuple[str, str]]:
    told: dict[str, list[str]] = {}
    for name, fact in facts:
        stated = schema.as_dict() if name is None else schema.columns[name].facts()
        value = shown(stated.get(fact, "as usual"))
        told.setdefault(name or "(the table)", []).append(value if fact == "kind" else f"{fact}: {value}")
    return [(name, "; ".join(parts)) for name, parts in told.items()]


def _agreed() -> bool:
    screen.note("Is each of them public knowledge, whoever is in the table? [y/N] ", style="bold")
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False
