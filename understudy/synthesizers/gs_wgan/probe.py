"""The one question to a critic seen from outside, for games that try to find out which row is behind one of them."""

import jax
import jax.numpy as jnp
import numpy as np

from understudy.privacy import Streams
from understudy.synthesizers.gs_wgan.ask import Asking

FEATURES = 2


def answers(asking: Asking, *, with_row: bool, streams: Streams) -> np.ndarray:
    """One noisy answer a question, along the direction in which critics differ, in units of the sensitivity.

    All critics have the same steep slope, but one whose slope points the other way if the row is there: no two answers
    can lie further apart. Without the row the answer has mean 0; if the changed critic is asked, it has mean 1. The
    noise's standard deviation is `noise_multiplier`.
    """
    slope = jnp.zeros((asking.critics, FEATURES)).at[:, 0].set(-1e3)
    if with_row:
        slope = slope.at[0, 0].set(1e3)
    x, kept = jnp.zeros((asking.batch, FEATURES)), jnp.ones(FEATURES)
    asked = streams.sampling.integers(asking.critics, size=asking.steps, dtype=np.int32)
    words = streams.noise.words(2 * asking.steps).reshape(asking.steps, 2)
    keys = jax.random.wrap_key_data(words, impl="threefry2x32")

    def one(number: jax.Array, key: jax.Array) -> jax.Array:
        critic = {"linear": slope[number], "pairs": jnp.zeros((FEATURES, FEATURES))}
        return asking.numbers.noisy_slopes(critic, x, kept, key)[:, 0].sum()

    sums = np.asarray(jax.jit(jax.vmap(one))(asked, keys), dtype=np.float64)
    # The direction is that of all made-up rows together, a unit vector of the answer's space.
    return sums / np.sqrt(asking.batch) / asking.sensitivity + 0.5
