"""Counts of an ordered column from noisy ones on a ladder of widths: as smooth as the noise hides, spikes as they are.

The column is cut into pieces, single cells where many rows are. Rows of a cell are its size times exp(level); levels of
neighbouring pieces differ as in a random walk, whose freedom the counts themselves tell (the evidence, by Laplace's
approximation). The most probable levels then follow the counts where these are clear, and lead through noise in
between; long empty tails run out instead of keeping whatever noise is above zero. Sees released counts alone, and costs
no privacy.
"""

import math
from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.ladder import RUNG, STANDS_OUT, climb, share_out

FEWEST_CELLS = 4  # fewer say nothing of how smooth they are
WORTH_CUTTING = 4  # runs with more rows than so many times the noise of a cell are cut into cells
NEIGHBOURS = 3  # on either side, whose median tells a spike
STIFFNESS_STEP = 4.0
LEAST_STIFF, STIFFEST = 0.01, 1000.0
UNITS = 64  # stiffness is told for a column of so many cells
LOOSE = 1e-3  # holds what nothing else does: the levels of spikes
MOST_STEPS, CLOSE_ENOUGH, LONGEST_STEP = 40, 0.01, 3.0
ROUNDS = 3  # of finding spikes
LEAST_PART = 0.001  # every cell has so much of what noise could hide in it: no value between the bounds is impossible
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Pieces:
    """A column cut into n pieces, and the m released counts of several pieces together (`members` is (m, n)).

    `lengths` are in cells, `sizes` what the pieces would hold if rows were spread evenly.
    """

    starts: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray
    variances: np.ndarray
    members: np.ndarray
    joint_counts: np.ndarray
    joint_variances: np.ndarray


def smooth(
    rungs: list[np.ndarray], noises: tuple[float, ...], total: float, sizes: np.ndarray, *, most_pieces: int
) -> np.ndarray:
    """Counts of single cells, not negative, that sum to `total`; `rungs` are noisy, the narrowest first.

    `sizes` tell what cells would hold if rows were spread evenly: a cell of one value beside one of fifty is no dip.
    """
    cells = np.zeros(len(rungs[0]))
    if total <= 0:
        return cells
    sizes = sizes / sizes.mean()
    pieces = cut(rungs, noises, sizes, most_pieces)
    held = _levelled(pieces, total)
    for start, length, mass in zip(pieces.starts, pieces.lengths, held, strict=True):
        inside = slice(start, start + length)
        even = np.ones(length)
        shared = share_out(rungs[0][inside], noises[0] ** 2 * even, sizes[inside], mass)
        least = LEAST_PART * min(mass / length, noises[0])
        cells[inside] = least + shared * (1 - least * length / max(mass, TINY))
    return cells


