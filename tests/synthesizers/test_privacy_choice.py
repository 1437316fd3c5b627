"""Choosing pairs privately: how far one row moves a score and a choice, and that every look is charged.

As with the counts, each check also runs on code with a bug planted in it, where it must fail.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from understudy.errors import BudgetError
from understudy.privacy import BoundedRange, Budget, Ledger, SelfComposed, Streams, epsilon, select
from understudy.schema import Schema
from understudy.synthesizers.mixture import pairs as pairs_module
from understudy.synthesizers.mixture.pairs import Coarse, choose_pairs
from understudy.synthesizers.mixture.plan import Config, Plan, make_plan
from understudy.synthesizers.one_way import OneWay, fine_cells
from understudy.table.table import Table

SCHEMA = Schema.loads("""
rows: 50
columns:
  a: {kind: boolean}
  b: {kind: boolean}
  c: {kind: boolean, missing: true}
  d: {kind: boolean}
""")
ROWS = np.array(list(itertools.product((0, 1), (0, 1), (0, 1, 2), (0, 1))), dtype=np.uint8)
EPSILON, ROUNDS = 0.8, 3
CANDIDATES = 6


def table_of(rows: list[int] | np.ndarray) -> Table:
    codes = ROWS[np.asarray(rows, dtype=int)].reshape(-1, 4)
    return Table.from_codes(SCHEMA, {name: codes[:, axis] for axis, name in enumerate("abcd")})


@pytest.fixture(scope="module")
def plan() -> Plan:
    planned = make_plan(Config(), SCHEMA, Budget(1.0, 1e-6))
    return dataclasses.replace(planned, always=(), chosen_pairs=ROUNDS, selection_epsilon=EPSILON, doubled=False)


@pytest.fixture(scope="module")
def doubling(plan: Plan) -> Plan:
    """Chooses among pairs that are measured anyway."""
    return dataclasses.replace(plan, always=tuple(itertools.combinations("abcd", 2)), doubled=True)


# Released one-way tables of very different tables: none of them needs to be near the rows.
MARGINS = {
    "even": ([5.0, 5.0], [5.0, 5.0], [4.0, 4.0, 2.0], [5.0, 5.0]),
    "zeros": ([12.0, 0.0], [0.0, 12.0], [12.0, 0.0, 0.0], [6.0, 6.0]),
    "one row": ([0.4, 0.6], [1.0, 0.0], [0.3, 0.3, 0.4], [0.9, 0.1]),
}


def released(name: str) -> tuple[OneWay, Coarse]:
    counts = {column: np.array(table) for column, table in zip("abcd", MARGINS[name], strict=True)}
    groups = {column: np.arange(len(table)) for column, table in counts.items()}
    total = float(counts["a"].sum())
    return OneWay(fine_cells(SCHEMA), counts, total, dict.fromkeys(counts, (1.0,))), Coarse(groups, None, 1)


def captured_rounds(module: ModuleType, table: Table, plan: Plan, margins: str, *, picks: Iterator[int]) -> list[Any]:
    """What every round of choosing hands to the mechanism, when earlier rounds picked as `picks` says."""
    calls = []

    def capture(scores: np.ndarray, **options: Any) -> int:
        calls.append(SimpleNamespace(scores=np.array(scores), **options))
        return next(picks)

    module.select = capture
    one_way, coarse = released(margins)
    streams = Streams.from_seed(0)
    module.choose_pairs(table, one_way, coarse, plan, streams=streams, ledger=Ledger(Budget(1e6, 1e-6)))
    return calls


def log_chances(call: SimpleNamespace) -> np.ndarray:
    """Of every candidate, from what the mechanism was told."""
    exponents = call.epsilon * call.scores / ((1 if call.monotone else 2) * call.sensitivity)
    return exponents - np.logaddexp.reduce(exponents)


def bases() -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [[], [0], rng.integers(0, len(ROWS), 9).tolist(), [3] * 8, list(range(len(ROWS)))]


# --- checks ---


def check_choice(module: ModuleType, plan: Plan) -> SimpleNamespace:
    """All neighbours, all first picks: scores move by at most 1/2, log-chances of a round span at most epsilon."""
    moved, spanned = 0.0, 0.0
    for margins, base in itertools.product(MARGINS, bases()):
        for first in range(CANDIDATES):
            before = captured_rounds(module, table_of(base), plan, margins, picks=iter([first, 0, 0]))
            for row in range(len(ROWS)):
                after = captured_rounds(module, table_of([*base, row]), plan, margins, picks=iter([first, 0, 0]))
                for one, other in zip(before, after, strict=True):
                    move = np.abs(one.scores - other.scores).max()
                    moved = max(moved, move)
                    assert move <= 0.5  # to the last bit: scores are sums on a grid
                    assert (one.sensitivity, one.epsilon) == (other.sensitivity, other.epsilon)
                    spanned = max(spanned, np.ptp(log_chances(one) - log_chances(other)))
                    assert spanned <= plan.selection_epsilon + 1e-9
    return SimpleNamespace(moved=moved, spanned=spanned)


def check_charge(module: ModuleType, plan: Plan, logged: Any, mechanism: Any = select) -> None:
    """What was drawn, counted at the noise itself, is what the ledger holds; and it was there first."""
    streams, ledger, log = logged()
    module.select = mechanism
    one_way, coarse = released("even")
    picked = module.choose_pairs(table_of(range(24)), one_way, coarse, plan, streams=streams, ledger=ledger)
    assert len(set(picked)) == len(picked) == plan.chosen_pairs
    draws = [entry for entry in log if entry[0] == "gumbel"]
    assert log[0][0] == "charge"
    # A Gumbel scale of 1/epsilon is the exponential mechanism with sensitivity 1/2 in both directions.
    drawn = [BoundedRange(1 / scale) for _, scale, _ in draws]
    recomputed = epsilon(drawn, 1e-6).value
    charged = epsilon(ledger.events, 1e-6).value
    assert charged == pytest.approx(recomputed, rel=1e-9)
    assert [size for _, _, size in draws] == [CANDIDATES - number for number in range(plan.chosen_pairs)]


# --- as it is ---


def test_one_row_moves_choices_by_no_more_than_is_charged(plan, copy_of):
    reached = check_choice(copy_of(pairs_module), plan)
    assert reached.moved == 0.5  # the bounds are reached: neither has slack
    assert reached.spanned == pytest.approx(EPSILON)


def test_one_row_moves_choices_among_measured_pairs_by_no_more_than_is_charged(doubling, copy_of):
    reached = check_choice(copy_of(pairs_module), doubling)
    assert reached.moved == 0.5
    assert reached.spanned == pytest.approx(EPSILON)


def test_large_counts_lose_no_bit_to_rounding(plan, copy_of):
    """A float sum of millions would err by more than its last bit, and one row could move it beyond the bound."""
    many = np.repeat(np.arange(len(ROWS)), np.arange(len(ROWS)) * 1000 + 7).tolist()
    module = copy_of(pairs_module)
    before = captured_rounds(module, table_of(many), plan, "one row", picks=iter([0, 0, 0]))[0].scores
    for row in range(0, len(ROWS), 5):
        after = captured_rounds(module, table_of([*many, row]), plan, "one row", picks=iter([0, 0, 0]))[0].scores
        assert np.abs(before - after).max() <= 0.5


def test_every_round_is_charged_before_it_is_drawn(plan, copy_of, logged):
    check_charge(copy_of(pairs_module), plan, logged)


def test_the_ledger_says_how_often(plan):
    ledger = Ledger(Budget(100.0, 1e-6))
    one_way, coarse = released("even")
    choose_pairs(table_of([1, 2]), one_way, coarse, plan, streams=Streams.from_seed(0), ledger=ledger)
    assert ledger.events == (SelfComposed(BoundedRange(EPSILON), ROUNDS),)


def test_choices_have_the_chances_that_are_claimed(plan, copy_of):
    table, one = table_of([0, 0, 0, 3, 9, 23, 23]), dataclasses.replace(plan, chosen_pairs=1, selection_epsilon=1.5)
    (call,) = captured_rounds(copy_of(pairs_module), table, one, "even", picks=iter([0]))
    chances = np.exp(log_chances(call))
    names = list(itertools.combinations("abcd", 2))
    one_way, coarse = released("even")
    streams, runs = Streams.from_seed(5), 3_000
    picked = [
        choose_pairs(table, one_way, coarse, one, streams=streams, ledger=Ledger(Budget(9.0, 1e-6)))[0]
        for _ in range(runs)
    ]
    counts = np.array([picked.count(name) for name in names])
    assert chisquare(counts, runs * chances).pvalue > 1e-6
    assert chisquare(counts, np.full(CANDIDATES, runs / CANDIDATES)).pvalue < 1e-6


def test_a_refusal_looks_at_nothing(plan):
    ledger = Ledger(Budget(0.5, 1e-6))
    one_way, coarse = released("even")

    class NoNoise:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("noise was drawn")

    streams = Streams(noise=NoNoise(), sampling=np.random.default_rng(0), init=0, seeded=True)
    with pytest.raises(BudgetError):
        choose_pairs(table_of([1]), one_way, coarse, plan, streams=streams, ledger=ledger)
    assert ledger.events == ()


def test_pairs_that_are_always_measured_are_no_candidates(plan):
    partly = dataclasses.replace(plan, always=(("a", "b"), ("a", "d")), chosen_pairs=4)
    one_way, coarse = released("even")
    picked = choose_pairs(
        table_of([1]), one_way, coarse, partly, streams=Streams.from_seed(0), ledger=Ledger(Budget(99.0, 1e-6))
    )
    assert sorted(picked) == [("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")]


def test_dependence_is_found_when_there_is_budget(plan):
    """Columns a and d agree in every row, nothing else does: with a large epsilon their pair comes first."""
    rows = [row for row, codes in enumerate(ROWS) if codes[0] == codes[3]] * 20
    one_way, coarse = released("even")
    counts = {name: np.bincount(table_of(rows).codes(name), minlength=c.count) for name, c in one_way.cells.items()}
    one_way = dataclasses.replace(one_way, counts=counts, total=float(len(rows)))
    first = dataclasses.replace(plan, chosen_pairs=1, selection_epsilon=50.0)
    ledger = Ledger(Budget(1e3, 1e-6))
    assert choose_pairs(table_of(rows), one_way, coarse, first, streams=Streams.from_seed(0), ledger=ledger) == [
        ("a", "d")
    ]


# --- a random part of the rows ---


def test_a_part_of_the_rows_moves_scores_no_further(plan, copy_of):
    """With the others' coins held fixed, an added row is taken or not: it moves a score by at most 1/2."""
    module = copy_of(pairs_module, ("MOST_LOOKS = 4_000_000_000", "MOST_LOOKS = 150"))
    moves = []
    for base, row in itertools.product(bases(), range(len(ROWS))):
        before = captured_rounds(module, table_of(base), plan, "even", picks=iter([0, 0, 0]))
        after = captured_rounds(module, table_of([*base, row]), plan, "even", picks=iter([0, 0, 0]))
        moves.append(np.abs(before[0].scores - after[0].scores).max())
    assert max(moves) == pytest.approx(0.5)
    assert min(moves) == 0  # some were not taken


