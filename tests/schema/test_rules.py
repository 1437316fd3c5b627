"""Rules between columns: reading and writing them, refusing those that cannot be, and what follows from them."""

import itertools
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from understudy.errors import SchemaError
from understudy.schema import Boolean, Combinations, Datetime, Dependence, Integer, Order, Ordinal, Real, Schema
from understudy.schema.axis import axis_of
from understudy.table.cells import cells_of
from understudy.table.codec import codec
from understudy.table.rules import impossible

COLUMNS = """
rows: 1000
label: sick
columns:
  ap_lo: {kind: integer, low: 40, high: 160, missing: true}
  ap_hi: {kind: integer, low: 60, high: 240}
  pulse: {kind: real, low: 30, high: 250}
  sex: {kind: categorical, values: [male, female]}
  age: {kind: integer, low: 0, high: 99}
  pregnant: {kind: boolean}
  region: {kind: categorical, values: [north, south]}
  town: {kind: categorical, values: [A, B, C], missing: true}
  degree: {kind: ordinal, values: [none, school, college]}
  wanted: {kind: ordinal, values: [none, school, college]}
  years: {kind: integer, low: 0, high: 20}
  group: {kind: categorical, values: [child, adult]}
  sick: {kind: boolean}
  admitted: {kind: datetime, low: 2019-01-01, high: 2023-12-31, resolution: day}
  left: {kind: datetime, low: 2019-01-01, high: 2023-12-31, resolution: hour, missing: true}
  notes: {kind: text}
"""
RULES = [
    "{column: ap_lo, at_most: ap_hi}",
    "{column: admitted, below: left}",
    "{column: degree, at_most: wanted}",
    "{columns: [sex, pregnant], never: [[male, true]]}",
    "{columns: [age, pregnant], never: [[{to: 11}, yes], [{from: 60}, yes]]}",
    "{columns: [region, town], only: [[north, A], [south, [B, C]], [[north, south], null]]}",
    "{columns: [degree], give: years, by: [[none, 0], [school, 10], [college, 16]]}",
    "{columns: [age], give: group, by: [[{to: 17}, child], [{from: 18}, adult]]}",
]


def schema_with(*rules: str) -> Schema:
    return Schema.loads(COLUMNS + "rules:\n" + "".join(f"  - {rule}\n" for rule in rules))


SCHEMA = schema_with(*RULES)


def test_the_rules_are_read():
    assert SCHEMA.rules[0] == Order(column="ap_lo", at_most="ap_hi")
    assert SCHEMA.rules[3] == Combinations(columns=["sex", "pregnant"], never=[["male", True]])
    assert SCHEMA.rules[4].never[0] == ({"to": 11}, "yes")
    assert SCHEMA.rules[5].only[2] == (("north", "south"), None)
    assert SCHEMA.rules[6] == Dependence(
        columns=["degree"], give="years", by=[["none", 0], ["school", 10], ["college", 16]]
    )
    assert Schema(**(SCHEMA.as_dict() | {"rules": list(SCHEMA.rules)})) == SCHEMA


@pytest.mark.parametrize("style", ["yaml", "json"])
def test_what_is_written_reads_back(style):
    long = "{columns: [age, town], never: [" + ", ".join(f"[{age}, [A, null]]" for age in range(60)) + "]}"
    for schema in (SCHEMA, schema_with(*RULES, long)):
        text = schema.dumps(style=style)
        again = Schema.loads(text)
        assert again == schema
        assert again.digest() == schema.digest()
        assert again.dumps(style=style) == text
        assert all(len(line) <= 110 for line in text.splitlines())
        assert yaml.safe_load(text)["rules"][3] == {"columns": ["sex", "pregnant"], "never": [["male", True]]}


def test_schemas_without_rules_keep_their_digest():
    plain = Schema.loads("rows: 10\ncolumns: {a: {kind: boolean}, b: {kind: boolean}}")
    # As it was before schemas could have rules: certificates that name it still hold.
    assert plain.digest() == "58ad5b0931530ac0662e4e5fae9ce78e6991be4eccc387bae3ba79d0072782ff"
    assert "rules" not in plain.dumps()
    ruled = [
        Schema(**plain.as_dict(), rules=[{"columns": ["a", "b"], "never": [[True, True]]}]),
        Schema(**plain.as_dict(), rules=[{"columns": ["a", "b"], "never": [[True, False]]}]),
    ]
    assert len({plain.digest(), *(schema.digest() for schema in ruled)}) == 3


