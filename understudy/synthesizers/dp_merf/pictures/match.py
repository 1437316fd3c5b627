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

    prototypes and latent: K and the number of directions, of each class. waves_a_step: how many frequencies a step
    looks along, a different part each time.
    """

    prototypes: int
    latent: int
    waves_a_step: int
    steps: int
    learning_rate: float
    pixel_weight: float


@dataclass(frozen=True, eq=False)
class Basis:
    """What logits are combined from: coefficients times `gains`, then a transform of rows and columns.

    With the cosine transform and gains that fall, steps of Adam move smooth patterns more than speckles, which the
    noise in the targets would otherwise put into the images.
    """

    gains: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    channels: int

    @property
    def size(self) -> int:
        return self.gains.size * self.channels


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
    task: Task, embedding: Embedding, waves: Waves, basis: Basis, *, seed: int, progress: Progress
) -> tuple[np.ndarray, np.ndarray]:
    """Prototypes (C, K, inputs) and directions (C, L, inputs) in logits. Everything seen was released."""
    classes = len(embedding.rows)
    rng = np.random.default_rng(seed)
    made = {
        name: jnp.asarray(scale * rng.standard_normal((classes, count, basis.size)), dtype=jnp.float32)
        for name, count, scale in (
            ("prototypes", task.prototypes, FIRST_SPREAD),
            ("directions", task.latent, FIRST_REACH / np.sqrt(task.latent)),
        )
    }
    targets = _targets(task, embedding, waves, basis, seed)
    state = made, _optimiser(task).init(made)
    key = jax.random.key(seed)
    for first in range(0, task.steps, CHUNK):
        keys = jax.random.split(jax.random.fold_in(key, first), min(CHUNK, task.steps - first))
        state = _chunk(state, keys, targets, task=task)
        jax.block_until_ready(state)
        progress("matching", min(first + CHUNK, task.steps) / task.steps)
    found = state[0]
    prototypes = targets["start"][:, None] + _patterns(found["prototypes"], targets)
    return np.asarray(prototypes), np.asarray(_patterns(found["directions"], targets))


def _patterns(coefficients: jax.Array, targets: dict[str, jax.Array]) -> jax.Array:
    """(C, count, basis size) to (C, count, inputs)."""
    gains, rows, columns = targets["gains"], targets["rows"], targets["columns"]
    shaped = coefficients.reshape(*coefficients.shape[:2], -1, *gains.shape) * gains
    made = jnp.einsum("ckzij,ia,jb->ckabz", shaped, rows, columns)
    return made.reshape(coefficients.shape)


def _targets(task: Task, embedding: Embedding, waves: Waves, basis: Basis, seed: int) -> dict[str, jax.Array]:
    """Frequencies and their targets, shuffled and cut into parts of equal size, the last filled from the first."""
    count, classes = waves.count, len(embedding.rows)
    parts = -(-count // task.waves_a_step)
    order = np.resize(np.random.default_rng(seed).permutation(count), parts * task.waves_a_step)
    shape = (classes, parts, task.waves_a_step)
    cosine, sine = embedding.waves[:, :count][:, order], embedding.waves[:, count:][:, order]
    angles = (waves.angles * LEVELS)[:, order].reshape(-1, parts, task.waves_a_step)
    mean = np.clip(embedding.pixels, 0.02, 0.98)
    found = {
        "start": np.log(mean / (1 - mean)),
        "gains": basis.gains,
        "rows": basis.rows,
        "columns": basis.columns,
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
    normal = jax.random.normal(draw, (classes, prototypes, task.latent))
    moved = made["prototypes"] + jnp.einsum("ckl,cld->ckd", normal, made["directions"])
    x = levels(targets["start"][:, None] + _patterns(moved, targets))
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
