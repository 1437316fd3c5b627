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
import numpy as np

from understudy.training.nets import Tap

# loss(params, batch, tap) -> one loss for each example; every parameter is used through tapped dense layers alone.
Loss = Callable[[Any, Any, Tap], jax.Array]

EPSILON = float(np.finfo(np.float32).eps)
SMALLEST = float(np.finfo(np.float32).tiny)  # squares below this are lost


class _Recorder:
    """Adds the zeros, in the order of use, and keeps each layer's input."""

    def __init__(self, taps: list[jax.Array] | None) -> None:
        self.taps = taps
        self.names: list[str] = []
        self.inputs: list[jax.Array] = []
        self.outputs: list[jax.Array] = []

    def __call__(self, name: str, x: jax.Array, y: jax.Array) -> jax.Array:
        place = len(self.names)
        self.names.append(name)
        self.inputs.append(x)
        self.outputs.append(y)
        return y if self.taps is None else y + self.taps[place]


Layers = dict[str, dict[str, jax.Array]]


def clipped_sum(
    loss: Loss, params: Layers, batch: Any, present: jax.Array, *, clip: float, center: Layers | None = None
) -> Layers:
    """The sum over present examples of their gradients, each scaled down to a joint L2 norm of at most `clip`.

    `params` holds dense layers ({"w", "b"}) by name; `present` is 0 for padding. One norm for all layers together:
    clipping tensors one by one would let an example move the sum by sqrt(layers) times as much. An example whose
    gradient is not finite, or too large to be measured, counts as zero, since a NaN would tell that it took part.
    `center`: what is subtracted from every example's gradient before it is clipped (and not added again); it may
    depend on released values alone.

    Guarantee: adding or removing an example moves the result by at most `clip` in L2, provided that the loss of an
    example depends on no other example, nor on its place in the batch unless through secret draws that are alike and
    independent for all places (then a joining row changes who gets which draw, and no distribution).
    """
    names, shapes = _taps_of(loss, params, batch, len(present))

    def total(taps: list[jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        recorder = _Recorder(taps)
        return jnp.sum(loss(params, batch, recorder)), recorder.inputs

    taps = [jnp.zeros(shape.shape, shape.dtype) for shape in shapes]
    deltas, inputs = jax.grad(total, has_aux=True)(taps)
    factor, finite = _factors(names, inputs, deltas, present, clip, center)
    sums: Layers = {}
    for name, x, d in zip(names, inputs, deltas, strict=True):
        # Zero times NaN is NaN: what does not count must be taken out, not scaled.
        x, d = jnp.where(finite, x, 0.0), jnp.where(finite, d, 0.0) * factor
        use = {"w": _product(x.T, d), "b": d.sum(axis=0)}
        sums[name] = jax.tree.map(jnp.add, sums[name], use) if name in sums else use
    if center is not None:
        weight = factor.sum()
        sums = {name: jax.tree.map(lambda s, c: s - weight * c, sums[name], center[name]) for name in sums}
    return {name: sums[name] for name in params}


def _taps_of(loss: Loss, params: Any, batch: Any, examples: int) -> tuple[list[str], list[jax.Array]]:
    """Which layers the loss uses, in order, and the shapes of their outputs; nothing is computed."""
    recorder = _Recorder(None)

    def outputs() -> tuple[jax.Array, list[jax.Array]]:
        return loss(params, batch, recorder), recorder.outputs

    losses, shapes = jax.eval_shape(outputs)
    unused = sorted(set(params) - set(recorder.names))
    unknown = sorted(set(recorder.names) - set(params))
    if unused or unknown:
        raise ValueError(f"layers must be used through their taps: unused {unused}, unknown {unknown}")
    # A mean over the batch, or one row shared by all, would mix examples that are clipped one by one.
    if losses.shape != (examples,):
        raise ValueError(f"the loss must have shape {(examples,)}, one number for each example; got {losses.shape}")
    for name, shape in zip(recorder.names, shapes, strict=True):
        if shape.ndim != 2 or len(shape) != examples:
            raise ValueError(f"layer {name} must have one row for each of {examples} examples, got {shape.shape}")
    return recorder.names, shapes


def _factors(
    names: list[str],
    inputs: list[jax.Array],
    deltas: list[jax.Array],
    present: jax.Array,
    clip: float,
    center: Layers | None,
) -> tuple[jax.Array, jax.Array]:
    """By what each example is scaled, and whether its gradient is finite; both as columns."""
    squared = jnp.zeros_like(present)
    for name in dict.fromkeys(names):
        uses = [place for place, other in enumerate(names) if other == name]
        x, d = [inputs[place] for place in uses], [deltas[place] for place in uses]
        sizes = jnp.zeros_like(present)
        for first in range(len(uses)):
            # Squares that are lost to underflow are less than this; without it a huge input times a tiny d would pass.
            lost = d[first].shape[1] * SMALLEST
            own = (_dot(x[first], x[first]) + 1.0) * (_dot(d[first], d[first]) + lost)  # 1 for the bias
            sizes += jnp.sqrt(own)
            squared += own
            for second in range(first):
                squared += 2.0 * (_dot(x[first], x[second]) + 1.0) * _dot(d[first], d[second])
        if center is not None:
            weights, bias = center[name]["w"], center[name]["b"]
            size = _squares(weights[None])[0] + _squares(bias[None])[0]
            along = sum(_dot(_product(x[use], weights) + bias, d[use]) for use in range(len(uses)))
            squared += size - 2.0 * along
            sizes += jnp.sqrt(size)
        # Sums of n products err by less than n EPSILON of their terms' sizes, in whatever order they are taken (Higham
        # 2002, section 3.1). It matters where uses nearly cancel: there the error is as large as what is left.
        squared += (x[0].shape[1] + d[0].shape[1] + 16) * EPSILON * sizes**2
    finite = jnp.isfinite(squared)
    return _factor(squared, finite, present, clip)[:, None], finite[:, None]


def _dot(first: jax.Array, second: jax.Array) -> jax.Array:
    return jnp.sum(first * second, axis=1)


def _product(first: jax.Array, second: jax.Array) -> jax.Array:
    """In full float32: accelerators cut the factors to ten bits by default, and the bound with them."""
    return jnp.matmul(first, second, precision=jax.lax.Precision.HIGHEST)


def _factor(squared: jax.Array, finite: jax.Array, present: jax.Array, clip: float) -> jax.Array:
    norm = jnp.sqrt(jnp.maximum(jnp.where(finite, squared, 0.0), SMALLEST))
    return jnp.where(finite, jnp.minimum(1.0, clip / norm), 0.0) * present


def clipped_sum_by_example(
    loss_of_one: Callable[[Any, Any], jax.Array], params: Any, batch: Any, present: jax.Array, *, clip: float
) -> Any:
    """The same for any differentiable loss of one example, with one gradient for each: general, and slower.

    Guarantee: as for `clipped_sum`; nothing is asked of the network.
    """
    gradients = jax.vmap(jax.grad(loss_of_one), in_axes=(None, 0))(params, batch)
    squared = sum(_squares(leaf) for leaf in jax.tree.leaves(gradients))
    finite = jnp.isfinite(squared)
    factor = _factor(squared, finite, present, clip)

    def scaled(leaf: jax.Array) -> jax.Array:
        shape = (-1,) + (1,) * (leaf.ndim - 1)
        kept = jnp.where(finite.reshape(shape), leaf, 0.0)
        return jnp.tensordot(factor, kept, axes=1, precision=jax.lax.Precision.HIGHEST)

    return jax.tree.map(scaled, gradients)


def _squares(leaf: jax.Array) -> jax.Array:
    """Sums of squares by example, rounded upwards: in two stages, so that the error grows with the root of the size."""
    flat = leaf.reshape(len(leaf), -1)
    count = flat.shape[1]
    width = max(int(np.sqrt(count)), 1)
    padded = jnp.pad(flat, ((0, 0), (0, -count % width))).reshape(len(leaf), -1, width)
    # Without the barrier the compiler makes one long sum of the two.
    parts = jax.lax.optimization_barrier(jnp.sum(padded**2, axis=2))
    return jnp.sum(parts, axis=1) * (1 + (2 * width + 16) * EPSILON) + count * SMALLEST
