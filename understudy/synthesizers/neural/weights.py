"""Trained layers as plain arrays of a released generator."""

from typing import Any

import numpy as np

from understudy.synthesizers.neural.released import Generator
from understudy.training.nets import Net, Params


def arrays_of(layers: Params) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.asarray(layer["w"]), np.asarray(layer["b"])) for layer in layers]


def generator_of(layers: Params, net: Net, **facts: Any) -> Generator:
    """A network that takes standard normals."""
    return Generator.standard(arrays_of(layers), net.activations, **facts)


def class_generators(layers: Params, net: Net, shares: np.ndarray) -> list[Generator]:
    """A network that takes standard normals and a one-hot class, as one network a class.

    The class adds a row of the first layer's weights to its biases, so it can be folded into them.
    """
    (w, b), *rest = arrays_of(layers)
    latent = len(w) - len(shares)
    return [
        Generator.standard([(w[:latent], b + w[latent + code]), *rest], net.activations, share=float(share), label=code)
        for code, share in enumerate(shares / shares.sum())
        if share > 0
    ]
