"""Renyi DP curves: one bound an order, added under composition, turned into an epsilon once.

The orders and the sampled Gaussian curves are dp_accounting's; what it has no event for (bounded range, pure DP,
parallel parts, the replace pair of GS-WGAN) is added here.
"""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from understudy.privacy.events import (
    ApproxDp,
    BoundedRange,
    Event,
    Gaussian,
    NonPrivate,
    OneOfMany,
    Parallel,
    PoissonSampled,
    PureDp,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
)

_SMALLEST_REPLACE_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class Curve:
    """Bounds on the Renyi divergence at `orders()`, at order infinity, and what only holds as (epsilon, delta)-DP.

    Approximate events stay out of the curve and are added by basic composition: (e1 + e2, d1 + d2).
    """

    rdp: np.ndarray
    pure: float
    extra_epsilon: float = 0.0
    extra_delta: float = 0.0

    def __add__(self, other: "Curve") -> "Curve":
        return Curve(
            self.rdp + other.rdp,
            self.pure + other.pure,
            self.extra_epsilon + other.extra_epsilon,
            self.extra_delta + other.extra_delta,
        )

    def times(self, count: int) -> "Curve":
        return Curve(self.rdp * count, self.pure * count, self.extra_epsilon * count, self.extra_delta * count)

    def epsilon(self, delta: float) -> float:
        """Smallest epsilon over the orders (Canonne, Kamath & Steinke 2020, proposition 12)."""
        from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

        left = delta - self.extra_delta
        if left < 0:
            return math.inf
        from_orders = float(compute_epsilon(orders(), self.rdp, left)[0])
        return self.extra_epsilon + min(from_orders, self.pure)


@lru_cache(maxsize=1)
def orders() -> np.ndarray:
    from dp_accounting.rdp import RdpAccountant

    return np.asarray(RdpAccountant().orders, dtype=float)


def total(curves: Iterable[Curve]) -> Curve:
    return sum(curves, start=Curve(np.zeros(len(orders())), 0.0))


@lru_cache(maxsize=4096)
def curve(event: Event) -> Curve:
    """The curve of one event; composition adds curves."""
    zero = np.zeros(len(orders()))
    match event:
        case Gaussian(z):
            return Curve(orders() / (2 * z**2), math.inf)
        case ZCdp(rho):
            return Curve(orders() * rho, math.inf)
        case PureDp(epsilon):
            return Curve(_randomized_response(epsilon), epsilon)
        case BoundedRange(epsilon):
            # Both hold, so the smaller does at every order; the first is four times better for small epsilon.
            return Curve(np.minimum(orders() * epsilon**2 / 8, _randomized_response(epsilon)), epsilon)
        case ApproxDp(epsilon, delta):
            return Curve(zero, 0.0, epsilon, delta)
        case PoissonSampled():
            return Curve(_poisson_sampled(event), math.inf)
        case ReplaceOneSampled(rate, z):
            return Curve(_replace_one_sampled(rate, z), math.inf)
        case OneOfMany(rate, z):
            return Curve(_one_of_many(rate, z), math.inf)
        case SelfComposed(inner, count):
            return curve(inner).times(count)
        case Parallel(branches):
            # A row lies in one part, and every part's divergences are below the pointwise maximum.
            parts = [curve(branch) for branch in branches]
            return Curve(
                np.max([part.rdp for part in parts], axis=0),
                max(part.pure for part in parts),
                max(part.extra_epsilon for part in parts),
                max(part.extra_delta for part in parts),
            )
        case NonPrivate():
            return Curve(zero + math.inf, math.inf)
    raise TypeError(f"no Renyi curve for {type(event).__name__}")


def _randomized_response(epsilon: float) -> np.ndarray:
    """Every epsilon-DP mechanism is post-processing of randomized response (Kairouz, Oh & Viswanath 2015)."""
    alpha = orders()
    moment = np.logaddexp(alpha * epsilon, (1 - alpha) * epsilon) - np.logaddexp(0.0, epsilon)
    return np.maximum(moment, 0.0) / (alpha - 1)


