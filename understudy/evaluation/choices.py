"""Which columns to look at where there are too many to look at all: random, but the same for a seed."""

from itertools import combinations
from math import comb

import numpy as np

from understudy.errors import OptionError


def column_sets(
    names: list[str], order: int, most: int | None, seed: int
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """All sets of `order` columns, or `most` different random ones where there are more; and a note that says so.

    >>> column_sets(["a", "b", "c"], 2, None, 0)
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], ())
    >>> column_sets(["a", "b", "c"], 2, 1, 0)[1]
    ('1 of 3 sets of 2 columns, drawn at random',)
    """
    total = comb(len(names), order)
    if most is None or total <= most:
        return list(combinations(names, order)), ()
    rng, drawn = np.random.default_rng(seed), set()
    while len(drawn) < most:
        drawn.add(tuple(sorted(rng.choice(len(names), size=order, replace=False).tolist())))
    sets = [tuple(names[at] for at in places) for places in sorted(drawn)]
    return sets, (f"{most} of {total} sets of {order} columns, drawn at random",)


def some_columns(
    names: list[str], wanted: tuple[str, ...] | None, most: int, seed: int
) -> tuple[list[str], tuple[str, ...]]:
    """The wanted columns, or all, or `most` random ones where there are more; and a note that says so."""
    if wanted is not None:
        for name in wanted:
            if name not in names:
                raise OptionError(f"columns must be modelled columns of the schema, got {name!r}")
        return list(wanted), ()
    if len(names) <= most:
        return names, ()
    drawn = np.sort(np.random.default_rng(seed).choice(len(names), size=most, replace=False))
    return [names[at] for at in drawn], (f"{most} of {len(names)} columns, drawn at random",)
