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

# step(numbers, state, codes, present, noise for `noisy_mean`, key for draws that no row takes part in) -> state
Step = Callable[[Numbers, Any, jax.Array, jax.Array, jax.Array, jax.Array], Any]
NORMALS_AHEAD = 1 << 21


def run(
    plan: DpSgd,
    step: Step,
    state: Any,
    codes: np.ndarray,
    *,
    streams: Streams,
    progress: Progress,
    stage: str,
    note: str | Callable[[int], str] = "",
    keep: Callable[[int, Any], None] | None = None,
) -> Any:
    """Takes the plan's steps over private rows, and gives the last state.

    codes: (rows, columns), private. step: reads real rows through `Numbers.noisy_mean` of clipped sums alone, and
    nothing but its state leaves: no loss on real rows is shown or stored. note: shown with the progress, or made from
    the number of steps done (`plan.spent`). keep: sees the state after each chunk. A state that is not finite is never
    trained on: the run ends with the last good one and a warning. Ctrl-C ends the run between chunks, with nothing
    returned.

    Guarantee: with such a step, every state is covered by `plan.event`, charged by the caller before this is called.
    Both keys of a step come straight from the noise stream: what a row's loss draws (a mixing share, a latent normal)
    must stay as secret as the noise, since its place in the batch tells how many rows came before it.
    """
    done = 0
    tell = note if callable(note) else lambda steps: note
    progress(stage, 0.0, tell(0))
    for batches in plan.batches(len(codes), streams.sampling):
        length = len(batches)
        present = (batches >= 0).astype(np.float32)
        gathered = _gather(codes, batches)
        words = streams.noise.words(4 * length).reshape(2, length, 2)
        noise_keys, keys = jax.random.wrap_key_data(words, impl="threefry2x32")
        following = _scan(plan.numbers, state, gathered, present, noise_keys, keys, step=step)
        if not _finite(following):
            warnings.warn(
                f"{stage}: numbers overflowed between steps {done} and {done + length} of {plan.steps}; the model is "
                "the last good state, and the whole plan stays charged. Lower the learning rate",
                stacklevel=2,
            )
            break
        state = following
        done += length
        progress(stage, done / plan.steps, tell(done))
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
    keys: jax.Array,
    *,
    step: Step,
) -> Any:
    """All steps of a chunk. Noise is drawn for several steps at once, each from its own key: inside a step the compiler
    would draw it without vector instructions, which takes as long again as all the rest.
    """

    def body(state: Any, inputs: tuple[jax.Array, ...]) -> tuple[Any, None]:
        return step(numbers, state, *inputs), None

    size = _noise_size(step, numbers, state, codes[0], present[0], noise_keys[0], keys[0])
    steps = len(keys)
    together = next(k for k in range(min(steps, max(NORMALS_AHEAD // size, 1)), 0, -1) if steps % k == 0)

    def several(state: Any, inputs: tuple[jax.Array, ...]) -> tuple[Any, None]:
        codes, present, noise_keys, keys = inputs
        return jax.lax.scan(body, state, (codes, present, numbers.normals(noise_keys, size), keys))[0], None

    grouped = jax.tree.map(lambda a: a.reshape(-1, together, *a.shape[1:]), (codes, present, noise_keys, keys))
    return jax.lax.scan(several, state, grouped)[0]


def _noise_size(step: Step, numbers: Numbers, state: Any, *inputs: jax.Array) -> int:
    """How many normals a step asks for; nothing is computed.

    Raises: where a step asks more than once, since it would be handed the same noise again.
    """
    asked: list[int] = []

    class Recorder(Numbers):
        def noisy_mean(self, clipped: Any, noise: jax.Array) -> Any:
            asked.append(sum(leaf.size for leaf in jax.tree.leaves(clipped)))
            return clipped

    jax.eval_shape(lambda: step(Recorder(*numbers), state, *inputs))
    if len(asked) != 1:
        raise ValueError(f"a step must ask for noise exactly once, and this one does {len(asked)} times")
    return asked[0]


@jax.jit
def _all_finite(leaves: list[jax.Array]) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()


def _finite(state: Any) -> bool:
    leaves = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)]
    return bool(_all_finite(leaves))
