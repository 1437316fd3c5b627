"""Epsilons of the paper's settings, recomputed: training and picks on one curve."""

import pytest

from understudy.privacy import BoundedRange, Gaussian, PoissonSampled, SelfComposed, epsilon


def training(rows: int, batch: int, noise: float, steps: int) -> SelfComposed:
    return SelfComposed(PoissonSampled(batch / rows, Gaussian(noise)), steps)


@pytest.mark.parametrize(("pick", "joint"), [(0.0005, 0.6334), (0.005, 0.6637), (0.01, 0.7495), (0.02, 1.0343)])
def test_census_with_400_picks(pick: float, joint: float):
    events = [training(39_660, 100, 1.55, 7_945), SelfComposed(BoundedRange(pick), 400)]
    found = epsilon(events, 1 / (2 * 39_660))
    assert found.rdp == pytest.approx(joint, abs=6e-5)
    assert found.value <= found.rdp


@pytest.mark.parametrize(
    ("rows", "batch", "noise", "steps", "expected"),
    [(39_660, 100, 1.55, 7_945, 0.5745), (25_000, 50, 1.5, 12_250, 0.5687), (891, 64, 10, 4_550, 1.3991)],
)
def test_training_alone(rows: int, batch: int, noise: float, steps: int, expected: float):
    found = epsilon([training(rows, batch, noise, steps)], 1 / (2 * rows))
    assert found.pld == pytest.approx(expected, abs=6e-5)
