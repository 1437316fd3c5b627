"""One step of a private autoencoder on images: encoder and decoder are both noised, as in `autoencoder`."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax

from understudy.training import autoencoder, ghost
from understudy.training.dpsgd import Numbers
from understudy.training.loop import Step
from understudy.training.nets import Net, Tap

LEVELS = 255
NEAREST = 1e-3


@dataclass(frozen=True, kw_only=True)
class PixelCoder:
    """The public facts of an autoencoder of images: what is compiled.

    The encoder ends in `tanh`, so that codes are bounded; the decoder gives a logit a pixel. blur: standard deviation
    of the noise on codes in training, so that the decoder makes sense of what lies between them. steps: over which the
    learning rate falls to nothing. pull: weight of what keeps codes from the ends of their range.
    """

    encoder: Net
    decoder: Net
    learning_rate: float
    steps: int
    blur: float = 0.0
    pull: float = 1.0

    def __post_init__(self) -> None:
        if self.encoder.activations[-1] != "tanh" or self.decoder.activations[-1] != "linear":
            raise ValueError("the encoder must end in tanh and the decoder in linear units")

    @property
    def averaging(self) -> float:
        """How much of the earlier parameters' average a step keeps: it reaches back over a twentieth of all steps."""
        return 1 - 1 / max(1.0, self.steps / 20)


def start(coder: PixelCoder, seed: int) -> Any:
    """The first state: random weights."""
    return autoencoder.start(coder, seed)


def loss_of_rows(coder: PixelCoder, params: Any, batch: tuple[jax.Array, jax.Array], tap: Tap) -> jax.Array:
    """Bernoulli loss of every image (rows of levels 0 to 255), the sum over its pixels; rows do not see each other."""
    pixels, normal = batch
    x = pixels.astype(jnp.float32) / LEVELS
    codes = autoencoder.encode(coder, params, x, tap)
    logits = autoencoder.decode(coder, params, codes + coder.blur * normal, tap)
    # Codes at the ends of tanh's range no longer learn: this pulls them back, harder the nearer they are.
    pull = -jnp.sum(jnp.log(1 + NEAREST - codes**2), axis=1)
    return jnp.sum(jax.nn.softplus(logits) - x * logits, axis=1) + coder.pull * pull


@lru_cache(maxsize=32)
def make_step(coder: PixelCoder) -> Step:
    """The step for `loop.run`: one clipped sum over all layers of both halves, noised together.

    Guarantee: an encoder without noise would let one row move every other row's code; here every weight that is learnt
    from rows comes from `Numbers.noisy_mean`, so the state is covered by the plan's event.
    """
    optimiser = optax.adam(optax.cosine_decay_schedule(coder.learning_rate, coder.steps))

    def loss(params: Any, batch: tuple[jax.Array, jax.Array], tap: Tap) -> jax.Array:
        return loss_of_rows(coder, params, batch, tap)

    def step(
        numbers: Numbers, state: Any, pixels: jax.Array, present: jax.Array, noise_key: jax.Array, key: jax.Array
    ) -> Any:
        normal = jax.random.normal(key, (len(pixels), coder.decoder.sizes[0]))
        clipped = ghost.clipped_sum(loss, state["params"], (pixels, normal), present, clip=numbers.clip)
        gradient = numbers.noisy_mean(clipped, noise_key)
        updates, optimiser_state = optimiser.update(gradient, state["optimiser"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        keep = coder.averaging
        average = jax.tree.map(lambda old, new: keep * old + (1 - keep) * new, state["average"], params)
        return {"params": params, "average": average, "optimiser": optimiser_state}

    return step
