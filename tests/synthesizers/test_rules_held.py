"""Every synthetic row holds every declared rule, whatever the method, the rules and the conditions."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from common_helpers import QUICK
from hypothesis import assume, given
from hypothesis import strategies as st

import understudy as us
from understudy.boosting.method import reject
from understudy.comparison.choice import choose
from understudy.comparison.simulated import simulate
from understudy.errors import OptionError, SchemaError
from understudy.schema import Schema
from understudy.synthesizers import rules_held
from understudy.synthesizers.api import METHODS, Model, choose_method, fit, load, make_budget
from understudy.synthesizers.rules_held import draw_rows
from understudy.table.check import check_table
from understudy.table.codec import codec
from understudy.table.frame import frame, write_frame
from understudy.table.read import read_table

SCHEMA = Schema.loads("""
rows: 300
label: sick
columns:
  patient: {kind: id}
  ap_lo: {kind: integer, low: 40, high: 160, missing: true}
  ap_hi: {kind: integer, low: 60, high: 240}
  sex: {kind: categorical, values: [male, female]}
  age: {kind: integer, low: 0, high: 99}
  pregnant: {kind: boolean}
  region: {kind: categorical, values: [north, south]}
  town: {kind: categorical, values: [A, B, C], missing: true}
  degree: {kind: ordinal, values: [none, school, college], missing: true}
  years: {kind: integer, low: 0, high: 20, missing: true}
  group: {kind: categorical, values: [child, adult]}
  sick: {kind: boolean}
  admitted: {kind: datetime, low: 2019-01-01, high: 2019-12-31, resolution: day}
  left: {kind: datetime, low: 2019-01-01, high: 2019-12-31, resolution: hour, missing: true}
  least: {kind: real, low: 0, high: 1}
  most: {kind: real, low: 0, high: 2, resolution: 0.1}
rules:
  - {column: ap_lo, at_most: ap_hi}
  - {column: admitted, below: left}
  - {column: least, at_most: most}
  - {columns: [sex, pregnant], never: [[male, true]]}
  - {columns: [age, pregnant], never: [[{to: 11}, true], [{from: 60}, true]]}
  - {columns: [region, town], only: [[north, A], [south, [B, C]], [[north, south], null]]}
  - {columns: [degree], give: years, by: [[none, 0], [school, 10], [college, 16], [null, null]]}
  - {columns: [age], give: group, by: [[{to: 17}, child], [{from: 18}, adult]]}
