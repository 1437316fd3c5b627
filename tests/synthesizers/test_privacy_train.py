"""Whole trainings, but for the fit: what is charged is what was drawn, and only released numbers come out."""

import dataclasses
import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from understudy.errors import BudgetError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Gaussian,
    Ledger,
    NonPrivate,
    SelfComposed,
    Streams,
    epsilon,
    noise_multiplier,
)
from understudy.privacy.certificate import Certificate
from understudy.privacy.mechanisms import _grid
from understudy.progress import silent
from understudy.schema import Schema
from understudy.synthesizers import independent
from understudy.synthesizers import one_way as one_way_module
from understudy.synthesizers import rounding as rounding_module
from understudy.synthesizers import zoom as zoom_module
from understudy.synthesizers.columns import column_facts, plan_columns
from understudy.synthesizers.mixture import fit as fit_module
from understudy.synthesizers.mixture import guides as guides_module
from understudy.synthesizers.mixture import method as mixture
from understudy.synthesizers.mixture import pairs as pairs_module
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.mixture.plan import make_plan
from understudy.table.table import Table

BUDGET = Budget(2.0, 1e-6)


def booleans(count: int, rows: int) -> Schema:
    names = "".join(f"  c{number}: {{kind: boolean}}\n" for number in range(count))
    return Schema.loads(f"rows: {rows}\ncolumns:\n{names}")


