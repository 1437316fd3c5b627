"""The Inception-score form for digits, exp E KL(p(y|x) || p(y)), by a small convolutional network of real images.

The network is the referee's alone: it learns from the public train part once, and is kept in bench/.cache.
"""

from __future__ import annotations

import hashlib
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cells import ROOT
from understudy.evaluation.modes import inception_score

CACHE = ROOT / "bench" / ".cache" / "digits"
EPOCHS, BATCH, RATE = 8, 128, 2e-3
AT_ONCE = 2_000
CLASSES = 10


def start(side: int, seed: int = 0) -> dict[str, NDArray]:
    """Two strided convolutions and two dense layers, with weights of He's size."""
    rng = np.random.default_rng(seed)
    inner = (-(-side // 4)) ** 2 * 32
    shapes = {"first": (5, 5, 1, 16), "second": (5, 5, 16, 32), "third": (inner, 64), "fourth": (64, CLASSES)}
    made: dict[str, NDArray] = {}
    for name, shape in shapes.items():
        made[name] = rng.normal(0, np.sqrt(2 / np.prod(shape[:-1])), shape).astype(np.float32)
        made[f"{name}.b"] = np.zeros(shape[-1], dtype=np.float32)
    return made


def logits(net: dict[str, Any], images: Any) -> Any:
    """(n, side, side) of 0 to 1 to (n, 10)."""
    import jax

    x = images[..., None]
    for name in ("first", "second"):
        x = jax.lax.conv_general_dilated(x, net[name], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + net[f"{name}.b"])
    x = jax.nn.relu(x.reshape(len(x), -1) @ net["third"] + net["third.b"])
    return x @ net["fourth"] + net["fourth.b"]


def learn(images: NDArray[np.uint8], labels: NDArray[np.int64], *, epochs: int = EPOCHS) -> dict[str, NDArray]:
    """A network that tells digits, by Adam with a rate that falls to nothing."""
    import jax
    import jax.numpy as jnp
    import optax

    steps = epochs * (len(images) // BATCH)
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))

    def loss(net: dict[str, Any], x: Any, y: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(logits(net, x), y).mean()

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(net: dict[str, Any], state: Any, x: Any, y: Any) -> tuple[Any, Any]:
        updates, state = optimiser.update(jax.grad(loss)(net, x.astype(jnp.float32) / 255, y), state)
        return optax.apply_updates(net, updates), state

    net = {name: jnp.asarray(array) for name, array in start(images.shape[1]).items()}
    state, rng = optimiser.init(net), np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for first in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[first : first + BATCH]
            net, state = step(net, state, images[rows], labels[rows])
    return {name: np.asarray(array) for name, array in net.items()}


def probabilities(net: dict[str, NDArray], images: NDArray[np.uint8]) -> NDArray[np.float64]:
    import jax

    answer = jax.jit(lambda x: jax.nn.softmax(logits(net, x)))
    parts = np.array_split(images, max(1, len(images) // AT_ONCE))
    return np.concatenate([np.asarray(answer(part.astype(np.float32) / 255)) for part in parts]).astype(np.float64)


@cache
def judge_of(train: Path) -> dict[str, NDArray]:
    """The network that learnt from a file of images and labels, kept from one run to the next."""
    with np.load(train) as arrays:
        images, labels = arrays["images"], arrays["labels"].astype(np.int64)
    code = Path(__file__).read_bytes()
    path = CACHE / f"{hashlib.sha256(images.tobytes() + code).hexdigest()[:12]}.npz"
    if path.exists():
        with np.load(path) as arrays:
            return dict(arrays)
    net = learn(images, labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **net)
    return net


def score(net: dict[str, NDArray], images: NDArray[np.uint8], labels: NDArray[np.int64]) -> dict[str, float]:
    """The score, and how often the network sees the label that an image was made for."""
    found = probabilities(net, images)
    return {"score": inception_score(found), "recognised": float((found.argmax(axis=1) == labels).mean())}
