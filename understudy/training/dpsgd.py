"""DP-SGD as one object: which rows take part, how far each may move the sum, the noise, and the charge for it all."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.errors import OptionError
from understudy.privacy import Event, Gaussian, NonPrivate, PoissonSampled, SelfComposed
from understudy.privacy.accountant import flatten, rdp_epsilon
from understudy.training.noise import normals

MOST_ROWS_AT_ONCE = 1 << 16  # rows gathered for a chunk of steps: 70 MB of a thousand columns
NOISE_AT_ONCE = 64  # noise is drawn in a multiple of this
CHUNKS = 40  # about how often progress moves


@dataclass(frozen=True, kw_only=True)
class DpSgd:
    """A plan of private gradient steps. All fields are public.

    rate: each row joins a step's batch by a coin of its own with this probability (Poisson sampling).
    steps: how many steps are taken, and charged, whatever becomes of them.
    clip: most that one row's gradient counts, in L2 over all noised parameters together.
    noise_multiplier: the noise's standard deviation is this times `clip`; 0 is no privacy.
    expected_batch: rate times the declared rows, the public number that sums are divided by.
    chunks: into how many compiled runs the steps are cut at least, if there are as many steps.
    """

    rate: float
    steps: int
    clip: float
    noise_multiplier: float
    expected_batch: float
    chunks: int = CHUNKS

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise OptionError(f"rate must be above 0 and at most 1, got {self.rate}")
        if self.steps < 1:
            raise OptionError(f"steps must be at least 1, got {self.steps}")
        for name in ("clip", "expected_batch"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise OptionError(f"{name} must be a number above 0, got {getattr(self, name)}")
        if not (math.isfinite(self.noise_multiplier) and self.noise_multiplier >= 0):
            raise OptionError(f"noise_multiplier must not be negative, got {self.noise_multiplier}")

    @cached_property
    def event(self) -> Event:
        """What all steps together cost: composition of subsampled Gaussians, not a subsampled composition."""
        if self.noise_multiplier == 0:
            return NonPrivate()
        return sgd_event(self.rate, self.steps, self.noise_multiplier)

    def batches(self, rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Row numbers by step, for one chunk of steps after the other: (steps of the chunk, width), padded with -1.

        Every row is in every batch with probability `rate`, independently: the gaps between heads of a long row of
        coins are geometric, so heads are found without flipping the tails. The width is that of the chunk's largest
        batch, rounded up to few different shapes; nothing is ever cut off, since that would be another mechanism.
        """
        chunk = self.steps_per_chunk
        width = 0
        for first in range(0, self.steps, chunk):
            steps = min(chunk, self.steps - first)
            step, row = poisson_heads(rows, steps, self.rate, rng)
            sizes = np.bincount(step, minlength=steps)
            width = max(width, _roomy(self.expected_batch), _rounded(int(sizes.max(initial=1))))
            padded = np.full((steps, width), -1, dtype=np.int64)
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
            padded[step, np.arange(len(row)) - starts[step]] = row
            yield padded

    @property
    def steps_per_chunk(self) -> int:
        """Long enough that Python is not seen, short enough for memory and for progress; from public facts."""
        by_memory = MOST_ROWS_AT_ONCE // max(_roomy(self.expected_batch), 1)
        chunk = min(self.steps, max(1, min(by_memory, self.steps // self.chunks)))
        return chunk - chunk % 4 if chunk > 8 else chunk  # noise is drawn for several steps at once

    @property
    def numbers(self) -> "Numbers":
        """What a compiled step needs of the plan: numbers that may differ between fits without compiling again."""
        std = self.noise_multiplier * self.clip
        if std > 1e30 or self.clip > 1e30:
            raise OptionError(f"clip and noise must be below 1e30, got {self.clip:g} and {std:g}")
        # Rounded to the safe side: to the nearest float32 the noise could come out below what is charged.
        return Numbers(
            clip=np.nextafter(np.float32(self.clip), np.float32(0)),
            noise_std=np.nextafter(np.float32(std), np.float32(np.inf)) if std else np.float32(0),
            expected_batch=np.float32(self.expected_batch),
        )

    def spent(self, steps: int, delta: float, before: Sequence[Event] = ()) -> float:
        """Epsilon after so many of the steps and what came `before`, for progress: by Renyi DP alone, which is quick.

        >>> plan = DpSgd(rate=0.01, steps=1000, clip=1.0, noise_multiplier=2.0, expected_batch=10)
        >>> round(plan.spent(500, 1e-6), 3) < round(plan.spent(1000, 1e-6), 3)
        True
        """
        if self.noise_multiplier == 0:
            return math.inf
        done = [sgd_event(self.rate, steps, self.noise_multiplier)] if steps else []
        return rdp_epsilon(flatten([*before, *done]), delta) if done or before else 0.0


class Numbers(NamedTuple):
    """A plan's clip norm, the noise's standard deviation and the public batch size, for use inside compiled code."""

    clip: Any
    noise_std: Any
    expected_batch: Any

    def normals(self, keys: jax.Array, size: int) -> jax.Array:
        """(keys, at least size) of standard normals, one row from each key, for `noisy_mean`.

        Nothing is drawn where no noise is asked for. Rows are rounded up because an odd number is compiled without
        vector instructions, and takes eight times as long.
        """
        count = -(-size // NOISE_AT_ONCE) * NOISE_AT_ONCE
        return jax.lax.cond(
            self.noise_std > 0,
            lambda: jax.vmap(lambda key: normals(key, count))(keys),
            lambda: jnp.zeros((len(keys), count), dtype=jnp.float32),
        )

    def noisy_mean(self, clipped: Any, noise: jax.Array) -> Any:
        """The noisy sum over the public expected batch size; the noise is there for an empty batch as well.

        noise: a row of `normals`, or a key to draw it from; used for nothing else.

        Guarantee: `clipped` moves by at most `clip` when a row joins or leaves (`ghost.clipped_sum`), so each call
        under Poisson sampling is one PoissonSampled(rate, Gaussian(noise_multiplier)) of the plan's event.
        """
        leaves, tree = jax.tree.flatten(clipped)
        sizes = [leaf.size for leaf in leaves]
        if jnp.issubdtype(noise.dtype, jax.dtypes.prng_key):
            noise = self.normals(noise[None], sum(sizes))[0]
        if len(noise) < sum(sizes):
            raise ValueError(f"noise must have at least {sum(sizes)} normals, one for each value, got {len(noise)}")
        parts = jnp.split(self.noise_std * noise, np.cumsum(sizes))[:-1]
        noisy = [leaf + part.reshape(leaf.shape) for leaf, part in zip(leaves, parts, strict=True)]
        return jax.tree.unflatten(tree, [leaf / self.expected_batch for leaf in noisy])


def sgd_event(rate: float, steps: int, noise_multiplier: float) -> Event:
    """`steps` Gaussians, each on a Poisson sample of its own; a rate of 1 samples nothing away."""
    step = Gaussian(noise_multiplier)
    return SelfComposed(step if rate == 1 else PoissonSampled(rate, step), steps)


def poisson_heads(rows: int, steps: int, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(step, row) of every head among steps x rows independent coins, in order."""
    coins = rows * steps
    if rows == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if rate == 1:
        heads = np.arange(coins)
    else:
        expected = coins * rate
        found, last = [], -1
        while last < coins:
            gaps = rng.geometric(rate, int(expected + 6 * math.sqrt(expected)) + 16)
            # Tiny rates have gaps whose sum would wrap around. NumPy's inversion gives 0 once in 2^53 draws: that row
            # would be taken twice.
            places = last + np.cumsum(np.clip(gaps, 1, coins + 1))
            found.append(places)
            last = int(places[-1])
        heads = np.concatenate(found)
        heads = heads[heads < coins]
    return heads // rows, heads % rows


def _roomy(expected_batch: float) -> int:
    """Wider than all but about one in a million batches: another width is compiled anew."""
    return _rounded(int(expected_batch + 4.5 * math.sqrt(expected_batch)) + 1)


def _rounded(size: int) -> int:
    """Up to a multiple of a sixteenth of its power of two, so that few shapes are compiled."""
    unit = max(1 << max(size.bit_length() - 5, 0), 8)
    return -(-size // unit) * unit
