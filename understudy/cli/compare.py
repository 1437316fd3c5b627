"""`understudy compare`: which method to take, by looking, or under the budget, or on made-up tables."""

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.cli.options import DeltaOption, SchemaOption, check_model_output, check_output
from understudy.errors import OptionError
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.comparison import Comparison


class Which(enum.StrEnum):
    fast = "fast"
    full = "full"


class Ground(enum.StrEnum):
    table = "table"
    simulated = "simulated"


class Choice(enum.StrEnum):
    looking = "looking"
    private = "private"


def compare(
    schema: SchemaOption,
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE", help="The private table: CSV or Parquet. Not with --on simulated.", show_default=False
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", "-m", metavar="A,B,...", help="Methods, with commas between; left out: all."),
    ] = None,
    epsilons: Annotated[
        str | None,
        typer.Option("--epsilons", "-e", metavar="E,F,...", help="Epsilons, with commas between; default 0.5,1,3."),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="Repeats of every fit, for the spread.")
    ] = 3,
    holdout: Annotated[
        str | None,
        typer.Option(
            "--holdout", metavar="TABLE|SHARE", help="Real rows no fit sees, or the share to hold back (0.25)."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The page (default compare.html); the model, with --choose."
        ),
    ] = None,
    delta: DeltaOption = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Fits side by side.")] = 2,
    limit: Annotated[
        float | None, typer.Option("--limit", metavar="SECONDS", help="The longest one fit may take.")
    ] = None,
    which: Annotated[Which, typer.Option("--which", help="The set of metrics: seconds or minutes a fit.")] = Which.fast,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", "--option", metavar="METHOD.OPTION=VALUE", help="An option of a method; may be repeated."
        ),
    ] = None,
    on: Annotated[Ground, typer.Option("--on", help="The table, or tables made from the schema alone.")] = Ground.table,
    choice: Annotated[
        Choice, typer.Option("--choose", help="private: fit all under one budget, pick one, write its model.")
    ] = Choice.looking,
    budget_file: Annotated[
        Path | None,
        typer.Option("--budget-file", metavar="FILE", help="With --choose private: adds up fits on one table."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeatable noise: for tests and research, never for release.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all cells as JSON too.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write all cells as CSV too.")] = None,
) -> None:
    """Fit every method at every epsilon several times, and say which one to take.

    Finished fits are kept beside the page (*.cells.jsonl): after Ctrl-C the same command goes on. All of it is computed
    from private rows: outside the guarantee, for the data steward alone. Two ways to choose within a guarantee are
    --choose private and --on simulated.
    """
    if choice is Choice.private:
        _refuse_with_choice(holdout=holdout, limit=limit, json=json, csv=csv, on=None if on is Ground.table else on)
        _choose(table, schema, methods, epsilons, output, delta, settings, budget_file, seed)
        return
    if budget_file is not None:
        raise OptionError("--budget-file belongs to --choose private: a comparison by looking is counted nowhere")
    if (table is None) == (on is Ground.table):
        raise OptionError(
            "TABLE is missing; give the private table, or --on simulated to compare without one"
            if table is None
            else "--on simulated reads no table; leave TABLE out"
        )
    page = output or Path("compare.html")
    if page.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"output {str(page)!r}: the name must end in .html (a model is written by --choose private)")
    share = _holdout(holdout)
    state = page.with_name(f"{page.stem}.cells.jsonl")
    inputs = (table, schema, share if isinstance(share, Path) else None)
    files = [path for path in (page, state, json, csv) if path is not None]
    if len({path.resolve() for path in files}) < len(files):
        raise OptionError("the page, its state file (*.cells.jsonl), --json and --csv must be different files")
    for path in files:
        check_output(path, *inputs)
    facts = Schema.load(schema)
    from understudy.comparison import compare as run

    names = _methods(methods)
    had = state.stat().st_size if state.exists() else 0
    try:
        with listening() as progress:
            found = run(
                table,
                facts,
                methods=names,
                epsilons=_epsilons(epsilons or "0.5,1,3"),
                seeds=seeds,
                holdout=share,
                delta=delta,
                options=_settings(settings or ()),
                which=which.value,
                jobs=jobs,
                limit=limit,
                seed=seed,
                state=state,
                progress=progress,
            )
    except KeyboardInterrupt:
        if state.exists() and state.stat().st_size > had:
            screen.note(f"\nfinished fits are kept in {state}; the same command goes on from there")
        raise
    _write(found, page, json, csv)
    _tell(found, page, state)


