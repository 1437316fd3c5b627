"""The GANs: what they charge is what they do, one row moves little, labels stay private, checkpoints come along."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, Gaussian, PoissonSampled, SelfComposed
from understudy.schema import Schema
from understudy.synthesizers.api import fit, load, method_module
from understudy.training import gan, loop, nets
from understudy.training.dpsgd import DpSgd
from understudy.training.heads import Blocks
from understudy.training.nets import Net

SCHEMA = Schema.loads("""
rows: 400
label: sick
columns:
  age: {kind: integer, low: 0, high: 9}
  town: {kind: categorical, values: [a, b, c]}
  sick: {kind: boolean}
""")
TINY = {"steps": 6, "batch": 40, "generator_hidden": (8,), "critic_hidden": (8,), "latent": 4}
AUTO = {"autoencoder_steps": 4, "autoencoder_hidden": 8}
METHODS = ("dp-wgan", "dp-cgan", "dp-auto-gan")


def people(rows: int = 390) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    sick = rng.random(rows) < 0.3
    return pd.DataFrame(
        {
            "age": np.clip(rng.integers(0, 10, rows) + 3 * sick, 0, 9),
            "town": np.where(sick, "a", rng.choice(["a", "b", "c"], rows)),
            "sick": sick,
        }
    )


def options(method: str) -> dict:
    return TINY | (AUTO if method == "dp-auto-gan" else {})


@pytest.mark.parametrize("method", METHODS)
def test_the_ledger_is_what_ran(method: str, monkeypatch: pytest.MonkeyPatch):
    """Steps are counted where they are taken, noise where it is drawn: the charge must be of both."""
    taken = []
    run = loop.run

    def spy(plan: DpSgd, step, state, codes, **rest):
        numbers = plan.numbers
        taken.append((plan.rate, plan.steps, float(numbers.noise_std) / float(numbers.clip)))
        return run(plan, step, state, codes, **rest)

    monkeypatch.setattr(loop, "run", spy)
    model = fit(people(), SCHEMA, method=method, epsilon=2.0, seed=1, **options(method))
    first, *phases = [entry.event for entry in model.certificate.entries]
    assert isinstance(first, Gaussian)
    assert len(phases) == len(taken) == (2 if method == "dp-auto-gan" else 1)
    for event, (rate, steps, ratio) in zip(phases, taken, strict=True):
        assert isinstance(event, SelfComposed)
        assert isinstance(event.event, PoissonSampled)
        assert (event.event.rate, event.count) == (rate, steps)
        assert rate == pytest.approx(TINY["batch"] / SCHEMA.rows)
        # The noise that is really added over the norm that one row really has: not below what is charged.
        charged = event.event.event.noise_multiplier
        assert charged <= ratio < charged * (1 + 1e-5)
    assert model.certificate.epsilon <= 2.0


def small_game(loss: str, label: int | None = None) -> gan.Game:
    blocks = Blocks((4, 3, 2))
    return gan.Game(
        blocks=blocks,
        generator=Net.of([5 + (2 if label is not None else 0), 8, blocks.width]),
        critic=Net.of([blocks.width, 6, 1]),
        latent=5,
        fakes=16,
        critic_steps=1,
        loss=loss,
        critic_rate=0.01,
        generator_rate=0.01,
        temperature=0.66,
        weight_limit=None,
        label=label,
    )


@pytest.mark.parametrize("loss", gan.LOSSES)
def test_one_row_moves_the_critics_gradient_by_at_most_the_clip(loss: str):
    """Brute force over every row of the domain added to a batch, on released weights of any size."""
    game = small_game(loss)
    state = gan.start(game, 3)
    critic = jax.tree.map(lambda leaf: 5.0 * leaf + 0.1, state["critic"])
    fake = gan.make_rows(game, state["generator"], state["label_logits"], jax.random.key(1), game.fakes)
    codes = np.random.default_rng(0).integers(0, game.blocks.sizes, (9, 3)).astype(np.uint8)
    present = np.ones(9, dtype=np.float32)
    without = present.copy()
    without[4] = 0
    plan = DpSgd(rate=0.5, steps=1, clip=0.7, noise_multiplier=0.0, expected_batch=1.0)

    @jax.jit
    def gradient(numbers, codes, present):
        keys = jax.random.split(jax.random.key(7))
        found = gan._critic_gradient(game, numbers, critic, game.blocks.encode(codes), present, fake, *keys)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(found)])

    def moves_of(clip: float) -> list[float]:
        numbers = dataclasses.replace(plan, clip=clip).numbers
        base = gradient(numbers, codes, without)
        moves = []
        for row in np.ndindex(*game.blocks.sizes):
            codes[4] = row
            moves.append(float(jnp.linalg.norm(gradient(numbers, codes, present) - base)))
        return moves

    moves = moves_of(plan.clip)
    assert max(moves) <= plan.clip * (1 + 1e-4)
    assert max(moves) > 0.9 * plan.clip  # the weights are large: the bound is reached
    # The test can fail: with ten times the clip, the same rows move it further.
    assert max(moves_of(10 * plan.clip)) > 1.5 * plan.clip


def test_the_generator_never_meets_a_real_row():
    """With the critic's learning off, real rows cannot reach the generator: two tables give the same one."""
    game = dataclasses.replace(small_game("wgan", label=2), critic_rate=0.0)
    plan = DpSgd(rate=0.5, steps=1, clip=1.0, noise_multiplier=1.0, expected_batch=8.0)
    step = gan.make_step(game)
    state = gan.start(game, 3, label_shares=np.array([0.7, 0.3]))
    present = jnp.ones(8)
    outcomes = [
        step(plan.numbers, state, jnp.asarray(codes, dtype=jnp.uint8), present, jax.random.key(0), jax.random.key(1))
        for codes in (np.zeros((8, 3)), np.ones((8, 3)))
    ]
    for one, other in zip(*(jax.tree.leaves(outcome["generator"]) for outcome in outcomes), strict=True):
        assert (np.asarray(one) == np.asarray(other)).all()


