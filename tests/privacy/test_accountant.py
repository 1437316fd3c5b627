"""The accountants: traps of the library they stand on, closed forms, and brute force."""

import math

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.integrate import quad
from scipy.special import logsumexp

from understudy.errors import OptionError
from understudy.privacy import (
    ApproxDp,
    BoundedRange,
    Gaussian,
    NonPrivate,
    Parallel,
    PoissonSampled,
    PureDp,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
    accountant,
    epsilon,
    gaussian_epsilon,
    loss_distributions,
    renyi,
)
from understudy.privacy.gaussian_dp import gaussian_noise_multiplier, log_delta

DELTA = 1e-5
ONE_OF_EACH = [
    Gaussian(3.0),
    BoundedRange(0.3),
    PureDp(0.2),
    ApproxDp(0.2, 1e-7),
    ZCdp(0.01),
    PoissonSampled(0.05, Gaussian(2.0)),
    ReplaceOneSampled(0.05, 2.0),
    Parallel((Gaussian(10.0), PureDp(0.1))),
]


def hockey_stick(log_p, log_q, x):
    return float(np.maximum(np.exp(log_p) - np.exp(x + log_q), 0).sum())


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_one_by_one_is_the_same_as_by_count(event):
    # A later dp-accounting has an exponential-mechanism event that forgets its count.
    by_count = epsilon([SelfComposed(event, 6)], DELTA)
    one_by_one = epsilon([event] * 6, DELTA)
    nested = epsilon([SelfComposed(SelfComposed(event, 2), 3)], DELTA)
    assert by_count == one_by_one == nested
    assert by_count.value > 1.5 * epsilon([event], DELTA).value
    # The parts themselves, without the counting: curves add, distributions convolve.
    curve = renyi.total([renyi.curve(event)] * 6)
    assert curve.epsilon(DELTA) == pytest.approx(by_count.rdp, rel=1e-9)
    if by_count.pld is not None:
        single = loss_distributions._single(event, 1e-4)
        composed = single
        for _ in range(5):
            composed = composed.compose(single)
        assert composed.get_epsilon_for_delta(DELTA) == pytest.approx(by_count.pld, rel=1e-3)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_order_does_not_matter_and_more_costs_more(event):
    assert epsilon([event, PureDp(0.1)], DELTA) == epsilon([PureDp(0.1), event], DELTA)
    assert epsilon([event, PureDp(0.1)], DELTA).value > epsilon([event], DELTA).value


def test_no_event_costs_nothing():
    assert epsilon([], DELTA).value == 0


@pytest.mark.parametrize("others", [[], [Gaussian(1.0)], [ZCdp(0.1)], [PoissonSampled(0.1, Gaussian(1.0))]])
def test_without_noise_everything_is_lost(others):
    found = epsilon([*others, NonPrivate()], DELTA)
    assert found.value == math.inf
    assert epsilon([Parallel((NonPrivate(), Gaussian(1.0))), *others], DELTA).value == math.inf


def test_each_accountant_says_nothing_where_it_does_not_apply():
    assert epsilon([ZCdp(0.1)], DELTA).pld is None
    assert epsilon([Gaussian(1.0), PureDp(0.1)], DELTA).analytic is None
    assert epsilon([Gaussian(1.0)], 1e-13).pld is None  # below what convolutions resolve
    assert epsilon([SelfComposed(PoissonSampled(0.001, Gaussian(3.0)), 10**6)], 1e-10).pld is None
    assert epsilon([ReplaceOneSampled(0.01, 1.0), ZCdp(0.1)], DELTA).rdp is not None


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan])
def test_delta_must_be_a_chance(delta):
    with pytest.raises(OptionError, match="delta"):
        epsilon([Gaussian(1.0)], delta)


