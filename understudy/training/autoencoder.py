"""One step of a private autoencoder on tables, plain or variational: encoder and decoder are both noised.

An encoder without noise would let one row move every other row's code, and with it everything learnt from the codes.
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


@dataclass(frozen=True, kw_only=True)
class Coder:
    """The public facts of an autoencoder: what is compiled.

    variational: the encoder gives means and log-variances, the loss is the evidence bound with `divergence_weight` on
    its second term; otherwise the encoder gives the code itself, in a ball of radius `radius` if there is one.
    blur: standard deviation of the noise that a plain decoder's input gets in training, so that it learns to make
    sense of what lies between codes. steps: over which the learning rate falls to nothing; None keeps it.
    """

    blocks: Blocks
    encoder: Net
    decoder: Net
    learning_rate: float
    variational: bool = False
    divergence_weight: float = 1.0
    radius: float | None = None
    blur: float = 0.0
    steps: int | None = None

    @property
    def latent(self) -> int:
        return self.decoder.sizes[0]

    @property
    def averaging(self) -> float:
        """How much of the earlier parameters' average a step keeps: it reaches back over a twentieth of all steps."""
        return 0.0 if self.steps is None else 1 - 1 / max(1.0, self.steps / 20)


def start(coder: Coder, seed: int, *, bias: Any = None) -> Any:
    """The first state: random weights, the decoder's last biases at the released one-way shares if given."""
    encoder_key, decoder_key = jax.random.split(jax.random.key(seed))
    decoder = nets.init(coder.decoder, decoder_key)
    if bias is not None:
        decoder[-1]["b"] = jnp.asarray(bias)
    params = nets.named(nets.init(coder.encoder, encoder_key), "encoder.") | nets.named(decoder, "decoder.")
    return {"params": params, "average": params, "optimiser": _optimiser(coder).init(params)}


def _optimiser(coder: Coder) -> optax.GradientTransformation:
    if coder.steps is None:
        return optax.adam(coder.learning_rate)
    return optax.adam(optax.cosine_decay_schedule(coder.learning_rate, coder.steps))


def layers_of(params: Any, prefix: str) -> nets.Params:
    """The layers of one half, in order."""
    return [params[f"{prefix}{number}"] for number in range(sum(name.startswith(prefix) for name in params))]


def encode(coder: Coder, params: Any, units: jax.Array, tap: Tap = nets.untapped) -> jax.Array:
    return nets.apply(coder.encoder, layers_of(params, "encoder."), units, tap, "encoder.")


def decode(coder: Coder, params: Any, latent: jax.Array, tap: Tap = nets.untapped) -> jax.Array:
    return nets.apply(coder.decoder, layers_of(params, "decoder."), latent, tap, "decoder.")


def into_ball(x: jax.Array, radius: float | None) -> jax.Array:
    """The nearest points of the ball around zero."""
    if radius is None:
        return x
    squared = jnp.sum(x**2, axis=1, keepdims=True)
    # The root's slope at zero is infinite: inside the ball the factor must be 1 before the root is taken.
    return x * jnp.where(squared > radius**2, radius / jnp.sqrt(jnp.maximum(squared, radius**2)), 1.0)


@lru_cache(maxsize=32)
def make_step(coder: Coder) -> Step:
    """The step for `loop.run`: one clipped sum over all layers of both halves, noised together."""
    optimiser = _optimiser(coder)

    def loss(params: Any, batch: tuple[jax.Array, jax.Array], tap: Tap) -> jax.Array:
        codes, normal = batch
        found = encode(coder, params, coder.blocks.encode(codes), tap)
        if not coder.variational:
            blurred = into_ball(found, coder.radius) + coder.blur * normal
            return coder.blocks.cross_entropy(decode(coder, params, blurred, tap), codes)
        mean, log_variance = found[:, : coder.latent], jnp.clip(found[:, coder.latent :], -8.0, 8.0)
        latent = mean + jnp.exp(log_variance / 2) * normal
        divergence = 0.5 * jnp.sum(mean**2 + jnp.exp(log_variance) - log_variance - 1, axis=1)
        reconstruction = coder.blocks.cross_entropy(decode(coder, params, latent, tap), codes)
        return reconstruction + coder.divergence_weight * divergence

    def step(
        numbers: Numbers, state: Any, codes: jax.Array, present: jax.Array, noise: jax.Array, key: jax.Array
    ) -> Any:
        normal = jax.random.normal(key, (len(codes), coder.latent))
        clipped = ghost.clipped_sum(loss, state["params"], (codes, normal), present, clip=numbers.clip)
        gradient = numbers.noisy_mean(clipped, noise)
        updates, optimiser_state = optimiser.update(gradient, state["optimiser"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        keep = coder.averaging
        average = jax.tree.map(lambda old, new: keep * old + (1 - keep) * new, state["average"], params)
        return {"params": params, "average": average, "optimiser": optimiser_state}

    return step
