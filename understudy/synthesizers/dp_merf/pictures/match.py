"""A generator trained against released embeddings: ordinary gradients of released values, which cost nothing.

The generator of a class is a mixture: one of K prototypes, moved along random mixtures of the class's own directions,
then through a sigmoid. All prototypes make an image in every step, so that a class's embedding is nearly exact; a
network that takes noise alone needs far more steps for the same distance, since few draws a class say little of its
embedding.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from understudy.progress import Progress
from understudy.synthesizers.dp_merf.pictures.embedding import Embedding
from understudy.synthesizers.dp_merf.pictures.released import STRETCH
from understudy.synthesizers.dp_merf.waves import LEVELS, Waves

CHUNK = 50  # steps of one compiled run
LEAK = 0.1
# How far prototypes start from the class's mean, and how far the directions move them together, in logits.
FIRST_SPREAD, FIRST_REACH = 1.5, 0.3


@dataclass(frozen=True)
class Task:
    """The public facts of a generator's training: what is compiled.

    waves_a_step: how many frequencies a step looks along, a different part each time.
    """

    waves_a_step: int
    steps: int
    learning_rate: float
    pixel_weight: float


def levels(logits: jax.Array) -> jax.Array:
    """Outputs of 0 to 1 that reach both ends: a sigmoid stretched a little beyond, then cut.

    A plain sigmoid never gives the exact black of a background, and trees and scaled linear models then split on that.
    Gradients pass the cut weakly, so that a pixel can come back.
    """
    stretched = jax.nn.sigmoid(logits) * (1 + 2 * STRETCH) - STRETCH
    cut = jnp.clip(stretched, 0.0, 1.0)
    beyond = LEAK * (stretched - cut)
    return cut + beyond - jax.lax.stop_gradient(beyond)


def fit(
    task: Task,
    embedding: Embedding,
    waves: Waves,
    *,
    prototypes: np.ndarray,
    directions: np.ndarray,
    seed: int,
    progress: Progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Prototypes (C, K, inputs) and directions (C, L, inputs) in logits. Everything seen was released.

    Both start from random patterns of standard deviation 1 in the same shapes, which are public.
    """
    mean = np.clip(embedding.pixels, 0.02, 0.98)
    made = {
        "prototypes": np.log(mean / (1 - mean))[:, None] + FIRST_SPREAD * prototypes,
        "directions": FIRST_REACH / np.sqrt(directions.shape[1]) * directions,
    }
    made = {name: jnp.asarray(array, dtype=jnp.float32) for name, array in made.items()}
    targets = _targets(task, embedding, waves, seed)
    state = made, _optimiser(task).init(made)
    key = jax.random.key(seed)
    for first in range(0, task.steps, CHUNK):
        keys = jax.random.split(jax.random.fold_in(key, first), min(CHUNK, task.steps - first))
        state = _chunk(state, keys, targets, task=task)
        jax.block_until_ready(state)
        progress("matching", min(first + CHUNK, task.steps) / task.steps)
    return np.asarray(state[0]["prototypes"]), np.asarray(state[0]["directions"])


def _targets(task: Task, embedding: Embedding, waves: Waves, seed: int) -> dict[str, jax.Array]:
    """Frequencies and their targets, shuffled and cut into parts of equal size, the last filled from the first."""
    count, classes = waves.count, len(embedding.rows)
    parts = -(-count // task.waves_a_step)
    order = np.resize(np.random.default_rng(seed).permutation(count), parts * task.waves_a_step)
    shape = (classes, parts, task.waves_a_step)
    cosine, sine = embedding.waves[:, :count][:, order], embedding.waves[:, count:][:, order]
    angles = (waves.angles * LEVELS)[:, order].reshape(-1, parts, task.waves_a_step)
    found = {
        "angles": angles.swapaxes(0, 1),
        "cosine": cosine.reshape(shape).swapaxes(0, 1),
        "sine": sine.reshape(shape).swapaxes(0, 1),
        "pixels": embedding.pixels,
    }
    return {name: jnp.asarray(array, dtype=jnp.float32) for name, array in found.items()}


def _optimiser(task: Task) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(task.learning_rate, task.steps))


def _loss(made: dict[str, jax.Array], key: jax.Array, targets: dict[str, jax.Array], task: Task) -> jax.Array:
    """Squared distance of the embeddings, summed over classes: of waves (the part of this step) and of means.

    Classes share nothing, so that one whose embedding is all noise disturbs no other.
    """
    classes, prototypes, inputs = made["prototypes"].shape
    draw, pick = jax.random.split(key)
    normal = jax.random.normal(draw, (classes, prototypes, made["directions"].shape[1]))
    x = levels(made["prototypes"] + jnp.einsum("ckl,cld->ckd", normal, made["directions"]))
    part = jax.random.randint(pick, (), 0, len(targets["angles"]))
    phases = x.reshape(-1, inputs) @ targets["angles"][part]
    distance = task.pixel_weight * 4 * jnp.sum((x.mean(axis=1) - targets["pixels"]) ** 2) / inputs
    for wave, target in ((jnp.cos, "cosine"), (jnp.sin, "sine")):
        means = wave(phases).reshape(classes, prototypes, -1).mean(axis=1)
        distance += jnp.sum((means - targets[target][part]) ** 2) / task.waves_a_step
    return distance


@partial(jax.jit, static_argnames=("task",))
def _chunk(state: Any, keys: jax.Array, targets: dict[str, jax.Array], *, task: Task) -> Any:
    optimiser = _optimiser(task)

    def step(state: Any, key: jax.Array) -> tuple[Any, None]:
        made, moments = state
        gradient = jax.grad(_loss)(made, key, targets, task)
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(made, updates), moments), None

    return jax.lax.scan(step, state, keys)[0]