def test_what_is_left_to_learn():
    assert list(SCHEMA.determined) == ["years", "group"]
    learnt = SCHEMA.learnt()
    assert list(learnt.columns) == [name for name in SCHEMA.columns if name not in ("years", "group")]
    assert learnt.rules == SCHEMA.rules[:6]
    assert learnt.learnt() is learnt
    assert SCHEMA.confirmed().rules == SCHEMA.rules
    labelled = Schema(**(SCHEMA.as_dict() | {"label": "group"}))
    assert "group" in labelled.learnt().columns
    assert labelled.learnt().learnt() is labelled.learnt() or labelled.learnt().learnt() == labelled.learnt()


REFUSED = {
    "{column: ap_lo, at_most: ap_high}": "rule 1: 'ap_high' must be modelled columns",
    "{column: ap_lo, at_most: notes}": "rule 1: 'notes' must be modelled columns",
    "{column: ap_lo, at_most: ap_lo}": "with itself",
    "{column: ap_lo, at_most: ap_hi, below: ap_hi}": "one of at_most",
    "{column: ap_lo}": "one of at_most",
    "{column: ap_lo, under: ap_hi}": "unknown fact 'under'",
    "{column: ap_lo, at_most: sex}": "cannot be compared",
    "{column: ap_lo, at_most: admitted}": "cannot be compared",
    "{column: sex, at_most: region}": "cannot be compared",
    "{column: ap_hi, at_most: years}": "the lowest 'ap_hi' is not at most the highest 'years'",
    "{columns: [sex], never: [[male]]}": "at least two",
    "{columns: [sex, sex], never: [[male, male]]}": "twice",
    "{columns: [sex, pregnant], never: [[male]]}": "must have 2 parts",
    "{columns: [sex, pregnant], never: []}": "must be a list of combinations",
    "{columns: [sex, pregnant], never: [male]}": "must hold lists",
    "{columns: [sex, pregnant]}": "one of never",
    "{columns: [sex, pregnant], never: [[male, maybe]]}": "column 'pregnant' must be true or false",
    "{columns: [sex, pregnant], never: [[man, true]]}": "column 'sex' has no value 'man'",
    "{columns: [sex, pregnant], never: [[null, true]]}": "column 'sex' has no missing cells",
    "{columns: [sex, pregnant], never: [[{from: male}, true]]}": "column 'sex' has no order",
    "{columns: [age, pregnant], never: [[{to: -1}, true]]}": "no value in the range",
    "{columns: [age, pregnant], never: [[{from: 9, to: 8}, true]]}": "no value in the range",
    "{columns: [age, pregnant], never: [[{since: 9}, true]]}": "from: A, to: B",
    "{columns: [age, pregnant], never: [[1.5, true]]}": "must lie on a step",
    "{columns: [age, pregnant], never: [[old, true]]}": "must be a number",
    "{columns: [age, pregnant], never: [[[[1]], true]]}": "not nested further",
    "{columns: [sex, pregnant], never: [[[male, female], [true, false]]]}": "names every combination",
    "{columns: [sex, pregnant], never: [[[male, female], true]]}": "'pregnant' can never be true",
    "{columns: [region, town], only: [[north, [A, B]], [south, null]]}": "'town' can never be 'C'",
    "{columns: [region, town], only: [[north, [A, B]], [south, C]]}": "name it as null",
    "{columns: [degree], give: degree, by: [[none, none]]}": "by itself",
    "{columns: [degree], give: years, by: [[none, 0], [college, 16]]}": "says nothing of degree 'school'",
    "{columns: [degree], give: years, by: [[none, 0], [[none, school, college], 16]]}": "two values for degree 'none'",
    "{columns: [degree], give: years, by: [[none, 0], [school, 9], [college, 99]]}": "cannot hold 99",
    "{columns: [town], give: years, by: [[A, 0], [B, 0], [C, 0]]}": "says nothing of town missing",
    "{columns: [age], give: group, by: [[{to: 17}, child], [{from: 19}, adult]]}": "says nothing of age 18",
    "{columns: [degree], give: years, by: [[none, [1, 2]], [school, 9], [college, 9]]}": "not with a list",
    "hello": "rule 1: must be",
}


