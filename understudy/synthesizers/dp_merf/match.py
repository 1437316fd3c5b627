"""A generator trained against a released embedding: ordinary gradients of released values, which cost nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from understudy.progress import Progress
from understudy.synthesizers.dp_merf.expected import Expected
from understudy.synthesizers.dp_merf.features import Embedding
from understudy.training.nets import Net, apply, init

STEPS_A_CHUNK = 50
AVERAGED_STEPS = 50
WAVE_NUMBERS = 1 << 18  # draws times numeric columns times frequencies of a step
START = 0.5  # a first generator that hardly depends on its noise would take long to begin


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the noise in the blocks of an `Embedding`, in its units."""

    waves: float
    columns: float
    pairs: float
    total: float


@dataclass(frozen=True)
class Training:
    """Public settings of the loop."""

    latent: int
    hidden: int
    draws: int
    steps: int
    learning_rate: float


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """Released counts of the codes of a label that is a number, and the standard deviations of their noise."""

    counts: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, eq=False)
class Fitted:
    """The generator's layers, and what each class adds to its last biases."""

    net: Net
    layers: list[dict[str, Any]]
    class_bias: np.ndarray


def match(
    expected: Expected,
    embedding: Embedding,
    noise: Noise,
    rows: np.ndarray,
    training: Training,
    *,
    label: LabelCounts | None,
    bias: np.ndarray,
    seed: int,
    progress: Progress,
) -> Fitted:
    """The generator whose exact embedding is nearest to the released one, in units of its noise.

    rows: by class (one number without classes). bias: logits to begin with. Least squares in units of the noise is
    maximum likelihood, since all noise is Gaussian. Latent noise is a lattice with a fresh random shift in every step:
    unbiased like independent draws, and its error is several times smaller.
    """
    groups = len(rows)
    net = Net.of([training.latent + (groups if groups > 1 else 0), training.hidden, training.hidden, len(bias)])
    weights = {"net": init(net, jax.random.key(seed)), "bias": jnp.zeros((groups, len(bias)))}
    weights["net"][-1] = {"w": START * weights["net"][-1]["w"], "b": jnp.asarray(bias)}
    optimiser = optax.adam(optax.cosine_decay_schedule(training.learning_rate, training.steps), b2=0.99)
    loss = _loss_of(expected, embedding, noise, rows, training, net, label)

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        weights, moments, average = carry
        changes, moments = optimiser.update(jax.grad(loss)(weights, key), moments)
        weights = optax.apply_updates(weights, changes)
        average = jax.tree.map(lambda a, w: a + (w - a) / AVERAGED_STEPS, average, weights)
        return (weights, moments, average), None

    chunk = jax.jit(lambda carry, keys: jax.lax.scan(step, carry, keys)[0])
    carry = (weights, optimiser.init(weights), weights)
    keys = jax.random.split(jax.random.key(seed + 1), training.steps)
    for first in range(0, training.steps, STEPS_A_CHUNK):
        progress("matching the embedding", first / training.steps)
        carry = jax.block_until_ready(chunk(carry, keys[first : first + STEPS_A_CHUNK]))
    progress("matching the embedding", 1.0)
    average = carry[2]
    return Fitted(net, average["net"], np.asarray(average["bias"]))


def _loss_of(
    expected: Expected,
    embedding: Embedding,
    noise: Noise,
    rows: np.ndarray,
    training: Training,
    net: Net,
    label: LabelCounts | None,
) -> Callable[[Any, jax.Array], jax.Array]:
    groups, each = len(rows), max(1, training.draws // len(rows))
    targets = {name: jnp.asarray(value) for name, value in expected.targets(embedding).items()}
    mask = jnp.asarray(expected.pair_mask) if expected.features.pairs else None
    of_group = jnp.asarray(rows, dtype=jnp.float32)
    one_hot = jnp.repeat(jnp.eye(groups), each, axis=0)
    points = jnp.asarray(lattice(each, training.latent), dtype=jnp.float32)
    waves = expected.features.waves.count if expected.features.waves else 0
    a_step = min(waves, max(1, WAVE_NUMBERS // (groups * each * max(1, len(expected.features.inputs)))))
    size = expected.features.size

    def loss(weights: Any, key: jax.Array) -> jax.Array:
        shift_key, wave_key = jax.random.split(key)
        shifted = (points + jax.random.uniform(shift_key, (groups, 1, training.latent))) % 1.0
        # Away from 0 and 1, whose normal quantiles are infinite.
        x = jax.scipy.special.ndtri(jnp.clip(shifted, 1e-6, 1 - 1e-6)).reshape(groups * each, training.latent)
        if groups > 1:
            x = jnp.concatenate([x, one_hot], axis=1)
        logits = apply(net, weights["net"], x) + jnp.repeat(weights["bias"], each, axis=0)
        first = jax.random.randint(wave_key, (), 0, waves - a_step + 1)
        means = expected.means(logits, of_group, first, a_step)
        error = jnp.sum(((means["columns"] - targets["columns"]) / noise.columns) ** 2)
        if mask is not None:
            error += jnp.sum((mask * (means["pairs"] - targets["pairs"]) / noise.pairs) ** 2)
        for name, start in (("cosine", 0), ("sine", waves)) if waves else ():
            target = jax.lax.dynamic_slice_in_dim(targets["waves"], start + first, a_step, 1)
            error += (waves / a_step) * jnp.sum(((means[name] - target) / noise.waves) ** 2)
        if label is not None:
            error += jnp.sum(((means["label"] - label.counts) / label.noise) ** 2)
            error += jnp.sum(((means["total"] - targets["total"]) / noise.total) ** 2)
        return error / size

    return loss


def lattice(count: int, dimensions: int) -> np.ndarray:
    """(count, dimensions) points that fill the unit cube evenly: multiples of powers of a generalised golden ratio.

    >>> lattice(4, 1)[:, 0].round(3).tolist()
    [0.0, 0.618, 0.236, 0.854]
    """
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (dimensions + 1))
    return (np.arange(count)[:, None] * root ** -np.arange(1.0, dimensions + 1)) % 1.0
