import math

import pytest

from understudy.errors import OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Gaussian,
    Ledger,
    PoissonSampled,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
    epsilon,
    gaussian_epsilon,
    noise_multiplier,
    split,
)
from understudy.privacy.calibrate import calibrate


def two_phases(z):
    return [
        SelfComposed(PoissonSampled(0.01, Gaussian(z)), 3_000),
        SelfComposed(PoissonSampled(0.02, Gaussian(2 * z)), 3_000),
    ]


CASES = {
    "gaussian": lambda z: [Gaussian(z), SelfComposed(Gaussian(2 * z), 4)],
    "sgd": two_phases,
    "selection": lambda z: [Gaussian(z), SelfComposed(BoundedRange(0.2 / z), 50)],
    "replace": lambda z: [SelfComposed(ReplaceOneSampled(1 / 100, z), 3_000)],
    "only renyi": lambda z: [ZCdp(1 / (2 * z * z)), PoissonSampled(0.1, Gaussian(z))],
}


@pytest.mark.parametrize("eps", [0.3, 2.0])
@pytest.mark.parametrize("name", CASES)
def test_the_budget_is_met_and_not_passed(name, eps):
    budget = Budget(eps, 1e-6)
    noise = calibrate(CASES[name], budget)
    found = epsilon(CASES[name](noise), budget.delta).value
    assert 0.9998 * eps <= found <= eps
    assert epsilon(CASES[name](noise * 0.999), budget.delta).value > eps * 0.9998
    ledger = Ledger(budget)
    for event in CASES[name](noise):
        ledger.charge(event, "calibrated")


def test_one_gaussian_agrees_with_the_closed_form():
    budget = Budget(1.0, 1e-5)
    assert calibrate(lambda z: [Gaussian(z)], budget) == pytest.approx(noise_multiplier(budget), rel=2e-4)


@pytest.mark.parametrize("eps", [1e-3, 40.0])
def test_budgets_far_out(eps):
    noise = calibrate(lambda z: [Gaussian(z), BoundedRange(1e-6)], Budget(eps, 1e-6))
    assert epsilon([Gaussian(noise), BoundedRange(1e-6)], 1e-6).value <= eps


def test_an_infinite_budget_needs_no_noise():
    budget = Budget(math.inf, 1e-6)
    assert noise_multiplier(budget) == 0.0
    assert calibrate(two_phases, budget) == 0.0


def test_parts_that_noise_cannot_shrink_are_refused():
    with pytest.raises(OptionError, match="no amount of noise"):
        calibrate(lambda z: [Gaussian(z), BoundedRange(3.0)], Budget(1.0, 1e-6))


def test_split_adds_up_to_the_whole():
    parts = split(3.0, [0.2, 0.3, 0.5])
    assert sum(1 / z**2 for z in parts) == pytest.approx(1 / 9.0, rel=1e-12)
    assert epsilon([Gaussian(z) for z in parts], 1e-6).analytic == pytest.approx(gaussian_epsilon(3.0, 1e-6), rel=1e-9)
    assert split(0.0, [0.5, 0.5]) == [0.0, 0.0]


@pytest.mark.parametrize("shares", [[], [0.5], [0.5, 0.6], [1.5, -0.5], [0.0, 1.0], [math.nan, 1.0]])
def test_shares_must_sum_to_one(shares):
    with pytest.raises(OptionError, match="shares"):
        split(1.0, shares)
