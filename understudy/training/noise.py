"""Independent normals inside compiled code: Threefry by counter, then the inverse of the normal distribution.

jax.random.normal reads 23 random bits, so it never leaves 5.4 standard deviations, and its rolled loops take two to
three times as long. Here each normal is made of 63 bits and a sign, and tails reach 9 standard deviations; the chance
of anything beyond, which is left out, is below 1e-18 a draw.
"""

import jax
import jax.numpy as jnp
import numpy as np

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
# With p = P(|N| > z), x = 1 - p and w = -log(1 - x^2): z/x is smooth in w, and beyond w = 5 in sqrt(w). Polynomials
# fitted to it, highest power first, around 2.5 and 4; relative errors 1e-7 and 3e-6.
_TURN, _MIDDLE, _FAR = 5.0, 2.5, 4.0
_CENTRE = (
    4.03541077e-08,
    4.86103203e-07,
    -4.99055891e-06,
    -6.21798479e-06,
    3.09150180e-04,
    -1.77301018e-03,
    -5.90817094e-03,
    3.48802660e-01,
    2.12331357,
)
_TAIL = (
    1.76945537e-05,
    -1.06280125e-04,
    1.83426415e-04,
    -6.24419034e-05,
    2.32615829e-04,
    -1.31077505e-03,
    1.92517267e-03,
    1.42766415,
    5.43026036,
)


def normals(key: jax.Array, count: int) -> jax.Array:
    """Independent standard normals in float32; the key is used for nothing else."""
    places = jax.lax.iota(jnp.uint32, count)
    return from_words(*threefry(jax.random.key_data(key), jnp.zeros_like(places), places))


def threefry(key: jax.Array, high: jax.Array, low: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011): two random words for each counter (high, low)."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    high, low = high + keys[0], low + keys[1]
    for block in range(5):
        for turn in _ROTATIONS[block % 2]:
            high = high + low
            low = ((low << np.uint32(turn)) | (low >> np.uint32(32 - turn))) ^ high
        high = high + keys[(block + 1) % 3]
        low = low + keys[(block + 2) % 3] + np.uint32(block + 1)
    return high, low


def from_words(first: jax.Array, second: jax.Array) -> jax.Array:
    """A standard normal from two uniform words: 63 bits are P(|N| > |z|), the last is the sign."""
    beyond = (_float(first >> 1) + (_float(second >> 1) + 0.5) * np.float32(2**-31)) * np.float32(2**-31)
    within = 1.0 - beyond
    w = -jnp.log(beyond * (1.0 + within))
    central = w < _TURN
    t = jnp.where(central, w - _MIDDLE, jnp.sqrt(w) - _FAR)
    ratio = jnp.where(central, np.float32(_CENTRE[0]), np.float32(_TAIL[0]))
    for centre, tail in zip(_CENTRE[1:], _TAIL[1:], strict=True):
        ratio = ratio * t + jnp.where(central, np.float32(centre), np.float32(tail))
    size = jax.lax.bitcast_convert_type(ratio * within, jnp.uint32)
    return jax.lax.bitcast_convert_type(size ^ (first << 31), jnp.float32)


def _float(word: jax.Array) -> jax.Array:
    """A word below 2^31; through signed integers, which processors convert many at a time."""
    return word.astype(jnp.int32).astype(jnp.float32)
