"""DP-MERF on images: what a row may move, what is charged, what comes out."""

import itertools
import subprocess
import sys
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, Gaussian, NonPrivate, PoissonSampled, SelfComposed, Streams
from understudy.privacy.accountant import epsilon, flatten
from understudy.privacy.calibrate import noise_multiplier
from understudy.progress import silent
from understudy.schema import Schema
from understudy.synthesizers.dp_merf import pictures
from understudy.synthesizers.dp_merf.pictures import codes as codes_module
from understudy.synthesizers.dp_merf.pictures import embedding as embedding_module
from understudy.synthesizers.dp_merf.pictures import method, release
from understudy.synthesizers.dp_merf.pictures.codes import WholeEncoder
from understudy.synthesizers.dp_merf.pictures.embedding import PictureMap
from understudy.synthesizers.dp_merf.pictures.frequencies import code_waves, picture_waves
from understudy.synthesizers.dp_merf.pictures.plan import make_plan, minibatch_plan
from understudy.synthesizers.dp_merf.pictures.released import PictureReleased
from understudy.table.table import Table

SIDE = 6
LABELLED = f"""
rows: 60
label: kind
columns:
  picture: {{kind: image, height: {SIDE}, width: {SIDE}}}
  kind: {{kind: categorical, values: [a, b, c]}}
"""
UNLABELLED = f"""
rows: 60
columns:
  picture: {{kind: image, height: {SIDE}, width: {SIDE}}}
"""
ONE = Budget(1.0, 1e-5)
FREE = Budget(float("inf"), 1e-5)


