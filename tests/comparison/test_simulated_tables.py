"""Tables from a schema alone: of its types, repeatable, with something in them to learn."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.comparison.simulated import simulate, simulated_codes
from understudy.errors import OptionError, SchemaError
from understudy.evaluation.parallel import one_thread
from understudy.schema import Schema
from understudy.table.read import read_table
from understudy.table.table import Table

WIDE = Schema.loads("""
rows: 4000
label: sick
columns:
  patient: {kind: id}
  notes: {kind: text}
  age: {kind: integer, low: 18, high: 90}
  gain: {kind: integer, low: 0, high: 50000, log: true, zero_inflated: true, missing: true}
  change: {kind: real, low: -10, high: 10, resolution: 0.5, zero_inflated: true}
  wage: {kind: real, low: 0, high: 1000, missing: true}
  cost: {kind: real, low: 0, high: 50000, log: true}
  huge: {kind: integer, low: -9223372036854775808, high: 9223372036854775805}
  town: {kind: categorical, values: [Aachen, Bern, Ulm, Zell], missing: true}
  one: {kind: categorical, values: [only]}
  degree: {kind: ordinal, values: [none, school, college]}
  smoker: {kind: boolean, missing: true}
  sick: {kind: boolean}
  seen: {kind: datetime, low: 2020-01-01, high: 2021-12-31, resolution: day}
""")


def test_every_kind_of_column_reads_back() -> None:
    table = simulate(WIDE)
    assert len(table) == 4000
    assert "notes" not in table
    read = read_table(table, WIDE)
    for name, codes in simulated_codes(WIDE).items():
        assert np.array_equal(read.codes(name), codes, equal_nan=True), name
    assert read.notes == {}  # nothing had to be clipped


def test_missing_cells_and_zeros_are_where_they_are_declared() -> None:
    table = simulate(WIDE)
    for name, column in WIDE.modelled.items():
        share = table[name].isna().mean()
        assert (0.005 < share < 0.4) if column.missing else share == 0, name
    assert 0.15 < (table["gain"] == 0).sum() / table["gain"].notna().sum() < 0.75
    assert 0.15 < (table["change"] == 0).mean() < 0.8


def test_columns_hang_together_and_the_label_can_be_predicted() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    def area(codes: pd.DataFrame, truth: np.ndarray) -> float:
        with one_thread():  # teams of threads wait for each other on a busy machine
            model = HistGradientBoostingClassifier(max_iter=20).fit(codes[:3000], truth[:3000])
            return roc_auc_score(truth[3000:], model.predict_proba(codes[3000:])[:, 1])

    numbers = ["age", "wage", "cost", "change"]
    correlations, areas = [], []
    for seed in range(3):
        table = simulate(WIDE, seed=seed)
        matrix = table[numbers].corr(method="spearman").to_numpy()
        correlations.append(np.abs(matrix[np.triu_indices(len(numbers), 1)]).max())
        codes = pd.DataFrame(simulated_codes(WIDE, seed=seed)).drop(columns="sick").astype(float)
        sick = table["sick"].to_numpy(dtype=bool)
        areas.append(area(codes, sick))
    assert min(correlations) > 0.15
    assert min(areas) > 0.65
    shuffled = np.random.default_rng(0).permutation(sick)  # the same question about nothing
    assert area(codes, shuffled) < 0.6


def test_the_seed_decides_and_nothing_else() -> None:
    first = simulate(WIDE, 50, seed=3)
    pd.testing.assert_frame_equal(first, simulate(WIDE, 50, seed=3))
    assert not first.equals(simulate(WIDE, 50, seed=4))


def test_rows_are_needed() -> None:
    with pytest.raises(SchemaError, match="rows"):
        simulate(Schema.loads("columns: {a: {kind: boolean}}"))
    with pytest.raises(OptionError, match="rows must be"):
        simulate(WIDE, 0)


COLUMNS = st.sampled_from(
    [
        "{kind: boolean}",
        "{kind: boolean, missing: true}",
        "{kind: integer, low: -3, high: -2}",
        "{kind: integer, low: 0, high: 1000000, resolution: 1000, missing: true}",
        "{kind: real, low: 1.0e-6, high: 1.0e-5}",
        "{kind: real, low: 0, high: 0.3, resolution: 0.1, zero_inflated: true}",
        "{kind: categorical, values: [x]}",
        "{kind: ordinal, values: [1, 2, 3], missing: true}",
        "{kind: datetime, low: 2020-01-01, high: 2020-01-02, resolution: day}",
    ]
)


@settings(max_examples=25, deadline=None)
@given(columns=st.lists(COLUMNS, min_size=1, max_size=5), rows=st.integers(1, 40), label=st.booleans())
def test_odd_schemas(columns: list[str], rows: int, label: bool) -> None:
    text = f"rows: {rows}\n" + ("label: c0\n" if label else "") + "columns:\n"
    schema = Schema.loads(text + "".join(f"  c{at}: {column}\n" for at, column in enumerate(columns)))
    table = Table.from_codes(schema, simulated_codes(schema))
    assert table.rows == rows


def test_images_show_their_class() -> None:
    text = "rows: 400\nlabel: kind\ncolumns: {kind: {kind: categorical, values: [a, b, c]}%s}"
    schema = Schema.loads(text % ", scan: {kind: image, height: 10, width: 12, channels: 3}")
    codes = simulated_codes(schema)
    assert codes["scan"].shape == (400, 360)
    assert codes["scan"].dtype == np.uint8
    assert Table.from_codes(schema, codes).rows == 400
    np.testing.assert_array_equal(codes["kind"], simulated_codes(Schema.loads(text % ""))["kind"])
    means = np.array([codes["scan"][codes["kind"] == kind].mean(axis=0) for kind in range(3)])
    guess = np.array([((means - row) ** 2).sum(axis=1).argmin() for row in codes["scan"]])
    assert (guess == codes["kind"]).mean() > 0.9
    alone = Schema.loads("rows: 50\ncolumns: {scan: {kind: image, height: 4, width: 4}}")
    made = simulate(alone)
    assert made["scan"][0].shape == (4, 4)
    assert len(made) == 50
