"""The only contact between private rows and the generator: the noisy slopes of one critic at made-up rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.privacy import Event, NonPrivate, OneOfMany, SelfComposed
from understudy.privacy.accountant import flatten, rdp_epsilon
from understudy.synthesizers.gs_wgan.critics import Critic, slopes
from understudy.training.dpsgd import NOISE_AT_ONCE
from understudy.training.noise import normals


@dataclass(frozen=True, kw_only=True)
class Asking:
    """A plan of questions to critics. All fields are public.

    critics: among how many one is drawn afresh for every question (K). steps: how many questions are put, and charged.
    batch: made-up rows a question (b), always the same. clip: most that a slope counts (C).
    noise_multiplier: the noise's standard deviation over the sensitivity 2 C sqrt(b); 0 is no privacy.
    """

    critics: int
    steps: int
    batch: int
    clip: float
    noise_multiplier: float

    @cached_property
    def event(self) -> Event:
        """All questions together: each is one sampled release for the whole batch, not one for each made-up row."""
        if self.noise_multiplier == 0:
            return NonPrivate()
        return asking_event(self.critics, self.steps, self.noise_multiplier)

    def spent(self, steps: int, delta: float, before: Sequence[Event] = ()) -> float:
        """Epsilon after so many questions and what came `before`, for progress: by Renyi DP alone, which is quick."""
        if self.noise_multiplier == 0:
            return math.inf
        done = [asking_event(self.critics, steps, self.noise_multiplier)] if steps else []
        return rdp_epsilon(flatten([*before, *done]), delta) if done or before else 0.0

    @property
    def sensitivity(self) -> float:
        """How far answers can lie apart: b rows of a norm of at most C each lie in a ball of radius C sqrt(b)."""
        return 2 * self.clip * math.sqrt(self.batch)

    @property
    def numbers(self) -> "Numbers":
        """What compiled code needs, rounded to the safe side."""
        std = self.noise_multiplier * self.sensitivity
        return Numbers(
            clip=np.nextafter(np.float32(self.clip), np.float32(0)),
            noise_std=np.nextafter(np.float32(std), np.float32(np.inf)) if std else np.float32(0),
        )


class Numbers(NamedTuple):
    """The clip norm and the noise's standard deviation, for use inside compiled code."""

    clip: Any
    noise_std: Any

    def noisy_slopes(self, critic: Critic, x: jax.Array, kept: jax.Array, key: jax.Array) -> jax.Array:
        """The slopes of one critic at made-up rows, cut to the clip norm, with noise on every number.

        Guarantee: with the critic drawn uniformly and afresh, and critics that share nothing, each call is one event
        of `Asking`. kept: 1 for features that the generator decides, 0 for others, whose slopes are left out. `key` is
        used for nothing else.
        """
        clipped = clip_rows(slopes(critic, x) * kept, self.clip)
        count = -(-clipped.size // NOISE_AT_ONCE) * NOISE_AT_ONCE
        noise = jax.lax.cond(
            self.noise_std > 0,
            lambda: self.noise_std * normals(key, count),
            lambda: jnp.zeros(count, dtype=jnp.float32),
        )
        return (clipped + noise[: clipped.size].reshape(clipped.shape)) * kept


def clip_rows(slopes: jax.Array, clip: jax.Array) -> jax.Array:
    """Every row cut to a norm of at most `clip`; rows that are not finite, or too large to be measured, are zero.

    Rows are divided by their largest entry before squares are taken, so that nothing under- or overflows, and the
    norm is rounded up by more than sums of float32 can lose.
    """
    finite = jnp.isfinite(slopes).all(axis=1, keepdims=True)
    slopes = jnp.where(finite, slopes, 0.0)
    # Compiled code may multiply by a reciprocal: that of a tiny number would not be finite.
    largest = jnp.maximum(jnp.abs(slopes).max(axis=1, keepdims=True), 1e-30)
    unit = slopes / largest
    norm = jnp.sqrt(jnp.sum(unit**2, axis=1, keepdims=True)) * (1 + (slopes.shape[1] + 8) * 2.0**-23)
    return unit * jnp.minimum(largest, clip / jnp.maximum(norm, 1.0))


def asking_event(critics: int, steps: int, noise_multiplier: float) -> Event:
    """`steps` questions, each to a critic drawn afresh among `critics`."""
    return SelfComposed(OneOfMany(1 / critics, noise_multiplier), steps)
