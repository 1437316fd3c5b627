"""Boosting as part of a fit (one budget, one certificate), and of models that are there already."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd

from understudy.boosting.boosted import NAME, Released
from understudy.boosting.distinguishers import critics, distinguishers, has_critics
from understudy.boosting.game import FEWEST_ROUNDS, Family, Played, play, usual_rounds
from understudy.boosting.likelihood import Account, likely_weights, shrunk
from understudy.boosting.matching import matched_weights
from understudy.boosting.pool import Pool, check_models, make_pool
from understudy.boosting.raking import bear_columns
from understudy.boosting.settings import Boosting, read_settings
from understudy.boosting.shares import training_part
from understudy.errors import OptionError, SchemaError
from understudy.privacy import BoundedRange, Budget, BudgetFile, Entry, Event, Ledger, SelfComposed, Streams
from understudy.privacy import epsilon as epsilon_of
from understudy.privacy.calibrate import calibrate
from understudy.privacy.certificate import SEEDED, Certificate
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers import model_file
from understudy.synthesizers.api import Model, check_confirmed, make_budget
from understudy.table.read import check_names, read_table
from understudy.table.sources import open_source
from understudy.table.table import Table

SUMMARY = "any method, its rows weighted by private post-GAN boosting"

__all__ = ["NAME", "SUMMARY", "BoostedMethod", "Released", "boost", "boosted_method", "reject"]


@dataclass(frozen=True, eq=False)
class BoostedMethod:
    """A method of the house with boosting behind it: looks like a method's module to `fit`."""

    module: ModuleType
    settings: Boosting
    NAME: str = NAME

    @property
    def IMAGES(self) -> bool:  # noqa: N802 - as a method's module says it
        """Whether the method makes images."""
        return getattr(self.module, "IMAGES", False)

    def check(self, config: Any, schema: Schema, budget: Budget) -> None:
        """Refuses what cannot work, from public facts alone."""
        if "critics" in self.settings.kinds and not hasattr(config, "critic_hidden"):
            raise OptionError(f"distinguishers: {self.module.NAME} has no critics; choose a GAN, or ask for marginals")
        if hasattr(self.module, "check"):
            config, part = training_part(self.module, config, schema, budget, self.settings)
            self.module.check(config, schema, part)

    def train(
        self, config: Any, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
    ) -> tuple[Released, Ledger]:
        """Trains on a part of the budget, then boosts with what is left of it.

        Charges: the method's own events; `SelfComposed(BoundedRange(epsilon), rounds)` for the picks, with the epsilon
        that brings all of them together to the budget. All entries are on one ledger.
        """
        config, part = training_part(self.module, config, schema, budget, self.settings)
        released, trained = self.module.train(config, schema, table, part, streams=streams, progress=progress)
        ledger = Ledger(budget)
        for entry in trained.entries:
            ledger.charge(entry.event, entry.purpose)
        progress("drawing a pool", 0.0)
        board = prepare([released], [self.module.NAME], schema, self.settings, streams.init, private=budget.private)
        plan = plan_picks(self.settings, schema, budget, beside=ledger.events)
        return boost_table(board, table, plan, streams=streams, ledger=ledger, progress=progress), ledger


def boosted_method(module: ModuleType, given: bool | Mapping[str, Any]) -> BoostedMethod:
    """For `fit(..., boost=...)`."""
    return BoostedMethod(module, read_settings(given))


def pick_epsilon(budget: Budget, rounds: int, *, beside: Sequence[Event] = ()) -> float:
    """The epsilon of one pick that makes all of them, beside other events, spend the budget; inf for an infinite one.

    The events are those of a plan, which public facts decide.
    """
    if not budget.private:
        return math.inf
    return 1 / calibrate(lambda noise: [*beside, SelfComposed(BoundedRange(1 / noise), rounds)], budget)


@dataclass(frozen=True)
class Picks:
    """The plan of a game: how many picks, and the epsilon of each. Public."""

    rounds: int
    epsilon: float

    @property
    def event(self) -> Event:
        return SelfComposed(BoundedRange(self.epsilon), self.rounds)


