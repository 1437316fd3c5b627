"""Gradient steps, for fits side by side along the first axis of all arrays.

Adam gives every parameter steps of the same length, one that follows noise like one that follows structure. Where there
is noise, the second moment is shared by a whole array of a fit: parameters move in proportion to their gradients, the
strongest dependences grow first, and a fit that ends early has left out the noise in place of a part of everything.
"""

import math
from dataclasses import dataclass

import numpy as np

MEMORY, SCALE_MEMORY = 0.9, 0.99  # of the mean gradient, of its mean square
TINY = 1e-12
LEARNING_RATE, LAST_RATE = 0.1, 0.05  # the first, and what part of it is left at the end

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean gradients of every array, and their mean squares: one number for an array of a fit, or one for each number.

    Both are overwritten by `step`.
    """

    means: Arrays
    squares: Arrays

    @classmethod
    def none(cls, params: Arrays, *, shared: bool) -> "Moments":
        squares = {
            part: np.zeros((len(array), *[1] * (array.ndim - 1)) if shared else array.shape, np.float32)
            for part, array in params.items()
        }
        return cls({part: np.zeros_like(array) for part, array in params.items()}, squares)

    def of(self, fits: np.ndarray) -> "Moments":
        """Those of some of the fits."""
        means, squares = ({part: array[fits] for part, array in all_.items()} for all_ in (self.means, self.squares))
        return Moments(means, squares)


def step(
    params: Arrays, gradients: Arrays, moments: Moments, lengths: dict[str, float], *, rate: float, at: int
) -> None:
    """Moves all parameters, in place; `at` counts steps from 0, `lengths` are those of each array at a rate of 1."""
    # Both moments begin at 0 and are too small at first by known factors.
    grown, scale_grown = 1 - MEMORY ** (at + 1), 1 - SCALE_MEMORY ** (at + 1)
    for part, array in params.items():
        gradient, mean, square = gradients[part], moments.means[part], moments.squares[part]
        if square.shape == array.shape:
            new = gradient**2
        else:
            # A product of matrices adds in the same order whatever lies beside a fit.
            flat = gradient.reshape(len(gradient), 1, -1)
            new = (np.matmul(flat, flat.swapaxes(1, 2)) / flat.shape[2]).reshape(square.shape)
        square *= SCALE_MEMORY
        square += (1 - SCALE_MEMORY) * new
        mean *= MEMORY
        mean += (1 - MEMORY) * gradient
        size = np.sqrt(square / scale_grown) + TINY
        array -= (rate * lengths[part] / grown) / size * mean


def rate_at(at: int, steps: int) -> float:
    """Falls along half a wave of a cosine.

    >>> rate_at(0, 100), round(rate_at(100, 100), 6)
    (0.1, 0.005)
    """
    return LEARNING_RATE * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * at / steps)) / 2)
