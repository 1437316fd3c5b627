"""The plan is made before a row is read, spends the budget exactly, and keeps tables within its limits."""

import math
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import OptionError
from understudy.privacy import BoundedRange, Budget, Gaussian, SelfComposed, epsilon
from understudy.schema import Boolean, Categorical, Integer, Real, Schema
from understudy.synthesizers.mixture import plan as limits
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.mixture.plan import Config, Plan, make_plan
from understudy.table.cells import cells_of

KINDS = [
    Boolean(),
    Boolean(missing=True),
    Integer(low=0, high=3),
    Integer(low=0, high=10_000, missing=True),
    Real(low=0, high=1),
    Integer(low=0, high=400, bins=tuple(range(0, 400, 2))),
    Categorical(values=("a", "b", "c"), missing=True),
    Categorical(values=tuple(map(str, range(300)))),
]


@st.composite
def schemas(draw) -> Schema:
    kinds = draw(st.lists(st.integers(0, len(KINDS) - 1), min_size=1, max_size=25))
    columns = {f"c{number}": KINDS[kind] for number, kind in enumerate(kinds)}
    label = draw(st.sampled_from([None, *columns]))
    return Schema(rows=draw(st.sampled_from([1, 100, 5_000, 10**6])), label=label, columns=columns)


def events_of(plan: Plan) -> list:
    events: list = [Gaussian(plan.one_way_multiplier)]
    if plan.chosen_pairs:
        events.append(SelfComposed(BoundedRange(plan.selection_epsilon), plan.chosen_pairs))
    if plan.guided:
        events.append(Gaussian(plan.fine_multiplier))
    return [*events, Gaussian(plan.pair_multiplier)] if plan.pairs else events


def test_no_table_can_enter_a_plan():
    assert list(signature(make_plan).parameters) == ["config", "schema", "budget"]


@given(schemas(), st.sampled_from([0.1, 1.0, 20.0]), st.integers(0, 2**32))
@settings(max_examples=20)
def test_plans_keep_to_the_budget_and_to_their_limits(schema: Schema, asked: float, seed: int):
    budget = Budget(asked, 1e-6)
    plan = make_plan(Config(), schema, budget)
    assert plan == make_plan(Config(), schema, budget)
    assert epsilon(events_of(plan), budget.delta).value <= budget.epsilon * (1 + 1e-9)
    named = set(schema.modelled) - ({plan.label} if plan.label else set())
    assert set(plan.columns) == named
    assert all(first != second and {first, second} <= named for first, second in plan.always)
    assert len(set(map(frozenset, plan.always))) == len(plan.always)
    assert plan.pairs <= math.comb(len(named), 2)
    # Whatever the released one-way tables look like, the coarse tables stay within what was planned.
    rng = np.random.default_rng(seed)
    sizes = {}
    for name in plan.columns:
        cells = cells_of(schema.modelled[name])
        counts = rng.exponential(100, cells.count) * (rng.random(cells.count) < rng.random())
        groups = coarse_groups(cells, counts, bins=plan.bins, most_codes=plan.most_codes, rare=plan.pair_noise)
        sizes[name] = groups.max() + 1
        assert sizes[name] <= max(plan.bins if cells.ordered else plan.most_codes, 1) + cells.missing
    smallest = max(plan.bins, plan.most_codes) <= 2
    assert sum(sizes.values()) <= limits.MOST_TOTAL_CODES or smallest
    if not plan.chosen_pairs or plan.doubled:
        cells_in_all = plan.label_classes * sum(sizes[a] * sizes[b] for a, b in plan.always)
        assert cells_in_all <= limits.MOST_CELLS or smallest


@given(schemas())
@settings(max_examples=15)
def test_without_privacy_everything_is_measured_without_noise(schema: Schema):
    plan = make_plan(Config(), schema, Budget(math.inf, 1e-6))
    assert plan.one_way_multiplier == plan.pair_noise == plan.chosen_pairs == 0
    assert len(plan.always) == math.comb(len(plan.columns), 2)


def test_noise_of_a_count_is_that_of_its_release():
    schema = Schema(rows=10**6, label="a", columns={name: Boolean() for name in "abcd"})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    assert plan.label == "a"
    # A row moves the interactions of two columns of two codes by 1/2, a column by the root of 1/2.
    assert plan.pair_noise == pytest.approx(plan.pair_multiplier * math.sqrt(3 / 4 + 3 / 2))