def random_table(schema: Schema, rows: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    return Table.from_codes(schema, {name: rng.integers(0, 2, rows) for name in schema.modelled})


def following_table(rows: int) -> Table:
    columns = "".join(f"  {name}: {{kind: ordinal, values: {list(range(n))}}}\n" for name, n in (("a", 100), ("b", 50)))
    schema = Schema.loads(f"rows: {rows}\ncolumns:\n{columns}")
    first = np.random.default_rng(0).integers(0, 100, rows)
    return Table.from_codes(schema, {"a": first, "b": first // 2})


@pytest.fixture
def seen_targets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The fit replaced by one that keeps what it was given: it may see released numbers alone."""
    seen: list[Any] = []

    def plain_fit(targets: Any, **_: Any) -> Any:
        seen.append(targets)
        classes, width = targets.pairs.shape[:2]
        return fit_module.Fitted(np.full((classes, 2), 0.5 / classes), np.full((classes, 2, width), 0.5), 0, 0.0)

    monkeypatch.setattr(fit_module, "fit_mixture", plain_fit)
    return seen


# Squared weights: of town, age, sick and the three rungs of wage; of a column of two values.
TINY_MOVED = 13**2 + 12**2 + 12**2 + (20**2 + 20**2 + 16**2)
BOOLEAN_MOVED = 10**2
CASES = [
    "independent",
    "mixture",
    "mixture split by label",
    "mixture that chooses",
    "mixture that doubles",
    "one column",
    "mixture with a guide",
]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tiny_schema: Schema, every_row: Table) -> SimpleNamespace:
    """A method and a table; how far a row moves its one-way tables, squared, and the squared weights of its pairs."""
    if request.param == "independent":
        return SimpleNamespace(module=independent, table=every_row, one_way=TINY_MOVED, pairs=0, rounds=0)
    if request.param == "mixture":
        schema = tiny_schema.model_copy(update={"label": None})
        table = Table.from_codes(schema, {name: every_row.codes(name) for name in schema.modelled})
        return SimpleNamespace(module=mixture, table=table, one_way=TINY_MOVED, pairs=6, rounds=0)
    if request.param == "mixture split by label":
        schema = tiny_schema.model_copy(update={"rows": 100_000})
        table = Table.from_codes(schema, {name: every_row.codes(name) for name in schema.modelled})
        return SimpleNamespace(module=mixture, table=table, one_way=TINY_MOVED, pairs=3, rounds=0)
    if request.param == "mixture with a guide":
        # The second column follows from the first, code by code: 100 cells on two rungs, 50 on one.
        table = following_table(20_000)
        return SimpleNamespace(module=mixture, table=table, one_way=20**2 + 15**2 + 20**2, pairs=1, rounds=0)
    if request.param == "one column":
        table = random_table(booleans(1, 50), 20, 0)
        return SimpleNamespace(module=mixture, table=table, one_way=BOOLEAN_MOVED, pairs=0, rounds=0)
    if request.param == "mixture that doubles":
        # Of 66 pairs 22 have weight 2.
        table = random_table(booleans(12, 100_000), 80, 0)
        return SimpleNamespace(module=mixture, table=table, one_way=12 * BOOLEAN_MOVED, pairs=44 + 22 * 4, rounds=22)
    schema = booleans(12, 100)
    plan = make_plan(mixture.Config(), schema, BUDGET)
    assert 0 < plan.chosen_pairs < 66
    return SimpleNamespace(
        module=mixture,
        table=random_table(schema, 80, 0),
        one_way=12 * BOOLEAN_MOVED,
        pairs=plan.chosen_pairs,
        rounds=plan.chosen_pairs,
    )


def run(module: ModuleType, table: Table, budget: Budget, streams: Streams) -> tuple[Any, Ledger]:
    return module.train(module.Config(), table.schema, table, budget, streams=streams, progress=silent)


# --- the ledger ---


def watch_steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How large one step of the drawn noise is in counts, measured on what every release added."""
    steps: list[float] = []
    for module in (rounding_module, one_way_module, zoom_module, pairs_module, guides_module):

        def watched(values: np.ndarray, *, streams: Any, mechanism: Any = module.gaussian, **rest: Any) -> np.ndarray:
            out = mechanism(values, streams=streams, **rest)
            added, drawn = (out - values).ravel(), streams.noise.last
            steps.append(float(added[np.argmax(np.abs(drawn))] / drawn[np.argmax(np.abs(drawn))]))
            return out

        monkeypatch.setattr(module, "gaussian", watched)
    return steps


def watch_pairs(case: SimpleNamespace, module: ModuleType) -> list[float]:
    """How far a row moves all that is released of pairs, squared, from the codes, pairs and weights that are used.

    A row's own code is 1, and every code less one part of so many as there are; twice in a pair, once in a column.
    """
    moved: list[float] = []
    release = getattr(module, "release_pairs", None)

    def watched(table: Table, one_way: Any, coarse: Any, pairs: Any, weights: Any, *rest: Any, **options: Any) -> Any:
        if pairs:
            assert sum(weight**2 for weight in weights) == case.pairs
            free = {name: np.var(np.eye(coarse.size(name))[0]) * coarse.size(name) for name in coarse.groups}
            tables = sum(w**2 * free[a] * free[b] for (a, b), w in zip(pairs, weights, strict=True))
            moved.append(tables + sum(free[name] for name in {name for pair in pairs for name in pair}))
        return release(table, one_way, coarse, pairs, weights, *rest, **options)

    def watched_fine(table: Table, one_way: Any, coarse: Any, of: dict[str, str], *rest: Any, **options: Any) -> Any:
        moved.append(len(of))  # a row is in one cell of every table
        return fine(table, one_way, coarse, of, *rest, **options)

    if release is not None:
        fine = module.release_fine
        module.release_pairs, module.release_fine = watched, watched_fine
    return moved


def counts_decimals(case: SimpleNamespace) -> bool:
    """Whether the plan has `wage` counted by its decimals."""
    multiplier = noise_multiplier(BUDGET)
    if case.module is mixture:
        multiplier = make_plan(mixture.Config(), case.table.schema, BUDGET).one_way_multiplier
    rounding = plan_columns(column_facts(case.table.schema), case.table.schema.rows, multiplier).rounding
    assert set(rounding.scales) <= {"wage"}
    return bool(rounding.scales)


def check_ledger(case: SimpleNamespace, module: ModuleType, logged: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The events, recomputed from the draws themselves and from what one row can do, are the charged ones."""
    streams, ledger, log = logged(BUDGET.epsilon)
    module.Ledger = lambda budget: ledger
    steps = watch_steps(monkeypatch)
    moved_pairs = watch_pairs(case, module)
    released, _ = run(module, case.table, BUDGET, streams)
    # First the decimals of `wage`, where declared rows are enough: a row is in one class of them.
    rounded = [1] * counts_decimals(case)
    # Between the one-way and the two-way tables, looks into cells: a row moves them by 1, since `wage` alone has wide
    # ones. All are paid in advance, and those with nothing to divide are not made.
    looks = [1] * (len(steps) - len(rounded) - 1 - len(moved_pairs))
    charged: list[Any] = []
    for event in ledger.events:
        if isinstance(event, SelfComposed) and isinstance(event.event, Gaussian):
            assert len(looks) <= event.count
            charged += [event.event] * len(looks)
        else:
            charged.append(event)
    touched = iter(zip([*rounded, case.one_way, *looks, *moved_pairs], steps, strict=False))
    recomputed: list[Any] = []
    paid = 0
    for number, entry in enumerate(log):
        if entry[0] == "charge":
            paid += entry[1].count if isinstance(entry[1], SelfComposed) else 1
            continue
        drawn = sum(earlier[0] != "charge" for earlier in log[:number])
        assert paid > drawn  # every draw was paid before
        kind, scale, _ = entry
        if kind == "gaussian":
            moved, step = next(touched)
            recomputed.append(Gaussian(scale * step / math.sqrt(moved)))
        elif isinstance(recomputed[-1], SelfComposed):
            assert recomputed[-1].event.epsilon == pytest.approx(1 / scale, rel=1e-12)
            recomputed[-1] = SelfComposed(recomputed[-1].event, recomputed[-1].count + 1)
        else:
            recomputed.append(SelfComposed(BoundedRange(1 / scale), 1))
    assert [type(event) for event in recomputed] == [type(event) for event in charged]
    for drawn, written in zip(recomputed, charged, strict=True):
        if isinstance(written, Gaussian):
            # More noise than charged, by the part in 2^14 that covers the grid; never less.
            assert written.noise_multiplier <= drawn.noise_multiplier <= written.noise_multiplier * 1.0002
        else:
            assert drawn.count == written.count == case.rounds
            assert drawn.event.epsilon == pytest.approx(written.event.epsilon, rel=1e-12)
    certificate = Certificate.issue(
        method="x", ledger=ledger, arrays=released.arrays(), schema_digest="0" * 64, seeded=True
    )
    assert certificate.epsilon <= BUDGET.epsilon * (1 + 1e-9)
    assert epsilon(recomputed, BUDGET.delta).value <= certificate.epsilon * (1 + 1e-6)
    assert [entry.event for entry in certificate.entries] == list(ledger.events)


def test_the_ledger_is_what_was_drawn(case, copy_of, logged, seen_targets, monkeypatch):
    check_ledger(case, copy_of(case.module), logged, monkeypatch)


def test_what_follows_from_other_columns_is_counted_finely_or_pairs_again(seen_targets):
    """The charge is the same: which of the two it is, released tables tell."""
    charged = []
    for name, columns in (("finer two-way tables of 1 pair", {}), ("two-way tables of 1 pair of columns", {"b": 0})):
        table = following_table(20_000)
        codes = {n: table.codes(n) * 0 + columns.get(n, table.codes(n)) for n in table.schema.modelled}
        table = Table.from_codes(table.schema, codes)
        released, ledger = run(mixture, table, BUDGET, Streams.from_seed(0))
        assert len(released.guides.of) == (0 if columns else 1)
        assert ledger.entries[-1].purpose == name
        charged.append(list(ledger.events))
    assert charged[0] == charged[1]


def test_the_budget_is_spent_and_not_passed(case, seen_targets):
    _, ledger = run(case.module, case.table, BUDGET, Streams.from_seed(0))
    assert ledger.spent() <= BUDGET.epsilon * (1 + 1e-9)
    if case.pairs or case.module is independent:
        assert ledger.spent() >= 0.99 * BUDGET.epsilon


def test_without_a_budget_nothing_is_promised(case, seen_targets):
    released, ledger = run(case.module, case.table, Budget(math.inf, 1e-6), Streams.from_seed(0))
    assert set(ledger.events) == {NonPrivate()}
    counts = np.bincount(case.table.codes(next(iter(case.table.schema.modelled))))
    assert released.arrays()["fine.0"][: len(counts)] == pytest.approx(counts)


@pytest.mark.parametrize("bug", ["half the sensitivity", "half the noise", "free pairs"])
def test_planted_undercharging_is_caught(case, copy_of, logged, seen_targets, monkeypatch, bug):
    real = one_way_module.gaussian

    def wrong(values: np.ndarray, *, l2_sensitivity: float, noise_multiplier: float, ledger: Any, **rest: Any) -> Any:
        given = {"l2_sensitivity": l2_sensitivity, "noise_multiplier": noise_multiplier}
        if bug == "half the sensitivity":
            return real(values, ledger=ledger, **(given | {"l2_sensitivity": l2_sensitivity / 2}), **rest)
        if bug == "half the noise":
            ledger.charge(Gaussian(noise_multiplier), "x")
            given["noise_multiplier"] = noise_multiplier / 2
        return real(values, ledger=Ledger(Budget(1e6, 1e-6)), **given, **rest)

    target = pairs_module if bug == "free pairs" and case.pairs else one_way_module
    monkeypatch.setattr(target, "gaussian", wrong)
    with pytest.raises(AssertionError):
        check_ledger(case, copy_of(case.module), logged, monkeypatch)


# --- order and refusals ---


def module_columns(case: SimpleNamespace, module: ModuleType) -> Any:
    """What the columns' budget is divided into by the plan that this module makes."""
    greedy = module.make_plan(mixture.Config(), case.table.schema, BUDGET)
    return plan_columns(column_facts(case.table.schema), case.table.schema.rows, greedy.one_way_multiplier)


STAGES = [
    *((name, "one_way_multiplier") for name in CASES[1:]),
    *((name, "pair_multiplier") for name in CASES[1:4]),
    ("mixture that chooses", "selection_epsilon"),
    *(
        (name, "fine_multiplier") for name in ("mixture with a guide", "mixture split by label")
    ),  # fine tables, or pairs
]


@pytest.mark.parametrize(("case", "stage"), STAGES, indirect=["case"])
def test_a_stage_over_budget_is_refused_before_its_noise(case, stage, copy_of, logged, seen_targets):
    streams, ledger, log = logged(BUDGET.epsilon)
    module = copy_of(mixture)
    plan = make_plan(mixture.Config(), case.table.schema, BUDGET)
    greedy = 20 if stage == "selection_epsilon" else 1 / 20
    module.make_plan = lambda *_: dataclasses.replace(plan, **{stage: greedy * getattr(plan, stage)})
    module.Ledger = lambda budget: ledger
    with pytest.raises(BudgetError):
        run(module, case.table, BUDGET, streams)
    before = {"one_way_multiplier": 0, "selection_epsilon": 1, "pair_multiplier": 2 if case.rounds else 1}.get(stage, 2)
    paired = stage == "fine_multiplier"  # the noise of pairs is drawn by then, the last
    columns = plan_columns(column_facts(case.table.schema), case.table.schema.rows, plan.one_way_multiplier)
    rounded = bool(columns.rounding.scales)  # before all others
    zoom = columns.zoom
    looks = bool(before and zoom.columns)  # paid after the one-way tables
    # A greedy part of the columns shows at their first charge that passes the budget: decimals, or what comes after.
    if not before:
        rounding = module_columns(case, module).rounding
        rounded = bool(rounding.scales) and epsilon(rounding.events, BUDGET.delta).value <= BUDGET.epsilon
    assert len(ledger.events) == before + looks + rounded
    drawn = [entry for entry in log if entry[0] == "gaussian"]
    assert len(drawn) <= len(ledger.events) + looks * zoom.looks  # none without a charge
    drawn = drawn[rounded : len(drawn) - paired]
    assert len(drawn[:1]) == min(before, 1)
    # Looks that are paid for may find something to divide: their noise may be drawn, and no other.
    assert len(drawn[1:]) <= looks * zoom.looks
    if looks:
        _, look_scale = _grid(np.zeros(1, dtype=np.int64), math.sqrt(len(zoom.columns)), zoom.look_multiplier, "looks")
        assert [scale for _, scale, _ in drawn[1:]] == pytest.approx([look_scale] * len(drawn[1:]))
    assert not seen_targets


# --- only released numbers come out ---


def canned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mechanism answers the same whatever it is asked, by the shape of the question alone."""

    def same_counts(values: np.ndarray, *, ledger: Any, noise_multiplier: float, **_: Any) -> np.ndarray:
        ledger.charge(Gaussian(noise_multiplier), "canned")
        return np.random.default_rng(values.size).normal(20.0, 15.0, values.shape)

    def same_choice(scores: np.ndarray, *, ledger: Any, epsilon: float, **_: Any) -> int:
        ledger.charge(BoundedRange(epsilon), "canned")
        return 0

    monkeypatch.setattr(one_way_module, "gaussian", same_counts)
    monkeypatch.setattr(zoom_module, "gaussian", same_counts)
    monkeypatch.setattr(rounding_module, "gaussian", same_counts)
    monkeypatch.setattr(pairs_module, "gaussian", same_counts)
    monkeypatch.setattr(guides_module, "gaussian", same_counts)
    monkeypatch.setattr(pairs_module, "select", same_choice)


def check_post_processing(case: SimpleNamespace, module: ModuleType, seen: list[Any]) -> None:
    """With the mechanisms' answers held fixed, a change of rows changes no bit of what comes out."""
    none = Table.from_codes(case.table.schema, {n: case.table.codes(n)[:0] for n in case.table.schema.modelled})
    one = Table.from_codes(case.table.schema, {n: case.table.codes(n)[-1:] for n in case.table.schema.modelled})
    results = []
    for table in (case.table, one, none):
        seen.clear()
        released, ledger = run(module, table, BUDGET, Streams.from_seed(3))
        results.append((released, ledger, [dataclasses.asdict(targets) for targets in seen]))
    first, first_ledger, first_targets = results[0]
    for released, ledger, targets in results[1:]:
        assert released.facts() == first.facts()
        assert ledger.events == first_ledger.events
        assert released.arrays().keys() == first.arrays().keys()
        for name, array in released.arrays().items():
            assert array.dtype == first.arrays()[name].dtype
            np.testing.assert_array_equal(array, first.arrays()[name])
        for given, expected in zip(targets, first_targets, strict=True):
            for name, value in given.items():
                np.testing.assert_array_equal(value, expected[name])


def test_what_comes_out_depends_on_released_numbers_alone(case, seen_targets, monkeypatch, copy_of):
    canned(monkeypatch)
    check_post_processing(case, copy_of(case.module), seen_targets)


LEAKS = [
    *((name, bug) for name in CASES for bug in ("exact number of rows", "exact fine tables")),
    *((name, "bins from exact counts") for name in CASES[1:3]),  # those with columns of many cells
]


@pytest.mark.parametrize(("case", "bug"), LEAKS, indirect=["case"])
def test_planted_leaks_are_caught(case, seen_targets, monkeypatch, copy_of, bug):
    canned(monkeypatch)
    module = copy_of(case.module)
    private: list[Table] = []
    release = module.release_columns

    def exact(table: Table) -> dict[str, np.ndarray]:
        cells = one_way_module.fine_cells(table.schema)
        return {n: np.bincount(c.index(table.codes(n)), minlength=c.count).astype(float) for n, c in cells.items()}

    def leaking(table: Table, *args: Any, **options: Any) -> Any:
        private[:] = [table]
        one_way = release(table, *args, **options)
        if bug == "exact number of rows":
            return dataclasses.replace(one_way, total=float(table.rows + 1))
        if bug == "exact fine tables":
            return dataclasses.replace(one_way, counts=exact(table), cells=one_way_module.fine_cells(table.schema))
        return one_way

    def peeking(cells: Any, counts: np.ndarray, **options: Any) -> np.ndarray:
        found = next(c for c in exact(private[0]).values() if len(c) == len(counts))
        return coarse_groups(cells, found, **options)

    module.release_columns = leaking
    if bug == "bins from exact counts":
        module.coarse_groups = peeking
    with pytest.raises(AssertionError):
        check_post_processing(case, module, seen_targets)


def test_coarse_bins_follow_the_released_tables_alone(every_row, tiny_schema, neighbours, copy_of):
    """One row changed, the noisy one-way tables held fixed: no fine cell changes its coarse code."""
    module = copy_of(mixture)
    fixed = one_way_module.release_one_way(
        every_row,
        one_way_module.fine_cells(tiny_schema),
        noise_multiplier=1.0,
        streams=Streams.from_seed(0),
        ledger=Ledger(Budget(100.0, 1e-6)),
    )
    seen = []
    module.release_columns = lambda *_, **__: fixed

    def capture(table: Table, one_way: Any, coarse: Any, *_: Any, **__: Any) -> None:
        seen.append(coarse)
        raise InterruptedError

    module.release_pairs = capture
    for table in (every_row, *neighbours[2][1][::40]):
        with pytest.raises(InterruptedError):
            run(module, table, BUDGET, Streams.from_seed(0))
    for coarse in seen[1:]:
        assert (coarse.label, coarse.label_classes) == (seen[0].label, seen[0].label_classes)
        for name, groups in coarse.groups.items():
            np.testing.assert_array_equal(groups, seen[0].groups[name])


def test_the_first_draw_is_the_same_for_every_table(case, logged, copy_of, seen_targets):
    """Its noise and its size are public: one row, no row, or rows outside the domain make no difference."""
    first_draws = []
    for rows in (slice(None), slice(0, 1), slice(0, 0)):
        codes = {name: case.table.codes(name)[rows] for name in case.table.schema.modelled}
        streams, ledger, log = logged(BUDGET.epsilon)
        module = copy_of(case.module)
        module.Ledger = lambda budget, ledger=ledger: ledger
        run(module, Table.from_codes(case.table.schema, codes), BUDGET, streams)
        first_draws.append(next(entry for entry in log if entry[0] == "gaussian"))
    assert len(set(first_draws)) == 1
