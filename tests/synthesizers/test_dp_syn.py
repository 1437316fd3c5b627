"""DP-SYN: what one row can do to the moments of codes, classes as disjoint parts, and mixtures from noisy sums."""

import dataclasses
import itertools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, Gaussian, Ledger, NonPrivate, Parallel, SelfComposed, Streams
from understudy.privacy.events import event_from_dict
from understudy.schema import Schema
from understudy.synthesizers.api import fit
from understudy.synthesizers.dp_syn import latent_mixture, method, moments
from understudy.training import autoencoder, loop, nets
from understudy.training.heads import Blocks

RADIUS = math.sqrt(3)
BLOCKS = Blocks((4, 2, 3))
SCHEMA = Schema.loads("""
rows: 400
label: grade
columns:
  age: {kind: integer, low: 0, high: 9}
  town: {kind: categorical, values: [a, b, c]}
  grade: {kind: categorical, values: [low, middle, high, never]}
""")
TINY = {"steps": 4, "hidden": 6, "latent": 3, "batch": 400, "iterations": 3}


def people(rows: int = 390) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    grade = rng.choice(["low", "middle", "high"], rows, p=[0.5, 0.3, 0.2])
    age = np.clip(rng.integers(0, 5, rows) + 5 * (grade == "low"), 0, 9)
    return pd.DataFrame({"age": age, "town": np.where(grade == "high", "a", rng.choice(["a", "b", "c"], rows)),
                         "grade": grade})  # fmt: skip


def some_mixture(components: int, d: int, seed: int = 0) -> moments.Mixture:
    rng = np.random.default_rng(seed)
    roots = rng.normal(0, 0.3, (components, d, d)) + np.eye(d)
    covariances = 0.2 * roots @ roots.transpose(0, 2, 1)
    return moments.Mixture(rng.dirichlet(np.ones(components)), rng.normal(0, 0.7, (components, d)), covariances)