""")
# What can be learnt quickly enough for every run; the other networks are for `make test-slow`.
NETWORKS = tuple(name for name in METHODS if name.startswith(("dp-", "gs-")))
IN_EVERY_RUN = ("dp-wgan", "dp-merf")


def people(rows: int = 240) -> pd.DataFrame:
    """Rows that do not hold the rules: a fit takes them all the same."""
    rng = np.random.default_rng(0)
    columns = {name: column for name, column in SCHEMA.columns.items() if name != "patient"}
    frame = simulate(Schema(rows=rows, columns=columns), rows)
    frame.loc[rng.random(rows) < 0.2, "years"] = 3
    return frame.assign(patient=np.arange(rows))


REAL = people()


def check_rows(rows: pd.DataFrame) -> None:
    """In the words of the rules, with values and not codes."""
    assert (rows.ap_lo.isna() | (rows.ap_lo <= rows.ap_hi)).all()
    assert (rows.left.isna() | (rows.admitted < rows.left)).all()
    assert (rows.least <= rows.most).all()
    assert not ((rows.sex == "male") & rows.pregnant).any()
    assert not (~rows.age.between(12, 59) & rows.pregnant).any()
    town = rows.town.astype(object).where(rows.town.notna(), None)
    allowed = {("north", "A"), ("south", "B"), ("south", "C"), ("north", None), ("south", None)}
    assert set(zip(rows.region, town, strict=True)) <= allowed
    years = rows.degree.astype(object).map({"none": 0, "school": 10, "college": 16})
    assert (rows.years.astype(float).eq(years) | (rows.years.isna() & rows.degree.isna())).all()
    assert (rows.group.astype(object) == np.where(rows.age < 18, "child", "adult")).all()
    assert check_table(rows, SCHEMA).findings == {}


def marked(name: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.slow] if name in NETWORKS and name not in IN_EVERY_RUN else [])


@pytest.fixture(scope="module", params=[marked(name) for name in METHODS])
def model(request) -> Model:
    return fit(REAL, SCHEMA, method=request.param, seed=1, epsilon=20.0, **QUICK.get(request.param, {}))


def test_every_row_of_every_method_holds_all_rules(model: Model, tmp_path):
    broken = check_table(REAL, SCHEMA)
    assert broken.fits
    assert len(broken.findings) == len(SCHEMA.rules)  # the rows that were learnt from break each of them
    for n in (1, 13, 400):
        rows = model.sample(n, seed=n)
        assert len(rows) == n
        assert list(rows.columns) == list(SCHEMA.columns)
        check_rows(rows)
        pd.testing.assert_frame_equal(rows, model.sample(n, seed=n))
    model.save(tmp_path / "m.understudy")
    again = load(tmp_path / "m.understudy")
    assert again.schema == SCHEMA
    pd.testing.assert_frame_equal(again.sample(13, seed=13), model.sample(13, seed=13))
    assert model.certificate.schema_digest == SCHEMA.digest()


CONDITIONS: list[tuple[dict[str, Any], Callable[[pd.DataFrame], pd.Series]]] = [
    ({"years": 16}, lambda rows: rows.degree == "college"),
    ({"years": None}, lambda rows: rows.degree.isna()),
    ({"group": "child", "sick": True}, lambda rows: (rows.age < 18) & rows.sick),
    ({"pregnant": True}, lambda rows: rows.pregnant),
    ({"ap_lo": (150, None), "ap_hi": (None, 155)}, lambda rows: rows.ap_lo.between(150, 155) & (rows.ap_hi <= 155)),
    ({"town": ["A", None], "region": "south"}, lambda rows: rows.town.isna() & (rows.region == "south")),
    ({"admitted": ("2019-12-31", None), "left": None}, lambda rows: rows.left.isna()),
    ({"least": (0.5, 0.6), "most": (None, 0.6)}, lambda rows: rows.least.between(0.5, 0.6) & (rows.most <= 0.6)),
]


@pytest.mark.parametrize("number", range(len(CONDITIONS)))
def test_conditions_hold_beside_the_rules(model: Model, number: int):
    where, met = CONDITIONS[number]
    rows = model.sample(40, where=where, seed=0)
    check_rows(rows)
    assert met(rows).all()


CONTRADICTING = [
    {"group": "child", "age": 50},
    {"pregnant": True, "sex": "male"},
    {"ap_lo": (150, 160), "ap_hi": (100, 149)},
    {"admitted": "2019-12-31", "left": ("2019-01-01", "2019-12-31T00:00")},
    {"years": 3},
    {"region": "north", "town": "B"},
]


@pytest.fixture(scope="module")
def independent() -> Model:
    return fit(REAL, SCHEMA, method="independent", seed=1)


@pytest.mark.parametrize("where", CONTRADICTING, ids=str)
def test_conditions_against_the_rules_are_refused(independent: Model, where: dict[str, Any]):
    with pytest.raises(OptionError, match="no row that holds the schema's rules has"):
        independent.sample(5, where=where)
    with pytest.raises(OptionError, match="not a modelled column"):
        independent.sample(5, where={"year": 3})


def test_determined_columns_cost_nothing(independent: Model):
    plain = Schema(**{fact: value for fact, value in SCHEMA.as_dict().items() if fact != "rules"})
    without = fit(REAL, plain, method="independent", seed=1)
    assert len(independent.released.arrays()) == len(without.released.arrays()) - 2
    (entry,) = independent.certificate.entries
    assert entry.purpose == "one-way tables of 13 columns"  # of 15: years and group are worked out
    fewer = Schema.loads("""
