"""What every method must do. A new method joins by being in METHODS; quick settings for it go into QUICK."""

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.errors import DataError, OptionError, SchemaError
from understudy.schema import Schema
from understudy.synthesizers import model_file
from understudy.synthesizers.api import METHODS, Model, fit, load, make_budget, make_config, method_module
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


@pytest.fixture(scope="session", params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def model(method: str) -> Model:
    """One seeded fit for all tests that only look at it."""
    return quick_fit(method)


@pytest.fixture(scope="session")
def saved(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / f"{model.method}.understudy"
    model.save(path)
    return path


# --- the form of synthetic rows ---


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


@pytest.mark.parametrize("n", [1, 7, 500])
def test_rows_have_the_form_of_the_schema(model: Model, n: int):
    rows = model.sample(n, seed=0)
    check_form(rows, SCHEMA, n)
    assert rows["patient"].tolist() == [f"p-{number}" for number in range(1, n + 1)]
    assert "notes" not in rows


def test_all_kinds_of_values_are_made(model: Model):
    rows = model.sample(500, seed=0)
    for name in MAY_MISS:
        assert rows[name].isna().any(), name
        assert rows[name].notna().any(), name
    for name in INTEGERS:
        assert rows[name].nunique() > 5
    assert set(rows["sick"]) == {True, False}


def test_as_many_rows_as_the_table_had_about(model: Model):
    assert isinstance(model.rows, int)
    assert len(model.sample(seed=0)) == model.rows
    assert abs(model.rows - len(REAL)) < 120  # noisy, at epsilon 1


def test_draws_repeat_with_a_seed_alone(model: Model):
    pd.testing.assert_frame_equal(model.sample(50, seed=4), model.sample(50, seed=4))
    assert not model.sample(50).equals(model.sample(50))


@pytest.mark.parametrize("n", [0, -3, 2.5, True, "many"])
def test_a_wrong_number_of_rows_is_refused(model: Model, n: Any):
    with pytest.raises(OptionError, match="n must be a whole number"):
        model.sample(n)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"where": "sick=true"}, "where must map columns to conditions"),
        ({"where": ["sick"]}, "where must map columns to conditions"),
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": "lucky"}, "seed must be a whole number from 0"),
    ],
)
def test_a_wrong_condition_or_seed_is_refused(model: Model, given: dict, says: str):
    with pytest.raises(OptionError, match=says):
        model.sample(3, **given)


# --- odd tables ---


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


# --- the certificate ---


def check_certificate(model: Model, **given: Any) -> list[Any]:
    return model.certificate.check(
        arrays=model_file.certified_arrays(model.released.arrays(), model.released.facts(), model.config),
        schema_digest=model.schema.digest(),
        **given,
    )


def test_the_certificate_holds_within_what_was_asked(model: Model):
    assert 0 < model.certificate.epsilon <= 1.0 * (1 + 1e-9)
    assert model.certificate.delta == 1e-6
    assert all(finding.ok for finding in check_certificate(model))
    assert model.certificate.method == model.method
    assert model.certificate.entries


def test_a_seeded_fit_repeats_bit_for_bit_and_may_not_leave(model: Model, saved: Path, tmp_path: Path):
    again = quick_fit(model.method)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()
    other = quick_fit(model.method, seed=SEED + 1)
    assert other.certificate.arrays_digest != model.certificate.arrays_digest
    assert [f.what for f in check_certificate(model, release=True) if not f.ok] == ["randomness"]


def test_unseeded_fits_differ_and_may_leave(method: str):
    one, two = quick_fit(method, seed=None), quick_fit(method, seed=None)
    assert one.certificate.arrays_digest != two.certificate.arrays_digest
    assert all(finding.ok for finding in check_certificate(one, release=True))
    check_form(one.sample(20), SCHEMA, 20)


def test_an_infinite_epsilon_promises_nothing(method: str):
    model = quick_fit(method, epsilon=math.inf)
    check_form(model.sample(100, seed=0), SCHEMA, 100)
    assert model.certificate.epsilon == math.inf
    assert "without privacy" in model.certificate.statement()
    assert "private" in [f.what for f in check_certificate(model, release=True) if not f.ok]
    assert all(finding.ok for finding in check_certificate(model))


# --- the model file ---


def test_a_model_comes_back_as_it_was(model: Model, saved: Path, tmp_path: Path):
    back = load(saved)
    assert (back.method, back.config, back.certificate) == (model.method, model.config, model.certificate)
    assert back.schema.digest() == model.schema.digest()
    assert back.rows == model.rows
    pd.testing.assert_frame_equal(back.sample(60, seed=2), model.sample(60, seed=2))
    assert all(finding.ok for finding in check_certificate(back))
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def contents(path: Path) -> bytes:
    """All bytes of a file, as they lie and unpacked."""
    with zipfile.ZipFile(path) as archive:
        return b"\0".join([path.read_bytes(), *(archive.read(name) for name in archive.namelist())])


