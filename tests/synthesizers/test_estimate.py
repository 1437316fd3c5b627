"""Estimates against simulated noise, against the tables that are really counted, and against each other."""

import math

import numpy as np
import pytest

from understudy.errors import OptionError
from understudy.privacy import Budget
from understudy.schema import Boolean, Schema
from understudy.synthesizers.columns import column_facts, plan_columns
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.mixture.estimate import coarse_codes, epsilon_for_error, estimate, noise_tvd
from understudy.synthesizers.mixture.plan import Config, make_plan
from understudy.synthesizers.one_way import fine_cells, one_way_noise

SCHEMA = Schema.loads(
    """
rows: 5000
label: ill
columns:
  age: {kind: integer, low: 0, high: 99}
  pay: {kind: real, low: 0, high: 1000, resolution: 0.01, missing: true}
  town: {kind: categorical, values: [a, b, c, d]}
  dose: {kind: real, low: 0, high: 10, resolution: 0.1, bins: [1, 5]}
  ill: {kind: boolean}
"""
)


def planned(epsilon: float, schema: Schema = SCHEMA, **options):
    config = Config(**options)
    plan = make_plan(config, schema, Budget(epsilon, 1e-6))
    return plan, estimate(plan, config, schema)


@pytest.mark.parametrize(("cells", "noise", "rows"), [(50, 3.0, 2_000), (400, 20.0, 50_000)])
def test_tvd_of_noise_is_what_simulated_noise_does(cells: int, noise: float, rows: int) -> None:
    drawn = np.random.default_rng(0).normal(0, noise, (4_000, cells))
    simulated = np.abs(drawn).sum(axis=1).mean() / (2 * rows)
    assert noise_tvd(cells, noise, rows) == pytest.approx(simulated, rel=0.01)
    assert noise_tvd(cells, 1.1 * noise, rows) != pytest.approx(simulated, rel=0.01)


def test_a_distance_is_at_most_one() -> None:
    assert noise_tvd(10**6, 100.0, 10) == 1.0


def test_noise_and_pairs_are_the_plans() -> None:
    plan, found = planned(1.0)
    cells = fine_cells(SCHEMA)
    columns = plan_columns(column_facts(SCHEMA), SCHEMA.rows, plan.one_way_multiplier)
    assert columns.zoom.columns  # a part of the budget goes to common values
    noise = one_way_noise(cells, columns.zoom.one_way_multiplier)
    assert {table.columns[0]: table.noise for table in found.one_way} == {n: rungs[0] for n, rungs in noise.items()}
    for table in found.two_way:
        # Of a table's noise, the part in its interactions is left.
        free = math.prod(1 - 1 / coarse_codes(SCHEMA.columns[name], plan) for name in table.columns)
        assert table.noise == pytest.approx(plan.pair_noise * math.sqrt(free))
    assert [table.columns for table in found.two_way] == list(plan.always)
    assert found.cells == sum(table.cells for table in found.one_way + found.two_way)
    assert found.two_way[0].error == pytest.approx(found.two_way[0].noise * math.sqrt(2 / math.pi))


def test_cells_are_those_that_are_counted() -> None:
    plan, found = planned(2.0)
    rng = np.random.default_rng(1)
    cells = fine_cells(SCHEMA)
    assert {table.columns[0]: table.cells for table in found.one_way} == {n: c.count for n, c in cells.items()}
    for name in plan.columns:
        counts = rng.uniform(20, 30, cells[name].count)  # smooth and frequent: every code is used
        groups = coarse_groups(cells[name], counts, bins=plan.bins, most_codes=plan.most_codes, rare=1.0)
        assert coarse_codes(SCHEMA.columns[name], plan) == groups.max() + 1


def test_a_table_split_by_the_label_is_summed_again() -> None:
    whole, found = planned(1.0)
    assert whole.label_classes == 2
    first = found.two_way[0]
    # Two independent noises a cell of the two columns' own table.
    assert first.tvd == pytest.approx(noise_tvd(first.cells // 2, first.noise * math.sqrt(2), 5000))


def test_more_epsilon_less_error_at_fixed_bins() -> None:
    errors = [planned(epsilon, bins=8)[1].two_way_tvd for epsilon in (0.5, 1, 2, 4, 8)]
    assert errors == sorted(errors, reverse=True)


def test_without_privacy_there_is_no_noise() -> None:
    found = planned(math.inf)[1]
    assert found.two_way_tvd == found.one_way_tvd == 0.0


def test_chosen_pairs_stand_in_for_what_is_not_known_yet() -> None:
    columns = "".join(f"  c{i}: {{kind: integer, low: 0, high: 99}}\n" for i in range(12))
    wide = Schema.loads(f"rows: 500\ncolumns:\n{columns}")
    plan, found = planned(0.5, wide)
    assert plan.chosen_pairs > 0
    assert found.chosen_pairs == plan.chosen_pairs
    assert found.two_way == ()
    assert found.chosen.cells == plan.bins**2
    assert found.two_way_tvd == pytest.approx(found.chosen.tvd)
    assert found.cells == sum(table.cells for table in found.one_way) + plan.chosen_pairs * plan.bins**2


def test_costs_grow_with_the_table() -> None:
    small = planned(1.0)[1]
    large = planned(1.0, Schema.loads(SCHEMA.dumps().replace("rows: 5000", "rows: 500000000")))[1]
    assert large.seconds > 100 > small.seconds
    assert large.memory_bytes > small.memory_bytes
    assert planned(1.0, steps=100_000)[1].seconds > small.seconds


@pytest.mark.parametrize("wanted", [0.3, 0.05, 0.01])
def test_epsilon_for_an_error_does_it_and_less_would_not(wanted: float) -> None:
    def at(epsilon: float):
        return planned(epsilon, bins=10)[1]

    epsilon = epsilon_for_error(at, wanted)
    assert at(epsilon).two_way_tvd <= wanted
    assert at(epsilon / 1.02).two_way_tvd > wanted


def test_epsilon_for_an_error_with_bins_that_jump() -> None:
    epsilon = epsilon_for_error(lambda e: planned(e)[1], 0.15)
    assert planned(epsilon)[1].two_way_tvd <= 0.15


@pytest.mark.parametrize("wanted", [0.0, 1.0, -1.0, math.nan, 1e-12])
def test_errors_out_of_reach_are_refused(wanted: float) -> None:
    with pytest.raises(OptionError, match="error"):
        epsilon_for_error(lambda e: planned(e, bins=10)[1], wanted)


def test_pairs_that_will_be_counted_double_lower_the_expected_distance() -> None:
    """A third of 28 equal tables has half the noise: the mean is what 28 - 9/2 tables of the full noise would have."""
    schema = Schema(rows=10**6, columns={f"c{number}": Boolean() for number in range(8)})
    plan = make_plan(Config(), schema, Budget(1.0, 1e-6))
    found = estimate(plan, Config(), schema)
    assert (plan.doubled, plan.chosen_pairs, len(found.two_way)) == (True, 9, 28)
    assert found.chosen is not None
    assert found.chosen.noise == pytest.approx(plan.pair_noise / 2 / 2)  # half by its weight, half by its two codes
    assert found.two_way_tvd == pytest.approx(found.two_way[0].tvd * (28 - 9 / 2) / 28)
    assert found.cells == sum(table.cells for table in found.one_way + found.two_way)
