"""Distinguishing games on the whole path: schema, fit, sample, for any method, through the door that everyone uses.

A fit is made over and over on two neighbouring tables, each time with fresh noise. Whoever sees what was released
guesses which of the two it was; `scores` turns the guesses into lower bounds on epsilon.
"""

import dataclasses
import math
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from understudy.auditing import scores
from understudy.auditing.canaries import Pair, pair_from_schema, pair_from_table
from understudy.auditing.scores import Run, Shown
from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, Event, default_delta, noise_multiplier
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers.api import (
    Model,
    boosted_method,
    check_confirmed,
    check_plan,
    choose_method,
    fit,
    make_config,
    method_module,
)
from understudy.table.cells import cells_of
from understudy.table.table import Table

# A small table of columns with few values: nothing about it hides a row, and a fit takes milliseconds.
SMALL = Schema.loads("""
rows: 1000
label: c
columns:
  a: {kind: categorical, values: [p, q, r, s]}
  b: {kind: categorical, values: [p, q, r, s]}
  c: {kind: boolean}
""")
# Settings that make a fit short, for whichever of these a method has. `batch` is all rows where a rule would decide it:
# nothing is sampled away, so that the row takes part in every step.
_SHORT = {
    "steps": 20,
    "autoencoder_steps": 10,
    "hidden": 8,
    "autoencoder_hidden": 8,
    "generator_hidden": 8,
    "critic_hidden": 8,
    "latent": 4,
    "components": 16,
    "features": 8,
    "pretraining": 1,
    "fits": 1,
    "batch": 16,
}
# Steps of a method without batches read no rows: they are cheap, and carry the evidence from counts into the model.
_STEPS_WITHOUT_ROWS = 200
# Of boosting: few picks, each of which tells more of a row, since all of them share one budget.
_SHORT_BOOST = {"rounds": 20}
_FEWEST_ROWS, _MOST_ROWS = 100, 4_000
DRAWS_A_ROW = 4  # synthetic rows that the second attacker is given, for each row of the table
_MOST_DRAWS = 8_000


@dataclass(frozen=True)
class Setting:
    """Everything that decides what a run of a game is, besides its noise. boost: settings of boosting; empty: none."""

    method: str
    schema: Schema
    epsilon: float
    delta: float
    canary: str
    rows: int
    options: dict[str, Any]
    boost: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.method} with boosting" if self.boost else self.method

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"schema": self.schema.dumps(style="json")}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Setting":
        options = {name: tuple(x) if isinstance(x, list) else x for name, x in data["options"].items()}
        return Setting(**(dict(data) | {"schema": Schema.loads(data["schema"]), "options": options}))


@dataclass(frozen=True)
class Game:
    """A game that was played: what, how often in either world, for how long, and what each attacker showed."""

    method: str
    canary: str
    words: str
    epsilon: float
    delta: float
    gaussian: bool  # all events are Gaussian: bounds by Gaussian DP are bounds
    runs: tuple[int, int]
    seconds: float
    shown: tuple[Shown, ...]

    @property
    def lower_bound(self) -> float:
        """The largest epsilon that is shown for this method, without indications."""
        proven = [b.epsilon for s in self.shown for b in s.bounds if self.gaussian or b.mu is None]
        return max(proven, default=0.0)


def play(
    method: str,
    schema: Schema | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    *,
    canary: str = "duplicate",
    runs: int | None = None,
    minutes: float | None = None,
    workers: int = 0,
    confidence: float = 0.95,
    options: Mapping[str, Any] | None = None,
    table: Table | None = None,
    progress: Progress = silent,
) -> Game:
    """Plays one game until so many runs of each world are made or the time is over, and judges it.

    schema: None takes a small one. canary: a name of `canaries.CANARIES`. workers: processes beside this one; 0 plays
    in this one. options: of the method, over short ones. table: real rows to stand around the canary, in place of
    made-up ones; every run is then one more release of them, so that the outcome is for the steward alone.
    All bounds of the game hold together with the given confidence.
    """
    if runs is None and minutes is None:
        raise OptionError("give runs or minutes, or a game would not end")
    setting = make_setting(method, schema, epsilon, delta, canary=canary, options=options, table=table)
    if table is not None and workers:
        raise OptionError("workers must be 0 with a table: its rows are not sent to other processes")
    pair = pair_of(setting, table)
    begin = time.monotonic()
    made, counts = [], [0, 0]
    with closing(runs_of(setting, pair, workers=workers)) as endless:
        for run, _ in endless:
            made.append(run)
            counts[run.with_row] += 1
            share = share_done(min(counts), runs, time.monotonic() - begin, minutes)
            progress(f"playing {setting.title} on {pair.words}", min(share, 1.0), f"{len(made)} runs")
            if share >= 1:
                break
    seconds = time.monotonic() - begin
    return judged(setting, pair.words, made, seconds, events_of(setting), confidence=confidence)


def judged(
    setting: Setting, words: str, made: list[Run], seconds: float, events: Sequence[Event], *, confidence: float
) -> Game:
    """The game's outcome, for a method that charges these events; all of its bounds hold together."""
    gaussian = scores.all_gaussian(events)
    counts = sum(run.with_row for run in made), sum(not run.with_row for run in made)
    shown = scores.judge(made, setting.delta, confidence=confidence, gaussian=gaussian)
    return Game(setting.title, setting.canary, words, setting.epsilon, setting.delta, gaussian, counts, seconds, shown)


