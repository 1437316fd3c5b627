"""A method chosen under the budget: every candidate and the choice itself are in the model's certificate."""

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.comparison.runs import check_methods
from understudy.comparison.simulated import simulated_codes
from understudy.errors import BudgetError, OptionError, SchemaError
from understudy.evaluation.choices import column_sets
from understudy.privacy import (
    BoundedRange,
    Budget,
    BudgetFile,
    Event,
    Ledger,
    Streams,
    gaussian_epsilon,
    noise_multiplier,
    select,
)
from understudy.privacy.accountant import epsilon as composed_epsilon
from understudy.privacy.certificate import Certificate
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers import api, auto, model_file
from understudy.table.cells import cells_of
from understudy.table.read import check_names, read_table
from understudy.table.sources import open_source
from understudy.table.table import Table

# Of the budget's precision (1/z^2, which is what adds up): the choice is between few candidates and needs little.
CHOICE_SHARE = 0.1
# Left over, so that a candidate whose releases compose a little worse than Gaussians still fits beside the others.
SPARE_SHARE = 0.02
REHEARSAL_ROWS = 200
SCORE_ROWS = 20_000
SCORE_CELLS = 16
MOST_PAIRS = 300
ROWS_PER_BLOCK = 1 << 16
# Scores are summed on this grid, where floats add without rounding: a row moves them by the bound and not a bit more.
STEPS_PER_COUNT = 2.0**10


