import numpy as np
import pandas as pd
import pytest

from understudy.errors import DataError, OptionError
from understudy.evaluation.distributions import lost_categories, tvd
from understudy.evaluation.encoding import MOST_LEVELS, Encoder
from understudy.evaluation.inputs import open_table
from understudy.evaluation.suite import evaluate
from understudy.schema import Schema

SECRET = "Zanzibar"


def test_synthetic_cells_outside_the_domain_are_counted_not_refused(real, synthetic, schema):
    odd = synthetic.copy()
    odd["age"] = odd["age"].astype(float)
    odd.loc[:9, "town"] = "Atlantis"
    odd.loc[:4, "age"] = 500.0
    odd.loc[5:6, "age"] = 39.6
    odd["wage"] = odd["wage"].astype(object)
    odd.loc[:2, "wage"] = "plenty"
    view = open_table(odd, schema, role="synthetic")
    assert view.outside == {"town": 10, "age": 7, "wage": 3}
    assert (view.codes["town"][:10] == view.facts["town"].outside).all()
    assert (view.values("age")[:5] == 90).all()
    assert (view.values("age")[5:7] == 40).all()
    assert np.isnan(view.values("wage")[:3]).all()


def test_undeclared_categories_count_as_wrong_mass():
    schema = Schema(columns={"x": {"kind": "categorical", "values": ["a", "b"]}})
    real = pd.DataFrame({"x": ["a", "b"]})
    result = tvd(real, pd.DataFrame({"x": ["a", "new", "newer", "b"]}), schema, order=1)
    assert result.value == 0.5
    assert lost_categories(real, pd.DataFrame({"x": ["new"]}), schema).value == 1.0


def test_missing_where_the_schema_says_never(real, synthetic, schema):
    odd = synthetic.copy()
    odd["degree"] = odd["degree"].astype(object)
    odd.loc[:3, "degree"] = None
    view = open_table(odd, schema, role="synthetic")
    assert view.outside == {"degree": 4}
    assert (view.codes["degree"][:4] == view.facts["degree"].missing).all()


def test_a_real_table_that_does_not_fit_is_refused_without_its_values(real, synthetic, schema):
    wrong = real.assign(town=SECRET)
    with pytest.raises(DataError) as raised:
        tvd(wrong, synthetic, schema)
    assert "column 'town': 400 cells not among the declared values" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert raised.value.__cause__ is None
    # Numbers beyond the bounds are clipped, as when fitting.
    assert tvd(real.assign(age=1000), synthetic, schema).value is not None


@pytest.mark.parametrize("role", ["real", "synthetic", "holdout"])
def test_missing_columns_and_empty_tables_are_clear_errors(role, real, synthetic, schema, holdout):
    tables = {"real": real, "synthetic": synthetic, "holdout": holdout}

    def run(table):
        changed = {**tables, role: table}
        return evaluate(changed["real"], changed["synthetic"], schema, holdout=changed["holdout"])

    with pytest.raises(DataError, match=f"the {role} table lacks 2 of the schema's 9 columns: 'age', 'town'"):
        run(tables[role].drop(columns=["age", "town"]))
    with pytest.raises(DataError, match=f"the {role} table has no rows"):
        run(tables[role].iloc[:0])


def test_columns_beside_the_schema_are_not_looked_at(real, synthetic, schema):
    assert tvd(real.assign(extra=SECRET), synthetic, schema) == tvd(real, synthetic.assign(more=1), schema)


def test_a_schema_is_needed(real, synthetic, schema, holdout):
    with pytest.raises(OptionError, match="schema must be a Schema, got DataFrame"):
        tvd(real, synthetic, holdout)
    with pytest.raises(DataError, match="must be a path, a DataFrame or an Arrow table, got list"):
        tvd([1, 2], synthetic, schema)


def test_files_give_what_frames_give(tmp_path, real, synthetic, schema):
    real.to_csv(tmp_path / "real.csv", index=False)
    synthetic.to_parquet(tmp_path / "synthetic.parquet")
    expected = tvd(real, synthetic, schema)
    assert tvd(tmp_path / "real.csv", str(tmp_path / "synthetic.parquet"), schema) == expected
    (tmp_path / "bad.csv").write_text("age,town\n1,2\n3\n", encoding="utf-8")
    ragged = Schema(columns={"age": schema.columns["age"]})
    with pytest.raises(DataError, match="1 rows with another number of fields"):
        tvd(real, tmp_path / "bad.csv", ragged, order=1)


def test_views_cannot_be_written_to(real, schema):
    view = open_table(real, schema, role="real")
    with pytest.raises(ValueError, match="read-only"):
        view.codes["age"][0] = 1


def test_samples_depend_on_contents_and_seed_alone(real, schema):
    first = open_table(real, schema, role="real")
    second = open_table(real.iloc[::-1], schema, role="real")
    left, right = first.take(first.sample(50, 3)), second.take(second.sample(50, 3))
    for name in first.facts:
        np.testing.assert_array_equal(left.codes[name], right.codes[name])
    assert not np.array_equal(first.sample(50, 3), first.sample(50, 4))


def test_samples_of_few_distinct_rows_keep_their_shares():
    schema = Schema(columns={"x": {"kind": "boolean"}})
    view = open_table(pd.DataFrame({"x": [True] * 300 + [False] * 700}), schema, role="real")
    assert view.codes["x"][view.sample(400, 0)].mean() == pytest.approx(0.3, abs=0.07)


def test_a_missing_number_is_told_from_one_in_the_middle():
    schema = Schema(columns={"x": {"kind": "real", "low": 0, "high": 10, "missing": True}})
    view = open_table(pd.DataFrame({"x": [5.0, None]}), schema, role="real")
    np.testing.assert_array_equal(Encoder.of(view).one_hot(view), [[0.5, 0.0], [0.5, 1.0]])


def test_encodings_share_columns_and_stay_narrow():
    values = [f"v{at}" for at in range(1000)]
    schema = Schema(
        columns={"x": {"kind": "categorical", "values": values}, "n": {"kind": "integer", "low": 0, "high": 4}}
    )
    real = pd.DataFrame({"x": values * 2, "n": [0, 4] * 1000})
    other = pd.DataFrame({"x": ["v1", "strange"], "n": [2, 4]})
    encoder = Encoder.of(open_table(real, schema, role="real"))
    assert encoder.width == MOST_LEVELS + 2
    encoded = encoder.one_hot(open_table(other, schema, role="synthetic"))
    np.testing.assert_array_equal(encoded[:, :MOST_LEVELS].sum(axis=1), [1, 1])
    np.testing.assert_allclose(encoded[:, MOST_LEVELS], [0.5, 1.0])
    assert encoder.without("x").width == 2


def test_a_column_without_a_name_is_refused_by_its_place(real, schema):
    odd = real.rename(columns={real.columns[-1]: None})
    with pytest.raises(DataError, match=rf"column {len(real.columns)} \(counted from 1\) has no name"):
        open_table(odd, schema, role="synthetic")
