"""Fits the mixture to released tables by gradient descent in one compiled loop.

Works on released numbers alone: nothing here is private, and nothing here costs privacy.
"""

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from understudy.errors import OptionError
from understudy.progress import Progress
from understudy.synthesizers.mixture.descent import shared_scale
from understudy.synthesizers.mixture.forms import Form, Params, gradients, logits, rates, start
from understudy.synthesizers.mixture.plan import CLEAR_END, LESS_FITS, MORE_COMPONENTS, MOST_AT_ONCE

STEPS_PER_CHUNK = 25
LEARNING_RATE = 0.1
STALL_STEPS, STALLED = 100, 0.99  # a fit that gains less than a hundredth in so many steps has nothing left to learn
# A fit that ends above this is further from the tables than the truth is: it has too few components for what depends on
# what, and all fits get MORE_COMPONENTS times as many.
TOO_FAR = 0.51
# How many codes there are follows from released counts, and changes from fit to fit: rounded up, so that one compiled
# loop serves all fits of about a size.
CODES_PER_CLASS = 32


@dataclass(frozen=True, eq=False)
class Targets:
    """Released tables in the layout of the fit, each number with the inverse of its variance (0: not measured).

    Codes of all columns lie side by side, D in all. `pairs` (classes, D, D), symmetric, and `margins` (classes, D) are
    of probabilities less `even` (D,): with even shares in there, interactions and deviations, with zeros, counts.
    `ones` (D,) are counts, and so are `class_shares` (classes,) times `total`. `empty_weights` (D, D): how much a row
    costs in a pair of codes that rules forbid, or None.
    `ties` (D, D): how far codes of a column move together in a step, or None where each moves alone.
    `freedom`: independent numbers in pairs and margins; of tables that were drawn in, what is left of their squares.
    """

    pairs: np.ndarray
    pair_weights: np.ndarray
    margins: np.ndarray
    margin_weights: np.ndarray
    even: np.ndarray
    empty_weights: np.ndarray | None
    ties: np.ndarray | None
    freedom: float
    ones: np.ndarray
    one_weights: np.ndarray
    class_shares: np.ndarray
    class_weights: np.ndarray
    sizes: tuple[int, ...]
    total: float


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights (classes, K) and probabilities by component and code (classes, K, D).

    `error`: half the mean squared residual over its variance, the mean of all fits; the truth has 0.5.
    """

    weights: np.ndarray
    probabilities: np.ndarray
    steps: int
    error: float


def fit_mixture(
    targets: Targets,
    *,
    components: int,
    fits: int,
    steps: int,
    seed: int,
    progress: Progress,
    note: str,
    noisy: bool = True,
    more: bool = False,
    points: int = 0,
    end: float = CLEAR_END,
) -> Fitted:
    """Several fits from different starts, their components side by side: a mixture of mixtures is a mixture.

    noisy: steps in proportion to gradients, which learn what stands out of noise first.
    more: take more components where the first fit shows that they are too few.
    points: how many of the fits have components that are points of a space of few dimensions.
    end: the error at which a fit ends.

    What the fits agree on comes from the tables; where they differ, noise and luck were fitted, and that averages out.
    """
    padded = _padded(targets)
    tables = _tables(padded, noisy=noisy)

    def fit(number: int, components: int, told: Callable[[float], None] = lambda done: None) -> Fitted:
        return _fit(
            padded,
            tables,
            form=_form(number, fits, points, noisy),
            components=components,
            steps=steps,
            end=end,
            seed=seed + number,
            progress=told,
        )

    # Steps are too small for one of them to keep several cores busy. Fits know nothing of each other, so that the
    # outcome is the same in whatever order they end, and so is what is said: they are told of in their own order. The
    # first compiles the loop for all.
    found = [fit(0, components, lambda done: progress("fitting", done / fits, note))]
    if more and noisy and found[0].error > TOO_FAR and fits >= MORE_COMPONENTS:
        tried, fits, points = 1 / fits, round(LESS_FITS * fits), round(LESS_FITS * points)
        components *= MORE_COMPONENTS
        found = [fit(0, components, lambda done: progress("fitting", max(tried, done / fits), note))]
    with ThreadPoolExecutor(min(fits, os.cpu_count() or 1, MOST_AT_ONCE)) as pool:
        others = [pool.submit(fit, number, components) for number in range(1, fits)]
        try:
            for other in others:
                found.append(other.result())
                progress("fitting", len(found) / fits, note)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    weights = np.concatenate([fitted.weights for fitted in found], axis=1) / fits
    probabilities = np.concatenate([fitted.probabilities for fitted in found], axis=1)[..., : len(targets.ones)]
    errors = [fitted.error for fitted in found]
    return Fitted(weights, probabilities, sum(fitted.steps for fitted in found), sum(errors) / len(errors))


def _form(number: int, fits: int, points: int, noisy: bool) -> Form:
    """The last `points` of all fits have points; without noise, classes have nothing to gain from each other."""
    if not noisy:
        return Form.ALONE
    return Form.POINTS if number >= fits - points else Form.CODES


def _padded(targets: Targets) -> Targets:
    """The same tables with codes up to a round number; those added are a column of their own that nothing tells of."""
    more = CODES_PER_CLASS - len(targets.ones) % CODES_PER_CLASS

    def grown(array: np.ndarray, axes: int) -> np.ndarray:
        return np.pad(array, [(0, 0)] * (array.ndim - axes) + [(0, more)] * axes)

    empty, ties = targets.empty_weights, targets.ties
    return replace(
        targets,
        pairs=grown(targets.pairs, 2),
        pair_weights=grown(targets.pair_weights, 2),
        margins=grown(targets.margins, 1),
        margin_weights=grown(targets.margin_weights, 1),
        even=grown(targets.even, 1),
        empty_weights=None if empty is None else grown(empty, 2),
        ties=None if ties is None else grown(ties, 2),
        ones=grown(targets.ones, 1),
        one_weights=grown(targets.one_weights, 1),
        sizes=(*targets.sizes, more),
    )


class _Tables(NamedTuple):
    """What all fits read, once in memory: which codes belong together (D, columns), ties, and the arguments of `_loss`
    after these. `pace`: what steps of codes are multiplied with."""

    columns: jax.Array
    ties: jax.Array | None
    data: tuple[jax.Array, ...]
    pace: jax.Array


def _tables(targets: Targets, *, noisy: bool) -> _Tables:
    # Steps in proportion to gradients are told by the mean of all their squares, also of those codes that were added
    # and have none.
    pace = math.sqrt(1 - targets.sizes[-1] / len(targets.ones)) if noisy else 1.0
    columns = np.repeat(np.eye(len(targets.sizes)), targets.sizes, axis=0)
    data = (
        *(targets.total, targets.pairs, targets.pair_weights, targets.margins, targets.margin_weights),
        *(targets.even, targets.ones, targets.one_weights, targets.class_shares, targets.class_weights),
        *([] if targets.empty_weights is None else [targets.empty_weights]),
    )
    ties = None if targets.ties is None or not noisy else jnp.asarray(targets.ties, dtype=jnp.float32)
    single = tuple(jnp.asarray(array, dtype=jnp.float32) for array in data)
    return _Tables(jnp.asarray(columns, dtype=jnp.float32), ties, single, jnp.asarray(pace, dtype=jnp.float32))


def _fit(
    targets: Targets,
    tables: _Tables,
    *,
    form: Form,
    components: int,
    steps: int,
    end: float,
    seed: int,
    progress: Callable[[float], None],
) -> Fitted:
    """Minimises the squared error over the variance of all cells until it is what the noise alone would leave."""
    classes = len(targets.class_shares)
    each = max(-(-components // classes), 2)
    measured = max(targets.freedom, 1.0)
    enough = np.float32(end * measured)
    params = start(form, targets.ones / targets.total, targets.class_shares, each, seed)
    lengths = {
        part: jnp.float32(rate) * (1.0 if part in ("weights", "places") else tables.pace)
        for part, rate in rates(form, classes=classes).items()
    }
    optimiser = _Optimiser(form is not Form.ALONE, steps)
    state = optimiser.transformation.init(params)
    done, before, least = 0, np.inf, np.inf
    progress(0.0)
    while done < steps:
        length = min(STEPS_PER_CHUNK, steps - done)
        params, state, loss = _chunk(
            *(params, state, tables.columns, tables.ties, tables.data, lengths, enough),
            optimiser=optimiser,
            length=length,
        )
        done += length
        error = float(loss) / measured
        if not np.isfinite(error):
            raise OptionError("the fit of the mixture diverged; give fewer `steps` or more `components`")
        progress(done / steps)
        least = min(least, error)  # of late: a step too far, which the next ones mend, is not the end
        if done % STALL_STEPS == 0:
            if least > STALLED * before:
                break
            before, least = least, np.inf
        if loss <= enough:
            break
    progress(1.0)
    log_weights = np.asarray(params["weights"], dtype=np.float64)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    probabilities = np.asarray(_probabilities(logits(params), tables.columns))
    return Fitted(weights, probabilities, done, error)


@dataclass(frozen=True)
class _Optimiser:
    """Compiles once for each kind and number of steps, not once for each call."""

    noisy: bool
    steps: int

    @property
    def transformation(self) -> optax.GradientTransformation:
        """Where there is hardly any noise, Adam finds the more even of the mixtures that have the same pairs."""
        schedule = optax.cosine_decay_schedule(LEARNING_RATE, self.steps, alpha=0.05)
        return shared_scale(schedule) if self.noisy else optax.adam(schedule, b2=0.99)


@partial(jax.jit, static_argnames=("optimiser", "length"), donate_argnums=(0, 1))
def _chunk(
    params: Params,
    state: Any,
    columns: jax.Array,
    ties: jax.Array | None,
    data: tuple[jax.Array, ...],
    lengths: Params,
    enough: np.float32,
    *,
    optimiser: _Optimiser,
    length: int,
) -> tuple[Params, Any, jax.Array]:
    """Some steps of the same compiled loop for components of any form: parts at rest have steps of length 0."""

    def step(carry: tuple[Params, Any], _: None) -> tuple[tuple[Params, Any], jax.Array]:
        params, state = carry
        loss, (of_weights, of_logits) = jax.value_and_grad(_loss, argnums=(0, 1))(
            params["weights"], logits(params), columns, *data
        )
        if ties is not None:
            of_logits = of_logits @ ties
        updates, state = optimiser.transformation.update(gradients(params, of_weights, of_logits), state, params)
        # Few tables are met within a few steps: a fit ends at the step that does it, not at the end of a chunk.
        on = loss > enough
        moved = {part: jnp.where(on, old + lengths[part] * updates[part], old) for part, old in params.items()}
        return (moved, state), loss

    # A column's logits may drift together, which changes nothing but the room that floats have: pull them back.
    sums = jnp.exp(logits(params)) @ columns
    params = params | {"own": params["own"] - jnp.log(sums) @ columns.T}
    (params, state), losses = jax.lax.scan(step, (params, state), None, length=length)
    return params, state, losses[-1]


def _probabilities(logits: jax.Array, columns: jax.Array) -> jax.Array:
    """Softmax within each column; `columns` (D, columns) says which codes belong together."""
    exponentials = jnp.exp(logits)
    return exponentials / ((exponentials @ columns) @ columns.T)


def _loss(
    weight_logits: jax.Array,
    logits: jax.Array,
    columns: jax.Array,
    rows: jax.Array,
    pairs: jax.Array,
    pair_weights: jax.Array,
    margins: jax.Array,
    margin_weights: jax.Array,
    even: jax.Array,
    ones: jax.Array,
    one_weights: jax.Array,
    class_shares: jax.Array,
    class_weights: jax.Array,
    empty_weights: jax.Array | None = None,
) -> jax.Array:
    weights = jax.nn.softmax(weight_logits.ravel()).reshape(weight_logits.shape)
    probabilities = _probabilities(logits, columns)
    # Less even shares, a product of two columns has their interactions alone.
    uneven = probabilities - even
    scaled = uneven * jnp.sqrt(weights)[..., None]
    two_way = rows * jnp.einsum("lkd,lke->lde", scaled, scaled)  # all pairs at once: one product of matrices
    by_class = rows * jnp.einsum("lk,lkd->ld", weights, uneven)
    one_way = rows * jnp.einsum("lk,lkd->d", weights, probabilities)
    # Every pair stands twice in the symmetric table, hence a quarter in place of a half.
    loss = 0.25 * jnp.sum(pair_weights * (two_way - pairs) ** 2) + 0.5 * jnp.sum(one_weights * (one_way - ones) ** 2)
    loss += 0.5 * jnp.sum(margin_weights * (by_class - margins) ** 2)
    # Interactions and deviations say little of how many rows a class has.
    loss += 0.5 * jnp.sum(class_weights * (rows * (weights.sum(axis=1) - class_shares)) ** 2)
    if empty_weights is not None:
        scaled = probabilities * jnp.sqrt(weights)[..., None]
        loss += 0.25 * jnp.sum(empty_weights * (rows * jnp.einsum("lkd,lke->lde", scaled, scaled)) ** 2)
    return loss
