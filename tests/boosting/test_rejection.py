"""Rejection: safe at 0 and 1, proportional to the odds in between, the same as reweighting."""

import numpy as np
import pytest

from understudy.boosting.rejection import FLOOR, acceptance, reweighted
from understudy.errors import OptionError


@pytest.mark.parametrize("values", [[0.0], [1.0], [0.0, 1.0], [0.5] * 7, [0.0] * 5, [1.0] * 5, [1e-300, 1 - 1e-16]])
def test_no_value_breaks_it(values: list[float]):
    chance = acceptance(np.array(values))
    assert ((chance >= FLOOR) & (chance <= 1)).all()
    assert chance.max() == 1


def test_chances_are_proportional_to_the_odds():
    average = np.array([0.2, 0.4, 0.5, 0.6])
    chance = acceptance(average, quantile=1.0, floor=0.0)
    odds = average / (1 - average)
    np.testing.assert_allclose(chance, odds / odds.max())


def test_a_rare_certainty_does_not_reject_all_others():
    average = np.append(np.full(999, 0.5), 1.0)
    assert (acceptance(average) == 1).all()
    weighted = acceptance(average, np.append(np.full(999, 1e-9), 1.0))  # not so rare by weight
    assert (weighted[:999] == FLOOR).all()


def test_reweighting_draws_what_rejection_draws():
    rng = np.random.default_rng(0)
    weights, average = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.5, 0.6])
    drawn = rng.choice(3, size=200_000, p=weights)
    kept = drawn[rng.random(len(drawn)) < acceptance(average, weights)[drawn]]
    np.testing.assert_allclose(np.bincount(kept) / len(kept), reweighted(weights, average), atol=0.005)


@pytest.mark.parametrize("wrong", [[0.5, np.nan], [-0.1], [1.1], [], [[0.5]]])
def test_what_is_no_chance_is_refused(wrong: list):
    with pytest.raises(OptionError, match="from 0 to 1"):
        acceptance(np.array(wrong))


@pytest.mark.parametrize("wrong", [{"quantile": 0.0}, {"quantile": 2.0}, {"floor": -1.0}, {"floor": np.nan}])
def test_wrong_settings_are_refused(wrong: dict):
    with pytest.raises(OptionError, match="quantile and floor"):
        acceptance(np.array([0.5]), **wrong)
