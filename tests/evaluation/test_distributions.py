import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from understudy.errors import OptionError
from understudy.evaluation.cells import cell_labels, cut_tables, equal_cut, quantile_cut
from understudy.evaluation.distributions import (
    dimension_wise_probability,
    jsd,
    lost_categories,
    mu_kl,
    nist_three_way,
    one_way,
    tvd,
    wasserstein,
)
from understudy.evaluation.divergences import joint_tv_distance, wasserstein1
from understudy.evaluation.inputs import open_table
from understudy.schema import Schema
from understudy.table.cells import cells_of


def brute_force_tvd(real: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> float:
    shares = [frame[columns].value_counts(normalize=True, dropna=False) for frame in (real, other)]
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)


def coded(rows: int, seed: int) -> tuple[pd.DataFrame, Schema]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(0, size, rows) for name, size in (("a", 2), ("b", 3), ("c", 5), ("d", 4))})
    sizes = {"a": 2, "b": 3, "c": 5, "d": 4}
    return frame, Schema(columns={n: {"kind": "categorical", "values": list(range(k))} for n, k in sizes.items()})


@pytest.mark.parametrize("order", [1, 2, 3])
def test_tvd_is_that_of_brute_force_over_all_sets(order):
    real, schema = coded(200, 0)
    other, _ = coded(90, 1)
    expected = [brute_force_tvd(real, other, list(names)) for names in itertools.combinations("abcd", order)]
    assert tvd(real, other, schema, order=order).value == pytest.approx(np.mean(expected))


def test_tvd_parts_are_means_over_the_sets_of_a_column():
    real, schema = coded(200, 0)
    other, _ = coded(90, 1)
    expected = np.mean([brute_force_tvd(real, other, ["a", name]) for name in "bcd"])
    assert tvd(real, other, schema, order=2).per_column["a"] == pytest.approx(expected)


def test_large_joint_domains_give_the_same_distance_as_small_ones():
    rng = np.random.default_rng(0)
    left, right = ([rng.integers(0, 50, n) for _ in range(3)] for n in (300, 200))
    dense = joint_tv_distance(left, right, [50, 50, 50])
    assert dense == pytest.approx(joint_tv_distance(left, right, [50, 50, 50], dense_limit=10))
    # Sizes whose product passes 64 bits.
    assert dense == pytest.approx(joint_tv_distance(left, right, [2**31, 2**31, 2**31]))


def test_random_sets_are_as_many_as_asked_for_and_the_same_for_a_seed():
    real, schema = coded(200, 0)
    other, _ = coded(90, 1)
    some = tvd(real, other, schema, order=2, sets=3, seed=4)
    assert some.details["sets"] == 3
    assert "3 of 6 sets" in some.notes[0]
    assert some.value == tvd(real, other, schema, order=2, sets=3, seed=4).value
    everything = {tvd(real, other, schema, order=2, sets=3, seed=seed).value for seed in range(5)}
    assert len(everything) > 1


def test_order_must_be_one_two_or_three():
    real, schema = coded(20, 0)
    with pytest.raises(OptionError, match="order must be 1, 2 or 3, got 4"):
        tvd(real, real, schema, order=4)


def test_numeric_columns_are_cut_at_real_quantiles_of_equal_share():
    values = np.arange(1000, dtype=np.uint16)
    cells = quantile_cut(values, missing=65535, bins=20)(values)
    counts = np.bincount(cells)
    assert counts[1:].min() >= 49
    assert counts.max() <= 51 + 1


def test_values_that_no_real_row_reaches_share_no_cell_with_real_ones():
    for dtype in (np.uint8, np.float32):
        real = np.full(50, 7, dtype=dtype)
        cut = quantile_cut(real, missing=255, bins=20)
        assert len(set(cut(np.array([6, 7, 8], dtype=dtype)).tolist())) == 3
        assert len(set(equal_cut(real, 255, 100)(np.array([6, 7, 8], dtype=dtype)).tolist())) == 3


