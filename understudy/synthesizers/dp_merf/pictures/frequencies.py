"""Public frequencies for images: which directions of pixel space are looked along, and how finely.

The paper's kernel has one width for all pixels, set from rows. Here a frequency's size comes from a public guess of
what images are like: smooth, with a spectrum that falls with spatial frequency (Field 1987). Each phase then has the
spread 1/width under that guess, whatever direction it looks along, and no row is asked.
"""

import math

import numpy as np

from understudy.schema import Image
from understudy.synthesizers.dp_merf.waves import LARGEST_FREQUENCY, LEVELS, TURN_BITS, Waves

WIDTHS = (0.25, 0.5, 1.0, 2.0)
# The guess: pixels of standard deviation 0.3 of their range, whose amplitude falls like (1 + k/2)^-1.5 at k half-waves.
PIXEL_SPREAD, SPECTRUM_TURN, SPECTRUM_FALL = 0.3, 2.0, 1.5
# By turns: all pixels alike; smooth patterns; smooth patterns seen through windows of these shares of the side.
SMOOTH_TURN = 4.0
WINDOWS = (None, None, 0.1, 0.2)
WHITE_EVERY = 2


def cosines(side: int) -> np.ndarray:
    """The orthonormal cosine transform (DCT-II) of one side, one row a frequency."""
    places = (np.arange(side) + 0.5) / side
    rows = np.sqrt(2 / side) * np.cos(math.pi * np.arange(side)[:, None] * places)
    rows[0] /= math.sqrt(2)
    return rows


def picture_waves(image: Image, count: int, widths: tuple[float, ...], rng: np.random.Generator) -> Waves:
    """`count` frequencies over all pixels of an image, by turns of each kind of direction and each width."""
    height, width = image.height, image.width
    rows, columns = cosines(height), cosines(width)
    half_waves = np.hypot(np.arange(height)[:, None], np.arange(width)[None])
    guess = (1 + half_waves / SPECTRUM_TURN) ** -SPECTRUM_FALL
    guess *= PIXEL_SPREAD * math.sqrt(height * width) / np.linalg.norm(guess)
    smooth = 1 / (1 + half_waves / SMOOTH_TURN)
    drawn = np.empty((height, width, image.channels, count))
    for number in range(count):
        pattern = rng.standard_normal((height, width))
        if number % WHITE_EVERY:
            pattern = rows.T @ (smooth * pattern) @ columns
            pattern *= _window(height, width, WINDOWS[number // WHITE_EVERY % len(WINDOWS)], rng)
        spread = np.linalg.norm(guess * (rows @ pattern @ columns.T))
        # Over channels a random direction: colours are looked at together and against each other.
        mix = rng.standard_normal(image.channels)
        mix /= np.linalg.norm(mix)
        size = 1 / (widths[number // (WHITE_EVERY * len(WINDOWS)) % len(widths)] * spread)
        drawn[..., number] = size * pattern[..., None] * mix
    return whole_frequencies(drawn.reshape(image.pixels, count))


def code_waves(codes: int, count: int, widths: tuple[float, ...], rng: np.random.Generator) -> Waves:
    """`count` frequencies over codes of an autoencoder, which fill their range: kernels of these widths times the
    spread of a uniform code, sqrt(codes / 12)."""
    return Waves.draw(codes, count, tuple(width * math.sqrt(codes / 12) for width in widths), rng)


def whole_frequencies(radians: np.ndarray) -> Waves:
    """Frequencies given in radians over an input's whole range, on the grid that sums need."""
    scaled = np.rint(radians * ((1 << TURN_BITS) / (2 * math.pi * LEVELS)))
    return Waves(np.clip(scaled, -LARGEST_FREQUENCY, LARGEST_FREQUENCY).astype(np.int64))


def _window(height: int, width: int, share: float | None, rng: np.random.Generator) -> np.ndarray:
    """A Gaussian window of standard deviation `share` of the sides around a random place; None sees everything."""
    if share is None:
        return np.ones((height, width))
    sides = []
    for side in (height, width):
        middle = rng.uniform(0, side - 1)
        sides.append(np.exp(-((np.arange(side) - middle) ** 2) / (2 * max(share * side, 1.0) ** 2)))
    return np.outer(*sides)
