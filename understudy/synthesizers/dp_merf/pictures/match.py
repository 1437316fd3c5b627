"""A generator trained against released embeddings: ordinary gradients of released values, which cost nothing."""

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
from understudy.training import nets
from understudy.training.nets import Net

CHUNK = 100  # steps of one compiled run
LEAK = 0.1


@dataclass(frozen=True)
class Task:
    """The public facts of a generator's training: what is compiled.

    draws: images a class and step. waves_a_step: how many frequencies a step looks along, a different part each time.
    """

    net: Net
    classes: int
    draws: int
    waves_a_step: int
    steps: int
    learning_rate: float
    pixel_weight: float

    @property
    def latent(self) -> int:
        return self.net.sizes[0] - (self.classes if self.classes > 1 else 0)


def levels(logits: jax.Array) -> jax.Array:
    """Outputs of 0 to 1 that reach both ends: a sigmoid stretched a little beyond, then cut.

    A plain sigmoid never gives the exact black of a background, and trees and scaled linear models then split on that.
    Gradients pass the cut weakly, so that a pixel can come back.
    """
    stretched = jax.nn.sigmoid(logits) * (1 + 2 * STRETCH) - STRETCH
    cut = jnp.clip(stretched, 0.0, 1.0)
    beyond = LEAK * (stretched - cut)
    return cut + beyond - jax.lax.stop_gradient(beyond)


def fit(task: Task, embedding: Embedding, waves: Waves, *, seed: int, progress: Progress) -> nets.Params:
    """The generator's layers. Everything it sees was released: steps cost time alone."""
    start, shuffle = jax.random.split(jax.random.key(seed))
    layers = nets.init(task.net, start)
    layers[-1]["b"] = jnp.asarray(_first_biases(embedding), dtype=jnp.float32)
    targets = _targets(task, embedding, waves, seed)
    state = layers, _optimiser(task).init(layers)
    for first in range(0, task.steps, CHUNK):
        keys = jax.random.split(jax.random.fold_in(shuffle, first), min(CHUNK, task.steps - first))
        state = _chunk(state, keys, targets, task=task)
        progress("matching", min(first + CHUNK, task.steps) / task.steps)
    return state[0]


def _first_biases(embedding: Embedding) -> np.ndarray:
    """Starts at the mean image, weighted by class."""
    share = embedding.rows / max(embedding.rows.sum(), 1.0)
    mean = np.clip(share @ embedding.pixels if share.sum() else embedding.pixels.mean(axis=0), 0.01, 0.99)
    return np.log(mean / (1 - mean))


def _targets(task: Task, embedding: Embedding, waves: Waves, seed: int) -> dict[str, jax.Array]:
    """Frequencies and their targets, shuffled and cut into parts of equal size, the last filled from the first."""
    count = waves.count
    order = np.random.default_rng(seed).permutation(count)
    parts = -(-count // task.waves_a_step)
    order = np.resize(order, parts * task.waves_a_step)
    shape = (task.classes, parts, task.waves_a_step)
    cosine, sine = embedding.waves[:, :count][:, order], embedding.waves[:, count:][:, order]
    angles = (waves.angles * LEVELS)[:, order].reshape(-1, parts, task.waves_a_step)
    # Squared noise of a class's embedding beside its largest length, 1: a class that is all noise should not lead.
    weight = 1 / (1 + 2 * embedding.wave_noise**2)
    found = {
        "angles": angles.swapaxes(0, 1),
        "cosine": cosine.reshape(shape).swapaxes(0, 1),
        "sine": sine.reshape(shape).swapaxes(0, 1),
        "pixels": embedding.pixels,
        "weight": weight,
    }
    return {name: jnp.asarray(array, dtype=jnp.float32) for name, array in found.items()}


def _optimiser(task: Task) -> optax.GradientTransformation:
    return optax.adam(optax.cosine_decay_schedule(task.learning_rate, task.steps), b2=0.99)


def _loss(layers: nets.Params, key: jax.Array, targets: dict[str, jax.Array], task: Task) -> jax.Array:
    """Squared distance of the embeddings, summed over classes: of waves (the part of this step), then of means.

    Waves have constant length, so that the draws' own spread adds a constant. For means it would add their variance
    over the number of draws, which dull images avoid: pairs of a draw with itself are left out (a U-statistic).
    """
    part = jax.random.randint(jax.random.fold_in(key, 1), (), 0, len(targets["angles"]))
    z = jax.random.normal(key, (task.classes * task.draws, task.latent))
    if task.classes > 1:
        z = jnp.concatenate([z, jnp.repeat(jnp.eye(task.classes), task.draws, axis=0)], axis=1)
    x = levels(nets.apply(task.net, layers, z))
    phases = x @ targets["angles"][part]
    by_class = (task.classes, task.draws, -1)
    distance = jnp.zeros(task.classes)
    for wave, target in ((jnp.cos, "cosine"), (jnp.sin, "sine")):
        means = wave(phases).reshape(by_class).mean(axis=1)
        distance += jnp.mean((means - targets[target][part]) ** 2, axis=1)
    off = x.reshape(by_class) - targets["pixels"][:, None]
    pairs = jnp.sum(off.sum(axis=1) ** 2, axis=1) - jnp.sum(off**2, axis=(1, 2))
    distance += task.pixel_weight * 4 * pairs / (task.draws * (task.draws - 1) * x.shape[1])
    return jnp.sum(targets["weight"] * distance)


@partial(jax.jit, static_argnames=("task",))
def _chunk(state: Any, keys: jax.Array, targets: dict[str, jax.Array], *, task: Task) -> Any:
    optimiser = _optimiser(task)

    def step(state: Any, key: jax.Array) -> tuple[Any, None]:
        layers, moments = state
        gradient = jax.grad(_loss)(layers, key, targets, task)
        updates, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(layers, updates), moments), None

    return jax.lax.scan(step, state, keys)[0]
