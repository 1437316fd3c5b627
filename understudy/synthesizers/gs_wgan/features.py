"""What critics see of a row: few numbers, because noise is added to each of them."""

from typing import TYPE_CHECKING

import numpy as np

from understudy.schema import Schema
from understudy.synthesizers.neural.plans import MOST_CODES
from understudy.table.cells import cells_of

if TYPE_CHECKING:
    from understudy.synthesizers.neural.rows import Layout

RAREST = 0.02  # a code seen once in a thousand rows would else stand thirty standard deviations away


def most_features(schema: Schema, *, powers: int) -> int:
    """The most numbers that a critic can see of a row, whatever the released tables say."""
    total = 0
    for column in schema.modelled.values():
        cells = cells_of(column)
        ordered = cells.ordered and cells.values > 2
        total += (min(powers, cells.values - 1) if ordered else min(cells.values, MOST_CODES) - 1) + cells.missing
    return max(total, 1)


def critic_features(layout: "Layout", *, powers: int) -> tuple[np.ndarray, np.ndarray]:
    """(units, features) and (features,): units times the first plus the second is what a critic sees of a row.

    A column whose codes have an order becomes up to `powers` numbers, orthogonal polynomials of the codes' ranks under
    the released shares; any other one number a code, less one. All have mean 0 and variance 1 over the released
    shares (rare codes taken as `RAREST`), so that no column is louder than another by its unit. Released facts alone.
    """
    parts, offsets = [], []
    for (name, groups), shares in zip(layout.groups.items(), layout.shares, strict=True):
        cells = layout.one_way.cells[name]
        size = len(shares)
        if size == 1:
            parts.append(np.zeros((1, 0)))
            offsets.append(np.zeros(0))
            continue
        ordered = cells.ordered and size > 2
        values = int(groups[cells.values - 1]) + 1 if ordered else size  # codes of values; a missing one comes after
        ranks = np.cumsum(shares) - shares / 2
        columns = [ranks[:, None] ** np.arange(1, min(powers, values - 1) + 1)] if ordered else []
        if not ordered:
            columns = [np.eye(size)[:, 1:]]
        elif values < size:
            columns[0][values:] = 0.0
            columns.append((np.arange(size) >= values).astype(float)[:, None])
        table = _orthonormal(np.concatenate(columns, axis=1), shares)
        # A column of two codes has one unit: 0 is the first code, 1 the second.
        parts.append(table[1:] - table[:1] if size == 2 else table)
        offsets.append(table[0] if size == 2 else np.zeros(table.shape[1]))
    width = sum(len(part) for part in parts)
    features = sum(part.shape[1] for part in parts)
    if not features:  # columns in which nothing can happen; compiled code wants a number all the same
        return np.zeros((width, 1), dtype=np.float32), np.zeros(1, dtype=np.float32)
    matrix = np.zeros((width, features), dtype=np.float32)
    row = column = 0
    for part in parts:
        matrix[row : row + len(part), column : column + part.shape[1]] = part
        row, column = row + len(part), column + part.shape[1]
    return matrix, np.concatenate(offsets).astype(np.float32)


def _orthonormal(table: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Gram-Schmidt over codes weighed by their shares, constants taken out first; what adds nothing goes."""
    weights = np.maximum(shares, RAREST)
    weights = weights / weights.sum()
    done: list[np.ndarray] = [np.ones(len(weights))]
    for column in table.T:
        for other in done:
            column = column - (weights * column * other).sum() * other
        norm = np.sqrt((weights * column**2).sum())
        if norm > 1e-6:
            done.append(column / norm)
    return np.stack(done[1:], axis=1) if len(done) > 1 else np.zeros((len(weights), 0))
