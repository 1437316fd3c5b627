"""Gradient steps of one length for all parameters of a kind, so that what stands out of the noise is learnt first.

Adam gives every parameter steps of the same length, one that follows noise like one that follows structure. Here the
second moment is shared by a whole array: parameters move in proportion to their gradients, the strongest dependences
grow first, and a fit that ends early has left out the noise in place of a part of everything.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

MEMORY, SCALE_MEMORY = 0.9, 0.99  # of the mean gradient, of its mean square
TINY = 1e-12


class State(NamedTuple):
    means: optax.Updates
    squares: optax.Updates  # a number for each array
    steps: jax.Array


def shared_scale(learning_rate: optax.Schedule) -> optax.GradientTransformation:
    """Adam with one second moment for each array of parameters."""

    def init(params: optax.Params) -> State:
        squares = jax.tree.map(lambda array: jnp.zeros((), array.dtype), params)
        return State(jax.tree.map(jnp.zeros_like, params), squares, jnp.zeros((), jnp.int32))

    def update(
        gradients: optax.Updates, state: State, params: optax.Params | None = None
    ) -> tuple[optax.Updates, State]:
        steps = state.steps + 1
        means = jax.tree.map(lambda mean, new: MEMORY * mean + (1 - MEMORY) * new, state.means, gradients)
        squares = jax.tree.map(
            lambda square, new: SCALE_MEMORY * square + (1 - SCALE_MEMORY) * jnp.mean(new**2), state.squares, gradients
        )
        # Both moments begin at 0 and are too small at first by known factors.
        grown, scale_grown = 1 - MEMORY**steps, 1 - SCALE_MEMORY**steps
        rate = learning_rate(state.steps)
        updates = jax.tree.map(
            lambda mean, square: -rate * (mean / grown) / (jnp.sqrt(square / scale_grown) + TINY), means, squares
        )
        return updates, State(means, squares, steps)

    return optax.GradientTransformation(init, update)
