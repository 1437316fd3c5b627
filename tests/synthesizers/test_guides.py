"""Columns that follow from others inside their bins: found, counted finely, and kept by rows, conditions and scores."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.privacy import Budget, Ledger, Streams
from understudy.schema import Schema
from understudy.synthesizers.mixture.coarse import cut_at_quantiles
from understudy.synthesizers.mixture.guided import Guides
from understudy.synthesizers.mixture.guides import choose_guides, cut_runs
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, Pair, release_pairs, together
from understudy.synthesizers.mixture.placing import FineColumn, place_shares
from understudy.synthesizers.mixture.released import Released
from understudy.synthesizers.one_way import OneWay, fine_cells, release_one_way
from understudy.table.cells import Cells, cells_of
from understudy.table.table import Table

ROWS = 6_000
OPEN = Budget(1e6, 1e-6)
WIDE = Schema.loads("""
rows: 6000
columns:
  size: {kind: integer, low: 0, high: 99}
  price: {kind: integer, low: 0, high: 199}
  tax: {kind: integer, low: 0, high: 49}
  other: {kind: integer, low: 0, high: 99, missing: true}
  grade: {kind: categorical, values: [a, b, c, d]}
""")


def wide_table(seed: int) -> Table:
    """`price` is twice the size, `tax` a quarter of the price; the others have nothing to do with them."""
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 100, ROWS)
    codes = {"size": size, "price": 2 * size, "tax": size // 2, "other": rng.integers(0, 101, ROWS)}
    return Table.from_codes(WIDE, codes | {"grade": rng.integers(0, 4, ROWS)})


def counted(table: Table, noise: float, seed: int = 0) -> tuple[OneWay, Coarse, list[Pair], Interactions]:
    streams, ledger = Streams.from_seed(seed), Ledger(OPEN)
    one_way = release_one_way(table, fine_cells(WIDE), noise_multiplier=noise, streams=streams, ledger=ledger)
    groups = {}
    for name, cells in one_way.cells.items():
        groups[name] = cut_at_quantiles(one_way.counts[name][: cells.values], 8)
        if cells.missing:
            groups[name] = np.append(groups[name], groups[name].max() + 1)
    coarse = Coarse(groups, None, 1)
    pairs = list(itertools.combinations(WIDE.modelled, 2))
    found = release_pairs(
        *(table, one_way, coarse, pairs, [1] * len(pairs)), noise_multiplier=noise, streams=streams, ledger=ledger
    )
    return one_way, coarse, pairs, found


# --- which ---


@pytest.mark.parametrize("noise", [0.5, 5.0])
def test_columns_that_follow_from_others_are_found_and_no_others(noise: float):
    for seed in range(3):
        of = choose_guides(*counted(wide_table(seed), noise, seed), most=4)
        assert len(of) == 2  # of three that follow from each other, one has to lead
        assert set(of) | set(of.values()) == {"size", "price", "tax"}
        assert of[next(iter(of))] not in of  # the first guide has none, so that all come before what they guide


def test_no_more_columns_are_guided_than_asked_for():
    assert len(choose_guides(*counted(wide_table(0), 1.0), most=1)) == 1


def test_noise_alone_makes_no_guide():
    rng = np.random.default_rng(0)
    for seed in range(10):
        codes = {name: rng.integers(0, cells_of(c).count, ROWS) for name, c in WIDE.modelled.items()}
        assert choose_guides(*counted(Table.from_codes(WIDE, codes), 8.0, seed), most=4) == {}


def test_columns_that_go_together_from_value_to_value_need_no_guide():
    """Codes that are single values have nothing inside."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, 7, ROWS)
    codes = {name: rng.integers(0, 4, ROWS) for name in WIDE.modelled} | {"size": few, "price": few}
    assert choose_guides(*counted(Table.from_codes(WIDE, codes), 0.5), most=4) == {}


# --- runs ---


