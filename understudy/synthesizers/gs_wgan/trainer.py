"""Plays the game to its end. Rows and critics stay in here: generators alone come out."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from understudy.privacy import Streams
from understudy.progress import Progress
from understudy.synthesizers.gs_wgan import game as games
from understudy.synthesizers.gs_wgan.ask import Asking
from understudy.synthesizers.gs_wgan.config import Config
from understudy.synthesizers.gs_wgan.critics import Lessons
from understudy.synthesizers.gs_wgan.features import critic_features
from understudy.synthesizers.gs_wgan.game import Game, State
from understudy.synthesizers.gs_wgan.slices import Slices, cut
from understudy.synthesizers.neural.released import Generator
from understudy.synthesizers.neural.rows import Layout
from understudy.synthesizers.neural.trajectory import Trajectory
from understudy.synthesizers.neural.weights import class_generators, generator_of
from understudy.training.nets import Net

CHUNKS = 40  # about how often progress moves


@dataclass(frozen=True, eq=False)
class Played:
    """What a game leaves: generators, and earlier ones if they were asked for."""

    generators: list[Generator]
    trajectory: dict[str, np.ndarray]


def play(
    config: Config,
    asking: Asking,
    layout: Layout,
    codes: np.ndarray,
    *,
    label: str | None,
    streams: Streams,
    progress: Progress,
    note: Callable[[int], str],
) -> Played:
    """All of `asking`'s questions, charged by the caller before this is called.

    codes: (rows, columns) of coarse codes, private. Nothing is said about critics, of which one was asked, or of what
    they make of their rows: the state that is looked at for overflow is the generator's.
    """
    game, facts = make_game(config, asking, layout, label)
    state = first_state(game, facts, cut(codes, asking.critics, streams.sampling), streams.init)
    net = Net((*game.generator.sizes, layout.blocks.width), (*game.generator.activations, "linear"))
    kept = Trajectory(config.checkpoints, lambda state: {"generator": games.whole_generator(state["average"], facts)})
    progress("training critics", 0.0, note(0))
    if config.pretraining:
        state = games.pretrain(state, _keys(streams, config.pretraining), game=game)
    length = max(1, asking.steps // max(CHUNKS, config.checkpoints))
    for first in range(0, asking.steps, length):
        steps = min(length, asking.steps - first)
        asked = streams.sampling.integers(asking.critics, size=steps, dtype=np.int32)
        following = games.play(asking.numbers, state, asked, _keys(streams, steps), _keys(streams, steps), game=game)
        if not all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(following["average"])):
            warnings.warn(
                f"training: numbers overflowed between steps {first} and {first + steps} of {asking.steps}; the model "
                "is the last good state, and the whole plan stays charged. Lower generator_rate",
                stacklevel=2,
            )
            break
        state = following
        kept.add(first + steps, state)
        progress("training", (first + steps) / asking.steps, note(first + steps))
    layers = games.whole_generator(state["average"], facts)
    shares = None if label is None else layout.shares[layout.place_of(label)]
    generators = [generator_of(layers, net)] if shares is None else class_generators(layers, net, shares)
    return Played(generators, kept.arrays())


def make_game(config: Config, asking: Asking, layout: Layout, label: str | None) -> tuple[Game, State]:
    """The compiled game's public facts, and its released numbers."""
    blocks = layout.blocks
    matrix, offset = critic_features(layout, powers=config.powers)
    place = None if label is None else layout.place_of(label)
    if place is None:
        kept, label_logits = np.ones(len(offset)), np.zeros(1)
    else:
        # The label is given to the generator: a slope in its direction would only use up the clip norm.
        kept = np.abs(matrix[blocks.column_of_unit == place]).sum(axis=0) == 0
        label_logits = np.log(np.maximum(layout.shares[place], 1e-6))
    inputs = config.latent + (0 if place is None else blocks.sizes[place])
    game = Game(
        blocks=blocks,
        generator=Net.of([inputs, *config.generator_hidden, len(offset)], hidden="relu", last="tanh"),
        lessons=Lessons(
            features=len(offset),
            hidden=config.critic_hidden,
            batch=config.critic_batch,
            rate=config.critic_rate,
            penalty=config.penalty,
        ),
        latent=config.latent,
        batch=asking.batch,
        critics=asking.critics,
        taught=min(config.taught, asking.critics),
        steps=asking.steps,
        rate=config.generator_rate,
        temperature=config.temperature,
        label=place,
    )
    facts = {
        "features": matrix,
        "offset": offset,
        "shares": blocks.logits_of(layout.shares),
        "kept": kept,
        "label_logits": label_logits,
    }
    return game, {name: jnp.asarray(value, dtype=jnp.float32) for name, value in facts.items()}


def first_state(game: Game, facts: State, slices: Slices, seed: int) -> State:
    private = {name: jnp.asarray(getattr(slices, name)) for name in ("codes", "starts", "sizes")}
    return games.start(game, jax.random.key(seed), facts, private)


def _keys(streams: Streams, count: int) -> jax.Array:
    """Keys straight from the noise stream, each for one use."""
    return jax.random.wrap_key_data(streams.noise.words(2 * count).reshape(count, 2), impl="threefry2x32")