@dataclass(frozen=True)
class Options:
    """The fields of dp-merf's config that images read."""

    one_way_share: float | None = None
    order: int | None = None
    features: int | None = 40
    widths: tuple[float, ...] | None = None
    hidden: int | None = None
    latent: int | None = 3
    batch: int | None = 24
    steps: int | None = 20
    learning_rate: float | None = None
    class_shares: str | None = None
    minibatches: int | None = None
    autoencoder: bool | None = None
    count_weight: float | None = None
    undersample: dict[str, float] | None = None


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema.loads(LABELLED)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Random, black, white, grey and checkered images: the corners of the cube and its inside."""
    rng = np.random.default_rng(0)
    board = (np.indices((SIDE, SIDE)).sum(axis=0) % 2 * 255).ravel()
    corners = [np.zeros(SIDE**2), np.full(SIDE**2, 255), np.full(SIDE**2, 128), board, 255 - board]
    inside = rng.integers(0, 256, (6, SIDE**2))
    return np.concatenate([np.stack(corners), inside, 255 * (inside[:3] > 127)]).astype(np.uint8)


def table_of(schema: Schema, pixels: np.ndarray, labels: np.ndarray | None = None) -> Table:
    given = {"picture": pixels}
    if schema.label:
        given["kind"] = np.zeros(len(pixels), dtype=np.uint8) if labels is None else labels.astype(np.uint8)
    return Table.from_codes(schema, given)


@pytest.fixture(scope="module")
def table(schema: Schema, images: np.ndarray) -> Table:
    return table_of(schema, images, np.arange(len(images)) % 3)


def small_encoder(seed: int = 0) -> WholeEncoder:
    rng = np.random.default_rng(seed)
    sizes = [SIDE**2, 5, 4]
    return WholeEncoder.of([(rng.normal(size=pair), rng.normal(size=pair[1])) for pair in itertools.pairwise(sizes)])


def feature_maps(schema: Schema, module: ModuleType = embedding_module) -> list[tuple[Any, WholeEncoder | None]]:
    """Every shape of feature map: labelled, unlabelled, counts that weigh most, and of codes."""
    rng = np.random.default_rng(1)
    pixels = picture_waves(schema.images["picture"], 30, (0.5, 2.0), rng)
    latent = code_waves(4, 20, (0.5, 1.0), rng)
    return [
        (module.PictureMap.weighted(pixels, 3, pixels=1.0, count=0.25), None),
        (module.PictureMap.weighted(pixels, 1, pixels=0.3, count=1.0), None),
        (module.PictureMap.weighted(pixels, 3, pixels=0.5, count=3.0), None),
        (module.PictureMap.weighted(latent, 3, pixels=1.0, count=0.25), small_encoder()),
    ]


def row_vectors(features: Any, encoder: WholeEncoder | None, images: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """What each image adds under each label."""
    inputs = images if encoder is None else encoder.codes(images)
    return {
        (number, label): features.sums(inputs[number : number + 1], np.array([label])).ravel().astype(float)
        for number in range(len(inputs))
        for label in range(features.classes)
    }


def largest_moves(features: Any, encoder: WholeEncoder | None, images: np.ndarray) -> tuple[float, float]:
    """The longest vector of a row, and the largest distance between two, over the sensitivities that are claimed."""
    vectors = list(row_vectors(features, encoder, images).values())
    alone = max(np.linalg.norm(vector) for vector in vectors)
    apart = max(np.linalg.norm(first - second) for first, second in itertools.combinations(vectors, 2))
    return alone / features.sensitivity(), apart / features.sensitivity("replace-one")


# Sensitivity


def test_no_row_moves_the_sums_by_more_than_the_bound(schema, images):
    for features, encoder in feature_maps(schema):
        alone, apart = largest_moves(features, encoder, images)
        assert alone <= 1
        assert apart <= 1
        if encoder is None:
            assert alone > 0.999  # black and white images reach it


def test_replacing_reaches_its_bound_where_counts_weigh_most(schema, images):
    features, _ = feature_maps(schema)[2]
    assert largest_moves(features, None, images)[1] > 0.999


def test_pixels_reach_their_own_bound_both_ways(schema, images):
    features, _ = feature_maps(schema)[0]
    pixels = slice(features.waves.size, features.size - 1)
    vectors = row_vectors(features, None, images)
    black, white = vectors[0, 0][pixels], vectors[1, 0][pixels]
    bound = 255 * features.pixel_weight * SIDE
    assert np.linalg.norm(black) == bound
    assert np.linalg.norm(black - white) == 2 * bound


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= self.waves.sums(", "= 1.4142135 * self.waves.sums("),  # features of norm sqrt(2)
        ("2 * mine.sum(axis=0, dtype=np.int64) - LEVELS * len(mine)", "2 * mine.sum(axis=0, dtype=np.int64)"),
        ("whole = features + self.count_weight**2", "whole = features"),
        ("max(4 * features, 2 * whole)", "2 * whole"),
    ],
)
def test_a_planted_bug_passes_the_bound(schema, images, copy_of, old, new):
    planted = copy_of(embedding_module, (old, new))
    moves = [largest_moves(features, encoder, images) for features, encoder in feature_maps(schema, planted)]
    assert max(max(pair) for pair in moves) > 1


def test_a_relation_that_is_not_known_is_refused(schema):
    with pytest.raises(ValueError, match="relation must be one of"):
        feature_maps(schema)[0][0].sensitivity("swap")


# A row's part is its own


@pytest.mark.parametrize("options", [Options(), Options(autoencoder=True)])
def test_a_row_adds_the_same_whatever_stands_around_it(schema, images, options, monkeypatch):
    plan = make_plan(options, schema, ONE)
    features = method.feature_map(plan, 3)
    encoder = None
    if options.autoencoder:
        rng = np.random.default_rng(5)
        encoder = WholeEncoder.of(
            [(rng.normal(size=(SIDE**2, 9)), rng.normal(size=9)), (rng.normal(size=(9, 16)), np.zeros(16))]
        )
    labels = np.arange(len(images)) % 3
    rng = np.random.default_rng(0)

    def sums(rows: list[int]) -> np.ndarray:
        return release.exact_sums(plan, features, table_of(schema, images[rows], labels[rows]), encoder, rng)

    everything = list(range(len(images)))
    whole = sums(everything)
    for row in everything:
        without = sums([other for other in everything if other != row])
        assert np.array_equal(whole - without, sums([row]))
    for size in (1, 3, 5):
        monkeypatch.setattr(release, "ROWS_PER_BLOCK", size)
        monkeypatch.setattr(codes_module, "ROWS_AT_ONCE", 2)
        assert np.array_equal(sums(everything[::-1]), whole)


def test_codes_are_exact_at_the_largest_weights():
    rng = np.random.default_rng(0)
    encoder = WholeEncoder.of(
        [(rng.choice([-1e9, 1e9], (40, 7)), np.full(7, 1e30)), (np.full((7, 2), 1e9), np.ones(2))]
    )
    pixels = rng.integers(0, 256, (50, 40), dtype=np.uint8)
    for w, b in encoder.layers:
        assert (
            np.abs(w).sum(axis=0).max() * max(255, codes_module.LARGEST_UNIT if len(w) == 7 else 255) + np.abs(b).max()
            < 2**53
        )
    exact = [
        [int(sum(int(p) * int(x) for p, x in zip(row, w, strict=True))) for w in encoder.layers[0][0].T]
        for row in pixels
    ]
    assert np.array_equal(pixels.astype(np.float64) @ encoder.layers[0][0], np.array(exact, dtype=np.float64))


def test_codes_follow_the_encoder():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(36, 8)) / 6, rng.normal(size=8)), (rng.normal(size=(8, 4)) / 3, rng.normal(size=4))]
    pixels = rng.integers(0, 256, (200, 36), dtype=np.uint8)
    x = pixels / 255 @ layers[0][0] + layers[0][1]
    x = np.where(x > 0, x, 0.2 * x) @ layers[1][0] + layers[1][1]
    assert np.abs(WholeEncoder.of(layers).codes(pixels) - 127.5 * (1 + np.tanh(x))).max() < 1


class _StopError(Exception):
    pass


def frequencies_seen(module: ModuleType, options: Options, schema: Schema, table: Table) -> np.ndarray:
    """The frequencies with which a table would be embedded."""
    seen = []

    def stop(plan: Any, features: PictureMap, *rest: Any, **more: Any) -> None:
        seen.append(features.waves.frequencies)
        raise _StopError

    original, module.release = module.release, stop
    try:
        with pytest.raises(_StopError):
            module.train(options, schema, table, ONE, streams=Streams.from_seed(0), progress=silent)
    finally:
        module.release = original
    return seen[0]


def test_frequencies_do_not_see_the_rows(schema, images, copy_of):
    dark, light = table_of(schema, images[:1]), table_of(schema, images[1:2])
    assert np.array_equal(*(frequencies_seen(method, Options(), schema, t) for t in (dark, light)))
    planted = copy_of(
        method,
        ("feature_map(plan, streams.init)", "feature_map(plan, streams.init, table)"),
        ("def feature_map(plan: Plan, seed: int)", "def feature_map(plan: Plan, seed: int, table: Table)"),
        (
            "picture_waves(plan.image, plan.features, plan.widths, rng)",
            "picture_waves(plan.image, plan.features, (1 + table.codes(plan.image_name).mean(),), rng)",
        ),
    )
    assert not np.array_equal(*(frequencies_seen(planted, Options(), schema, t) for t in (dark, light)))


# Charges


def fitted(options: Options, schema: Schema, table: Table, budget: Budget = ONE, seed: int = 0) -> Any:
    return pictures.train(options, schema, table, budget, streams=Streams.from_seed(seed), progress=silent)


def test_one_release_is_one_gaussian_of_the_whole_budget(schema, table):
    _, ledger = fitted(Options(), schema, table)
    assert ledger.events == (SelfComposed(Gaussian(noise_multiplier(ONE)), 1),)
    assert 0.999 < ledger.spent() <= 1.0


def test_without_a_budget_nothing_is_claimed_and_sums_are_exact(schema, table, images):
    plan = make_plan(Options(), schema, FREE)
    features = method.feature_map(plan, 0)
    streams = Streams.from_seed(0)
    ledger = method.Ledger(FREE)
    found = release.release(plan, features, table, None, streams=streams, ledger=ledger)
    assert ledger.events == (SelfComposed(NonPrivate(), 1),)
    assert found.rows.tolist() == [5, 5, 4]
    assert np.allclose(found.pixels[0], images[::3].mean(axis=0) / 255)


def noise_of(options: Options, schema: Schema, budget: Budget) -> tuple[np.ndarray, float]:
    """Released counts of an empty table times the count's weight, and the noise that the embedding claims."""
    plan = make_plan(options, schema, budget)
    features = PictureMap.weighted(method.feature_map(plan, 0).waves, 3, pixels=1.0, count=0.25)
    empty = table_of(schema, np.zeros((0, SIDE**2), dtype=np.uint8))
    values = []
    read = PictureMap.read

    def keep(self: PictureMap, noisy: np.ndarray, noise_std: float, kept: np.ndarray) -> Any:
        values.append((noisy, noise_std))
        return read(self, noisy, noise_std, kept)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PictureMap, "read", keep)
        release.release(plan, features, empty, None, streams=Streams.from_seed(0), ledger=method.Ledger(budget))
    ((noisy, claimed),) = values
    multiplier = plan.noise_multiplier
    if plan.minibatches is not None:
        multiplier = plan.minibatches.noise_multiplier / (plan.minibatches.rate * plan.minibatches.steps**0.5)
    assert claimed == pytest.approx(multiplier * features.sensitivity())
    return noisy.ravel() / claimed, claimed


