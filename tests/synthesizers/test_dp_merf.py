"""DP-MERF on tables: sensitivities by brute force, exact embeddings, what is charged, and what is kept."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.errors import OptionError
from understudy.privacy import Budget, Gaussian, noise_multiplier
from understudy.schema import Schema
from understudy.synthesizers.dp_merf import waves as waves_module
from understudy.synthesizers.dp_merf.features import FeatureMap, class_factor, no_label, number_factor
from understudy.synthesizers.dp_merf.shape import plan_of
from understudy.synthesizers.dp_merf.waves import AMPLITUDE, TURN_BITS, Waves

SIZES = (3, 2, 4)
LEVELS = {0: np.array([10, 120, 250]), 2: np.array([0, 80, 170, 255])}
HALF_TURN = 1 << (TURN_BITS - 1)
FACTORS = {
    "none": no_label(),
    "classes": class_factor(3),
    "number": number_factor(np.array([0, 90, 255]), Waves.draw(1, 3, (0.3,), np.random.default_rng(5))),
}


def made_map(label: str = "classes", *, waves: bool = True, pairs: bool = True, split: bool = True) -> FeatureMap:
    rng = np.random.default_rng(3)
    return FeatureMap(
        sizes=SIZES,
        factor=FACTORS[label],
        waves=Waves.draw(2, 8, (0.3, 1.0), rng) if waves else None,
        inputs=tuple((place, levels.astype(np.uint8)) for place, levels in LEVELS.items()) if waves else (),
        pairs=((0, 1), (0, 2), (1, 2)) if pairs else (),
        pairs_split=split and label != "none",
        column_weight=20_000,
        pair_weight=9_000,
        total_weight=7_000,
    )


def vector(features: FeatureMap, row: tuple[int, ...], label: int) -> np.ndarray:
    """What one row adds to the sums that are released."""
    counts = features.empty_counts()
    features.count(np.array([row], dtype=np.uint8), np.array([label]), counts)
    return features.stack(counts).astype(np.float64)


def all_vectors(features: FeatureMap) -> np.ndarray:
    rows = itertools.product(*map(range, features.sizes))
    return np.array([vector(features, row, label) for row in rows for label in range(len(features.factor))])


def longest(features: FeatureMap) -> float:
    return float(np.linalg.norm(all_vectors(features), axis=1).max())


def furthest(features: FeatureMap) -> float:
    vectors = all_vectors(features)
    return max(float(np.linalg.norm(vectors - v, axis=1).max()) for v in vectors)


VARIANTS = [
    (label, waves, pairs, split)
    for label in FACTORS
    for waves, pairs, split in itertools.product((True, False), repeat=3)
    if pairs or not split
]


@pytest.mark.parametrize(("label", "waves", "pairs", "split"), VARIANTS)
def test_no_row_is_longer_than_the_sensitivity_and_one_reaches_it(label: str, waves: bool, pairs: bool, split: bool):
    features = made_map(label, waves=waves, pairs=pairs, split=split)
    bound = features.sensitivity("add-remove")
    assert 0.999 * bound <= longest(features) <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("label", "waves", "pairs", "split"), VARIANTS)
def test_no_two_rows_are_further_apart_than_the_sensitivity_of_replacing_one(
    label: str, waves: bool, pairs: bool, split: bool
):
    features = made_map(label, waves=waves, pairs=pairs, split=split)
    found = furthest(features)
    assert found <= features.sensitivity("replace-one") * (1 + 1e-12)
    if not waves and label != "number":
        assert found >= 0.999 * features.sensitivity("replace-one")


def test_replacing_reaches_the_bound_with_waves_where_phases_are_opposite():
    # Two levels, half a turn apart in the only frequency: the features of one are minus those of the other.
    waves = Waves(np.array([[HALF_TURN // 128]]))
    features = FeatureMap((2,), no_label(), waves, ((0, np.array([0, 128], dtype=np.uint8)),), (), False, 1000, 1, 500)
    assert furthest(features) == pytest.approx(features.sensitivity("replace-one"), rel=1e-3)
    assert features.sensitivity("replace-one") == pytest.approx(math.sqrt(4 * AMPLITUDE**2 + 2 * 1000**2), rel=1e-3)


def test_a_wrong_relation_is_refused():
    with pytest.raises(ValueError, match="add-remove, replace-one"):
        made_map().sensitivity("bounded")


def test_features_that_are_too_long_are_caught(monkeypatch: pytest.MonkeyPatch):
    """The published scale, whose features have length sqrt(2), and integer codes in place of one-hot."""
    features = made_map(pairs=False)
    claimed = features.sensitivity()
    honest = waves_module._features
    monkeypatch.setattr(waves_module, "_features", lambda phases: np.rint(honest(phases) * math.sqrt(2)).astype(int))
    assert longest(features) > 1.05 * claimed
    monkeypatch.undo()

    def codes_for_one_hot(row: tuple[int, ...]) -> np.ndarray:
        return np.array(row) * features.column_weight

    worst = max(np.linalg.norm(codes_for_one_hot(row)) for row in itertools.product(*map(range, SIZES)))
    one_hot = math.sqrt(len(SIZES)) * features.column_weight
    assert worst > 2 * one_hot


def test_golden_sensitivities_of_the_paper_s_scale_on_adult():
    """k 8 one-hot columns of 102 codes scaled by 1/sqrt(102), features of length 1, counts of weight 1."""
    waves = Waves.draw(6, 100, (1.0,), np.random.default_rng(0))
    unit = math.sqrt(waves.norm_squared)
    features = FeatureMap(
        sizes=(9, 16, 7, 15, 6, 5, 2, 42),
        factor=class_factor(2),
        waves=waves,
        inputs=tuple((0, np.arange(9, dtype=np.uint8)) for _ in range(6)),
        pairs=(),
        pairs_split=False,
        column_weight=round(unit / math.sqrt(102)),
        pair_weight=1,
        total_weight=round(unit),
    )
    assert features.sensitivity() / unit == pytest.approx(1.4417, abs=1e-4)
    squared = max(4 + 2 * 8 / 102, 2 * (1 + 8 / 102) + 2)
    assert features.sensitivity("replace-one") / unit == pytest.approx(math.sqrt(squared), abs=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(0.2, 16.3041), (0.5, 7.0318), (1, 3.7306), (2, 1.9938), (5, 0.8919), (10, 0.4999)]
)
def test_golden_noise_of_one_release(epsilon: float, sigma: float):
    assert noise_multiplier(Budget(epsilon, 1e-5)) == pytest.approx(sigma, abs=1e-4)


def test_codes_and_levels_give_the_same_waves():
    waves = Waves.draw(3, 50, (0.1, 1.0), np.random.default_rng(0))
    rng = np.random.default_rng(1)
    levels = [rng.integers(0, 256, 7).astype(np.uint8) for _ in range(3)]
    codes = [rng.integers(0, 7, 9000) for _ in range(3)]
    groups = rng.integers(0, 4, 9000)
    inputs = np.stack([level[code] for level, code in zip(levels, codes, strict=True)], axis=1)
    tables = [waves.phases_of_levels(place, level) for place, level in enumerate(levels)]
    found = waves.sums_of_codes(tables, codes, groups, 4)
    assert (found == waves.sums(inputs, groups, 4)).all()
    angles = inputs @ waves.angles
    truth = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)[groups == 2].sum(axis=0)
    assert found[2] / AMPLITUDE == pytest.approx(truth, abs=0.6)


def test_sums_do_not_depend_on_the_order_or_the_blocks_of_rows():
    features = made_map()
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, size, 500) for size in SIZES], axis=1).astype(np.uint8)
    labels = rng.integers(0, 3, 500)
    whole, parts = features.empty_counts(), features.empty_counts()
    features.count(codes, labels, whole)
    order = rng.permutation(500)
    for part in np.array_split(order, 7):
        features.count(codes[part], labels[part], parts)
    assert (features.stack(whole) == features.stack(parts)).all()
    one_more = features.empty_counts()
    features.count(np.vstack([codes[:1], codes]), np.append(labels[:1], labels), one_more)
    difference = features.stack(one_more) - features.stack(whole)
    assert (difference == vector(features, tuple(codes[0]), labels[0])).all()


@pytest.mark.parametrize(("label", "split"), [("none", False), ("classes", True), ("classes", False), ("number", True)])
def test_a_generator_s_embedding_is_exact(label: str, split: bool):
    """Against the sum over all rows, each with its probability."""
    import jax.numpy as jnp

    from understudy.synthesizers.dp_merf.expected import Expected
    from understudy.training.heads import Blocks

    features = made_map(label, split=split)
    blocks, number = Blocks(SIZES), Blocks((3,)) if label == "number" else None
    groups, draws = (3, 4) if label == "classes" else (1, 4)
    rng = np.random.default_rng(1)
    expected = Expected(features, blocks, number)
    width = blocks.width + (number.width if number else 0)
    logits = jnp.asarray(rng.normal(size=(groups * draws, width)).astype(np.float32))
    rows = jnp.asarray(rng.uniform(10, 50, groups).astype(np.float32))
    found = expected.means(logits, rows, jnp.asarray(0), features.waves.count)

    tables = blocks.expand(np.asarray(blocks.probabilities(logits[:, : blocks.width])))
    total = np.zeros(features.size)
    for draw in range(groups * draws):
        chances = (
            {draw // draws: 1.0} if number is None else dict(enumerate(np.asarray(expected.label_table(logits))[draw]))
        )
        for row, (y, chance) in itertools.product(itertools.product(*map(range, SIZES)), chances.items()):
            chance = chance * math.prod(float(tables[place][draw, code]) for place, code in enumerate(row))
            total += chance * float(rows[draw // draws]) / draws * vector(features, row, y)
    truth = expected.targets(features.unstack(total))
    assert np.asarray(found["columns"]) == pytest.approx(truth["columns"], rel=1e-4, abs=1e-3)
    masked = np.asarray(found["pairs"]) * expected.pair_mask
    assert masked == pytest.approx(truth["pairs"], rel=1e-4, abs=1e-3)
    waves = np.concatenate([found["cosine"], found["sine"]], axis=1)
    if number is not None:
        assert np.asarray(found["total"]) == pytest.approx(truth["total"], rel=1e-4, abs=1e-3)
    # Phases are rounded to 2^-16 turns in what is counted.
    assert waves == pytest.approx(truth["waves"], rel=1e-3, abs=2e-3 * np.abs(features.factor).max())


@pytest.fixture(scope="module")
def people() -> tuple[Schema, pd.DataFrame]:
    """Two categories that go together whatever the label, a number that follows the label, another that is missing."""
    rng = np.random.default_rng(7)
    rows = 4000
    sick = rng.random(rows) < 0.3
    town = rng.integers(0, 4, rows)
    dialect = np.where(rng.random(rows) < 0.9, town, rng.integers(0, 4, rows))
    age = np.clip(rng.normal(40 + 25 * sick, 8), 0, 100)
    pay = np.where(rng.random(rows) < 0.2, np.nan, np.clip(rng.normal(30, 9, rows), 0, 80))
    frame = pd.DataFrame({"town": town, "dialect": dialect, "age": age.round(1), "pay": pay, "sick": sick})
    schema = Schema.loads("""
