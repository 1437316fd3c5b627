"""Steps in proportion to gradients, of one length for each array of a fit."""

import numpy as np
import pytest

from understudy.synthesizers.mixture.descent import LEARNING_RATE, Arrays, Moments, rate_at, step

LENGTHS = {"a": 1.0, "b": 0.5}
# Two fits side by side.
GRADIENTS = {
    "a": np.array([[[3.0, -1.0], [0.0, 2.0]], [[30.0, -10.0], [1.0, 20.0]]], dtype=np.float32),
    "b": np.array([[4.0, 0.5], [-1.0, 1.0]], dtype=np.float32),
}


def first_step(gradients: Arrays, *, shared: bool = True) -> Arrays:
    params = {part: np.zeros_like(array) for part, array in gradients.items()}
    step(params, gradients, Moments.none(params, shared=shared), LENGTHS, rate=0.1, at=0)
    return params


def test_parameters_move_in_proportion_to_their_gradients():
    for part, moved in first_step(GRADIENTS).items():
        for fit, gradient in enumerate(GRADIENTS[part]):
            size = np.sqrt(np.mean(gradient**2))
            np.testing.assert_allclose(moved[fit], -0.1 * LENGTHS[part] * gradient / size, rtol=1e-5)


def test_without_noise_all_move_as_far():
    for part, moved in first_step(GRADIENTS, shared=False).items():
        np.testing.assert_allclose(moved, -0.1 * LENGTHS[part] * np.sign(GRADIENTS[part]), rtol=1e-5)


def test_each_array_of_each_fit_has_a_length_of_its_own():
    louder = {part: array.copy() for part, array in GRADIENTS.items()}
    louder["b"][1] *= 1000
    for part, moved in first_step(louder).items():
        np.testing.assert_allclose(moved, first_step(GRADIENTS)[part], rtol=1e-5)


@pytest.mark.parametrize("shared", [True, False])
def test_it_finds_the_bottom_of_a_bowl(shared: bool):
    bottoms = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]], dtype=np.float32)
    params = {"a": np.zeros_like(bottoms)}
    moments = Moments.none(params, shared=shared)
    for at in range(300):
        step(params, {"a": 2 * (params["a"] - bottoms)}, moments, LENGTHS, rate=rate_at(at, 300), at=at)
    np.testing.assert_allclose(params["a"], bottoms, atol=1e-2)


def test_fits_that_go_on_go_on_as_they_would_have():
    """A fit that has ended leaves the others; what they remember stays theirs."""
    rng = np.random.default_rng(0)
    pulls = rng.normal(size=(6, 3, 4)).astype(np.float32)
    together, alone = ({"a": np.zeros((fits, 4), np.float32)} for fits in (3, 1))
    moments, own = Moments.none(together, shared=True), Moments.none(alone, shared=True)
    left = np.array([False, True, True])
    for at, pull in enumerate(pulls):
        step(alone, {"a": pull[1:2]}, own, LENGTHS, rate=0.1, at=at)
        if at == 3:
            together, moments = {"a": together["a"][left]}, moments.of(left)
        step(together, {"a": pull if at < 3 else pull[1:]}, moments, LENGTHS, rate=0.1, at=at)
    np.testing.assert_array_equal(together["a"][0], alone["a"][0])


def test_no_gradient_moves_nothing():
    for shared in (True, False):
        for moved in first_step({"a": np.zeros((1, 3), np.float32)}, shared=shared).values():
            assert (moved == 0).all()


def test_steps_get_shorter():
    rates = [rate_at(at, 50) for at in range(51)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == LEARNING_RATE
    assert 0 < rates[-1] < 0.1 * LEARNING_RATE
