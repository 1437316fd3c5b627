"""Trains a private GAN on coarse rows, for every method that plays this game."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.privacy import Streams
from understudy.progress import Progress
from understudy.synthesizers.neural.gan_options import GanOptions
from understudy.synthesizers.neural.released import Generator
from understudy.synthesizers.neural.rows import Layout
from understudy.synthesizers.neural.trajectory import Trajectory
from understudy.synthesizers.neural.weights import class_generators, generator_of
from understudy.training import gan, loop
from understudy.training.dpsgd import DpSgd
from understudy.training.nets import Net, Params

FAKES = 1024  # made-up rows a step: they cost no privacy
AVERAGING = 0.99  # of the generator's weights: what is released is steadier than any one step


@dataclass(frozen=True, eq=False)
class Played:
    """What a game leaves, all of it covered by the plan's event: generators, and what was kept on the way."""

    generators: list[Generator]
    trajectory: dict[str, np.ndarray]


def play(
    options: GanOptions,
    plan: DpSgd,
    layout: Layout,
    codes: np.ndarray,
    *,
    conditional: bool = False,
    decoder: tuple[Net, Params] | None = None,
    streams: Streams,
    progress: Progress,
    stage: str,
    note: Callable[[int], str],
) -> Played:
    """The critic's steps are `plan`'s, charged by the caller; the generator's need no charge.

    conditional: the generator is told the label, drawn from the released shares. decoder: a released network that turns
    the generator's output into rows, and is not trained here.
    """
    game = make_game(options, layout, conditional=conditional, decoder=None if decoder is None else decoder[0])
    label_shares = layout.shares[game.label] if conditional else None
    state = gan.start(
        game,
        streams.init,
        bias=layout.blocks.logits_of(layout.shares),
        decoder=None if decoder is None else decoder[1],
        label_shares=label_shares,
    )
    kept = Trajectory(options.checkpoints, _networks)
    state = loop.run(
        plan,
        gan.make_step(game),
        state,
        codes,
        streams=streams,
        progress=progress,
        stage=stage,
        note=note,
        keep=kept.add,
    )
    if conditional:
        generators = class_generators(state["average"], game.generator, label_shares)
    else:
        generators = [generator_of(state["average"], game.generator)]
    return Played(generators, kept.arrays())


def make_game(options: GanOptions, layout: Layout, *, conditional: bool, decoder: Net | None) -> gan.Game:
    blocks = layout.blocks
    label = layout.place_of(layout.schema.label) if conditional else None
    inputs = options.latent + (blocks.sizes[label] if label is not None else 0)
    if decoder is None:
        generator, frozen = Net.of([inputs, *options.generator_hidden, blocks.width], hidden="relu"), 0
    else:
        first = Net.of([inputs, *options.generator_hidden, decoder.sizes[0]])
        generator, frozen = first + decoder, len(decoder.activations)
    return gan.Game(
        blocks=blocks,
        generator=generator,
        critic=Net.of([blocks.width, *options.critic_hidden, 1]),
        latent=options.latent,
        fakes=FAKES,
        critic_steps=options.critic_steps,
        loss=options.loss,
        critic_rate=options.critic_rate,
        generator_rate=options.generator_rate,
        temperature=options.temperature,
        weight_limit=options.weight_limit,
        averaging=AVERAGING,
        frozen=frozen,
        label=label,
    )


def _networks(state: Any) -> dict[str, Params]:
    critic = state["critic"]
    return {"generator": state["average"], "critic": [critic[str(number)] for number in range(len(critic))]}
