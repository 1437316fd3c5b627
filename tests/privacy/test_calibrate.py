import math
from collections import Counter

import pytest

from understudy.errors import OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Gaussian,
    Ledger,
    OneOfMany,
    Parallel,
    PoissonSampled,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
    epsilon,
    gaussian_epsilon,
    loss_distributions,
    noise_multiplier,
    renyi,
    split,
)
from understudy.privacy.accountant import flatten
from understudy.privacy.calibrate import calibrate
from understudy.privacy.central_limit import square_mu


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
    "few steps": lambda z: [Gaussian(2 * z), SelfComposed(PoissonSampled(0.6, Gaussian(3 * z)), 20)],
    "one of many": lambda z: [Gaussian(40.0), SelfComposed(OneOfMany(1 / 100, z), 300)],
    "sampling and selection": lambda z: [SelfComposed(PoissonSampled(0.05, Gaussian(z)), 50), BoundedRange(0.5 / z)],
    "parallel": lambda z: [Parallel((SelfComposed(PoissonSampled(0.1, Gaussian(z)), 9), Gaussian(2 * z)))],
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


@pytest.mark.parametrize(("eps", "delta"), [(1e-3, 1e-6), (0.05, 1e-9), (1.0, 1e-13), (15.0, 1e-6), (25.0, 1e-6)])
def test_steps_that_sample_meet_budgets_far_out(eps, delta):
    """Where floats cannot resolve delta, or distributions are too large, Renyi DP still finds the noise."""
    budget = Budget(eps, delta)
    noise = calibrate(CASES["few steps"], budget)
    assert 0.9998 * eps <= epsilon(CASES["few steps"](noise), delta).value <= eps


def test_steps_that_sample_are_calibrated_with_few_questions(monkeypatch):
    """Renyi curves of sampled steps and fine distributions are what calibration takes its time for."""
    asked = Counter()
    curve, compose = renyi._poisson_sampled, loss_distributions._compose
    monkeypatch.setattr(renyi, "_poisson_sampled", lambda event: asked.update(["renyi"]) or curve(event))
    monkeypatch.setattr(
        loss_distributions, "_compose", lambda leaves, interval: asked.update([interval]) or compose(leaves, interval)
    )
    noise = calibrate(lambda z: [Gaussian(3 * z), SelfComposed(PoissonSampled(0.37, Gaussian(z)), 41)], Budget(1, 1e-6))
    assert 1 < noise < 20
    assert asked["renyi"] <= 3
    assert asked[loss_distributions.INTERVAL] <= 3
    assert sum(asked.values()) <= 15


def test_the_central_limit_is_near_for_many_small_steps():
    events = [SelfComposed(PoissonSampled(0.01, Gaussian(2.0)), 10_000), Gaussian(5.0)]
    guess = gaussian_epsilon(square_mu(flatten(events)) ** -0.5, 1e-6)
    assert guess == pytest.approx(epsilon(events, 1e-6).value, rel=0.05)


def test_parts_that_noise_cannot_shrink_are_refused():
    with pytest.raises(OptionError, match="no amount of noise"):
        calibrate(lambda z: [PoissonSampled(0.1, Gaussian(z)), BoundedRange(3.0)], Budget(1.0, 1e-6))
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
