"""Dense networks as plain data: a tuple of layers, applied by one function that lets a caller tap every layer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

Params = list[dict[str, jax.Array]]
# Called with a layer's name, its input and its output (before the non-linearity); returns the output.
Tap = Callable[[str, jax.Array, jax.Array], jax.Array]

LEAK = 0.2
ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "linear": lambda x: x,
    "relu": jax.nn.relu,
    "leaky_relu": lambda x: jax.nn.leaky_relu(x, LEAK),
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
}


@dataclass(frozen=True)
class Net:
    """Sizes from input to output, and the pointwise non-linearity after each layer (public facts of a network).

    >>> Net.of([4, 8, 1]).activations
    ('leaky_relu', 'linear')
    """

    sizes: tuple[int, ...]
    activations: tuple[str, ...]

    @staticmethod
    def of(sizes: Sequence[int], *, hidden: str = "leaky_relu", last: str = "linear") -> "Net":
        return Net(tuple(sizes), (hidden,) * (len(sizes) - 2) + (last,))

    def __add__(self, other: "Net") -> "Net":
        """This net, then the other."""
        if self.sizes[-1] != other.sizes[0]:
            raise ValueError(f"a net that gives {self.sizes[-1]} numbers cannot feed one that takes {other.sizes[0]}")
        return Net(self.sizes + other.sizes[1:], self.activations + other.activations)

    @property
    def parameters(self) -> int:
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in zip(self.sizes, self.sizes[1:], strict=False))


def init(net: Net, key: jax.Array) -> Params:
    """Weights that keep the size of signals (He, Glorot); biases zero."""
    params = []
    for number, (fan_in, fan_out) in enumerate(zip(net.sizes, net.sizes[1:], strict=False)):
        gain = 2.0 if "relu" in net.activations[number] else 1.0
        scale = math.sqrt(gain / fan_in)
        weights = scale * jax.random.normal(jax.random.fold_in(key, number), (fan_in, fan_out), dtype=jnp.float32)
        params.append({"w": weights, "b": jnp.zeros(fan_out, dtype=jnp.float32)})
    return params


def untapped(name: str, x: jax.Array, y: jax.Array) -> jax.Array:
    """For use outside of private gradients."""
    return y


def apply(net: Net, params: Params, x: jax.Array, tap: Tap = untapped, prefix: str = "") -> jax.Array:
    """The net's output for a batch of inputs. Rows do not see each other."""
    for number, (layer, activation) in enumerate(zip(params, net.activations, strict=True)):
        y = tap(f"{prefix}{number}", x, x @ layer["w"] + layer["b"])
        x = ACTIVATIONS[activation](y)
    return x


def named(params: Params, prefix: str = "") -> dict[str, dict[str, Any]]:
    """The layers by the names that `apply` gives to its tap."""
    return {f"{prefix}{number}": layer for number, layer in enumerate(params)}
