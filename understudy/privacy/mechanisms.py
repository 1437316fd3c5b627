"""The only places where noise meets private values.

Each charges the ledger before it looks at a value: options are checked first, so that a wrong call costs nothing;
values that turn out not to be numbers are an error after the charge, since that error too is told by the rows.
"""

import math

import numpy as np

from understudy.errors import DataError, OptionError
from understudy.privacy.events import BoundedRange, Gaussian, NonPrivate, PureDp
from understudy.privacy.ledger import Ledger
from understudy.privacy.randomness import Streams

# The grid has at least this many steps in the sensitivity and in the noise. The distance between the discrete and the
# continuous Gaussian shrinks with its square; 256 would do, and finer costs nothing.
STEPS = 2**14
_CUSHION = 1 + 1 / STEPS
_LARGEST_STEP = 2**62
_LARGEST_SCALE = 2**55


def gaussian(
    values: np.ndarray,
    *,
    l2_sensitivity: float,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
    purpose: str,
) -> np.ndarray:
    """Releases values plus Gaussian noise of standard deviation `noise_multiplier * l2_sensitivity`, as float64.

    The noise is an exact discrete Gaussian on a grid of step g, a power of two that depends on the sensitivity, the
    multiplier and the number of values d alone, so that the low-order bits of the result tell nothing (Mironov 2012).

    Guarantee: the charged `Gaussian(noise_multiplier)`, provided that one row moves `values` by at most
    `l2_sensitivity` in L2. Integer arrays lie on the grid already. Floats are rounded to it: each of two neighbouring
    arrays moves by at most g/2 a coordinate, so their distance grows by at most g sqrt(d), and the noise is scaled to
    S + g sqrt(d), less than one part in 2^14 more than asked. On the grid the discrete Gaussian keeps the Renyi bound
    of the continuous one exactly (Canonne, Kamath & Steinke 2020); its delta differs by a relative amount of order
    (g/std)^2, below 1e-7, which another 2^-14 of noise more than covers.

    A multiplier of 0 returns the values unchanged and charges NonPrivate, which only an infinite budget accepts.
    """
    l2_sensitivity = _positive(l2_sensitivity, "l2_sensitivity")
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise OptionError(f"{purpose}: values must be an array of numbers, got dtype {array.dtype}")
    if noise_multiplier == 0:
        ledger.charge(NonPrivate(), purpose)
        return array.astype(np.float64)
    noise_multiplier = _positive(noise_multiplier, "noise_multiplier")
    step, scale = _grid(array, l2_sensitivity, noise_multiplier, purpose)
    ledger.charge(Gaussian(noise_multiplier), purpose)
    on_grid = _to_grid(array, step, purpose)
    noise = streams.noise.gaussian_steps(scale, array.size).reshape(array.shape)
    return (on_grid + noise).astype(np.float64) * step


def check_counts(*, l2_sensitivity: float, noise_multiplier: float, purpose: str, fractions: int = 0) -> None:
    """Refuses, from public numbers alone, what `gaussian` would refuse of whole numbers, or of so many fractions."""
    if noise_multiplier:
        multiplier = _positive(noise_multiplier, "noise_multiplier")
        values = np.broadcast_to(0.0, (fractions,)) if fractions else np.zeros(1, dtype=np.int64)
        _grid(values, _positive(l2_sensitivity, "l2_sensitivity"), multiplier, purpose)


def _grid(values: np.ndarray, l2_sensitivity: float, noise_multiplier: float, purpose: str) -> tuple[float, float]:
    """The step of the grid and the noise in steps, from shape and dtype; refused where they leave exact arithmetic."""
    whole = values.dtype.kind in "iu"
    step = grid_step(values, l2_sensitivity, noise_multiplier)
    reach = l2_sensitivity if whole else l2_sensitivity + step * math.sqrt(values.size)
    scale = noise_multiplier * reach * _CUSHION / step
    if scale > _LARGEST_SCALE:
        raise OptionError(
            f"{purpose}: noise_multiplier {noise_multiplier:g} is too large for exact noise; raise epsilon or delta"
        )
    if whole and 1 / step > _LARGEST_STEP:
        raise OptionError(f"{purpose}: l2_sensitivity {l2_sensitivity:g} is too small for a release of whole numbers")
    return step, scale


