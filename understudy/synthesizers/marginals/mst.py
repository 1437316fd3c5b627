"""MST: a spanning tree of the strongest pairs of columns, measured, and the graphical model of that tree."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.privacy import BoundedRange, Budget, Ledger, Streams, select
from understudy.privacy.events import NonPrivate
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.marginals.coded import Coded, check_noise, cut, release_tables, scores
from understudy.synthesizers.marginals.inference import Measured, fit_potentials, independent_potentials
from understudy.synthesizers.marginals.network import Columns, Network
from understudy.synthesizers.marginals.plan import (
    LARGEST_BINS,
    LARGEST_STEPS,
    Plan,
    Round,
    check_columns,
    check_share,
    check_whole,
    make_plan,
    planned_tables,
    shares_of,
)
from understudy.synthesizers.marginals.released import Released
from understudy.synthesizers.one_way import fine_cells, release_one_way
from understudy.synthesizers.planned import Planned
from understudy.table.table import Table

NAME = "mst"
SUMMARY = "graphical model of a spanning tree of noisy two-way tables"

MOST_COLUMNS = 200
MOST_BINS, MOST_CODES = 32, 64

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the fine one-way tables.
    selection_share: share for choosing the tree.
    bins: most coarse bins of a numeric column; None follows a public rule.
    steps: steps of the fit.
    """

    one_way_share: float = 0.2
    selection_share: float = 0.1
    bins: int | None = None
    steps: int = 1000

    def __post_init__(self) -> None:
        check_share("one_way_share", self.one_way_share)
        check_share("selection_share", self.selection_share)
        check_whole("bins", self.bins, 2, LARGEST_BINS, optional=True)
        check_whole("steps", self.steps, 1, LARGEST_STEPS)


def plan_of(config: Config, schema: Schema, budget: Budget) -> Plan:
    """One round, of one pick less than there are columns; two columns leave nothing to choose."""
    columns = len(schema.modelled)
    picks = (columns - 1,) if columns > 1 else ()
    shares = shares_of(config.one_way_share, config.selection_share, picks, growth=1.0, choosing=columns > 2)
    return make_plan(shares, schema, budget, bins=config.bins, most_bins=MOST_BINS, most_codes=MOST_CODES)


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses tables that are too wide, and budgets whose noise could not be drawn."""
    check_columns(NAME, schema, MOST_COLUMNS)
    check_noise(schema, plan_of(config, schema, budget))


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plan = plan_of(config, schema, budget)
    columns = len(schema.modelled)
    pairs = f"{plan.tables} of {math.comb(columns, 2)}, " + ("chosen privately" if plan.choosing else "no choice")
    return planned_tables(schema, plan, ("pairs", f"{pairs}: a spanning tree"))


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases fine one-way tables, chooses a tree of pairs, releases their tables, and fits the tree's model to all.

    Charges: a Gaussian for all one-way tables (`release_one_way`), a bounded range for each edge (`choose_tree`), a
    Gaussian for the tables of all edges (`release_tables`). The plan comes from public facts, the coarse codes from the
    released one-way tables, the fit from released tables: none of them sees a row.
    """
    ledger = Ledger(budget)
    plan = plan_of(config, schema, budget)
    progress("counting columns", 0.0)
    one_way = release_one_way(
        table, fine_cells(schema), noise_multiplier=plan.one_way_multiplier, streams=streams, ledger=ledger
    )
    if not plan.rounds:
        coded = cut(schema, one_way, bins=plan.bins, most_codes=plan.most_codes, rare=0.0)
        return released_of(schema, coded, independent_potentials(coded.counts())), ledger
    (edges,) = plan.rounds
    coded = cut(schema, one_way, bins=plan.bins, most_codes=plan.most_codes, rare=edges.noise)
    progress("choosing pairs", 0.0, spent(ledger))
    tree = choose_tree(table, coded, edges, schema.rows, streams=streams, ledger=ledger) if plan.choosing else [(0, 1)]
    progress("counting pairs", 0.0, spent(ledger))
    tables = release_tables(table, coded, tree, noise_multiplier=edges.multiplier, streams=streams, ledger=ledger)
    progress("fitting", 0.0, spent(ledger))
    measured = measured_columns(coded) + [
        Measured(edge, counts, edges.noise) for edge, counts in zip(tree, tables, strict=True)
    ]
    start = independent_potentials(coded.counts())
    potentials = fit_potentials(coded.sizes, measured, start, total=one_way.total, steps=config.steps)
    progress("fitting", 1.0, spent(ledger))
    return released_of(schema, coded, potentials), ledger


def choose_tree(
    table: Table, coded: Coded, edges: Round, declared_rows: int, *, streams: Streams, ledger: Ledger
) -> list[Columns]:
    """A spanning tree of pairs of columns that are far from independent, grown edge by edge as Kruskal does.

    Guarantee: a pair's score is the L1 distance between its exact table and the product of the released one-way tables,
    less a public number; a row moves it by at most 1, up or down (`scores`). Each edge is drawn by an exponential
    mechanism with that sensitivity, not monotone, and charged as a bounded range. Which pairs are still open depends on
    the edges chosen before, which were released; scores stay the same through all rounds.
    """
    columns = range(len(coded.sizes))
    pairs = list(itertools.combinations(columns, 2))
    rounds = prepaid(edges, ledger, "choice of pairs of columns")
    found = scores(
        table,
        coded,
        pairs,
        independent_tables(coded, pairs),
        declared_rows=declared_rows,
        noise=edges.noise,
        streams=streams,
    )
    part = np.array(columns)  # which part of the forest each column is in
    ends = np.array(pairs)
    tree: list[Columns] = []
    for _ in range(edges.picks):
        between = np.flatnonzero(part[ends[:, 0]] != part[ends[:, 1]])
        chosen = between[
            select(
                found[between],
                sensitivity=1.0,
                epsilon=edges.selection_epsilon,
                monotone=False,
                streams=streams,
                ledger=rounds,
                purpose="choice of pairs",
            )
        ]
        tree.append(pairs[chosen])
        first, second = part[ends[chosen]]
        part[part == second] = first
    return tree


def independent_tables(coded: Coded, sets: Sequence[Columns]) -> Iterator[np.ndarray]:
    """What the released one-way tables alone expect of the table of each pair."""
    counts, total = coded.counts(), coded.one_way.total
    for first, second in sets:
        yield np.outer(counts[first], counts[second]) / total


def prepaid(one: Round, ledger: Ledger, purpose: str) -> Ledger:
    """Charges all picks of a round at once, before a score is counted."""
    event = BoundedRange(one.selection_epsilon) if one.multiplier else NonPrivate()
    return ledger.prepay(event, one.picks, purpose)


def measured_columns(coded: Coded) -> list[Measured]:
    return [
        Measured((column,), counts, noise)
        for column, (counts, noise) in enumerate(zip(coded.counts(), coded.noise(), strict=True))
    ]


def released_of(schema: Schema, coded: Coded, potentials: Mapping[Columns, np.ndarray]) -> Released:
    one_way = coded.one_way
    network = Network.from_potentials(coded.sizes, potentials)
    tables = tuple(table.astype(np.float32) for table in network.tables)
    return Released(
        schema=schema,
        network=Network(network.families, tables),
        groups=coded.groups,
        fine=one_way.counts,
        rows=round(one_way.total),
    )


def spent(ledger: Ledger) -> str:
    return f"epsilon {ledger.spent():.3g} spent" if ledger.budget.private else "no privacy"
