"""mst and aim: how far one row moves scores and tables, and that whatever is drawn was charged.

Each check also runs on code with a bug planted in it, where it must fail.
"""

import dataclasses
import itertools
import math
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from understudy.errors import BudgetError, OptionError, SchemaError
from understudy.privacy import BoundedRange, Budget, Gaussian, Ledger, SelfComposed, Streams, epsilon, noise_multiplier
from understudy.schema import Schema
from understudy.synthesizers.api import fit
from understudy.synthesizers.marginals import aim, mst
from understudy.synthesizers.marginals import coded as coded_module
from understudy.synthesizers.marginals.coded import Coded
from understudy.synthesizers.marginals.inference import independent_potentials
from understudy.synthesizers.marginals.network import Network, model_cells
from understudy.synthesizers.marginals.plan import Round
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
PAIRS = list(itertools.combinations(range(4), 2))
TRIPLES = list(itertools.combinations(range(4), 3))
EDGES = Round(picks=3, selection_epsilon=0.8, multiplier=1.3)
# Released one-way tables of very different tables: none of them needs to be near the rows.
MARGINS = {
    "even": ([5.0, 5.0], [5.0, 5.0], [4.0, 4.0, 2.0], [5.0, 5.0]),
    "zeros": ([12.0, 0.0], [0.0, 12.0], [12.0, 0.0, 0.0], [6.0, 6.0]),
    "one row": ([0.4, 0.6], [1.0, 0.0], [0.3, 0.3, 0.4], [0.9, 0.1]),
}


def table_of(rows: Any) -> Table:
    codes = ROWS[np.asarray(rows, dtype=int)].reshape(-1, 4)
    return Table.from_codes(SCHEMA, {name: codes[:, axis] for axis, name in enumerate("abcd")})


def released(margins: str) -> Coded:
    counts = {column: np.array(table) for column, table in zip("abcd", MARGINS[margins], strict=True)}
    one_way = OneWay(fine_cells(SCHEMA), counts, float(counts["a"].sum()), noise=dict.fromkeys(counts, (1.0,)))
    return Coded(one_way, {column: np.arange(len(table)) for column, table in counts.items()})


def bases() -> list[list[int]]:
    rng = np.random.default_rng(1)
    return [[], [0], rng.integers(0, len(ROWS), 9).tolist(), [3] * 8, list(range(len(ROWS)))]


def expected(coded: Coded, sets: list[tuple[int, ...]]) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    return [rng.random(coded.shape(members)) * 7 for members in sets]


# --- scores ---


def check_scores(module: ModuleType, sets: list[tuple[int, ...]]) -> float:
    """All neighbours: no score moves by more than 1, to the last bit."""
    most = 0.0
    for margins, base in itertools.product(MARGINS, bases()):
        coded = released(margins)

        def found(rows: list[int], coded: Coded = coded) -> np.ndarray:
            streams = Streams.from_seed(0)
            return module.scores(
                table_of(rows), coded, sets, iter(expected(coded, sets)), declared_rows=50, noise=1.7, streams=streams
            )

        before = found(base)
        for row in range(len(ROWS)):
            moved = np.abs(found([*base, row]) - before).max()
            assert moved <= 1.0
            most = max(most, moved)
    return most


@pytest.mark.parametrize("sets", [PAIRS, TRIPLES], ids=["pairs", "triples"])
def test_one_row_moves_a_score_by_one_at_most(copy_of, sets):
    assert check_scores(copy_of(coded_module), sets) == 1.0  # the bound is reached: it has no slack


def test_a_part_of_the_rows_moves_scores_no_further(copy_of):
    module = copy_of(coded_module, ("MOST_LOOKS = 2_000_000_000", "MOST_LOOKS = 150"))
    assert check_scores(module, PAIRS) == pytest.approx(1.0)


SCORE_BUGS = {
    "doubled": ("np.abs(exact - on_grid(model * rate)).sum()", "2 * np.abs(exact - on_grid(model * rate)).sum()"),
    "squared": ("np.abs(exact - on_grid(model * rate)).sum()", "((exact - on_grid(model * rate)) ** 2).sum()"),
    "off the grid": (
        "return np.rint(np.multiply(numbers, STEPS_PER_COUNT)) / STEPS_PER_COUNT",
        "return np.asarray(numbers)",
    ),
    "in shares of the private total": (".sum() - noise_error", ".sum() / max(exact.sum(), 1) * 50 - noise_error"),
    "rows counted twice": (
        "count += np.bincount(cell, minlength=len(count))",
        "count += 2 * np.bincount(cell, minlength=len(count))",
    ),
}