rows: 40
columns: {a: {kind: boolean}, b: {kind: boolean}}
rules: [{columns: [a], give: b, by: [[true, false], [false, true]]}]
""")
    assert choose_method("auto", fewer, make_budget(fewer, 1.0, None)).method == "independent"  # one column to learn


def test_scores_of_rows(independent: Model):
    rows = independent.sample(50, seed=0)
    assert np.isfinite(independent.log_prob(rows)).all()
    broken = rows.assign(group=pd.Categorical(["adult"] * 50, categories=["child", "adult"]), age=3, pregnant=False)
    assert (independent.log_prob(broken) == -np.inf).all()


def test_boosted_models_hold_the_rules(tmp_path):
    settings_ = {"rounds": 5, "pool_rows": 500}
    boosted = fit(REAL, SCHEMA, method="independent", seed=1, boost=settings_)
    later = us.boost([fit(REAL, SCHEMA, method="independent", seed=1)], REAL, epsilon=1.0, seed=2, **settings_)
    for model in (boosted, later):
        check_rows(model.sample(200, seed=0))
        check_rows(model.sample(20, seed=0, where={"group": "adult"}))
        model.save(tmp_path / "b.understudy")
        pd.testing.assert_frame_equal(load(tmp_path / "b.understudy").sample(9, seed=1), model.sample(9, seed=1))


def test_a_label_that_others_give_is_learnt_and_held():
    schema = Schema(**(SCHEMA.as_dict() | {"label": "group"}))
    model = fit(REAL, schema, method="independent", seed=1)
    rows = model.sample(200, seed=0)
    check_rows(rows)
    assert np.isfinite(model.log_prob(rows)).all()
    check_rows(model.sample(50, seed=0, where={"group": "child"}))


def test_images_come_along():
    schema = Schema.loads("""
columns:
  digit: {kind: integer, low: 0, high: 9}
  odd: {kind: boolean}
  size: {kind: integer, low: 0, high: 9}
  scan: {kind: image, height: 2, width: 2}
rules:
  - {columns: [digit], give: odd, by: [[[1, 3, 5, 7, 9], true], [[0, 2, 4, 6, 8], false]]}
  - {column: size, at_most: digit}