@pytest.mark.parametrize("rule", REFUSED)
def test_wrong_rules_are_refused_with_their_number(rule):
    with pytest.raises(SchemaError) as refusal:
        schema_with(rule)
    assert REFUSED[rule] in str(refusal.value)


CONTRADICTING = {
    ("{column: ap_lo, below: ap_hi}", "{column: ap_hi, below: ap_lo}"): "in a circle",
    ("{column: ap_lo, at_most: ap_hi}", "{column: ap_lo, at_most: ap_hi}"): "rule 2: is rule 1 again",
    (RULES[6], "{columns: [degree, years], only: [[none, 0], [school, 9], [college, 16]]}"): "never be 'school'",
    (RULES[6], "{columns: [wanted], give: years, by: [[[none, school, college], 3]]}"): "rule 1 gives already",
    (
        "{columns: [degree], give: wanted, by: [[none, none], [school, school], [college, college]]}",
        "{columns: [wanted], give: degree, by: [[none, none], [school, school], [college, college]]}",
    ): "give each other in a circle",
    # Each is possible by itself, both are not: degree is below wanted, and wanted is always none.
    ("{column: degree, below: wanted}", "{columns: [sex], give: wanted, by: [[[male, female], none]]}"): "never be",
    (
        "{columns: [sex, pregnant], only: [[male, true], [female, false]]}",
        "{columns: [sex, pregnant], only: [[male, false], [female, true]]}",
    ): "no row can hold all rules on 'sex', 'pregnant'",
}


@pytest.mark.parametrize("rules", CONTRADICTING)
def test_rules_that_contradict_each_other_are_refused(rules):
    with pytest.raises(SchemaError, match=CONTRADICTING[rules]):
        schema_with(*rules)


def test_orders_that_leave_no_room_between_them_are_refused():
    columns = {name: {"kind": "integer", "low": 0, "high": 2} for name in "abcd"}
    chain = [{"column": a, "below": b} for a, b in itertools.pairwise("abcd")]
    assert len(Schema(columns=columns, rules=chain[:2]).rules) == 2  # 0 < 1 < 2
    with pytest.raises(SchemaError, match="no row can hold all rules on 'a', 'b', 'c', 'd'"):
        Schema(columns=columns, rules=chain)
    columns["c"]["missing"] = True  # a missing cell in between holds both
    assert Schema(columns=columns, rules=chain).ruleset().find(tuple("abcd"))["c"] == 3


def test_missing_cells():
    ruleset = SCHEMA.ruleset()
    codes = {name: np.zeros(3, dtype=np.uint16) for name in SCHEMA.modelled}
    codes["ap_lo"] = np.array([121, 100, 20])  # missing; 140 and 60, of which only the latter is at most 60
    codes["town"] = np.array([3, 0, 1])  # missing; A and B, of which north has A alone
    assert ruleset.held(codes, 1).tolist() == [True, False, True]
    assert ruleset.held(codes, 6).tolist() == [True, True, False]


# --- against all rows of small tables ---

SMALL = ["a", "b", "c"]