def make_setting(
    method: str,
    schema: Schema | None,
    epsilon: float,
    delta: float | None,
    *,
    canary: str,
    options: Mapping[str, Any] | None = None,
    boost: bool | Mapping[str, Any] = False,
    table: Table | None = None,
) -> Setting:
    """A game from public facts. The schema's columns stay; its number of rows becomes that of the made-up table, since
    it decides how often a row takes part. delta: by default that of the schema as given. boost: as `fit` takes it, over
    settings that make it short.
    """
    schema = SMALL if schema is None else schema
    check_confirmed(schema)
    if schema.rows is None and delta is None:
        raise SchemaError("the schema must declare `rows:`, a public round number, or give delta")
    delta = default_delta(schema.rows) if delta is None else delta
    budget = Budget(epsilon, delta)
    method = choose_method(method, schema, budget).method
    if not budget.private:
        raise OptionError("epsilon must be finite: without a claim there is nothing to refute")
    rows = table.rows if table is not None else _usual_rows(schema, budget)
    module = method_module(method)
    small = schema.model_copy(update={"rows": max(rows, 1)})
    chosen = short_options(module, rows, images=bool(schema.images)) | dict(options or {})
    config = make_config(module, chosen)
    boosting = _SHORT_BOOST | (dict(boost) if isinstance(boost, Mapping) else {}) if boost else {}
    check_plan(boosted_method(module, boosting) if boosting else module, config, small, budget)
    return Setting(method, small, epsilon, delta, canary, rows, chosen, boosting)


def short_options(module: ModuleType, rows: int, *, images: bool = False) -> dict[str, Any]:
    """Options of a method that make its fits short; with images, options for tables may be refused."""
    found: dict[str, Any] = {}
    fields = dataclasses.fields(module.Config)
    rowless = "batch" not in {field.name for field in fields}
    for field in fields:
        short = _STEPS_WITHOUT_ROWS if field.name == "steps" and rowless else _SHORT.get(field.name)
        if short is None or (images and field.name != "steps"):
            continue
        if field.default is None:
            if field.name != "latent":
                found[field.name] = rows if field.name == "batch" else short
        elif isinstance(field.default, tuple):
            found[field.name] = (short,)
        else:
            found[field.name] = min(field.default, short)
    return found


def _usual_rows(schema: Schema, budget: Budget) -> int:
    """Enough that cells of a small column stand far above the noise, in every run alike: shapes that are compiled
    depend on released counts.
    """
    sizes = [cells_of(column).count for column in schema.modelled.values()]
    cells = min(float(np.median(sizes)) if sizes else 1.0, 8.0)
    wanted = 30 * noise_multiplier(budget) * math.sqrt(max(len(sizes), 1)) * cells
    return int(min(max(wanted, _FEWEST_ROWS), _MOST_ROWS))


def pair_of(setting: Setting, table: Table | None = None) -> Pair:
    if table is not None:
        found = pair_from_table(setting.canary, table)
        return dataclasses.replace(found, schema=setting.schema)
    return pair_from_schema(setting.canary, setting.schema, setting.rows)


def runs_of(setting: Setting, pair: Pair, *, workers: int) -> Generator[tuple[Run, float], None, None]:
    """Runs without end, with their seconds; closing the iterator ends them."""
    if workers == 0:
        return _endless(setting, pair)
    from understudy.auditing.crew import runs_of_workers

    return runs_of_workers(setting, workers)


def _endless(setting: Setting, pair: Pair) -> Generator[tuple[Run, float], None, None]:
    one_run = runner(setting, pair)
    while True:
        for world in (True, False):
            begin = time.monotonic()
            run = one_run(world)
            yield run, time.monotonic() - begin


def runner(setting: Setting, pair: Pair) -> Callable[[bool], Run]:
    """A function that makes one fit of either world, with noise from the operating system, and reads it."""
    tables = {world: pair.table(world) for world in (True, False)}
    draws = min(DRAWS_A_ROW * max(pair.rows, 1), _MOST_DRAWS)
    rng = np.random.default_rng()

    def one_run(with_row: bool) -> Run:
        model = fitted(setting, tables[with_row])
        return Run(with_row, scores.read(model, pair, draws=draws, rng=rng))

    return one_run


def fitted(setting: Setting, table: Table) -> Model:
    """One fit of the setting, with fresh noise, through the door that everyone uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of made-up rows; nobody is served by it here
        return fit(
            table,
            setting.schema,
            method=setting.method,
            epsilon=setting.epsilon,
            delta=setting.delta,
            boost=setting.boost,
            **setting.options,
        )


def events_of(setting: Setting) -> tuple[Event, ...]:
    """What the method charges, as one fit does: of which kinds its events are follows from public facts."""
    model = fitted(setting, pair_from_schema(setting.canary, setting.schema, setting.rows).table(False))
    return tuple(entry.event for entry in model.certificate.entries)


def share_done(runs: int, wanted: int | None, seconds: float, minutes: float | None) -> float:
    """How far a game is: by runs of either world, or by time, whichever ends it first."""
    return max(runs / wanted if wanted else 0.0, seconds / (60 * minutes) if minutes else 0.0)