@pytest.mark.parametrize("bug", SCORE_BUGS)
def test_planted_wrong_scores_are_caught(copy_of, bug):
    with pytest.raises(AssertionError):
        check_scores(copy_of(coded_module, SCORE_BUGS[bug]), PAIRS)


# --- tables ---


def check_tables(module: ModuleType, logged: Any) -> None:
    """One row moves all tables by exactly sqrt(m); noise has the charged scale, and is charged first."""
    coded = released("even")
    sets = [(0, 1), (1, 2, 3), (0, 3)]

    def stacked(rows: list[int]) -> np.ndarray:
        caught: list[np.ndarray] = []
        original = module.gaussian
        module.gaussian = lambda values, **rest: caught.append(values) or values.astype(float)
        module.release_tables(table_of(rows), coded, sets, noise_multiplier=1.0, streams=None, ledger=None)
        module.gaussian = original
        return caught[0]

    for base in bases():
        before = stacked(base)
        for row in range(len(ROWS)):
            assert np.linalg.norm(stacked([*base, row]) - before) == pytest.approx(math.sqrt(3), abs=1e-12)
    streams, ledger, log = logged()
    module.release_tables(table_of([1, 2]), coded, sets, noise_multiplier=2.5, streams=streams, ledger=ledger)
    assert log[0] == ("charge", Gaussian(2.5))
    # The only draw: its scale in steps of the grid, brought back to rows, is the multiplier times sqrt(3).
    ((_, scale, count),) = log[1:]
    assert count == 4 + 12 + 4
    step = 2.0 ** math.floor(math.log2(math.sqrt(3) / 2**14))
    assert scale * step == pytest.approx(2.5 * math.sqrt(3), rel=1e-3)


def test_one_row_moves_the_tables_by_what_is_charged(copy_of, logged):
    check_tables(copy_of(coded_module), logged)


TABLE_BUGS = {
    "counted twice": SCORE_BUGS["rows counted twice"],
    "sensitivity of one table": (
        "l2_sensitivity=math.sqrt(len(sets)),\n        noise_multiplier=noise_multiplier,",
        "l2_sensitivity=1.0,\n        noise_multiplier=noise_multiplier,",
    ),
    "a table more than was asked for": (
        "exact = list(count_tables(lambda: coded.rows(table), coded.sizes, sets))",
        "exact = list(count_tables(lambda: coded.rows(table), coded.sizes, [*sets, (0, 2)]))",
    ),
}


@pytest.mark.parametrize("bug", TABLE_BUGS)
def test_planted_wrong_tables_are_caught(copy_of, logged, bug):
    with pytest.raises(AssertionError):
        check_tables(copy_of(coded_module, TABLE_BUGS[bug]), logged)


# --- choices ---


def choose_tree(module: ModuleType, table: Table, margins: str, streams: Streams, ledger: Ledger) -> list:
    return module.choose_tree(table, released(margins), EDGES, 50, streams=streams, ledger=ledger)


def choose_tables(module: ModuleType, table: Table, margins: str, streams: Streams, ledger: Ledger) -> list:
    coded = released(margins)
    network = Network.from_potentials(coded.sizes, independent_potentials(coded.counts()))
    module.ROWS_TO_EXPECT = 200
    limits = {"declared_rows": 50, "model_size": 10_000}
    candidates = [*PAIRS, *TRIPLES]
    return module.choose_tables(table, coded, network, candidates, [], EDGES, **limits, streams=streams, ledger=ledger)


def check_choice(module: ModuleType, choose: Any, logged: Any) -> list[tuple[int, ...]]:
    """Log-chances span at most epsilon for any neighbour and any earlier picks; all is charged, and charged first."""

    def rounds(rows: list[int], margins: str, picks: list[int]) -> list[SimpleNamespace]:
        calls: list[SimpleNamespace] = []

        def capture(scores: np.ndarray, **options: Any) -> int:
            calls.append(SimpleNamespace(scores=np.array(scores), **options))
            return picks[len(calls) - 1]

        original = module.select
        module.select = capture
        choose(module, table_of(rows), margins, Streams.from_seed(0), Ledger(Budget(1e6, 1e-6)))
        module.select = original
        return calls

    def chances(call: SimpleNamespace) -> np.ndarray:
        exponents = call.epsilon * call.scores / ((1 if call.monotone else 2) * call.sensitivity)
        return exponents - np.logaddexp.reduce(exponents)

    for margins, base, first in itertools.product(MARGINS, bases()[1:], (0, 4)):
        before = rounds(base, margins, [first, 0, 0])
        assert len(before) == 3
        for row in range(0, len(ROWS), 3):
            for one, other in zip(before, rounds([*base, row], margins, [first, 0, 0]), strict=True):
                assert np.ptp(chances(one) - chances(other)) <= EDGES.selection_epsilon + 1e-9
    streams, ledger, log = logged()
    chosen = choose(module, table_of(range(24)), "even", streams, ledger)
    assert ledger.events == (SelfComposed(BoundedRange(0.8), 3),)
    assert log[0][0] == "charge"
    assert [entry[1] for entry in log if entry[0] == "gumbel"] == [2 / 0.8] * 3
    return chosen