@st.composite
def small_schemas(draw) -> dict[str, Any]:
    """Three columns of up to four codes and up to three rules among them; not all of them possible."""
    columns: dict[str, Any] = {}
    numbers, length = draw(st.booleans()), draw(st.integers(2, 3))
    for name in SMALL:
        missing = draw(st.booleans())
        if numbers:
            low = draw(st.integers(-1, 2))
            columns[name] = {"kind": "integer", "low": low, "high": low + draw(st.integers(1, 2)), "missing": missing}
        else:
            columns[name] = {
                "kind": "ordinal",
                "values": ["x", "y", "z"][:length],
                "missing": missing,
            }
    rules = []
    for _ in range(draw(st.integers(1, 3))):
        pair = draw(st.permutations(SMALL))[: draw(st.integers(2, 3))]
        if draw(st.booleans()):
            rules.append({"column": pair[0], draw(st.sampled_from(["at_most", "below"])): pair[1]})
        else:
            rows = draw(st.lists(st.tuples(*(_entries(columns[name]) for name in pair)), min_size=1, max_size=4))
            rules.append({"columns": pair, draw(st.sampled_from(["never", "only"])): [list(row) for row in rows]})
    return {"columns": columns, "rules": rules}


def _entries(column: dict[str, Any]) -> st.SearchStrategy:
    values = column.get("values") or list(range(column["low"], column["high"] + 1))
    one = st.sampled_from([*values, None] if column["missing"] else values)
    return st.one_of(one, st.lists(one, min_size=1, max_size=2), st.sampled_from(values).map(lambda v: {"from": v}))


def rows_that_hold(facts: dict[str, Any]) -> list[tuple[Any, ...]]:
    """By trying all, with values, not codes."""
    domains = []
    for column in facts["columns"].values():
        values = column.get("values") or list(range(column["low"], column["high"] + 1))
        domains.append([*values, None] if column["missing"] else values)
    return [row for row in itertools.product(*domains) if all(_holds(facts, r, row) for r in facts["rules"])]


def _holds(facts: dict[str, Any], rule: dict[str, Any], row: tuple[Any, ...]) -> bool:
    value = dict(zip(SMALL, row, strict=True))
    if "column" in rule:
        a, b = value[rule["column"]], value[rule.get("at_most") or rule["below"]]
        return a is None or b is None or (a <= b if "at_most" in rule else a < b)

    def matches(entry: Any, name: str) -> bool:
        if isinstance(entry, dict):
            return value[name] is not None and value[name] >= entry["from"]
        return value[name] in (entry if isinstance(entry, list) else [entry])

    listed = any(
        all(matches(entry, name) for entry, name in zip(entries, rule["columns"], strict=True))
        for entries in rule.get("never") or rule["only"]
    )
    return listed == ("only" in rule)


@given(small_schemas())
def test_a_schema_is_taken_if_and_only_if_a_row_can_hold_it(facts):
    held = rows_that_hold(facts)
    try:
        schema, refusal = Schema(**facts), ""
    except SchemaError as error:
        schema, refusal = None, str(error)
    if schema is None:
        impossible_rows = ("contradict", "names every combination")
        possible_rows = ("can never be", "again", "circle", "null", "with both")  # refused as mistakes all the same
        assert any(reason in refusal for reason in impossible_rows + possible_rows)
        assert not held or any(reason in refusal for reason in possible_rows)
        return
    assert held
    ruleset = schema.ruleset()
    axes = {name: axis_of(column) for name, column in schema.modelled.items()}
    codes_of_held = {tuple(axes[name].place(v) for name, v in zip(SMALL, row, strict=True)) for row in held}
    every = itertools.product(*(range(axes[name].size + schema.modelled[name].missing) for name in SMALL))
    grid = np.array(list(every)).T
    found = ruleset.all_held(dict(zip(SMALL, grid, strict=True)))
    assert {tuple(int(code) for code in row) for row in grid.T[found]} == codes_of_held
    for columns in ruleset.components:
        row = ruleset.find(columns)
        assert any(all(held_row[SMALL.index(name)] == row[name] for name in columns) for held_row in codes_of_held)
    for a, b in itertools.permutations(SMALL, 2):
        cells = [cells_of(schema.modelled[name]) for name in (a, b)]
        mask = impossible(schema, a, b, *cells)
        assert mask.shape == (cells[0].count, cells[1].count)
        seen = {(row[SMALL.index(a)], row[SMALL.index(b)]) for row in codes_of_held}
        assert not any(mask[pair] for pair in seen)
        if len(schema.rules) == 1:  # then it finds all there is to find about the two
            assert {tuple(map(int, pair)) for pair in np.argwhere(~mask)} == seen


# --- codes and numbers ---


