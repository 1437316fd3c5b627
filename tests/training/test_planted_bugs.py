"""Bugs of published implementations, planted in the core: the check that guards against each must fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_checks as checks

from understudy.privacy import Gaussian, PoissonSampled
from understudy.training import dpsgd, ghost, loop
from understudy.training.dpsgd import DpSgd, Numbers


@pytest.fixture(autouse=True)
def compile_anew():
    """A planted step must not be answered from what was compiled without it, nor be left behind for others."""
    loop._scan.clear_cache()
    checks._compiled.cache_clear()
    yield
    loop._scan.clear_cache()
    checks._compiled.cache_clear()


def caught(check):
    with pytest.raises(AssertionError):
        check()


def by_tensor(loss, params, batch, present, *, clip):
    """Each tensor clipped by itself."""
    gradients = _gradients(loss, params, batch, present)

    def clipped(leaf):
        norms = jnp.linalg.norm(leaf.reshape(len(present), -1), axis=1)
        return jnp.tensordot(jnp.minimum(1.0, clip / norms) * present, leaf, axes=1)

    return jax.tree.map(clipped, gradients)


def _gradients(loss, params, batch, present):
    def one(params, row):
        return loss(params, row[None], lambda name, x, y: y)[0]

    return jax.vmap(jax.grad(one), in_axes=(None, 0))(params, batch)


def keeps_nan(loss, params, batch, present, *, clip):
    gradients = _gradients(loss, params, batch, present)
    squared = sum(jnp.sum(leaf.reshape(len(present), -1) ** 2, axis=1) for leaf in jax.tree.leaves(gradients))
    factor = jnp.minimum(1.0, clip / jnp.sqrt(squared)) * present
    return jax.tree.map(lambda leaf: jnp.tensordot(factor, leaf, axes=1), gradients)


def over_the_batch(loss, params, batch, present, *, clip):
    """The sum clipped as a whole: every row's part depends on the others."""
    gradients = _gradients(loss, params, batch, present)
    total = jax.tree.map(lambda leaf: jnp.tensordot(present, leaf, axes=1), gradients)
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(total)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, len(present) * clip / norm), total)


def without_cross_term(loss, params, batch, present, *, clip):
    """Norms of a layer's uses added up as if they were layers of their own."""
    original = ghost._dot
    ghost._dot = lambda first, second: original(first, second) if first is second else jnp.zeros(len(first)) - 1.0
    try:
        return REAL_CLIPPED_SUM(loss, params, batch, present, clip=clip)
    finally:
        ghost._dot = original


REAL_CLIPPED_SUM = ghost.clipped_sum


@pytest.mark.parametrize("bug", [by_tensor, over_the_batch, without_cross_term])
def test_wrong_clipping(bug, monkeypatch):
    monkeypatch.setattr(ghost, "clipped_sum", bug)
    caught(checks.check_joint_norm)


def test_clipping_over_the_batch_is_seen_by_neighbours(monkeypatch):
    monkeypatch.setattr(ghost, "clipped_sum", over_the_batch)
    caught(checks.check_neighbours)


def test_rows_that_are_not_finite_kept(monkeypatch):
    monkeypatch.setattr(ghost, "clipped_sum", keeps_nan)
    caught(checks.check_non_finite)
    caught(checks.check_padding)


def test_standard_deviation_taken_for_the_multiplier(monkeypatch):
    """The noise has the multiplier for its deviation times the clip norm once more, and is charged without."""
    real = DpSgd.numbers.fget

    def numbers(plan):
        right = real(plan)
        return right._replace(noise_std=right.noise_std * right.clip)

    monkeypatch.setattr(DpSgd, "numbers", property(numbers))
    caught(checks.check_noise)
    caught(checks.check_event)
    caught(checks.check_audit)


def test_composition_outside_of_subsampling(monkeypatch):
    """All steps as one Gaussian, then one amplification: far too cheap."""
    event = property(lambda plan: PoissonSampled(plan.rate, Gaussian(plan.noise_multiplier / plan.steps**0.5)))
    monkeypatch.setattr(DpSgd, "event", event)
    caught(checks.check_event)


def test_batches_of_a_fixed_size(monkeypatch):
    def fixed(rows, steps, rate, rng):
        size = round(rows * rate)
        row = np.concatenate([np.sort(rng.permutation(rows)[:size]) for _ in range(steps)])
        return np.repeat(np.arange(steps), size), row

    monkeypatch.setattr(dpsgd, "poisson_heads", fixed)
    caught(checks.check_sampler)


def test_rows_drawn_with_replacement(monkeypatch):
    def replaced(rows, steps, rate, rng):
        sizes = rng.binomial(rows, rate, steps)
        return np.repeat(np.arange(steps), sizes), rng.integers(0, rows, sizes.sum())

    monkeypatch.setattr(dpsgd, "poisson_heads", replaced)
    caught(checks.check_sampler)


def test_batches_cut_to_a_foreseen_width(monkeypatch):
    real = DpSgd.batches

    def cut(plan, rows, rng):
        for chunk in real(plan, rows, rng):
            yield chunk[:, : int(plan.expected_batch + 2)]

    monkeypatch.setattr(DpSgd, "batches", cut)
    caught(checks.check_nothing_cut)
    caught(checks.check_sampler)


def test_noise_used_again_in_every_step(monkeypatch):
    real = Numbers.noisy_mean
    monkeypatch.setattr(Numbers, "noisy_mean", lambda self, clipped, key: real(self, clipped, jax.random.key(0)))
    caught(checks.check_noise)


def test_noise_shared_by_tensors(monkeypatch):
    real = Numbers.noisy_mean

    def shared(self, clipped, key):
        return {name: real(self, {name: leaf}, key)[name] for name, leaf in clipped.items()}

    monkeypatch.setattr(Numbers, "noisy_mean", shared)
    caught(checks.check_noise)


def test_noise_left_out_of_one_tensor(monkeypatch):
    real = Numbers.noisy_mean

    def partly(self, clipped, key):
        return real(self, clipped, key) | {"b": clipped["b"] / self.expected_batch}

    monkeypatch.setattr(Numbers, "noisy_mean", partly)
    caught(checks.check_noise)


def test_clip_norm_doubled_is_seen_by_the_audit(monkeypatch):
    monkeypatch.setattr(
        ghost,
        "clipped_sum",
        lambda loss, params, batch, present, *, clip: REAL_CLIPPED_SUM(loss, params, batch, present, clip=2 * clip),
    )
    caught(checks.check_audit)
