"""One step of a private GAN on tables: the critic learns from clipped, noised gradients, the generator from the critic.

The generator meets real rows through the critic's released parameters alone, so its steps cost nothing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax

from understudy.training import ghost, nets
from understudy.training.dpsgd import Numbers
from understudy.training.heads import Blocks
from understudy.training.loop import Step
from understudy.training.nets import Net, Tap

LOSSES = ("wgan", "wgan-gp", "kl-wgan", "logistic")


@dataclass(frozen=True, kw_only=True)
class Game:
    """The public facts of a GAN: what is compiled.

    fakes: made-up rows a step. critic_steps: steps of the critic for each of the generator.
    frozen: layers at the generator's end that are not trained (a decoder). label: the column that is drawn from
    released shares and given to the generator, if any.
    """

    blocks: Blocks
    generator: Net
    critic: Net
    latent: int
    fakes: int
    critic_steps: int
    loss: str
    critic_rate: float
    generator_rate: float
    temperature: float
    weight_limit: float | None
    penalty: float = 10.0
    averaging: float = 0.0
    frozen: int = 0
    label: int | None = None


def start(
    game: Game, seed: int, *, bias: Any = None, decoder: nets.Params | None = None, label_shares: Any = None
) -> Any:
    """The first state: random weights, the generator's last biases at the released one-way shares if given."""
    critic_key, generator_key = jax.random.split(jax.random.key(seed))
    generator = nets.init(game.generator, generator_key)
    if decoder is not None:
        first = len(generator) - game.frozen
        generator = [*_near_identity(generator[:first]), *decoder]
    elif bias is not None:
        generator[-1]["b"] = jnp.asarray(bias)
    critic = nets.named(nets.init(game.critic, critic_key))
    critic_optimiser, generator_optimiser = _optimisers(game)
    return {
        "critic": critic,
        "generator": generator,
        "average": generator,
        "critic_state": critic_optimiser.init(critic),
        "generator_state": generator_optimiser.init(generator),
        "step": jnp.zeros((), dtype=jnp.int32),
        "label_logits": jnp.zeros(1) if label_shares is None else jnp.log(jnp.maximum(jnp.asarray(label_shares), 1e-6)),
    }


def _near_identity(layers: nets.Params) -> nets.Params:
    """Layers that start by handing on what they are given, where a hidden layer is wide enough for it.

    A decoder of codes that look normal makes good rows of plain noise already: the game goes on from there. A leaky
    unit and its mirror image add up to (1 + leak) times their input.
    """
    if len(layers) != 2 or layers[0]["w"].shape[0] != layers[1]["w"].shape[1]:
        return layers
    size, hidden = layers[0]["w"].shape
    if hidden < 2 * size:
        return layers
    eye = jnp.eye(size, dtype=jnp.float32)
    first = layers[0]["w"].at[:, : 2 * size].set(jnp.concatenate([eye, -eye], axis=1))
    second = jnp.zeros_like(layers[1]["w"]).at[: 2 * size].set(jnp.concatenate([eye, -eye]) / (1 + nets.LEAK))
    return [layers[0] | {"w": first}, layers[1] | {"w": second}]


def _optimisers(game: Game) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    return optax.adam(game.critic_rate, b1=0.5, b2=0.9), optax.adam(game.generator_rate, b1=0.5, b2=0.9)