def traces_of_rows(data: bytes) -> list[str]:
    """What of the private table can be found in some bytes."""
    traces = [text for text in (SECRET, CANARY_ID, "real-17", "note 17", str(CANARY_WAGE)) if text.encode() in data]
    traces += [kind for kind in ("<f4", "<f8", ">f4", ">f8") if np.array(CANARY_WAGE, dtype=kind).tobytes() in data]
    table = read_table(REAL, SCHEMA)
    for name in SCHEMA.modelled:
        codes = table.codes(name)
        for kind in {codes.dtype.str, "<i4", "<i8", "<f4", "<f8"}:
            # Twelve rows of a column side by side, anywhere in it, in any width.
            with np.errstate(invalid="ignore"):
                column = codes.astype(kind) if codes.dtype.kind != "f" or kind[1] == "f" else codes
            for first in range(0, len(codes) - 12, 12):
                window = column[first : first + 12]
                if len(np.unique(window)) > 2 and np.ascontiguousarray(window).tobytes() in data:
                    traces.append(f"{name} rows {first}")
    with np.errstate(invalid="ignore"):
        rows = np.stack([np.nan_to_num(table.codes(name)).astype(np.float64) for name in SCHEMA.modelled], axis=1)
    for kind in ("u1", "<u2", "<i4", "<i8", "<f4", "<f8"):
        with np.errstate(invalid="ignore"):
            if np.ascontiguousarray(rows[-1].astype(kind)).tobytes() in data:
                traces.append(f"the canary's row as {kind}")
    return traces


def test_no_row_and_no_seed_is_in_the_file(model: Model, saved: Path):
    data = contents(saved)
    assert b"Aachen" in data  # the schema is there, unpacked: the search works on readable bytes
    assert traces_of_rows(data) == []
    assert str(SEED).encode() not in data
    for size, order in ((4, "little"), (8, "little"), (4, "big"), (8, "big")):
        assert SEED.to_bytes(size, order) not in data


def test_a_planted_row_would_be_found(model: Model, tmp_path: Path):
    table = read_table(REAL, SCHEMA)
    rows = np.stack([np.nan_to_num(table.codes(name)).astype(np.float64) for name in SCHEMA.modelled], axis=1)
    for planted in (table.codes("age"), table.codes("wage"), table.codes("weight").astype(np.int32), rows):
        parts = model_file.Parts(
            method=model.method,
            config=model.config,
            facts=model.released.facts(),
            arrays=model.released.arrays() | {"planted": np.array(planted)},
            schema=model.schema,
            certificate=model.certificate,
        )
        model_file.write(tmp_path / "planted", parts)
        assert traces_of_rows(contents(tmp_path / "planted"))


# --- refusals before a row is read ---


class Untouchable:
    """A source that nobody may open."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError("the rows were touched")


def test_an_unknown_option_is_refused_by_its_nearest_name(method: str):
    known = list(method_module(method).Config.__dataclass_fields__)
    wrong = f"{known[0]}s" if known else "anything"
    with pytest.raises(OptionError, match=f"{method} has no option {wrong!r}") as caught:
        fit(Untouchable(), SCHEMA, method=method, **{wrong: 1})
    assert (f"did you mean {known[0]!r}" if known else "it takes none") in str(caught.value)
    with pytest.raises(OptionError, match="it takes"):
        make_config(method_module(method), {"zzz": 1})


def test_an_unknown_method_is_refused_by_its_nearest_name():
    with pytest.raises(OptionError, match=r"method 'mixtur' is not known \(did you mean 'mixture'\?\)"):
        fit(Untouchable(), SCHEMA, method="mixtur")


@pytest.mark.parametrize("where", ["column", "schema"])
def test_facts_that_were_read_off_the_rows_are_refused(method: str, where: str):
    marked = SCHEMA.columns["age"].model_copy(update={"source": {"high": "data"}})
    change = {"columns": SCHEMA.columns | {"age": marked}} if where == "column" else {"source": {"rows": "data"}}
    schema = SCHEMA.model_copy(update=change)
    with pytest.raises(SchemaError, match=r"not confirmed as public \((age.high|rows)\)"):
        fit(Untouchable(), schema, method=method)
    assert schema.confirmed().unconfirmed() == []


def test_a_schema_that_declares_no_rows_is_refused(method: str):
    with pytest.raises(SchemaError, match="must declare `rows:`"):
        fit(Untouchable(), SCHEMA.model_copy(update={"rows": None}), method=method)


@pytest.mark.parametrize(
    "given", [{"epsilon": 0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"delta": 0.0}, {"delta": 1.5}, {"seed": -1}]
)
def test_wrong_budgets_and_seeds_are_refused(method: str, given: dict[str, Any]):
    with pytest.raises(OptionError, match=next(iter(given))):
        fit(Untouchable(), SCHEMA, method=method, **given)


def test_a_careless_delta_is_warned_about():
    with pytest.warns(UserWarning, match="would allow a method that publishes a row"):
        make_budget(SCHEMA, 1.0, 0.01)
    assert make_budget(SCHEMA, 1.0, None).delta == 1e-6


def test_a_table_read_with_another_schema_is_refused(method: str):
    other = SCHEMA.model_copy(update={"rows": 301})
    with pytest.raises(SchemaError, match="another schema"):
        quick_fit(method, read_table(REAL, other))


def test_progress_is_told_and_ends(method: str):
    told: list[tuple] = []
    quick_fit(method, progress=lambda *step: told.append(step))
    assert told[0][:2] == ("reading", 0.0)
    assert all(0 <= step[1] <= 1 for step in told)
    assert told[-1][1] == 1.0
    assert not any(SECRET in str(step) for step in told)


def test_a_model_shows_its_guarantee_and_no_rows(model: Model):
    assert repr(model).startswith(f"Model({model.method}, 9 columns, epsilon ")
    assert "array" not in repr(model)
