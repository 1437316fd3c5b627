"""What many small losses look like together: one Gaussian release. A guess to start a search from, never a bound."""

import math

from understudy.privacy.accountant import Leaves, flatten
from understudy.privacy.events import (
    ApproxDp,
    BoundedRange,
    Event,
    Gaussian,
    OneOfMany,
    Parallel,
    PoissonSampled,
    PureDp,
    ReplaceOneSampled,
    ZCdp,
)


def square_mu(leaves: Leaves) -> float:
    """About the square of the Gaussian DP parameter of all events together, which adds up under composition.

    Steps that sample have q^2 (exp(1/z^2) - 1) (Bu, Dong, Long & Su 2020); the others have twice their zCDP.

    >>> from understudy.privacy.events import SelfComposed
    >>> square_mu(flatten([SelfComposed(Gaussian(2.0), 4)]))
    1.0
    """
    return sum(count * _of(event) for event, count in leaves)


def _of(event: Event) -> float:
    match event:
        case Gaussian(z):
            return z**-2
        case PoissonSampled(rate, Gaussian(z)) | OneOfMany(rate, z):
            return rate**2 * math.expm1(min(z**-2, 500.0))
        case ReplaceOneSampled(rate, z):
            return 2 * rate**2 * math.expm1(min(z**-2, 500.0))
        case BoundedRange(epsilon):
            return epsilon**2 / 4
        case PureDp(epsilon) | ApproxDp(epsilon, _):
            return epsilon**2
        case ZCdp(rho):
            return 2 * rho
        case Parallel(branches):
            return max(square_mu(flatten([branch])) for branch in branches)
    return math.inf
