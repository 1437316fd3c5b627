"""Rows as numbers for models and distances; real, synthetic and holdout rows share every column of the encoding."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.view import Facts, View

# Wide categorical columns would make the one-hot matrix wider than it is long.
MOST_LEVELS = 100
MOST_WIDTH = 2000


@dataclass(frozen=True)
class Block:
    """The encoded columns [start, stop) of one column of the table."""

    name: str
    start: int
    stop: int
    levels: NDArray[np.int64] | None


@dataclass(frozen=True)
class Encoder:
    """One-hot categorical columns; numeric columns on their public range with a flag for missing.

    Missing and outside are levels of a categorical column. Where a column has more levels than fit, the levels most
    frequent in the real table keep a column each and the rest share one.
    """

    facts: dict[str, Facts]
    blocks: tuple[Block, ...]

    @property
    def width(self) -> int:
        return self.blocks[-1].stop if self.blocks else 0

    @staticmethod
    def of(real: View) -> "Encoder":
        most = max(2, min(MOST_LEVELS, MOST_WIDTH // max(len(real.categorical), 1)))
        blocks, start = [], 0
        for name, facts in real.facts.items():
            if facts.categorical:
                levels = _levels(real.codes[name], facts.size + 2, most)
                width = int(levels.max()) + 1
            else:
                levels, width = None, 2
            blocks.append(Block(name, start, start + width, levels))
            start += width
        return Encoder(real.facts, tuple(blocks))

    def one_hot(self, view: View, *, hot: float = 1.0) -> NDArray[np.float32]:
        """The rows of the encoding; `hot` is the number that marks a level.

        Two different levels are sqrt(2) x hot apart in Euclidean distance.
        """
        out = np.zeros((view.rows, self.width), dtype=np.float32)
        for block in self.blocks:
            if block.levels is not None:
                out[np.arange(view.rows), block.start + block.levels[view.codes[block.name]]] = hot
            else:
                place = view.position(block.name)
                absent = np.isnan(place)
                # A missing number sits in the middle of the range; its flag tells it from a real middle.
                out[:, block.start] = np.where(absent, 0.5, place)
                out[:, block.start + 1] = absent * hot
        return out

    def without(self, name: str) -> "Encoder":
        """The encoding of the other columns."""
        blocks, start = [], 0
        for block in self.blocks:
            if block.name != name:
                blocks.append(Block(block.name, start, start + block.stop - block.start, block.levels))
                start = blocks[-1].stop
        return Encoder({key: facts for key, facts in self.facts.items() if key != name}, tuple(blocks))


def _levels(codes: NDArray, size: int, most: int) -> NDArray[np.int64]:
    """Which encoded column each code goes to."""
    if size <= most:
        return np.arange(size)
    counts = np.bincount(codes, minlength=size)
    kept = np.argsort(-counts, kind="stable")[: most - 1]
    levels = np.full(size, most - 1, dtype=np.int64)
    levels[np.sort(kept)] = np.arange(len(kept))
    return levels


def compact(view: View) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """One column a column, for trees that take categories as they are: the matrix, and which columns are categories.

    Categories beyond the 255 that boosted trees can hold are treated as ordered codes; missing numbers are -1.
    """
    out = np.empty((view.rows, len(view.facts)), dtype=np.float32)
    categories = np.zeros(len(view.facts), dtype=bool)
    for at, (name, facts) in enumerate(view.facts.items()):
        if facts.categorical:
            out[:, at] = view.codes[name]
            # Two values, or values in their order, are split well as they are; encoding them as categories only costs.
            categories[at] = facts.kind == "categorical" and 2 < facts.size <= 253
        else:
            # Below every number there is: trees can split missing cells off, also where no other cells are left.
            out[:, at] = np.nan_to_num(view.position(name), nan=-1.0)
    return out, categories
