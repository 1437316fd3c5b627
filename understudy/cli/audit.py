"""`understudy audit`: tries to break a guarantee, of a method by playing games, or of one model by looking."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.fit import read_boosting
from understudy.cli.listener import listening
from understudy.cli.options import BoostSettings, DeltaOption, JsonOption, check_output
from understudy.errors import OptionError
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.auditing.bounds import LowerBound
    from understudy.auditing.of_model import ModelAudit
    from understudy.auditing.result import Audit


def audit(
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="One model to check, with --table.", show_default=False)
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", "-m", metavar="METHOD", help="The method to play against.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option("--schema", "-s", metavar="SCHEMA", help="Columns to play on; left out: three small ones."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", metavar="EPS", help="The claim to try (default 1).")
    ] = None,
    delta: DeltaOption = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="M", help="How long to play (default 2), beside compiling.")
    ] = None,
    canaries: Annotated[
        list[str] | None,
        typer.Option("--canary", metavar="NAME", help="duplicate, corner, outlier, rare, missing; may be repeated."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option("--confidence", metavar="C", help="That all bounds hold together (default 0.95)."),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=0, metavar="N", help="Processes (default 2).")] = None,
    one_run: Annotated[
        int | None,
        typer.Option("--one-run", min=0, metavar="FITS", help="Fits with 500 canaries at once too: for slow methods."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", "--option", metavar="OPTION=VALUE", help="An option of the method; may be repeated."),
    ] = None,
    boost: Annotated[bool, typer.Option("--boost", help="Play against a fit that boosts.")] = False,
    boost_settings: BoostSettings = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write what was found as JSON.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="TABLE", help="With MODEL: the table that it was fitted to.")
    ] = None,
    holdout: Annotated[
        Path | None, typer.Option("--holdout", metavar="TABLE", help="With MODEL: rows that it never met.")
    ] = None,
    budget_file: Annotated[
        Path | None,
        typer.Option("--budget-file", metavar="FILE", help="With MODEL: where its fit should be entered."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Try to break a guarantee: how much must epsilon be at least, by what an attacker can tell?

    With --method, neighbouring made-up tables are fitted many times; exit code 1 if the claim is refuted. Finished runs
    are kept beside the output (*.runs.jsonl): after Ctrl-C the same command goes on. With MODEL and --table, the
    certificate and the table are checked; that reads private rows, and what is said is for the data steward alone.
    """
    if model is not None:
        games = {"--method": method, "--schema": schema, "--epsilon": epsilon, "--delta": delta, "--minutes": minutes}
        games |= {
            "--canary": canaries,
            "--confidence": confidence,
            "--workers": workers,
            "--one-run": one_run,
            "--set": settings,
            "--boost": boost or None,
            "--boost-set": boost_settings,
            "--output": output,
        }
        for name, value in games.items():
            if value is not None:
                raise OptionError(f"{name} belongs to the audit of a method; leave it out, or leave out MODEL")
        if table is None:
            raise OptionError("--table is missing: give the table that the model was fitted to")
        _audit_model(model, table, holdout, budget_file, json=json)
        return
    for name, value in {"--table": table, "--holdout": holdout, "--budget-file": budget_file}.items():
        if value is not None:
            raise OptionError(f"{name} belongs to the audit of a model; give MODEL before it")
    if method is None:
        raise OptionError("give --method to play against one, or MODEL and --table to check a model")
    given = {
        "epsilon": epsilon,
        "minutes": minutes,
        "canaries": canaries,
        "confidence": confidence,
        "workers": workers,
        "one_run": one_run,
        "boost": read_boosting(boost, boost_settings),
    }
    asked = {name: value for name, value in given.items() if value is not None}
    _audit_method(method, schema, delta, settings, output, json=json, asked=asked)