def test_pairs_with_a_label_that_tables_are_not_split_by_carry_half_the_noise():
    columns = {"y": Real(low=0.0, high=1.0)} | {name: Boolean() for name in "abc"}
    plan = make_plan(Config(), Schema(rows=10**6, label="y", columns=columns), Budget(1.0, 1e-6))
    assert plan.label is None
    assert plan.weighted == "y"
    assert [plan.weight(pair) for pair in plan.always] == [2, 2, 2, 1, 1, 1]
    of_label = 1 - 1 / plan.sizes["y"]
    moved = 3 * 4 * of_label / 2 + 3 / 4 + of_label + 3 / 2
    both = (plan.pair_multiplier**-2 + plan.fine_multiplier**-2) ** -0.5  # no column is known to follow from another
    assert plan.pair_noise == pytest.approx(both * math.sqrt(moved))
    unlabelled = make_plan(Config(), Schema(rows=10**6, columns=columns), Budget(1.0, 1e-6))
    assert {unlabelled.weight(pair) for pair in unlabelled.always} == {1}


def test_where_all_pairs_are_measured_a_third_is_counted_double():
    schema = Schema(rows=10**6, label="c0", columns={f"c{number}": Boolean() for number in range(8)})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    assert plan.doubled
    assert plan.pairs == len(plan.always) == 21
    assert plan.chosen_pairs == 7
    assert plan.candidates == list(plan.always)
    chosen = plan.candidates[::3]
    weights = [plan.weight(pair, chosen) for pair in plan.always]
    assert weights == [2, 1, 1] * 7
    # Whichever are chosen, since all are of one size, a row moves all tables by this much.
    assert plan.pair_sensitivity == pytest.approx(math.sqrt(sum(weight**2 for weight in weights) / 4 + 7 / 2))


def test_pairs_with_a_numeric_label_are_not_left_to_choose_from():
    """They are counted double as it is."""
    columns = {"y": Real(low=0.0, high=1.0)} | {f"c{number}": Boolean() for number in range(6)}
    plan = make_plan(Config(), Schema(rows=10**6, label="y", columns=columns), Budget(1.0, 1e-6))
    assert plan.doubled
    assert plan.chosen_pairs == 5
    assert len(plan.candidates) == 15
    assert not any("y" in pair for pair in plan.candidates)
    of_label = 1 - 1 / plan.sizes["y"]
    free = [of_label, *[1 / 2] * 6]
    mean = (sum(free) ** 2 - sum(f**2 for f in free)) / (7 * 6)  # of all pairs, as the chosen ones are not known
    moved = 6 * 4 * of_label / 2 + 15 / 4 + 5 * 3 * mean + sum(free)
    assert plan.pair_sensitivity == pytest.approx(math.sqrt(moved))


def test_a_share_is_kept_for_columns_that_follow_from_others_where_runs_can_be_finer_than_bins():
    wide, narrow = Integer(low=0, high=999), Integer(low=0, high=20)

    def planned(rows: int, columns: dict, **options: bool) -> Plan:
        return make_plan(Config(**options), Schema(rows=rows, columns=columns), Budget(1.0, 1e-6))

    plan = planned(100_000, {"a": wide, "b": narrow})
    whole = plan.one_way_multiplier**-2 + plan.pair_multiplier**-2 + plan.fine_multiplier**-2
    assert plan.fine_multiplier**-2 == pytest.approx(limits.FINE_SHARE * whole)
    assert plan.guided == limits.MOST_GUIDED
    assert plan.runs(1) == limits.MOST_RUNS
    assert limits.FEWEST_RUNS <= planned(4_000, {"a": wide, "b": narrow}).runs(1) < limits.MOST_RUNS
    without = [
        planned(100_000, {"a": wide, "b": narrow}, guides=False),
        planned(100_000, {"a": narrow, "b": narrow}),
        planned(100_000, {"a": wide}),
        planned(500, {"a": wide, "b": narrow}),
    ]
    assert [(other.guided, other.fine_multiplier) for other in without] == [(0, 0.0)] * 4
    # If nothing follows from anything, pairs are as good as if nothing had been kept.
    assert plan.pair_noise / plan.pair_sensitivity == pytest.approx(without[0].pair_multiplier)


def test_few_pairs_are_measured_alike():
    schema = Schema(rows=10**6, columns={f"c{number}": Boolean() for number in range(5)})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    assert (plan.pairs, plan.chosen_pairs, plan.doubled) == (10, 0, False)
    assert plan.pair_sensitivity == pytest.approx(math.sqrt(10 / 4 + 5 / 2))