def _refuse_with_choice(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise OptionError(
                f"--{name} does not go with --choose private, which fits on the whole table; leave it out"
            )


def _choose(
    table: Path | None,
    schema: Path,
    methods: str | None,
    epsilons: str | None,
    output: Path | None,
    delta: float | None,
    settings: Sequence[str] | None,
    budget_file: Path | None,
    seed: int | None,
) -> None:
    """Fits all, picks one, and writes it: what `fit` does, for several methods at once."""
    if table is None:
        raise OptionError("TABLE is missing; --choose private fits on the private table")
    if output is None or output.suffix != ".understudy":
        raise OptionError("--choose private writes a model; give its name with -o MODEL.understudy")
    budget = _epsilons(epsilons or "1")
    if len(budget) != 1:
        raise OptionError("--choose private has one budget; give one epsilon with -e")
    check_model_output(output, table, schema, budget_file, force=None)
    facts = Schema.load(schema)
    from understudy.cli.fit import telling_what_stays_spent
    from understudy.comparison import choose

    with telling_what_stays_spent(budget_file), listening() as progress:
        model = choose(
            table,
            facts,
            methods=_methods(methods),
            epsilon=budget[0],
            delta=delta,
            options=_settings(settings or ()),
            seed=seed,
            budget_file=budget_file,
            progress=progress,
        )
        progress("writing", 0.0)
        model.save(output)
    screen.say(f"Chosen: {model.method}.", style="bold")
    screen.say(model.certificate.statement(), style="green" if model.certificate.rng != "seeded" else "yellow")
    screen.say(f"Wrote {output}. All candidates and the choice are in its certificate. Next:")
    screen.say(f"  understudy verify {output} --release", style="bold")


def _methods(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _epsilons(text: str) -> list[float]:
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            found.append(float(part))
        except ValueError:
            raise OptionError(f"-e must be numbers with commas between, such as 0.5,1,3 or inf, got {part!r}") from None
    return found


def _holdout(text: str | None) -> Path | float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return Path(text)


def _settings(texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """METHOD.OPTION=VALUE, with the types that the method declares."""
    from understudy.cli.conditions import parse_settings
    from understudy.synthesizers import api

    by_method: dict[str, list[str]] = {}
    for text in texts:
        method, dot, setting = text.partition(".")
        if not dot or "=" in method:
            raise OptionError(f"--set {text!r} must be METHOD.OPTION=VALUE; see `understudy methods`")
        by_method.setdefault(method.strip(), []).append(setting)
    return {method: parse_settings(given, api.method_module(method)) for method, given in by_method.items()}


def _write(found: "Comparison", page: Path, json: Path | None, csv: Path | None) -> None:
    from understudy.table.written import written_whole

    mode = 0o666 if found.setting.simulated else 0o600
    texts = [(page, found.html)]
    if json is not None:
        texts.append((json, lambda: found.to_json(indent=2) + "\n"))
    if csv is not None:
        texts.append((csv, lambda: found.cells.to_csv(index=False)))
    for path, text in texts:
        with written_whole(path, mode=mode) as file:
            file.write(text().encode("utf-8", "replace"))


def _tell(found: "Comparison", page: Path, state: Path) -> None:
    from understudy.comparison.grid import shown_epsilon

    for note in found.notes:
        screen.note(note, style="yellow")
    rows = []
    for row in found.summary().to_dict("records"):
        spread = row["gap_spread"]
        gap = (
            "-" if row["gap"] != row["gap"] else f"{row['gap']:.3f}" + ("" if spread != spread else f" ± {spread:.3f}")
        )
        seconds = "-" if row["fit_seconds"] != row["fit_seconds"] else screen.number(row["fit_seconds"])
        rows.append((shown_epsilon(row["epsilon"]), row["method"], gap, seconds, f"{row['done']} of {row['of']}"))
    screen.print_table(("epsilon", "method", "falls short by", "seconds", "ended"), rows, right=("epsilon", "seconds"))
    for cell in {(cell.method, cell.message): cell for cell in found.results if not cell.ok}.values():
        screen.note(
            f"{cell.method} at epsilon {shown_epsilon(cell.epsilon)} {cell.status}: {cell.message}", style="yellow"
        )
    screen.say()
    screen.say(found.recommendation, style="bold")
    if found.setting.simulated:
        screen.say(f"Wrote {page}, made from the schema alone (fits are kept in {state}).")
    else:
        screen.say(f"Wrote {page}, for the data steward alone (fits are kept in {state}).")
        screen.say("Choosing by real rows is not covered by the guarantee: see --choose private and --on simulated.")
