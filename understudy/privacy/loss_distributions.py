"""Privacy-loss distributions, composed entry by entry with dp_accounting's lower-level interface.

Its PLD accountant knows neither selection nor the replace pair beside add/remove events. Each entry's own dominating
pair is valid for one added or removed row, so the distributions compose whatever their origin (Zhu, Dong & Wang 2022).
All rounding is upwards.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from understudy.privacy.events import (
    ApproxDp,
    BoundedRange,
    Event,
    Gaussian,
    NonPrivate,
    Parallel,
    PoissonSampled,
    PureDp,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
)

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

INTERVAL = 1e-4
# Convolution by FFT errs in delta, either way: against the exact Gaussian formula by up to 4e-14 after 10,000 runs,
# 4e-12 after 100,000, 5e-11 after 1,000,000. Twice that is set aside.
_ERROR, _ERROR_A_RUN = 1e-13, 1e-16
# Parallel parts that cannot be ordered meet on every 16th grid point: asking a distribution for deltas is slow.
_STRIDE = 16


def epsilon(leaves: tuple[tuple[Event, int], ...], delta: float, interval: float = INTERVAL) -> float | None:
    """Epsilon of counted events; None where an event has no distribution or delta is too small for floats."""
    error = _ERROR + _ERROR_A_RUN * sum(count * _runs(event) for event, count in leaves)
    if delta < 10 * error or any(_has_none(event) for event, _ in leaves):
        return None
    return float(_compose(leaves, interval).get_epsilon_for_delta(delta - error))


def _runs(event: Event) -> int:
    match event:
        case SelfComposed(inner, count):
            return count * _runs(inner)
        case Parallel(branches):
            return max(_runs(branch) for branch in branches)
    return 1


def _has_none(event: Event) -> bool:
    match event:
        case ZCdp():
            return True
        case SelfComposed(inner, _):
            return _has_none(inner)
        case Parallel(branches):
            return any(_has_none(branch) for branch in branches)
    return False


def _compose(leaves: tuple[tuple[Event, int], ...], interval: float) -> "PrivacyLossDistribution":
    from dp_accounting.pld import privacy_loss_distribution as pld

    composed = pld.identity(value_discretization_interval=interval)
    # All Gaussian releases are one, with 1/z^2 added: exact, and cheaper than convolving them.
    precision = sum(count / event.noise_multiplier**2 for event, count in leaves if isinstance(event, Gaussian))
    if precision:
        composed = composed.compose(
            pld.from_gaussian_mechanism(precision**-0.5, value_discretization_interval=interval)
        )
    for event, count in leaves:
        if not isinstance(event, Gaussian):
            composed = composed.compose(_repeated(event, count, interval))
    return composed


@lru_cache(maxsize=8)
def _repeated(event: Event, count: int, interval: float) -> "PrivacyLossDistribution":
    return _single(event, interval).self_compose(count)


def _single(event: Event, interval: float) -> "PrivacyLossDistribution":
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    match event:
        case Gaussian(z):
            return pld.from_gaussian_mechanism(z, value_discretization_interval=interval)
        case BoundedRange(value):
            return _bounded_range(value, interval)
        case PureDp(value):
            return pld.from_privacy_parameters(DifferentialPrivacyParameters(value, 0.0), interval)
        case ApproxDp(value, delta):
            return pld.from_privacy_parameters(DifferentialPrivacyParameters(value, delta), interval)
        case PoissonSampled(rate, Gaussian(z)):
            return pld.from_gaussian_mechanism(z, sampling_prob=rate, value_discretization_interval=interval)
        case ReplaceOneSampled(rate, z):
            return pld.from_gaussian_mechanism(
                z,
                sampling_prob=rate,
                value_discretization_interval=interval,
                neighboring_relation=NeighboringRelation.REPLACE_ONE,
            )
        case SelfComposed(inner, count):
            return _repeated(inner, count, interval)
        case Parallel(branches):
            return _largest([_single(branch, interval) for branch in branches], interval)
        case NonPrivate():
            return pld.PrivacyLossDistribution.create_from_rounded_probability({0: 0.0}, 1.0, interval)
    raise TypeError(f"no privacy-loss distribution for {type(event).__name__}")


def _bounded_range(value: float, interval: float) -> "PrivacyLossDistribution":
    """A pair that dominates every selection whose log-probability ratios span at most `value` (E below).

    For one pair of neighbours the ratios L = P/Q lie in [exp(t-E), exp(t)] for some t, and have mean 1 under Q; the
    hockey stick E_Q (L - exp(x))+ is largest when L takes only the two extremes (convexity), which gives
    (exp(E) - exp(t)) / (exp(E) - 1) * (1 - exp(x-t)). The worst t for each x is (E + x) / 2: delta is at most
    (1 - exp((x-E)/2))^2 / (1 - exp(-E)) for x in [-E, E]. As a maximum of hockey-stick curves it is one itself (of
    densities proportional to exp(x/2) and exp(-x/2) on [-E, E]), so it composes. Randomized response, which is all
    that pure DP gives, has three times its variance; Dong, Durfee & Rogers (2020) treat the same family.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    steps = math.ceil(value / interval)
    x = np.clip(np.arange(-steps, steps + 1) * interval, -value, value)
    deltas = np.expm1((x - value) / 2) ** 2 / -math.expm1(-value)
    deltas[0] = -math.expm1(-steps * interval)  # below -E nothing is hidden: delta is 1 - exp(x)
    return pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -steps, steps, deltas)
    )


def _largest(parts: "list[PrivacyLossDistribution]", interval: float) -> "PrivacyLossDistribution":
    """A distribution whose delta is, at every epsilon, the largest of the parts' deltas.

    The pointwise maximum of hockey-stick curves is convex in exp(epsilon), so it is the curve of some pair that
    dominates every part (Zhu, Dong & Wang 2022), also where earlier releases decide which part the row falls into. The
    chord of a convex curve lies above it: joining values by chords ("connect the dots") rounds upwards.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    reach = max(_reach(part, interval) for part in parts)
    grid = np.arange(-reach, reach + 1) * _STRIDE
    deltas = np.max([np.asarray(part.get_delta_for_epsilon(grid * interval)) for part in parts], axis=0)
    deltas = np.clip(deltas, 0.0, 1.0)
    return pld.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots(interval, grid, np.minimum.accumulate(deltas))
    )


def _reach(part: "PrivacyLossDistribution", interval: float) -> int:
    """Strides to an epsilon beyond which the part has next to no delta left, or only its mass at infinity."""
    for tail in (1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2):
        found = part.get_epsilon_for_delta(tail)
        if math.isfinite(found):
            return math.ceil(found / interval / _STRIDE) + 1
    return 1
