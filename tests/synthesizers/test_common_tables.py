"""Of every method: odd tables are learnt from like others, wherever they come from."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from common_helpers import REAL, SCHEMA, check_form, is_refused_for_its_label, quick_fit

import understudy as us
from understudy.errors import DataError
from understudy.schema import Schema
from understudy.synthesizers.api import Model, load
from understudy.table.read import read_table


def test_a_table_of_one_row(method: str):
    rows = quick_fit(method, REAL.iloc[:1]).sample(20, seed=0)
    check_form(rows, SCHEMA, 20)


def test_columns_in_which_nothing_happens(method: str):
    """Constant, all missing, and of one declared value: nothing about them is learnt from the rows for free."""
    schema = Schema.loads("""
rows: 200
columns:
  constant: {kind: integer, low: 0, high: 9}
  absent: {kind: real, low: 0, high: 1, missing: true}
  only: {kind: categorical, values: [yes please]}
  also: {kind: boolean}
""")
    rows = 200
    frame = pd.DataFrame(
        {
            "constant": np.full(rows, 3),
            "absent": np.full(rows, np.nan),
            "only": ["yes please"] * rows,
            "also": np.arange(rows) % 2 == 0,
        }
    )
    if is_refused_for_its_label(method, frame, schema):
        return
    drawn = quick_fit(method, frame, schema, epsilon=50.0).sample(300, seed=0)
    check_form(drawn, schema, 300)
    assert (drawn["only"] == "yes please").all()
    assert (drawn["constant"] == 3).mean() > 0.8
    assert drawn["absent"].isna().mean() > 0.8


@pytest.mark.parametrize("label", ["", "label: b\n"], ids=["no label", "label"])
def test_two_columns(method: str, label: str):
    schema = Schema.loads(f"rows: 100\n{label}columns: {{a: {{kind: integer, low: 0, high: 3}}, b: {{kind: boolean}}}}")
    frame = pd.DataFrame({"a": np.arange(100) % 4, "b": np.arange(100) % 3 == 0})
    if is_refused_for_its_label(method, frame, schema):
        return
    check_form(quick_fit(method, frame, schema).sample(40, seed=0), schema, 40)


def test_one_column(method: str):
    schema = Schema.loads("rows: 100\nlabel: a\ncolumns: {a: {kind: integer, low: -2, high: 1}}")
    if is_refused_for_its_label(method, None, schema):
        return
    drawn = quick_fit(method, pd.DataFrame({"a": [-2, 1] * 50}), schema, epsilon=30.0).sample(100, seed=0)
    check_form(drawn, schema, 100)
    assert drawn["a"].isin([-2, 1]).mean() > 0.8


def test_sixty_columns_with_odd_names(method: str, tmp_path: Path):
    names = [
        "naïve café",
        "<script>alert('x')</script>",
        "a b  c",
        "ключ",
        "表",
        "yes",
        "null",
        "1e3",
        "'q'",
        'say "hi"',
    ]
    names += ["../../up", "weights", "fine.0", "groups.1", "facts.json", "label", "back\\slash", "a: b", "# no comment"]
    names += [f"column {number}" for number in range(60 - len(names))]
    columns = {name: us.schema.Boolean() if number % 2 else us.schema.Ordinal(values=("lo", "mid", "<b>&amp;</b>"))
               for number, name in enumerate(names)}  # fmt: skip
    schema = Schema(rows=100, columns=columns)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            name: rng.random(80) < 0.5 if column.kind == "boolean" else rng.choice(column.values, 80)
            for name, column in columns.items()
        }
    )
    if is_refused_for_its_label(method, frame, schema):
        return
    model = quick_fit(method, frame, schema)
    model.save(tmp_path / "wide.understudy")
    drawn = load(tmp_path / "wide.understudy").sample(30, seed=1)
    check_form(drawn, schema, 30)
    pd.testing.assert_frame_equal(drawn, model.sample(30, seed=1))


def test_a_table_without_rows_is_refused_when_it_is_read(method: str):
    with pytest.raises(DataError, match="empty"):
        quick_fit(method, REAL.iloc[:0])


def test_files_frames_and_tables_are_the_same(model: Model, tmp_path: Path):
    path = tmp_path / "people.csv"
    REAL.to_csv(path, index=False)
    pd.testing.assert_frame_equal(quick_fit(model.method, path).sample(30, seed=0), model.sample(30, seed=0))
    again = quick_fit(model.method, read_table(REAL, SCHEMA))
    assert again.certificate.arrays_digest == model.certificate.arrays_digest