@pytest.mark.parametrize("name", ["size", "other", "grade"])
def test_runs_are_parts_of_codes_in_their_order(name: str):
    rng = np.random.default_rng(1)
    cells = cells_of(WIDE.modelled[name])
    counts = rng.exponential(50.0, cells.count)
    groups = np.sort(rng.integers(0, 5, cells.count)) if cells.ordered else rng.integers(0, 2, cells.count)
    groups = np.unique(groups, return_inverse=True)[1]
    runs = cut_runs(cells, groups, counts, 20)
    Guides({name: "x"}, {name: runs, "x": runs}, {name: np.ones((runs.max() + 1,) * 2)}).check(
        {name: groups, "x": groups}
    )
    assert runs.max() + 1 >= groups.max() + 1
    if cells.ordered:
        held = np.bincount(runs, weights=counts)
        assert held.max() <= max(2 * counts.sum() / 20, counts.max())
    assert cut_runs(cells, groups, np.zeros(cells.count), 20).max() + 1 >= groups.max() + 1  # of an empty column


# --- shares ---


def fine_column(counts: np.ndarray, codes: int) -> FineColumn:
    cells: Cells = cells_of(us.schema.Integer(low=0, high=len(counts) - 1))
    groups = np.arange(len(counts)) * codes // len(counts)
    by_code = counts / np.bincount(groups, weights=counts)[groups]
    held = np.bincount(groups, weights=counts)
    return FineColumn(cells, groups, np.arange(len(counts)), counts, by_code[None], (held / held.sum())[None, None])


def joint_counts() -> np.ndarray:
    """Columns of 12 values in 3 codes, independent from code to code, and tied inside them."""
    inside = np.eye(4) * 90 + 10
    return np.kron(np.outer([1, 2, 3], [2, 1, 1]), inside).astype(float)


def test_counts_without_noise_are_taken_as_they_are():
    joint = joint_counts()
    guide, column = fine_column(joint.sum(axis=1), 3), fine_column(joint.sum(axis=0), 3)
    shares = place_shares(guide, column, np.ones((1, 1)), joint, 1e-3)
    expected = joint / np.repeat(np.add.reduceat(joint, [0, 4, 8], axis=1), 4, axis=1)
    np.testing.assert_allclose(shares, expected, atol=2e-3)


def test_counts_that_are_noise_are_not_believed():
    """What the mixture says, here that columns are independent, is left as it is; or else the noise would be copied."""
    rng = np.random.default_rng(0)
    joint = joint_counts()
    guide, column = fine_column(joint.sum(axis=1), 3), fine_column(joint.sum(axis=0), 3)
    for noise in (1_000.0, 100_000.0):
        counts = joint + rng.normal(0, noise, joint.shape)
        np.testing.assert_allclose(place_shares(guide, column, np.ones((1, 1)), counts, noise), 0.25, atol=1e-6)


def test_runs_keep_their_rows_and_pairs_of_codes_theirs():
    rng = np.random.default_rng(3)
    joint = joint_counts()
    guide, column = fine_column(joint.sum(axis=1), 3), fine_column(joint.sum(axis=0), 3)
    shares = place_shares(guide, column, np.ones((1, 1)), joint + rng.normal(0, 40, joint.shape), 40.0)
    owner = np.repeat(np.arange(3), 4)
    np.testing.assert_allclose(np.add.reduceat(shares, [0, 4, 8], axis=1), 1.0)
    # Codes of the columns are independent in this mixture: rows of the guide's run, times the code's part of all.
    parts = joint.sum(axis=0).reshape(3, 4).sum(axis=1) / joint.sum()
    rows = (joint.sum(axis=1)[:, None] * parts[owner] * shares).sum(axis=0)
    np.testing.assert_allclose(rows, joint.sum(axis=0), rtol=0.005)


# --- rows, conditions, scores ---