@pytest.mark.parametrize("options", [Options(features=1000), Options(features=1000, minibatches=50)])
def test_noise_has_the_scale_that_is_charged(schema, options):
    from scipy.stats import kstest, norm

    noise, _ = noise_of(options, schema, ONE)
    assert kstest(noise, norm().cdf).pvalue > 1e-3
    for wrong in (0.9, 1.1):
        assert kstest(noise / wrong, norm().cdf).pvalue < 1e-4


@pytest.mark.parametrize(("multiplier", "golden"), [(5.0, 0.1315), (1.0, 1.1843)])
def test_minibatches_cost_what_the_accountant_says(multiplier, golden):
    plan = replace(minibatch_plan(60_000, 600, Budget(2.0, 1e-5)), noise_multiplier=multiplier)
    assert plan.event == SelfComposed(PoissonSampled(1 / 120, Gaussian(multiplier)), 600)
    assert epsilon([plan.event], 1e-5).value == pytest.approx(golden, abs=6e-5)


def test_minibatches_are_charged_and_keep_the_budget(schema, table):
    _, ledger = fitted(Options(minibatches=50), schema, table)
    ((event,), plan) = ledger.events, make_plan(Options(minibatches=50), schema, ONE)
    assert event == plan.minibatches.event
    assert [entry.event for entry in pictures.planned(Options(minibatches=50), schema, ONE).entries] == [event]
    assert 0.99 < ledger.spent() <= 1.0