def test_agrees_with_the_library_on_what_it_knows():
    events = [SelfComposed(PoissonSampled(0.01, Gaussian(1.2)), 500), Gaussian(4.0)]
    theirs = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(
                dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.2)), 500
            ),
            dp_accounting.GaussianDpEvent(4.0),
        ]
    )
    found = epsilon(events, DELTA)
    assert found.rdp == pytest.approx(RdpAccountant().compose(theirs).get_epsilon(DELTA), rel=1e-9)
    assert found.pld == pytest.approx(PLDAccountant().compose(theirs).get_epsilon(DELTA), rel=1e-6)


def test_replace_one_doubles_a_plain_gaussian_in_one_library_accountant_only():
    """Why we never charge a plain Gaussian under replace-one: the library's two accountants disagree about it."""
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    event = dp_accounting.GaussianDpEvent(4.0)
    pld = PLDAccountant(relation).compose(event).get_epsilon(DELTA)
    rdp = RdpAccountant(neighboring_relation=relation).compose(event).get_epsilon(DELTA)
    assert pld == pytest.approx(gaussian_epsilon(2.0, DELTA), rel=1e-3)
    assert rdp == pytest.approx(epsilon([Gaussian(4.0)], DELTA).rdp, rel=1e-9)
    # Ours means the same everywhere: standard deviation over sensitivity.
    found = epsilon([Gaussian(4.0)], DELTA)
    assert found.pld == pytest.approx(found.analytic, rel=1e-4)
    assert found.rdp >= found.analytic


@pytest.mark.parametrize(("count", "z", "delta"), [(10_000, 1.0, 2e-11), (100_000, 0.3, 1e-9), (1_000_000, 3.0, 2e-9)])
def test_rounding_of_convolutions_is_set_aside(count, z, delta):
    """Where a Gaussian is convolved with itself, the answer is known: never below it, though floats would say so."""
    # A sampled event cannot be merged into one Gaussian; at rate 1 - 1e-12 it is one.
    leaves = ((PoissonSampled(1 - 1e-12, Gaussian(z * math.sqrt(count))), count),)
    found = loss_distributions.epsilon(leaves, delta)
    assert gaussian_epsilon(z, delta) <= found <= gaussian_epsilon(z, delta) * 1.02


# --- the exact Gaussian formula ---


def exact_log_delta(eps, z):
    with mpmath.workdps(80):
        eps, z = mpmath.mpf(eps), mpmath.mpf(z)
        a, b = 1 / (2 * z) - eps * z, -1 / (2 * z) - eps * z
        return float(mpmath.log(mpmath.ncdf(a) - mpmath.exp(eps) * mpmath.ncdf(b)))


