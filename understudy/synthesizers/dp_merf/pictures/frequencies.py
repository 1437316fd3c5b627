"""Public frequencies for images: which directions of pixel space are looked along, and how finely.

The paper's kernel has one width for all pixels, set from rows. Here a frequency's size comes from a public guess of
what images are like: smooth, with a spectrum that falls with spatial frequency (Field 1987). Each phase then has the
spread 1/width under that guess, whatever direction it looks along, and no row is asked.
"""

import math

import numpy as np

from understudy.schema import Image
from understudy.synthesizers.dp_merf.waves import LARGEST_FREQUENCY, LEVELS, TURN_BITS, Waves

WIDTHS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
# The guess: pixels of standard deviation 0.3 of their range, whose amplitude falls like (1 + k/2)^-1.5 at k half-waves.
PIXEL_SPREAD, SPECTRUM_TURN, SPECTRUM_FALL = 0.3, 2.0, 1.5
# Directions by turns: all pixels alike (None), or smooth patterns seen through a window of this share of the sides.
KINDS = (None, 0.1, 0.2, math.inf)
SMOOTH_TURN = 4.0


def cosines(side: int) -> np.ndarray:
    """The orthonormal cosine transform (DCT-II) of one side, one row a frequency."""
    places = (np.arange(side) + 0.5) / side
    rows = np.sqrt(2 / side) * np.cos(math.pi * np.arange(side)[:, None] * places)
    rows[0] /= math.sqrt(2)
    return rows


def spectrum(height: int, width: int) -> np.ndarray:
    """Public guess of images: the standard deviation of each coefficient of their cosine transform."""
    guess = (1 + _half_waves(height, width) / SPECTRUM_TURN) ** -SPECTRUM_FALL
    return guess * (PIXEL_SPREAD * math.sqrt(height * width) / np.linalg.norm(guess))


def picture_waves(image: Image, count: int, widths: tuple[float, ...], rng: np.random.Generator) -> Waves:
    """`count` frequencies over all pixels of an image, by turns of each kind of direction and each width."""
    height, width = image.height, image.width
    rows, columns = cosines(height), cosines(width)
    guess = spectrum(height, width)
    smooth = 1 / (1 + _half_waves(height, width) / SMOOTH_TURN)
    drawn = np.empty((count, height, width, image.channels))
    for number in range(count):
        kind, turn = number % len(KINDS), number // len(KINDS)
        pattern = rng.standard_normal((height, width))
        if KINDS[kind] is not None:
            pattern = rows.T @ (smooth * pattern) @ columns * _window(height, width, KINDS[kind], rng)
        spread = np.linalg.norm(guess * (rows @ pattern @ columns.T))
        # Over channels a random direction: colours are looked at together and against each other.
        mix = rng.standard_normal(image.channels)
        drawn[number] = pattern[..., None] * (mix / (np.linalg.norm(mix) * spread * widths[turn % len(widths)]))
    return whole_frequencies(drawn.reshape(count, image.pixels).T)


def code_waves(codes: int, count: int, widths: tuple[float, ...], rng: np.random.Generator) -> Waves:
    """`count` frequencies over codes of an autoencoder, which fill their range: kernels of these widths times the
    spread of a uniform code, sqrt(codes / 12)."""
    return Waves.draw(codes, count, tuple(width * math.sqrt(codes / 12) for width in widths), rng)


def whole_frequencies(radians: np.ndarray) -> Waves:
    """Frequencies given in radians over an input's whole range, on the grid that sums need."""
    scaled = np.rint(radians * ((1 << TURN_BITS) / (2 * math.pi * LEVELS)))
    return Waves(np.clip(scaled, -LARGEST_FREQUENCY, LARGEST_FREQUENCY).astype(np.int64))


def _half_waves(height: int, width: int) -> np.ndarray:
    return np.hypot(np.arange(height)[:, None], np.arange(width)[None])


def _window(height: int, width: int, share: float, rng: np.random.Generator) -> np.ndarray:
    """A Gaussian window of standard deviation `share` of the sides, around a random place; infinity sees everything."""
    sides = []
    for side in (height, width):
        middle = rng.uniform(0, side - 1)
        sides.append(np.exp(-((np.arange(side) - middle) ** 2) / (2 * max(share * side, 1.0) ** 2)))
    return np.outer(*sides)