@pytest.mark.parametrize("rows", [40, 4_000])
def test_the_part_is_public_and_each_row_has_its_own_coin(plan, copy_of, rows):
    """The rate comes from the declared rows (50), not from the rows there are."""
    module = copy_of(pairs_module, ("MOST_LOOKS = 4_000_000_000", "MOST_LOOKS = 150"))
    rates = []
    count = module.count_pairs
    module.count_pairs = lambda *args: rates.append(args[-1]) or count(*args)
    captured_rounds(module, table_of([5] * rows), plan, "even", picks=iter([0, 0, 0]))
    assert rates == [150 / (50 * CANDIDATES)]
    one_way, coarse = released("even")
    taken = sum(
        count(table_of([5] * rows), one_way, coarse, [("a", "b")], np.random.default_rng(seed), 0.5)[0].sum()
        for seed in range(20)
    )
    assert taken == pytest.approx(10 * rows, abs=5 * math.sqrt(20 * rows / 4))


def test_a_round_that_compares_a_part_charges_the_same(plan, copy_of, logged):
    """Very many candidates: each round sees some of those that are left, drawn by coins that no row moves."""
    module = copy_of(pairs_module, ("MOST_COMPARED = 10_000", "MOST_COMPARED = 2"))
    streams, ledger, log = logged()
    one_way, coarse = released("even")
    picked = module.choose_pairs(table_of(range(24)), one_way, coarse, plan, streams=streams, ledger=ledger)
    assert len(set(picked)) == len(picked) == plan.chosen_pairs
    sizes = [entry[2] for entry in log if entry[0] == "gumbel"]
    assert sizes == [min(2, CANDIDATES - number) for number in range(plan.chosen_pairs)]
    assert ledger.events == (SelfComposed(BoundedRange(plan.selection_epsilon), plan.chosen_pairs),)


