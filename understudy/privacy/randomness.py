"""Three separate streams of randomness: noise, row sampling, initialisation.

From the operating system unless a seed is given. A seed lets anyone who knows it subtract the noise, so whatever was
made with one is for tests and research, and its certificate says so.
"""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from understudy.errors import OptionError

_BLOCK = 10_000


class Noise(Protocol):
    """Where privacy noise comes from."""

    def gaussian_steps(self, scale: float, count: int) -> np.ndarray:
        """`count` independent whole numbers from a Gaussian of standard deviation `scale`, as int64."""

    def gumbel_argmax(self, scores: np.ndarray, scale: float) -> int:
        """An index j with probability proportional to exp(scores[j] / scale)."""

    def exponential_argmax(self, scores: np.ndarray, scale: float) -> int:
        """The index of the largest score after adding exponential noise of mean `scale` to each."""

    def words(self, count: int) -> np.ndarray:
        """`count` uniform uint32 words, for keys of compiled generators (never more than one use each)."""


class EntropyNoise:
    """OpenDP's exact samplers, fed by the operating system; no floating-point noise (Mironov 2012) anywhere."""

    def gaussian_steps(self, scale: float, count: int) -> np.ndarray:
        sampler = _discrete_gaussian(float(scale))
        # About 20 microseconds a draw, outside Python's lock: large releases are shared among the cores.
        sizes = [min(_BLOCK, count - start) for start in range(0, count, _BLOCK)]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            blocks = list(pool.map(lambda size: np.array(sampler([0] * size), dtype=np.int64), sizes))
        return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.int64)

    def gumbel_argmax(self, scores: np.ndarray, scale: float) -> int:
        return int(_noisy_max(float(scale), gumbel=True)(scores.tolist()))

    def exponential_argmax(self, scores: np.ndarray, scale: float) -> int:
        return int(_noisy_max(float(scale), gumbel=False)(scores.tolist()))

    def words(self, count: int) -> np.ndarray:
        return np.frombuffer(secrets.token_bytes(4 * count), dtype=np.uint32).copy()


class SeededNoise:
    """NumPy's generator, rounded to whole numbers like the exact sampler; repeatable, so not for release."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def gaussian_steps(self, scale: float, count: int) -> np.ndarray:
        return np.rint(self._generator.normal(0.0, scale, count)).astype(np.int64)

    def gumbel_argmax(self, scores: np.ndarray, scale: float) -> int:
        return int(np.argmax(scores + self._generator.gumbel(0.0, scale, len(scores))))

    def exponential_argmax(self, scores: np.ndarray, scale: float) -> int:
        return int(np.argmax(scores + self._generator.exponential(scale, len(scores))))

    def words(self, count: int) -> np.ndarray:
        return self._generator.integers(0, 2**32, count, dtype=np.uint32)


@dataclass(frozen=True)
class Streams:
    """`noise` for mechanisms, `sampling` (a NumPy generator) for which rows take part, `init` (an int) for weights."""

    noise: Noise
    sampling: np.random.Generator
    init: int
    seeded: bool

    @staticmethod
    def from_entropy() -> "Streams":
        """Fresh streams from the operating system: the only ones fit for release."""
        return Streams(
            noise=EntropyNoise(),
            sampling=np.random.default_rng(secrets.randbits(256)),
            init=secrets.randbits(31),
            seeded=False,
        )

    @staticmethod
    def from_seed(seed: int) -> "Streams":
        """Repeatable streams that share nothing: drawing from one moves no other.

        >>> Streams.from_seed(1).init == Streams.from_seed(1).init
        True
        """
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise OptionError(f"seed must be a whole number from 0, got {seed!r}")
        noise, sampling, init = np.random.SeedSequence(int(seed)).spawn(3)
        return Streams(
            noise=SeededNoise(np.random.default_rng(noise)),
            sampling=np.random.default_rng(sampling),
            init=int(init.generate_state(1)[0] >> 1),
            seeded=True,
        )


@lru_cache(maxsize=64)
def _discrete_gaussian(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=scale)


@lru_cache(maxsize=64)
def _noisy_max(scale: float, *, gumbel: bool) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    measure = dp.zero_concentrated_divergence() if gumbel else dp.max_divergence()
    return dp.m.make_noisy_max(*space, measure, scale=scale)