@pytest.mark.parametrize("z", [0.01, 0.1, 0.5, 1.0, 3.7, 50.0, 999.0, 1001.0, 1e4, 1e9, 1e29])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.1, 1.0, 3.0, 8.0])
def test_analytic_delta_keeps_its_digits(z, scale):
    # scale moves epsilon from nothing to far in the tail of this z
    eps = scale / z if scale < 1 else 0.5 / z**2 + scale / z
    assert log_delta(eps, z) == pytest.approx(exact_log_delta(eps, z), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("delta", [1e-15, 1e-10, 1e-6, 1e-3, 0.1])
@pytest.mark.parametrize("eps", [1e-4, 0.01, 1.0, 30.0, 1e4])
def test_noise_and_epsilon_are_inverse_and_never_short(eps, delta):
    z = gaussian_noise_multiplier(eps, delta)
    found = gaussian_epsilon(z, delta)
    assert found <= eps * (1 + 1e-9)
    assert found == pytest.approx(eps, rel=1e-7)


@pytest.mark.parametrize("delta", [1e-6, 1e-15, 1e-30])
def test_however_small_an_epsilon_its_noise_keeps_it(delta):
    found = [gaussian_noise_multiplier(eps, delta) for eps in 10.0 ** -np.arange(0, 40, 2)]
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(1 / (delta * math.sqrt(2 * math.pi)), rel=1e-7)  # all of it is delta
    for eps, z in zip(10.0 ** -np.arange(0, 40, 2), found, strict=True):
        assert gaussian_epsilon(z, delta) <= eps
        assert exact_log_delta(eps, z) <= math.log(delta)


def test_much_noise_needs_no_epsilon():
    assert gaussian_epsilon(1e6, 1e-5) == 0.0


def test_gaussian_releases_add_up_in_one_over_z_squared():
    assert epsilon([Gaussian(3.0), Gaussian(4.0)], DELTA).analytic == pytest.approx(
        gaussian_epsilon(2.4, DELTA), rel=1e-12
    )


# --- discrete noise under the continuous event ---


def discrete_delta(eps, steps, z, dimensions):
    """delta of the discrete Gaussian on a grid of `steps` a coordinate, shifted by (1, ..., 1)/sqrt(dimensions)."""
    sigma = z * steps * math.sqrt(dimensions)
    k = np.arange(-int(12 * sigma) - steps, int(12 * sigma) + 1)
    log_p = -(k**2) / (2 * sigma**2)
    log_q = -((k + steps) ** 2) / (2 * sigma**2)
    total = logsumexp(log_p)
    log_p, log_q = log_p - total, log_q - total
    if dimensions == 2:
        log_p, log_q = np.add.outer(log_p, log_p), np.add.outer(log_q, log_q)
    return hockey_stick(log_p, log_q, eps)


@pytest.mark.parametrize("eps", [1.0, 2.0])
def test_whole_counts_exceed_the_continuous_event(eps):
    """Why the grid is fine: a charge for the continuous Gaussian is short by percents on a grid of whole counts."""
    z = gaussian_noise_multiplier(eps, DELTA)
    excess = max(discrete_delta(e, 1, z, 1) / math.exp(log_delta(e, z)) - 1 for e in np.linspace(eps, 1.1 * eps, 41))
    assert excess > 0.03


@pytest.mark.parametrize("eps", [0.2, 1.0, 2.0, 10.0])
def test_a_fine_grid_stays_within_the_cushion(eps):
    z = gaussian_noise_multiplier(eps, DELTA)
    # Our noise is 2^-14 larger than charged; already 256 steps stay below the charged delta with it.
    wide = z * (1 + 2**-14)
    for e in np.linspace(0.9 * eps, 1.1 * eps, 21):
        assert discrete_delta(e, 256, wide, 1) <= math.exp(log_delta(e, z))


def test_a_fine_grid_is_fine_in_two_dimensions_too():
    z = gaussian_noise_multiplier(1.0, DELTA)
    assert discrete_delta(1.0, 16, z, 2) == pytest.approx(DELTA, rel=1e-4)


# --- Renyi curves ---


def test_replace_pair_without_sampling_is_a_gaussian_at_twice_the_distance():
    assert renyi.curve(ReplaceOneSampled(1.0, 3.0)).rdp == pytest.approx(renyi.orders() * 4 / (2 * 9), rel=1e-9)


@pytest.mark.parametrize(("rate", "z"), [(0.01, 1.0), (0.2, 0.5), (0.001, 3.0)])
def test_replace_pair_by_another_quadrature(rate, z):
    def integrand(x, alpha):
        # With N(0, z^2) taken out of both mixtures.
        p = (1 - rate) + rate * math.exp((2 * x - 1) / (2 * z**2))
        q = (1 - rate) + rate * math.exp((-2 * x - 1) / (2 * z**2))
        return p**alpha * q ** (1 - alpha) * math.exp(-(x**2) / (2 * z**2)) / (z * math.sqrt(2 * math.pi))

    curve = renyi.curve(ReplaceOneSampled(rate, z)).rdp
    for alpha in (1.5, 4.0):
        moment = quad(integrand, -12 * z - 6, 12 * z + 6, args=(alpha,), epsabs=1e-14, epsrel=1e-12, limit=400)[0]
        assert curve[np.argmin(np.abs(renyi.orders() - alpha))] == pytest.approx(
            math.log(moment) / (alpha - 1), rel=1e-6, abs=1e-13
        )


def test_replace_pair_is_dearer_than_poisson_sampling():
    replace = epsilon([SelfComposed(ReplaceOneSampled(0.01, 1.0), 100)], DELTA)
    poisson = epsilon([SelfComposed(PoissonSampled(0.01, Gaussian(1.0)), 100)], DELTA)
    assert replace.rdp > poisson.rdp
    assert replace.pld > poisson.pld
    assert replace.rdp >= replace.pld


def test_pure_dp_is_never_more_than_its_epsilon():
    assert epsilon([PureDp(0.12345)], 1e-9).value <= 0.12345
    assert epsilon([SelfComposed(PureDp(0.1), 3)], 1e-9).value <= 0.3 * (1 + 1e-12)


def test_renyi_bound_of_pure_dp_is_reached_by_randomized_response():
    eps, alpha = 0.7, 3.0
    p = np.array([math.exp(eps), 1.0]) / (1 + math.exp(eps))
    exact = math.log(np.sum(p**alpha * p[::-1] ** (1 - alpha))) / (alpha - 1)
    assert renyi.curve(PureDp(eps)).rdp[np.argmin(np.abs(renyi.orders() - alpha))] == pytest.approx(exact, rel=1e-9)


# --- selection ---


def exponential_pair(rng, eps):
    """Exact log-probabilities of the exponential mechanism on two neighbouring score vectors (sensitivity 1)."""
    scores = rng.normal(0, 3, 6)
    scores[1] = scores[0]
    if rng.random() < 0.5:
        moved, factor = scores + rng.choice([0.0, 1.0, rng.random()], 6), eps
    else:
        moved, factor = scores + rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], 6), eps / 2
    return factor * scores - logsumexp(factor * scores), factor * moved - logsumexp(factor * moved)


