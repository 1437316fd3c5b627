"""Generators brought in line with the released one-way tables: post-processing, so it costs nothing."""

import numpy as np

from understudy.synthesizers.neural.released import Generator, code_logs
from understudy.synthesizers.neural.rows import Layout

DRAWS = 1 << 12
ROUNDS = 40
LEAST = 1e-6


def correct_marginals(generators: list[Generator], layout: Layout, *, seed: int) -> list[Generator]:
    """Shifts last biases, alike in all generators, until the mean over draws gives every column its released shares.

    The shift multiplies all odds of a code by the same factor (iterative proportional fitting along one axis), so what
    the generator learnt about how codes go together stays.
    """
    rng = np.random.default_rng(seed)
    sizes = list(layout.blocks.sizes)
    counts = [max(round(g.share * DRAWS), 64) for g in generators]
    logits = np.concatenate([g.logits(count, rng) for g, count in zip(generators, counts, strict=True)])
    weights = np.concatenate([np.full(c, g.share / c) for g, c in zip(generators, counts, strict=True)])
    shift = []
    for table, share in zip(code_logs(logits, sizes), layout.shares, strict=True):
        # In logarithms: a generator may be so sure that a code is 0 to any float, and still has to be shifted.
        log_factor = np.zeros(table.shape[1])
        for _ in range(ROUNDS):
            scaled = table + log_factor
            scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
            scaled /= scaled.sum(axis=1, keepdims=True)
            log_factor += np.log(np.maximum(share, LEAST)) - np.log(np.maximum(weights @ scaled, LEAST**2))
            log_factor -= log_factor.mean()
        shift.append(log_factor[1:] - log_factor[:1] if len(share) == 2 else log_factor)
    return [g.with_bias(np.concatenate(shift)) for g in generators]
