"""Private-PGM: the graphical model of largest entropy among those that fit released tables best.

Everything here is post-processing of released numbers. Mirror descent on potentials is ours; marginals of potentials
are found by the mbi package, which is compiled anew for every structure: descent by itself compiles nothing, so that a
fit costs one small program. mbi works in double precision, which is switched on for these calls alone: other methods
keep single precision.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from understudy.synthesizers.marginals.network import Columns

SMALLEST_NOISE = 1e-3  # rows; a table without noise is fitted as if it had this much
STEPS_PER_LOOK = 25
LEAST_GAIN = 1e-5  # of the error, in that many steps: less is not worth going on

Tables = dict[Columns, np.ndarray]


@dataclass(frozen=True, eq=False)
class Measured:
    """A released table of some columns, and the standard deviation of its cells."""

    members: Columns
    counts: np.ndarray
    noise: float


def independent_potentials(counts: Sequence[np.ndarray]) -> Tables:
    """Every column by itself; a code that was never counted gets as much as half a row."""
    return {(column,): np.log(np.maximum(table, 0.5)) for column, table in enumerate(counts)}


def fit_potentials(
    sizes: Sequence[int], measured: Sequence[Measured], start: Mapping[Columns, np.ndarray], *, total: float, steps: int
) -> Tables:
    """Mirror descent (McKenna, Sheldon & Miklau 2019) on half the squared error of all tables, in units of their noise.

    `start` has potentials of sets that the measured ones cover. A step is kept if it brings at least half of what its
    gradient promises; steps grow while they are kept, and are halved when not.
    """
    cliques = _largest([one.members for one in measured])
    owner = {one.members: _holder(one.members, cliques) for one in measured}
    potentials = {clique: np.zeros([sizes[column] for column in clique]) for clique in cliques}
    for members, values in start.items():
        clique = _holder(members, cliques)
        potentials[clique] = potentials[clique] + _spread(values, members, clique)

    def error(marginals: Tables) -> tuple[float, Tables]:
        value, slopes = 0.0, {clique: np.zeros(1) for clique in cliques}
        for one in measured:
            clique = owner[one.members]
            residual = (_project(marginals[clique], clique, one.members) - one.counts) / max(one.noise, SMALLEST_NOISE)
            value += 0.5 * float(np.vdot(residual, residual))
            slope = _spread(residual / max(one.noise, SMALLEST_NOISE), one.members, clique)
            slopes[clique] = slopes[clique] + slope
        return value, slopes

    with _marginals(sizes) as marginals_of:
        marginals = marginals_of(potentials, total)
        value, slopes = error(marginals)
        # The first step changes logarithms by about one, whatever the noise.
        rate, looked = min(max(one.noise, SMALLEST_NOISE) for one in measured) ** 2 / total, value
        for step in range(1, steps + 1):
            tried = {clique: potentials[clique] - rate * slopes[clique] for clique in cliques}
            found = marginals_of(tried, total)
            new_value, new_slopes = error(found)
            promised = sum(float(np.sum(slopes[c] * (marginals[c] - found[c]))) for c in cliques)
            if value - new_value >= 0.5 * promised:
                potentials, marginals, value, slopes = tried, found, new_value, new_slopes
                rate *= 1.5
            else:
                rate *= 0.5
            if step % STEPS_PER_LOOK == 0:
                if looked - value <= LEAST_GAIN * looked:
                    break
                looked = value
    return potentials


@contextmanager
def _marginals(sizes: Sequence[int]) -> Iterator[Callable[[Tables, float], Tables]]:
    """Within its block, a function from potentials to the tables of the same sets, which sum to a total."""
    import jax

    with jax.enable_x64(True):
        mbi, oracle = _oracle()
        names = [str(column) for column in range(len(sizes))]
        domain = mbi.Domain(names, sizes)

        def marginals(potentials: Tables, total: float) -> Tables:
            named = {clique: tuple(names[column] for column in clique) for clique in potentials}
            factors = {named[c]: mbi.Factor(domain.project(named[c]), values) for c, values in potentials.items()}
            found = oracle(mbi.CliqueVector(domain, tuple(factors), factors), total)
            return {clique: np.asarray(found[named[clique]].values) for clique in potentials}

        yield marginals


@cache
def _oracle():
    """mbi, and its message passing, compiled once for every structure."""
    import jax

    with warnings.catch_warnings():
        # It warns of a compilation cache, which is a matter of speed, and one that we did not switch on.
        warnings.simplefilter("ignore")
        import mbi
    return mbi, jax.jit(mbi.marginal_oracles.message_passing_shafer_shenoy)


def _largest(sets: Sequence[Columns]) -> list[Columns]:
    """The sets that lie in no other, each once, in a fixed order."""
    different = sorted({tuple(sorted(members)) for members in sets})
    return [one for one in different if not any(set(one) < set(other) for other in different)]


def _holder(members: Columns, cliques: Sequence[Columns]) -> Columns:
    return next(clique for clique in cliques if set(members) <= set(clique))


def _project(table: np.ndarray, clique: Columns, members: Columns) -> np.ndarray:
    """Sums over the other columns. Members are in the order of the clique: both are sorted."""
    return table.sum(axis=tuple(axis for axis, column in enumerate(clique) if column not in members))


def _spread(table: np.ndarray, members: Columns, clique: Columns) -> np.ndarray:
    lengths = iter(table.shape)
    return table.reshape([next(lengths) if column in members else 1 for column in clique])
