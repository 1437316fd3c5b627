"""Steps in proportion to gradients, of one length for each array."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from understudy.synthesizers.mixture.descent import shared_scale

RATE = 0.1
GRADIENTS = {"a": np.array([[3.0, -1.0], [0.0, 2.0]]), "b": np.array([4.0, 0.5])}


def first_step(gradients: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    optimiser = shared_scale(optax.constant_schedule(RATE))
    arrays = {name: jnp.asarray(array) for name, array in gradients.items()}
    updates, _ = optimiser.update(arrays, optimiser.init(arrays))
    return {name: np.asarray(update) for name, update in updates.items()}


def test_parameters_move_in_proportion_to_their_gradients():
    for name, update in first_step(GRADIENTS).items():
        size = np.sqrt(np.mean(GRADIENTS[name] ** 2))
        np.testing.assert_allclose(update, -RATE * GRADIENTS[name] / size, rtol=1e-5)


def test_each_array_has_a_length_of_its_own():
    louder = first_step(GRADIENTS | {"b": 1000 * GRADIENTS["b"]})
    quieter = first_step(GRADIENTS)
    for name in GRADIENTS:
        np.testing.assert_allclose(louder[name], quieter[name], rtol=1e-5)


def test_it_finds_the_bottom_of_a_bowl():
    target, optimiser = jnp.array([1.0, -2.0, 0.5]), shared_scale(optax.cosine_decay_schedule(RATE, 300))
    params = jnp.zeros(3)
    state = optimiser.init(params)
    for _ in range(300):
        updates, state = optimiser.update(2 * (params - target), state)
        params = optax.apply_updates(params, updates)
    assert np.asarray(params) == pytest.approx(np.asarray(target), abs=1e-2)


def test_no_gradient_moves_nothing():
    for update in first_step({"a": np.zeros(3)}).values():
        assert (update == 0).all()
