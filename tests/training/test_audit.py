"""Gradient canaries against the training core: what an attacker shows stays below the claim, and comes near it."""

import pytest
import training_checks as checks

from understudy.training.dpsgd import DpSgd


def test_canaries_show_less_than_is_claimed_and_more_than_half_of_it():
    checks.check_audit()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "noise_multiplier", "run"), [(0.5, 1.0, 4), (0.1, 0.6, 10), (1.0, 1.5, 2), (0.25, 1.0, 4)]
)
def test_canaries_over_many_more_runs(rate, noise_multiplier, run):
    plan = DpSgd(rate=rate, steps=50_000 * run, clip=0.3, noise_multiplier=noise_multiplier, expected_batch=16 * rate)
    checks.check_audit(plan, run=run, delta=1e-2)
