"""Whether a table looks like the one that a model was fitted to: its own does, another of the same schema does not."""

import numpy as np
import pytest

import understudy as us
from understudy.auditing.of_model import audit_model, tolerances
from understudy.schema import Schema
from understudy.synthesizers.one_way import fine_cells, one_way_noise
from understudy.table.codec import codec
from understudy.table.table import Table

ROWS = 4_000
SCHEMA = Schema.loads(f"""
rows: {ROWS}
columns:
  wage: {{kind: integer, low: 0, high: 99999, missing: true}}
  age: {{kind: integer, low: 0, high: 90}}
  town: {{kind: categorical, values: [a, b, c, d, e, f]}}
""")


def table(seed: int, *, poor: float = 0.5, absent: float = 0.1) -> Table:
    """Wages below 10,000 for a share of the rows, spread over all of the range for the others."""
    rng = np.random.default_rng(seed)
    wage = np.where(rng.random(ROWS) < poor, rng.integers(0, 10_000, ROWS), rng.integers(0, 100_000, ROWS))
    codes = {
        "wage": np.where(rng.random(ROWS) < absent, 100_000, wage),
        "age": np.clip(rng.normal(40, 12, ROWS), 0, 90),
        "town": rng.choice(6, ROWS, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]),
    }
    return Table.from_codes(SCHEMA, {n: c.astype(codec(SCHEMA.columns[n]).dtype) for n, c in codes.items()})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_a_model_knows_its_own_table(epsilon: float):
    for seed in range(4):
        own = table(seed)
        model = us.fit(own, SCHEMA, method="independent", epsilon=epsilon, seed=seed)
        found = audit_model(model, own)
        assert found.recognised is True, found.table


@pytest.mark.parametrize(("changed", "column"), [({"poor": 0.46}, "wage"), ({"absent": 0.06}, "wage")])
def test_a_table_a_little_different_in_a_long_column_is_told_apart(changed: dict, column: str):
    """Four rows in a hundred moved: five in a hundred and the noise of single cells used to be forgiven."""
    model = us.fit(table(0), SCHEMA, method="independent", epsilon=2.0, seed=1)
    assert audit_model(model, table(0)).recognised is True
    found = audit_model(model, table(5, **changed))
    assert found.recognised is False
    assert repr(column) in found.table


def test_fewer_rows_are_told_apart():
    model = us.fit(table(0), SCHEMA, method="independent", epsilon=2.0, seed=1)
    part = Table.from_codes(SCHEMA, {name: table(0).codes(name)[: ROWS * 9 // 10] for name in SCHEMA.modelled})
    assert audit_model(model, part).recognised is False


def test_a_long_column_is_compared_by_runs_of_its_widest_rung():
    cells = fine_cells(SCHEMA)
    noise = one_way_noise(cells, 1.0)
    groups = tolerances(cells["wage"], noise["wage"])
    covered = np.concatenate([np.arange(cells["wage"].count)[group] for group, _ in groups])
    np.testing.assert_array_equal(covered, np.arange(cells["wage"].count))
    assert max(t for _, t in groups[:-1]) == pytest.approx(7 * noise["wage"][-1] + 0.5)
    assert groups[-1][1] == pytest.approx(7 * noise["wage"][0] + 0.5)  # missing, which is counted alone
    assert len(tolerances(cells["town"], noise["town"])) == 6
