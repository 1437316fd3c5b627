"""Conditions are exact: against every row of a small domain, enumerated, under models written by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers import independent
from understudy.synthesizers.mixture import released as released_module
from understudy.synthesizers.mixture.released import Released
from understudy.synthesizers.one_way import fine_cells

N = 20_000
TINY = Schema.loads("""
label: sick
columns:
  town: {kind: categorical, values: [a, b, c], missing: true}
  sick: {kind: boolean}
  age: {kind: integer, low: 10, high: 13}
  degree: {kind: ordinal, values: [none, school, college]}
""")
# Fine cells to coarse codes: towns b and c are pooled, ages go in twos, degrees stay apart.
GROUPS = {"town": [0, 1, 1, 2], "age": [0, 0, 1, 1], "degree": [0, 1, 2]}
SIZES = {"town": 3, "age": 2, "degree": 3}
FINE = {"town": [50.0, 30.0, 10.0, 10.0], "sick": [70.0, 30.0], "age": [10.0, 40.0, 25.0, 25.0], "degree": [60, 30, 10]}
CODES = {"town": 4, "sick": 2, "age": 4, "degree": 3}  # missing included


@pytest.fixture(scope="module")
def mixture() -> Released:
    rng = np.random.default_rng(5)
    weights = rng.dirichlet(np.ones(6)).reshape(2, 3)
    parts = [rng.dirichlet(np.full(size, 0.7), (2, 3)) for size in SIZES.values()]
    parts[1][0, 1] = [0.0, 1.0]  # a component that rules ages 10 and 11 out
    return Released(
        schema=TINY,
        weights=weights,
        probabilities=np.concatenate(parts, axis=2).astype(np.float32),
        groups={name: np.array(groups) for name, groups in GROUPS.items()},
        fine={name: 100 * np.array(counts, dtype=np.float64) for name, counts in FINE.items()},
        label="sick",
        rows=10_000,
    )


def joint_of(model: Released) -> np.ndarray:
    """p(town, sick, age, degree), summed over components one row at a time."""
    joint = np.zeros(tuple(CODES.values()))
    starts = dict(zip(SIZES, np.cumsum([0, *SIZES.values()]).tolist(), strict=False))
    for row in itertools.product(*map(range, CODES.values())):
        codes = dict(zip(CODES, row, strict=True))
        within = 1.0
        for name, groups in GROUPS.items():
            if name == "age":  # ordered and in bins: components lean inside them, see test_parts
                continue
            mates = [cell for cell, group in enumerate(groups) if group == groups[codes[name]]]
            within *= FINE[name][codes[name]] / sum(FINE[name][cell] for cell in mates)
        for k in range(model.weights.shape[1]):
            p = model.weights[codes["sick"], k]
            for name, groups in GROUPS.items():
                if name == "age":
                    component = codes["sick"] * model.weights.shape[1] + k
                    p *= model.columns[name][component, model.parts[name][codes[name]]]
                    p *= model.within[name][codes["sick"], codes[name]]
                else:
                    p *= float(model.probabilities[codes["sick"], k, starts[name] + groups[codes[name]]])
            joint[row] += p * within
    return joint


def frequencies(codes: dict[str, np.ndarray]) -> np.ndarray:
    flat = np.ravel_multi_index([codes[name].astype(int) for name in CODES], tuple(CODES.values()))
    return np.bincount(flat, minlength=math.prod(CODES.values())).reshape(tuple(CODES.values())) / len(flat)


def agrees(found: np.ndarray, expected: np.ndarray, n: int = N) -> bool:
    """Five standard errors of plain sampling, which systematic sampling stays below."""
    return bool((np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / n) + 2 / n).all())


# The condition, and for every column the codes that it allows.
CONDITIONS = {
    "nothing": ({}, {}),
    "value": ({"town": "b"}, {"town": [1]}),
    "pooled values": ({"town": ["a", "c"]}, {"town": [0, 2]}),
    "named twice": ({"town": ["a", "c", "a", None, None]}, {"town": [0, 2, 3]}),
    "missing": ({"town": None}, {"town": [3]}),
    "missing or a value": ({"town": [None, "a"]}, {"town": [0, 3]}),
    "label": ({"sick": True}, {"sick": [1]}),
    "both labels": ({"sick": [True, False]}, {}),
    "range over groups": ({"age": (11, 12)}, {"age": [1, 2]}),
    "range with no lower end": ({"age": (None, 11)}, {"age": [0, 1]}),
    "whole range": ({"age": (None, None)}, {}),
    "ordinal range": ({"degree": ("school", None)}, {"degree": [1, 2]}),
    "a component is ruled out": ({"age": 10}, {"age": [0]}),
    "several at once": (
        {"age": (11, 13), "sick": False, "town": ["b", None], "degree": ("none", "school")},
        {"age": [1, 2, 3], "sick": [0], "town": [1, 3], "degree": [0, 1]},
    ),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditional_rows_follow_the_enumerated_joint(mixture: Released, name: str):
    where, allowed = CONDITIONS[name]
    expected = joint_of(mixture)
    for axis, column in enumerate(CODES):
        gone = [code for code in range(CODES[column]) if code not in allowed.get(column, range(CODES[column]))]
        expected[(slice(None),) * axis + (gone,)] = 0
    expected /= expected.sum()
    found = frequencies(mixture.sample(N, np.random.default_rng(1), where))
    assert not found[expected == 0].any()
    assert agrees(found, expected)
    if allowed:
        assert not agrees(found, joint_of(mixture))


def test_probabilities_of_all_rows_sum_to_one_and_are_the_joint(mixture: Released):
    rows = np.array(list(itertools.product(*map(range, CODES.values()))), dtype=np.uint8)
    found = np.exp(mixture.log_prob({name: rows[:, axis] for axis, name in enumerate(CODES)}))
    assert found.sum() == pytest.approx(1, rel=1e-6)
    np.testing.assert_allclose(found, joint_of(mixture).ravel(), rtol=1e-5, atol=1e-8)


def test_components_lean_inside_bins_and_the_column_stays(mixture: Released):
    """A fixture in which nothing leans would not tell whether conditions and scores know of it."""
    assert len(set(mixture.parts["age"].tolist())) > len(set(GROUPS["age"]))
    codes = mixture.probabilities[..., 3:5][..., GROUPS["age"]]
    leaning = mixture.columns["age"][:, mixture.parts["age"]].reshape(codes.shape) * mixture.within["age"][:, None]
    inside = np.divide(leaning, codes, out=np.full(codes.shape, 0.5), where=codes > 0)
    assert np.ptp(inside, axis=(0, 1)).max() > 0.05
    shares = np.einsum("ck,cka->a", mixture.weights, codes)
    expected = shares * np.array([0.2, 0.8, 0.5, 0.5])
    np.testing.assert_allclose(np.einsum("ck,cka->a", mixture.weights, leaning), expected, rtol=1e-3)


def test_many_small_draws_are_right_on_average(mixture: Released):
    rng = np.random.default_rng(2)
    where = {"town": ["a", None]}
    found = np.mean([frequencies(mixture.sample(7, rng, where)) for _ in range(400)], axis=0)
    expected = joint_of(mixture)
    expected[1:3] = 0
    assert agrees(found, expected / expected.sum(), n=2_800)


def test_draws_in_parts_are_as_one(mixture: Released, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(released_module, "ROWS_PER_DRAW", 999)
    monkeypatch.setattr(released_module, "ROWS_PER_SCORE", 7)
    codes = mixture.sample(N, np.random.default_rng(1), {"sick": True})
    expected = joint_of(mixture)
    expected[:, 0] = 0
    assert {len(column) for column in codes.values()} == {N}
    assert agrees(frequencies(codes), expected / expected.sum())
    few = {name: column[:50] for name, column in codes.items()}
    one_by_one = [mixture.log_prob({name: column[i : i + 1] for name, column in few.items()})[0] for i in range(50)]
    np.testing.assert_allclose(mixture.log_prob(few), one_by_one, rtol=1e-12)


def test_columns_of_a_component_are_independent_in_order_too(mixture: Released):
    codes = mixture.sample(N, np.random.default_rng(4))
    # Rows come shuffled: neighbours in the file are no more alike than any two rows.
    town = codes["town"].astype(int)
    alike = (town[1:] == town[:-1]).mean()
    expected = (np.bincount(town, minlength=4) / N) @ (np.bincount(town, minlength=4) / N)
    assert alike == pytest.approx(expected, abs=5 / math.sqrt(N))


# --- wide cells and real numbers ---

WIDE = Schema.loads("""
columns:
  tell: {kind: categorical, values: [first, second]}
  big: {kind: integer, low: 0, high: 99999}
  wage: {kind: real, low: 0, high: 10, zero_inflated: true, missing: true}
  mass: {kind: real, low: 0, high: 100, resolution: 0.1}