def some_layers(seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    sizes = [BLOCKS.width, 6, 3]
    return [(rng.normal(0, 1, (i, o)).astype(np.float32), rng.normal(0, 0.3, o).astype(np.float32))
            for i, o in itertools.pairwise(sizes)]  # fmt: skip


def every_row() -> np.ndarray:
    return np.array(list(np.ndindex(*BLOCKS.sizes)), dtype=np.uint8)


# --- what one row adds ---


def norms(codes: np.ndarray, mixture: moments.Mixture) -> np.ndarray:
    shares = moments.responsibilities(codes, mixture)
    return np.linalg.norm(moments.parts_of_rows(codes, shares, RADIUS).reshape(len(codes), -1), axis=1)


def test_one_row_never_moves_the_moments_further_than_charged_and_can_move_them_so_far():
    rng = np.random.default_rng(1)
    wild = rng.normal(0, 1, (4000, 3)) * rng.lognormal(0, 3, (4000, 1))
    reached = 0.0
    for components in (1, 2, 5):
        mixture = some_mixture(components, 3)
        found = norms(moments.into_ball(wild, RADIUS), mixture)
        assert found.max() <= moments.L2_SENSITIVITY
        reached = max(reached, found.max() / moments.L2_SENSITIVITY)
    assert reached > 1 - 1e-5
    # The test can fail: a code that was not drawn into the ball passes the bound.
    assert norms(1.01 * moments.into_ball(wild, RADIUS), some_mixture(1, 3)).max() > moments.L2_SENSITIVITY


def test_squares_off_the_diagonal_count_as_often_as_the_whole_matrix_has_them():
    codes = moments.into_ball(np.random.default_rng(0).normal(0, 1, (50, 3)), RADIUS)
    parts = moments.parts_of_rows(codes, np.ones((50, 1)), RADIUS)[:, 0, 4:] / moments.UNITS
    whole = np.einsum("ni,nj->nij", codes, codes) / RADIUS**2
    np.testing.assert_allclose(np.linalg.norm(parts, axis=1), np.linalg.norm(whole, axis=(1, 2)), rtol=1e-4)


def exact_sums(codes: np.ndarray, mixture: moments.Mixture | None, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    seen: list[np.ndarray] = []

    def capture(values: np.ndarray, **_: Any) -> np.ndarray:
        seen.append(values.copy())
        return values.astype(float)

    monkeypatch.setattr(moments, "gaussian", capture)
    moments.release_moments(codes, mixture, components=2, radius=RADIUS, noise_multiplier=1.0,
                            streams=None, ledger=None, purpose="x")  # fmt: skip
    return seen[0]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("place", [0, 17, 24])
def test_a_neighbour_changes_no_other_rows_part(first: bool, place: int, monkeypatch: pytest.MonkeyPatch):
    """Encoded, weighed and summed beside one row more: the sums differ by that row's own part, to the last unit."""
    rows, layers, mixture = every_row(), some_layers(), None if first else some_mixture(2, 3)
    base = moments.codes_of(rows, BLOCKS, layers, RADIUS)
    for new in every_row()[::5]:
        more = moments.codes_of(np.insert(rows, place, new, axis=0), BLOCKS, layers, RADIUS)
        assert (np.delete(more, place, axis=0) == base).all()
        alone = moments.codes_of(new[None], BLOCKS, layers, RADIUS)
        moved = exact_sums(more, mixture, monkeypatch) - exact_sums(base, mixture, monkeypatch)
        assert (moved == exact_sums(alone, mixture, monkeypatch)).all()
        assert np.linalg.norm(moved) <= moments.L2_SENSITIVITY


def test_codes_are_the_encoders():
    layers = some_layers()
    net = nets.Net.of([BLOCKS.width, 6, 3])
    params = [{"w": jnp.asarray(w), "b": jnp.asarray(b)} for w, b in layers]
    rows = every_row()
    expected = autoencoder.into_ball(nets.apply(net, params, BLOCKS.encode(jnp.asarray(rows))), 0.9)
    np.testing.assert_allclose(moments.codes_of(rows, BLOCKS, layers, 0.9), expected, atol=1e-5)


def test_codes_that_are_not_numbers_lie_at_the_centre():
    found = moments.into_ball(np.array([[np.nan, 1.0], [np.inf, 0.0], [1e200, 1e200], [0.1, 0.0]]), 1.0)
    assert np.isfinite(found).all()
    assert (np.linalg.norm(found, axis=1) <= 1 + 1e-12).all()
    assert found[[0, 1]].tolist() == [[0.0, 0.0]] * 2
    assert found[3].tolist() == [0.1, 0.0]


def test_responsibilities_are_those_of_the_density():
    from scipy.stats import multivariate_normal

    mixture = some_mixture(3, 3)
    codes = np.random.default_rng(2).normal(0, 1, (40, 3))
    weighed = np.stack(
        [w * multivariate_normal(m, c).pdf(codes)
         for w, m, c in zip(mixture.weights, mixture.means, mixture.covariances, strict=True)], axis=1)  # fmt: skip
    found = moments.responsibilities(codes, mixture)
    np.testing.assert_allclose(found, weighed / weighed.sum(axis=1, keepdims=True), rtol=1e-9)


# --- mixtures from noisy sums ---


def fitted(codes: np.ndarray, noise: float, components: int = 2, blur: float = 0.1) -> moments.Mixture:
    budget = Budget(math.inf if noise == 0 else 1e5, 1e-6)
    return latent_mixture.fit_mixture(
        codes, components=components, iterations=12, radius=RADIUS, blur=blur, noise_multiplier=noise,
        streams=Streams.from_seed(3), ledger=Ledger(budget), purpose="moments")  # fmt: skip


def test_without_noise_em_finds_the_clusters():
    rng = np.random.default_rng(0)
    middles = np.array([[1.0, 0.5, 0.0], [-1.0, -0.5, 0.3]])
    codes = moments.into_ball(np.repeat(middles, [3000, 1000], axis=0) + rng.normal(0, 0.2, (4000, 3)), RADIUS)
    found = fitted(codes, 0.0)
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], [0.75, 0.25], atol=0.01)
    np.testing.assert_allclose(found.means[order], middles, atol=0.03)
    for covariance in found.covariances:  # of blurred codes
        np.testing.assert_allclose(covariance, (0.2**2 + 0.1**2) * np.eye(3), atol=0.01)


@pytest.mark.parametrize("noise", [1.0, 30.0, 1e5])
@pytest.mark.parametrize("rows", [0, 1, 200])
def test_whatever_noise_does_the_mixture_is_one(noise: float, rows: int):
    codes = moments.into_ball(np.random.default_rng(0).normal(0, 1, (rows, 3)), RADIUS)
    for components in (1, 3):
        found = fitted(codes, noise, components)
        assert found.weights.sum() == pytest.approx(1)
        assert (found.weights >= 0).all()
        assert (np.linalg.norm(found.means, axis=1) <= RADIUS + 1e-9).all()
        assert (np.linalg.eigvalsh(found.covariances) > 0.009).all()


