"""How the components of a fit are written down, which is what decides what they learn first.

The logits of a component (classes, K, D) are a sum of parts, some of which are at rest:

- `common`, what it has in every class, code by code;
- `shift`, how a class moves all its components;
- `own`, what it has in one class alone;
- `places` times `directions`: components as points of a space of few dimensions, and for every code how likely it is in
  each direction. What columns have in common with each other is learnt for all codes at once then, so that less noise
  is: closer triples, rows between components that are not forgotten. Dependence that two columns have for themselves
  takes a dimension, of which there are few.

Fits of both kinds err differently, and their components side by side come closer than either alone. Sees released
numbers alone.
"""

import math
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

DIMENSIONS = 8
START_SPREAD = 1.0  # standard deviation of the first logits around the one-way tables
# Steps of a class's own logits, where those that all classes or all components share take steps of 1: columns mostly go
# together in one class as in another, and what is taken for a difference is mostly noise.
OWN_RATE = 0.1
POINTS_RATE = 0.3  # steps of all parts where components are points: a step of a direction moves all of them

Params = dict[str, jax.Array]


class Form(Enum):
    """Which parts are learnt."""

    ALONE = "every class for itself"
    CODES = "code by code"
    POINTS = "as points"


def rates(form: Form, *, classes: int) -> dict[str, float]:
    """How long the steps of each part are; 0 for parts at rest."""
    if form is Form.ALONE:
        return _rates(own=1.0)
    if form is Form.POINTS:
        slow = {"shift": 1.0, "own": OWN_RATE, "places": 1.0, "directions": 1.0, "weights": 1.0}
        return _rates(**{part: POINTS_RATE * rate for part, rate in slow.items()})
    return _rates(common=1.0) if classes == 1 else _rates(common=1.0, shift=1.0, own=OWN_RATE)


def _rates(**moving: float) -> dict[str, float]:
    return {"weights": 1.0, "common": 0.0, "shift": 0.0, "own": 0.0, "places": 0.0, "directions": 0.0} | moving


def start(form: Form, shares: np.ndarray, class_shares: np.ndarray, each: int, seed: int) -> Params:
    """Every component near the one-way tables (`shares`), spread at random; classes in their released shares."""
    classes, width = len(class_shares), len(shares)
    level = jnp.log(jnp.asarray(np.maximum(shares, 1e-4), dtype=jnp.float32))
    weights = np.log(np.maximum(class_shares, 1e-4) / each)
    params = {
        "weights": jnp.asarray(np.repeat(weights[:, None], each, axis=1), dtype=jnp.float32),
        "common": jnp.zeros((1, each, width)),
        "shift": jnp.zeros((classes, 1, width)),
        "own": jnp.zeros((classes, each, width)),
        "places": jnp.zeros((each, DIMENSIONS)),
        "directions": jnp.zeros((DIMENSIONS, width)),
    }
    key = jax.random.key(seed)
    if form is Form.POINTS:
        first, second = jax.random.split(key)
        params["places"] = jax.random.normal(first, (each, DIMENSIONS))
        spread = START_SPREAD / math.sqrt(DIMENSIONS)
        params["directions"] = spread * jax.random.normal(second, (DIMENSIONS, width))
        params["shift"] = jnp.broadcast_to(level, (classes, 1, width)) + 0.0
    else:
        part = "own" if form is Form.ALONE else "common"
        params[part] = level + START_SPREAD * jax.random.normal(key, params[part].shape)
    return params


def logits(params: Any) -> jax.Array:
    """Those of every component (classes, K, D)."""
    return params["common"] + params["shift"] + params["own"] + params["places"] @ params["directions"]


def gradients(params: Any, of_weights: jax.Array, of_logits: jax.Array) -> Params:
    """Of all parts, from those of the components' weights and logits."""
    of_components = of_logits.sum(axis=0)
    return {
        "weights": of_weights,
        "common": of_components[None],
        "shift": of_logits.sum(axis=1, keepdims=True),
        "own": of_logits,
        "places": of_components @ params["directions"].T,
        "directions": params["places"].T @ of_components,
    }
