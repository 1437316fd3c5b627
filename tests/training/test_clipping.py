"""Clipped sums: against plain differentiation, jax-privacy, and rows made to break them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import training_checks as checks
from jax_privacy import clipping

from understudy.training import ghost, nets

NAMES = ("wgan", "logistic", "split", "pair")


def test_each_row_moves_the_sum_by_its_clipped_gradient():
    checks.check_joint_norm()


def test_rows_that_are_not_finite_count_as_zero():
    checks.check_non_finite()


def test_padding_contributes_nothing():
    checks.check_padding()


def test_others_are_unchanged_when_a_row_joins():
    checks.check_neighbours()


@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")  # in jax-privacy
@pytest.mark.parametrize("name", NAMES)
def test_the_three_ways_agree(name):
    case = checks.cases()[name]
    theirs = jax.jit(clipping.clipped_grad(case.one, l2_clip_norm=checks.CLIP, keep_batch_dim=False))
    for seed, scale in ((1, 1.0), (2, 10.0), (3, 0.05)):
        batch = case.batch(seed, scale)
        ghosts, by_example = checks.sums(name, batch), checks.sums_by_example(name, batch)
        independent = checks.flat(theirs(case.params, batch))
        assert np.allclose(by_example, independent, rtol=1e-4, atol=1e-4)
        assert np.allclose(ghosts, independent, rtol=1e-4, atol=2e-4)


def test_rows_by_example_obey_the_same_rules(monkeypatch):
    """The general way passes the checks of the fast one."""
    monkeypatch.setattr(checks, "sums", checks.sums_by_example)
    checks.check_joint_norm()
    checks.check_non_finite()
    checks.check_padding()


@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1e6, 1e12, 1e18])
@pytest.mark.parametrize("name", NAMES)
def test_the_bound_holds_at_any_scale(name, scale):
    batch = checks.cases()[name].batch(11, scale)
    for place in range(0, checks.EXAMPLES, 3):
        assert np.linalg.norm(checks.sums(name, batch, checks.alone(place))) <= checks.CLIP * (1 + 1e-6)


def test_a_huge_input_does_not_pass_with_a_gradient_too_small_to_square():
    """d is 1e-20, whose square is lost, the input 1e19: their product is above the clip norm."""
    layer = {"0": {"w": jnp.zeros((1, 1)), "b": jnp.zeros(1)}}

    def loss(params, rows, tap):
        return 3e-20 * tap("0", rows, rows @ params["0"]["w"] + params["0"]["b"])[:, 0]

    one = jnp.full((1, 1), 1.5e19)
    found = checks.flat(ghost.clipped_sum(loss, layer, one, jnp.ones(1), clip=0.01))
    assert np.linalg.norm(found) <= 0.01 * (1 + 1e-6)


@pytest.mark.parametrize("apart", [0.0, 1e-7, 1e-6, 1e-4, 1e-2])
def test_pairs_that_nearly_cancel_stay_within_the_bound(apart):
    """A large real row against nearly the same fake: rounding is as large as what is left of the gradient."""
    rng = np.random.default_rng(3)
    real = 1e3 * rng.normal(size=(checks.EXAMPLES, 5))
    batch = np.concatenate([real, real * (1 + apart)], axis=1).astype(np.float32)
    exact = checks.gradients("pair", jnp.asarray(batch))
    for place in range(checks.EXAMPLES):
        found = checks.sums("pair", jnp.asarray(batch), checks.alone(place), 0.05)
        assert np.linalg.norm(found) <= 0.05 * (1 + 1e-4)
        if np.linalg.norm(exact[place]) == 0:
            assert np.linalg.norm(found) == 0


@pytest.mark.parametrize("value", [0.1, 0.3337])
def test_long_sums_do_not_round_below_the_bound(value):
    """Equal entries by the hundred thousand are the worst case of adding up one by one in float32."""
    many = {"w": jnp.zeros((900, 300))}
    wide = {"0": {"w": jnp.zeros((1500, 700)), "b": jnp.zeros(700)}}

    def by_example(row):
        present = jnp.array([1.0, 0.0])
        return ghost.clipped_sum_by_example(lambda p, r: r[0] * jnp.sum(p["w"]), many, row, present, clip=1.0)

    def ghosts(row):
        def loss(p, x, tap):
            return tap("0", x, x @ p["0"]["w"] + p["0"]["b"]).sum(axis=1)

        return ghost.clipped_sum(loss, wide, row, jnp.ones(1), clip=1.0)

    for way, row in ((by_example, jnp.full((2, 1), value)), (ghosts, jnp.full((1, 1500), value))):
        assert 0.999 < np.linalg.norm(checks.flat(jax.jit(way)(row))) <= 1 + 1e-6


def test_a_center_is_subtracted_before_clipping():
    name = "logistic"
    case, batch = checks.cases()[name], checks.cases()[name].batch(4, 3.0)
    center = jax.tree.map(lambda leaf: 0.2 * jnp.ones_like(leaf), case.params)
    present = jnp.asarray([1.0, 1, 0, 1, 1, 0, 1, 1])
    run = jax.jit(lambda b, p: ghost.clipped_sum(case.batched, case.params, b, p, clip=checks.CLIP, center=center))
    differences = checks.gradients(name, batch) - checks.flat(center)
    factors = np.minimum(1.0, checks.CLIP / np.linalg.norm(differences, axis=1)) * np.asarray(present)
    assert np.allclose(checks.flat(run(batch, present)), factors @ differences, atol=2e-4)
    bad = batch.at[0].set(jnp.nan)
    assert np.array_equal(checks.flat(run(bad, present)), checks.flat(run(bad, present.at[0].set(0))))
    for place in range(checks.EXAMPLES):
        assert np.linalg.norm(checks.flat(run(batch, jnp.asarray(checks.alone(place))))) <= checks.CLIP * (1 + 1e-5)


def test_losses_that_mix_rows_are_refused_where_it_can_be_seen():
    case = checks.cases()["wgan"]
    batch, present = case.batch(1), jnp.ones(checks.EXAMPLES)
    with pytest.raises(ValueError, match="one number for each example"):
        ghost.clipped_sum(lambda p, x, tap: checks.score(p, x, tap).mean(), case.params, batch, present, clip=1.0)
    with pytest.raises(ValueError, match="one row for each"):
        ghost.clipped_sum(
            lambda p, x, tap: checks.score(p, x[:1], tap) + jnp.zeros(checks.EXAMPLES),
            case.params,
            batch,
            present,
            clip=1.0,
        )
    with pytest.raises(ValueError, match="unused"):
        ghost.clipped_sum(lambda p, x, tap: checks.score(p, x, nets.untapped), case.params, batch, present, clip=1.0)
