"""DP-VAE: both halves are clipped together and noised, a row's loss is its own, and the charge is what ran."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError
from understudy.privacy import Budget, Gaussian, NonPrivate, PoissonSampled, SelfComposed
from understudy.schema import Schema
from understudy.synthesizers import dp_vae
from understudy.synthesizers.api import fit
from understudy.synthesizers.neural.plans import share_of_one_way
from understudy.training import autoencoder, ghost, loop
from understudy.training.dpsgd import DpSgd
from understudy.training.heads import Blocks
from understudy.training.nets import Net

BLOCKS = Blocks((4, 2, 3))
SCHEMA = Schema.loads("""
rows: 400
columns:
  age: {kind: integer, low: 0, high: 9}
  town: {kind: categorical, values: [a, b, c]}
  sick: {kind: boolean}
""")
TINY = {"steps": 6, "hidden": 6, "latent": 3}
KINDS = {
    "variational": {"variational": True},
    "plain": {},
    "blurred in a ball": {"radius": 1.0, "blur": 0.5},
}


def coder(kind: str, learning_rate: float = 0.01) -> autoencoder.Coder:
    options = KINDS[kind]
    return autoencoder.Coder(
        blocks=BLOCKS,
        encoder=Net.of([BLOCKS.width, 6, 6 if options.get("variational") else 3]),
        decoder=Net.of([3, 6, BLOCKS.width]),
        learning_rate=learning_rate,
        **options,
    )


def people(rows: int = 390) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    sick = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "age": np.clip(rng.integers(0, 5, rows) + 5 * sick, 0, 9),
            "town": np.where(sick, "a", rng.choice(["a", "b", "c"], rows)),
            "sick": sick,
        }
    )


def some_batch(rows: int = 9) -> np.ndarray:
    return np.random.default_rng(0).integers(0, BLOCKS.sizes, (rows, 3)).astype(np.uint8)


def seen_by_the_step(monkeypatch: pytest.MonkeyPatch, kind: str) -> Any:
    """step(clip, codes, present) -> the clipped sum that a step hands on to be noised, and the parameters it is of."""
    whole = coder(kind)
    state = autoencoder.start(whole, 3)
    state["params"] = jax.tree.map(lambda leaf: 3.0 * leaf + 0.1, state["params"])
    sums: list[Any] = []

    class Spy:
        def __init__(self, clip: float) -> None:
            self.clip = clip

        def noisy_mean(self, clipped: Any, key: jax.Array) -> Any:
            sums.append(clipped)
            return clipped

    autoencoder.make_step.cache_clear()
    step = autoencoder.make_step(whole)

    def run(clip: float, codes: np.ndarray, present: np.ndarray) -> Any:
        sums.clear()
        step(Spy(clip), state, jnp.asarray(codes), jnp.asarray(present), jax.random.key(0), jax.random.key(1))
        assert len(sums) == 1  # one release a step
        return sums[0]

    return run, state["params"]


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_of_both_halves_is_noised(kind: str):
    """Nothing to learn and no row present: whatever moves was moved by noise. An encoder left out would stand still."""
    whole = coder(kind)
    plan = DpSgd(rate=0.5, steps=1, clip=1.0, noise_multiplier=5.0, expected_batch=1.0)
    state = autoencoder.start(whole, 3)
    after = autoencoder.make_step(whole)(
        plan.numbers, state, jnp.asarray(some_batch()), jnp.zeros(9), jax.random.key(0), jax.random.key(1)
    )
    names = set(state["params"])
    assert {name.split(".")[0] for name in names} == {"encoder", "decoder"}
    for name in names:
        for part in ("w", "b"):
            moved = np.asarray(after["params"][name][part] != state["params"][name][part])
            assert moved.all(), (name, part)


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_moves_the_sum_over_both_halves_by_at_most_the_clip(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Brute force over every row there is, beside eight others."""
    run, params = seen_by_the_step(monkeypatch, kind)
    codes, present, without = some_batch(), np.ones(9, np.float32), np.ones(9, np.float32)
    without[4] = 0

    def moves(clip: float) -> list[float]:
        base, found = flat(run(clip, codes, without)), []
        assert len(base) == flat(params).size  # all parameters, in one sum
        for row in np.ndindex(*BLOCKS.sizes):
            codes[4] = row
            found.append(float(np.linalg.norm(flat(run(clip, codes, present)) - base)))
        return found

    assert max(moves(0.5)) <= 0.5 * (1 + 1e-5)
    assert max(moves(0.5)) > 0.499  # reached
    assert max(moves(5.0)) > 0.6  # the test can fail: without this clip, rows move it further