def test_noise_on_moments_is_what_the_multiplier_says():
    from scipy.stats import kstest, norm

    codes = np.zeros((0, 3))
    ledger = Ledger(Budget(1e5, 1e-6))
    streams = Streams.from_seed(0)
    found = [moments.release_moments(codes, None, components=40, radius=RADIUS, noise_multiplier=2.0, streams=streams,
                                     ledger=ledger, purpose="x") for _ in range(80)]  # fmt: skip
    counts, firsts = np.concatenate([m.count for m in found]), np.concatenate([m.first.ravel() for m in found])
    for values, scale in ((counts, 2 * math.sqrt(3)), (firsts, 2 * math.sqrt(3) * RADIUS)):
        assert kstest(values, norm(scale=scale).cdf).pvalue > 1e-3
        assert kstest(values, norm(scale=0.8 * scale).cdf).pvalue < 1e-4
        assert kstest(values, norm(scale=1.25 * scale).cdf).pvalue < 1e-4
    assert ledger.events == (Gaussian(2.0),) * 80


def test_the_nearest_covariance():
    matrix = np.diag([2.0, 1.0, -0.5])
    np.testing.assert_allclose(latent_mixture.nearest_covariance(matrix, most=9), np.diag([1.75, 0.75, 0]), atol=1e-12)
    assert np.trace(latent_mixture.nearest_covariance(100 * matrix, most=3.0)) == pytest.approx(3.0)


# --- the ledger ---


def watch(monkeypatch: pytest.MonkeyPatch) -> tuple[list, list]:
    """What is really run: (rate, steps, noise over clip, labels of rows) of every training, multipliers of moments."""
    trained, released = [], []
    run, gaussian = loop.run, moments.gaussian

    def spy_run(plan: Any, step: Any, state: Any, codes: np.ndarray, **rest: Any) -> Any:
        ratio = float(plan.numbers.noise_std) / float(plan.numbers.clip)
        trained.append((plan.rate, plan.steps, ratio, codes, plan.expected_batch))
        return run(plan, step, state, codes, **rest)

    def spy_gaussian(values: np.ndarray, *, l2_sensitivity: float, noise_multiplier: float, **rest: Any) -> np.ndarray:
        released.append((l2_sensitivity, noise_multiplier))
        return gaussian(values, l2_sensitivity=l2_sensitivity, noise_multiplier=noise_multiplier, **rest)

    monkeypatch.setattr(loop, "run", spy_run)
    monkeypatch.setattr(moments, "gaussian", spy_gaussian)
    return trained, released


def test_the_ledger_is_what_ran_and_classes_are_disjoint_parts(monkeypatch: pytest.MonkeyPatch):
    trained, released = watch(monkeypatch)
    model = fit(people(), SCHEMA, method="dp-syn", epsilon=5.0, seed=1, **(TINY | {"batch": 40}))
    one_way, steps, sums = [entry.event for entry in model.certificate.entries]
    assert isinstance(one_way, Gaussian)
    assert isinstance(steps, Parallel)
    assert isinstance(sums, Parallel)
    assert len(trained) == len(steps.events) == len(sums.events) == 3
    assert len(released) == 3 * TINY["iterations"]
    for event, (rate, count, ratio, _, _) in zip(steps.events, trained, strict=True):
        assert (event.event.rate, event.count) == (rate, count)
        assert event.event.event.noise_multiplier <= ratio * (1 + 1e-12)
        assert ratio < event.event.event.noise_multiplier * (1 + 1e-5)
    for event in sums.events:
        assert event == SelfComposed(Gaussian(released[0][1]), TINY["iterations"])
    assert set(released) == {(moments.L2_SENSITIVITY, released[0][1])}
    # Each training met the rows of one class, and all rows of the learnt classes were met once.
    labels = [set(codes[:, 2].tolist()) for *_, codes, _ in trained]
    assert all(len(label) == 1 for label in labels)
    assert len(set.union(*labels)) == 3
    assert sum(len(codes) for *_, codes, _ in trained) == 390
    assert 0.98 * 5.0 < model.certificate.epsilon <= 5.0
    assert event_from_dict(steps.to_dict()) == steps


def test_expected_batches_come_from_released_counts(monkeypatch: pytest.MonkeyPatch):
    trained, _ = watch(monkeypatch)
    model = fit(people(), SCHEMA, method="dp-syn", epsilon=5.0, seed=1, **TINY)
    shares = [g.share for g in model.released.generators]
    counts = model.released.fine["grade"]
    expected = [batch for *_, batch in trained]
    np.testing.assert_allclose(expected, counts[: len(expected)], rtol=1e-6)  # the rate is 1
    assert not any(float(batch).is_integer() for batch in expected)
    assert sum(shares) == pytest.approx(1)


