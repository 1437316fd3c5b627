"""From a budget to the noise: users give epsilon, the accountant is inverted."""

import math
from collections.abc import Callable, Sequence

from understudy.errors import OptionError
from understudy.privacy import accountant, loss_distributions
from understudy.privacy.central_limit import square_mu
from understudy.privacy.events import Event, OneOfMany, Parallel, PoissonSampled, ReplaceOneSampled, SelfComposed
from understudy.privacy.gaussian_dp import gaussian_epsilon, gaussian_noise_multiplier
from understudy.privacy.ledger import Budget

__all__ = ["calibrate", "gaussian_epsilon", "noise_multiplier", "split"]

_SMALLEST, _LARGEST = 1e-3, 1e6
# Beyond this epsilon the accountant takes a coarser grid; far beyond it a distribution would fill the memory.
_MOST_DISTRIBUTED, _MOST_MU = 20.0, 30.0
_APART = 0.02  # of two logarithms of noise, to see how epsilon falls with it


def noise_multiplier(budget: Budget) -> float:
    """The noise of one Gaussian release that spends exactly the budget; 0 for an infinite one.

    >>> round(noise_multiplier(Budget(1.0, 1e-5)), 4)
    3.7306
    """
    return gaussian_noise_multiplier(budget.epsilon, budget.delta) if budget.private else 0.0


def split(noise_multiplier: float, shares: Sequence[float]) -> list[float]:
    """Noise multipliers of several Gaussian releases that together cost what one with `noise_multiplier` does.

    Shares are of 1/z^2, which is what adds up under composition; they must sum to 1.

    >>> split(3.0, [0.25, 0.75])
    [6.0, 3.464101615137755]
    """
    if not shares or any(not (math.isfinite(share) and share > 0) for share in shares):
        raise OptionError("shares must be positive numbers that sum to 1")
    if abs(math.fsum(shares) - 1) > 1e-9:
        raise OptionError(f"shares must sum to 1, got {math.fsum(shares)}")
    if not (math.isfinite(noise_multiplier) and noise_multiplier >= 0):
        raise OptionError(f"noise_multiplier must be finite and not negative, got {noise_multiplier}")
    return [noise_multiplier / math.sqrt(share) for share in shares]


def calibrate(events_of: Callable[[float], list[Event]], budget: Budget, *, precision: float = 1e-4) -> float:
    """The smallest noise (to a relative `precision` of epsilon) whose events stay within the budget.

    `events_of` gives the events for a noise multiplier, and must leak less the larger it is. The result was checked
    with the accountant that the ledger and the certificate use; Renyi DP brackets it, then privacy-loss distributions,
    on a coarse grid first, take it further down. Events that sample, whose Renyi curves are slow, start from a guess in
    the place of Renyi DP. An infinite budget gives 0, for which `events_of` is not asked.
    """
    if not budget.private:
        return 0.0

    def exact(noise: float) -> float:
        return accountant.epsilon(events_of(noise), budget.delta).value

    noise, slope = _by_distributions(events_of, budget, precision) or (_by_renyi(events_of, budget, precision), None)
    if noise and accountant.gaussian_precision(_leaves(events_of, noise)) is not None:
        return noise  # what found it was exact already
    # Renyi DP cannot reach very small epsilons; then this one has to find the bracket.
    noise = noise or _first_within(exact, budget.epsilon)
    if not noise:
        raise OptionError(
            f"no amount of noise brings these events to epsilon {budget.epsilon:g}; "
            "raise epsilon or delta, or give the parts without a noise multiplier a smaller share"
        )
    noise = _smallest_within(exact, budget.epsilon, noise, precision, step=0.02, slope=slope)
    # Each stage only tightens the one before, but what is returned was measured, not argued.
    while exact(noise) > budget.epsilon:
        noise *= 1 + precision
    return noise


def _by_renyi(events_of: Callable[[float], list[Event]], budget: Budget, precision: float) -> float | None:
    """Noise that is within the budget and near the smallest; the smallest itself where all events are Gaussian."""

    def rough(noise: float) -> float:
        leaves = _leaves(events_of, noise)
        exact = accountant.analytic_epsilon(leaves, budget.delta)
        return accountant.rdp_epsilon(leaves, budget.delta) if exact is None else exact

    def coarse(noise: float) -> float:
        pld = accountant.pld_epsilon(_leaves(events_of, noise), budget.delta, coarse=True)
        return min(rough(noise), math.inf if pld is None else pld)

    noise = None
    # The price of a question rises a hundredfold from stage to stage, so each starts next to its answer.
    for accounting, tolerance, step in ((rough, precision, 0.5), (coarse, 10 * precision, 0.2)):
        noise = noise or _first_within(accounting, budget.epsilon)
        if noise:
            noise = _smallest_within(accounting, budget.epsilon, noise, tolerance, step=step)
            if accountant.gaussian_precision(_leaves(events_of, noise)) is not None:
                break
    return noise