def test_rows_join_minibatches_by_coins_of_their_own(schema):
    from scipy.stats import binom, chisquare

    plan = make_plan(Options(minibatches=50), schema, ONE)
    often = release._times(plan, np.zeros(20_000, dtype=np.int64), np.random.default_rng(0))
    seen = np.bincount(often, minlength=15)
    expected = len(often) * binom(50, 0.1).pmf(np.arange(len(seen)))
    enough = expected > 10
    observed = np.append(seen[enough], seen[~enough].sum())
    share = np.append(expected[enough], len(often) - expected[enough].sum())
    assert chisquare(observed, share).pvalue > 1e-3
    assert abs(np.corrcoef(often[1:], often[:-1])[0, 1]) < 0.03


# The autoencoder


def coder_setup(schema: Schema) -> tuple[Any, Any]:
    from understudy.training.nets import Net
    from understudy.training.pixel_autoencoder import PixelCoder, start

    coder = PixelCoder(
        encoder=Net.of([SIDE**2, 6, 3], last="tanh"), decoder=Net.of([3, 6, SIDE**2]), learning_rate=0.1, steps=10
    )
    return coder, start(coder, 0)


def moved_by_noise(module: ModuleType, schema: Schema) -> set[str]:
    """Which layers a step without any row moves: those that noise reaches."""
    import jax

    from understudy.training.dpsgd import Numbers

    coder, state = coder_setup(schema)
    numbers = Numbers(np.float32(1.0), np.float32(3.0), np.float32(1.0))
    keys = jax.random.split(jax.random.key(0))
    after = jax.jit(module.make_step(coder))(
        numbers, state, np.zeros((2, SIDE**2), np.uint8), np.zeros(2, np.float32), *keys
    )
    before, after = state["params"], after["params"]
    return {name for name in before if all((before[name][part] != after[name][part]).any() for part in ("w", "b"))}


def test_noise_reaches_both_halves_of_the_autoencoder(schema, copy_of):
    from understudy.training import pixel_autoencoder

    everything = {"encoder.0", "encoder.1", "decoder.0", "decoder.1"}
    assert moved_by_noise(pixel_autoencoder, schema) == everything
    planted = copy_of(
        pixel_autoencoder,
        (
            "gradient = numbers.noisy_mean(clipped, noise_key)",
            "gradient = clipped | {k: v for k, v in numbers.noisy_mean(clipped, noise_key).items() if k[0] == 'd'}",
        ),
    )
    assert moved_by_noise(planted, schema) < everything