def grid_step(values: np.ndarray, l2_sensitivity: float, noise_multiplier: float) -> float:
    """A power of two at most 1/STEPS of the sensitivity and of the noise, from public numbers (shape and dtype) alone.

    Integers need a step of at most 1 to lie on the grid; for floats the step shrinks with the square root of their
    number, so that rounding adds at most 1/STEPS to the sensitivity.
    """
    finest = min(l2_sensitivity, noise_multiplier * l2_sensitivity) / STEPS
    if values.dtype.kind in "iu":
        return min(1.0, _power_of_two_below(finest))
    return _power_of_two_below(finest / math.sqrt(max(values.size, 1)))


def select(
    scores: np.ndarray,
    *,
    sensitivity: float,
    epsilon: float,
    monotone: bool,
    streams: Streams,
    ledger: Ledger,
    purpose: str,
) -> int:
    """Picks an index by the exponential mechanism, P(j) ~ exp(epsilon * scores[j] / (c * sensitivity)), c = 1 or 2.

    `monotone` (c = 1): adding a row moves every score in the same direction. Otherwise c = 2. The index alone comes
    back: a score would leak beyond what is charged. An infinite epsilon gives the first of the best, and charges
    NonPrivate.

    Guarantee: the charged `BoundedRange(epsilon)`, provided that one row moves each score by at most `sensitivity` (and
    all of them the same way if monotone): then the logs of P(j)/P'(j) span at most epsilon over j (Dong, Durfee &
    Rogers 2020). Unseeded, the draw is exact for the scores as given: OpenDP compares Gumbel variables bit by bit until
    they differ. What floating-point rounding did to the scores before they came here is the caller's to bound: sums of
    many floats should be made on a fixed grid or in integers.
    """
    scale = _selection_scale(sensitivity, epsilon, monotone)
    ledger.charge(BoundedRange(epsilon) if scale else NonPrivate(), purpose)
    scores = _finite_scores(scores, purpose)
    return streams.noise.gumbel_argmax(scores, scale) if scale else int(np.argmax(scores))


def select_permute_and_flip(
    scores: np.ndarray,
    *,
    sensitivity: float,
    epsilon: float,
    monotone: bool,
    streams: Streams,
    ledger: Ledger,
    purpose: str,
) -> int:
    """Picks an index by permute-and-flip (McKenna & Sheldon 2020): never worse than `select` at the same epsilon.

    Guarantee: the charged `PureDp(epsilon)`, under the same conditions. It is not bounded-range, so many of them
    compose about four times worse (in 1/z^2) than selections by `select`: for one or two picks alone.
    """
    scale = _selection_scale(sensitivity, epsilon, monotone)
    ledger.charge(PureDp(epsilon) if scale else NonPrivate(), purpose)
    scores = _finite_scores(scores, purpose)
    # Adding exponential noise and taking the largest is the same distribution (Ding et al. 2021).
    return streams.noise.exponential_argmax(scores, scale) if scale else int(np.argmax(scores))


def _selection_scale(sensitivity: float, epsilon: float, monotone: bool) -> float:
    sensitivity = _positive(sensitivity, "sensitivity")
    if epsilon == math.inf:
        return 0.0
    return (1 if monotone else 2) * sensitivity / _positive(epsilon, "epsilon")


def _finite_scores(scores: np.ndarray, purpose: str) -> np.ndarray:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise OptionError(f"{purpose}: scores must be a list of at least one number")
    if not np.isfinite(array).all():
        raise DataError(f"{purpose}: scores must all be finite (a candidate's score is NaN or infinite)")
    return array


def _to_grid(array: np.ndarray, step: float, purpose: str) -> np.ndarray:
    if not np.isfinite(array).all():
        raise DataError(f"{purpose}: values must all be finite (a sum holds NaN or infinity)")
    # Dividing by a power of two is exact; the check comes before the cast, which would wrap around.
    with np.errstate(over="ignore"):
        scaled = array.astype(np.float64) / step
    if array.size and np.abs(scaled).max() > _LARGEST_STEP:
        raise DataError(f"{purpose}: values are too large for exact noise at this sensitivity; scale them down")
    if array.dtype.kind in "iu":
        return array.astype(np.int64) * round(1 / step)
    return np.rint(scaled).astype(np.int64)


def _power_of_two_below(value: float) -> float:
    # frexp is exact where log2 rounds: value = m * 2**e with m in [1/2, 1).
    return math.ldexp(1.0, math.frexp(value)[1] - 1)


def _positive(value: float, name: str) -> float:
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise OptionError(f"{name} must be positive and finite, got {value}")
    return float(value)
