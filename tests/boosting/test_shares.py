"""One budget for training and picks: columns as without boosting, picks paid by the steps, one certificate."""

import math

import pytest
from boosting_helpers import PEOPLE

import understudy as us
from understudy.boosting.settings import Boosting
from understudy.boosting.shares import training_budget, training_part
from understudy.errors import OptionError
from understudy.privacy import BoundedRange, Budget, Gaussian, SelfComposed, epsilon
from understudy.privacy.calibrate import noise_multiplier
from understudy.synthesizers.api import METHODS, make_config, method_module

BY_STEPS = ("dp-wgan", "dp-cgan", "dp-auto-gan", "dp-vae", "dp-syn", "gs-wgan")
SHORT = {
    "dp-wgan": {"steps": 20, "batch": 1000, "generator_hidden": (8,), "critic_hidden": (6,), "latent": 4},
    "dp-vae": {"steps": 20, "batch": 1000, "hidden": 8, "latent": 4},
    "gs-wgan": {"steps": 20, "generator_hidden": (8,), "critic_hidden": 4, "latent": 4},
}
BUDGET = Budget(1.0, 1e-6)


def part_of(method: str, budget: Budget = BUDGET, schema: us.Schema = PEOPLE, **options):
    module = method_module(method)
    return training_part(module, make_config(module, options), schema, budget, Boosting())


@pytest.mark.parametrize("method", SHORT)
def test_columns_have_the_same_noise_with_and_without_boosting(rows, method: str):
    fits = [
        us.fit(rows, PEOPLE, method=method, epsilon=1.0, delta=1e-6, boost=boost, **SHORT[method])
        for boost in (False, {"rounds": 30, "pool_rows": 500})
    ]
    plain, boosted = fits
    columns = [model.certificate.entries[0].event for model in fits]
    assert all(isinstance(event, Gaussian) for event in columns)
    assert columns[1].noise_multiplier == pytest.approx(columns[0].noise_multiplier, rel=0.01)
    # All that the rows were asked for stands in the certificate, and comes to the one budget.
    events = [entry.event for entry in boosted.certificate.entries]
    assert len(events) == len(plain.certificate.entries) + 1
    assert isinstance(events[-1], SelfComposed)
    assert isinstance(events[-1].event, BoundedRange)
    assert epsilon(events, 1e-6).value == pytest.approx(boosted.certificate.epsilon, rel=1e-6)
    assert boosted.certificate.epsilon <= 1.0 * (1 + 1e-6)
    assert boosted.certificate.epsilon == pytest.approx(1.0, rel=2e-3)
    assert boosted.certificate.holds(release=True)


@pytest.mark.parametrize("method", BY_STEPS)
def test_what_is_asked_for_is_of_the_whole_budget(method: str):
    config, part = part_of(method, one_way_share=0.34)
    assert config.one_way_share == pytest.approx(0.4)
    assert part == training_budget(BUDGET, 0.15)
    # Shares are of 1/z^2: a release with that share of the part has the noise of one with 0.34 of the whole.
    assert noise_multiplier(part) / math.sqrt(config.one_way_share) == pytest.approx(
        noise_multiplier(BUDGET) / math.sqrt(0.34), rel=1e-6
    )


def test_the_rule_sees_the_whole_budget():
    """By what is left of it the rule would ask for more."""
    module = method_module("dp-wgan")
    config, part = part_of("dp-wgan")
    whole = module.one_way_share_of(module.Config(), PEOPLE, BUDGET)
    assert 0.15 < whole < module.one_way_share_of(module.Config(), PEOPLE, part)
    assert config.one_way_share == pytest.approx(whole / 0.85)


def test_steps_keep_a_tenth_where_columns_would_take_all():
    few = PEOPLE.model_copy(update={"rows": 100})
    assert part_of("dp-wgan", schema=few)[0].one_way_share == 0.9
    with pytest.raises(OptionError, match=r"one_way_share must be at most 0\.765"):
        part_of("dp-wgan", one_way_share=0.8)


@pytest.mark.parametrize("method", sorted(set(METHODS) - set(BY_STEPS)))
def test_other_methods_train_as_they_would_on_less(method: str):
    config, part = part_of(method)
    assert config == make_config(method_module(method), {})
    assert part == training_budget(BUDGET, 0.15)


def test_checkpoints_are_kept_unless_told():
    assert part_of("dp-wgan")[0].checkpoints == 10
    assert part_of("dp-wgan", steps=4)[0].checkpoints == 4
    assert part_of("dp-wgan", checkpoints=3)[0].checkpoints == 3


def test_without_privacy_nothing_is_split():
    config, part = part_of("dp-wgan", Budget(math.inf, 1e-6))
    assert config.one_way_share is None
    assert part.epsilon == math.inf
