"""An ordered column counted on a ladder of widths.

Single cells alone say little of long runs: the sum of k cells carries sqrt(k) times the noise of one. Each rung of the
ladder counts runs RUNG times as long as the rung below (Hay et al. 2010), so that every interval is the sum of a few
counts. What is done here after the noise sees released counts alone, and costs no privacy.
"""

import math

import numpy as np

from understudy.synthesizers.denoise import project_to_total

RUNG = 16
FEWEST_RUNS = 4  # a rung with fewer runs would tell little that the total does not
# How far a count must stand out of the noise, beyond the largest of its family by chance, to be kept as it is.
STANDS_OUT = 0.5


def widths_of(cells: int) -> tuple[int, ...]:
    """The widths of a ladder's rungs, in cells.

    >>> widths_of(50), widths_of(64), widths_of(2048)
    ((1,), (1, 16), (1, 16, 256))
    """
    widths = [1]
    while cells >= FEWEST_RUNS * RUNG * widths[-1]:
        widths.append(RUNG * widths[-1])
    return tuple(widths)


def climb(counts: np.ndarray, width: int) -> np.ndarray:
    """Counts of runs of `width` cells; the last run may be shorter.

    >>> climb(np.arange(5), 2).tolist()
    [1, 5, 4]
    """
    return np.add.reduceat(counts, np.arange(0, len(counts), width))


def run_variance(cells: np.ndarray, noises: tuple[float, ...]) -> np.ndarray:
    """About the variance of the sum of so many neighbouring cells, read off the rung that tells it best."""
    return np.min([np.ceil(cells / RUNG**rung) * noise**2 for rung, noise in enumerate(noises)], axis=0)


def share_out(found: np.ndarray, variances: np.ndarray, lengths: np.ndarray, mass: float) -> np.ndarray:
    """Parts of `mass` for the members of a family, not negative, from noisy counts of them.

    Counts that stand out of the noise stay. The others are drawn towards an even spread (by length) as James and Stein
    do: by as much as noise explains of how they differ from it.

    >>> even = np.ones(4)
    >>> share_out(np.array([9.0, 11.0, 10.0, 70.0]), even / 2, even, mass=100.0).round(1).tolist()
    [9.5, 10.5, 10.0, 70.0]
    """
    members = len(found)
    if members == 1 or mass <= 0:
        return np.full(members, max(mass, 0.0) / members)
    variance = float(variances.mean())
    parts = found + (mass - found.sum()) / members
    chance = (math.sqrt(2 * math.log(members)) + STANDS_OUT) * math.sqrt(variance)
    rest = parts - mass * lengths / lengths.sum() <= chance
    left = max(mass - parts[~rest].sum(), 0.0)
    even = left * lengths[rest] / lengths[rest].sum()
    off = parts[rest] - even
    off -= off.mean()
    energy = float(np.square(off).sum())
    kept = max(1 - (len(off) - 1) * variance / energy, 0.0) if energy > 0 else 0.0
    parts[rest] = even + kept * off
    return project_to_total(parts, mass)
