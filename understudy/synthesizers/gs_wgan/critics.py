"""Critics of slices: each learns from its own rows, draws and optimiser, all of them in one vectorised computation.

Nothing of a critic is private by itself; `ask.py` is the only door through which anything of one leaves.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

Critic = dict[str, jax.Array]


@dataclass(frozen=True)
class Lessons:
    """Public facts of how critics learn: what is compiled.

    features: numbers that they see of a row. hidden: units beside the quadratic form.
    """

    features: int
    hidden: int
    batch: int
    rate: float
    penalty: float


def score(critic: Critic, x: jax.Array) -> jax.Array:
    """How real rows look: a quadratic form of their features, and a hidden layer where there is one.

    A slice has few rows. Means and products of pairs are what so few can tell; a wide network learns them by heart.
    """
    scores = x @ critic["linear"] + jnp.sum((x @ critic["pairs"]) * x, axis=1) / 2
    if "in" in critic:
        scores += jax.nn.leaky_relu(x @ critic["in"] + critic["bias"], 0.2) @ critic["out"]
    return scores


def slopes(critic: Critic, x: jax.Array) -> jax.Array:
    """The gradient of the score with respect to every row's features; rows do not see each other."""
    return jax.grad(lambda x: score(critic, x).sum())(x)


def start(lessons: Lessons, critics: int, key: jax.Array) -> tuple[Critic, Any]:
    """First weights, those of critic k from a key of its own, and an optimiser's state each."""

    def one(number: jax.Array) -> tuple[Critic, Any]:
        size, hidden = lessons.features, lessons.hidden
        critic = {"linear": jnp.zeros(size), "pairs": jnp.zeros((size, size))}
        if hidden:
            first, second = jax.random.split(jax.random.fold_in(key, number))
            critic["in"] = jax.random.normal(first, (size, hidden)) * math.sqrt(2 / size)
            critic["bias"] = jnp.zeros(hidden)
            critic["out"] = jax.random.normal(second, (hidden,)) * math.sqrt(0.1 / hidden)
        return critic, _optimiser(lessons).init(critic)

    return jax.vmap(one)(jnp.arange(critics))


def teach(
    lessons: Lessons,
    critics: tuple[Critic, Any],
    mine: jax.Array,
    real: jax.Array,
    sizes: jax.Array,
    fake: jax.Array,
    key: jax.Array,
) -> tuple[Critic, Any]:
    """One step of some critics: WGAN with gradient penalty, on rows of their own slices against made-up ones.

    mine: numbers of the critics. real: (critics, batch, features), rows of each slice. sizes: of the slices; a critic
    without rows stays as it is. fake: (batch, features) from the released generator. Critic k's new state is a function
    of its old one, of its own slice and of what is the same for all tables: the made-up rows and a key of its own.
    """

    def one(critic: Critic, state: Any, number: jax.Array, rows: jax.Array, size: jax.Array) -> tuple[Critic, Any]:
        share = jax.random.uniform(jax.random.fold_in(key, number), (len(rows), 1))
        gradient = jax.grad(_loss)(critic, rows, fake, share * rows + (1 - share) * fake, lessons.penalty)
        updates, following = _optimiser(lessons).update(gradient, state, critic)
        taught = optax.apply_updates(critic, updates), following
        return jax.tree.map(lambda new, old: jnp.where(size > 0, new, old), taught, (critic, state))

    return jax.vmap(one)(*critics, mine, real, sizes)


def _loss(critic: Critic, real: jax.Array, fake: jax.Array, mixed: jax.Array, penalty: float) -> jax.Array:
    steepness = jnp.sqrt(jnp.sum(slopes(critic, mixed) ** 2, axis=1) + 1e-12)
    return score(critic, fake).mean() - score(critic, real).mean() + penalty * jnp.mean((steepness - 1) ** 2)


def _optimiser(lessons: Lessons) -> optax.GradientTransformation:
    return optax.adam(lessons.rate, b1=0.0, b2=0.9)