""")


@pytest.fixture(scope="module")
def wide() -> Released:
    """Two components that `tell` names. Component one has small numbers, no zero wage and none missing."""
    cells = fine_cells(WIDE)
    fine = {name: np.ones(c.count) for name, c in cells.items()}
    rng = np.random.default_rng(0)
    fine["big"] = rng.uniform(1, 5, cells["big"].count)
    half = {name: (np.arange(cells[name].values) >= cells[name].values // 2).astype(int) for name in ("big", "mass")}
    zero = cells["wage"].index(np.zeros(1, dtype=np.float32))[0]
    wage = np.ones(cells["wage"].count, dtype=int)
    wage[zero], wage[-1] = 0, 2
    fine["wage"][zero] = 1_000  # stands out, and so tells nothing of the wages next to it
    probabilities = np.array([[1, 0, 0.9, 0.1, 0.0, 1.0, 0.0, 0.5, 0.5], [0, 1, 0.2, 0.8, 0.5, 0.3, 0.2, 0.5, 0.5]])
    return Released(
        schema=WIDE,
        weights=np.array([[0.6, 0.4]]),
        probabilities=probabilities[None],
        groups={"tell": np.array([0, 1]), "big": half["big"], "wage": wage, "mass": half["mass"]},
        fine=fine,
        label=None,
        rows=1000,
    )


def mass_between(model: Released, name: str, low: float, high: float, component: int) -> float:
    """The probability of the codes from `low` up to `high` under a component, cell by cell."""
    cells = model.cells[name]
    ends = [*cells.starts[1:].tolist(), cells.end]
    held = 0.0
    for cell, (start, end) in enumerate(zip(cells.starts.tolist(), ends, strict=True)):
        of_cell = model.columns[name][component, model.parts[name][cell]] * model.within[name][0, cell]
        held += of_cell * max(min(high, end) - max(low, start), 0) / (end - start)
    return held


@pytest.mark.parametrize(("low", "high"), [(0, 99_999), (150, 150), (40_007, 61_234), (99_000, 99_999)])
def test_evidence_of_a_range_inside_cells_weighs_the_components(wide: Released, low: int, high: int):
    likely = [mass_between(wide, "big", low, high + 1, component) for component in (0, 1)]
    expected = 0.6 * likely[0] / (0.6 * likely[0] + 0.4 * likely[1])
    codes = wide.sample(N, np.random.default_rng(0), {"big": (low, high)})
    assert codes["big"].min() >= low
    assert codes["big"].max() <= high
    assert (codes["tell"] == 0).mean() == pytest.approx(expected, abs=5 * 0.5 / math.sqrt(N))


def test_values_of_a_range_are_spread_as_the_cells_are(wide: Released):
    codes = wide.sample(N, np.random.default_rng(0), {"big": (40_007, 61_234), "tell": "second"})["big"].astype(int)
    edges = np.linspace(40_007, 61_235, 9)
    mass = np.array([mass_between(wide, "big", a, b, component=1) for a, b in itertools.pairwise(edges)])
    found = np.histogram(codes, edges)[0] / N
    assert agrees(found, mass / mass.sum())
    assert not agrees(found, np.roll(mass, 1) / mass.sum())


def test_real_ranges_zero_and_missing(wide: Released):
    rng = np.random.default_rng(0)
    wages = wide.sample(N, rng, {"wage": (2.5, 3.25)})
    assert wages["wage"].min() >= 2.5
    assert wages["wage"].max() <= 3.25
    assert wages["wage"].mean() == pytest.approx(2.875, abs=0.01)
    # 0.6 * 1.0 against 0.4 * 0.3: the range is the same part of both components' positive wages.
    assert (wages["tell"] == 0).mean() == pytest.approx(0.6 / 0.72, abs=0.02)
    for where, expected in (({"wage": 0}, 0.0), ({"wage": None}, np.nan)):
        codes = wide.sample(500, rng, where)
        np.testing.assert_array_equal(codes["wage"], np.full(500, expected, dtype=np.float32))
        assert (codes["tell"] == 1).all()
    both = wide.sample(N, rng, {"wage": [None, 0.0, None]})
    assert np.isnan(both["wage"]).mean() == pytest.approx(0.2 / 0.7, abs=0.02)


def test_ends_between_two_steps_stay_inside(wide: Released):
    mass = wide.sample(2_000, np.random.default_rng(0), {"mass": (0.05, 0.25)})["mass"]
    assert set(mass.tolist()) == {1, 2}  # 0.1 and 0.2
    edge = wide.sample(50, np.random.default_rng(0), {"mass": (0.3, 0.3)})["mass"]
    assert set(edge.tolist()) == {3}


def test_densities_integrate_to_one(wide: Released):
    """Over `wage` alone, the rest fixed: the point at zero, the missing code, and the density in between."""
    grid = np.linspace(0, 10, 20_001)[1:].astype(np.float32) - np.float32(0.00025)
    wages = np.concatenate([[0.0, np.nan], grid]).astype(np.float32)
    rows = {
        "tell": np.ones(len(wages), dtype=np.uint8),
        "big": np.full(len(wages), 5, dtype=np.uint32),
        "mass": np.full(len(wages), 7, dtype=np.uint16),
        "wage": wages,
    }
    found = np.exp(wide.log_prob(rows))
    rest = 0.4 * mass_between(wide, "big", 5, 6, 1) * mass_between(wide, "mass", 7, 8, 1)
    assert found[0] == pytest.approx(rest * 0.5, rel=1e-6)
    assert found[1] == pytest.approx(rest * 0.2, rel=1e-6)
    assert found[2:].mean() * 10 == pytest.approx(rest * 0.3, rel=1e-3)


# --- refusals ---

REFUSED = [
    ({"nobody": 1}, "not a modelled column"),
    ({"age": 9}, r"outside what the schema declares for it \(10 to 13\)"),
    ({"age": math.inf}, "outside"),
    ({"age": 14}, "outside"),
    ({"age": 10**40}, "outside"),
    ({"age": 10.5}, "outside"),
    ({"age": "old"}, "outside"),
    ({"age": object()}, "outside"),
    ({"age": {"low": 10}}, "outside"),
    ({"age": None}, "outside"),
    ({"town": "nowhere"}, "outside"),
    ({"age": []}, "at least one value"),
    ({"age": (12, 11)}, "low to high"),
    ({"age": (10, 11, 12)}, "takes a value or a list"),
    ({"age": (8, 9)}, "overlaps with 10 to 13"),
    ({"age": (14, None)}, "overlaps with 10 to 13"),
    ({"age": (None, -math.inf)}, "overlaps with 10 to 13"),
    ({"age": ("9", "old")}, "outside"),
    ({"degree": ("school", "doctor")}, "outside"),
    ({"town": ("a", "b")}, "takes a value or a list"),
    ({"sick": (False, True)}, "takes a value or a list"),
]


@pytest.mark.parametrize(("where", "message"), REFUSED, ids=range(len(REFUSED)))
def test_wrong_conditions_are_refused_by_name(mixture: Released, where: dict, message: str):
    with pytest.raises(OptionError, match=message) as caught:
        mixture.sample(10, np.random.default_rng(0), where)
    assert repr(next(iter(where))) in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("where", [{"wage": 5.0}, {"wage": (5, 5)}, {"wage": [1.0, 2.0]}])
def test_single_values_of_a_real_have_no_probability(wide: Released, where: dict):
    with pytest.raises(OptionError, match="no single values"):
        wide.sample(10, np.random.default_rng(0), where)


@pytest.mark.parametrize("ends", [(math.nan, 5), (5, math.nan)])
def test_a_range_does_not_end_at_missing(wide: Released, ends: tuple):
    with pytest.raises(OptionError, match="an end of the range for 'wage' is missing"):
        wide.sample(10, np.random.default_rng(0), {"wage": ends})


def test_what_cannot_be_is_refused(wide: Released):
    with pytest.raises(OptionError, match="no synthetic row has 'wage' and 'tell' like this"):
        wide.sample(10, np.random.default_rng(0), {"wage": None, "tell": "first"})


@pytest.mark.parametrize(
    "condition",
    [["a", "b"], {"a", "b"}, frozenset("ab"), np.array(["a", "b"]), pd.Series(["a", "b"]), ("a", "b")],
    ids=lambda c: type(c).__name__,
)
def test_any_collection_but_a_tuple_is_a_list_of_values(mixture: Released, condition: object):
    if isinstance(condition, tuple):
        with pytest.raises(OptionError):
            mixture.sample(10, np.random.default_rng(0), {"town": condition})
    else:
        assert set(mixture.sample(50, np.random.default_rng(0), {"town": condition})["town"].tolist()) == {0, 1}


def test_days_and_moments_are_read_like_cells():
    schema = Schema.loads("columns: {seen: {kind: datetime, low: 2020-01-01, high: 2020-01-31, resolution: day}}")
    model = independent.Released(schema, {"seen": np.ones(31)}, 31)
    rng = np.random.default_rng(0)
    for day in ("2020-01-03", pd.Timestamp("2020-01-03 12:00"), np.datetime64("2020-01-03")):
        assert set(model.sample(5, rng, {"seen": day})["seen"].tolist()) == {2}
    found = model.sample(600, rng, {"seen": ("2020-01-03", "2020-01-05")})["seen"]
    assert np.bincount(found).tolist() == [0, 0, 200, 200, 200]


# --- independent columns ---


@pytest.fixture(scope="module")
def columns_alone() -> independent.Released:
    return independent.Released(TINY, {name: np.array(counts, dtype=float) for name, counts in FINE.items()}, 100)


def test_independent_columns_keep_to_their_conditions(columns_alone: independent.Released):
    codes = columns_alone.sample(N, np.random.default_rng(0), {"town": ["a", None], "age": (11, 12)})
    town = np.bincount(codes["town"], minlength=4) / N
    np.testing.assert_allclose(town, [50 / 60, 0, 0, 10 / 60], atol=1 / N)
    np.testing.assert_allclose(np.bincount(codes["age"]) / N, [0, 40 / 65, 25 / 65], atol=1 / N)
    np.testing.assert_allclose(np.bincount(codes["degree"]) / N, [0.6, 0.3, 0.1], atol=1 / N)
    crossed = np.corrcoef(codes["town"] == 0, codes["degree"] == 0)[0, 1]
    assert abs(crossed) < 5 / math.sqrt(N)


def test_independent_probabilities_sum_to_one(columns_alone: independent.Released):
    rows = np.array(list(itertools.product(*map(range, CODES.values()))), dtype=np.uint8)
    found = np.exp(columns_alone.log_prob({name: rows[:, axis] for axis, name in enumerate(CODES)}))
    assert found.sum() == pytest.approx(1, rel=1e-9)
    assert found[0] == pytest.approx(0.5 * 0.7 * 0.1 * 0.6, rel=1e-9)


def test_independent_refuses_what_was_never_counted(columns_alone: independent.Released):
    only_a = {**columns_alone.fine, "town": np.array([1.0, 0.0, 0.0, 0.0])}
    with pytest.raises(OptionError, match="no synthetic row has 'town' like this"):
        independent.Released(TINY, only_a, 1).sample(5, np.random.default_rng(0), {"town": "b"})
