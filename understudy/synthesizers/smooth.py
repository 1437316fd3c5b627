"""Counts of an ordered column from noisy ones on a ladder of widths: as smooth as the noise hides, spikes as they are.

The column is cut into pieces, single cells where many rows are. Rows of a cell are its size times exp(level); levels of
neighbouring pieces differ as in a random walk, whose freedom the counts themselves tell (the evidence, by Laplace's
approximation). The most probable levels then follow the counts where these are clear, and lead through noise in
between; long empty tails run out instead of keeping whatever noise is above zero. Sees released counts alone, and costs
no privacy.
"""

from dataclasses import dataclass

import numpy as np

from understudy.synthesizers.ladder import RUNG, climb, share_out
from understudy.synthesizers.spikes import false_share, spikes, stand_out

FEWEST_CELLS = 4  # fewer say nothing of how smooth they are
WORTH_CUTTING = 4  # runs with more rows than so many times the noise of a cell are cut into cells
MOST_SPIKES = 256  # pieces besides, the heaviest: time grows with the third power of pieces
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

    `owners` are the pieces of all cells, `middles` and `lengths` of pieces are in cells, `sizes` what they would hold
    if rows were spread evenly; `spiky` ones are cells that stand out of those around.
    """

    owners: np.ndarray
    middles: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray
    spiky: np.ndarray
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
    cells = len(rungs[0])
    if total <= 0:
        return np.zeros(cells)
    sizes = sizes / sizes.mean()
    pieces = cut(rungs, noises, sizes, most_pieces)
    masses = _levelled(pieces, total)
    held = masses[pieces.owners]
    for piece in np.flatnonzero(pieces.lengths > 1):
        inside = np.flatnonzero(pieces.owners == piece)
        even = np.full(len(inside), noises[0] ** 2)
        held[inside] = share_out(rungs[0][inside], even, sizes[inside], masses[piece])
    least = LEAST_PART * np.minimum(masses / pieces.lengths, noises[0])
    kept = 1 - least * pieces.lengths / np.maximum(masses, TINY)
    return least[pieces.owners] + held * kept[pieces.owners]


def cut(rungs: list[np.ndarray], noises: tuple[float, ...], sizes: np.ndarray, most_pieces: int) -> Pieces:
    """Single cells if there are few of them; else runs of the next rung, the heaviest of which are cut into cells.

    Cells that stand out are pieces of their own, and what is left of their run is another.
    """
    cells, runs = np.arange(len(rungs[0])), np.arange(len(rungs[0])) // RUNG
    spiky = spikes(rungs[0], sizes, noises[0])
    counts, variances = rungs[0], np.full(len(cells), noises[0] ** 2)
    single, parted = np.ones(len(cells), dtype=bool), np.ones(runs[-1] + 1, dtype=bool)
    if len(rungs) > 1 and len(cells) > most_pieces:
        spiky[np.argsort(np.where(spiky, -rungs[0], np.inf), kind="stable")[MOST_SPIKES:]] = False
        left, left_variances = _left_of_runs(rungs, noises, spiky)
        fine = np.zeros(len(left), dtype=bool)
        fine[np.argsort(-left, kind="stable")[: max(most_pieces - len(left), 0) // (RUNG - 1)]] = True
        fine &= left > WORTH_CUTTING * noises[0]
        single, parted = spiky | fine[runs], fine | (climb(spiky, RUNG) > 0)
        counts, variances = (
            np.where(single, own, of_runs[runs]) for own, of_runs in ((counts, left), (variances, left_variances))
        )
    firsts = np.minimum.reduceat(np.where(single, len(cells), cells), np.arange(0, len(cells), RUNG))
    starts, owners = np.unique(np.where(single, cells, firsts[runs]), return_inverse=True)
    lengths = np.bincount(owners)
    # The count of a run that is one piece is told with the piece.
    joint = [
        (rung, np.flatnonzero(parted) if rung == 1 else np.arange(len(rungs[rung]))) for rung in range(1, len(rungs))
    ]
    members = [starts // RUNG**rung == run for rung, told in joint for run in told]
    return Pieces(
        owners=owners,
        middles=np.bincount(owners, weights=cells + 0.5) / lengths,
        lengths=lengths,
        sizes=np.bincount(owners, weights=sizes),
        spiky=spiky[starts],
        counts=counts[starts],
        variances=variances[starts],
        members=np.array(members, dtype=float).reshape(len(members), len(starts)),
        joint_counts=np.concatenate([np.zeros(0), *(rungs[rung][told] for rung, told in joint)]),
        joint_variances=np.concatenate([np.zeros(0), *(np.full(len(told), noises[rung] ** 2) for rung, told in joint)]),
    )


def _left_of_runs(
    rungs: list[np.ndarray], noises: tuple[float, ...], spiky: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Counts and variances of runs without their spikes: by their cells, and by their own count if they have none."""
    counts = climb(np.where(spiky, 0.0, rungs[0]), RUNG)
    variances = np.maximum(climb(~spiky, RUNG), 1) * noises[0] ** 2
    both = 1 / (1 / variances + 1 / noises[1] ** 2)
    whole = climb(spiky, RUNG) == 0
    return (
        np.where(whole, both * (counts / variances + rungs[1] / noises[1] ** 2), counts),
        np.where(whole, both, variances),
    )


def _levelled(pieces: Pieces, total: float) -> np.ndarray:
    """The most probable counts of the pieces, at the stiffness for which the evidence is greatest."""
    free = pieces.spiky
    levels = np.log(np.maximum(pieces.counts, np.sqrt(pieces.variances)) / pieces.sizes)
    stiffness = 1.0
    for _ in range(ROUNDS):
        stiffness, levels, held = _most_evident(pieces, total, free, stiffness, levels - levels.mean())
        off = (pieces.counts - held) / np.sqrt(pieces.variances)
        found = stand_out(np.where(free, np.inf, off), false_share(len(pieces.owners)))
        if (found == free).all():
            break
        free = found
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
    tied = stiffness * len(pieces.owners) / UNITS / np.diff(pieces.middles[walk])
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