def test_an_image_moves_both_halves_together_by_at_most_the_clip(schema, images):
    import jax
    import jax.numpy as jnp

    from understudy.training import ghost
    from understudy.training.pixel_autoencoder import loss_of_rows

    coder, state = coder_setup(schema)
    norms = []
    for image in images[:5]:
        batch = jnp.asarray(image[None]), jnp.zeros((1, 3))
        clipped = ghost.clipped_sum(
            lambda params, rows, tap: loss_of_rows(coder, params, rows, tap),
            state["params"],
            batch,
            jnp.ones(1),
            clip=0.5,
        )
        norm = float(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(clipped))))
        norms.append(norm)
    assert 0.49 < max(norms) <= 0.5


@pytest.fixture(scope="module")
def with_autoencoder(schema, table) -> Any:
    return fitted(Options(autoencoder=True), schema, table)


def test_the_autoencoder_is_charged_beside_the_release(schema, with_autoencoder):
    _, ledger = with_autoencoder
    plan = make_plan(Options(autoencoder=True), schema, ONE)
    assert ledger.events == (plan.coder.event, SelfComposed(Gaussian(plan.noise_multiplier), 1))
    told = pictures.planned(Options(autoencoder=True), schema, ONE)
    assert flatten(entry.event for entry in told.entries) == flatten(ledger.events)
    assert ledger.spent() <= 1.0


# What comes out


def same_after_a_file(released: PictureReleased) -> None:
    again = PictureReleased.from_parts(released.schema, released.arrays(), released.facts())
    first, second = (r.sample(7, np.random.default_rng(0)) for r in (released, again))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert again.rows == released.rows
    Table.from_codes(released.schema, first)  # they are codes of the schema


def test_models_come_back_from_their_parts(schema, table, images, with_autoencoder):
    same_after_a_file(with_autoencoder[0])
    same_after_a_file(fitted(Options(), schema, table)[0])
    unlabelled = Schema.loads(UNLABELLED)
    released, _ = fitted(Options(), unlabelled, table_of(unlabelled, images))
    same_after_a_file(released)
    assert set(released.sample(2, np.random.default_rng(0))) == {"picture"}


def test_damaged_parts_are_refused(schema, table):
    released, _ = fitted(Options(), schema, table)
    for name, damage in (
        ("class_rows", np.array([1.0, -1.0, 2.0])),
        ("class_rows", np.ones(2)),
        ("prototypes", np.full_like(released.prototypes, np.nan)),
        ("prototypes", np.zeros((3, 2, 7), dtype=np.float32)),
        ("directions", np.zeros((2, 3, SIDE**2), dtype=np.float32)),
    ):
        with pytest.raises(ValueError, match="must"):
            PictureReleased.from_parts(schema, released.arrays() | {name: damage}, released.facts())


def test_labels_follow_counts_or_the_declaration(schema, images):
    labels = np.repeat([0, 1, 2], [10, 30, 60])
    rows = table_of(schema, images[np.arange(100) % len(images)], labels)
    counted, _ = fitted(Options(), schema, rows, FREE)
    equal, _ = fitted(Options(class_shares="equal"), schema, rows, FREE)
    assert counted.class_shares.tolist() == [0.1, 0.3, 0.6]
    assert counted.rows == equal.rows == 100
    drawn = np.bincount(equal.sample(3000, np.random.default_rng(0))["kind"]) / 3000
    assert np.abs(drawn - 1 / 3).max() < 0.04


def test_undersampled_classes_are_drawn_as_often_as_they_were(schema, images):
    labels = np.repeat([0, 1, 2], [4000, 1000, 1000])
    rows = table_of(schema, images[np.arange(6000) % len(images)], labels)
    options = Options(undersample={"a": 0.25})
    plan = make_plan(options, schema, FREE)
    features = method.feature_map(plan, 0)
    sums = release.exact_sums(plan, features, rows, None, np.random.default_rng(0))
    assert abs(sums[0, -1] / features.count_weight - 1000) < 150
    assert (sums[1:, -1] / features.count_weight).tolist() == [1000, 1000]
    released, _ = fitted(options, schema, rows, FREE)
    assert abs(released.class_shares[0] - 4 / 6) < 0.03


