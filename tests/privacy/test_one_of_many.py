"""One answer drawn in secret among many: the curve is never passed, is reached, and composes."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from understudy.errors import OptionError
from understudy.privacy import (
    Gaussian,
    OneOfMany,
    PoissonSampled,
    ReplaceOneSampled,
    SelfComposed,
    epsilon,
    event_from_dict,
    gaussian_epsilon,
    loss_distributions,
    renyi,
)

DELTA = 1e-5
GRID = np.linspace(-6.0, 6.0, 241)
PLANE = np.stack(np.meshgrid(GRID, GRID), axis=-1)
RATIOS = np.array([0.5, 0.9, 0.99, 1.0, 1.003, 1.02, 1.1, 1.5])


def curve(event) -> np.ndarray:
    single = loss_distributions._single(event, 1e-4)
    return np.asarray(single.get_delta_for_epsilon(np.log(RATIOS)))


def density(centre: np.ndarray, z: float) -> np.ndarray:
    cell = (GRID[1] - GRID[0]) ** 2
    return np.exp(-((PLANE - centre) ** 2).sum(axis=-1) / (2 * z**2)) / (2 * math.pi * z**2) * cell


def hockey_sticks(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([np.maximum(p - ratio * q, 0).sum() for ratio in RATIOS])


def released(others: list[np.ndarray], mine: np.ndarray, rate: float, z: float) -> np.ndarray:
    return (1 - rate) * np.mean([density(c, z) for c in others], axis=0) + rate * density(mine, z)


@pytest.mark.parametrize(("rate", "z"), [(0.1, 0.7), (0.02, 1.0), (0.5, 0.6), (1.0, 1.0)])
def test_no_centres_in_the_ball_pass_the_curve(rate, z):
    bound = curve(OneOfMany(rate, z))
    rng = np.random.default_rng(0)
    closest = np.full(len(RATIOS), np.inf)
    for trial in range(40):
        angles = rng.uniform(0, 2 * np.pi, 5)
        radius = 0.5 if trial % 2 else 0.5 * np.sqrt(rng.uniform(size=5))  # on the rim, or anywhere inside
        centres = np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.reshape(radius, (-1, 1))
        found = hockey_sticks(*(released(list(centres[2:]), mine, rate, z) for mine in centres[:2]))
        assert (found <= bound * (1 + 1e-4) + 1e-7).all()
        closest = np.minimum(closest, bound - found)
    # The worst: the other critics all say what the row's own says without it (above 1), or with it (below).
    left, right = np.array([-0.5, 0.0]), np.array([0.5, 0.0])
    above = hockey_sticks(released([left], right, rate, z), released([left], left, rate, z))
    below = hockey_sticks(released([right], right, rate, z), released([right], left, rate, z))
    assert np.maximum(above, below) == pytest.approx(bound, rel=2e-3, abs=1e-6)


def test_one_direction_of_sampling_is_not_enough():
    """Planted: composing the curve of a removed row alone. Answers can tell more below a ratio of 1."""
    rate, z = 0.1, 0.7
    left, right = np.array([-0.5, 0.0]), np.array([0.5, 0.0])
    p, q = (released([right], mine, rate, z) for mine in (right, left))
    removal = hockey_sticks(released([left], right, rate, z), density(left, z))
    assert (hockey_sticks(p, q) > removal + 1e-4).any()


@pytest.mark.parametrize(
    ("critics", "steps", "z", "told"),
    [(1500, 20_000, 0.831, 0.84), (1000, 20_000, 1.113, 0.73), (250, 5_000, 2.119, 0.59)],
)
def test_noise_for_epsilon_1_of_the_replace_pair_gives_less(critics, steps, z, told):
    found = epsilon([SelfComposed(OneOfMany(1 / critics, z), steps)], DELTA)
    assert found.pld == pytest.approx(told, abs=0.005)
    assert found.pld < found.rdp
    poisson = epsilon([SelfComposed(PoissonSampled(1 / critics, Gaussian(z)), steps)], DELTA)
    assert poisson.pld < found.pld


def test_masses_sum_to_one_and_mirror():
    pmf = loss_distributions._single(OneOfMany(0.01, 0.8), 1e-4)._pmf_remove
    masses, lowest = pmf._probs, pmf._lower_loss
    assert masses.sum() + pmf._infinity_mass == pytest.approx(1.0, abs=1e-14)
    x = np.arange(1, -lowest + 1) * 1e-4
    np.testing.assert_allclose(masses[:-lowest][::-1], np.exp(-x) * masses[-lowest + 1 :], rtol=1e-12)


@pytest.mark.parametrize(("rate", "z"), [(0.01, 1.0), (0.2, 0.5), (0.001, 3.0), (1.0, 1.5)])
def test_renyi_by_another_quadrature(rate, z):
    def integrand(u, alpha):
        ratio = 1 - rate + rate * math.exp(u / z**2)
        density = math.exp(-((u + 0.5) ** 2) / (2 * z**2)) / (z * math.sqrt(2 * math.pi))
        return density * (ratio**alpha + ratio ** (1 - alpha) - ratio - 1)

    found = renyi.curve(OneOfMany(rate, z)).rdp
    for alpha in (1.5, 4.0):
        excess = quad(integrand, 0, 12 * z + 6, args=(alpha,), epsabs=1e-15, epsrel=1e-12, limit=400)[0]
        place = np.argmin(np.abs(renyi.orders() - alpha))
        assert found[place] == pytest.approx(math.log1p(excess) / (alpha - 1), rel=3e-5)
        assert found[place] >= math.log1p(excess) / (alpha - 1)


def test_without_sampling_it_is_a_gaussian():
    assert renyi.curve(OneOfMany(1.0, 3.0)).rdp == pytest.approx(renyi.orders() / (2 * 9), rel=3e-5)
    assert epsilon([OneOfMany(1.0, 3.0)], DELTA).pld == pytest.approx(gaussian_epsilon(3.0, DELTA), rel=1e-3)


def test_it_lies_below_the_replace_pair_and_composes_by_count():
    for rate, z in ((0.01, 1.0), (0.3, 0.6)):
        mine, pair = (epsilon([SelfComposed(kind(rate, z), 50)], DELTA) for kind in (OneOfMany, ReplaceOneSampled))
        assert mine.pld < pair.pld
        assert mine.rdp < pair.rdp
    event = OneOfMany(0.05, 2.0)
    assert epsilon([event] * 6, DELTA) == epsilon([SelfComposed(event, 6)], DELTA)
    assert event_from_dict(event.to_dict()) == event


@pytest.mark.parametrize("bad", [(0.0, 1.0), (1.5, 1.0), (0.1, 0.0), (0.1, math.inf)])
def test_wrong_parameters_are_refused(bad):
    with pytest.raises(OptionError, match="one-of-many"):
        OneOfMany(*bad)
