"""An order of the pool in which rows that are alike lie side by side, so that a draw spreads over all of them.

A draw takes rows at equal steps along the pool's cumulated weights. In any order each row comes as often as its weight
says; but where neighbours are alike the draw also has every group of rows as often as their weights say, give or take
one, in the place of the binomial noise of independent draws. A classifier that learns from a few hundred rows gains by
it. The order follows from released values alone.
"""

from collections.abc import Mapping

import numpy as np

from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.table.cells import Cells

CODES = 8  # of a column: with more, the first columns alone would decide


def even_order(
    weights: np.ndarray, pool: Mapping[str, np.ndarray], cells: Mapping[str, Cells], label: str | None
) -> np.ndarray:
    """Places of the pool's rows: by the label, then by the columns that tell most of it; without one, as declared."""
    codes = {}
    for name, column in cells.items():
        index = column.index(pool[name])
        counts = np.bincount(index, minlength=column.count).astype(np.float64)
        codes[name] = coarse_groups(column, counts, bins=CODES, most_codes=CODES, rare=0.0)[index]
    if not codes:
        return np.arange(len(weights))
    names = list(codes)
    if label in codes:
        told = {name: information(codes[label], codes[name], weights) for name in names}
        names.sort(key=lambda name: (name != label, -told[name]))
    return np.lexsort([codes[name] for name in reversed(names)])


def information(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    """Mutual information of two columns of codes, in nats.

    >>> a, equal = np.array([0, 0, 1, 1]), np.full(4, 0.25)
    >>> round(information(a, a, equal), 3), round(information(a, np.array([0, 1, 0, 1]), equal), 3)
    (0.693, 0.0)
    """
    sizes = int(a.max()) + 1, int(b.max()) + 1
    joint = np.bincount(a.astype(np.int64) * sizes[1] + b, weights=weights, minlength=sizes[0] * sizes[1])
    joint = joint.reshape(sizes) / joint.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log(joint[seen] / apart[seen])).sum())