def test_clipping_layer_by_layer_would_be_seen(monkeypatch: pytest.MonkeyPatch):
    """The planted bug: each half clipped by itself moves the whole by up to sqrt(2) clips."""
    joint = ghost.clipped_sum

    def by_half(loss: Any, params: Any, batch: Any, present: Any, *, clip: float) -> Any:
        whole = joint(loss, params, batch, present, clip=1e9)
        out = {}
        for half in ("encoder", "decoder"):
            mine = {name: layer for name, layer in whole.items() if name.startswith(half)}
            scale = min(1.0, clip / float(np.linalg.norm(flat(mine))))
            out |= jax.tree.map(lambda leaf, scale=scale: leaf * scale, mine)
        return out

    monkeypatch.setattr(ghost, "clipped_sum", by_half)
    run, _ = seen_by_the_step(monkeypatch, "variational")
    one = np.zeros(9, np.float32)
    one[4] = 1
    assert np.linalg.norm(flat(run(0.01, some_batch(), one))) > 0.0141


@pytest.mark.parametrize("kind", KINDS)
def test_a_rows_part_does_not_depend_on_the_others(kind: str, monkeypatch: pytest.MonkeyPatch):
    """No batch statistics: the parts of rows alone, each in its place, add up to the sum of all."""
    run, _ = seen_by_the_step(monkeypatch, kind)
    codes, total = some_batch(), 0.0
    for place in range(9):
        alone = np.zeros(9, np.float32)
        alone[place] = 1
        others = np.zeros_like(codes)
        others[place] = codes[place]
        part = flat(run(0.5, codes, alone))
        np.testing.assert_array_equal(part, flat(run(0.5, others, alone)))
        total = total + part
    np.testing.assert_allclose(flat(run(0.5, codes, np.ones(9, np.float32))), total, atol=1e-5)


def test_a_row_whose_gradient_is_not_finite_counts_as_nothing():
    whole = coder("variational")
    params = autoencoder.start(whole, 3)["params"]
    params["encoder.0"]["w"] = params["encoder.0"]["w"].at[1].set(jnp.nan)  # met by rows with the first column's code 1

    def loss(params: Any, codes: jax.Array, tap: Any) -> jax.Array:
        # where, not a product: one row's weights of a one-hot code
        units = whole.blocks.encode(codes)
        kept = jnp.where(units[:, 1:2] > 0, jnp.nan, units)
        found = autoencoder.encode(whole, {**params, "encoder.0": clean}, kept, tap)
        return whole.blocks.cross_entropy(autoencoder.decode(whole, params, found[:, :3], tap), codes)

    clean = autoencoder.start(whole, 3)["params"]["encoder.0"]
    codes = np.array([[0, 0, 0], [1, 1, 1], [2, 1, 2]], dtype=np.uint8)
    both = ghost.clipped_sum(loss, params, jnp.asarray(codes), jnp.ones(3), clip=1.0)
    without = ghost.clipped_sum(loss, params, jnp.asarray(codes), jnp.array([1.0, 0.0, 1.0]), clip=1.0)
    assert np.isfinite(flat(both)).all()
    np.testing.assert_array_equal(flat(both), flat(without))


def test_codes_stay_in_the_ball_and_have_slopes_everywhere():
    x = jnp.array([[0.0, 0.0], [0.3, 0.4], [30.0, 40.0]])
    found, slope = autoencoder.into_ball(x, 1.0), jax.grad(lambda x: autoencoder.into_ball(x, 1.0).sum())(x)
    np.testing.assert_allclose(found, [[0, 0], [0.3, 0.4], [0.6, 0.8]], atol=1e-6)
    assert np.isfinite(slope).all()
    assert autoencoder.into_ball(x, None) is x


def test_what_is_released_is_an_average_of_the_last_steps():
    assert dataclasses.replace(coder("plain"), steps=1000).averaging == pytest.approx(0.98)
    assert dataclasses.replace(coder("plain"), steps=5).averaging == 0.0  # too few: the last
    assert coder("plain").averaging == 0.0


# --- the ledger ---