def plan_picks(settings: Boosting, schema: Schema, budget: Budget, *, beside: Sequence[Event] = ()) -> Picks:
    """As many rounds as asked for, or as the rule says, and the epsilon of a pick that spends what is left."""
    rounds = settings.rounds
    if rounds is None:
        strength = pick_epsilon(budget, FEWEST_ROUNDS, beside=beside) * math.sqrt(FEWEST_ROUNDS)
        rounds = usual_rounds(schema.rows, settings.pool_rows, strength)
    return Picks(rounds, pick_epsilon(budget, rounds, beside=beside))


@dataclass(frozen=True, eq=False)
class Board:
    """All that a game needs besides the rows: made of released values, before anything is spent."""

    pool: Pool
    family: Family
    settings: Boosting
    methods: list[str]


def prepare(
    models: Sequence[Any], methods: list[str], schema: Schema, settings: Boosting, seed: int, *, private: bool
) -> Board:
    """Draws the pool and makes the distinguishers; refuses what cannot be played."""
    pool = make_pool(models, schema, settings.pool_rows, np.random.default_rng(seed))
    return Board(pool, distinguishers(pool, settings.distinguishers, triples=not private), settings, methods)


def boost_table(
    board: Board, table: Table, picks: Picks, *, streams: Streams, ledger: Ledger, progress: Progress
) -> Released:
    """Plays the game, which alone meets the table and charges for it, and keeps what comes out."""
    pool, family, settings = board.pool, board.family, board.settings
    played = play(
        family,
        table,
        pool_size=pool.size,
        rows=pool.rows,
        rounds=picks.rounds,
        epsilon=picks.epsilon,
        rate=settings.rate,
        both_ways=settings.both_ways,
        streams=streams,
        ledger=ledger,
        progress=progress,
    )
    weights, average, caution = weigh(played, family, pool, picks, settings)
    if math.isinf(picks.epsilon) and settings.weights == "likely":
        weights = matched_weights(family, table, both_ways=settings.both_ways, ledger=ledger)
    told = settings.told(picks.rounds) | {
        "methods": board.methods,
        "distinguishers_played": family.count * (1 + settings.both_ways),
        "alpha": played.alpha,
        "caution": caution,
        "columns_kept": bear_columns(pool.schema, ledger.budget),
    }
    return Released(pool.schema, pool.codes, weights, average, played.picks, pool.rows, settings.drs, told)