@lru_cache(maxsize=32)
def make_step(game: Game) -> Step:
    """The step for `loop.run`.

    Real rows enter the critic's gradient as a sum of clipped differences from the made-up rows' mean gradient, and
    leave it as `noisy_mean`. That mean comes from released weights and fresh draws, so one row moves the sum by at most
    the clip norm; what real and made-up rows share (most of a gradient) takes up none of it. A gradient penalty touches
    real rows, so it is part of each real row's own loss, inside the clip; the made-up rows' term is then added without
    noise.
    """
    critic_optimiser, generator_optimiser = _optimisers(game)

    def step(
        numbers: Numbers, state: Any, codes: jax.Array, present: jax.Array, noise: jax.Array, key: jax.Array
    ) -> Any:
        fake_key, mix_key, generator_key = jax.random.split(key, 3)
        real = game.blocks.encode(codes)
        fake = make_rows(game, state["generator"], state["label_logits"], fake_key, game.fakes)
        gradient = _critic_gradient(game, numbers, state["critic"], real, present, fake, noise, mix_key)
        updates, critic_state = critic_optimiser.update(gradient, state["critic_state"], state["critic"])
        critic = optax.apply_updates(state["critic"], updates)
        if game.weight_limit is not None:
            critic = jax.tree.map(lambda leaf: jnp.clip(leaf, -game.weight_limit, game.weight_limit), critic)

        def improve(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            generator, optimiser_state, average = carry

            def loss(generator: nets.Params) -> jax.Array:
                rows = make_rows(game, generator, state["label_logits"], generator_key, game.fakes)
                scores = score(game, critic, rows)
                return -scores.mean() if game.loss != "logistic" else jnp.logaddexp(0.0, -scores).mean()

            gradient = _without_frozen(game, jax.grad(loss)(generator))
            updates, optimiser_state = generator_optimiser.update(gradient, optimiser_state, generator)
            generator = optax.apply_updates(generator, _without_frozen(game, updates))
            turns = (state["step"] + 1) // game.critic_steps
            keep = jnp.minimum(game.averaging, turns / (turns + 10.0))  # a short run forgets its start as well
            mean = jax.tree.map(lambda a, g: keep * a + (1 - keep) * g, average, generator)
            return generator, optimiser_state, mean

        carry = (state["generator"], state["generator_state"], state["average"])
        turn = (state["step"] + 1) % game.critic_steps == 0
        generator, generator_state, average = jax.lax.cond(turn, improve, lambda carry: carry, carry)
        return state | {
            "critic": critic,
            "critic_state": critic_state,
            "generator": generator,
            "generator_state": generator_state,
            "average": average,
            "step": state["step"] + 1,
        }

    return step


def make_rows(game: Game, generator: nets.Params, label_logits: jax.Array, key: jax.Array, count: int) -> jax.Array:
    """Made-up rows as nearly one-hot units, differentiable in the generator."""
    latent_key, label_key, draw_key = jax.random.split(key, 3)
    latent = jax.random.normal(latent_key, (count, game.latent))
    if game.label is None:
        logits = nets.apply(game.generator, generator, latent)
        return game.blocks.draw(logits, draw_key, temperature=game.temperature)
    labels = jax.random.categorical(label_key, label_logits, shape=(count,))
    size = game.blocks.sizes[game.label]
    logits = nets.apply(game.generator, generator, jnp.concatenate([latent, jax.nn.one_hot(labels, size)], axis=1))
    rows = game.blocks.draw(logits, draw_key, temperature=game.temperature)
    # The label is what was asked for, whatever the network says in its place.
    mine = game.blocks.column_of_unit == game.label
    given = (labels[:, None] == game.blocks.code_of_unit).astype(jnp.float32)
    return jnp.where(mine, given, rows)


def score(game: Game, critic: Any, rows: jax.Array, tap: Tap = nets.untapped) -> jax.Array:
    layers = [critic[str(number)] for number in range(len(critic))]
    return nets.apply(game.critic, layers, rows, tap)[:, 0]


def _critic_gradient(
    game: Game,
    numbers: Numbers,
    critic: Any,
    real: jax.Array,
    present: jax.Array,
    fake: jax.Array,
    noise: jax.Array,
    mix_key: jax.Array,
) -> Any:
    def real_loss(critic: Any, rows: jax.Array, tap: Tap) -> jax.Array:
        scores = score(game, critic, rows, tap)
        return jnp.logaddexp(0.0, -scores) if game.loss == "logistic" else -scores

    def fake_loss(critic: Any, rows: jax.Array, tap: Tap) -> jax.Array:
        scores = score(game, critic, rows, tap)
        if game.loss == "logistic":
            return jnp.logaddexp(0.0, scores)
        if game.loss == "kl-wgan":  # fakes that the critic takes for real count for more
            weights = jax.lax.stop_gradient(jax.nn.softmax(scores))
            return scores * weights * len(scores)
        return scores

    fake = jax.lax.stop_gradient(fake)
    if game.loss == "wgan-gp":
        # Partners by independent draws: pairing by place would change every later row's partner when a row joins.
        share_key, partner_key = jax.random.split(mix_key)
        share = jax.random.uniform(share_key, (len(real), 1))
        partner = fake[jax.random.randint(partner_key, (len(real),), 0, len(fake))]
        mixed = share * real + (1 - share) * partner

        def one(critic: Any, rows: tuple[jax.Array, jax.Array]) -> jax.Array:
            row, between = rows
            slope = jax.grad(lambda x: score(game, critic, x[None])[0])(between)
            steepness = jnp.sqrt(jnp.sum(slope**2) + 1e-12)
            return -score(game, critic, row[None])[0] + game.penalty * (steepness - 1) ** 2

        clipped = ghost.clipped_sum_by_example(one, critic, (real, mixed), present, clip=numbers.clip)
        against = jax.grad(lambda critic: jnp.mean(fake_loss(critic, fake, nets.untapped)))(critic)
        noisy = numbers.noisy_mean(clipped, noise)
        return jax.tree.map(jnp.add, noisy, against)
    against = jax.grad(lambda critic: jnp.mean(fake_loss(critic, fake, nets.untapped)))(critic)
    center = jax.tree.map(jnp.negative, against)
    clipped = ghost.clipped_sum(real_loss, critic, real, present, clip=numbers.clip, center=center)
    return numbers.noisy_mean(clipped, noise)


def _without_frozen(game: Game, layers: nets.Params) -> nets.Params:
    if not game.frozen:
        return layers
    last = len(layers) - game.frozen
    return layers[:last] + [jax.tree.map(jnp.zeros_like, layer) for layer in layers[last:]]