def test_columns_get_more_of_the_budget_where_pairs_drown():
    def share(rows: int, **options: float) -> float:
        schema = Schema(rows=rows, columns={f"c{number}": Boolean() for number in range(20)})
        plan = make_plan(Config(**options), schema, Budget(1.0, 1e-6))
        choosing = plan.chosen_pairs * plan.selection_epsilon**2 / 4
        parts = [1 / plan.one_way_multiplier**2, 1 / plan.pair_multiplier**2, choosing]
        return parts[0] / sum(parts)

    shares = [share(rows) for rows in (200, 1000, 10_000, 10**6)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.4
    assert shares[-1] == pytest.approx(0.2)
    assert share(10_000, one_way_share=0.3) == pytest.approx(0.3)


def test_a_single_column_gets_the_whole_budget():
    """There is no pair to keep a share for."""
    schema = Schema(rows=100, columns={"a": Boolean()})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    assert epsilon(events_of(plan), 1e-6).value == pytest.approx(1.0, rel=1e-3)


def test_wide_tables_of_few_rows_choose_and_always_measure_the_label():
    schema = Schema(rows=500, label="c3", columns={f"c{number}": Boolean() for number in range(20)})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    assert plan.chosen_pairs > 0
    assert plan.label is None
    assert len(plan.always) == 19
    assert all("c3" in pair for pair in plan.always)


@pytest.mark.parametrize(
    "given_options",
    [
        {"one_way_share": 0.0},
        {"one_way_share": 0.6},
        {"selection_share": 0.4},
        {"selection_share": -0.1},
        {"selection_share": math.nan},
        {"components": 0},
        {"components": 2.5},
        {"components": 10**9},
        {"fits": 10**9},
        {"steps": 10**30},
        {"bins": 1},
        {"steps": 0},
        {"one_way_share": "0.2"},
        {"components": True},
        {"split_label": "no"},
    ],
)
def test_wrong_settings_are_refused_by_name(given_options: dict):
    with pytest.raises(OptionError, match=next(iter(given_options))):
        Config(**given_options)


def eight_columns(rows: int, epsilon: float, **options) -> Plan:
    schema = Schema(rows=rows, columns={f"c{number}": Integer(low=0, high=30) for number in range(8)})
    return make_plan(Config(**options), schema, Budget(epsilon, 1e-6))


def test_some_fits_have_points_where_all_pairs_are_measured_with_noise():
    plan = eight_columns(20_000, 1.0)
    assert plan.doubled
    assert plan.noisy
    assert (plan.fits, plan.points) == (18, 6)
    assert eight_columns(20_000, 1.0, fits=1).points == 0
    assert eight_columns(20_000, 1.0, fits=6).points == 2
    few = eight_columns(500, 0.5)
    assert not few.doubled
    assert (few.fits, few.points) == (12, 0)
    clear = eight_columns(10**7, 10.0)
    assert not clear.noisy
    assert clear.points == 0


def test_components_are_as_many_as_twelve_fits_can_afford_and_as_noise_lets_them_learn():
    def planned(columns: int, rows: int, epsilon: float = 1.0) -> Plan:
        schema = Schema(rows=rows, columns={f"c{number}": Integer(low=0, high=99) for number in range(columns)})
        return make_plan(Config(), schema, Budget(epsilon, 1e-6))

    assert planned(8, 5_000).components == 2 * limits.FEW_COMPONENTS
    assert planned(8, 10**6).components > 2 * limits.FEW_COMPONENTS
    assert planned(8, 10**6, math.inf).components == limits.MOST_COMPONENTS
    # Many codes: as many as twelve fits can afford, down to as many as a fit needs; then fewer fits.
    found = [planned(columns, 40_000) for columns in (10, 45, 60, 80, 100)]
    codes = [sum(plan.sizes.values()) for plan in found]
    assert codes == sorted(codes)
    for plan, width in zip(found, codes, strict=True):
        alone = plan.fits - plan.points
        assert plan.components * width**2 * alone <= limits.STEP_PRODUCTS
        # Whole components, and whole fits: one may be lost to rounding.
        assert alone >= limits.MOST_FITS - 1 or plan.components == limits.FEW_COMPONENTS
    assert [found[0].components, found[-1].components] == [2 * limits.FEW_COMPONENTS, limits.FEW_COMPONENTS]
    assert limits.FEW_COMPONENTS < found[2].components < 2 * limits.FEW_COMPONENTS
    assert found[-1].fits < limits.MOST_FITS


def test_fits_end_earlier_where_rows_are_few_over_the_noise():
    plans = [eight_columns(rows, 1.0) for rows in (500, 6_000, 8_000, 200_000)]
    ends = [plan.end for plan in plans]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == limits.NOISY_END
    assert limits.CLEAR_END < ends[2] < limits.NOISY_END
    assert ends[-1] == eight_columns(10**6, math.inf).end == limits.CLEAR_END