""")

    def draw(n: int, rng: np.random.Generator, where: Any) -> dict[str, np.ndarray]:
        digit = rng.integers(0, 10, n).astype(np.uint8)
        return {
            "digit": digit,
            "size": rng.integers(0, 10, n).astype(np.uint8),
            "scan": np.repeat(digit[:, None], 4, 1),
        }

    codes = draw_rows(schema, draw, 500, np.random.default_rng(0))
    assert list(codes) == ["digit", "odd", "size", "scan"]
    np.testing.assert_array_equal(codes["odd"], codes["digit"] % 2)
    assert (codes["size"] <= codes["digit"]).all()
    np.testing.assert_array_equal(codes["scan"], np.repeat(codes["digit"][:, None], 4, 1))  # drawn again as a whole


@pytest.mark.slow
def test_rejected_models_and_chosen_ones_hold_the_rules():
    gan = fit(REAL, SCHEMA, method="dp-wgan", seed=1, **QUICK["dp-wgan"], checkpoints=2)
    check_rows(reject(gan, pool_rows=300, seed=0).sample(100, seed=0))
    chosen = choose(REAL, SCHEMA, methods=["independent", "mixture"], seed=0, options={"mixture": QUICK["mixture"]})
    check_rows(chosen.sample(100, seed=0))


def test_simulated_tables_hold_the_rules():
    check_rows(simulate(SCHEMA, 300))


# --- any rules, any rows ---

NAMES = ["a", "b", "c", "d"]


@st.composite
def ruled_schemas(draw) -> Schema:
    """Four columns of mixed kinds, and rules among them that can be held."""
    kinds = {
        "integer": lambda: {"low": draw(st.integers(-3, 3)), "high": draw(st.integers(4, 9))},
        "real": lambda: {"low": 0, "high": draw(st.integers(1, 5))},
        "ordinal": lambda: {"values": ["x", "y", "z"]},
        "boolean": dict,
    }
    columns = {}
    for name in NAMES:
        kind = draw(st.sampled_from(list(kinds)))
        columns[name] = {"kind": kind, "missing": draw(st.booleans()), **kinds[kind]()}
    rules: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        rule = draw(_rules(columns))
        try:
            Schema(rows=100, columns=columns, rules=[*rules, rule])
        except SchemaError:
            continue
        rules.append(rule)
    assume(rules)
    return Schema(rows=100, columns=columns, rules=rules)


@st.composite
def _rules(draw, columns: Mapping[str, Any]) -> dict[str, Any]:
    names = draw(st.permutations(NAMES))
    shape = draw(st.sampled_from(["order", "never", "only", "give"]))
    if shape == "order":
        return {"column": names[0], draw(st.sampled_from(["at_most", "below"])): names[1]}
    tied = names[: draw(st.integers(2, 3))]
    entries = [_entries(columns[name]) for name in tied]
    if shape != "give":
        return {"columns": tied, shape: draw(st.lists(st.tuples(*entries), min_size=1, max_size=5))}
    source, target = columns[names[0]], columns[names[1]]
    every = [*_values(source), *([None] if source["missing"] else [])]
    if source["kind"] == "real":
        every = [{"to": 0.5}, {"from": float(np.nextafter(np.float32(0.5), 1))}, *([None] if source["missing"] else [])]
    return {
        "columns": [names[0]],
        "give": names[1],
        "by": [
            [entry, draw(st.sampled_from([*_values(target), *([None] if target["missing"] else [])]))]
            for entry in every
        ],
    }


def _values(column: Mapping[str, Any]) -> list[Any]:
    if column["kind"] == "boolean":
        return [True, False]
    return column.get("values") or list(range(column["low"], column["high"] + 1))


def _entries(column: Mapping[str, Any]) -> st.SearchStrategy:
    values = _values(column)
    one = st.sampled_from([*values, None] if column["missing"] else values)
    spans = st.sampled_from(values).flatmap(lambda v: st.sampled_from([{"from": v}, {"to": v}]))
    several = st.lists(one, min_size=1, max_size=4)
    if column["kind"] == "real":  # single numbers have no share of a real column
        return spans
    return st.one_of(one, several) if column["kind"] == "boolean" else st.one_of(one, several, spans)


def draw_evenly(schema: Schema) -> rules_held.Draw:
    """A model that knows nothing: any code of a column is as likely as any other, within conditions on it."""

    def draw(n: int, rng: np.random.Generator, where: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
        codes = {}
        for name, column in schema.learnt().modelled.items():
            coder = codec(column)
            if coder.size is None:
                made = rng.uniform(column.low, column.high, n).astype(np.float32)
                codes[name] = np.where(column.missing & (rng.random(n) < 0.2), np.float32(np.nan), made)
            else:
                codes[name] = rng.integers(0, coder.size + column.missing, n).astype(coder.dtype)
            if where and name in where:
                runs = rules_held._runs(schema, {name: where[name]})[name]
                picked = rng.integers(0, len(runs), n)
                first, last = (np.array(ends)[picked] for ends in zip(*runs, strict=True))
                codes[name] = np.where(rng.random(n) < 0.5, first, last).astype(coder.dtype)
        return codes

    return draw


@given(ruled_schemas(), st.sampled_from([1, 5, 300]), st.integers(0, 99), st.booleans())
def test_rows_of_any_model_hold_any_rules(schema: Schema, n: int, seed: int, only_mended: bool):
    rounds = 0 if only_mended else rules_held.ROUNDS
    codes = draw_rows(schema, draw_evenly(schema), n, np.random.default_rng(seed), rounds=rounds)
    assert list(codes) == list(schema.modelled)
    assert {len(column) for column in codes.values()} == {n}
    for name, column in schema.modelled.items():
        assert codec(column).check(codes[name]).dtype == codes[name].dtype
    assert schema.ruleset().all_held(codes).all()
    again = draw_rows(schema, draw_evenly(schema), n, np.random.default_rng(seed), rounds=rounds)
    for name in codes:
        np.testing.assert_array_equal(codes[name], again[name])


@given(ruled_schemas(), st.data())
def test_conditions_hold_beside_any_rules(schema: Schema, data: st.DataObject):
    name = data.draw(st.sampled_from(NAMES))
    column = schema.modelled[name]
    if column.kind in ("integer", "real"):
        where = {name: tuple(sorted(data.draw(st.tuples(*[st.floats(column.low, column.high, width=32)] * 2))))}
        assume(column.kind == "integer" or where[name][1] - where[name][0] > 0.01)
    else:
        where = {name: data.draw(st.lists(st.sampled_from(_values(column.facts() | {"missing": True})), min_size=1))}
    try:
        runs = rules_held._runs(schema, where)[name]
    except OptionError:
        assume(False)  # an empty range, whatever the rules
    rng = np.random.default_rng(0)
    try:
        codes = draw_rows(schema, draw_evenly(schema), 20, rng, where)
    except OptionError:
        codes = None
    loose = draw_rows(schema, draw_evenly(schema), 2000, rng)
    inside = [any(first <= code <= last for first, last in runs) for code in loose[name].tolist()]
    if codes is None:
        assert not any(inside)  # there is none to be found without the condition either
        return
    assert schema.ruleset().all_held(codes).all()
    assert all(any(first <= code <= last for first, last in runs) for code in codes[name].tolist())


# --- how rows are mended ---


def test_drawing_again_is_drawing_under_the_rules():
    """Shares among rows that hold the rules stay as the model has them."""
    schema = Schema.loads("""