def test_labels_of_made_up_rows_come_from_the_released_shares():
    game = small_game("logistic", label=2)
    state = gan.start(game, 3, label_shares=np.array([0.9, 0.1]))
    rows = gan.make_rows(game, state["generator"], state["label_logits"], jax.random.key(0), 4000)
    label = np.asarray(rows[:, -1])
    assert set(np.unique(label)) == {0.0, 1.0}
    assert label.mean() == pytest.approx(0.1, abs=0.02)


def test_a_class_given_to_the_network_is_the_same_as_a_network_of_the_class():
    from understudy.synthesizers.neural.weights import class_generators

    net = Net.of([4 + 2, 8, 6], hidden="relu")
    layers = nets.init(net, jax.random.key(0))
    layers[0]["b"] = layers[0]["b"] + 0.5
    one, two = class_generators(layers, net, np.array([0.25, 0.75]))
    assert (one.share, two.share, two.label) == (0.25, 0.75, 1)
    latent = np.random.default_rng(3).standard_normal((5, 4), dtype=np.float32)
    given = nets.apply(net, layers, jnp.concatenate([latent, np.eye(2, dtype=np.float32)[[1] * 5]], axis=1))

    class Same:
        def choice(self, *_, size, p):
            return np.zeros(size, dtype=int)

        def standard_normal(self, *_, **__):
            return latent

    np.testing.assert_allclose(two.logits(5, Same()), given, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_checkpoints_come_along_and_cost_nothing(method: str, tmp_path):
    plain = fit(people(), SCHEMA, method=method, epsilon=2.0, seed=1, **options(method))
    model = fit(people(), SCHEMA, method=method, epsilon=2.0, seed=1, checkpoints=3, **options(method))
    assert [e.event for e in model.certificate.entries] == [e.event for e in plain.certificate.entries]
    model.save(tmp_path / "m.understudy")
    kept = load(tmp_path / "m.understudy").released.trajectory
    assert len(kept["critic.0.w"]) == len(kept["generator.0.w"]) == 3
    assert not (kept["critic.0.w"][0] == kept["critic.0.w"][2]).all()
    # The last checkpoint's generator is the released one before its marginals are corrected.
    last = model.released.generators[0].layers[0][0]
    np.testing.assert_array_equal(kept["generator.0.w"][2][: len(last)], last)


@pytest.mark.parametrize("method", METHODS)
def test_corrected_marginals_follow_the_released_tables(method: str):
    rows = people()
    model = fit(rows, SCHEMA, method=method, epsilon=float("inf"), seed=1, **options(method))
    made = model.sample(20_000, seed=0)
    for value in ("a", "b", "c"):
        assert (made["town"] == value).mean() == pytest.approx((rows["town"] == value).mean(), abs=0.02)


def test_without_a_label_a_conditional_gan_says_what_to_do():
    for label, message in ((None, "needs a label"), ("age", "declared values")):
        schema = SCHEMA.model_copy(update={"label": label})
        with pytest.raises(SchemaError, match=message):
            fit(people(), schema, method="dp-cgan", epsilon=1.0, **TINY)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of"),
        ({"critic_hidden": (65_536, 65_536)}, "critic_hidden or generator_hidden makes a network"),
        ({"clip": 0.0}, "clip must be"),
        ({"step": 3}, "did you mean 'steps'"),
        ({"checkpoints": 7}, "checkpoints must be at most steps"),
        ({"critic_hidden": "64"}, "critic_hidden must be whole numbers"),
        ({"latent": (8, 8)}, "latent must be a whole number"),  # one number, not one a layer
        ({"clip": ()}, "clip must be a number"),
    ],
)
def test_wrong_options_are_named(wrong: dict, message: str):
    with pytest.raises(OptionError, match=message):
        fit(people(), SCHEMA, method="dp-wgan", epsilon=1.0, **(TINY | wrong))


def test_a_batch_larger_than_the_table_takes_every_row():
    module = method_module("dp-wgan")
    config = module.Config(**(TINY | {"batch": 5000}))
    (plan,) = module.plan_game(config, SCHEMA, Budget(1.0, 1e-6)).phases
    assert plan.rate == 1
    assert plan.expected_batch == SCHEMA.rows
    assert plan.event == SelfComposed(Gaussian(plan.noise_multiplier), plan.steps)