def test_the_ledger_is_what_ran(monkeypatch: pytest.MonkeyPatch):
    taken = []
    scan = loop._scan

    def spy(numbers: Any, state: Any, codes: Any, present: Any, noise_keys: Any, keys: Any, *, step: Any) -> Any:
        taken.append((len(noise_keys), float(numbers.noise_std) / float(numbers.clip), np.asarray(present).sum()))
        return scan(numbers, state, codes, present, noise_keys, keys, step=step)

    monkeypatch.setattr(loop, "_scan", spy)
    model = fit(people(), SCHEMA, method="dp-vae", epsilon=2.0, seed=1, batch=40, **TINY)
    one_way, steps = [entry.event for entry in model.certificate.entries]
    assert isinstance(one_way, Gaussian)
    assert isinstance(steps, SelfComposed)
    assert isinstance(steps.event, PoissonSampled)
    assert sum(length for length, *_ in taken) == steps.count == TINY["steps"]
    assert steps.event.rate == pytest.approx(40 / 400)
    charged = steps.event.event.noise_multiplier
    for _, ratio, _ in taken:
        assert charged <= ratio * (1 + 1e-12)
        assert ratio < charged * (1 + 1e-5)
    drawn = sum(rows for *_, rows in taken)  # 6 steps of about 39 rows
    assert abs(drawn - 6 * 39) < 5 * math.sqrt(6 * 39)
    assert 0.98 * 2.0 < model.certificate.epsilon <= 2.0


def test_fewer_rows_than_a_batch_take_part_in_every_step():
    model = fit(people(30), SCHEMA, method="dp-vae", epsilon=2.0, seed=1, batch=1000, **TINY)
    steps = model.certificate.entries[1].event
    assert isinstance(steps.event, Gaussian)  # nothing is sampled away, nothing is amplified
    assert len(model.sample(20, seed=0)) == 20


def test_without_a_budget_nothing_is_promised_and_dependence_is_learnt():
    frame = pd.concat([people(390)] * 5, ignore_index=True)
    model = fit(frame, SCHEMA, method="dp-vae", epsilon=math.inf, seed=1, steps=300, hidden=16, latent=3)
    assert {entry.event for entry in model.certificate.entries} == {NonPrivate()}
    drawn = model.sample(4000, seed=0)
    assert drawn[drawn["sick"]]["age"].mean() - drawn[~drawn["sick"]]["age"].mean() > 3
    assert (drawn[drawn["sick"]]["town"] == "a").mean() > 0.8
    assert drawn["sick"].mean() == pytest.approx(frame["sick"].mean(), abs=0.03)


def test_the_share_of_the_one_way_tables_follows_public_facts():
    many, few = (SCHEMA.model_copy(update={"rows": rows}) for rows in (10**6, 100))
    assert share_of_one_way(many, Budget(1.0, 1e-6)) == 0.15
    assert share_of_one_way(few, Budget(1.0, 1e-6)) == 0.9
    between = SCHEMA.model_copy(update={"rows": 1000})
    assert 0.15 < share_of_one_way(between, Budget(1.0, 1e-6)) < 0.9
    assert share_of_one_way(few, Budget(math.inf, 1e-6)) == 0.15


# --- refusals, before a row is read ---


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"latent": 0}, "latent must be a whole number from 1"),
        ({"hidden": 2.5}, "hidden must be a whole number"),
        ({"steps": True}, "steps must be a whole number"),
        ({"clip": 0.0}, "clip must be a number"),
        ({"learning_rate": math.nan}, "learning_rate must be a number"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"one_way_share": 0.95}, "one_way_share must be a number"),
        ({"divergence_weight": -1.0}, "divergence_weight must be a number"),
        ({"hiden": 8}, "did you mean 'hidden'"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict, match: str):
    with pytest.raises(OptionError, match=match):
        fit(object(), SCHEMA, method="dp-vae", **options)


def test_a_network_that_would_not_fit_is_refused():
    columns = "".join(f"  c{n}: {{kind: integer, low: 0, high: 500}}\n" for n in range(60))
    with pytest.raises(OptionError, match="hidden makes a network of"):
        fit(object(), Schema.loads(f"rows: 50\ncolumns:\n{columns}"), method="dp-vae", hidden=60_000)


def test_a_budget_too_small_for_any_noise_is_refused():
    with pytest.raises(OptionError, match=r"epsilon|noise"):
        dp_vae.check(dp_vae.Config(batch=400, steps=5), SCHEMA, Budget(1e-9, 1e-300))


def test_earlier_decoders_come_along_and_cost_nothing():
    plain = fit(people(), SCHEMA, method="dp-vae", epsilon=2.0, seed=1, **TINY)
    model = fit(people(), SCHEMA, method="dp-vae", epsilon=2.0, seed=1, checkpoints=2, **TINY)
    assert model.certificate.entries == plain.certificate.entries
    kept = model.released.trajectory
    assert set(kept) == {f"generator.{place}.{part}" for place in (0, 1) for part in ("w", "b")}
    assert len(kept["generator.0.w"]) == 2
    # The last one is the released decoder before its marginals are corrected.
    np.testing.assert_array_equal(kept["generator.0.w"][1], model.released.generators[0].layers[0][0])