TINY = Schema.loads("""
label: sick
columns:
  town: {kind: categorical, values: [a, b, c], missing: true}
  sick: {kind: boolean}
  age: {kind: integer, low: 10, high: 15}
  wage: {kind: integer, low: 0, high: 3}
  hours: {kind: integer, low: 0, high: 3}
""")
GROUPS = {"town": [0, 1, 1, 2], "age": [0, 0, 0, 1, 1, 1], "wage": [0, 0, 1, 1], "hours": [0, 0, 0, 1]}
RUNS = {"town": [0, 1, 2, 3], "age": [0, 1, 1, 2, 3, 3], "wage": [0, 1, 2, 2]}
OF = {"age": "town", "wage": "age"}  # a guide that is guided itself
FINE = {"town": [50, 30, 10, 10], "sick": [70, 30], "age": [10, 20, 10, 25, 25, 10], "wage": [40, 30, 20, 10]}
FINE |= {"hours": [30, 30, 20, 20]}
CODES = {"town": 4, "sick": 2, "age": 6, "wage": 4, "hours": 4}
N = 20_000


@pytest.fixture(scope="module")
def model() -> Released:
    rng = np.random.default_rng(5)
    sizes = [max(groups) + 1 for groups in GROUPS.values()]
    runs = {name: np.array(found) for name, found in RUNS.items()}
    shares = {}
    for name, guide in OF.items():
        owner = [GROUPS[name][RUNS[name].index(run)] for run in range(max(RUNS[name]) + 1)]
        table = rng.dirichlet(np.ones(len(owner)), max(RUNS[guide]) + 1)
        for code in set(owner):
            mine = np.array(owner) == code
            table[:, mine] /= table[:, mine].sum(axis=1, keepdims=True)
        shares[name] = table
    shares["age"][0, 0] = 0.0  # of town a, nobody is 10
    shares["age"][0, 1] = 1.0
    return Released(
        schema=TINY,
        weights=rng.dirichlet(np.ones(6)).reshape(2, 3),
        probabilities=np.concatenate([rng.dirichlet(np.ones(s), (2, 3)) for s in sizes], axis=2).astype(np.float32),
        groups={name: np.array(groups) for name, groups in GROUPS.items()},
        fine={name: 100 * np.array(counts, dtype=np.float64) for name, counts in FINE.items()},
        label="sick",
        rows=10_000,
        guides=Guides(dict(OF), runs, shares),
    )


def joint_of(model: Released) -> np.ndarray:
    """p(town, sick, age, wage, hours), summed over components one row at a time, from the definition."""
    joint = np.zeros(tuple(CODES.values()))
    k = model.weights.shape[1]
    for row in itertools.product(*map(range, CODES.values())):
        cell = dict(zip(CODES, row, strict=True))
        for number in range(k):
            p = model.weights[cell["sick"], number]
            for name in GROUPS:
                component = cell["sick"] * k + number
                p *= model.columns[name][component, model.parts[name][cell[name]]]
                if name in OF:
                    guided = model.guided[name]
                    p *= guided.shares[cell["sick"], RUNS[OF[name]][cell[OF[name]]], RUNS[name][cell[name]]]
                    p *= guided.inside[cell["sick"], cell[name]]
                else:
                    p *= model.within[name][cell["sick"], cell[name]]
            joint[row] += p
    return joint


CONDITIONS = {
    "nothing": ({}, {}),
    "a guide": ({"town": "b"}, {"town": [1]}),
    "a guided column": ({"age": (11, 13)}, {"age": [1, 2, 3]}),
    "at the end of a chain": ({"wage": [0, 3]}, {"wage": [0, 3]}),
    "part of a run": ({"age": 11, "wage": 2}, {"age": [1], "wage": [2]}),
    "all of a chain, and the label": (
        {"town": ["a", None], "age": (11, 14), "wage": (1, 2), "sick": True},
        {"town": [0, 3], "age": [1, 2, 3, 4], "wage": [1, 2], "sick": [1]},
    ),
    "both ends, and another column": ({"town": "a", "wage": 3, "hours": 0}, {"town": [0], "wage": [3], "hours": [0]}),
}


