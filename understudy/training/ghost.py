"""Sums of clipped per-example gradients without per-example gradients ("ghost" clipping).

For a dense layer y = x W + b, example i's gradient is the outer product of its input x_i and of d_i, the gradient of
its loss with respect to y_i. Hence its squared norm is (|x_i|^2 + 1) |d_i|^2, and the sum of clipped gradients is one
product of matrices with rescaled d_i. Zeros ("taps") added to every layer's output give all d_i in one backward pass.
A layer may be used several times by one example (a real and a fake row): then the uses' inner products enter too.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from understudy.training.nets import Tap

# loss(params, batch, tap) -> one loss for each example; every parameter is used through tapped dense layers alone.
Loss = Callable[[Any, Any, Tap], jax.Array]

ROUNDING = 2e-5  # of a squared norm in float32, generously
TINY = 1e-30


class _Recorder:
    """Adds the zeros, in the order of use, and keeps each layer's input."""

    def __init__(self, taps: list[jax.Array] | None) -> None:
        self.taps = taps
        self.names: list[str] = []
        self.inputs: list[jax.Array] = []
        self.shapes: list[jax.Array] = []

    def __call__(self, name: str, x: jax.Array, y: jax.Array) -> jax.Array:
        place = len(self.names)
        self.names.append(name)
        self.inputs.append(x)
        self.shapes.append(y)
        return y if self.taps is None else y + self.taps[place]


def clipped_sum(
    loss: Loss, params: dict[str, dict[str, jax.Array]], batch: Any, present: jax.Array, *, clip: float
) -> dict[str, dict[str, jax.Array]]:
    """The sum over present examples of their gradients, each scaled down to a joint L2 norm of at most `clip`.

    `params` holds dense layers ({"w", "b"}) by name; `present` is 0 for padding. One norm for all layers together:
    clipping tensors one by one would let an example move the sum by sqrt(layers) times as much. An example whose
    gradient is not finite counts as zero, since a NaN would tell that it took part.

    Guarantee: adding or removing an example moves the result by at most `clip` in L2, provided that the loss of an
    example depends on no other example.
    """
    names, shapes = _taps_of(loss, params, batch)

    def total(taps: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        recorder = _Recorder(taps)
        return jnp.sum(loss(params, batch, recorder)), recorder.inputs

    taps = [jnp.zeros(shape.shape, shape.dtype) for shape in shapes]
    deltas, inputs = jax.grad(total, has_aux=True)(taps)
    factor, finite = _factors(names, inputs, deltas, present, clip)
    sums: dict[str, dict[str, jax.Array]] = {
        name: {key: jnp.zeros_like(value) for key, value in layer.items()} for name, layer in params.items()
    }
    for name, x, d in zip(names, inputs, deltas, strict=True):
        # Zero times NaN is NaN: what does not count must be taken out, not scaled.
        x, d = jnp.where(finite, x, 0.0), jnp.where(finite, d, 0.0) * factor
        sums[name] = {"w": sums[name]["w"] + x.T @ d, "b": sums[name]["b"] + d.sum(axis=0)}
    return sums


def _taps_of(loss: Loss, params: Any, batch: Any) -> tuple[list[str], list[jax.Array]]:
    """Which layers the loss uses, in order, and the shapes of their outputs; nothing is computed."""
    recorder = _Recorder(None)

    def outputs() -> list[jax.Array]:
        loss(params, batch, recorder)
        return recorder.shapes

    shapes = jax.eval_shape(outputs)
    unused = sorted(set(params) - set(recorder.names))
    unknown = sorted(set(recorder.names) - set(params))
    if unused or unknown:
        raise ValueError(f"layers must be used through their taps: unused {unused}, unknown {unknown}")
    return recorder.names, shapes


def _factors(
    names: list[str], inputs: list[jax.Array], deltas: list[jax.Array], present: jax.Array, clip: float
) -> tuple[jax.Array, jax.Array]:
    """By what each example is scaled, and whether its gradient is finite; both as columns."""
    squared = jnp.zeros_like(present)
    for name in dict.fromkeys(names):
        uses = [place for place, other in enumerate(names) if other == name]
        sizes = jnp.zeros_like(present)
        for first in uses:
            for second in uses:
                if second < first:
                    continue
                alike = jnp.sum(inputs[first] * inputs[second], axis=1) + 1.0  # 1 for the bias
                product = alike * jnp.sum(deltas[first] * deltas[second], axis=1)
                squared += product if first == second else 2.0 * product
                if first == second:
                    sizes += jnp.sqrt(product)
        # Where uses nearly cancel, rounding is as large as the uses themselves: the margin keeps the bound true.
        squared += ROUNDING * sizes**2
    finite = jnp.isfinite(squared)
    norm = jnp.sqrt(jnp.maximum(jnp.where(finite, squared, 0.0), 0.0))
    factor = jnp.where(finite, jnp.minimum(1.0, clip / jnp.maximum(norm, TINY)), 0.0) * present
    return factor[:, None], finite[:, None]


def clipped_sum_by_example(
    loss_of_one: Callable[[Any, Any], jax.Array], params: Any, batch: Any, present: jax.Array, *, clip: float
) -> Any:
    """The same for any differentiable loss of one example, with one gradient for each: general, and slower.

    Guarantee: as for `clipped_sum`; nothing is asked of the network.
    """
    gradients = jax.vmap(jax.grad(loss_of_one), in_axes=(None, 0))(params, batch)
    leaves = jax.tree.leaves(gradients)
    squared = sum(jnp.sum(leaf.reshape(len(present), -1) ** 2, axis=1) for leaf in leaves)
    finite = jnp.isfinite(squared)
    norm = jnp.sqrt(jnp.where(finite, squared, 0.0) * (1 + ROUNDING))
    factor = jnp.where(finite, jnp.minimum(1.0, clip / jnp.maximum(norm, TINY)), 0.0) * present

    def scaled(leaf: jax.Array) -> jax.Array:
        shape = (-1,) + (1,) * (leaf.ndim - 1)
        kept = jnp.where(finite.reshape(shape), leaf, 0.0)
        return jnp.tensordot(factor, kept, axes=1)

    return jax.tree.map(scaled, gradients)
