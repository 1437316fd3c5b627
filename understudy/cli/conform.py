"""`understudy conform`: does a method keep to the contract, and do rows leave it through paid noise alone?"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.options import JsonOption


def conform(
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="A registered method, or a module such as my_package.my_method.")
    ],
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Play a distinguishing game as well: hundreds of fits.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="Options of the method, in place of short ones."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check a method on made-up tables: contract, charges, sensitivity, what leaves without noise. Exit code 1 if not.

    Needs no data. It looks for mistakes that published code has made; that it finds none is no proof.
    """
    from understudy.auditing import conformance
    from understudy.cli.conditions import parse_settings

    sys.path.append(str(Path.cwd()))  # a command does not see the folder that it is called from, unlike `python -m`
    module = conformance.find_method(method)
    options = parse_settings(settings, module) if settings else None
    found = conformance.conform(module, thorough=thorough, options=options)
    if json:
        screen.print_json(found.to_dict())
    else:
        screen.print_table(("check", "", "found"), [(c.name, c.outcome, c.found) for c in found.checks])
        screen.say()
        for check in found.checks:
            if check.outcome == conformance.FAILED:
                screen.say(f"{check.name}: {check.why}. Remedy: {check.remedy}.", style="red")
        if found.ok:
            untold = f" Not seen: {', '.join(found.unknown)}." if found.unknown else ""
            screen.say(f"{found.method} conforms, as far as this can tell.{untold}", style="green")
        else:
            screen.say(f"{found.method} does NOT conform: {', '.join(found.failed)}.", style="bold red")
    if not found.ok:
        raise typer.Exit(1)