def frequencies(codes: dict[str, np.ndarray]) -> np.ndarray:
    flat = np.ravel_multi_index([codes[name].astype(int) for name in CODES], tuple(CODES.values()))
    return np.bincount(flat, minlength=int(np.prod(list(CODES.values())))).reshape(tuple(CODES.values())) / len(flat)


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditional_rows_follow_the_enumerated_joint(model: Released, name: str):
    where, allowed = CONDITIONS[name]
    expected = joint_of(model)
    for axis, column in enumerate(CODES):
        gone = [code for code in range(CODES[column]) if code not in allowed.get(column, range(CODES[column]))]
        expected[(slice(None),) * axis + (gone,)] = 0
    expected /= expected.sum()
    found = frequencies(model.sample(N, np.random.default_rng(1), where))
    assert not found[expected == 0].any()
    room = 5 * np.sqrt(expected * (1 - expected) / N) + 2 / N
    assert (np.abs(found - expected) <= room).all()
    if allowed:
        everyone = joint_of(model)
        assert (np.abs(found - everyone) > 5 * np.sqrt(everyone * (1 - everyone) / N) + 2 / N).any()


def test_scores_are_the_logarithms_of_the_joint(model: Released):
    joint = joint_of(model)
    assert joint.sum() == pytest.approx(1.0, abs=1e-5)
    rows = np.array(list(itertools.product(*map(range, CODES.values()))))
    codes = {name: rows[:, axis] for axis, name in enumerate(CODES)}
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(model.log_prob(codes), np.log(joint).ravel(), rtol=1e-6, atol=1e-6)


def test_a_guide_makes_a_difference(model: Released):
    alone = dataclasses.replace(model, guides=Guides())
    assert np.abs(joint_of(model) - frequencies(alone.sample(N, np.random.default_rng(1)))).sum() > 0.1


# --- files ---


def test_guides_survive_saving(model: Released):
    loaded = Released.from_parts(TINY, model.arrays(), model.facts())
    assert loaded.guides.of == OF
    codes = {name: np.zeros(1, dtype=int) for name in CODES}
    assert loaded.log_prob(codes) == model.log_prob(codes)