def cut(rungs: list[np.ndarray], noises: tuple[float, ...], sizes: np.ndarray, most_pieces: int) -> Pieces:
    """Single cells if there are few of them; else runs of the next rung, the heaviest of which are cut into cells."""
    cells = len(rungs[0])
    if len(rungs) == 1 or cells <= most_pieces:
        starts, lengths = np.arange(cells), np.ones(cells, dtype=int)
        counts, variances = rungs[0], np.full(cells, noises[0] ** 2)
        joint = list(range(1, len(rungs)))
        members = [starts // RUNG**rung == run for rung in joint for run in range(len(rungs[rung]))]
        told = [rungs[rung] for rung in joint]
    else:
        lengths = climb(np.ones(cells, dtype=int), RUNG)
        spread = lengths * noises[0] ** 2
        variances = 1 / (1 / spread + 1 / noises[1] ** 2)
        counts = variances * (climb(rungs[0], RUNG) / spread + rungs[1] / noises[1] ** 2)
        fine = np.zeros(len(counts), dtype=bool)
        fine[np.argsort(-counts, kind="stable")[: max(most_pieces - len(counts), 0) // (RUNG - 1)]] = True
        fine &= counts > WORTH_CUTTING * noises[0]
        within = np.repeat(fine, lengths)
        starts = np.flatnonzero(within | (np.arange(cells) % RUNG == 0))
        single = within[starts]
        runs = starts // RUNG
        counts = np.where(single, rungs[0][starts], counts[runs])
        variances = np.where(single, noises[0] ** 2, variances[runs])
        lengths = np.where(single, 1, lengths[runs])
        joint = list(range(2, len(rungs)))
        members = [runs == run for run in np.flatnonzero(fine)]
        members += [starts // RUNG**rung == run for rung in joint for run in range(len(rungs[rung]))]
        told = [rungs[1][fine], *(rungs[rung] for rung in joint)]
        joint = [1, *joint]
    joint_variances = [np.full(len(part), noises[rung] ** 2) for part, rung in zip(told, joint, strict=True)]
    return Pieces(
        starts=starts,
        lengths=lengths,
        sizes=np.add.reduceat(sizes, starts),
        counts=counts,
        variances=variances,
        members=np.array(members, dtype=float).reshape(len(members), len(starts)),
        joint_counts=np.concatenate([np.zeros(0), *told]),
        joint_variances=np.concatenate([np.zeros(0), *joint_variances]),
    )


def spikes(pieces: Pieces) -> np.ndarray:
    """Pieces that hold clearly more than the pieces around them."""
    if len(pieces.counts) <= 2 * NEIGHBOURS:
        return np.zeros(len(pieces.counts), dtype=bool)
    around, held = _neighbours(pieces.counts / pieces.sizes), _neighbours(pieces.sizes)
    # A median of few neighbours is noisy itself, by about a fifth of the variance of a count.
    usual = np.maximum(_weighted_medians(around, held), 0) * pieces.sizes
    return pieces.counts - usual > 1.1 * _chance(pieces)


def _neighbours(numbers: np.ndarray) -> np.ndarray:
    """Those on either side of every number, without it; beyond the ends, the same ones again."""
    padded = np.pad(numbers, NEIGHBOURS, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    return np.delete(around, NEIGHBOURS, axis=1)


def _weighted_medians(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of every row: the number with half of the weight on either side, or the mean of the two around that place.

    >>> _weighted_medians(np.array([[3.0, 1.0, 2.0, 9.0]]), np.array([[1.0, 1.0, 1.0, 4.0]])).tolist()
    [9.0]
    >>> _weighted_medians(np.array([[3.0, 1.0, 2.0, 9.0]]), np.ones((1, 4))).tolist()
    [2.5]
    """
    order = np.argsort(numbers, axis=1, kind="stable")
    numbers, passed = np.take_along_axis(numbers, order, 1), np.take_along_axis(weights, order, 1).cumsum(axis=1)
    half, rounding = passed[:, -1:] / 2, passed[:, -1:] * TINY
    first = (passed < half - rounding).sum(axis=1, keepdims=True)
    last = np.minimum((passed <= half + rounding).sum(axis=1, keepdims=True), numbers.shape[1] - 1)
    return (np.take_along_axis(numbers, first, 1) + np.take_along_axis(numbers, last, 1))[:, 0] / 2


def _chance(pieces: Pieces) -> np.ndarray:
    """How far the largest of so many counts lies off by noise alone, and a little more."""
    return (math.sqrt(2 * math.log(max(len(pieces.counts), 2))) + STANDS_OUT) * np.sqrt(pieces.variances)


def _levelled(pieces: Pieces, total: float) -> np.ndarray:
    """The most probable counts of the pieces, at the stiffness for which the evidence is greatest."""
    free = spikes(pieces)
    levels = np.log(np.maximum(pieces.counts, np.sqrt(pieces.variances)) / pieces.sizes)
    stiffness = 1.0
    for _ in range(ROUNDS):
        stiffness, levels, held = _most_evident(pieces, total, free, stiffness, levels - levels.mean())
        found = (pieces.counts - held > _chance(pieces)) & ~free
        if not found.any():
            break
        free |= found
    return held


def _most_evident(
    pieces: Pieces, total: float, free: np.ndarray, stiffness: float, levels: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    # Counts do not change when all levels do: held fast, so that equations have one solution whatever the numbers.
    firm = 1 + total**2 / float(pieces.variances.min())
    best = (*_fitted(pieces, total, _ties(pieces, free, stiffness, firm), levels), stiffness)
    for step in (STIFFNESS_STEP, 1 / STIFFNESS_STEP):
        while LEAST_STIFF < best[-1] * step < STIFFEST:
            other = best[-1] * step
            tried = (*_fitted(pieces, total, _ties(pieces, free, other, firm), best[1]), other)
            if tried[0] <= best[0]:
                break
            best = tried
    return best[3], best[1], best[2]


def _ties(pieces: Pieces, free: np.ndarray, stiffness: float, firm: float) -> np.ndarray:
    """Precision of the levels: a random walk over the pieces that are not free, looser over longer ways.

    The mean of all levels has precision `firm`.
    """
    walk = np.flatnonzero(~free)
    middles = pieces.starts + pieces.lengths / 2
    unit = (pieces.starts[-1] + pieces.lengths[-1]) / UNITS
    tied = stiffness * unit / np.diff(middles[walk])
    ties = LOOSE * np.eye(len(free)) + firm / len(free) ** 2
    before, after = walk[:-1], walk[1:]
    ties[before, after] -= tied
    ties[after, before] -= tied
    np.add.at(ties, (before, before), tied)
    np.add.at(ties, (after, after), tied)
    return ties


def _fitted(pieces: Pieces, total: float, ties: np.ndarray, levels: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Log evidence, levels and counts at the most probable levels, by Gauss-Newton steps that never go uphill."""
    held = _counts(pieces, total, levels)
    cost = _cost(pieces, ties, levels, held)
    for _ in range(MOST_STEPS):
        pull = (held - pieces.counts) / pieces.variances
        pull += pieces.members.T @ ((pieces.members @ held - pieces.joint_counts) / pieces.joint_variances)
        slope = held * (pull - held @ pull / total) + ties @ levels
        step = np.clip(_solved(_curvature(pieces, total, held) + ties, slope), -LONGEST_STEP, LONGEST_STEP)
        for _ in range(10):
            tried = levels - step - (levels - step).mean()
            found = _counts(pieces, total, tried)
            lower = cost - _cost(pieces, ties, tried, found)
            if lower > 0:
                break
            step = step / 2
        else:
            break
        levels, held, cost = tried, found, cost - lower
        if lower < CLOSE_ENOUGH:
            break
    volume = np.linalg.slogdet(ties)[1] - np.linalg.slogdet(_curvature(pieces, total, held) + ties)[1]
    return volume / 2 - cost, levels, held


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solves equations whose rows may be of very different size: clear counts beside levels that only ties hold."""
    size = np.sqrt(np.diagonal(matrix))
    scaled = matrix / np.outer(size, size) + TINY * np.eye(len(size))
    return np.linalg.solve(scaled, right / size) / size


def _counts(pieces: Pieces, total: float, levels: np.ndarray) -> np.ndarray:
    masses = pieces.sizes * np.exp(levels - levels.max())
    return total * masses / masses.sum()


def _cost(pieces: Pieces, ties: np.ndarray, levels: np.ndarray, held: np.ndarray) -> float:
    alone = np.square(held - pieces.counts) / pieces.variances
    joint = np.square(pieces.members @ held - pieces.joint_counts) / pieces.joint_variances
    return float(alone.sum() + joint.sum() + levels @ ties @ levels) / 2


def _curvature(pieces: Pieces, total: float, held: np.ndarray) -> np.ndarray:
    """Of the squared errors, as Gauss and Newton take it: level j moves count i by held_i (1{i = j} - share_j)."""
    shares = held / total
    alone = np.square(held) / pieces.variances
    joint = pieces.members * held - np.outer(pieces.members @ held, shares)
    curvature = np.diag(alone) - np.outer(alone, shares) - np.outer(shares, alone)
    curvature += alone.sum() * np.outer(shares, shares)
    return curvature + joint.T @ (joint / pieces.joint_variances[:, None])
