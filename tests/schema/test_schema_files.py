"""Schemas in and out of YAML and JSON, and YAML's surprises kept out."""

import json
import string
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.errors import SchemaError
from understudy.schema import Categorical, Integer, Schema, json_schema

EXAMPLE = """
format: 1
rows: 30000                 # a public round number
label: income
source: {rows: public}
missing_values: ["?", NA, -9]
columns:
  age:       {kind: integer, low: 17, high: 90}
  workclass: {kind: categorical, values: [Private, State-gov, Other], other: Other, missing: true}
  degree:    {kind: ordinal, values: [none, school, college]}
  smoker:    {kind: boolean}
  gain:      {kind: integer, low: 0, high: 99999, log: true, zero_inflated: true}
  weight:    {kind: real, low: 10, high: 250, resolution: 0.1, source: {low: data, high: data}}
  admitted:  {kind: datetime, low: 2019-01-01, high: 2023-12-31, resolution: day, format: "%d/%m/%Y"}
  seen:      {kind: datetime, low: 2019-01-01, high: 2019-01-02T00:00, resolution: hour}
  patient:   {kind: id, prefix: P}
  notes:     {kind: text}
  income:    {kind: categorical, values: ["<=50K", ">50K"]}
"""


@pytest.fixture(scope="module")
def schema():
    return Schema.loads(EXAMPLE)


def test_the_example_reads(schema):
    assert list(schema.modelled) == [name for name in schema.columns if name not in ("patient", "notes")]
    assert schema.missing_values == ("?", "NA", "-9")
    assert schema.unconfirmed() == [("weight", "low"), ("weight", "high")]
    assert schema.confirmed().unconfirmed() == []


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_what_is_written_reads_back(schema, style):
    again = Schema.loads(schema.dumps(style=style))
    assert again == schema
    assert again.dumps(style=style) == schema.dumps(style=style)
    assert list(again.columns) == list(schema.columns)


def test_short_columns_take_one_line_and_a_header_is_comments(schema):
    text = schema.dumps(header="first\n\nsecond")
    assert text.startswith("# first\n#\n# second\nformat: 1\n")
    assert "  age: {kind: integer, low: 17, high: 90}\n" in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_files(schema, tmp_path):
    for name in ("schema.yaml", "schema.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    json.loads((tmp_path / "schema.json").read_text())


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("[yes, no, on, off, y, n]", ("yes", "no", "on", "off", "y", "n")),
        ("[01, 007, 1_000, 0x1F, 0o7]", ("01", "007", "1_000", "0x1F", "0o7")),
        ("[12:30, 2019-01-01, 1.2.3]", ("12:30", "2019-01-01", "1.2.3")),
        ("[1, 1.5, 1e3, -2]", (1, 1.5, 1000.0, -2)),
        ("['1', \"2\"]", ("1", "2")),
        ("[true, false]", (True, False)),
        ("[N, 1, 2]", ("N", 1, 2)),
        ('["~", "null", ""]', ("~", "null", "")),
    ],
)
def test_values_keep_their_type(written, values):
    read = Schema.loads(f"columns: {{a: {{kind: categorical, values: {written}}}}}").columns["a"].values
    assert read == values
    assert [type(value) for value in read] == [type(value) for value in values]


def test_yaml_booleans_among_words_are_refused_with_the_column():
    with pytest.raises(SchemaError, match="column 'a': values mixes true/false"):
        Schema.loads("columns: {a: {kind: categorical, values: [true, no, maybe]}}")


def test_flags_may_be_yes_or_no():
    assert Schema.loads("columns: {a: {kind: boolean, missing: yes}}").columns["a"].missing is True


def test_column_names_stay_text():
    schema = Schema.loads("columns: {no: {kind: boolean}, 2019: {kind: boolean}, 1.50: {kind: boolean}}")
    assert list(schema.columns) == ["no", "2019", "1.50"]
    assert Schema.loads(schema.dumps()) == schema


BROKEN = {
    "columns: {a: {kind: boolean}, a: {kind: boolean}}": "'a' is given twice",
    '{"columns": {"a": {"kind": "boolean"}, "a": {"kind": "boolean"}}}': "'a' is given twice",
    "columns: {a: {kind: integer, low: 1, low: 2, high: 3}}": "'low' is given twice",
    "columns:\n  a: {kind: boolean\n  b: {kind": "line 3",
    "columns: [a, b]": "mapping",
    "columns: {}": "at least one",
    "rows: 5": "columns is missing",
    "[1, 2]": "mapping",
    "": "empty",
    "# nothing": "empty",
    "\x00": "not valid YAML",
    "[" * 5000: "too deeply",
    '{"a":' * 50_000: "too deeply",
    "columns: {a: {kind: boolean}}\n---\ncolumns: {}": "one YAML document",
    "columns: {a: {kind: id, prefix: \ud800}}": "not valid YAML",
    "columns: {a: &x {kind: boolean}, b: *x}": "anchors",
    "columns: {a: {kind: boolean}, ? [b] : {kind: boolean}}": "must be a word",
    "columns: {a: {kind: bool}}": "column 'a': kind must be one of",
    "columns: {a: {low: 1}}": "column 'a': kind must be one of",
    "columns: {a: 3}": "column 'a': must be a mapping",
    "columns: {a: {kind: integer, low: 2, high: 1}}": "column 'a': low=2",
    "columns: {' a': {kind: boolean}}": "blanks",
    "columns: {a: {kind: boolean}}\nlabel: b": "label 'b' is not among",
    "columns: {a: {kind: boolean}, b: {kind: id}}\nlabel: b": "not modelled",
    "columns: {b: {kind: id}}": "nothing would be modelled",
    "columns: {a: {kind: boolean}}\nrows: 0": "rows must be at least 1",
    "columns: {a: {kind: boolean}}\nrows: many": "rows must be a whole number",
    "columns: {a: {kind: boolean}}\nrow: 3": "did you mean 'rows'",
    "columns: {a: {kind: boolean}}\nformat: 2": "newer version",
    "columns: {a: {kind: boolean}}\nmissing_values: '?'": "missing_values must be a list",
    "columns: {a: {kind: boolean}}\nmissing_values: [true]": "quote",
    "columns: {a: {kind: boolean}}\nsource: {a: data}": "columns have a source of their own",
}


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:40])
def test_broken_schemas_say_what_to_mend(text):
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text)
    assert BROKEN[text] in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_python_construction_has_the_same_checks():
    assert Schema(columns={"a": Integer(low=0, high=1)}).label is None
    with pytest.raises(SchemaError, match="label"):
        Schema(columns={"a": Integer(low=0, high=1)}, label="b")
    with pytest.raises(SchemaError, match="column 'a'"):
        Schema(columns={"a": {"kind": "integer", "low": 5, "high": 1}})