def test_the_tree_spans_and_is_paid_for(copy_of, logged):
    tree = check_choice(copy_of(mst), choose_tree, logged)
    reached = {0}
    for _ in tree:
        reached |= {c for edge in tree if reached & set(edge) for c in edge}
    assert len(tree) == 3
    assert reached == {0, 1, 2, 3}


def test_tables_are_picked_once_each_and_paid_for(copy_of, logged):
    picked = check_choice(copy_of(aim), choose_tables, logged)
    assert len(picked) == 3
    for one, other in itertools.combinations(picked, 2):
        assert len(set(one) & set(other)) < 2  # a round looks for different dependences


CHOICE_BUGS = {
    "half the sensitivity": ("sensitivity=1.0,", "sensitivity=0.5,"),
    "taken for monotone": ("monotone=False,", "monotone=True,"),
}


@pytest.mark.parametrize("bug", CHOICE_BUGS)
@pytest.mark.parametrize(("module", "choose"), [(mst, choose_tree), (aim, choose_tables)], ids=["mst", "aim"])
def test_planted_wrong_choices_are_caught(copy_of, logged, module, choose, bug):
    with pytest.raises(AssertionError):
        check_choice(copy_of(module, CHOICE_BUGS[bug]), choose, logged)


@pytest.mark.parametrize(
    ("module", "choose", "change"),
    [
        (mst, choose_tree, ("epsilon=edges.selection_epsilon,", "epsilon=2 * edges.selection_epsilon,")),
        (mst, choose_tree, ("for _ in range(edges.picks):", "for _ in [*range(edges.picks), 9]:")),
        (aim, choose_tables, ("epsilon=one.selection_epsilon,", "epsilon=2 * one.selection_epsilon,")),
        (aim, choose_tables, ("for _ in range(one.picks):", "for _ in range(one.picks + 1):")),
    ],
)
def test_picks_beyond_what_was_paid_are_refused(copy_of, logged, module, choose, change):
    streams, ledger, _ = logged()
    with pytest.raises((BudgetError, OptionError)):
        choose(copy_of(module, change), table_of(range(24)), "even", streams, ledger)


def test_a_model_stays_within_its_size():
    coded = released("even")
    network = Network.from_potentials(coded.sizes, independent_potentials(coded.counts()))
    picked = aim.choose_tables(
        table_of(range(24)),
        coded,
        network,
        [*PAIRS, *TRIPLES],
        [(0, 1)],
        Round(picks=8, selection_epsilon=5.0, multiplier=1.0),
        declared_rows=50,
        model_size=20,
        streams=Streams.from_seed(0),
        ledger=Ledger(Budget(1e4, 1e-6)),
    )
    assert picked
    assert model_cells(coded.sizes, [(0, 1), *picked]) <= 20 < model_cells(coded.sizes, PAIRS)


def test_the_strongest_pairs_are_chosen_when_there_is_budget():
    rows = [row for row, codes in enumerate(ROWS) if codes[0] == codes[3]] * 20
    table, coded = table_of(rows), released("even")
    counts = {name: np.bincount(table.codes(name), minlength=c.count) for name, c in coded.one_way.cells.items()}
    coded = Coded(dataclasses.replace(coded.one_way, counts=counts, total=float(len(rows))), coded.groups)
    edges = Round(picks=3, selection_epsilon=50.0, multiplier=0.1)
    tree = mst.choose_tree(table, coded, edges, 50, streams=Streams.from_seed(0), ledger=Ledger(Budget(1e4, 1e-6)))
    assert tree[0] == (0, 3)


# --- certificates ---


def frame_of(rows: int = 200) -> pd.DataFrame:
    codes = ROWS[np.random.default_rng(0).integers(0, len(ROWS), rows)]
    frame = pd.DataFrame({name: codes[:, axis] == 1 for axis, name in enumerate("abd")})
    frame["c"] = pd.array(np.where(codes[:, 2] == 2, None, codes[:, 2] == 1), dtype="boolean")
    return frame