def _poisson_sampled(event: PoissonSampled) -> np.ndarray:
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    gaussian = dp_accounting.GaussianDpEvent(event.event.noise_multiplier)
    accountant = RdpAccountant()
    log = logging.getLogger("absl")
    log.addFilter(_of_interest)
    try:
        accountant.compose(dp_accounting.PoissonSampledDpEvent(event.rate, gaussian))
    finally:
        log.removeFilter(_of_interest)
    return np.asarray(accountant.rdp, dtype=float)


def _of_interest(record: logging.LogRecord) -> bool:
    """All but the note that a series did not converge at an order, which then counts as infinite: fewer orders to take
    the smallest of still give an upper bound, and there is nothing to be done about it."""
    return not str(record.msg).startswith("_compute_log_a_frac failed to converge")


def _replace_one_sampled(rate: float, z: float) -> np.ndarray:
    """Renyi divergences of the replace pair by the trapezoid rule.

    The integrand P^a Q^(1-a) is analytic in a strip of half-width pi z^2 (the nearest zeros of Q) and falls off like a
    Gaussian, so the rule's error is below exp(-2 pi^2 z^2 / step): nothing at these steps. Its mass lies within a few z
    of [-2a, 2a] (the far end is reached at rate 1). The pair is its own mirror image, so one direction is enough.
    """
    if z < _SMALLEST_REPLACE_NOISE:
        return np.full(len(orders()), math.inf)
    step = min(z, z * z) / 4
    return np.array([_replace_divergence(alpha, rate, z, step) for alpha in orders()])


def _replace_divergence(alpha: float, rate: float, z: float, step: float) -> float:
    reach = 2 * alpha + 1 + 12 * z
    x = np.arange(-reach, reach + step, step)
    stay = (math.log1p(-rate) if rate < 1 else -math.inf) - x**2 / (2 * z**2)
    upper = np.logaddexp(stay, math.log(rate) - (x - 1) ** 2 / (2 * z**2))
    lower = np.logaddexp(stay, math.log(rate) - (x + 1) ** 2 / (2 * z**2))
    exponent = alpha * upper + (1 - alpha) * lower
    peak = exponent.max()
    log_integral = peak + math.log(np.exp(exponent - peak).sum() * step / (z * math.sqrt(2 * math.pi)))
    # Rounding can leave a divergence of zero at -1e-16.
    return max(log_integral, 0.0) / (alpha - 1)


def _one_of_many(rate: float, z: float) -> np.ndarray:
    """Renyi divergences of the pair of `loss_distributions._one_of_many`.

    Above a ratio of 1 the pair is that of a sampled Gaussian, r(u) = 1 + q (exp(u/z^2) - 1) at 1/2 + u under N(0, z^2);
    below 1 it is the mirror image, and what is left has ratio 1. So the moment exceeds 1 by the integral over u > 0
    of the density times r^a + r^(1-a) - r - 1 = (r^a - 1) (1 - r^(1-a)), positive throughout. It starts like u^2, so
    the trapezoid rule is of fourth order; the last factor has room for it.
    """
    if z < _SMALLEST_REPLACE_NOISE:
        return np.full(len(orders()), math.inf)
    step = min(z, z * z) / 32
    return np.array([_one_of_many_divergence(alpha, rate, z, step) for alpha in orders()])


def _one_of_many_divergence(alpha: float, rate: float, z: float, step: float) -> float:
    u = np.arange(step, alpha + 1 + 12 * z, step)
    log_ratio = np.logaddexp(math.log1p(-rate) if rate < 1 else -math.inf, math.log(rate) + u / z**2)
    log_ratio = np.where(u < z**2, np.log1p(rate * np.expm1(np.minimum(u / z**2, 1.0))), log_ratio)
    grown = alpha * log_ratio
    # log(exp(y) - 1), where exp(y) may not fit.
    first = np.where(grown > 30, grown, np.log(np.expm1(np.minimum(grown, 30.0))))
    exponent = first + np.log(-np.expm1((1 - alpha) * log_ratio)) - (u + 0.5) ** 2 / (2 * z**2)
    peak = exponent.max()
    total = np.exp(exponent - peak).sum() * step / (z * math.sqrt(2 * math.pi)) * (1 + 1e-5)
    return float(np.logaddexp(0.0, peak + math.log(total))) / (alpha - 1)
