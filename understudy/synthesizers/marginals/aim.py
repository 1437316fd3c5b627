"""AIM: in rounds, the tables of two or three columns that the model gets most wrong are chosen, measured and fitted."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Budget, Gaussian, Ledger, Streams, noise_multiplier, select
from understudy.privacy.events import NonPrivate
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.marginals.coded import (
    Coded,
    check_noise,
    count_tables,
    cut,
    release_tables,
    scores,
)
from understudy.synthesizers.marginals.inference import Measured, fit_potentials, independent_potentials
from understudy.synthesizers.marginals.mst import measured_columns, prepaid, released_of, spent
from understudy.synthesizers.marginals.network import Columns, Network, model_cells
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

NAME = "aim"
SUMMARY = "graphical model of noisy two- and three-way tables, chosen in rounds where the model errs most"

MOST_COLUMNS = 100
MOST_BINS, MOST_CODES = 24, 32
MOST_CANDIDATES = 2_000  # beyond, of the triples those with the label alone, and beyond that none
MOST_TABLE_CELLS = 20_000
# Rows over the noise of a cell: tables are so many that this is left.
WORTH_MEASURING = 36
# The budget of a table grows by this from round to round: what is left to find gets smaller (the paper's annealing).
GROWTH = 1.5
# Rows drawn from the model to see what it expects of each candidate.
ROWS_TO_EXPECT = 1 << 17
# What options may ask for: more tables than there can be candidates, rounds whose first would drown in noise (shares
# grow by GROWTH), and a model of which a step of the fit holds some gigabytes.
LARGEST_TABLES, LARGEST_ROUNDS, LARGEST_MODEL = 10_000, 100, 30_000_000

__all__ = ["NAME", "SUMMARY", "Config", "Released", "check", "planned", "train"]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the fine one-way tables.
    selection_share: share for choosing tables.
    tables: how many tables are chosen and measured; None follows a public rule.
    rounds: how often the model is fitted anew; tables are spread over the rounds.
    bins: most coarse bins of a numeric column; None follows a public rule.
    model_size: most cells of all conditional tables of the model.
    steps: steps of the fit in each round.
    """

    one_way_share: float = 0.2
    selection_share: float = 0.1
    tables: int | None = None
    rounds: int = 5
    bins: int | None = None
    model_size: int = 300_000
    steps: int = 300

    def __post_init__(self) -> None:
        check_share("one_way_share", self.one_way_share)
        check_share("selection_share", self.selection_share)
        check_whole("tables", self.tables, 1, LARGEST_TABLES, optional=True)
        check_whole("rounds", self.rounds, 1, LARGEST_ROUNDS)
        check_whole("bins", self.bins, 2, LARGEST_BINS, optional=True)
        check_whole("model_size", self.model_size, 1, LARGEST_MODEL)
        check_whole("steps", self.steps, 1, LARGEST_STEPS)


def candidates_of(schema: Schema) -> list[Columns]:
    """All pairs of columns, and all triples; of a wide table only those with the label, of a wider one none."""
    columns = list(range(len(schema.modelled)))
    pairs = list(itertools.combinations(columns, 2))
    if len(pairs) + math.comb(len(columns), 3) <= MOST_CANDIDATES:
        return pairs + list(itertools.combinations(columns, 3))
    if schema.label in schema.modelled and 2 * len(pairs) <= MOST_CANDIDATES:
        label = list(schema.modelled).index(schema.label)
        return pairs + [tuple(sorted((*pair, label))) for pair in pairs if label not in pair]
    return pairs