rows: 4000
label: sick
columns:
  town: {kind: categorical, values: [0, 1, 2, 3]}
  dialect: {kind: categorical, values: [0, 1, 2, 3]}
  age: {kind: real, low: 0, high: 100}
  pay: {kind: real, low: 0, high: 80, missing: true}
  sick: {kind: boolean}
""")
    return schema, frame


QUICK = {"steps": 200, "hidden": 32, "features": 32, "batch": 128, "seed": 11}


def agree(rows: pd.DataFrame) -> float:
    return float((rows["town"].astype(str) == rows["dialect"].astype(str)).mean())


def test_pairs_see_what_columns_alone_cannot(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    kept = {
        order: us.fit(frame, schema, method="dp-merf", epsilon=2.0, order=order, **QUICK).sample(4000, seed=0)
        for order in (1, 2)
    }
    assert agree(frame) > 0.9
    assert agree(kept[2]) > 0.8
    assert agree(kept[1]) < 0.5
    for rows in kept.values():  # what follows the label is in both
        ages = rows.groupby("sick")["age"].mean()
        assert 15 < ages[True] - ages[False] < 35
        assert 0.24 < rows["sick"].mean() < 0.36
        assert 0.12 < rows["pay"].isna().mean() < 0.28


def test_two_gaussians_are_charged_and_they_are_the_whole_budget(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    model = us.fit(frame, schema, method="dp-merf", epsilon=1.0, delta=1e-5, **QUICK | {"steps": 5})
    events = [entry.event for entry in model.certificate.entries]
    assert [type(event) for event in events] == [Gaussian, Gaussian]
    squared = sum(event.noise_multiplier**-2 for event in events)
    assert squared**-0.5 == pytest.approx(noise_multiplier(Budget(1.0, 1e-5)), rel=1e-6)
    assert model.certificate.epsilon == pytest.approx(1.0, rel=1e-3)


def test_more_steps_cost_nothing(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    few, many = (
        us.fit(frame, schema, method="dp-merf", epsilon=1.0, **QUICK | {"steps": steps}).certificate for steps in (3, 9)
    )
    assert few.epsilon == many.epsilon


def test_a_label_that_is_a_number_is_followed(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    rng = np.random.default_rng(0)
    frame = frame.assign(cost=np.clip(20 * frame["town"] + rng.normal(10, 4, len(frame)), 0, 100))
    text = schema.dumps().replace("label: sick", "label: cost") + "  cost: {kind: real, low: 0, high: 100}\n"
    numbered = Schema.loads(text)
    for order in (1, 2):
        rows = us.fit(frame, numbered, method="dp-merf", epsilon=4.0, order=order, **QUICK).sample(4000, seed=0)
        means = rows.groupby(rows["town"].astype(str))["cost"].mean()
        assert means["3"] - means["0"] > 30, order


def test_undersampling_is_undone(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    model = us.fit(frame, schema, method="dp-merf", epsilon=4.0, undersample={False: 0.3}, **QUICK)
    assert 0.24 < model.sample(4000, seed=0)["sick"].mean() < 0.36
    assert 3500 < model.rows < 4500


def test_undersampling_drops_rows_by_coins_of_their_own(people: tuple[Schema, pd.DataFrame]):
    from understudy.synthesizers.dp_merf.undersampling import Rates, keep_rows
    from understudy.table.read import read_table

    schema, frame = people
    rates = Rates(np.array([0.3, 1.0]))
    kept = keep_rows(read_table(frame, schema), schema, rates, np.random.default_rng(4))
    fewer = keep_rows(read_table(frame[:-1], schema), schema, rates, np.random.default_rng(4))
    assert abs(kept.rows - fewer.rows) <= 1
    assert (kept.codes("age")[: fewer.rows] == fewer.codes("age")).all()
    assert kept.codes("sick").sum() == frame["sick"].sum()


def test_equal_classes_by_declaration(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    model = us.fit(frame, schema, method="dp-merf", epsilon=4.0, class_shares="equal", **QUICK)
    assert 0.47 < model.sample(4000, seed=0)["sick"].mean() < 0.53


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"minibatches": 10}, "minibatches is for images"),
        ({"autoencoder": True}, "autoencoder is for images"),
        ({"undersample": {"maybe": 0.5}}, "no declared value of the label"),
        ({"undersample": {True: 0.0}}, "a rate above 0, at most 1"),
        ({"undersample": 0.5}, "must map values of the label to rates"),
        ({"order": 3}, "order must be a whole number from 1 to 2"),
        ({"class_shares": "half"}, "class_shares must be one of counted, equal"),
        ({"features": 10_000_000}, "features must be"),
        ({"widths": (0.0,)}, "widths must be"),
    ],
)
def test_options_that_cannot_work_are_refused(people: tuple[Schema, pd.DataFrame], options: dict, words: str):
    schema, frame = people
    with pytest.raises(OptionError, match=words):
        us.fit(frame, schema, method="dp-merf", **options)


def test_class_options_need_classes(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    unlabelled = Schema.loads(schema.dumps().replace("label: sick", ""))
    for options in ({"class_shares": "equal"}, {"undersample": {True: 0.5}}):
        with pytest.raises(OptionError, match="needs a label with declared values"):
            us.fit(frame, unlabelled, method="dp-merf", **options)


def test_too_many_codes_for_pairs_are_refused_and_not_chosen():
    values = ", ".join(f"v{i}" for i in range(70))
    columns = "\n".join(f"  c{i}: {{kind: categorical, values: [{values}]}}" for i in range(40))
    schema = Schema.loads(f"rows: 100000000\ncolumns:\n{columns}\n")
    budget = Budget(1.0, 1e-9)
    assert not plan_of(schema, budget, one_way_share=0.2, order=None).pairs
    with pytest.raises(OptionError, match="set order to 1"):
        plan_of(schema, budget, one_way_share=0.2, order=2)


def test_the_rule_follows_rows_and_noise():
    def plan(rows: int, epsilon: float):
        columns = "\n".join(f"  c{i}: {{kind: categorical, values: [a, b, c]}}" for i in range(12))
        schema = Schema.loads(f"rows: {rows}\nlabel: y\ncolumns:\n{columns}\n  y: {{kind: boolean}}\n")
        return plan_of(schema, Budget(epsilon, 1e-9), one_way_share=0.2, order=None)

    assert not plan(500, 0.5).pairs
    assert plan(3_000, 1.0).pairs
    assert not plan(3_000, 1.0).split
    assert plan(100_000, 1.0).split
    assert plan(3_000, 1.0).bins < plan(100_000, 1.0).bins


@pytest.mark.parametrize("columns", ["numbers", "categories"])
def test_tables_of_one_kind(people: tuple[Schema, pd.DataFrame], columns: str):
    schema, frame = people
    gone = ("age", "pay") if columns == "categories" else ("town", "dialect")
    text = "\n".join(line for line in schema.dumps().splitlines() if not line.strip().startswith(gone))
    model = us.fit(frame.drop(columns=list(gone)), Schema.loads(text), method="dp-merf", **QUICK | {"steps": 10})
    assert len(model.sample(50)) == 50


def test_a_label_of_a_thousand_classes_and_one_without_rows(people: tuple[Schema, pd.DataFrame]):
    schema, frame = people
    values = ", ".join(f"'{i}'" for i in range(1000))
    text = schema.dumps().replace("label: sick", "label: code") + f"  code: {{kind: categorical, values: [{values}]}}\n"
    coded = frame.assign(code=(np.arange(len(frame)) % 7).astype(str))
    rows = us.fit(coded, Schema.loads(text), method="dp-merf", epsilon=4.0, **QUICK | {"steps": 50}).sample(500, seed=0)
    assert set(rows["code"].astype(str)) <= {str(i) for i in range(1000)}

    three = Schema.loads(
        schema.dumps().replace("label: sick", "label: code") + "  code: {kind: categorical, values: [a, b, never]}\n"
    )
    coded = frame.assign(code=np.where(frame["sick"], "a", "b"))
    rows = us.fit(coded, three, method="dp-merf", epsilon=4.0, **QUICK | {"steps": 50}).sample(2000, seed=0)
    assert (rows["code"].astype(str) == "never").mean() < 0.02
