"""One step of the game, compiled: some critics learn in turns, one drawn in secret is asked, the generator moves."""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from understudy.synthesizers.gs_wgan import critics
from understudy.synthesizers.gs_wgan.ask import Numbers
from understudy.synthesizers.gs_wgan.critics import Lessons
from understudy.training import nets
from understudy.training.heads import Blocks
from understudy.training.nets import Net, Params

AVERAGING = 0.999  # of the generator's weights: what is released is steadier than any one step
SLOWEST = 0.02  # of its learning rate, at the end
# Most that log-odds of codes are tilted along a feature: noise drives weights far, and saturated rows learn no more.
STEEPEST = 3.0

State = dict[str, Any]


@dataclass(frozen=True)
class Game:
    """The public facts of a game: what is compiled.

    generator: gives tilts of the released shares along the features, between -1 and 1. label: the column that is drawn
    from released shares and given to the generator, if any. batch: made-up rows a question. taught: critics that learn
    in a step, in turns.
    """

    blocks: Blocks
    generator: Net
    lessons: Lessons
    latent: int
    batch: int
    critics: int
    taught: int
    steps: int
    rate: float
    temperature: float
    label: int | None


def start(game: Game, key: jax.Array, facts: State, slices: State) -> State:
    """facts: released numbers (`shares`, `features`, `offset`, `kept`, `label_logits`). slices: private rows."""
    critic_key, generator_key = jax.random.split(key)
    generator = nets.init(game.generator, generator_key)
    taught, optimisers = critics.start(game.lessons, game.critics, critic_key)
    return {
        "facts": facts,
        "slices": slices,
        "critics": (taught, optimisers),
        "generator": generator,
        "average": generator,
        "optimiser": _optimiser(game).init(generator),
        "step": jnp.zeros((), dtype=jnp.int32),
    }


@partial(jax.jit, static_argnames=("game",))
def pretrain(state: State, keys: jax.Array, *, game: Game) -> State:
    """Every critic learns to tell its slice from the generator's first rows, which are made of released values."""
    everyone = jnp.arange(game.critics)

    def body(both: Any, key: jax.Array) -> tuple[Any, None]:
        return _taught(game, state, both, everyone, state["generator"], key), None

    both, _ = jax.lax.scan(body, state["critics"], keys)
    return state | {"critics": both}


@partial(jax.jit, static_argnames=("game",))
def play(
    numbers: Numbers, state: State, asked: jax.Array, noise_keys: jax.Array, keys: jax.Array, *, game: Game
) -> State:
    """A stretch of steps. asked: the critic of each step, drawn uniformly in secret; nothing else depends on it."""

    def body(moving: State, inputs: tuple[jax.Array, ...]) -> tuple[State, None]:
        return _step(game, numbers, state, moving, *inputs), None

    fixed = {"facts": state["facts"], "slices": state["slices"]}
    moving = {name: value for name, value in state.items() if name not in fixed}
    return fixed | jax.lax.scan(body, moving, (asked, noise_keys, keys))[0]


def _step(
    game: Game, numbers: Numbers, fixed: State, state: State, asked: jax.Array, noise_key: jax.Array, key: jax.Array
) -> State:
    teach_key, make_key = jax.random.split(key)
    # Who learns follows from the number of the step alone: were it the critic that is asked, its state would tell how
    # often it had been asked.
    turn = (state["step"] * game.taught + jnp.arange(game.taught)) % game.critics
    some = jax.tree.map(lambda leaf: leaf[turn], state["critics"])
    some = _taught(game, fixed, some, turn, state["generator"], teach_key)
    everyone = jax.tree.map(lambda leaf, new: leaf.at[turn].set(new), state["critics"], some)

    rows, back = jax.vjp(lambda generator: make_rows(game, fixed, generator, make_key, game.batch), state["generator"])
    critic = jax.tree.map(lambda leaf: leaf[asked], everyone[0])
    slopes = numbers.noisy_slopes(critic, rows, fixed["facts"]["kept"], noise_key)
    (gradient,) = back(-slopes / game.batch)  # the generator climbs; its Jacobian is made of released values

    updates, optimiser = _optimiser(game).update(gradient, state["optimiser"], state["generator"])
    pace = jnp.maximum(1 - state["step"] / game.steps, SLOWEST)
    generator = jax.tree.map(lambda leaf, update: leaf + pace * update, state["generator"], updates)
    keep = jnp.minimum(AVERAGING, state["step"] / (state["step"] + 10.0))  # a short run forgets its start as well
    return {
        "critics": everyone,
        "generator": generator,
        "average": jax.tree.map(lambda a, g: keep * a + (1 - keep) * g, state["average"], generator),
        "optimiser": optimiser,
        "step": state["step"] + 1,
    }