@pytest.mark.parametrize(("letter", "most"), [("x", 1000), ("é", 1000), ("\x07", 249)])
def test_a_name_too_long_to_be_read_again_is_refused(letter, most):
    schema = Schema(columns={letter * most: Integer(low=0, high=1)})
    assert Schema.loads(schema.dumps()) == schema
    with pytest.raises(SchemaError, match="at most 1000 letters; shorten it"):
        Schema(columns={letter * (most + 1): Integer(low=0, high=1)})


def test_files_that_cannot_be_read_or_written(tmp_path, schema):
    with pytest.raises(SchemaError, match="understudy draft"):
        Schema.load(tmp_path / "none.yaml")
    with pytest.raises(SchemaError, match="cannot be read"):
        Schema.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="UTF-8"):
        Schema.load(tmp_path / "binary")
    with pytest.raises(SchemaError, match="another place"):
        schema.save(tmp_path / "none" / "schema.yaml")


def test_a_byte_order_mark_does_no_harm(tmp_path):
    (tmp_path / "schema.yaml").write_bytes(b"\xef\xbb\xbfcolumns: {a: {kind: boolean}}\r\n")
    assert list(Schema.load(tmp_path / "schema.yaml").columns) == ["a"]


class TestDigest:
    BASE = "columns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean}}"

    def digest(self, text):
        return Schema.loads(text).digest()

    @pytest.mark.parametrize(
        "same",
        [
            "columns: {a: {high: 9, low: 0, kind: integer}, b: {kind: boolean}}",
            "columns: {a: {kind: integer, low: 0, high: 9, source: data}, b: {kind: boolean, source: {kind: data}}}",
            "columns: {a: {kind: integer, low: 0, high: 9, missing: false}, b: {kind: boolean}}\nsource: {rows: data}",
        ],
    )
    def test_same(self, same):
        assert self.digest(same) == self.digest(self.BASE)

    @pytest.mark.parametrize(
        "other",
        [
            "columns: {b: {kind: boolean}, a: {kind: integer, low: 0, high: 9}}",
            "columns: {a: {kind: integer, low: 0, high: 8}, b: {kind: boolean}}",
            "columns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean, missing: true}}",
            "columns: {a: {kind: integer, low: 0, high: 9}, c: {kind: boolean}}",
            "rows: 10\ncolumns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean}}",
            "label: b\ncolumns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean}}",
            "missing_values: [NA]\ncolumns: {a: {kind: integer, low: 0, high: 9}, b: {kind: boolean}}",
        ],
    )
    def test_different(self, other):
        assert self.digest(other) != self.digest(self.BASE)

    def test_does_not_change_between_versions(self):
        # Certificates hold this number: a change breaks every one that was written before.
        assert self.digest(self.BASE) == GOLDEN


GOLDEN = "621518c9b20e42b2eb9e4c90c00fe0aa9fd1c3bfda21991e2656ccba8defc86d"


def test_the_json_schema_for_editors_is_the_one_in_the_docs():
    kept = Path(__file__).parents[2] / "docs" / "schema.json"
    assert json.loads(kept.read_text()) == json_schema(), (
        "write docs/schema.json anew from understudy.schema.json_schema()"
    )


def test_json_schema_names_all_kinds():
    text = json.dumps(json_schema())
    for kind in ("categorical", "ordinal", "boolean", "integer", "real", "datetime", "id", "text"):
        assert f'"{kind}"' in text


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.one_of(
    texts,
    st.sampled_from(
        ["yes", "no", "null", "~", "1e5", "0x1", "01", "-", "---", "a: b", "a #b", "- a", "? a", "[", "1:2"]
    ),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(scalars, min_size=1, max_size=30), texts)
def test_any_values_read_back(values, name):
    try:
        column = Categorical(values=values)
    except SchemaError:
        return
    name = name.strip() or "a"
    schema = Schema(columns={name: column})
    for style in ("yaml", "json"):
        again = Schema.loads(schema.dumps(style=style))
        assert again == schema
        assert [type(v) for v in again.columns[name].values] == [type(v) for v in column.values]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.one_of(st.text(string.printable, max_size=12), st.integers(), st.booleans()), min_size=1, max_size=8)
)
def test_readers_with_older_rules_see_the_same(values):
    try:
        schema = Schema(columns={"a": Categorical(values=values)})
    except SchemaError:
        return
    read = yaml.safe_load(schema.dumps())["columns"]["a"]["values"]
    assert read == list(schema.columns["a"].values)


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_as_a_schema_error(text):
    for start in ("", "columns: ", "columns: {a: {kind: integer, low: "):
        with suppress(SchemaError):
            Schema.loads(start + text)
