"""The Gaussian mechanism alone, exactly (Balle & Wang 2018, theorem 8), without a heavy import.

Gaussian releases compose into one Gaussian release: their 1/z^2 add up (Dong, Roth & Su 2022), so a ledger that holds
nothing else needs no numerical accountant.
"""

import math
from functools import lru_cache

_SQRT2 = math.sqrt(2.0)
# From here on the two Mills ratios agree in so many digits that their difference is taken by a series.
_LARGE_NOISE = 1e3


def log_delta(epsilon: float, noise_multiplier: float) -> float:
    """log of the smallest delta for which the Gaussian mechanism is (epsilon, delta)-DP.

    delta = Phi(a) - exp(epsilon) Phi(b), a = 1/(2z) - epsilon z, b = a - 1/z. Since exp(epsilon) phi(b) = phi(a), this
    is phi(a) (M(-a) - M(-b)) with the Mills ratio M, which keeps its digits where the two terms nearly cancel.

    >>> round(log_delta(1.0, 3.7306) / math.log(10), 3)
    -5.0
    """
    from scipy.special import erfcx, log_ndtr

    a = 0.5 / noise_multiplier - epsilon * noise_multiplier
    b = a - 1.0 / noise_multiplier
    if noise_multiplier > _LARGE_NOISE:
        gap = _mills_difference(epsilon * noise_multiplier, 1.0 / noise_multiplier)
        return -0.5 * (a * a + math.log(2 * math.pi)) + math.log(gap) if gap > 0 else -math.inf
    if a < 5.0:
        gap = 0.5 * (float(erfcx(-a / _SQRT2)) - float(erfcx(-b / _SQRT2)))
        return -0.5 * a * a + math.log(gap) if gap > 0 else -math.inf
    # Here delta is within 1e-6 of 1 and erfcx would overflow: the plain form loses nothing.
    return float(log_ndtr(a)) + math.log1p(-math.exp(epsilon + float(log_ndtr(b)) - float(log_ndtr(a))))


def _mills_difference(middle: float, width: float) -> float:
    """M(middle - width/2) - M(middle + width/2) for a small width, from M's derivatives in the middle.

    The first is x M - 1, the third (x^3 + 3x) M - x^2 - 2; what is left out is smaller by width^4 / 1920.
    """
    from scipy.special import erfcx

    if middle > 1e3:  # far beyond every delta that a float can hold
        return 0.0
    ratio = math.sqrt(math.pi / 2) * float(erfcx(middle / _SQRT2))
    third = (middle**3 + 3 * middle) * ratio - middle**2 - 2
    return width * (1 - middle * ratio) - width**3 / 24 * third


@lru_cache(maxsize=4096)
def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """Smallest epsilon of one Gaussian release at this delta (rounded up in the twelfth digit).

    >>> round(gaussian_epsilon(3.7306, 1e-5), 4)
    1.0
    """
    from scipy.optimize import brentq

    target = math.log(delta)
    if log_delta(0.0, noise_multiplier) <= target:
        return 0.0
    # At 1/(2z^2) + t/z the first term alone is Phi(-t) <= exp(-t^2/2).
    high = 0.5 / noise_multiplier**2 + math.sqrt(-2.0 * target) / noise_multiplier
    found = brentq(lambda e: log_delta(e, noise_multiplier) - target, 0.0, high, xtol=1e-14 * high, rtol=1e-13)
    return found * (1 + 1e-12)


@lru_cache(maxsize=4096)
def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """Smallest noise multiplier whose `gaussian_epsilon` is at most epsilon (rounded up in the twelfth digit)."""
    from scipy.optimize import brentq

    target = math.log(delta)

    def excess(log_z: float) -> float:
        return log_delta(epsilon, math.exp(log_z)) - target

    low = high = 0.0
    while excess(high) > 0:
        high += 1.0
    while excess(low) < 0:
        low -= 1.0
    return math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)) * (1 + 1e-11)
