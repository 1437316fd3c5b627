"""What every method must do stands in the files test_common_*; this is what they share.

A new method joins by being in METHODS; quick settings for it go into QUICK.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from understudy.errors import SchemaError
from understudy.schema import Schema
from understudy.synthesizers import model_file
from understudy.synthesizers.api import Model, fit
from understudy.table.read import read_table

# Settings that make a fit short; the suite asks for form and honesty, not for quality.
# A batch of all declared rows samples nothing away, so that noise is found by a formula.
SHORT_GAME = {"steps": 5, "batch": 300, "latent": 4, "generator_hidden": (8,), "critic_hidden": (8,)}
QUICK: dict[str, dict[str, Any]] = {
    "mixture": {"components": 6, "steps": 25},
    "mst": {"steps": 25},
    "aim": {"steps": 25, "rounds": 1, "tables": 3},
    "dp-vae": {"steps": 5, "hidden": 8, "batch": 300},
    "dp-syn": {"steps": 5, "hidden": 8, "batch": 300, "latent": 3},
    "dp-merf": {"steps": 20, "hidden": 8, "features": 8, "batch": 64},
    "gs-wgan": {"steps": 5, "critics": 4, "batch": 8, "pretraining": 0, "latent": 4, "generator_hidden": (8,)},
    "dp-wgan": SHORT_GAME,
    "dp-cgan": SHORT_GAME,
    "dp-auto-gan": SHORT_GAME | {"autoencoder_steps": 5, "autoencoder_hidden": 8},
}
NEEDS_LABEL = ("dp-syn", "dp-cgan")  # one with declared values
SEED = 918273645
SECRET = "xyzzy said that the door was open"
CANARY_ID, CANARY_WAGE = "id-900-55-1234", 613.0625  # exact in every float type
SCHEMA = Schema.loads("""
rows: 300
label: sick
columns:
  patient: {kind: id, prefix: p-}
  age: {kind: integer, low: 18, high: 90}
  gain: {kind: integer, low: 0, high: 50000, log: true, zero_inflated: true, missing: true}
  wage: {kind: real, low: 0, high: 1000, missing: true}
  weight: {kind: real, low: 30, high: 160, resolution: 0.5}
  town: {kind: categorical, values: [Aachen, Bern, Ulm, Žilina], missing: true}
  degree: {kind: ordinal, values: [none, school, college]}
  smoker: {kind: boolean, missing: true}
  sick: {kind: boolean}
  seen: {kind: datetime, low: 2020-01-01, high: 2021-12-31, resolution: day}
  notes: {kind: text}
""")
INTEGERS, MAY_MISS = ("age", "gain"), ("gain", "wage", "town", "smoker")


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "patient": [f"real-{number}" for number in range(rows)],
            "age": rng.integers(18, 91, rows),
            "gain": pd.array(np.where(rng.random(rows) < 0.7, 0, rng.integers(1, 50_000, rows)), dtype="Int64"),
            "wage": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(0, 1000, rows)),
            "weight": np.round(rng.uniform(30, 160, rows) * 2) / 2,
            "town": rng.choice(["Aachen", "Bern", "Ulm"], rows),
            "degree": rng.choice(["none", "school", "college"], rows),
            "smoker": pd.array(rng.random(rows) < 0.3, dtype="boolean"),
            "sick": rng.random(rows) < 0.4,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 731, rows), unit="D"),
            "notes": [f"note {number}" for number in range(rows)],
        }
    )
    frame.loc[rng.random(rows) < 0.1, ["gain", "smoker"]] = pd.NA
    frame.loc[rng.random(rows) < 0.1, "town"] = None
    return frame


def with_canary(frame: pd.DataFrame) -> pd.DataFrame:
    canary = people(1, seed=9)
    canary[["patient", "wage", "town", "notes"]] = [CANARY_ID, CANARY_WAGE, "Žilina", SECRET]
    return pd.concat([frame, canary], ignore_index=True)


REAL = with_canary(people(240))


def quick_fit(method: str, frame: Any = REAL, schema: Schema = SCHEMA, **options: Any) -> Model:
    return fit(frame, schema, method=method, **(QUICK.get(method, {}) | {"epsilon": 1.0, "seed": SEED} | options))


def is_refused_for_its_label(method: str, frame: Any, schema: Schema) -> bool:
    """Methods that learn by class say so of a schema without classes; there is no more to ask of them then."""
    if method not in NEEDS_LABEL or (schema.label and schema.columns[schema.label].kind == "boolean"):
        return False
    with pytest.raises(SchemaError, match=f"{method} needs a label"):
        quick_fit(method, frame, schema)
    return True


def check_form(rows: pd.DataFrame, schema: Schema, n: int) -> None:
    """Columns, order, types, categories, bounds and missing cells are the schema's."""
    assert list(rows.columns) == [name for name, column in schema.columns.items() if column.kind != "text"]
    assert rows.index.tolist() == list(range(n))
    reread = read_table(rows, schema)  # refuses whatever is outside the declared domain
    assert reread.notes == {}  # nothing had to be clipped
    for name, column in schema.modelled.items():
        values = rows[name]
        if not column.missing:
            assert values.notna().all(), name
        if column.kind in ("categorical", "ordinal"):
            assert list(values.cat.categories) == list(column.values)
            assert values.cat.ordered == (column.kind == "ordinal")
        elif column.kind == "boolean":
            assert values.dtype == ("boolean" if column.missing else bool)
        elif column.kind == "integer":
            assert values.dtype == ("Int64" if column.missing else np.int64)
            assert values.dropna().between(column.low, column.high).all()
        elif column.kind == "real":
            assert values.dtype == np.float64
            assert values.dropna().between(column.low, column.high).all()
            if column.resolution is not None:
                steps = (values.dropna() - column.low) / column.resolution
                np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
        else:
            assert values.dtype.kind == "M"
            assert values.dropna().between(column.low, column.high).all()
            if column.resolution == "day":
                assert (values == values.dt.normalize()).all()


def check_certificate(model: Model, **given: Any) -> list[Any]:
    return model.certificate.check(
        arrays=model_file.certified_arrays(model.released.arrays(), model.released.facts(), model.config),
        schema_digest=model.schema.digest(),
        **given,
    )
