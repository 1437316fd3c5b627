"""Where the values of a guided column lie inside its bins, given the run of its guide: from noisy counts of both.

The fitted mixture says how many rows there are in each pair of coarse codes, and about how they lie in there. Fine
counts correct that, where they stand out of their noise. Sees released numbers alone, and costs no privacy.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.ladder import share_out
from understudy.synthesizers.mixture.parts import part_probabilities
from understudy.table.cells import Cells

LEAST_PART = 1e-3  # of what the mixture says: no run that it has is impossible
CLEAR = 2.0  # standard deviations of squared differences: pairs of codes with fewer rows squared tell nothing
ROUNDS = 20  # of bringing a table to the rows of its runs and of its codes
TINY = 1e-9


@dataclass(frozen=True, eq=False)
class FineColumn:
    """A column for this purpose: its cells, with coarse codes, runs and counts; and by class of the label the
    probabilities of its cells given their code, (cells,), and of its codes by component, (K, codes)."""

    cells: Cells
    groups: np.ndarray
    runs: np.ndarray
    counts: np.ndarray
    by_code: np.ndarray
    coarse: np.ndarray

    @property
    def owner(self) -> np.ndarray:
        """The coarse code of every run."""
        return owner_of(self.runs, self.groups)

    @property
    def held(self) -> np.ndarray:
        """The rows of every run."""
        return np.bincount(self.runs, weights=self.counts) + TINY

    def probabilities(self, number: int, weights: np.ndarray) -> np.ndarray:
        """Of all runs, for the components of a class."""
        if self.cells.ordered:
            within = self.by_code[number]
            return part_probabilities(
                self.cells, self.groups, self.runs, self.counts, within, weights, self.coarse[number]
            )
        return self.coarse[number][:, self.owner] * shares_in_codes(self.held, self.owner)


def owner_of(runs: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The coarse code of every run."""
    owner = np.zeros(runs.max() + 1, dtype=np.int64)
    owner[runs] = groups
    return owner


def shares_in_codes(numbers: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Numbers of runs, along the last axis, as parts of their code's sum; even parts where that is 0.

    >>> shares_in_codes(np.array([1.0, 3.0, 0.0, 0.0]), np.array([0, 0, 1, 1])).tolist()
    [0.25, 0.75, 0.5, 0.5]
    """
    starts = np.searchsorted(owner, np.arange(owner[-1] + 1))
    sums = np.add.reduceat(numbers, starts, axis=-1)[..., owner]
    return np.where(sums > 0, numbers / np.where(sums > 0, sums, 1.0), 1 / np.bincount(owner)[owner])


def place_shares(
    guide: FineColumn, column: FineColumn, weights: np.ndarray, counts: np.ndarray, noise: float
) -> np.ndarray:
    """The probability of every run given its coarse code and the guide's run, (runs of the guide, runs).

    `weights` (classes, K) are the components', `counts` the noisy table of runs. In every pair of codes, counts that
    stand out are kept, and the others drawn towards what the mixture says, as far as noise explains the difference.
    """
    total = guide.counts.sum()
    made = np.zeros(counts.shape)
    for number, of_class in enumerate(weights):
        first, second = (c.probabilities(number, of_class) for c in (guide, column))
        made += total * (first * of_class[:, None]).T @ second
    made += TINY * max(made.sum(), 1.0)
    owners = guide.owner, column.owner
    found = LEAST_PART * made
    for rows in _parts(owners[0]):
        for columns in _parts(owners[1]):
            found[rows, columns] += _corrected(made[rows, columns], counts[rows, columns], noise)
    # Every run keeps its rows, and every code its part of the rows in each run of the guide.
    by_code = _summed(made, owners[1])
    wanted = shares_in_codes(column.held, owners[1]) * by_code.sum(axis=0)[owners[1]]
    for _ in range(ROUNDS):
        found *= wanted / found.sum(axis=0)
        found *= (by_code / _summed(found, owners[1]))[:, owners[1]]
    return shares_in_codes(found, owners[1])


def _corrected(made: np.ndarray, counts: np.ndarray, noise: float) -> np.ndarray:
    """What the mixture says of a pair of codes, corrected by noisy counts where these can tell anything."""
    rows, cells = float(made.sum()), made.size
    # Squared differences between cells are known to about this much, and cannot be more than the rows' square.
    if cells == 1 or rows**2 < CLEAR * math.sqrt(2 * (cells - 1)) * noise**2:
        return made
    return share_out(counts.ravel(), np.full(cells, noise**2), made.ravel(), rows).reshape(made.shape)


def _parts(owner: np.ndarray) -> list[slice]:
    """The runs of every code."""
    edges = np.searchsorted(owner, np.arange(owner[-1] + 2))
    return [slice(first, end) for first, end in itertools.pairwise(edges.tolist())]


def _summed(table: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """A table of runs, summed up to their codes along its columns."""
    return np.add.reduceat(table, np.searchsorted(owner, np.arange(owner[-1] + 1)), axis=1)
