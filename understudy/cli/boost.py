"""`understudy boost`: models of one table into one, by private post-GAN boosting."""

import json as json_text
from pathlib import Path
from typing import Annotated

import typer

from understudy.cli import screen
from understudy.cli.fit import tell_clipped, tell_spent, telling_what_stays_spent
from understudy.cli.listener import listening
from understudy.cli.options import DeltaOption, ForceOption, JsonOption, check_model_output
from understudy.errors import OptionError


def boost(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="Model files, all of the same table.")],
    table: Annotated[Path, typer.Option("--table", "-t", metavar="TABLE", help="The private table behind them.")],
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", metavar="EPS", help="What boosting spends, on top of the models' own.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file, *.understudy.")],
    delta: DeltaOption = None,
    rounds: Annotated[int | None, typer.Option("--rounds", help="Picks of a distinguisher.")] = None,
    distinguishers: Annotated[
        str, typer.Option("--distinguishers", help="auto, or some of critics,classifiers,marginals.")
    ] = "auto",
    drs: Annotated[bool, typer.Option("--drs", help="Reject rows by the average distinguisher as well.")] = False,
    pool_rows: Annotated[int | None, typer.Option("--pool-rows", help="Synthetic rows that get weights.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="OPTION=VALUE", help="rate, weights or both_ways; may be repeated."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Repeatable noise: for tests and research, never for release.")
    ] = None,
    budget_file: Annotated[
        Path | None,
        typer.Option("--budget-file", metavar="FILE", help="Adds up all uses of one table; boosting is one more."),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Weigh the rows of one or several models by what tells them from the private table, within a privacy budget.

    The certificate counts everything: what the models have spent, and the boosting.
    """
    check_model_output(output, table, budget_file, *models, force=force)
    from understudy.boosting.method import boost as boost_models
    from understudy.cli.conditions import parse_boosting
    from understudy.synthesizers.api import load

    kinds = [kind.strip() for kind in distinguishers.split(",")]
    named = {
        "rounds": rounds,
        "pool_rows": pool_rows,
        "distinguishers": kinds[0] if len(kinds) == 1 else kinds,
        "drs": drs,
    }
    given = {name: value for name, value in named.items() if value is not None}
    for name, value in parse_boosting(settings or (), "--set").items():
        if name in named:
            raise OptionError(f"--set {name}: there is an option --{name.replace('_', '-')} for that; use it")
        given[name] = value
    with telling_what_stays_spent(budget_file), listening() as progress:
        model = boost_models(
            [load(path) for path in models],
            table,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
            progress=progress,
            budget_file=budget_file,
            on_clipped=tell_clipped,
            **given,
        )
        progress("writing", 0.0)
        model.save(output)
    if json:
        screen.print_json({"model": str(output), "certificate": json_text.loads(model.certificate.to_json())})
    else:
        screen.say(model.certificate.statement(), style="green" if model.certificate.rng != "seeded" else "yellow")
        screen.say(f"Wrote {output}.")
    tell_spent(budget_file)
