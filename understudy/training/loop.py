"""The loop: chunks of Poisson batches are drawn on the host, each chunk runs as one compiled scan."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from understudy.privacy import Streams
from understudy.progress import Progress
from understudy.training.dpsgd import DpSgd, Numbers

# step(numbers, state, codes, present, noise key, public key) -> state
Step = Callable[[Numbers, Any, jax.Array, jax.Array, jax.Array, jax.Array], Any]


def run(
    plan: DpSgd,
    step: Step,
    state: Any,
    codes: np.ndarray,
    *,
    streams: Streams,
    progress: Progress,
    stage: str,
    note: str = "",
    keep: Callable[[int, Any], None] | None = None,
) -> Any:
    """Takes the plan's steps over private rows, and gives the last state.

    codes: (rows, columns), private. step: reads real rows through `Numbers.noisy_mean` of clipped sums alone, and
    nothing but its state leaves: no loss on real rows is shown or stored. keep: sees the state after each chunk.
    A state that is not finite is never trained on: the run ends with the last good one and a warning.

    Guarantee: with such a step, every state is covered by `plan.event`, charged by the caller before this is called.
    The keys of the noise come straight from the noise stream, one for each step.
    """
    done = 0
    progress(stage, 0.0, note)
    public = jax.random.key(streams.init)
    for batches in plan.batches(len(codes), streams.sampling):
        length = len(batches)
        present = (batches >= 0).astype(np.float32)
        gathered = _gather(codes, batches)
        noise_keys = jax.random.wrap_key_data(streams.noise.words(2 * length).reshape(length, 2), impl="threefry2x32")
        public_keys = jax.random.split(jax.random.fold_in(public, done), length)
        following = _scan(plan.numbers, state, gathered, present, noise_keys, public_keys, step=step)
        if not _finite(following):
            warnings.warn(
                f"{stage}: numbers overflowed between steps {done} and {done + length} of {plan.steps}; the model is "
                "the last good state, and the whole plan stays charged. Lower the learning rate",
                stacklevel=2,
            )
            break
        state = following
        done += length
        progress(stage, done / plan.steps, note)
        if keep is not None:
            keep(done, state)
    return state


def _gather(codes: np.ndarray, batches: np.ndarray) -> np.ndarray:
    """The rows of a chunk; padding is any row, since it is masked (a table without rows gives zeros)."""
    return codes[np.maximum(batches, 0)] if len(codes) else np.zeros((*batches.shape, codes.shape[1]), codes.dtype)


@partial(jax.jit, static_argnames=("step",))
def _scan(
    numbers: Numbers,
    state: Any,
    codes: jax.Array,
    present: jax.Array,
    noise_keys: jax.Array,
    public_keys: jax.Array,
    *,
    step: Step,
) -> Any:
    def body(state: Any, inputs: tuple[jax.Array, ...]) -> tuple[Any, None]:
        return step(numbers, state, *inputs), None

    return jax.lax.scan(body, state, (codes, present, noise_keys, public_keys))[0]


@jax.jit
def _all_finite(leaves: list[jax.Array]) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()


def _finite(state: Any) -> bool:
    leaves = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)]
    return bool(_all_finite(leaves))
