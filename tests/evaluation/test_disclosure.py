import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError
from understudy.evaluation import neighbours
from understudy.evaluation.attacks import attribute_inference, best_threshold, membership_inference
from understudy.evaluation.disclosure import dcr_share, exact_copies
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import open_table
from understudy.evaluation.neighbours import nearest, nearest_without, points
from understudy.schema import Schema


def test_nearest_is_brute_force_in_any_block(monkeypatch):
    rng = np.random.default_rng(0)
    queries, rows = rng.normal(size=(37, 5)).astype(np.float32), rng.normal(size=(23, 5)).astype(np.float32)
    every = np.sqrt(((queries[:, None] - rows) ** 2).sum(axis=2))
    for cells in (1, 50, 1 << 20):
        monkeypatch.setattr(neighbours, "BLOCK_CELLS", cells)
        distance, index = nearest(queries, rows)
        np.testing.assert_array_equal(index, every.argmin(axis=1))
        np.testing.assert_allclose(distance, every.min(axis=1), rtol=1e-5)


def test_nearest_without_a_column_is_brute_force(real, synthetic, schema):
    r, s = open_table(real, schema, role="real"), open_table(synthetic, schema, role="synthetic")
    encoder = Encoder.of(r)
    asked, base = points(encoder, r), points(encoder, s)
    found = nearest_without(asked, base, encoder, ["age", "town"])
    for name, index in found.items():
        (block,) = (block for block in encoder.blocks if block.name == name)
        kept = np.r_[0 : block.start, block.stop : encoder.width]
        every = ((asked[:, None, kept] - base[:, kept]) ** 2).sum(axis=2)
        np.testing.assert_allclose(every[np.arange(len(asked)), index], every.min(axis=1), atol=1e-5)


def test_a_category_and_a_range_weigh_the_same(schema, real):
    view = open_table(real, schema, role="real")
    encoder = Encoder.of(view)
    rows = pd.concat([real.iloc[[0]]] * 3, ignore_index=True)
    rows.loc[1, "degree"] = "none" if rows.degree[0] != "none" else "school"
    rows["age"] = [18, 18, 90]
    coded = points(encoder, open_table(rows, schema, role="synthetic"))
    assert np.linalg.norm(coded[0] - coded[1]) == pytest.approx(1.0)
    assert np.linalg.norm(coded[0] - coded[2]) == pytest.approx(1.0)


def test_exact_copies_counts_rows_that_only_one_person_has(real, schema, make_people):
    twice = pd.concat([real, real.iloc[:100]], ignore_index=True)
    table = pd.concat([real.iloc[:50], real.iloc[200:250], make_people(100, 9)], ignore_index=True)
    result = exact_copies(twice, table, schema, holdout=make_people(100, 8))
    assert result.value == 0.5
    assert result.details["copies_of_unique_rows"] == 0.25
    assert result.reference == 0.0
    assert result.interval[0] < 0.5 < result.interval[1]


def test_missing_numbers_and_signed_zeros_are_equal_cells(schema, real):
    first, second = real.iloc[[0]].assign(wage=0.0), real.iloc[[0]].assign(wage=-0.0)
    assert exact_copies(first, second, schema).value == 1.0
    first, second = real.iloc[[0]].assign(wage=np.nan), real.iloc[[0]].assign(wage=None)
    assert exact_copies(first, second, schema).value == 1.0


def test_distances_that_tie_count_half():
    schema = Schema(columns={"a": {"kind": "boolean"}, "b": {"kind": "boolean"}})
    table = pd.DataFrame({"a": [True, False] * 40, "b": [True, True, False, False] * 20})
    result = dcr_share(table, table, schema, holdout=table)
    assert (result.value, result.details["ties"]) == (0.5, 1.0)


def test_attacks_see_half_copied_tables_and_not_fresh_ones(schema, make_people):
    real, holdout, fresh = make_people(900, 1), make_people(900, 2), make_people(900, 3)
    leaky = pd.concat([real.iloc[:600], fresh.iloc[:300]], ignore_index=True)
    for metric, least in ((dcr_share, 0.7), (membership_inference, 0.4), (attribute_inference, 0.2)):
        copied = metric(real, leaky, schema, holdout=holdout)
        honest = metric(real, fresh, schema, holdout=holdout)
        assert copied.value > least
        assert copied.interval[0] > honest.value
        assert honest.interval[0] - 0.03 <= honest.ideal <= honest.interval[1] + 0.03
        assert copied.interval[0] <= copied.value <= copied.interval[1]


def test_the_advantage_is_measured_on_other_targets_than_the_threshold(schema, make_people):
    """Tuned and measured on the same targets, a harmless table would always show an advantage."""
    values = []
    for seed in range(12):
        real, fresh, holdout = (make_people(120, 10 * seed + part) for part in range(3))
        values.append(membership_inference(real, fresh, schema, holdout=holdout, seed=seed).value)
    assert min(values) < 0
    assert abs(np.mean(values)) < 0.12


def test_thresholds_are_the_best_there_are():
    rng = np.random.default_rng(0)
    members, others = rng.normal(0.5, 1, 60), rng.normal(0, 1, 40)
    advantage, cut = best_threshold(members, others)
    every = [float((members >= c).mean() - (others >= c).mean()) for c in np.r_[members, others]]
    assert advantage == pytest.approx(max(every))
    assert (members >= cut).mean() - (others >= cut).mean() == pytest.approx(advantage)


def test_too_few_rows_are_a_reason(real, synthetic, schema, holdout):
    for metric in (dcr_share, membership_inference, attribute_inference):
        result = metric(real, synthetic, schema, holdout=holdout.iloc[:20])
        assert result.value is None
        assert "holdout rows are needed" in result.undefined


def test_attribute_inference_of_chosen_columns(real, synthetic, schema, holdout):
    result = attribute_inference(real, synthetic, schema, holdout=holdout, columns=("sick",))
    assert set(result.per_column) == {"sick"}
    with pytest.raises(OptionError, match="columns must be modelled columns"):
        attribute_inference(real, synthetic, schema, holdout=holdout, columns=("patient",))
