"""The private step seen from outside: noisy sums along one row's gradient, for games that try to find the row in them.

Made of the same sampling, clipping and noise as any training (`loop.run`), on a network of one number and rows of which
one alone has a gradient.
"""

import jax.numpy as jnp
import numpy as np

from understudy.privacy import Streams
from understudy.progress import silent
from understudy.training import ghost, loop
from understudy.training.dpsgd import DpSgd, Numbers

OTHERS = 16  # rows without a gradient


def canary_sums(plan: DpSgd, *, with_canary: bool, streams: Streams) -> np.ndarray:
    """One noisy sum a step, along the canary's direction, in units of the clip norm.

    The canary moves a sum that it takes part in by 1 (by `clip`, its gradient being far above), and the noise on it has
    a standard deviation of `noise_multiplier`. No step depends on an earlier one.
    """
    codes = np.zeros((OTHERS + with_canary, 1), dtype=np.uint8)
    codes[OTHERS:] = 1
    state = {"step": jnp.zeros((), dtype=jnp.int32), "sums": jnp.zeros((plan.steps,))}
    done = loop.run(plan, canary_step, state, codes, streams=streams, progress=silent, stage="probing")
    return np.asarray(done["sums"], dtype=np.float64) * plan.expected_batch / plan.clip


def canary_step(numbers: Numbers, state, codes, present, noise, key):
    """Keeps the noisy sum of every step along the canary's direction."""
    rows = codes.astype(jnp.float32)
    layer = {"0": {"w": jnp.zeros((1, 1)), "b": jnp.zeros(1)}}

    def loss(params, rows, tap):
        # Only the canary (code 1) has a gradient, far above the clip norm; half of its square is the bias's.
        return 50.0 * rows[:, 0] * tap("0", rows, rows @ params["0"]["w"] + params["0"]["b"])[:, 0]

    noisy = numbers.noisy_mean(ghost.clipped_sum(loss, layer, rows, present, clip=numbers.clip), noise)["0"]
    along = (noisy["w"][0, 0] + noisy["b"][0]) / jnp.sqrt(2.0)
    return {"step": state["step"] + 1, "sums": state["sums"].at[state["step"]].set(along)}
