"""Values of distinguishers as whole numbers, the same for a row whatever other rows are there.

The sensitivity of a sum over rows is a statement about single rows: it holds only if a row's value does not depend on
its neighbours. Matrix products of floats round differently from place to place in a batch; these do not round at all.
"""

import math

import numpy as np

from understudy.errors import OptionError

UNIT = 1 << 16  # a distinguisher's 1, in steps of the grid on which its values are added up
LEAK = 0.2  # of the critics' hidden units
_FINENESS = 1 << 16  # steps of the units between layers
_LARGEST_UNIT = 256.0
_BITS = 52
_SIGMOID_STEPS, _SIGMOID_REACH = 1 << 8, 16
_SIGMOID = np.rint(
    UNIT / (1 + np.exp(-np.arange(-_SIGMOID_REACH * _SIGMOID_STEPS, _SIGMOID_REACH * _SIGMOID_STEPS + 1) / 256.0))
).astype(np.int64)

Layers = list[tuple[np.ndarray, np.ndarray]]


def one_hot(codes: np.ndarray, sizes: list[int]) -> np.ndarray:
    """(rows, columns) of codes to units as networks of the house are trained on: a column of two codes is one unit.

    >>> one_hot(np.array([[2, 1], [0, 0]]), [3, 2]).tolist()
    [[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]
    """
    widths = [1 if size == 2 else size for size in sizes]
    column = np.repeat(np.arange(len(sizes)), widths)
    code = np.concatenate([[1] if size == 2 else np.arange(size) for size in sizes])
    return (codes[:, column] == code).astype(np.float64)


def on_grid(layers: Layers) -> Layers:
    """The layers with weights rounded so finely, and no finer, that sums over their inputs are exact in float64.

    Inputs are multiples of 2^-16 of at most 256 in size (`outputs` sees to it), so products with multiples of 2^-b add
    up, in any order, to multiples of 2^-(16+b); below 2^(36-b) in size these have at most 52 bits.
    """
    rounded = []
    for w, b in layers:
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise OptionError("distinguishers: a network has weights that are not finite; fit the model again")
        most = len(w) * float(np.abs(w).max(initial=0.0)) * _LARGEST_UNIT + float(np.abs(b).max(initial=0.0)) + 1.0
        step = 2.0 ** -(_BITS - int(math.log2(_FINENESS)) - math.ceil(math.log2(most)))
        rounded.append((np.rint(w.astype(np.float64) / step) * step, np.rint(b.astype(np.float64) / step) * step))
    return rounded


def outputs(layers: Layers, units: np.ndarray) -> np.ndarray:
    """The single output of a network with leaky hidden units, for rows of zeros and ones; exact but for the rounding
    of hidden units to the grid, which each row gets for itself.
    """
    x = units
    for place, (w, b) in enumerate(layers):
        x = x @ w + b
        if place + 1 < len(layers):
            x = np.where(x > 0, x, LEAK * x)
            x = np.clip(np.rint(x * _FINENESS) / _FINENESS, -_LARGEST_UNIT, _LARGEST_UNIT)
    return x[:, 0]


def sigmoid_steps(logits: np.ndarray) -> np.ndarray:
    """The sigmoid in steps of 1/UNIT, from a table: libraries' exponentials may differ from place to place.

    >>> (sigmoid_steps(np.array([-1e9, 0.0, 1e9])) / UNIT).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    place = np.rint(np.clip(logits, -_SIGMOID_REACH, _SIGMOID_REACH) * _SIGMOID_STEPS).astype(np.int64)
    return _SIGMOID[place + _SIGMOID_REACH * _SIGMOID_STEPS]