@pytest.mark.parametrize(
    "column",
    [
        Integer(low=-7, high=93, resolution=10, missing=True),
        Integer(low=-(2**63), high=2**63 - 1 - 1),
        Integer(low=0, high=10**9, dtype="float32"),
        Real(low=0.1, high=2.5, resolution=0.1, missing=True),
        Real(low=0, high=1, resolution=1e-9, dtype="float32"),
        Real(low=-0.1, high=0.7, missing=True),
        Datetime(low="2019-01-01", high="2019-03-01", resolution="hour"),
        Ordinal(values=["x", "y", "z"]),
    ],
    ids=lambda column: column.kind,
)
def test_axes_agree_with_codecs(column):
    axis, coder = axis_of(column), codec(column)
    assert axis.size == coder.size
    if axis.size is None:
        codes = np.linspace(*axis.bounds, 50).astype(np.float32)
    else:
        codes = np.array(sorted({place * (axis.size - 1) // 50 for place in range(51)}), dtype=np.uint64)
    if column.kind != "ordinal":
        shown = coder.decode(codes.astype(coder.dtype))
        shown = shown.astype("datetime64[s]").astype(np.int64) if column.kind == "datetime" else shown.astype(float)
        np.testing.assert_array_equal(axis.numbers(codes).astype(shown.dtype), shown)
    numbers = axis.numbers(codes)
    for limit in numbers[[0, 7 % len(numbers), -1]]:
        for strict in (False, True):
            last, found = axis.highest(np.array([limit]), strict=strict)
            if found[0]:
                reached = axis.numbers(last)[0]
                assert reached < limit if strict else reached == limit
            else:
                assert strict
                assert limit == numbers[0]
            first, found = axis.lowest(np.array([limit]), strict=strict)
            if found[0]:
                reached = axis.numbers(first)[0]
                assert reached > limit if strict else reached == limit
            else:
                assert strict
                assert limit == numbers[-1]


def test_impossible_cells_of_numbers_are_exact_at_their_edges():
    schema = Schema.loads("""
columns:
  a: {kind: integer, low: 0, high: 100000, missing: true}
  b: {kind: real, low: 0, high: 100000}
  c: {kind: integer, low: 0, high: 100000}
rules:
  - {column: a, below: b}
  - {column: b, at_most: c}
""")
    cells = {name: cells_of(column) for name, column in schema.modelled.items()}
    assert cells["a"].values < 50_000  # cells of many values
    mask = impossible(schema, "a", "b", cells["a"], cells["b"])
    assert not mask[-1].any()  # a missing side holds it
    firsts = cells["a"].starts.astype(np.int64)
    lasts = np.append(np.nextafter(cells["b"].starts[1:], np.float32(-np.inf)), np.float32(100_000)).astype(np.float64)
    np.testing.assert_array_equal(mask[:-1], firsts[:, None] >= lasts[None, :])
    np.testing.assert_array_equal(impossible(schema, "b", "a", cells["b"], cells["a"]), mask.T)
    through = impossible(schema, "a", "c", cells["a"], cells["c"])  # by way of b, which is never missing
    tops = np.append(cells["c"].starts[1:].astype(np.int64) - 1, 100_000)
    np.testing.assert_array_equal(through[:-1], firsts[:, None] >= tops[None, :])
    assert not impossible(Schema(columns=schema.columns), "a", "b", cells["a"], cells["b"]).any()


def test_booleans_and_numbers_in_tables():
    schema = Schema(
        columns={"a": Boolean(), "w": Real(low=0, high=1), "n": Integer(low=0, high=10**12)},
        rules=[{"columns": ["a", "w", "n"], "never": [[True, {"from": 0.5}, {"to": 10**6}]]}],
    )
    codes = {
        "a": np.array([1, 1, 1, 0]),
        "w": np.array([0.5, np.nextafter(np.float32(0.5), 0), 0.9, 0.9], dtype=np.float32),
        "n": np.array([10**6, 5, 10**6 + 1, 5], dtype=np.uint64),
    }
    assert schema.ruleset().held(codes, 1).tolist() == [False, True, True, True]
