"""How the components of a fit are written down, which is what decides what they learn first.

The logits of a component (fits, classes, K, D) are a sum of parts, of which a form has some:

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
from collections.abc import Sequence
from enum import Enum

import numpy as np

from understudy.synthesizers.mixture.descent import Arrays

DIMENSIONS = 8
START_SPREAD = 1.0  # standard deviation of the first logits around the one-way tables
# Steps of a class's own logits, where those that all classes or all components share take steps of 1: columns mostly go
# together in one class as in another, and what is taken for a difference is mostly noise.
OWN_RATE = 0.1
POINTS_RATE = 0.3  # steps of all parts where components are points: a step of a direction moves all of them


class Form(Enum):
    """Which parts there are."""

    ALONE = "every class for itself"
    CODES = "code by code"
    POINTS = "as points"


def rates(form: Form, *, classes: int) -> dict[str, float]:
    """How long the steps of each part are."""
    if form is Form.ALONE:
        return {"weights": 1.0, "own": 1.0}
    if form is Form.POINTS:
        slow = {"weights": 1.0, "shift": 1.0, "own": OWN_RATE, "places": 1.0, "directions": 1.0}
        return {part: POINTS_RATE * rate for part, rate in slow.items()}
    one = {"weights": 1.0, "common": 1.0}
    return one if classes == 1 else one | {"shift": 1.0, "own": OWN_RATE}


def start(form: Form, shares: np.ndarray, class_shares: np.ndarray, each: int, seeds: Sequence[int]) -> Arrays:
    """Every component near the one-way tables (`shares`), spread at random, one fit a seed; classes in their shares."""
    fits, classes, width = len(seeds), len(class_shares), len(shares)
    around = np.log(np.maximum(shares, 1e-4))
    weights = np.log(np.maximum(class_shares, 1e-4) / each)
    streams = [np.random.default_rng(seed) for seed in seeds]

    def normal(*shape: int) -> np.ndarray:
        return np.stack([stream.standard_normal(shape) for stream in streams])

    begun = {
        "weights": np.broadcast_to(weights[:, None], (fits, classes, each)),
        "common": np.zeros((fits, 1, each, width)),
        "shift": np.zeros((fits, classes, 1, width)),
        "own": np.zeros((fits, classes, each, width)),
    }
    if form is Form.POINTS:
        begun["places"] = normal(each, DIMENSIONS)
        begun["directions"] = START_SPREAD / math.sqrt(DIMENSIONS) * normal(DIMENSIONS, width)
        begun["shift"] = begun["shift"] + around
    else:
        part = "own" if form is Form.ALONE else "common"
        begun[part] = around + START_SPREAD * normal(*begun[part].shape[1:])
    return {part: np.array(begun[part], dtype=np.float32, order="C") for part in rates(form, classes=classes)}


def logits(params: Arrays) -> np.ndarray:
    """Those of every component (fits, classes, K, D)."""
    parts = [params[part] for part in ("common", "shift", "own") if part in params]
    if "places" in params:
        parts.append((params["places"] @ params["directions"])[:, None])
    return sum(parts[1:], start=parts[0])


def gradients(params: Arrays, of_weights: np.ndarray, of_logits: np.ndarray) -> Arrays:
    """Of all parts, from those of the components' weights and logits."""
    found = {"weights": of_weights, "own": of_logits}
    if "common" in params or "places" in params:
        of_components = of_logits.sum(axis=1)
        found["common"] = of_components[:, None]
    if "shift" in params:
        found["shift"] = of_logits.sum(axis=2, keepdims=True)
    if "places" in params:
        found["places"] = of_components @ params["directions"].swapaxes(1, 2)
        found["directions"] = params["places"].swapaxes(1, 2) @ of_components
    return {part: found[part] for part in params}


def level(params: Arrays, member: np.ndarray) -> None:
    """A column's logits may drift together, which changes nothing but the room that floats have: pulls them back."""
    sums = np.exp(logits(params)) @ member
    params["own" if "own" in params else "common"] -= np.log(sums) @ member.T