@pytest.mark.parametrize("eps", [0.1, 1.0, 4.0])
def test_selection_is_below_its_curve_and_distribution(eps):
    rng = np.random.default_rng(5)
    curve = renyi.curve(BoundedRange(eps)).rdp
    distribution = loss_distributions._single(BoundedRange(eps), 1e-4)
    xs = np.linspace(-1.2 * eps, 1.2 * eps, 25)
    deltas = distribution.get_delta_for_epsilon(xs)
    for _ in range(200):
        log_p, log_q = exponential_pair(rng, eps)
        ratio = log_p - log_q
        assert ratio.max() - ratio.min() <= eps * (1 + 1e-9)
        for order, bound in list(zip(renyi.orders(), curve, strict=True))[::12]:
            assert logsumexp(order * log_p + (1 - order) * log_q) / (order - 1) <= bound + 1e-12
        for x, delta in zip(xs, deltas, strict=True):
            assert hockey_stick(log_p, log_q, x) <= delta + 1e-9


@pytest.mark.parametrize("x", [-0.8, -0.2, 0.0, 0.5, 0.9])
def test_selection_distribution_is_reached_by_a_two_way_choice(x):
    """No smaller curve would do: the extreme pair for t = (E+x)/2 lies on it."""
    eps = 1.0
    t = (eps + x) / 2
    first = (math.exp(eps) - math.exp(t)) / (math.exp(eps) - 1)
    log_p = np.log([first, 1 - first])
    log_q = log_p - np.array([t, t - eps])
    assert np.exp(log_q).sum() == pytest.approx(1.0)
    found = loss_distributions._single(BoundedRange(eps), 1e-4).get_delta_for_epsilon([x])[0]
    assert found == pytest.approx(hockey_stick(log_p, log_q, x), rel=1e-5, abs=1e-8)


def test_selection_is_cheaper_than_pure_dp_under_both_accountants():
    selection, pure = (epsilon([SelfComposed(kind(0.05), 100)], DELTA) for kind in (BoundedRange, PureDp))
    assert selection.rdp < 0.6 * pure.rdp
    assert selection.pld < 0.65 * pure.pld


# --- parallel parts ---


def test_parallel_parts_that_can_be_ordered_cost_the_largest():
    large = SelfComposed(PoissonSampled(0.02, Gaussian(1.0)), 200)
    small = SelfComposed(PoissonSampled(0.01, Gaussian(1.5)), 100)
    assert epsilon([Parallel((small, large, small))], DELTA) == epsilon([large], DELTA)
    assert epsilon([Parallel((Gaussian(2.0), Gaussian(3.0)))], DELTA) == epsilon([Gaussian(2.0)], DELTA)