def test_the_certificate_of_mst_is_what_its_plan_says():
    model = fit(frame_of(), SCHEMA, method="mst", epsilon=1.0, delta=1e-5, seed=1, steps=5)
    plan = mst.plan_of(mst.Config(steps=5), SCHEMA, Budget(1.0, 1e-5))
    events = [
        Gaussian(plan.one_way_multiplier),
        SelfComposed(BoundedRange(plan.rounds[0].selection_epsilon), 3),
        Gaussian(plan.rounds[0].multiplier),
    ]
    assert [entry.event for entry in model.certificate.entries] == events
    assert model.certificate.epsilon == pytest.approx(epsilon(events, 1e-5).value, rel=1e-9)
    assert 0.999 < model.certificate.epsilon <= 1.0
    # Shares of 1/z^2 are as the options say: a fifth, and seven tenths.
    parts = [
        1 / plan.one_way_multiplier**2,
        plan.rounds[0].selection_epsilon ** 2 * 3 / 4,
        1 / events[2].noise_multiplier ** 2,
    ]
    np.testing.assert_allclose(np.array(parts) / sum(parts), [0.2, 0.1, 0.7], rtol=1e-9)
    # Golden: noise of the whole, once; a change of accounting shows here.
    assert 1 / math.sqrt(sum(parts)) == pytest.approx(3.7797, rel=1e-3)
    # All Gaussian, it would be exactly 3.7306; what the choice adds is small, and not free.
    assert noise_multiplier(Budget(1.0, 1e-5)) < 1 / math.sqrt(sum(parts)) < 1.02 * noise_multiplier(Budget(1.0, 1e-5))


@pytest.mark.parametrize("model_size", [1000, 1], ids=["tables are found", "no table fits"])
def test_the_certificate_of_aim_is_what_its_plan_says(model_size):
    """Also where a round finds nothing: that was told by earlier releases, and may not make the claim smaller."""
    config = {"steps": 5, "rounds": 2, "tables": 3, "model_size": model_size}
    model = fit(frame_of(), SCHEMA, method="aim", epsilon=1.0, delta=1e-5, seed=1, **config)
    plan = aim.plan_of(aim.Config(**config), SCHEMA, Budget(1.0, 1e-5))
    assert [one.picks for one in plan.rounds] == [1, 2]
    events = [Gaussian(plan.one_way_multiplier)]
    for one in plan.rounds:
        events += [SelfComposed(BoundedRange(one.selection_epsilon), one.picks), Gaussian(one.multiplier)]
    assert [entry.event for entry in model.certificate.entries] == events
    assert model.certificate.epsilon == pytest.approx(epsilon(events, 1e-5).value, rel=1e-9)
    assert 0.999 < model.certificate.epsilon <= 1.0
    # A table of the second round has half as much again of the budget as one of the first.
    shares = [1 / one.multiplier**2 / one.picks for one in plan.rounds]
    assert shares[1] == pytest.approx(1.5 * shares[0])


# --- public refusals and odd tables ---


@pytest.mark.parametrize("module", [mst, aim], ids=["mst", "aim"])
def test_wide_tables_are_refused_from_public_facts(module):
    columns = ", ".join(f"c{number}: {{kind: boolean}}" for number in range(module.MOST_COLUMNS + 1))
    schema = Schema.loads(f"rows: 1000\ncolumns: {{{columns}}}")
    with pytest.raises(SchemaError, match=f"{module.NAME} takes at most {module.MOST_COLUMNS} modelled columns"):
        module.check(module.Config(), schema, Budget(1.0, 1e-6))


@pytest.mark.parametrize("wrong", [{"bins": 1}, {"steps": 0}, {"one_way_share": 0.7}, {"selection_share": 0}])
@pytest.mark.parametrize("module", [mst, aim], ids=["mst", "aim"])
def test_wrong_options_are_refused(module, wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        module.Config(**wrong)


@pytest.mark.parametrize("method", ["mst", "aim"])
def test_thousands_of_values_are_pooled_and_dependence_is_kept(method):
    values = [f"v{number}" for number in range(3000)]
    schema = Schema.loads(
        f"rows: 3000\ncolumns: {{town: {{kind: categorical, values: [{', '.join(values)}]}},"
        " big: {kind: boolean}, year: {kind: integer, low: 0, high: 99}}"
    )
    rng = np.random.default_rng(0)
    town = np.where(rng.random(3000) < 0.8, rng.integers(0, 4, 3000), rng.integers(0, 3000, 3000))
    frame = pd.DataFrame({"town": [values[t] for t in town], "big": town < 2, "year": town % 100})
    model = fit(frame, schema, method=method, epsilon=8.0, seed=0, steps=200)
    rows = model.sample(2000, seed=0)
    assert rows.loc[rows["town"] == "v1", "big"].mean() > 0.9
    assert rows.loc[rows["town"] == "v3", "big"].mean() < 0.1
    only = model.sample(500, where={"big": True, "year": (0, 3)}, seed=0)
    assert only["big"].all()
    assert only["year"].between(0, 3).all()
    assert only["town"].isin(["v0", "v1"]).mean() > 0.8
