"""How components are written down: their parts add up, their gradients are right, and what each form learns first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.progress import silent
from understudy.schema import Integer, Schema
from understudy.synthesizers.mixture import fit as fit_module
from understudy.synthesizers.mixture.fit import Targets, fit_mixture
from understudy.synthesizers.mixture.forms import DIMENSIONS, Form, gradients, logits, rates, start
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, deviations, interactions
from understudy.synthesizers.mixture.targets import make_targets
from understudy.synthesizers.one_way import OneWay, fine_cells

SHARES, CLASS_SHARES, EACH = np.array([0.5, 0.3, 0.2, 0.9, 0.1]), np.array([0.7, 0.3]), 6
COLUMNS, CODES, ROWS, NOISE = 8, 6, 20_000.0, 60.0


@pytest.mark.parametrize("form", Form)
def test_gradients_of_parts_are_those_of_their_sum(form: Form):
    params = start(form, SHARES, CLASS_SHARES, EACH, 0)
    pull = jax.random.normal(jax.random.key(1), (2, EACH, 5))
    wanted = jax.grad(lambda parts: jnp.sum(logits(parts) * pull))(params)
    found = gradients(params, jnp.zeros((2, EACH)), pull)
    assert found.keys() == params.keys() == rates(form, classes=2).keys()
    for part in params:
        np.testing.assert_allclose(found[part], wanted[part], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", Form)
def test_components_begin_around_the_one_way_tables(form: Form):
    begun = np.asarray(logits(start(form, SHARES, CLASS_SHARES, 4000, 0)))
    np.testing.assert_allclose(begun.mean(axis=(0, 1)), np.log(SHARES), atol=0.06)
    # Spread as far by either form; of points, a code's spread is that of its direction.
    assert 0.7 < begun.std(axis=1).mean() < 1.3


def test_points_lie_in_a_space_of_few_dimensions():
    begun = np.asarray(logits(start(Form.POINTS, np.full(40, 0.1), CLASS_SHARES, 50, 0)))[0]
    assert np.linalg.matrix_rank(begun - begun.mean(axis=0), tol=1e-3) == DIMENSIONS


@pytest.mark.parametrize(("form", "classes"), [(Form.ALONE, 2), (Form.CODES, 1), (Form.CODES, 2), (Form.POINTS, 2)])
def test_parts_at_rest_are_nothing(form: Form, classes: int):
    params = start(form, SHARES, CLASS_SHARES[:classes], EACH, 0)
    resting = [part for part, rate in rates(form, classes=classes).items() if rate == 0]
    assert resting
    for part in resting:
        assert not np.asarray(params[part]).any()


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """Probabilities of codes by place (places, columns, codes): one direction that all columns go along."""
    places = np.linspace(-2, 2, 41)
    slopes = np.random.default_rng(3).choice([-1.0, 1.0], COLUMNS)
    raised = np.exp(places[:, None, None] * slopes[:, None] * np.linspace(-1, 1, CODES))
    return raised / raised.sum(axis=2, keepdims=True)


@pytest.fixture(scope="module")
def targets(truth: np.ndarray) -> Targets:
    rng = np.random.default_rng(0)
    names = [f"c{number}" for number in range(COLUMNS)]
    schema = Schema(rows=int(ROWS), columns={name: Integer(low=0, high=CODES - 1) for name in names})
    ones = {name: ROWS * truth[:, number].mean(axis=0) for number, name in enumerate(names)}
    one_way = OneWay(fine_cells(schema), ones, ROWS, dict.fromkeys(names, (NOISE,)))
    pairs = [(a, b) for a in range(COLUMNS) for b in range(a + 1, COLUMNS)]
    tables = [
        interactions(ROWS * np.einsum("ka,kb->ab", truth[:, a], truth[:, b])[None] / len(truth)) for a, b in pairs
    ]
    noisy = [table + rng.normal(0, NOISE, table.shape) for table in tables]
    margins = {name: deviations(count[None]) + rng.normal(0, NOISE, (1, CODES)) for name, count in ones.items()}
    coarse = Coarse({name: np.arange(CODES) for name in names}, None, 1)
    named = [(names[a], names[b]) for a, b in pairs]
    return make_targets(schema, one_way, coarse, named, Interactions(noisy, [NOISE] * len(pairs), margins, NOISE))


def error_of_triples(truth: np.ndarray, weights: np.ndarray, probabilities: np.ndarray) -> float:
    split = probabilities[0].reshape(-1, COLUMNS, CODES)
    errors = []
    for a, b, c in [(0, 1, 2), (2, 4, 6), (1, 3, 5), (5, 6, 7)]:
        true = np.einsum("ka,kb,kc->abc", truth[:, a], truth[:, b], truth[:, c]) / len(truth)
        found = np.einsum("k,ka,kb,kc->abc", weights[0], split[:, a], split[:, b], split[:, c])
        errors.append(np.abs(found - true).sum() / 2)
    return float(np.mean(errors))


def test_points_find_what_all_columns_share(truth: np.ndarray, targets: Targets):
    """Triples, of which no table tells, are closer where components are points of one space."""
    fits = {
        points: fit_mixture(targets, components=60, fits=3, points=points, steps=600, seed=0, progress=silent, note="")
        for points in (0, 3)
    }
    errors = {points: error_of_triples(truth, fit.weights, fit.probabilities) for points, fit in fits.items()}
    assert errors[3] < 0.9 * errors[0]


def test_the_last_fits_have_points(targets: Targets):
    options = {"components": 8, "steps": 25, "progress": silent, "note": ""}
    both = fit_mixture(targets, fits=2, points=1, seed=3, **options)
    codes = fit_mixture(targets, fits=1, seed=3, **options)
    points = fit_mixture(targets, fits=1, points=1, seed=4, **options)
    np.testing.assert_array_equal(both.probabilities[:, :8], codes.probabilities)
    np.testing.assert_array_equal(both.probabilities[:, 8:], points.probabilities)
    assert not np.allclose(fit_mixture(targets, fits=1, seed=4, **options).probabilities, points.probabilities)


def test_both_forms_share_a_compiled_loop(targets: Targets):
    options = {"components": 12, "fits": 1, "steps": 25, "seed": 0, "progress": silent, "note": ""}
    fit_mixture(targets, **options)
    compiled = fit_module._chunk._cache_size()
    fit_mixture(targets, points=1, **options)
    assert fit_module._chunk._cache_size() == compiled
