"""`understudy fit`: from a private table to a model that may leave the house."""

import json as json_text
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.listener import listening
from understudy.cli.options import (
    BoostSettings,
    DeltaOption,
    EpsilonOption,
    ForceOption,
    JsonOption,
    MethodOption,
    SchemaOption,
    TableArgument,
    check_model_output,
    check_output,
)
from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.schema.shown import rule_words

if TYPE_CHECKING:
    from understudy.privacy import Budget


def fit(
    table: TableArgument,
    schema: SchemaOption,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file, *.understudy.")],
    method: MethodOption = "auto",
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeatable noise: for tests and research, never for release.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="An option of the method; may be repeated."),
    ] = None,
    budget_file: Annotated[
        Path | None,
        typer.Option("--budget-file", metavar="FILE", help="Adds up all fits on one table and refuses one too many."),
    ] = None,
    total_epsilon: Annotated[
        float | None, typer.Option("--total-epsilon", metavar="EPS", help="Creates the budget file with this total.")
    ] = None,
    total_delta: Annotated[
        float | None, typer.Option("--total-delta", metavar="DELTA", help="Its delta; left out: from declared rows.")
    ] = None,
    boost: Annotated[
        bool, typer.Option("--boost", help="Spend a part of the budget on boosting what was trained.")
    ] = False,
    boost_settings: BoostSettings = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Fit a stand-in within a privacy budget, and write it with its certificate.

    With a budget file the fit is written down before the rows are read: one that stops half-way counts as spent. Run
    `understudy check` first. When left out, a fit's delta is then a tenth of the file's.
    """
    check_model_output(output, table, schema, budget_file, force=force)
    boosting = read_boosting(boost, boost_settings)
    facts = Schema.load(schema)
    from understudy.cli.conditions import parse_settings
    from understudy.privacy import BudgetFile
    from understudy.synthesizers import api

    api.check_confirmed(facts)
    total = None
    if budget_file is not None:
        check_output(budget_file, table, schema)
        total = _total(budget_file, facts, total_epsilon, total_delta)
    elif total_epsilon is not None or total_delta is not None:
        raise OptionError("--total-epsilon and --total-delta belong to a budget file; add --budget-file FILE")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself will warn
        budget = api.make_budget(facts, epsilon, delta, total=total)
    choice = api.choose_method(method, facts, budget)
    module = api.method_module(choice.method)
    options = parse_settings(settings or (), module)
    config = api.make_config(module, options, why=choice.why)
    api.check_plan(api.boosted_method(module, boosting) if boost else module, config, facts, budget)
    if choice.why:
        screen.note(f"auto picked {choice.method}: {choice.why}")
    tell_rules(facts)
    if budget_file is not None and not budget_file.exists():
        BudgetFile.create(budget_file, total)
    with telling_what_stays_spent(budget_file), listening() as progress:
        model = api.fit(
            table,
            facts,
            method=choice.method,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            progress=progress,
            budget_file=budget_file,
            on_clipped=tell_clipped,
            boost=boosting,
            **options,
        )
        progress("writing", 0.0)
        model.save(output)
    if json:
        screen.print_json({"model": str(output), "certificate": json_text.loads(model.certificate.to_json())})
    else:
        screen.say(model.certificate.statement(), style="green" if model.certificate.rng != "seeded" else "yellow")
        screen.say(f"Wrote {output}. Next:")
        screen.say(f"  understudy verify {output} --release", style="bold")
        screen.say(f"  understudy sample {output} -o synthetic.{'npz' if facts.images else 'csv'}", style="bold")
    tell_spent(budget_file)


def read_boosting(boost: bool, settings: list[str] | None) -> bool | dict[str, Any]:
    """As `fit` takes it: whether to boost, or with which settings."""
    if not settings:
        return boost
    if not boost:
        raise OptionError("--boost-set belongs to boosting; add --boost, or leave it out")
    from understudy.cli.conditions import parse_boosting

    return parse_boosting(settings, "--boost-set")


def _total(path: Path, schema: Schema, epsilon: float | None, delta: float | None) -> "Budget":
    """The total of a file that is still to be made, or of one that is there; refused if the options say another."""
    from understudy.privacy import Budget, BudgetFile
    from understudy.synthesizers.api import make_budget

    if not path.exists():
        if epsilon is None:
            raise OptionError(f"budget file {str(path)!r} does not exist; --total-epsilon EPS creates it")
        return make_budget(schema, epsilon, delta)
    had = BudgetFile.load(path).budget
    asked = Budget(had.epsilon if epsilon is None else epsilon, had.delta if delta is None else delta)
    if asked != had:
        raise OptionError(
            f"budget file {str(path)!r} has a total of epsilon {had.epsilon:g}, delta {had.delta:g}, which a fit "
            "cannot change; leave out --total-epsilon and --total-delta"
        )
    return had


@contextmanager
def telling_what_stays_spent(path: Path | None) -> Iterator[None]:
    """A fit that breaks off after it was entered counts in full: who runs it again should know."""
    if path is None:
        yield
        return
    from understudy.privacy import BudgetFile

    book = BudgetFile.load(path)
    before = set(book.open_reservations)
    try:
        yield
    except BaseException:
        book = BudgetFile.load(path)
        if set(book.open_reservations) - before:
            screen.note(
                f"budget file {path}: this fit was entered before it broke off and counts in full; epsilon "
                f"{book.spent():.4g} of {book.budget.epsilon:g} is spent",
                style="yellow",
            )
        raise


def tell_spent(path: Path | None) -> None:
    """Where the budget file, if there is one, stands."""
    if path is None:
        return
    from understudy.privacy import BudgetFile

    book = BudgetFile.load(path)
    screen.note(
        f"budget file {path}: epsilon {book.spent():.4g} of {book.budget.epsilon:g} is spent "
        f"(delta {book.budget.delta:g})"
    )


def tell_rules(schema: Schema) -> None:
    """The rules in force, which are public, and what they save."""
    if schema.rules:
        screen.note(f"rules that all synthetic rows hold: {'; '.join(map(rule_words, schema.rules))}")
    dropped = [name for name in schema.modelled if name not in schema.learnt().modelled]
    if dropped:
        screen.note(f"worked out by rule, so that no budget is spent on them: {', '.join(dropped)}")


def tell_clipped(clipped: Mapping[str, int]) -> None:
    """For the steward's eyes."""
    if clipped:
        cells = ", ".join(f"{name} {count:,}" for name, count in clipped.items())
        screen.note(
            f"for the data steward alone: cells outside their declared bounds were clipped to them ({cells}); if these "
            "are many, widen the bounds from public knowledge",
            style="yellow",
        )