def test_a_real_that_is_off_in_its_last_digit_is_not_another_value():
    real = np.sin(np.arange(6.0)).astype(np.float32)
    cut = quantile_cut(np.repeat(real, 50), missing=0, bins=20)
    for off in (np.float32(-np.inf), np.float32(np.inf)):
        assert (cut(np.nextafter(real, off)) == cut(real)).all()
    assert len(set(cut(real).tolist())) == len(real)
    assert cut(np.array([-1.1, 1.1], dtype=np.float32)).tolist() == [0, len(real) + 1]


def test_public_bins_are_used_where_the_schema_has_them():
    schema = Schema(columns={"x": {"kind": "integer", "low": 0, "high": 100, "bins": [50]}})
    real = pd.DataFrame({"x": [10, 20, 60, 70]})
    assert tvd(real, pd.DataFrame({"x": [0, 49, 50, 100]}), schema, order=1).value == 0.0
    assert tvd(real, pd.DataFrame({"x": [0, 49, 1, 2]}), schema, order=1).value == 0.5
    assert one_way(real, real, schema)["x"]["cells"] == ["below 50", "from 50"]


def test_public_bins_are_those_of_the_table_room():
    for facts in ({"kind": "integer", "low": -3, "high": 9}, {"kind": "real", "low": -3, "high": 9, "resolution": 0.5}):
        schema = Schema(columns={"x": {**facts, "bins": [-1.0, 2.2, 9.0]}})
        values = np.arange(-3, 9.1, facts.get("resolution", 1))
        view = open_table(pd.DataFrame({"x": values}), schema, role="real")
        mine = cut_tables(view, view, None).real["x"]
        cells = cells_of(schema.columns["x"])
        expected = cells.bins[np.arange(len(values))]
        np.testing.assert_array_equal(
            np.unique(mine, return_inverse=True)[1], np.unique(expected, return_inverse=True)[1]
        )


def test_huge_integers_stay_exact():
    schema = Schema(columns={"x": {"kind": "integer", "low": -(2**62), "high": 2**62}})
    real = pd.DataFrame({"x": [2**60, 2**60 + 1] * 50})
    assert tvd(real, pd.DataFrame({"x": [2**60] * 100}), schema, order=1).value == 0.5
    many = pd.DataFrame({"x": 2**60 + np.arange(100)})
    assert tvd(many, pd.DataFrame({"x": 2**60 + np.arange(50)}), schema, order=1).value == pytest.approx(0.5, abs=0.06)


def test_nist_score_by_hand():
    schema = Schema(columns={name: {"kind": "integer", "low": 0, "high": 1000} for name in "xyz"})
    real = pd.DataFrame({name: [0, 1000] for name in "xyz"})
    # 9 falls into the first of 100 bins between 0 and 1000, 11 into the second.
    same = nist_three_way(real, pd.DataFrame({"x": [9, 1000], "y": [0, 1000], "z": [0, 1000]}), schema)
    other = nist_three_way(real, pd.DataFrame({"x": [11, 1000], "y": [0, 1000], "z": [0, 1000]}), schema)
    assert (same.value, same.details["score"]) == (0.0, 1e6)
    assert (other.value, other.details["score"]) == (1.0, 5e5)


def test_wasserstein_is_scipys_on_the_public_range():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=300), rng.normal(0.3, 2, size=211)
    assert wasserstein1(first, second) == pytest.approx(stats.wasserstein_distance(first, second))
    schema = Schema(columns={"x": {"kind": "integer", "low": 0, "high": 10}})
    assert wasserstein(pd.DataFrame({"x": [0, 0]}), pd.DataFrame({"x": [10, 5]}), schema).value == pytest.approx(0.75)


def test_divergences_count_missing_as_a_category(schema, real):
    columns = Schema(columns={"town": schema.columns["town"]})
    lost = real[["town"]].assign(town=real.town.fillna("Bern"))
    for metric in (jsd, mu_kl):
        assert metric(real, lost, columns).value > 0.001