def _by_distributions(
    events_of: Callable[[float], list[Event]], budget: Budget, precision: float
) -> tuple[float, float | None] | None:
    """The same for events that sample, whose Renyi curves cost more than coarse distributions; and the slope there.

    The search starts from what the central limit says. None where that is no help: no such events, a budget for which
    distributions are too large or floats too coarse, or parts that noise does not shrink.
    """
    if budget.epsilon > _MOST_DISTRIBUTED or not any(_samples(event) for event, _ in _leaves(events_of, 1.0)):
        return None

    def coarse(noise: float) -> float:
        leaves = _leaves(events_of, noise)
        if square_mu(leaves) > _MOST_MU**2:
            return math.inf  # far beyond the budget, and so would be the size of a distribution
        found = loss_distributions.epsilon(leaves, budget.delta, 10 * loss_distributions.INTERVAL)
        return math.inf if found is None else found

    start = _central_limit(events_of, budget)
    noise = start and _first_within(coarse, budget.epsilon, start=start, factor=1.05, most=1.5 * start)
    if noise is None:
        return None
    noise = _smallest_within(coarse, budget.epsilon, noise, precision, step=0.05)
    further = coarse(noise * math.exp(_APART))
    # Here epsilon is the budget's, but for the precision. The coarse grid may be too coarse for tiny ones.
    return noise, math.log(further / budget.epsilon) / _APART if 0 < further < math.inf else None


def _leaves(events_of: Callable[[float], list[Event]], noise: float) -> accountant.Leaves:
    return accountant.flatten(events_of(noise))


def _samples(event: Event) -> bool:
    match event:
        case PoissonSampled() | OneOfMany() | ReplaceOneSampled():
            return True
        case SelfComposed(inner, _):
            return _samples(inner)
        case Parallel(branches):
            return any(_samples(branch) for branch in branches)
    return False


def _central_limit(events_of: Callable[[float], list[Event]], budget: Budget) -> float | None:
    """The noise at which all events together look like one Gaussian release that spends the budget."""
    wanted = gaussian_noise_multiplier(budget.epsilon, budget.delta) ** -2
    low, high = math.log(_SMALLEST), math.log(_LARGEST)
    if square_mu(_leaves(events_of, _LARGEST)) > wanted:
        return None
    while high - low > 1e-3:
        middle = (low + high) / 2
        if square_mu(_leaves(events_of, math.exp(middle))) > wanted:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _first_within(
    epsilon_of: Callable[[float], float],
    limit: float,
    *,
    start: float = 1.0,
    factor: float = 4.0,
    most: float = _LARGEST,
) -> float | None:
    noise = start
    while noise < most:
        if epsilon_of(noise) <= limit:
            return noise
        noise *= factor
    return None


def _smallest_within(
    epsilon_of: Callable[[float], float],
    limit: float,
    within: float,
    precision: float,
    *,
    step: float,
    slope: float | None = None,
) -> float:
    """Walks down from a noise that is within the limit to the smallest one, in as few questions as possible.

    log epsilon against log noise is nearly a straight line, so that secants land soon; a bracket keeps them honest.
    `slope` is that line's, where it is known, and gives the first step.
    """

    def excess(log_noise: float) -> float:
        found = epsilon_of(math.exp(log_noise))
        return math.log(found / limit) if 0 < found < math.inf else math.copysign(1.0, found - limit)

    high = math.log(within)
    high_value = excess(high)
    low, low_value = high, high_value
    if slope is not None and slope < 0 and high_value < -precision:
        step = (high_value + precision / 2) / slope
    while low_value <= 0:
        if low_value > -precision or low - step < math.log(_SMALLEST):
            return math.exp(low)  # close enough, or noise hardly matters: the budget is enormous
        high, high_value = low, low_value
        low -= step
        low_value = excess(low)
        step *= 2
    last, last_value, now, value = high, high_value, low, low_value
    while high_value < -precision and high - low > 1e-12:
        # Aim half the precision below the limit, so that a good guess is also a valid one.
        slope = (value - last_value) / (now - last)
        guess = now - (value + precision / 2) / slope if slope < 0 else low
        last, last_value = now, value
        now = guess if low < guess < high else (low + high) / 2
        value = excess(now)
        if value > 0:
            low = now
        else:
            high, high_value = now, value
    return math.exp(high)
