"""How components are written down: their parts add up, their gradients are right, and what each form learns first."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.progress import silent
from understudy.schema import Integer, Schema
from understudy.synthesizers.mixture.fit import fit_mixture
from understudy.synthesizers.mixture.forms import DIMENSIONS, Form, gradients, level, logits, rates, start
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, deviations, interactions
from understudy.synthesizers.mixture.targets import Targets, make_targets
from understudy.synthesizers.one_way import OneWay, fine_cells

SHARES, CLASS_SHARES, EACH = np.array([0.5, 0.3, 0.2, 0.9, 0.1]), np.array([0.7, 0.3]), 6
COLUMNS, CODES, ROWS, NOISE = 8, 6, 20_000.0, 60.0


KINDS = [(Form.ALONE, 2), (Form.CODES, 1), (Form.CODES, 2), (Form.POINTS, 2)]


@pytest.mark.parametrize(("form", "classes"), KINDS)
def test_gradients_of_parts_are_those_of_their_sum(form: Form, classes: int):
    params = start(form, SHARES, CLASS_SHARES[:classes], EACH, [0, 1])
    pull = np.random.default_rng(1).normal(size=(2, classes, EACH, 5)).astype(np.float32)
    wanted = jax.grad(lambda parts: jnp.sum(logits(parts) * pull))(
        {part: jnp.asarray(array) for part, array in params.items()}
    )
    of_weights = np.full((2, classes, EACH), 3.0)
    found = gradients(params, of_weights, pull)
    assert found.keys() == params.keys() == rates(form, classes=classes).keys()
    assert found["weights"] is of_weights
    for part in params.keys() - {"weights"}:
        assert found[part].shape == params[part].shape
        np.testing.assert_allclose(found[part], wanted[part], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("form", "classes"), KINDS)
def test_columns_are_pulled_back_and_their_shares_stay(form: Form, classes: int):
    member = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=np.float32)
    params = start(form, SHARES, CLASS_SHARES[:classes], EACH, [0, 1])
    part = "shift" if form is Form.POINTS else "own" if form is Form.ALONE else "common"
    params[part][..., 3:] += 20
    before = logits(params)
    level(params, member)
    np.testing.assert_allclose(np.exp(logits(params)) @ member, 1, rtol=1e-3)
    moved = logits(params) - before
    np.testing.assert_allclose(moved[..., :3], moved[..., :1] + np.zeros(3), atol=1e-4)
    np.testing.assert_allclose(moved[..., 3:], moved[..., 3:4] + np.zeros(2), atol=1e-4)


@pytest.mark.parametrize("form", Form)
def test_components_begin_around_the_one_way_tables(form: Form):
    begun = logits(start(form, SHARES, CLASS_SHARES, 4000, [0]))[0]
    np.testing.assert_allclose(begun.mean(axis=(0, 1)), np.log(SHARES), atol=0.06)
    # Spread as far by either form; of points, a code's spread is that of its direction.
    assert 0.7 < begun.std(axis=1).mean() < 1.3


@pytest.mark.parametrize("form", Form)
def test_a_fit_begins_where_its_own_seed_says(form: Form):
    both = start(form, SHARES, CLASS_SHARES, EACH, [5, 6])
    for place, seed in enumerate((5, 6)):
        for part, array in start(form, SHARES, CLASS_SHARES, EACH, [seed]).items():
            np.testing.assert_array_equal(both[part][place], array[0])
    assert (logits(both)[0] != logits(both)[1]).any()


def test_points_lie_in_a_space_of_few_dimensions():
    begun = logits(start(Form.POINTS, np.full(40, 0.1), CLASS_SHARES, 50, [0]))[0, 0]
    assert np.linalg.matrix_rank(begun - begun.mean(axis=0), tol=1e-3) == DIMENSIONS


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
