"""`understudy plan`: what a fit would measure and how noisy that would be, from public facts alone."""

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from understudy.cli import screen
from understudy.cli.fit import tell_rules
from understudy.cli.options import DeltaOption, JsonOption, MethodOption, SchemaOption
from understudy.cli.plan_charges import choice_data, plan_charges, print_choice
from understudy.errors import OptionError
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.privacy import Budget
    from understudy.synthesizers.auto import Choice
    from understudy.synthesizers.mixture.estimate import Estimate
    from understudy.synthesizers.mixture.plan import Plan

UPPER = (
    "Errors are of the noisy tables as released. The fit averages over all of them, so synthetic rows usually come "
    "several times closer; by how much depends on the rows."
)


def plan(
    schema: SchemaOption,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", "-e", metavar="EPS", help="The budget to plan for (1 if left out).")
    ] = None,
    delta: DeltaOption = None,
    method: MethodOption = "auto",
    error: Annotated[
        float | None,
        typer.Option("--error", metavar="TVD", help="Find the epsilon at which noise costs two-way tables this much."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="An option of the method; may be repeated."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Tell what a fit would measure, with how much noise, before it reads a row. Costs no privacy."""
    if error is not None and epsilon is not None:
        raise OptionError("give --epsilon or --error, not both: --error looks for the epsilon")
    facts = Schema.load(schema)
    from understudy.cli.conditions import parse_settings
    from understudy.synthesizers import api, auto

    budget = api.make_budget(facts, 1.0 if epsilon is None else epsilon, delta)
    if error is not None and method == auto.NAME:
        choice = auto.Choice("mixture", "--error is about two-way tables, which it measures")
    else:
        choice = api.choose_method(method, facts, budget)
    module = api.method_module(choice.method)
    config = api.make_config(module, parse_settings(settings or (), module), why=choice.why)
    api.check_plan(module, config, facts, budget)
    tell_rules(facts)
    if facts.unconfirmed():
        screen.note("note: some facts of this schema were read off private rows; fit will want them confirmed")
    facts = facts.learnt()  # what rules determine is not measured
    if choice.method == "mixture":
        _plan_mixture(config, facts, budget, error, choice, json)
    elif choice.method == "independent" and error is None:
        _plan_independent(facts, budget, choice, json)
    elif error is not None:
        raise OptionError(
            f"--error is about two-way tables whose noise is known in advance, and {choice.method} has none; use "
            "-m mixture, or leave --error out"
        )
    else:
        plan_charges(module, config, facts, budget, choice, json)


def _plan_mixture(
    config: Any, schema: Schema, budget: "Budget", error: float | None, choice: "Choice", json: bool
) -> None:
    from understudy.privacy import Budget
    from understudy.synthesizers.mixture.estimate import epsilon_for_error, estimate
    from understudy.synthesizers.mixture.plan import make_plan

    def estimate_at(epsilon: float) -> "Estimate":
        return estimate(make_plan(config, schema, Budget(epsilon, budget.delta)), config, schema)

    if error is not None:
        found = epsilon_for_error(estimate_at, error)
        # Two digits, upwards, so that what is shown still does what was asked.
        unit = 10.0 ** (math.floor(math.log10(found)) - 1)
        budget = Budget(math.ceil(found / unit) * unit, budget.delta)
    made = make_plan(config, schema, budget)
    guess = estimate(made, config, schema)
    if json:
        screen.print_json(choice_data(choice) | _as_data(made, guess, budget))
    else:
        _print_head(choice, budget, made.rows)
        _print_mixture(made, guess, schema)


def _as_data(plan: "Plan", guess: "Estimate", budget: "Budget") -> dict[str, Any]:
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "rows": plan.rows,
        "label_split": plan.label,
        "pairs_measured": plan.pairs,
        "pairs_chosen": plan.chosen_pairs,
        "chosen_are_doubled": plan.doubled,
        "selection_epsilon_per_round": plan.selection_epsilon,
        "bins": plan.bins,
        "guided_at_most": plan.guided,
        "components": plan.components,
        "fits": plan.fits,
        "codes": guess.codes,
        "cells": guess.cells,
        "one_way_tvd": guess.one_way_tvd,
        "two_way_tvd": guess.two_way_tvd,
        "memory_bytes": guess.memory_bytes,
        "seconds": round(guess.seconds, 1),
        "one_way": [dataclasses.asdict(table) for table in guess.one_way],
        "two_way": [dataclasses.asdict(table) for table in guess.two_way],
        "chosen": dataclasses.asdict(guess.chosen) if guess.chosen else None,
    }


def _print_mixture(plan: "Plan", guess: "Estimate", schema: Schema) -> None:
    two_way = [*guess.two_way, *([guess.chosen] * plan.chosen_pairs if guess.chosen and not plan.doubled else [])]
    rows = [_group("one-way", list(guess.one_way), guess.one_way_tvd)]
    if two_way:
        split = f" by {plan.label}" if plan.label else ""
        rows.append(_group(f"two-way{split}", two_way, guess.two_way_tvd))
    screen.print_table(HEADINGS, rows, right=HEADINGS[1:])
    screen.say()
    screen.print_table(
        ("column", "cells", "codes", "one-way TVD", "two-way TVD"),
        [_column_row(name, plan, guess, schema) for name in schema.modelled],
        right=("cells", "codes", "one-way TVD", "two-way TVD"),
    )
    screen.say()
    total = len(plan.columns) * (len(plan.columns) - 1) // 2
    pairs = f"all {total} are measured"
    if plan.doubled:
        pairs += f", {plan.chosen_pairs} of them, chosen privately, with half the noise"
    elif plan.chosen_pairs:
        pairs = f"{len(plan.always)} with the label and {plan.chosen_pairs} chosen privately, of {total}"
    screen.print_facts(
        [
            ("values", looked_for(schema, plan.one_way_multiplier)),
            ("pairs", pairs),
            ("bins", f"up to {plan.bins} a numeric column; {guess.codes} codes in all"),
            ("inside bins", _inside_bins(plan)),
            (
                "mixture",
                f"{plan.fits} fits of {plan.components} components"
                if plan.fits > 1
                else f"{plan.components} components",
            ),
            ("needs", f"about {guess.memory_bytes / 2**30:.1f} GB of memory and {guess.seconds:.0f} seconds (roughly)"),
        ]
    )
    screen.say(UPPER)


def _inside_bins(plan: "Plan") -> str:
    """Whether columns that follow from others will be counted more finely."""
    if not plan.guided:
        return "values follow their own column"
    return (
        f"up to {_columns(plan.guided)} that others tell of are counted in some {plan.runs(plan.guided)} runs; if "
        "there are none, pairs are counted again"
    )


def looked_for(schema: Schema, noise_multiplier: float) -> str:
    """Where values that many rows share will be looked for, and round numbers counted."""
    from understudy.synthesizers.columns import column_facts, plan_columns

    plan = plan_columns(column_facts(schema), schema.rows, noise_multiplier)
    zoom, rounded = plan.zoom, len(plan.rounding.scales)
    found = "common ones are not looked for inside cells"
    if zoom.columns:
        found = f"those that {zoom.least:,.0f} rows or more share are looked for in {_columns(len(zoom.columns))}"
    return found + (f"; round numbers are counted in {_columns(rounded)}" if rounded else "")


def _columns(number: int) -> str:
    return f"{number} column" + "s" * (number > 1)


HEADINGS = ("tables", "number", "cells", "noise", "off by", "TVD")


def _group(what: str, tables: list[Any], tvd: float) -> tuple[str, ...]:
    cells = sum(table.cells for table in tables)
    spread = [_range([getattr(table, name) for table in tables]) for name in ("noise", "error")]
    return what, str(len(tables)), f"{cells:,}", *spread, f"{tvd:.3f}"


def _range(numbers: list[float]) -> str:
    """One number, or the least and the largest where they differ."""
    least, most = (f"{number:.3g}" for number in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most}"


def _column_row(name: str, plan: "Plan", guess: "Estimate", schema: Schema) -> tuple[str, ...]:
    from understudy.synthesizers.mixture.estimate import coarse_codes

    fine = next(table for table in guess.one_way if table.columns == (name,))
    pairs = [table.tvd for table in guess.two_way if name in table.columns]
    codes = f"{coarse_codes(schema.modelled[name], plan)}" if name in plan.columns else "-"
    two_way = f"{sum(pairs) / len(pairs):.3f}" if pairs else "-"
    return name, f"{fine.cells:,}", codes, f"{fine.tvd:.3f}", two_way


def _plan_independent(schema: Schema, budget: "Budget", choice: "Choice", json: bool) -> None:
    from understudy.privacy import noise_multiplier
    from understudy.synthesizers.mixture.estimate import estimate_one_way

    tables = estimate_one_way(schema, noise_multiplier(budget))
    tvd = sum(table.tvd for table in tables) / len(tables)
    if json:
        one_way = [dataclasses.asdict(table) for table in tables]
        head = {"epsilon": budget.epsilon, "delta": budget.delta, "rows": schema.rows, "one_way_tvd": tvd}
        screen.print_json(
            choice_data(choice) | head | {"cells": sum(table.cells for table in tables), "one_way": one_way}
        )
        return
    _print_head(choice, budget, schema.rows)
    screen.print_table(HEADINGS, [_group("one-way", list(tables), tvd)], right=HEADINGS[1:])
    screen.say()
    rows = [(table.columns[0], f"{table.cells:,}", f"{table.tvd:.3f}") for table in tables]
    screen.print_table(("column", "cells", "TVD"), rows, right=("cells", "TVD"))
    screen.say()
    screen.print_facts([("values", looked_for(schema, noise_multiplier(budget)))])


def _print_head(choice: "Choice", budget: "Budget", rows: int) -> None:
    print_choice(choice)
    screen.say(
        f"{choice.method} at epsilon {budget.epsilon:g}, delta {budget.delta:g}, for {rows:,} declared rows (none was "
        "read). Noise: standard deviation of a count. Off by: its mean error, in rows. TVD: mean total variation "
        "distance that noise alone causes."
    )
    screen.say()