# --- planted bugs ---

CHOICE_BUGS = {
    "half the sensitivity": ("sensitivity=0.5,", "sensitivity=0.25,"),
    "taken for monotone": ("monotone=False,", "monotone=True,"),
    "whole L1 distance": (".sum() / 2 - error", ".sum() - error"),
    "product of the exact margins": (
        "expected = _on_grid(one_way.total * rate * np.outer(shares[first], shares[second]))",
        "expected = np.outer(count.sum(axis=(0, 2)), count.sum(axis=(0, 1))) / max(count.sum(), 1)",
    ),
    "sums off the grid": (
        "return np.rint(np.multiply(numbers, STEPS_PER_COUNT)) / STEPS_PER_COUNT",
        "return np.asarray(numbers)",
    ),
    "squared distance": (
        "np.abs(count.sum(axis=0) - expected).sum() / 2",
        "((count.sum(axis=0) - expected) ** 2).sum() / 2",
    ),
}


@pytest.mark.parametrize("bug", CHOICE_BUGS)
def test_planted_wrong_scores_are_caught(plan, copy_of, bug):
    with pytest.raises(AssertionError):
        check_choice(copy_of(pairs_module, CHOICE_BUGS[bug]), plan)


def sharper_than_paid(scores: np.ndarray, *, epsilon: float, ledger: Any, purpose: str, **rest: Any) -> int:
    ledger.charge(BoundedRange(epsilon), purpose)
    return select(scores, epsilon=2 * epsilon, ledger=Ledger(Budget(1e6, 1e-6)), purpose=purpose, **rest)


def drawn_twice(scores: np.ndarray, *, ledger: Any, **rest: Any) -> int:
    select(scores, ledger=Ledger(Budget(1e6, 1e-6)), **rest)
    return select(scores, ledger=ledger, **rest)


@pytest.mark.parametrize("bug", [sharper_than_paid, drawn_twice])
def test_planted_unpaid_draws_are_caught(plan, copy_of, logged, bug):
    with pytest.raises(AssertionError):
        check_charge(copy_of(pairs_module), plan, logged, mechanism=bug)


UNPAID = {
    "one round more": ("for _ in range(plan.chosen_pairs):", "for _ in range(plan.chosen_pairs + 1):"),
    "one round paid": ('BoundedRange(epsilon), plan.chosen_pairs, "', 'BoundedRange(epsilon), 1, "'),
    "another epsilon": ("            epsilon=epsilon,\n", "            epsilon=2 * epsilon,\n"),
}


@pytest.mark.parametrize("bug", UNPAID)
def test_rounds_beyond_what_was_paid_are_refused(plan, copy_of, logged, bug):
    with pytest.raises(BudgetError):
        check_charge(copy_of(pairs_module, UNPAID[bug]), plan, logged)