def _taught(game: Game, fixed: State, some: Any, mine: jax.Array, generator: Params, key: jax.Array) -> Any:
    """A step of the critics `mine`; each draws rows of its own slice with a key of its own."""
    fake_key, row_key, mix_key = jax.random.split(key, 3)
    slices, facts, batch = fixed["slices"], fixed["facts"], game.lessons.batch
    fake = jax.lax.stop_gradient(make_rows(game, fixed, generator, fake_key, batch))

    def place(number: jax.Array) -> jax.Array:
        size = slices["sizes"][number]
        spot = (jax.random.uniform(jax.random.fold_in(row_key, number), (batch,)) * size).astype(jnp.int32)
        return slices["starts"][number] + jnp.clip(spot, 0, jnp.maximum(size - 1, 0))

    # The start of an empty last slice lies behind the last row; whatever is read in its place is not learnt from.
    codes = slices["codes"].at[jax.vmap(place)(mine).reshape(-1)].get(mode="clip")
    real = (game.blocks.encode(codes) @ facts["features"] + facts["offset"]).reshape(len(mine), batch, -1)
    return critics.teach(game.lessons, some, mine, real, slices["sizes"][mine], fake, mix_key)


def make_rows(game: Game, fixed: State, generator: Params, key: jax.Array, count: int) -> jax.Array:
    """Features of made-up rows, drawn as whole codes; slopes pass through the Gumbel-softmax behind them."""
    facts = fixed["facts"]
    latent_key, label_key, draw_key = jax.random.split(key, 3)
    inputs = jax.random.normal(latent_key, (count, game.latent))
    if game.label is not None:
        labels = jax.random.categorical(label_key, facts["label_logits"], shape=(count,))
        inputs = jnp.concatenate([inputs, jax.nn.one_hot(labels, game.blocks.sizes[game.label])], axis=1)
    tilts = nets.apply(game.generator, generator, inputs)
    logits = STEEPEST * tilts @ facts["features"].T + facts["shares"]
    soft = game.blocks.draw(logits, draw_key, temperature=game.temperature)
    units = soft + jax.lax.stop_gradient(_whole(game.blocks, soft) - soft)
    if game.label is not None:
        # The label is what was asked for, whatever the network says in its place.
        given = (labels[:, None] == game.blocks.code_of_unit).astype(jnp.float32)
        units = jnp.where(game.blocks.column_of_unit == game.label, given, units)
    return units @ facts["features"] + facts["offset"]


def _whole(blocks: Blocks, soft: jax.Array) -> jax.Array:
    """The likeliest code of every column as zeros and ones."""
    parts = []
    for start, width in zip(blocks.starts, blocks.widths, strict=True):
        part = soft[:, start : start + width]
        parts.append(part > 0.5 if width == 1 else part >= part.max(axis=1, keepdims=True))
    return jnp.concatenate(parts, axis=1).astype(jnp.float32)


def whole_generator(generator: Params, facts: State) -> Params:
    """The generator with the layer that turns tilts into logits of codes: a plain network."""
    return [*generator, {"w": STEEPEST * facts["features"].T, "b": facts["shares"]}]


@lru_cache(maxsize=8)
def _optimiser(game: Game) -> optax.GradientTransformation:
    return optax.adam(game.rate, b1=0.5, b2=0.99)
