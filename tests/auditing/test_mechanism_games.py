"""White-box games: below every claim, above half of it, and above the claim once the mechanism is broken."""

import numpy as np
import pytest

from understudy.auditing.mechanisms import MECHANISMS, mechanisms_of, play_mechanism
from understudy.errors import OptionError
from understudy.privacy import (
    BoundedRange,
    Gaussian,
    OneOfMany,
    Parallel,
    PoissonSampled,
    PureDp,
    SelfComposed,
    Streams,
    randomness,
)

SURE = 1 - 1e-6


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        # The noise of sampled steps takes long to find: once will do here.
        pytest.param(name, epsilon, marks=pytest.mark.slow if (name, epsilon) == ("sampled-step", 4.0) else ())
        for name in MECHANISMS
        for epsilon in (1.0, 4.0)
    ],
)
def test_games_show_less_than_is_claimed_and_more_than_half_of_it(name, epsilon):
    """Seeded: the same outcome every time. The confidence is that of the bound, 95 %."""
    found = play_mechanism(name, epsilon, streams=Streams.from_seed(1))
    assert found.epsilon / 2 < found.bound.epsilon < found.epsilon
    assert found.holds
    assert epsilon * 0.8 < found.epsilon < epsilon * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_so_they_do_with_noise_from_the_operating_system(name, epsilon):
    found = play_mechanism(name, epsilon, runs=20_000, confidence=SURE)
    assert found.epsilon / 2 < found.bound.epsilon < found.epsilon


class Weaker(randomness.SeededNoise):
    """Noise of two thirds of the width that is asked for."""

    def gaussian_steps(self, scale, count):
        return super().gaussian_steps(scale * 2 / 3, count)

    def gumbel_argmax(self, scores, scale):
        return super().gumbel_argmax(scores, scale * 2 / 3)

    def exponential_argmax(self, scores, scale):
        return super().exponential_argmax(scores, scale * 2 / 3)


@pytest.mark.parametrize("name", ["gaussian", "select", "select-both-ways", "permute-and-flip", "boosting-pick"])
def test_weaker_noise_is_found(name):
    streams = Streams(noise=Weaker(np.random.default_rng(1)), sampling=np.random.default_rng(2), init=0, seeded=True)
    found = play_mechanism(name, 2.0, streams=streams)
    assert not found.holds


def test_a_clip_that_is_too_wide_is_found(monkeypatch):
    """Every gradient counts twice as much as the noise was made for."""
    from understudy.training import ghost, loop

    clipped = ghost.clipped_sum
    monkeypatch.setattr(ghost, "clipped_sum", lambda *args, clip: clipped(*args, clip=2 * clip))
    loop._scan.clear_cache()
    try:
        assert not play_mechanism("training-step", 2.0, streams=Streams.from_seed(1)).holds
        assert not play_mechanism("sampled-step", 1.0, streams=Streams.from_seed(1)).holds
    finally:
        loop._scan.clear_cache()


def test_a_critic_that_is_asked_openly_is_found(monkeypatch):
    """The charge counts on a secret draw: here the critic behind which the row is answers every time."""
    from understudy.synthesizers.gs_wgan import probe

    class AlwaysFirst:
        def integers(self, critics, size, dtype):
            return np.zeros(size, dtype=dtype)

    answers = probe.answers

    def told(asking, *, with_row, streams):
        open_streams = Streams(noise=streams.noise, sampling=AlwaysFirst(), init=0, seeded=True)
        return answers(asking, with_row=with_row, streams=open_streams)

    monkeypatch.setattr(probe, "answers", told)
    assert not play_mechanism("question", 2.0, streams=Streams.from_seed(1)).holds


def test_mechanisms_are_found_by_events():
    events = [
        Gaussian(2.0),
        SelfComposed(PoissonSampled(0.1, Gaussian(1.0)), 10),
        Parallel((SelfComposed(Gaussian(1.0), 3),)),
        SelfComposed(BoundedRange(0.1), 4),
    ]
    assert mechanisms_of(events) == ["gaussian", "select", "select-both-ways", "training-step", "sampled-step"]
    assert mechanisms_of([OneOfMany(0.1, 1.0), PureDp(1.0)]) == ["permute-and-flip", "question"]
    assert mechanisms_of([]) == []


def test_an_unknown_mechanism_is_refused():
    with pytest.raises(OptionError, match="choose from gaussian"):
        play_mechanism("laplace", 1.0)
