"""Confidence intervals of shares, 95 % throughout."""

import math

Z = 1.959963984540054


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """Wilson's interval of a share, which stays inside [0, 1] and is sound for small counts.

    >>> tuple(round(end, 4) for end in wilson(0, 10))
    (0.0, 0.2775)
    """
    share = successes / trials
    centre = (share + Z**2 / (2 * trials)) / (1 + Z**2 / trials)
    spread = Z / (1 + Z**2 / trials) * math.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2))
    return max(0.0, centre - spread), min(1.0, centre + spread)


def difference(first: float, first_trials: int, second: float, second_trials: int) -> tuple[float, float]:
    """Newcombe's interval of the difference of two independent shares, from their Wilson intervals.

    >>> tuple(round(end, 4) for end in difference(56, 70, 48, 80))
    (0.0524, 0.3339)
    """
    one, two = first / first_trials, second / second_trials
    low_one, high_one = wilson(first, first_trials)
    low_two, high_two = wilson(second, second_trials)
    gap = one - two
    low = gap - math.hypot(one - low_one, high_two - two)
    high = gap + math.hypot(high_one - one, two - low_two)
    return max(-1.0, low), min(1.0, high)