columns: {a: {kind: integer, low: 0, high: 3}, b: {kind: integer, low: 0, high: 3}}
rules: [{column: a, at_most: b}]
""")
    codes = draw_rows(schema, draw_evenly(schema), 40_000, np.random.default_rng(0))
    table = np.histogram2d(codes["a"], codes["b"], bins=4)[0] / 40_000
    np.testing.assert_allclose(table, np.triu(np.full((4, 4), 0.1)), atol=0.008)  # 10 of 16 pairs


def test_orders_are_swapped_where_both_stay_inside_and_clipped_elsewhere():
    schema = Schema.loads("""
columns: {a: {kind: integer, low: 0, high: 20}, b: {kind: integer, low: 5, high: 10}}
rules: [{column: a, at_most: b}]
""")
    made = {
        "a": np.array([9, 20, 3], dtype=np.uint8),
        "b": np.array([1, 0, 2], dtype=np.uint8),
    }  # a: 9, 20, 3; b: 6, 5, 7
    codes = draw_rows(schema, lambda *_: made, 3, np.random.default_rng(0), rounds=0)
    assert codes["a"].tolist() == [6, 10, 3]
    assert (codes["b"] + 5).tolist() == [9, 10, 7]


def test_combinations_become_the_nearest_by_their_frequency():
    schema = Schema.loads("""
columns:
  region: {kind: categorical, values: [north, south]}
  town: {kind: categorical, values: [A, B, C, D]}