@pytest.mark.parametrize("names", list(itertools.permutations("abc")))
def test_a_chain_of_guides_survives_a_file(names: tuple[str, ...], tmp_path):
    """Files sort names: in some of these orders a guide comes after what it guides."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 100, 20_000)
    second = 2 * first + rng.integers(0, 2, 20_000)
    frame = pd.DataFrame(dict(zip(names, (first, second, 2 * second + rng.integers(0, 2, 20_000)), strict=True)))
    columns = {name: us.schema.Integer(low=0, high=high) for name, high in zip(names, (99, 199, 399), strict=True)}
    schema = Schema(rows=20_000, columns=columns)
    model = us.fit(frame, schema, method="mixture", epsilon=3.0, delta=1e-6, seed=0, fits=1, steps=25)
    assert len(model.released.guides.of) == 2
    model.save(tmp_path / "model.understudy")
    loaded = us.load(tmp_path / "model.understudy")
    assert list(loaded.released.guides.of.items()) == list(model.released.guides.of.items())
    pd.testing.assert_frame_equal(loaded.sample(200, seed=1), model.sample(200, seed=1))


def test_models_without_guides_are_written_as_before(model: Released):
    alone = dataclasses.replace(model, guides=Guides())
    assert set(alone.facts()) == {"label", "rows"}
    assert Released.from_parts(TINY, alone.arrays(), alone.facts()).guides.of == {}


DAMAGE = {
    "runs are gone": lambda arrays, facts: arrays.pop("runs.2"),
    "shares are gone": lambda arrays, facts: arrays.pop("shares.2"),
    "guides are gone": lambda arrays, facts: facts.pop("guides"),
    "a circle": lambda arrays, facts: facts.update(guides=[["age", "wage"], ["wage", "age"]]),
    "another column": lambda arrays, facts: facts.update(guides=[["age", "town"], ["wage", "hours"]]),
    "no such column": lambda arrays, facts: facts.update(guides=[["age", "town"], ["wage", "x"]]),
    "too few runs": lambda arrays, facts: arrays.update({"runs.2": arrays["runs.2"][:-1]}),
    "runs with a gap": lambda arrays, facts: arrays.update({"runs.2": arrays["runs.2"] * 2}),
    "runs over codes": lambda arrays, facts: arrays.update({"runs.2": np.array([0, 1, 2, 2, 3, 3])}),
    "runs out of order": lambda arrays, facts: arrays.update({"runs.2": np.array([3, 2, 2, 1, 0, 0])}),
    "shares of another size": lambda arrays, facts: arrays.update({"shares.2": arrays["shares.2"][:-1]}),
    "negative shares": lambda arrays, facts: arrays.update({"shares.2": -arrays["shares.2"]}),
    "shares that are no numbers": lambda arrays, facts: arrays.update({"shares.2": arrays["shares.2"] * np.nan}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_guides_are_refused(model: Released, damage: str):
    arrays, facts = dict(model.arrays()), dict(model.facts())
    DAMAGE[damage](arrays, facts)
    with pytest.raises(ValueError, match=r"guide|run|shares"):
        Released.from_parts(TINY, arrays, facts)


# --- two releases of the same ---


def test_two_releases_of_the_same_tables_are_averaged_by_their_noise():
    table, streams, ledger = wide_table(0), Streams.from_seed(0), Ledger(OPEN)
    one_way, coarse, pairs, _ = counted(table, 1.0)

    def release(noise: float) -> Interactions:
        weights = [1] * len(pairs)
        return release_pairs(
            *(table, one_way, coarse, pairs, weights), noise_multiplier=noise, streams=streams, ledger=ledger
        )

    def off(found: list[Interactions]) -> float:
        errors = [(a - b).ravel() for one in found for a, b in zip(one.pairs, exact.pairs, strict=True)]
        return float(np.std(np.concatenate(errors)))

    exact = release(0.01)
    one, other = [release(6.0) for _ in range(40)], [release(8.0) for _ in range(40)]
    both = [together(a, b) for a, b in zip(one, other, strict=True)]
    assert both[0].margin_noise == pytest.approx(0.8 * one[0].margin_noise)
    assert both[0].pair_noise == pytest.approx([0.8 * noise for noise in one[0].pair_noise])
    assert off(one) == pytest.approx(one[0].pair_noise[0], rel=0.02)
    assert off(both) == pytest.approx(both[0].pair_noise[0], rel=0.02)  # a plain mean would have 4 % more


# --- from end to end ---


def test_what_follows_to_the_digit_does_so_in_synthetic_rows():
    rng = np.random.default_rng(0)
    size = rng.integers(0, 100, 20_000)
    frame = pd.DataFrame({"size": size, "price": 2 * size, "grade": rng.choice(list("abc"), 20_000)})
    schema = Schema.loads("""
rows: 20000
columns:
  size: {kind: integer, low: 0, high: 99}
  price: {kind: integer, low: 0, high: 199}
  grade: {kind: categorical, values: [a, b, c]}
""")
    held = {}
    for guides in (True, False):
        model = us.fit(frame, schema, method="mixture", epsilon=2.0, delta=1e-6, seed=0, fits=2, guides=guides)
        rows = model.sample(5_000, seed=0)
        held[guides] = (rows["price"] - 2 * rows["size"]).abs().mean()
        some = model.sample(300, seed=1, where={"price": (100, 120)})
        assert some["price"].between(100, 120).all()
        if guides:
            assert (some["size"] * 2 - some["price"]).abs().mean() < 6
    assert held[True] < 0.6 * held[False]