def test_without_a_budget_nothing_is_promised():
    model = fit(people(), SCHEMA, method="dp-syn", epsilon=math.inf, seed=1, **TINY)
    events = [entry.event for entry in model.certificate.entries]
    assert events[0] == NonPrivate()
    assert model.certificate.epsilon == math.inf
    drawn = model.sample(2000, seed=0)
    assert (drawn["grade"] == "low").mean() == pytest.approx((people()["grade"] == "low").mean(), abs=0.02)
    assert not (drawn["grade"] == "never").any()


# --- classes ---


def test_small_and_empty_classes_are_made_from_the_columns_alone(monkeypatch: pytest.MonkeyPatch):
    trained, _ = watch(monkeypatch)
    frame = people().assign(grade=np.where(np.arange(390) < 3, "high", "low"))
    model = fit(frame, SCHEMA, method="dp-syn", epsilon=1.0, seed=1, **TINY)
    assert len(trained) == 1
    steps = model.certificate.entries[1].event
    assert isinstance(steps, Parallel)
    assert len(steps.events) == 1
    plain = [g for g in model.released.generators if len(g.layers) == 1]
    assert len(plain) == len(model.released.generators) - 1
    drawn = model.sample(50, seed=0, where={"grade": "low"})
    assert (drawn["grade"] == "low").all()


def test_a_table_that_no_class_can_be_learnt_from_costs_as_much_as_any(monkeypatch: pytest.MonkeyPatch):
    # A charge that followed what was found would make the certificate's epsilon depend on the rows.
    trained, released = watch(monkeypatch)
    monkeypatch.setattr(method, "LEAST_ROWS_IN_NOISE", 1e9)
    bare = fit(people(), SCHEMA, method="dp-syn", epsilon=5.0, seed=3, **TINY)
    assert not trained
    assert not released
    assert len(bare.sample(20, seed=0)) == 20
    monkeypatch.setattr(method, "LEAST_ROWS_IN_NOISE", 0.0)
    full = fit(people(), SCHEMA, method="dp-syn", epsilon=5.0, seed=3, **TINY)
    assert trained
    assert bare.certificate.epsilon == full.certificate.epsilon


def test_classes_tell_their_columns_apart():
    frame = pd.concat([people(390)] * 10, ignore_index=True)
    schema = SCHEMA.model_copy(update={"rows": 4000})
    model = fit(frame, schema, method="dp-syn", epsilon=20.0, seed=1, steps=150, hidden=16, latent=4, batch=4000)
    drawn = model.sample(4000, seed=0)
    for grade in ("low", "high"):
        real, made = frame[frame["grade"] == grade], drawn[drawn["grade"] == grade]
        assert made["age"].mean() == pytest.approx(real["age"].mean(), abs=0.8)
    assert (drawn[drawn["grade"] == "high"]["town"] == "a").mean() > 0.8


# --- refusals, before a row is read ---


@pytest.mark.parametrize(
    ("label", "match"),
    [(None, "needs a label"), ("age", "needs a label with declared values"), ("only", "label of 2 to 64 classes")],
)
def test_labels_that_give_no_classes_are_refused(label: str | None, match: str):
    text = "rows: 50\ncolumns:\n  age: {kind: integer, low: 0, high: 9}\n  only: {kind: categorical, values: [x]}\n"
    schema = Schema.loads(text + (f"label: {label}\n" if label else ""))
    with pytest.raises(SchemaError, match=match):
        fit(object(), schema, method="dp-syn")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"components": 0}, "components must be a whole number from 1 to 100"),
        ({"iterations": 1}, "iterations must be a whole number from 2"),
        ({"blur": -1.0}, "blur must be a number"),
        ({"moment_share": 1.0}, "moment_share must be a number"),
        ({"one_way_share": 0.99}, "one_way_share must be a number"),
        ({"hidden": 65_536, "latent": 64, "batch": 0}, "batch must be"),
        ({"component": 3}, "did you mean 'components'"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict, match: str):
    with pytest.raises(OptionError, match=match):
        fit(object(), SCHEMA, method="dp-syn", **options)


def test_a_network_that_would_not_fit_is_refused():
    columns = "".join(f"  c{n}: {{kind: integer, low: 0, high: 500}}\n" for n in range(60))
    schema = Schema.loads(f"rows: 50\nlabel: y\ncolumns:\n  y: {{kind: boolean}}\n{columns}")
    with pytest.raises(OptionError, match="hidden makes a network of"):
        fit(object(), schema, method="dp-syn", hidden=60_000)


def test_one_component_costs_one_release():
    config = method.Config(components=1)
    assert config.releases == 1
    assert dataclasses.replace(config, components=2).releases == config.iterations