def plan_of(config: Config, schema: Schema, budget: Budget) -> Plan:
    """How many tables in which rounds, from public facts; all events are known before the first row is read."""
    candidates = len(candidates_of(schema))
    tables = min(config.tables or _worth(config, schema, budget), candidates)
    rounds = min(config.rounds, tables)
    picks = tuple(tables * (n + 1) // rounds - tables * n // rounds for n in range(rounds))
    shares = shares_of(config.one_way_share, config.selection_share, picks, growth=GROWTH, choosing=candidates > tables)
    return make_plan(shares, schema, budget, bins=config.bins, most_bins=MOST_BINS, most_codes=MOST_CODES)


def _worth(config: Config, schema: Schema, budget: Budget) -> int:
    """As many tables as leave the rows well above the noise of a cell: from half to three times the columns."""
    columns = len(schema.modelled)
    noise = noise_multiplier(budget) / math.sqrt(1 - config.one_way_share - config.selection_share)
    affordable = int((schema.rows / WORTH_MEASURING / noise) ** 2) if noise else 3 * columns
    return min(max(affordable, columns // 2), 3 * columns)


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses tables that are too wide, and budgets whose noise could not be drawn."""
    check_columns(NAME, schema, MOST_COLUMNS)
    check_noise(schema, plan_of(config, schema, budget))


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plan = plan_of(config, schema, budget)
    chosen = "chosen privately" if plan.choosing else "all there are"
    candidates = len(candidates_of(schema))
    return planned_tables(
        schema, plan, ("tables", f"{plan.tables} in {len(plan.rounds)} rounds, of {candidates:,}; {chosen}")
    )


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Released, Ledger]:
    """Releases fine one-way tables; then, round by round, chooses tables, releases them and fits the model anew.

    Charges: a Gaussian for all one-way tables (`release_one_way`); in each round a bounded range for each pick
    (`choose_tables`) and a Gaussian for what was picked (`release_tables`). How many rounds and picks there are and
    with which noise is fixed by the plan, from public facts, so that the composition is the usual adaptive one: only
    *what* is chosen depends on earlier releases, never how much a look costs. A round that finds fewer tables than
    planned, or none, is charged in full.
    """
    ledger = Ledger(budget)
    plan = plan_of(config, schema, budget)
    progress("counting columns", 0.0)
    one_way = release_one_way(
        table, fine_cells(schema), noise_multiplier=plan.one_way_multiplier, streams=streams, ledger=ledger
    )
    rare = max((one.noise for one in plan.rounds), default=0.0)
    coded = cut(schema, one_way, bins=plan.bins, most_codes=plan.most_codes, rare=rare)
    potentials = independent_potentials(coded.counts())
    measured = measured_columns(coded)
    candidates = [members for members in candidates_of(schema) if math.prod(coded.shape(members)) <= MOST_TABLE_CELLS]
    chosen: list[Columns] = []
    for number, one in enumerate(plan.rounds):
        progress("measuring tables", number / len(plan.rounds), spent(ledger))
        if plan.choosing:
            network = Network.from_potentials(coded.sizes, potentials)
            left = [members for members in candidates if members not in chosen]
            picked = choose_tables(
                table,
                coded,
                network,
                left,
                chosen,
                one,
                declared_rows=schema.rows,
                model_size=config.model_size,
                streams=streams,
                ledger=ledger,
            )
        else:
            done = sum(earlier.picks for earlier in plan.rounds[:number])
            picked = fitting(coded.sizes, candidates[done : done + one.picks], chosen, config.model_size)
        if not picked:
            # Whether a round finds anything was told by earlier releases, so it may not make the whole look cheaper.
            ledger.charge(Gaussian(one.multiplier) if one.multiplier else NonPrivate(), "tables of a round without any")
            continue
        tables = release_tables(table, coded, picked, noise_multiplier=one.multiplier, streams=streams, ledger=ledger)
        noise = one.multiplier * math.sqrt(len(picked))
        measured += [Measured(members, counts, noise) for members, counts in zip(picked, tables, strict=True)]
        chosen += picked
        potentials = fit_potentials(coded.sizes, measured, potentials, total=one_way.total, steps=config.steps)
    progress("measuring tables", 1.0, spent(ledger))
    return released_of(schema, coded, potentials), ledger


def choose_tables(
    table: Table,
    coded: Coded,
    network: Network,
    candidates: Sequence[Columns],
    chosen: Sequence[Columns],
    one: Round,
    *,
    declared_rows: int,
    model_size: int,
    streams: Streams,
    ledger: Ledger,
) -> list[Columns]:
    """The tables that the model gets most wrong, picked without replacement from one set of scores.

    Guarantee: a candidate's score is the L1 distance between its exact table and that of the model, less a public
    number; the model stands on released tables alone, so that a row moves the score by at most 1, up or down
    (`scores`). Each pick is an exponential mechanism with that sensitivity, not monotone, charged as a bounded range.
    Which candidates are open (those with which the model stays within its size) follows from earlier rounds.
    """
    rounds = prepaid(one, ledger, "choice of tables")
    open_ = [members for members in candidates if fitting(coded.sizes, [members], chosen, model_size)]
    if not open_:
        return []
    found = scores(
        table,
        coded,
        open_,
        expected_tables(coded, network, open_, streams.sampling),
        declared_rows=declared_rows,
        noise=one.noise,
        streams=streams,
    )
    picked: list[Columns] = []
    left = np.arange(len(open_))
    for _ in range(one.picks):
        if not len(left):
            break
        place = select(
            found[left],
            sensitivity=1.0,
            epsilon=one.selection_epsilon,
            monotone=False,
            streams=streams,
            ledger=rounds,
            purpose="choice of tables",
        )
        # Two that fit alone may not fit together; the second is then dropped, and those that stay get less noise.
        pick = open_[left[place]]
        picked += fitting(coded.sizes, [pick], [*chosen, *picked], model_size)
        # Scores are from before the round: sets that share a pair with this one owe theirs to the same dependence.
        left = left[[len(set(open_[other]) & set(pick)) < 2 for other in left]]
    return picked


def fitting(sizes: Sequence[int], sets: Sequence[Columns], chosen: Sequence[Columns], model_size: int) -> list[Columns]:
    """Those of the sets, taken one after the other, with which the model stays within its size."""
    kept: list[Columns] = []
    for members in sets:
        if model_cells(sizes, [*chosen, *kept, members]) <= model_size:
            kept.append(members)
    return kept


def expected_tables(
    coded: Coded, network: Network, sets: Sequence[Columns], rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """What the model expects of the tables of some sets, from many rows drawn from it."""
    rows = network.draw(ROWS_TO_EXPECT, rng)
    scale = coded.one_way.total / ROWS_TO_EXPECT
    for counts in count_tables(lambda: iter([[rows[c] for c in range(len(coded.sizes))]]), coded.sizes, sets):
        yield counts * scale