def weigh(
    played: Played, family: Family, pool: Pool, picks: Picks, settings: Boosting
) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Weights of the pool, the distinguisher to reject by, and the caution that both were made with, None for averages.

    Picks and released values alone go in. Without privacy a pick has no likelihood, and averages are taken (but see
    `matching`); also where there are too many rounds to keep.
    """
    if settings.weights == "average" or math.isinf(picks.epsilon) or played.expected is None:
        return played.weights, played.average, None
    strength = picks.epsilon * pool.rows
    account = Account(family, played.picks, played.expected, strength, settings.both_ways)
    weights, caution = likely_weights(account, pull=strength / played.rate)
    return weights, shrunk(played.average, caution), caution


def reject(model: Model, *, pool_rows: int = Boosting.pool_rows, seed: int | None = None) -> Model:
    """Discriminator rejection sampling by the model's own critics: no row is looked at, nothing is spent.

    The model must be a GAN's with checkpoints kept; rows are rejected by the mean of their critics (one checkpoint: the
    newest, as in the paper). A seed makes the pool repeatable, and costs no privacy.
    """
    check_models([model])
    if not has_critics(model.released):
        raise OptionError("reject needs a model that kept its critics: fit a GAN with checkpoints=1 or more")
    settings = read_settings({"pool_rows": pool_rows, "drs": True})
    rng = np.random.default_rng(seed)
    schema = model.schema.learnt()
    pool = make_pool([model.released], schema, settings.pool_rows, rng, earlier=False)
    average = critics(pool).matrix.mean(axis=0, dtype=np.float64)
    weights = np.full(pool.size, 1 / pool.size)
    spent = Budget(model.certificate.epsilon, model.certificate.delta)
    told = {"methods": [model.method], "pool_rows": pool_rows, "columns_kept": bear_columns(schema, spent)}
    picks = np.zeros(0, dtype=np.int32)
    released = Released(schema, pool.codes, weights, average, picks, pool.rows, True, told)
    ledger = Ledger(spent)
    for entry in model.certificate.entries:
        ledger.charge(entry.event, entry.purpose)
    certificate = _certificate(released, ledger, model.schema, model.certificate.rng == SEEDED)
    return Model(model.schema, NAME, {}, certificate, released)


def boost(
    models: Sequence[Model],
    source: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    seed: int | None = None,
    progress: Progress = silent,
    budget_file: BudgetFile | str | PathLike[str] | None = None,
    on_clipped: Callable[[Mapping[str, int]], None] | None = None,
    **settings: Any,
) -> Model:
    """Boosts models of one table, of one method or several, into one: weights on a pool of their rows.

    models: with one schema, fitted to the same table. source: that table. epsilon, delta: what the boosting spends on
    top of what the models have spent. settings: see `Boosting`, without those that belong to training. budget_file: as
    in `fit`; the boosting alone is entered, since the models' fits have entries of their own. The rest is as in `fit`.

    Guarantee: the certificate's, for everything in the returned model: all events of all the models and the picks, on
    one ledger. A model that was made with a seed, or without privacy, makes the result so too.
    """
    check_models(models)
    schema = models[0].schema
    check_confirmed(schema)
    chosen = read_settings(settings)
    for name in ("share", "checkpoints"):
        if name in settings:
            raise OptionError(f"{name} belongs to a fit that boosts; here the picks have all of epsilon: leave it out")
    book = BudgetFile.load(budget_file) if isinstance(budget_file, str | PathLike) else budget_file
    budget = make_budget(schema, epsilon, delta, total=None if book is None else book.budget)
    if isinstance(source, Table) and source.schema.digest() != schema.digest():
        raise SchemaError("the table was read with another schema than the models'; read it again with theirs")
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    picks = plan_picks(chosen, schema, budget)
    ledger = _ledger_of(models, budget, picks)
    progress("drawing a pool", 0.0)
    released, methods = [model.released for model in models], [model.method for model in models]
    board = prepare(released, methods, schema.learnt(), chosen, streams.init, private=budget.private)
    if book is not None:
        if isinstance(source, str | PathLike | pd.DataFrame):
            check_names(open_source(source, schema), schema)
        if not budget.private:
            raise OptionError("a budget file cannot count a boosting with epsilon=inf; give a finite epsilon")
        reservation = book.reserve([picks.event], f"boosting of {_names(models)}")
    progress("reading", 0.0)
    table = source if isinstance(source, Table) else read_table(source, schema)
    if on_clipped is not None:
        on_clipped(table.notes)
    before = len(ledger.entries)
    boosted = boost_table(board, table.learnt(), picks, streams=streams, ledger=ledger, progress=progress)
    seeded = streams.seeded or any(model.certificate.rng == SEEDED for model in models)
    certificate = _certificate(boosted, ledger, schema, seeded)
    if book is not None:
        book.commit(reservation, certificate, spent=[entry.event for entry in ledger.entries[before:]])
    return Model(schema, NAME, {}, certificate, boosted)


def _names(models: Sequence[Model]) -> str:
    return ", ".join(model.method for model in models)


def _ledger_of(models: Sequence[Model], budget: Budget, picks: Picks) -> Ledger:
    """All uses of the rows behind the models, in a ledger with room for the picks and nothing else."""
    entries = [
        Entry(entry.event, f"{entry.purpose} (model {number}, {model.method})")
        for number, model in enumerate(models, start=1)
        for entry in model.certificate.entries
    ]
    events = [entry.event for entry in entries]
    if budget.private:
        total = epsilon_of([*events, picks.event], budget.delta).value
    else:
        total = math.inf
    ledger = Ledger(Budget(total, budget.delta))
    for entry in entries:
        ledger.charge(entry.event, entry.purpose)
    return ledger


def _certificate(released: Released, ledger: Ledger, schema: Schema, seeded: bool) -> Certificate:
    return Certificate.issue(
        method=NAME,
        ledger=ledger,
        arrays=model_file.certified_arrays(released.arrays(), released.facts(), {}),
        schema_digest=schema.digest(),
        seeded=seeded,
    )
