"""Every table of the bench has a schema that loads, and the generated ones are what their script writes."""

import pytest

from bench.datasets import LABELS, NAMES, SCHEMAS, _schema_path
from bench.schemas import generate
from understudy import Schema

TABLES = [name for name in NAMES if name not in ("mnist", "fashion_mnist")]


@pytest.mark.parametrize("name", TABLES)
def test_schema_loads_and_agrees_on_the_label(name):
    schema = Schema.load(_schema_path(name))
    family = "acs_excerpts" if name.startswith("acs_") else name
    assert schema.label == LABELS.get(family)
    assert schema.rows
    assert schema.confirmed().unconfirmed() == []


def test_no_schema_is_forgotten():
    assert {path.name for path in SCHEMAS.glob("*.yaml")} == {_schema_path(name).name for name in TABLES}


@pytest.mark.parametrize("name", ["covtype", "creditcard", "epileptic", "isolet"])
def test_generated_schemas_are_up_to_date(name):
    assert (SCHEMAS / f"{name}.yaml").read_text() == getattr(generate, name)()
