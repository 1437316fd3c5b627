"""The error of a mixture written out plainly, for JAX to differentiate: what the fit's own gradients must be."""

import jax
import jax.numpy as jnp
import numpy as np

from understudy.synthesizers.mixture.targets import Targets

SIZES, CLASSES, COMPONENTS = (3, 4, 2), 2, 5


def random_targets(rng: np.random.Generator, *, empty: bool = False) -> Targets:
    """Of any tables, of several columns and classes, in single precision."""
    codes = sum(SIZES)
    member = np.repeat(np.eye(len(SIZES)), SIZES, axis=0)
    apart = 1 - member @ member.T
    pairs, pair_weights = (table + table.transpose(0, 2, 1) for table in rng.normal(size=(2, CLASSES, codes, codes)))
    forbidden = rng.random((codes, codes)) < 0.3
    return Targets(
        pairs=(pairs * apart).astype(np.float32),
        pair_weights=(np.abs(pair_weights) * apart).astype(np.float32),
        margins=rng.normal(size=(CLASSES, codes)).astype(np.float32),
        margin_weights=rng.random((CLASSES, codes)).astype(np.float32),
        even=np.repeat(1 / np.array(SIZES), SIZES),
        empty_weights=4 * ((forbidden | forbidden.T) * apart).astype(np.float32) if empty else None,
        ties=None,
        freedom=10.0,
        ones=rng.random(codes) * 5,
        one_weights=rng.random(codes),
        class_shares=np.array([0.4, 0.6]),
        class_weights=np.array([0.3, 0.7]),
        sizes=SIZES,
        total=20.0,
    )


def random_mixture(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Weights (classes, K) and logits (classes, K, D)."""
    weights = rng.dirichlet(np.ones(CLASSES * COMPONENTS)).reshape(CLASSES, COMPONENTS)
    return weights.astype(np.float32), rng.normal(size=(CLASSES, COMPONENTS, sum(SIZES))).astype(np.float32)


def shares_of(logits: jax.Array) -> jax.Array:
    parts = jnp.split(jnp.asarray(logits), np.cumsum(SIZES)[:-1].tolist(), axis=-1)
    return jnp.concatenate([jax.nn.softmax(part, axis=-1) for part in parts], axis=-1)


def plain_error(targets: Targets, weights: jax.Array, shares: jax.Array) -> jax.Array:
    """Half the sum of squared residuals over their variances, pair by pair and class by class."""
    rows, even = targets.total * weights, jnp.asarray(targets.even)
    ends = np.cumsum(targets.sizes)
    places = [slice(int(end - size), int(end)) for end, size in zip(ends, targets.sizes, strict=True)]
    found = 0.0

    def add(weight: np.ndarray, residual: jax.Array) -> None:
        nonlocal found
        found = found + 0.5 * jnp.sum(weight * residual**2)

    for label in range(len(weights)):
        uneven = shares[label] - even
        for number, a in enumerate(places):
            for b in places[number + 1 :]:
                table = jnp.einsum("k,ka,kb->ab", rows[label], uneven[:, a], uneven[:, b])
                add(targets.pair_weights[label, a, b], table - targets.pairs[label, a, b])
        add(targets.margin_weights[label], rows[label] @ uneven - targets.margins[label])
        in_class = rows[label].sum() - targets.total * targets.class_shares[label]
        add(targets.class_weights[label], in_class)
    add(targets.one_weights, jnp.einsum("lk,lkd->d", rows, shares) - targets.ones)
    if targets.empty_weights is not None:
        for number, a in enumerate(places):
            for b in places[number + 1 :]:
                table = jnp.einsum("lk,lka,lkb->lab", rows, shares[..., a], shares[..., b])
                add(targets.empty_weights[a, b], table)
    return found
