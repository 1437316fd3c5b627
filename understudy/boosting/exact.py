"""Values of distinguishers as whole numbers, the same for a row whatever other rows are there.

The sensitivity of a sum over rows is a statement about single rows: it holds only if a row's value does not depend on
its neighbours. Matrix products of floats round differently from place to place in a batch; these do not round at all.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.errors import OptionError

UNIT = 1 << 16  # a distinguisher's 1, in steps of the grid on which its values are added up
LEAK = 0.2  # of the critics' hidden units
_BITS = 20  # of a weight and of a hidden unit, fewer for layers of more than 2,048 inputs
_SIGMOID_STEPS, _SIGMOID_REACH = 1 << 8, 16
_SIGMOID = np.rint(
    UNIT / (1 + np.exp(-np.arange(-_SIGMOID_REACH * _SIGMOID_STEPS, _SIGMOID_REACH * _SIGMOID_STEPS + 1) / 256.0))
).astype(np.int64)

Layers = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class ExactLayer:
    """Weights and biases on a grid, and the step of the grid for the units that come out."""

    w: np.ndarray
    b: np.ndarray
    step: float


def one_hot(codes: np.ndarray, sizes: list[int]) -> np.ndarray:
    """(rows, columns) of codes to units as networks of the house are trained on: a column of two codes is one unit.

    >>> one_hot(np.array([[2, 1], [0, 0]]), [3, 2]).tolist()
    [[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    """
    widths = [1 if size == 2 else size for size in sizes]
    column = np.repeat(np.arange(len(sizes)), widths)
    code = np.concatenate([[1] if size == 2 else np.arange(size) for size in sizes])
    return (codes[:, column] == code).astype(np.float64)


def on_grid(layers: Layers, *, largest: float = 1.0) -> list[ExactLayer]:
    """The layers with weights and units rounded so that sums over a layer's inputs are exact in float64.

    largest: of the first layer's inputs, which are whole numbers: zeros and ones, or up to 2^20. k inputs are multiples
    of s, at most 2^20 s in size, and weights multiples of r, at most 2^20 r: whatever the order, partial sums are
    multiples of r s, at most k 2^40 r s in size, and a bias adds at most 2^50 r s. Up to 2,048 inputs that is below
    2^52, so nothing is ever rounded. All of it follows from the released weights.
    """
    found = []
    inputs, step = float(largest), 1.0
    for w, b in layers:
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise OptionError("distinguishers: a network has weights that are not finite; fit the model again")
        w, b = w.astype(np.float64), b.astype(np.float64)
        grain = _power_above(np.abs(w).max(initial=0.0)) * 2.0 ** -_bits(len(w))
        grain = max(grain, _power_above(np.abs(b).max(initial=0.0)) / step * 2.0**-50)
        w, b = np.rint(w / grain) * grain, np.rint(b / (grain * step)) * (grain * step)
        inputs = _power_above(float((np.abs(w).sum(axis=0) * inputs + np.abs(b)).max()))
        step = inputs * 2.0 ** -_bits(len(b))
        found.append(ExactLayer(w, b, step))
    return found


def _bits(inputs: int) -> int:
    return min(_BITS, (51 - math.ceil(math.log2(inputs))) // 2)


def _power_above(value: float) -> float:
    """The smallest power of two above a number; 1 for zero."""
    return math.ldexp(1.0, math.frexp(value)[1]) if value > 0 else 1.0


def outputs(layers: list[ExactLayer], units: np.ndarray) -> np.ndarray:
    """The single output of a network with leaky hidden units, for rows of whole numbers (see `on_grid`).

    Exact but for the rounding of hidden units to their grid, which each row gets for itself.
    """
    x = units
    for place, layer in enumerate(layers):
        x = x @ layer.w + layer.b
        if place + 1 < len(layers):
            x = np.rint(np.where(x > 0, x, LEAK * x) / layer.step) * layer.step
    return x[:, 0]


def sigmoid_steps(logits: np.ndarray) -> np.ndarray:
    """The sigmoid in steps of 1/UNIT, from a table: libraries' exponentials may differ from place to place.

    >>> (sigmoid_steps(np.array([-1e9, 0.0, 1e9])) / UNIT).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    place = np.rint(np.clip(logits, -_SIGMOID_REACH, _SIGMOID_REACH) * _SIGMOID_STEPS).astype(np.int64)
    return _SIGMOID[place + _SIGMOID_REACH * _SIGMOID_STEPS]