def test_parallel_parts_that_cross_cost_the_upper_envelope():
    # Few strong steps against many weak ones: neither covers the other at every epsilon.
    parts = PureDp(1.0), Gaussian(3.0)
    both = epsilon([Parallel(parts)], DELTA)
    alone = [epsilon([part], DELTA) for part in parts]
    assert both.analytic is None
    assert both.rdp >= max(one.rdp for one in alone[1:])
    largest = max(one.pld for one in alone)
    assert largest <= both.pld <= largest * 1.001 + 2e-3
    # Composed with something else, still at least as dear as the dearest choice, and dearer than one kind throughout.
    extra = SelfComposed(Parallel(parts), 5)
    choices = [[parts[0]] * k + [parts[1]] * (5 - k) for k in range(6)]
    assert epsilon([extra], DELTA).pld >= max(epsilon(choice, DELTA).pld for choice in choices) - 1e-9
    assert epsilon([extra], DELTA).pld < epsilon([*parts * 5], DELTA).pld


def test_parallel_distribution_is_the_pointwise_largest_delta():
    parts = PureDp(1.0), Gaussian(3.0)
    both = loss_distributions._single(Parallel(parts), 1e-4)
    xs = np.linspace(-1.5, 1.5, 31)
    largest = np.max([loss_distributions._single(p, 1e-4).get_delta_for_epsilon(xs) for p in parts], axis=0)
    assert (both.get_delta_for_epsilon(xs) >= largest - 1e-12).all()
    assert both.get_delta_for_epsilon(xs) == pytest.approx(largest, rel=1e-3, abs=1e-6)


def test_approximate_events_take_their_delta_from_the_total():
    event = ApproxDp(0.5, 1e-6)
    assert epsilon([event], 1e-6).value == pytest.approx(0.5, rel=1e-12)
    assert epsilon([event], 0.9e-6).value == math.inf
    assert epsilon([event, ZCdp(0.05)], 1e-5).rdp == pytest.approx(0.5 + epsilon([ZCdp(0.05)], 9e-6).rdp, rel=1e-9)


# --- asking only as far as needed ---


def test_a_check_stops_at_the_first_accountant_that_agrees(monkeypatch):
    def refuse(*_):
        raise AssertionError("the slow accountant was asked")

    leaves = accountant.flatten([SelfComposed(PoissonSampled(0.01, Gaussian(1.0)), 100)])
    rdp, pld = accountant.rdp_epsilon(leaves, DELTA), accountant.pld_epsilon(leaves, DELTA)
    middle = (rdp + pld) / 2
    assert accountant.exceeds(leaves, middle, DELTA) is None
    assert accountant.exceeds(leaves, pld * 0.99, DELTA) == pld
    monkeypatch.setattr(accountant, "pld_epsilon", refuse)
    assert accountant.exceeds(leaves, rdp, DELTA) is None
    monkeypatch.setattr(accountant, "rdp_epsilon", refuse)
    gaussians = accountant.flatten([Gaussian(1.0)] * 3)
    assert accountant.exceeds(gaussians, 1.0, DELTA) == pytest.approx(gaussian_epsilon(1 / math.sqrt(3), DELTA))


def test_orders_left_out_are_not_told_to_users(caplog):
    """At large rates some series do not converge; the bound holds without those orders, and other notes still come."""
    import logging

    from understudy.privacy import renyi

    renyi.curve.cache_clear()
    with caplog.at_level(logging.WARNING, logger="absl"):
        found = renyi.curve(PoissonSampled(0.27, Gaussian(1.0)))
        assert not caplog.records
        assert np.isfinite(found.epsilon(1e-5))
        logging.getLogger("absl").warning("_compute_log_a_frac failed to converge, said by someone else")
    assert len(caplog.records) == 1, "the filter outlived the call"
