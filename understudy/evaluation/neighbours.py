"""Nearest rows, in blocks: memory follows the block, never the product of two tables' lengths."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.encoding import Encoder
from understudy.evaluation.view import View

# Cells of a block of distances: 16 MB in single precision stay in a processor's cache reach and far from its memory.
BLOCK_CELLS = 1 << 22

# Two different categories are 1 apart, as are the two ends of a number's public range.
HOT = 0.5**0.5


def points(encoder: Encoder, view: View) -> NDArray[np.float32]:
    """Rows as points whose squared distance counts one for every category that differs."""
    return encoder.one_hot(view, hot=HOT)


def nearest(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """For each query the Euclidean distance to its nearest row, and which row that is.

    >>> rows = np.array([[0.0, 0.0], [3.0, 4.0]], dtype=np.float32)
    >>> distance, index = nearest(np.array([[3.0, 4.0], [0.0, 1.0]], dtype=np.float32), rows)
    >>> distance.tolist(), index.tolist()
    ([0.0, 1.0], [1, 0])
    """
    index = np.empty(len(queries), dtype=np.intp)
    for part, squared in _squared(queries, rows):
        index[part] = squared.argmin(axis=1)
    # The blocks find the row; its distance is measured again without the cancellation of their formula.
    gap = queries.astype(np.float64) - rows[index]
    return np.sqrt((gap**2).sum(axis=1)), index


def _squared(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Blocks of squared distances, up to a term that is the same for all rows of a query."""
    lengths = (rows**2).sum(axis=1)
    size = max(1, BLOCK_CELLS // len(rows))
    for first in range(0, len(queries), size):
        part = slice(first, min(first + size, len(queries)))
        yield part, lengths - 2 * (queries[part] @ rows.T)


def nearest_without(
    queries: NDArray[np.float32], rows: NDArray[np.float32], encoder: Encoder, names: list[str]
) -> dict[str, NDArray[np.intp]]:
    """For each named column, the row nearest to each query when that column is not looked at.

    The full distance is computed once a block; what a column adds to it is taken off again, column by column.
    """
    blocks = {block.name: slice(block.start, block.stop) for block in encoder.blocks}
    found = {name: np.empty(len(queries), dtype=np.intp) for name in names}
    lengths = {name: (rows[:, blocks[name]] ** 2).sum(axis=1) for name in names}
    for part, squared in _squared(queries, rows):
        for name in names:
            cut = blocks[name]
            share = lengths[name] - 2 * (queries[part, cut] @ rows[:, cut].T)
            found[name][part] = (squared - share).argmin(axis=1)
    return found
