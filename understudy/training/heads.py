"""Rows as numbers for networks, and networks' numbers as rows: one block of units for each column.

A column of m codes is m units of a one-hot code, or one unit if m is 2. A network's output for a block are logits:
softmax over the block, or the sigmoid of the single unit, which is the same with the other code's logit at 0.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

LARGEST_LOGIT = 30.0


@dataclass(frozen=True)
class Blocks:
    """The number of codes of every column, from public or released facts.

    >>> Blocks((3, 2, 4)).width, Blocks((3, 2, 4)).starts
    (8, (0, 3, 4))
    """

    sizes: tuple[int, ...]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return tuple(1 if size == 2 else size for size in self.sizes)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(int(start) for start in np.cumsum((0, *self.widths))[:-1])

    @cached_property
    def width(self) -> int:
        return sum(self.widths)

    @cached_property
    def column_of_unit(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.widths)

    @cached_property
    def code_of_unit(self) -> np.ndarray:
        return np.concatenate([[1] if size == 2 else np.arange(size) for size in self.sizes]).astype(np.int32)

    @cached_property
    def binary(self) -> np.ndarray:
        """Which columns have two codes."""
        return np.array([size == 2 for size in self.sizes])

    def encode(self, codes: jax.Array) -> jax.Array:
        """(rows, columns) of codes to (rows, width) of zeros and ones."""
        return (codes[:, self.column_of_unit] == self.code_of_unit.astype(codes.dtype)).astype(jnp.float32)

    def probabilities(self, logits: jax.Array) -> jax.Array:
        """Softmax within every block; for a column of two codes, the probability of the second."""
        logits = jnp.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)
        if self.binary.all():
            return jax.nn.sigmoid(logits)
        belongs = jnp.asarray(np.eye(len(self.sizes), dtype=np.float32)[self.column_of_unit])
        exponentials = jnp.exp(logits)
        totals = exponentials @ belongs + self.binary.astype(np.float32)
        return exponentials / (totals @ belongs.T)

    def draw(self, logits: jax.Array, key: jax.Array, *, temperature: float) -> jax.Array:
        """A Gumbel-softmax draw: nearly a one-hot row of codes, and differentiable in the logits."""
        first, second = jax.random.split(key)
        noise = jax.random.gumbel(first, logits.shape)
        # Two codes: the difference of their two Gumbels, since the other code's logit is held at 0.
        other = jax.random.gumbel(second, logits.shape) if self.binary.any() else 0.0
        noise = noise - jnp.where(self.binary[self.column_of_unit], other, 0.0)
        return self.probabilities((logits + noise) / temperature)

    def cross_entropy(self, logits: jax.Array, codes: jax.Array) -> jax.Array:
        """Minus the log-probability of each row's codes, columns independent given the logits."""
        target = self.encode(codes)
        logits = jnp.clip(logits, -LARGEST_LOGIT, LARGEST_LOGIT)
        if self.binary.all():
            return jnp.sum(jnp.logaddexp(0.0, logits) - target * logits, axis=1)
        belongs = jnp.asarray(np.eye(len(self.sizes), dtype=np.float32)[self.column_of_unit])
        totals = jnp.log(jnp.exp(logits) @ belongs + self.binary.astype(np.float32))
        return jnp.sum(totals, axis=1) - jnp.sum(target * logits, axis=1)

    def logits_of(self, shares: list[np.ndarray], *, least: float = 1e-3) -> np.ndarray:
        """Logits that give each column these shares, on the units; rare codes are held above `least`."""
        logits = []
        for share in shares:
            floored = np.maximum(share / share.sum(), least)
            floored = floored / floored.sum()
            logs = np.log(floored)
            logits.append(logs[1:] - logs[0] if len(share) == 2 else logs - logs.mean())
        return np.concatenate(logits).astype(np.float32)

    def expand(self, units: np.ndarray) -> list[np.ndarray]:
        """Probabilities on units to one (rows, codes) table a column."""
        tables = []
        for size, start in zip(self.sizes, self.starts, strict=True):
            block = units[:, start : start + (1 if size == 2 else size)]
            tables.append(np.concatenate([1 - block, block], axis=1) if size == 2 else block)
        return tables
