"""Bugs of published implementations, planted in the training core: functions that take pytest's monkeypatch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.privacy import Gaussian, PoissonSampled
from understudy.training import dpsgd, ghost
from understudy.training.dpsgd import DpSgd, Numbers, sgd_event

REAL_CLIPPED_SUM = ghost.clipped_sum
Patch = pytest.MonkeyPatch


def _gradients(loss: Any, params: Any, batch: Any) -> Any:
    def one(params: Any, row: Any) -> Any:
        return loss(params, row[None], lambda name, x, y: y)[0]

    return jax.vmap(jax.grad(one), in_axes=(None, 0))(params, batch)


# --- clipping ---


def clip_by_tensor(patch: Patch) -> None:
    """Each tensor clipped by itself."""

    def by_tensor(loss: Any, params: Any, batch: Any, present: Any, *, clip: Any) -> Any:
        def clipped(leaf: Any) -> Any:
            norms = jnp.linalg.norm(leaf.reshape(len(present), -1), axis=1)
            return jnp.tensordot(jnp.minimum(1.0, clip / norms) * present, leaf, axes=1)

        return jax.tree.map(clipped, _gradients(loss, params, batch))

    patch.setattr(ghost, "clipped_sum", by_tensor)


def clip_the_batch(patch: Patch) -> None:
    """The sum clipped as a whole: every row's part depends on the others."""

    def over_the_batch(loss: Any, params: Any, batch: Any, present: Any, *, clip: Any) -> Any:
        total = jax.tree.map(lambda leaf: jnp.tensordot(present, leaf, axes=1), _gradients(loss, params, batch))
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(total)))
        return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, len(present) * clip / norm), total)

    patch.setattr(ghost, "clipped_sum", over_the_batch)


def clip_without_cross_term(patch: Patch) -> None:
    """Norms of a layer's uses added up as if they were layers of their own."""
    dot = ghost._dot
    patch.setattr(
        ghost, "_dot", lambda first, second: dot(first, second) if first is second else jnp.zeros(len(first)) - 1.0
    )


def clip_doubled(patch: Patch) -> None:
    def doubled(loss: Any, params: Any, batch: Any, present: Any, *, clip: Any) -> Any:
        return REAL_CLIPPED_SUM(loss, params, batch, present, clip=2 * clip)

    patch.setattr(ghost, "clipped_sum", doubled)


def keep_nan(patch: Patch) -> None:
    """Rows whose gradient is not finite stay in the sum."""

    def kept(loss: Any, params: Any, batch: Any, present: Any, *, clip: Any) -> Any:
        gradients = _gradients(loss, params, batch)
        squared = sum(jnp.sum(leaf.reshape(len(present), -1) ** 2, axis=1) for leaf in jax.tree.leaves(gradients))
        factor = jnp.minimum(1.0, clip / jnp.sqrt(squared)) * present
        return jax.tree.map(lambda leaf: jnp.tensordot(factor, leaf, axes=1), gradients)

    patch.setattr(ghost, "clipped_sum", kept)


# --- noise and charges ---


def deviation_for_multiplier(patch: Patch) -> None:
    """The noise has the multiplier times the clip norm once more for its deviation, and is charged without."""
    real = DpSgd.numbers.fget

    def numbers(plan: DpSgd) -> Numbers:
        right = real(plan)
        return right._replace(noise_std=right.noise_std * right.clip)

    patch.setattr(DpSgd, "numbers", property(numbers))


def compose_inside_sampling(patch: Patch) -> None:
    """All steps as one Gaussian, then one amplification: far too cheap."""
    event = property(lambda plan: PoissonSampled(plan.rate, Gaussian(plan.noise_multiplier / plan.steps**0.5)))
    patch.setattr(DpSgd, "event", event)


def charge_half_the_steps(patch: Patch) -> None:
    patch.setattr(
        DpSgd, "event", property(lambda plan: sgd_event(plan.rate, -(-plan.steps // 2), plan.noise_multiplier))
    )


def reuse_noise(patch: Patch) -> None:
    """The same noise in every step."""
    real = Numbers.noisy_mean
    patch.setattr(Numbers, "noisy_mean", lambda self, clipped, key: real(self, clipped, jax.random.key(0)))


def share_noise(patch: Patch) -> None:
    """The same noise for every tensor of a step."""
    real = Numbers.noisy_mean

    def shared(self: Numbers, clipped: Any, key: Any) -> Any:
        return {name: real(self, {name: leaf}, key)[name] for name, leaf in clipped.items()}

    patch.setattr(Numbers, "noisy_mean", shared)


def leave_noise_out(patch: Patch) -> None:
    """One tensor goes without noise."""
    real = Numbers.noisy_mean

    def partly(self: Numbers, clipped: Any, key: Any) -> Any:
        return real(self, clipped, key) | {"b": clipped["b"] / self.expected_batch}

    patch.setattr(Numbers, "noisy_mean", partly)


# --- sampling ---


def fixed_batches(patch: Patch) -> None:
    """Batches of a fixed size, drawn afresh for each step."""

    def fixed(rows: int, steps: int, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        size = round(rows * rate)
        row = np.concatenate([np.sort(rng.permutation(rows)[:size]) for _ in range(steps)])
        return np.repeat(np.arange(steps), size), row

    patch.setattr(dpsgd, "poisson_heads", fixed)


def shuffled_epochs(patch: Patch) -> None:
    """The rows shuffled, then cut into batches, epoch after epoch."""

    def shuffled(rows: int, steps: int, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        size = max(1, round(rows * rate))
        epochs = -(-steps * size // rows)
        order = np.concatenate([rng.permutation(rows) for _ in range(epochs)])[: steps * size]
        return np.repeat(np.arange(steps), size), order

    patch.setattr(dpsgd, "poisson_heads", shuffled)


def with_replacement(patch: Patch) -> None:
    def replaced(rows: int, steps: int, rate: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        sizes = rng.binomial(rows, rate, steps)
        return np.repeat(np.arange(steps), sizes), rng.integers(0, rows, sizes.sum())

    patch.setattr(dpsgd, "poisson_heads", replaced)


def cut_batches(patch: Patch) -> None:
    """Batches cut to a width that was foreseen."""
    real = DpSgd.batches

    def cut(plan: DpSgd, rows: int, rng: np.random.Generator) -> Any:
        for chunk in real(plan, rows, rng):
            yield chunk[:, : int(plan.expected_batch + 2)]

    patch.setattr(DpSgd, "batches", cut)
