import numpy as np
import pytest
from scipy.stats import chisquare

from understudy.errors import OptionError
from understudy.privacy import Streams


def draws(streams):
    return streams.noise.gaussian_steps(1e6, 5).tolist(), streams.sampling.random(5).tolist(), streams.init


def test_a_seed_repeats_everything():
    assert draws(Streams.from_seed(3)) == draws(Streams.from_seed(3))
    assert draws(Streams.from_seed(3)) != draws(Streams.from_seed(4))
    assert Streams.from_seed(3).seeded


def test_entropy_repeats_nothing():
    first, second = Streams.from_entropy(), Streams.from_entropy()
    assert not first.seeded
    assert all(a != b for a, b in zip(draws(first), draws(second), strict=True))


def test_drawing_from_one_stream_moves_no_other():
    quiet, busy = Streams.from_seed(3), Streams.from_seed(3)
    busy.noise.gaussian_steps(1.0, 1_000)
    busy.noise.words(7)
    assert quiet.sampling.random() == busy.sampling.random()
    busy = Streams.from_seed(3)
    busy.sampling.random(1_000)
    assert (quiet.noise.gaussian_steps(1e6, 5) == busy.noise.gaussian_steps(1e6, 5)).all()


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7", None])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(OptionError, match="seed"):
        Streams.from_seed(seed)


@pytest.mark.parametrize("streams", [Streams.from_seed(1), Streams.from_entropy()], ids=["seeded", "entropy"])
def test_words_are_uniform(streams):
    words = streams.noise.words(4_000)
    assert words.dtype == np.uint32
    words ^= np.uint32(1)  # writable: a read-only buffer cannot become a key
    assert chisquare(np.bincount(words >> 28, minlength=16)).pvalue > 1e-6
    assert chisquare(np.bincount(words & 15, minlength=16)).pvalue > 1e-6


def fit_to_discrete_gaussian(streams, scale):
    """p-value of 10,000 draws against the exact probabilities, tails pooled."""
    noise = streams.noise.gaussian_steps(scale, 10_000)
    assert noise.dtype == np.int64
    k = np.arange(-60, 61)
    exact = np.exp(-(k**2) / (2 * scale**2))
    edge = int(2.5 * scale) + 1
    pooled = np.bincount(np.clip(k, -edge, edge) + edge, weights=exact / exact.sum())
    return chisquare(np.bincount(np.clip(noise, -edge, edge) + edge, minlength=2 * edge + 1), 10_000 * pooled).pvalue


@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_entropy_noise_is_the_discrete_gaussian_even_on_a_coarse_grid(scale):
    assert fit_to_discrete_gaussian(Streams.from_entropy(), scale) > 1e-6


def test_seeded_noise_is_only_close_to_it_on_a_fine_grid():
    assert fit_to_discrete_gaussian(Streams.from_seed(1), 0.5) < 1e-6
    assert fit_to_discrete_gaussian(Streams.from_seed(1), 8.0) > 1e-6


def test_scales_far_out_keep_their_size():
    for scale in (2.0**14, 2.0**40, 2.0**52):
        for streams in (Streams.from_seed(2), Streams.from_entropy()):
            noise = streams.noise.gaussian_steps(scale, 3_000)
            assert noise.std() / scale == pytest.approx(1.0, abs=0.08)