def test_conditions_name_the_label_alone(schema, table):
    released, _ = fitted(Options(), schema, table)
    assert set(released.sample(50, np.random.default_rng(0), {"kind": ["b", "c"]})["kind"]) == {1, 2}
    with pytest.raises(OptionError, match="only the label 'kind'"):
        released.sample(5, np.random.default_rng(0), {"picture": 3})
    with pytest.raises(OptionError, match="outside what the schema declares"):
        released.sample(5, np.random.default_rng(0), {"kind": "z"})


def test_a_table_without_rows_can_be_fitted(schema):
    released, _ = fitted(Options(), schema, table_of(schema, np.zeros((0, SIDE**2), dtype=np.uint8)))
    assert released.sample(4, np.random.default_rng(0))["picture"].shape == (4, SIDE**2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (Options(class_shares="even"), "class_shares must be one of counted, equal"),
        (Options(minibatches=10, autoencoder=True), "exclude each other"),
        (Options(undersample={"a": 0}), "undersample must give every class a rate above 0"),
        (Options(undersample={"q": 0.5}), "no declared value of the label 'kind'"),
        (Options(features=10_000_000), "features must be at most"),
        (Options(batch=10_000_000), "batch and latent make"),
        (Options(hidden=8), "hidden is for tables"),
        (Options(order=2), "order is for tables"),
        (Options(one_way_share=0.1), "one_way_share is for tables"),
        (Options(count_weight=0), "count_weight must be above 0"),
    ],
)
def test_wrong_options_are_refused_before_any_row(schema, options, words):
    with pytest.raises(OptionError, match=words):
        pictures.check(options, schema, ONE)


def test_other_columns_and_too_many_classes_are_refused(schema):
    beside = Schema.loads(LABELLED + "  age: {kind: integer, low: 0, high: 9}\n")
    with pytest.raises(SchemaError, match="drop 'age'"):
        pictures.check(Options(), beside, ONE)
    many = Schema.loads(LABELLED.replace("[a, b, c]", str([f"v{n}" for n in range(65)])))
    with pytest.raises(SchemaError, match="2 to 64 classes"):
        pictures.check(Options(), many, ONE)
    with pytest.raises(OptionError, match="undersample needs a label"):
        pictures.check(Options(undersample={"a": 0.5}), Schema.loads(UNLABELLED), ONE)


def test_sampling_needs_no_jax(tmp_path, schema, table):
    released, _ = fitted(Options(), schema, table)
    np.savez(tmp_path / "arrays.npz", **released.arrays())
    code = (
        "import sys, numpy as np\n"
        "from understudy.schema import Schema\n"
        "from understudy.synthesizers.dp_merf.pictures import PictureReleased\n"
        f"arrays = dict(np.load({str(tmp_path / 'arrays.npz')!r}))\n"
        f"released = PictureReleased.from_parts(Schema.loads({LABELLED!r}), arrays, {released.facts()!r})\n"
        "released.sample(3, np.random.default_rng(0))\n"
        "assert 'jax' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def accuracy_on_digits(options: Options, budget: Budget) -> float:
    """Of logistic regression on made digits, asked about real ones."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    digits = load_digits()
    pixels = np.rint(digits.data * 255 / 16).astype(np.uint8)
    schema = Schema.loads(
        "rows: 1500\nlabel: kind\ncolumns:\n  picture: {kind: image, height: 8, width: 8}\n"
        "  kind: {kind: categorical, values: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']}\n"
    )
    train, test = slice(0, 1400), slice(1400, None)
    released, _ = fitted(options, schema, table_of(schema, pixels[train], digits.target[train]), budget)
    made = released.sample(2000, np.random.default_rng(0))
    model = LogisticRegression(max_iter=200).fit(made["picture"] / 255, made["kind"])
    return (model.predict(pixels[test] / 255) == digits.target[test]).mean()


def test_digits_at_epsilon_ten_teach_a_classifier():
    options = Options(features=400, latent=8, batch=300, steps=200)
    assert accuracy_on_digits(options, Budget(10.0, 1e-5)) > 0.6


@pytest.mark.slow
def test_an_autoencoder_and_prototypes_of_its_codes_keep_the_classes():
    assert accuracy_on_digits(Options(features=300, batch=300, steps=150, autoencoder=True), FREE) > 0.6