def choose(
    source: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    methods: Sequence[str] | None = None,
    epsilon: float = 1.0,
    delta: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int | None = None,
    budget_file: BudgetFile | str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> api.Model:
    """Fits every candidate on the whole table and picks one privately, all within one budget.

    Each of the k methods gets an equal share of the budget, the choice a tenth (`shares` has the rule). Before a row is
    read, all candidates are rehearsed on a few made-up rows: one that cannot be fitted is found there, and whether
    their releases fit beside each other.

    Guarantee: the certificate's (epsilon, delta), which is at most the budget, for the returned model *and* for which
    method it is. The candidates' events and the choice's are composed in one ledger. The choice is an exponential
    mechanism over scores that one row moves by at most `sensitivity` each (`score_tables` proves it), in either
    direction, so it is charged as bounded range with the factor 2 of scores that are not monotone. Models that were not
    chosen are thrown away; they are charged all the same.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    names, given = check_methods(methods, options)
    if auto.NAME in names:
        raise OptionError("auto is no candidate: it is a public rule that picks one of the others; leave it out")
    api.check_confirmed(schema)
    book = BudgetFile.load(budget_file) if isinstance(budget_file, str | os.PathLike) else budget_file
    budget = api.make_budget(schema, epsilon, delta, total=None if book is None else book.budget)
    if isinstance(source, Table) and source.schema.digest() != schema.digest():
        raise SchemaError("the table was read with another schema than the one given; read it again with this one")
    configs = {name: api.make_config(api.method_module(name), given.get(name, {})) for name in names}
    part, planned = shares(configs, schema, budget, progress)
    for name in names:
        api.check_plan(api.method_module(name), configs[name], schema, part)
    streams = Streams.from_entropy() if seed is None else Streams.from_seed(seed)
    if book is not None:
        if isinstance(source, str | os.PathLike):
            check_names(open_source(source, schema.columns), schema)  # a mistyped path should cost nothing
        reservation = book.reserve(budget, f"choice among the methods {', '.join(names)}")
    progress("reading", 0.0)
    table = source if isinstance(source, Table) else read_table(source, schema)
    ledger = Ledger(budget)
    candidates = {}
    for name in names:
        module = api.method_module(name)
        released, own = module.train(
            configs[name], schema, table, part, streams=streams, progress=_naming(progress, name)
        )
        candidates[name] = released
        # Nothing has left this function yet: a sum that passes the budget is refused here, and all is thrown away.
        for entry in own.entries:
            ledger.charge(entry.event, f"candidate {name}: {entry.purpose}")
    progress("choosing", 0.0)
    scores, sensitivity = score_tables(table, schema, candidates, streams)
    picked = select(
        scores,
        sensitivity=sensitivity,
        epsilon=choice_epsilon(ledger, planned),
        monotone=False,
        streams=streams,
        ledger=ledger,
        purpose=f"choice among the methods {', '.join(names)}",
    )
    name = names[picked]
    config = dataclasses.asdict(configs[name])
    certificate = Certificate.issue(
        method=name,
        ledger=ledger,
        arrays=model_file.certified_arrays(candidates[name].arrays(), candidates[name].facts(), config),
        schema_digest=schema.digest(),
        seeded=streams.seeded,
    )
    if book is not None:
        book.commit(reservation, certificate)
    return api.Model(schema, name, config, certificate, candidates[name])


def shares(configs: Mapping[str, Any], schema: Schema, budget: Budget, progress: Progress) -> tuple[Budget, float]:
    """Each candidate's own budget and the choice's epsilon, from public facts alone.

    The rule: noise precision 1/z^2 adds up over Gaussian releases, and nearly so over whatever else is concentrated.
    A tenth of it is the choice's, 2 % stay spare, the rest is shared equally, at the budget's own delta. Releases that
    are not concentrated (pure epsilon-DP ones) would not fit so: then every candidate gets 0.9/k of epsilon and of
    delta, and the choice 0.1 of epsilon, which holds for any by basic composition. Which of the two it is shows in a
    rehearsal on made-up rows, where candidates charge what they would charge.
    """
    count = len(configs)
    if not budget.private:
        _rehearse(configs, schema, budget, progress)
        return budget, math.inf
    multiplier = noise_multiplier(budget)
    each = multiplier / math.sqrt((1 - CHOICE_SHARE - SPARE_SHARE) / count)
    part = Budget(gaussian_epsilon(each, budget.delta), budget.delta)
    # Bounded range epsilon is epsilon^2/8-zCDP, as is a Gaussian of precision epsilon^2/4 (Cesar & Rogers 2021).
    planned = 2 * math.sqrt(CHOICE_SHARE) / multiplier
    events = _rehearse(configs, schema, part, progress)
    if _fits([*events, BoundedRange(planned)], budget):
        return part, planned
    basic = Budget((1 - CHOICE_SHARE) * budget.epsilon / count, (1 - CHOICE_SHARE) * budget.delta / count)
    return basic, CHOICE_SHARE * budget.epsilon


def _rehearse(configs: Mapping[str, Any], schema: Schema, budget: Budget, progress: Progress) -> list[Event]:
    """What all candidates charge under this budget, from a fit to a few made-up rows."""
    table = Table.from_codes(schema, simulated_codes(schema, REHEARSAL_ROWS))
    events: list[Event] = []
    for number, (name, config) in enumerate(configs.items()):
        progress(f"rehearsing {name} on made-up rows", number / len(configs))
        streams = Streams.from_seed(number)
        _, ledger = api.method_module(name).train(config, schema, table, budget, streams=streams, progress=silent)
        events += ledger.events
    return events


def _fits(events: Sequence[Event], budget: Budget) -> bool:
    return composed_epsilon(events, budget.delta).value <= budget.epsilon


def choice_epsilon(ledger: Ledger, planned: float) -> float:
    """The planned epsilon of the choice, or as much of it as the candidates left; less than half is refused."""
    if not ledger.budget.private or _fits([*ledger.events, BoundedRange(planned)], ledger.budget):
        return planned
    low, high = 0.0, planned
    for _ in range(12):
        middle = (low + high) / 2
        if _fits([*ledger.events, BoundedRange(middle)], ledger.budget):
            low = middle
        else:
            high = middle
    if low < planned / 2:
        raise BudgetError(
            f"the candidates left too little of epsilon {ledger.budget.epsilon:g} to choose between them; raise it, "
            "or take fewer methods (nothing was released)"
        )
    return low


def score_tables(
    table: Table, schema: Schema, candidates: Mapping[str, Any], streams: Streams
) -> tuple[np.ndarray, float]:
    """Minus the sum over P pairs of columns of the L1 distance between the table's counts and a candidate's, and P.

    A pair's table has coarse public cells (`coarse_cells`); a candidate's counts are its shares among a fixed number of
    rows drawn from it, times the median of the candidates' released numbers of rows (the declared number may be far
    off, and would then drown all differences). More than 300 pairs are thinned out by a public draw.

    Sensitivity: the candidates' counts, the cells and the pairs are fixed by what was released before, or public. A row
    that is added or removed moves one count of each pair's table by 1, so by the triangle inequality each distance by
    at most 1 and their sum by at most P. It may move it up for one candidate and down for another: not monotone.
    Counts are whole and candidates' counts lie on a grid of 2^-10, so sums below 2^43 are exact and rounding adds
    nothing.
    """
    groups = {name: coarse_cells(column) for name, column in schema.modelled.items()}
    pairs = scored_pairs(schema)
    total = max(1.0, float(np.median([released.rows for released in candidates.values()])))
    real = count_pairs({name: table.codes(name) for name in schema.modelled}, groups, pairs)
    scores = np.empty(len(candidates))
    for at, released in enumerate(candidates.values()):
        drawn = released.sample(SCORE_ROWS, streams.sampling, None)
        made = count_pairs(drawn, groups, pairs)
        scores[at] = -sum(
            float(np.abs(counts - _on_grid(total * (others / SCORE_ROWS))).sum())
            for counts, others in zip(real, made, strict=True)
        )
    return scores, float(len(pairs))


def scored_pairs(schema: Schema) -> list[tuple[str, ...]]:
    """All pairs of columns, or 300 by a public draw; the single column of a table that has no other."""
    names = list(schema.modelled)
    return column_sets(names, min(2, len(names)), MOST_PAIRS, seed=0)[0]


def coarse_cells(column: Any) -> tuple[Any, np.ndarray, int]:
    """A column's public cells and the coarse group of each, neighbours together; missing is a group of its own."""
    cells = cells_of(column)
    groups = np.arange(cells.values) * min(SCORE_CELLS, cells.values) // cells.values
    if cells.missing:
        groups = np.append(groups, groups.max() + 1)
    return cells, groups, int(groups.max()) + 1


def count_pairs(
    codes: Mapping[str, np.ndarray], groups: Mapping[str, tuple[Any, np.ndarray, int]], pairs: Sequence[tuple[str, ...]]
) -> list[np.ndarray]:
    """Exact counts of every pair's coarse cells, block by block."""
    sizes = [math.prod(groups[name][2] for name in pair) for pair in pairs]
    counts = [np.zeros(size, dtype=np.int64) for size in sizes]
    rows = len(next(iter(codes.values())))
    for first in range(0, rows, ROWS_PER_BLOCK):
        coarse = {
            name: which[cells.index(codes[name][first : first + ROWS_PER_BLOCK])]
            for name, (cells, which, _) in groups.items()
        }
        for pair, count in zip(pairs, counts, strict=True):
            place = coarse[pair[0]]
            for name in pair[1:]:
                place = place * groups[name][2] + coarse[name]
            count += np.bincount(place, minlength=len(count))
    return counts


def _on_grid(numbers: np.ndarray) -> np.ndarray:
    return np.rint(numbers * STEPS_PER_COUNT) / STEPS_PER_COUNT


def _naming(progress: Progress, name: str) -> Progress:
    return lambda stage, done, note="": progress(f"{name}: {stage}", done, note)
