"""Which rows take part, the noise, and the charge for both."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
import training_checks as checks

from understudy.errors import OptionError
from understudy.privacy import Gaussian, NonPrivate, SelfComposed
from understudy.training import noise
from understudy.training.dpsgd import DpSgd, poisson_heads, sgd_event


def test_rows_join_by_independent_coins():
    checks.check_sampler()


def test_batches_are_never_cut_off():
    checks.check_nothing_cut()


def test_rate_one_takes_every_row_every_time():
    plan = DpSgd(rate=1.0, steps=7, clip=1.0, noise_multiplier=2.0, expected_batch=9)
    for chunk in plan.batches(9, np.random.default_rng(0)):
        assert all(sorted(batch[batch >= 0]) == list(range(9)) for batch in chunk)
    assert plan.event == SelfComposed(Gaussian(2.0), 7)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_few_rows_give_batches_of_every_step(rows):
    plan = DpSgd(rate=0.5, steps=50, clip=1.0, noise_multiplier=1.0, expected_batch=2)
    batches = np.concatenate(list(plan.batches(rows, np.random.default_rng(0))))
    assert len(batches) == 50
    assert batches.max(initial=-1) < rows
    assert (batches.max(axis=1) == -1).any(), "some are empty"


def test_tiny_rates_do_not_wrap_around():
    step, row = poisson_heads(1000, 1000, 1e-18, np.random.default_rng(0))
    assert len(step) == len(row) == 0
    step, row = poisson_heads(10**6, 10, 1e-6, np.random.default_rng(0))
    assert 0 < len(step) < 40
    assert (np.diff(step * 10**6 + row) > 0).all()


def test_a_gap_of_zero_takes_no_row_twice():
    """NumPy's exponential, which gaps are made of, can be exactly 0."""

    class Zero:
        def geometric(self, rate, count):
            return np.resize([0, 0, 3], count)

    step, row = poisson_heads(7, 4, 0.5, Zero())
    assert len(set(zip(step.tolist(), row.tolist(), strict=True))) == len(step)
    assert step.min() >= 0


def test_chunks_are_sized_by_public_facts_and_have_one_shape():
    plan = DpSgd(rate=0.01, steps=1000, clip=1.0, noise_multiplier=1.0, expected_batch=50)
    shapes = [chunk.shape for chunk in plan.batches(5000, np.random.default_rng(1))]
    assert {shape[0] for shape in shapes[:-1]} == {plan.steps_per_chunk}
    assert len({shape[1] for shape in shapes}) == 1
    assert sum(shape[0] for shape in shapes) == 1000


def test_noise_is_fresh_independent_and_of_the_charged_scale():
    checks.check_noise()


def test_the_charge_is_what_was_drawn():
    checks.check_event()


@pytest.mark.parametrize("off", [0.95, 1.05])
def test_the_test_of_scale_sees_five_per_cent(off):
    drawn = np.asarray(noise.normals(jax.random.key(3), 60_000), dtype=np.float64)
    assert checks.accepts(drawn, 1.0)
    assert not checks.accepts(drawn, off)


def test_normals_are_threefry_and_the_inverse_normal_distribution():
    """The words are those of JAX's generator; tails are right where its own normals have ended."""
    key = jax.random.key(17)
    places = jnp.arange(1000, dtype=jnp.uint32)
    first, second = noise.threefry(jax.random.key_data(key), jnp.zeros_like(places), places)
    assert np.array_equal(first ^ second, jax.random.bits(key, (1000,)))
    rng = np.random.default_rng(0)
    scale = 2.0 ** rng.integers(0, 33, 5000)
    words = np.minimum(rng.random(5000) * scale, 2**32 - 1).astype(np.uint32)
    rest = rng.integers(0, 2**32, 5000, dtype=np.uint32)
    beyond = ((words >> 1) + ((rest >> 1) + 0.5) / 2**31) / 2**31
    expected = scipy.stats.norm.isf(beyond / 2) * np.where(words & 1, -1, 1)
    found = np.asarray(noise.from_words(jnp.asarray(words), jnp.asarray(rest)))
    assert np.allclose(found, expected, rtol=2e-5, atol=2e-7)
    assert np.abs(found).max() > 6
    assert abs(float(noise.from_words(jnp.zeros(1, jnp.uint32), jnp.zeros(1, jnp.uint32))[0])) > 9


def test_normals_fit_far_out():
    drawn = np.asarray(jax.jit(lambda key: noise.normals(key, 1 << 21))(jax.random.key(5)), dtype=np.float64)
    for limit in (1.0, 2.0, 3.0, 4.0):
        expected = len(drawn) * scipy.stats.norm.sf(limit)
        for side in (drawn > limit, drawn < -limit):
            assert abs(side.sum() - expected) < 5 * math.sqrt(expected)


def test_no_noise_is_no_privacy():
    plan = DpSgd(rate=0.1, steps=3, clip=1.0, noise_multiplier=0.0, expected_batch=4)
    assert plan.event == NonPrivate()
    assert plan.spent(1, 1e-6) == math.inf
    tree = {"w": jnp.ones((2, 3))}
    assert np.array_equal(plan.numbers.noisy_mean(tree, jax.random.key(0))["w"], np.full((2, 3), 0.25))


def test_numbers_are_rounded_to_the_safe_side():
    for clip in (0.1, 0.3, 0.022, 1.0):
        numbers = DpSgd(rate=0.1, steps=1, clip=clip, noise_multiplier=1.1, expected_batch=1).numbers
        assert float(numbers.clip) <= clip
        assert float(numbers.noise_std) >= 1.1 * clip


def test_epsilon_so_far_grows_to_that_of_the_plan():
    plan = DpSgd(rate=0.02, steps=500, clip=1.0, noise_multiplier=1.5, expected_batch=10)
    spent = [plan.spent(steps, 1e-6) for steps in (0, 100, 500)]
    assert spent[0] == 0 < spent[1] < spent[2]
    from understudy.privacy import epsilon

    assert spent[2] == epsilon([plan.event], 1e-6).rdp
    assert plan.spent(0, 1e-6, before=[Gaussian(5.0)]) == epsilon([Gaussian(5.0)], 1e-6).rdp
    both = epsilon([Gaussian(5.0), sgd_event(0.02, 100, 1.5)], 1e-6).rdp
    assert plan.spent(100, 1e-6, before=[Gaussian(5.0)]) == both


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate": 0.0},
        {"rate": 1.1},
        {"rate": math.nan},
        {"steps": 0},
        {"clip": 0.0},
        {"clip": math.inf},
        {"expected_batch": -1.0},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": math.nan},
    ],
)
def test_impossible_plans_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(OptionError, match=name):
        DpSgd(**({"rate": 0.1, "steps": 2, "clip": 1.0, "noise_multiplier": 1.0, "expected_batch": 4.0} | wrong))
