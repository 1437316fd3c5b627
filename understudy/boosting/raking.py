"""Weights that leave every column as the models have it.

A model's columns come from one-way tables that were released with far more budget than a pick has. The game is played
about a few codes a column, and about pairs of them; what it does not look at drifts as rows gain and lose weight. So
weights are raked (iterative proportional fitting, Deming & Stephan 1940): of all weights with the pool's own shares in
every column, those nearest to the game's. It looks at released values alone and costs nothing.

With few rows it is the other way round: one-way tables are mostly noise, and the game mends them. Which it is, is told
by public facts (`bear_columns`).
"""

import math
from collections.abc import Mapping

import numpy as np

from understudy.privacy import Budget
from understudy.privacy.calibrate import noise_multiplier
from understudy.schema import Schema
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.table.cells import Cells

BINS = 16  # of an ordered column: more would hold single rows of the pool where they are
MOST_CODES = 64
RARE = 20.0  # rows of the pool below which codes of a column are taken together
SWEEPS = 12
LEAST_CLEAR = 500  # rows for each row of noise: 17,000 rows at epsilon 1 have 1,300, where it helped; Titanic has 150


def raked(weights: np.ndarray, pool: Mapping[str, np.ndarray], cells: Mapping[str, Cells]) -> np.ndarray:
    """The weights with every column's shares brought to those of the unweighted pool; they sum to 1.

    Codes that no weight is left for stay without.

    >>> from understudy.schema import Integer
    >>> from understudy.table.cells import cells_of
    >>> cells, codes = {"a": cells_of(Integer(low=0, high=1))}, {"a": np.array([0, 0, 1, 1])}
    >>> raked(np.array([0.6, 0.2, 0.1, 0.1]), codes, cells).round(3).tolist()
    [0.375, 0.125, 0.25, 0.25]
    """
    columns = []
    for name, column in cells.items():
        index = column.index(pool[name])
        counts = np.bincount(index, minlength=column.count).astype(np.float64)
        places = coarse_groups(column, counts, bins=BINS, most_codes=MOST_CODES, rare=RARE)[index]
        columns.append((places, np.bincount(places) / len(places)))
    found = weights / weights.sum()
    for _ in range(SWEEPS):
        for places, wanted in columns:
            held = np.bincount(places, weights=found, minlength=len(wanted))
            found = found * np.divide(wanted, held, out=np.zeros_like(wanted), where=held > 0)[places]
            found /= found.sum()
    return found


def bear_columns(schema: Schema, budget: Budget) -> bool:
    """Whether one-way tables are clear enough to be kept: by declared rows, columns and the whole budget alone.

    The measure is the noise that a cell of all one-way tables together would get from the whole budget.
    """
    if not budget.private:
        return True
    noise = noise_multiplier(budget) * math.sqrt(max(len(schema.modelled), 1))
    return schema.rows >= LEAST_CLEAR * noise
