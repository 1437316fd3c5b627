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
    OneOfMany,
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
        case OneOfMany(rate, z):
            return _one_of_many(rate, z, interval)
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


def _one_of_many(rate: float, z: float, interval: float) -> "PrivacyLossDistribution":
    """A pair that dominates one answer, drawn in secret, whose noisy values all lie within one sensitivity.

    Given all coins but which critic is asked, the release is P = (1-q) W + q U with the row and Q = (1-q) W + q V
    without it: W mixes the answers of critics that never saw the row, U and V are answers of its own critic. All are
    Gaussians (W a mixture) of standard deviation z around centres at most 1 apart. Take g >= 1 and g' with
    g = 1 + q (g' - 1). Then P - g Q = q (U - (g' - 1) (1-q) W - g V), whose weights sum to g', so that the hockey
    stick is q E(U || (1-b) W + b V) at g' with b = g / g' (Balle, Barthe & Gaboardi 2018). It is convex in its second
    argument: at most q times that of two Gaussians one apart. P and Q may be exchanged, so this curve d(g) also gives
    the part below 1, as 1 - g + g d(1/g). Put together it is convex, since at g = 1 the slopes ask for
    q (2 Phi(1/(2z)) - 1) <= 2 Phi(1/(2z)) - 1, so it is the curve of some pair and composes (Zhu, Dong & Wang 2022). No
    smaller curve holds: V = W reaches it above 1, U = W below. Adding, removing and replacing the row are alike.

    The pair is its own mirror image: the mass at -x is exp(-x) times the one at x. Chords of the curve round upwards,
    and the mirror image of a chord is one.
    """
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld
    from scipy.special import log_ndtr

    reach = min((0.5 / z + 10.5) / z, 700.0)  # of log g': beyond it 1e-25 is left, which counts as certain loss
    steps = max(math.ceil(math.log1p(rate * math.expm1(reach)) / interval), 2)
    x = np.arange(steps + 1) * interval
    log_inner = np.log1p(np.expm1(x) / rate)
    upper = log_ndtr(0.5 / z - z * log_inner)
    lower = log_inner + log_ndtr(-0.5 / z - z * log_inner)
    deltas = rate * np.exp(upper) * -np.expm1(np.minimum(lower - upper, 0.0))
    gaps = np.diff(deltas)
    above = np.append(
        (gaps[1:] - math.exp(interval) * gaps[:-1]) / math.expm1(interval), gaps[-1] / math.expm1(-interval)
    )
    above = np.maximum(above, 0.0)  # rounding
    below = above * np.exp(-x[1:])
    level = max(1.0 - deltas[-1] - above.sum() - below.sum(), 0.0)
    masses = np.concatenate([below[::-1], [level], above])
    return pld.PrivacyLossDistribution(pld_pmf.DensePLDPmf(interval, -steps, masses, float(deltas[-1]), True))


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
