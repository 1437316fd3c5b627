"""The fits of `bench.papers.pgb`: every line of a method on a table, at one total epsilon."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import understudy as us
from understudy.boosting.method import plan_picks, reject
from understudy.boosting.settings import Boosting
from understudy.boosting.shares import training_part
from understudy.privacy import Budget
from understudy.privacy import epsilon as epsilon_of
from understudy.synthesizers.api import Model, make_config, method_module, settings_of
from understudy.table.table import Table

CRITICS = ("dp-wgan", "dp-cgan", "dp-auto-gan")  # whose critics a model may keep; those of gs-wgan are not private


def fitted(table: Table, schema: us.Schema, method: str, epsilon: float, seed: int) -> dict[str, Model]:
    """Every line's model. Both games are played with one training on a part of the budget; each is a release by itself,
    and spends the whole together with that training."""
    options = {"method": method, "epsilon": epsilon, "seed": seed}
    last = us.fit(table, schema, **options, **({"checkpoints": 1} if method in CRITICS else {}))
    lines = {"last": last}
    if method in CRITICS:
        lines["DRS"] = reject(last, seed=seed)
    budget = Budget(epsilon, last.certificate.delta)
    trained = trained_part(table, schema, method, budget, seed)
    for kinds in ("critics", "auto") if method in CRITICS else ("auto",):
        weights = "average" if kinds == "critics" else Boosting.weights  # critics: the paper's own game
        boosted = boost_up_to(budget, trained, table, seed=seed, distinguishers=kinds, weights=weights)
        lines |= {f"PGB {kinds}": boosted, f"PGB+DRS {kinds}": with_rejection(boosted)}
    check_spent(lines, epsilon)
    return lines


def trained_part(table: Table, schema: us.Schema, method: str, budget: Budget, seed: int) -> Model:
    """What `fit(..., boost=True)` trains before the picks: on the part of the budget and with the settings it takes."""
    module = method_module(method)
    config, part = training_part(module, make_config(module, {}), schema.learnt(), budget, Boosting())
    given = {"epsilon": part.epsilon, "delta": part.delta, "seed": seed}
    return us.fit(table, schema, method=method, **given, **settings_of(config))


def boost_up_to(budget: Budget, model: Model, table: Table, *, seed: int, **settings: Any) -> Model:
    """The model boosted with what it has left of a budget, as `fit(..., boost=...)` does."""
    events = [entry.event for entry in model.certificate.entries]
    picks = plan_picks(Boosting(**settings), model.schema, budget, beside=events)
    left = epsilon_of([picks.event], budget.delta).value if budget.private else math.inf
    settings |= {"rounds": picks.rounds}
    return us.boost([model], table, epsilon=left, delta=budget.delta, seed=seed, **settings)


def with_rejection(boosted: Model, **changes: Any) -> Model:
    """The same picks, with rejection: what `drs=True` gives."""
    return dataclasses.replace(boosted, released=dataclasses.replace(boosted.released, drs=True, **changes))


def check_spent(lines: dict[str, Model], epsilon: float) -> None:
    """Ends the run where a line spent more than the others had."""
    for name, model in lines.items():
        if model.certificate.epsilon > epsilon * (1 + 1e-6):
            raise RuntimeError(f"{name} spent more than epsilon {epsilon:g}: {model.certificate.epsilon}")
