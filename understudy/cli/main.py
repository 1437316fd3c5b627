"""The command line: one file a command; heavy libraries are loaded by the command that needs them."""

from typing import Annotated

import typer

from understudy import __version__
from understudy.cli.audit import audit
from understudy.cli.boost import boost
from understudy.cli.check import check
from understudy.cli.compare import compare
from understudy.cli.confirm import confirm
from understudy.cli.conform import conform
from understudy.cli.demo import demo
from understudy.cli.draft import draft
from understudy.cli.evaluate import evaluate
from understudy.cli.fit import fit
from understudy.cli.guard import debug, guarded
from understudy.cli.inspect import inspect
from understudy.cli.methods import methods
from understudy.cli.plan import plan
from understudy.cli.report import report
from understudy.cli.sample import sample
from understudy.cli.verify import verify

app = typer.Typer(
    name="understudy",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    # Tracebacks with local variables would show private rows.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    draft: "guess a schema from a table",
    confirm: "vouch that a schema's facts are public",
    check: "count cells that do not fit the schema",
    plan: "tell the noise of a fit in advance",
    fit: "fit a stand-in within a privacy budget",
    boost: "weigh the rows of models by what tells them from the table",
    sample: "draw synthetic rows",
    verify: "recompute a model's guarantee, without data",
    inspect: "show what a model file holds",
    methods: "list the methods and their options",
    evaluate: "compare synthetic rows with real ones",
    report: "one page about synthetic rows, to read or print",
    compare: "which method to take, and at which epsilon",
    conform: "check a method against its contract, for whoever writes one",
    audit: "try to break a guarantee",
    demo: "everything once, on a made-up table",
}
for command, summary in COMMANDS.items():
    app.command(short_help=summary)(guarded(command))


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"understudy {__version__}")
        raise typer.Exit


@app.callback()
def _settings(
    show_traceback: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. They may hold private values: keep them to yourself.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Differentially private stand-ins for sensitive tables, with guarantees that anyone can check.

    Exit codes: 0 done, 1 the answer is no, 2 wrong use or bad input, 130 stopped by Ctrl-C.
    """
    debug.set(show_traceback)


def main() -> None:
    """Where the `understudy` command starts."""
    app()