rules: [{columns: [region, town], only: [[north, [A, B]], [south, [C, D]]]}]
""")
    rows = [(0, 0)] * 600 + [(0, 1)] * 200 + [(1, 2)] * 200 + [(0, 3)] * 1000  # the last: north with D
    made = dict(zip(("region", "town"), np.array(rows, dtype=np.uint8).T, strict=True))
    codes = draw_rows(schema, lambda *_: made, 2000, np.random.default_rng(0), rounds=0)
    mended = list(zip(codes["region"][1000:].tolist(), codes["town"][1000:].tolist(), strict=True))
    shares = {pair: mended.count(pair) / 1000 for pair in set(mended)}
    assert set(shares) == {(0, 0), (0, 1)}  # one column differs; no drawn row was south with D
    assert shares[0, 0] == pytest.approx(0.75, abs=0.05)


def test_a_condition_on_a_determined_column_is_put_to_the_model_as_one_on_those_that_give_it():
    asked = []

    def listening(n: int, rng: np.random.Generator, where: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
        asked.append(where)
        if "degree" in where:
            raise OptionError("where: this model has no such row")
        return draw_evenly(SCHEMA)(n, rng, where)

    codes = draw_rows(
        SCHEMA, listening, 10, np.random.default_rng(0), {"years": [10, 16], "group": "child", "sick": True}
    )
    assert asked[0] == {"sick": True, "degree": ["school", "college"], "age": (0, 17)}
    assert asked[1] == {"sick": True}  # what the model cannot give is mended
    assert SCHEMA.ruleset().all_held(codes).all()
    assert set(codes["years"].tolist()) <= {10, 16}


@pytest.mark.parametrize("facts", ["", ", dtype: float32"])
def test_rows_in_a_file_hold_the_rules_too(tmp_path, facts):
    """Single precision has short texts: 0.70000005 and 0.7 must not become equal on the way."""
    schema = Schema.loads(f"""
columns: {{a: {{kind: real, low: 0, high: 1{facts}}}, b: {{kind: real, low: 0, high: 1, resolution: 0.1}}}}
rules: [{{column: a, below: b}}]
""")
    tenths = (np.arange(1, 11) / 10).astype(np.float32)  # some a little below the tenth, some above
    made = {"a": np.concatenate([tenths, np.nextafter(tenths, np.float32(0))])}
    made["b"] = np.tile(np.arange(1, 11, dtype=np.uint8), 2)
    rows = frame(schema, draw_rows(schema, lambda *_: made, 20, np.random.default_rng(0), rounds=0))
    write_frame(rows, schema, tmp_path / "rows.csv")
    read = pd.read_csv(tmp_path / "rows.csv")
    assert (read.a < read.b).all()
    assert (read.a > read.b - 1e-6).sum() >= 10  # as near as single precision comes
    pd.testing.assert_frame_equal(read, rows.astype(float))


def test_without_rules_a_draw_is_the_methods_own():
    schema = Schema.loads("columns: {a: {kind: boolean}}")
    made = {"a": np.array([1, 0], dtype=np.uint8)}
    assert draw_rows(schema, lambda *_: made, 2, np.random.default_rng(0)) is made


def test_a_model_that_never_holds_the_rules_still_gives_rows():
    """Long chains of strict orders, of which evenly drawn rows hold next to none."""
    names = [f"c{number}" for number in range(8)]
    schema = Schema(
        columns={name: {"kind": "integer", "low": 0, "high": 9} for name in names},
        rules=[{"column": a, "below": b} for a, b in itertools.pairwise(names)],
    )
    calls = []

    def counted(n: int, rng: np.random.Generator, where: Any) -> dict[str, np.ndarray]:
        calls.append(n)
        return draw_evenly(schema)(n, rng, where)

    codes = draw_rows(schema, counted, 5_000, np.random.default_rng(0))
    assert sum(calls) < 20_000  # it gives up drawing early
    assert (np.diff(np.stack([codes[name].astype(int) for name in names]), axis=0) > 0).all()
    assert len(np.unique(codes["c0"])) == 3  # 0, 1 and 2: not one row for all


def test_a_table_that_breaks_rules_is_told_to_the_steward_by_counts():
    frame = simulate(SCHEMA, 50)
    frame.loc[[3, 4], ["ap_lo", "ap_hi"]] = [160, 60]
    frame.loc[7, "group"] = "child" if frame.loc[7, "group"] == "adult" else "adult"
    result = check_table(frame, SCHEMA)
    assert result.fits
    assert {key: found.rows for key, found in result.findings.items()} == {
        (None, "breaking rule 1 (ap_lo is at most ap_hi)"): [4, 5],
        (None, "breaking rule 8 (age gives group)"): [8],
    }
    assert read_table(frame, SCHEMA).rows == 50