def _audit_method(
    method: str,
    schema: Path | None,
    delta: float | None,
    settings: list[str] | None,
    output: Path | None,
    *,
    json: bool,
    asked: dict[str, Any],
) -> None:
    state = None
    if output is not None:
        state = output.with_name(f"{output.stem}.runs.jsonl")
        for path in (output, state):
            check_output(path, schema)
        if output.resolve() == state.resolve():
            raise OptionError(f"output {str(output)!r}: its runs would be kept under the same name; give another")
    facts = None if schema is None else Schema.load(schema)
    from understudy.auditing.audit import audit as run
    from understudy.cli.conditions import parse_settings
    from understudy.synthesizers import auto
    from understudy.synthesizers.api import method_module

    options = {}
    if settings:
        if method == auto.NAME:
            raise OptionError("--set needs a method by name: which options there are depends on it")
        options = parse_settings(settings, method_module(method))
    had = state.stat().st_size if state is not None and state.exists() else 0
    try:
        with listening() as progress:
            found = run(
                method,
                facts,
                delta=delta,
                state=state,
                options=options,
                progress=progress,
                **asked,
            )
    except KeyboardInterrupt:
        if state is not None and state.exists() and state.stat().st_size > had:
            screen.note(f"\nfinished runs are kept in {state}; the same command goes on from there")
        raise
    if output is not None:
        from understudy.table.written import written_whole

        with written_whole(output) as file:
            file.write(found.to_json().encode())
    _tell(found, output, json=json)
    if not found.holds:
        raise typer.Exit(1)


def _tell(found: "Audit", output: Path | None, *, json: bool) -> None:
    if json:
        screen.out.file.write(found.to_json())
        return
    rows = [
        (f"{game.canary} row", f"{min(game.runs):,}", shown.view, *shown_bounds(shown.bounds, game.gaussian))
        for game in found.games
        for shown in game.shown
    ]
    columns = ("canary", "runs of each", "attacker holds", "counted", "by Gaussian DP")
    screen.say(f"Claimed: epsilon {found.epsilon:g} at delta {found.delta:g}. Shown, epsilon is at least:")
    screen.print_table(columns, rows, right=("runs of each", "counted", "by Gaussian DP"))
    screen.say()
    if found.steps:
        rows = [
            (step.words, f"{step.delta:g}", f"{step.epsilon:.3f}", f"{step.bound.epsilon:.3f}") for step in found.steps
        ]
        screen.print_table(("mechanism", "delta", "claimed", "at least"), rows, right=("delta", "claimed", "at least"))
        screen.say()
    if found.one_run is not None:
        screen.say(f"{found.one_run.runs[1]:,} canaries at once: at least {found.one_run.epsilon:.3f}.")
    screen.say(found.statement(), style="green" if found.holds else "bold red")
    if output is not None:
        screen.say(f"Wrote {output}; `understudy report --audit` shows it.")


def shown_bounds(bounds: "tuple[LowerBound, ...]", gaussian: bool) -> list[str]:
    """By both rules; what is no bound for this method stands in brackets."""
    if not bounds:
        return ["too few runs", "too few runs"]
    return [
        f"{bound.epsilon:.3f}" if gaussian or bound.mu is None else f"({bound.epsilon:.3f}, an indication)"
        for bound in bounds
    ]


def _audit_model(path: Path, table: Path, holdout: Path | None, budget_file: Path | None, *, json: bool) -> None:
    from understudy.auditing.of_model import audit_model, load_certified

    model = load_certified(path)
    with listening() as progress:
        progress("looking at the model and its table", 0.0)
        found = audit_model(model, table, holdout=holdout, budget_file=budget_file)
    if json:
        from dataclasses import asdict

        screen.print_json(asdict(found) | {"holds": found.holds})
    else:
        _tell_model(found)
    if not found.holds:
        raise typer.Exit(1)


def _tell_model(found: "ModelAudit") -> None:
    rows = [("ok" if f.ok else "NO", f.what, f.detail) for f in found.findings]
    rows.append(({True: "ok", False: "NO", None: "?"}[found.recognised], "table", found.table))
    member = found.membership
    if member is None:
        rows.append(("?", "membership", found.no_membership))
    else:
        rows.append(
            (
                "ok" if member.low <= 0.5 else "!",
                "membership",
                f"a row of the table looks likelier to the model than a new row in {member.chance:.1%} of "
                f"{member.pairs:,} pairs ({member.low:.1%} to {member.high:.1%}; 50% is guessing)",
            )
        )
    screen.print_table(("", "checked", "found"), rows)
    screen.say()
    screen.say("Computed from real rows: for the data steward alone, outside the guarantee.")
    if not found.holds:
        failed = ", ".join(finding.what for finding in found.findings if not finding.ok)
        screen.say(f"Something does NOT hold: {failed}. Do not rely on the guarantee.", style="bold red")