def test_divergences_by_hand():
    schema = Schema(columns={"x": {"kind": "categorical", "values": ["a", "b"]}})
    real, other = pd.DataFrame({"x": ["a", "b"]}), pd.DataFrame({"x": ["a", "a"]})
    mixture = 0.5 * (0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25)) + 0.5 * np.log(1 / 0.75)
    assert jsd(real, other, schema).value == pytest.approx(mixture)
    mu = np.exp(-2)
    assert mu_kl(real, other, schema).value == pytest.approx(
        (0.5 + mu) * (np.log((0.5 + mu) / (1 + mu)) + np.log((0.5 + mu) / mu))
    )


def test_an_infinite_divergence_is_left_out_with_a_reason():
    columns = {"x": {"kind": "categorical", "values": ["a", "b"]}, "y": {"kind": "boolean"}}
    schema = Schema(columns=columns)
    real = pd.DataFrame({"x": ["a", "a"], "y": [True, False]})
    result = mu_kl(real, pd.DataFrame({"x": ["b", "b"], "y": [True, True]}), schema)
    assert "infinite" in result.undefined_columns["x"]
    assert "x" in result.notes[0]
    assert result.value == result.per_column["y"]


def test_dimension_wise_probability_by_hand():
    schema = Schema(columns={name: {"kind": "boolean", "missing": True} for name in "abc"})
    real = pd.DataFrame({"a": [True, False], "b": [True, True], "c": [None, True]})
    other = pd.DataFrame({"a": [True, True], "b": [True, False], "c": [None, None]})
    result = dimension_wise_probability(real, other, schema)
    assert dict(result.per_column) == {"a": 0.5, "b": 0.5}
    assert result.details["points"] == {"a": (0.5, 1.0), "b": (1.0, 0.5)}
    assert "c" in result.undefined_columns
    assert result.details["correlation"] is None
    assert "three" in result.details["correlation_undefined"]


def test_lost_categories_names_them_and_collapsed_columns():
    columns = {"x": {"kind": "categorical", "values": ["a", "b", "c"]}, "n": {"kind": "integer", "low": 0, "high": 9}}
    schema = Schema(columns=columns)
    real = pd.DataFrame({"x": ["a", "b", "a"], "n": [1, 2, 3]})
    result = lost_categories(real, pd.DataFrame({"x": ["a", "a"], "n": [1, 1]}), schema)
    assert result.value == 0.5
    assert result.details == {"lost": {"x": ["b"]}, "collapsed": ["x", "n"]}


def test_histograms_sum_to_one_and_agree_with_the_distance(real, synthetic, schema):
    histograms = one_way(real, synthetic, schema)
    distances = tvd(real, synthetic, schema, order=1).per_column
    for name, column in histograms.items():
        assert sum(column["real"]) == pytest.approx(1.0)
        gap = np.abs(np.array(column["real"]) - np.array(column["synthetic"])).sum() / 2
        assert gap == pytest.approx(distances[name]) == pytest.approx(column["distance"])
        assert len(column["cells"]) == len(column["real"]) == len(column["synthetic"])


def test_cells_are_named_for_a_reader(real, schema):
    view = open_table(real, schema, role="real")
    cut = cut_tables(view, view, None, bins=4)
    assert cell_labels(view.facts["town"], None) == ["Aachen", "Bern", "Córdoba", "Žilina", "(missing)", "(outside)"]
    days = cell_labels(view.facts["seen"], cut.cuts["seen"])
    assert days[0].startswith("up to 2020-0")
    assert days[-1] == "(missing)"
    for name, cuts in cut.cuts.items():
        assert len(cell_labels(view.facts[name], cuts)) == cut.sizes[name]
    assert any(label == "above 90" for label in cell_labels(view.facts["age"], cut.cuts["age"]))
