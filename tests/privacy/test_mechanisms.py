"""Noise, charge, refusal: each with the right scale accepted and a wrong one rejected."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from understudy.errors import BudgetError, DataError, OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Gaussian,
    Ledger,
    NonPrivate,
    PureDp,
    Streams,
    gaussian,
    select,
    select_permute_and_flip,
)
from understudy.privacy.mechanisms import STEPS, grid_step

SECRET = 987_654.321


def open_ledger():
    return Ledger(Budget(100.0, 1e-6))


def no_limit():
    return Ledger(Budget(math.inf, 1e-6))


def streams(seeded):
    return Streams.from_seed(11) if seeded else Streams.from_entropy()


def release(values, *, sensitivity=2.0, noise=3.0, seeded=True, ledger=None):
    return gaussian(
        values,
        l2_sensitivity=sensitivity,
        noise_multiplier=noise,
        streams=streams(seeded),
        ledger=ledger or open_ledger(),
        purpose="table",
    )


def pick(scores, *, sensitivity=1.0, eps=1.0, monotone=True, seeded=True, ledger=None, by=select, source=None):
    return by(
        scores,
        sensitivity=sensitivity,
        epsilon=eps,
        monotone=monotone,
        streams=source or streams(seeded),
        ledger=ledger or open_ledger(),
        purpose="choice",
    )


@pytest.mark.parametrize("values", [np.full(20_000, 7), np.full((100, 200), 7.3)], ids=["counts", "reals"])
@pytest.mark.parametrize("seeded", [True, False])
def test_noise_has_the_right_scale_and_no_other(values, seeded):
    noise = (release(values, seeded=seeded) - values).ravel()
    # 20,000 draws know their standard deviation to half a percent; every bound is five of its errors wide.
    assert noise.std() == pytest.approx(6.0, rel=0.025)
    assert kstest(noise, norm(scale=6.0).cdf).pvalue > 1e-6
    for wrong in (5.1, 6.9):
        assert kstest(noise, norm(scale=wrong).cdf).pvalue < 1e-6
    # Neither neighbours nor the blocks that are drawn in parallel go together.
    for lag in (1, 10_000):
        assert abs(np.corrcoef(noise[lag:], noise[:-lag])[0, 1]) < 0.06


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("values", [np.zeros(50, int), np.zeros(50) + 0.1])
def test_results_lie_on_the_public_grid(values, seeded):
    out = release(values, seeded=seeded)
    step = grid_step(values, 2.0, 3.0)
    assert math.log2(step) == int(math.log2(step))
    assert 2.0 / step >= 256
    assert (out / step == np.rint(out / step)).all()
    assert len(set((out / step % 2).tolist())) == 2  # the finest bit is used


@pytest.mark.parametrize("seeded", [True, False])
def test_the_charge_comes_first_and_a_refusal_leaves_no_trace(seeded):
    class Untouched:
        def __array__(self, *_, **__):
            raise AssertionError("values were looked at")

    ledger = Ledger(Budget(1.0, 1e-6))
    release(np.zeros(3), noise=6.0, seeded=seeded, ledger=ledger)
    assert ledger.events == (Gaussian(6.0),)
    with pytest.raises(BudgetError):
        release(np.zeros(3), noise=5.0, seeded=seeded, ledger=ledger)
    with pytest.raises(BudgetError):
        pick(Untouched(), eps=3.0, seeded=seeded, ledger=ledger)
    assert ledger.events == (Gaussian(6.0),)


@pytest.mark.parametrize("values", [[math.nan, SECRET], [math.inf, SECRET], [SECRET * 1e300]])
def test_values_that_are_no_numbers_are_refused_without_showing_one(values):
    ledger = open_ledger()
    with pytest.raises(DataError) as caught:
        release(np.array(values), ledger=ledger)
    assert "987" not in str(caught.value)
    assert caught.value.__cause__ is None
    # That a value was bad is told by the rows, so the charge stands.
    assert ledger.events == (Gaussian(3.0),)


@pytest.mark.parametrize(
    "given",
    [
        {"sensitivity": 0.0},
        {"sensitivity": -1.0},
        {"sensitivity": math.inf},
        {"sensitivity": math.nan},
        {"noise": -1.0},
        {"noise": math.nan},
        {"noise": math.inf},
        {"noise": 1e14},
        {"sensitivity": 1e-15},
        {"values": np.array(["a"])},
        {"values": np.array([True])},
    ],
)
def test_wrong_options_cost_nothing(given):
    ledger = open_ledger()
    with pytest.raises(OptionError):
        release(**({"values": np.zeros(2, int)} | given), ledger=ledger)
    assert ledger.events == ()


def test_noise_does_not_depend_on_the_values():
    first, second = np.array([0.0, 1.5, -3.0]), np.array([1e6, 0.25, 2.0**-30])
    difference = release(first) - release(second)
    assert difference == pytest.approx(first - second, abs=2 * grid_step(first, 2.0, 3.0))


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=12),
    st.lists(st.floats(-1, 1), min_size=12, max_size=12),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=100, deadline=None)
def test_rounding_moves_neighbours_apart_by_less_than_was_added(values, direction, sensitivity):
    values = np.array(values)
    move = np.array(direction[: len(values)])
    length = np.linalg.norm(move)
    neighbour = values + (move / length * sensitivity if length > 1e-9 else 0)
    step = grid_step(values, sensitivity, 2.0)
    rounded = [np.rint(x / step) * step for x in (values, neighbour)]
    allowed = np.linalg.norm(values - neighbour) + step * math.sqrt(len(values))
    assert np.linalg.norm(rounded[0] - rounded[1]) <= allowed * (1 + 1e-12)
    assert step * math.sqrt(len(values)) <= sensitivity / STEPS


def test_rounding_bound_is_reached():
    # Two reals just on either side of a half step are a whole step apart once rounded.
    step = grid_step(np.zeros(1), 1.0, 1.0)
    a, b = 0.5 * step * (1 - 1e-9), 0.5 * step * (1 + 1e-9)
    assert abs(np.rint(a / step) - np.rint(b / step)) == 1


def test_counts_are_never_rounded():
    step = grid_step(np.zeros(3, int), math.sqrt(7), 0.1)
    assert (1 / step).is_integer()
    assert grid_step(np.zeros(3, int), 1e9, 5.0) == 1.0
    exact = release(np.array([3, 2**30, 0], dtype=np.uint64), noise=1e-3, sensitivity=1.0, ledger=no_limit())
    assert exact == pytest.approx([3, 2**30, 0], abs=0.02)


def test_a_huge_budget_recovers_the_answer():
    out = release(np.array([1.25, -7.0]), noise=1e-9, ledger=no_limit())
    assert out == pytest.approx([1.25, -7.0], abs=1e-7)


def test_no_noise_only_without_a_budget():
    values = np.array([1.1, SECRET])
    ledger = no_limit()
    assert (release(values, noise=0, ledger=ledger) == values).all()
    assert ledger.events == (NonPrivate(),)
    with pytest.raises(BudgetError):
        release(values, noise=0)


@pytest.mark.parametrize("seeded", [True, False])
def test_shapes_are_kept(seeded):
    for shape in ((), (0,), (3,), (2, 3)):
        assert release(np.zeros(shape), seeded=seeded).shape == shape


def test_seeds_repeat_and_entropy_does_not():
    values = np.zeros(8)
    assert (release(values) == release(values)).all()
    assert (release(values, seeded=False) != release(values, seeded=False)).any()


# --- selection ---


def softmax(scores):
    weights = np.exp(np.asarray(scores) - np.max(scores))
    return weights / weights.sum()


def permute_and_flip(scores, scale):
    """Exact probabilities, by the definition: visit in random order, take with probability exp((s - max)/scale)."""
    from itertools import permutations

    keep = np.exp((np.asarray(scores) - np.max(scores)) / scale)
    out = np.zeros(len(keep))
    orders = list(permutations(range(len(keep))))
    for order in orders:
        # Rejected candidates leave; the best is always taken when it comes up.
        still = 1.0
        for j in order:
            out[j] += still * keep[j]
            still *= 1 - keep[j]
    return out / len(orders)


SCORES = [0.0, 1.5, 1.5, -2.0, 2.25]


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("by", [select, select_permute_and_flip])
def test_choices_have_the_right_chances_and_no_others(by, monotone, seeded):
    draws = 4_000
    source = streams(seeded)
    ledger = no_limit()
    chosen = [
        pick(SCORES, sensitivity=0.5, eps=0.6, monotone=monotone, ledger=ledger, by=by, source=source)
        for _ in range(draws)
    ]
    counts = np.bincount(chosen, minlength=5)

    def chances(scale):
        return softmax(np.array(SCORES) / scale) if by is select else permute_and_flip(SCORES, scale)

    scale = 0.5 / 0.6 * (1 if monotone else 2)
    assert chisquare(counts, draws * chances(scale)).pvalue > 1e-6
    for wrong in (scale * 2, scale / 2):
        assert chisquare(counts, draws * chances(wrong)).pvalue < 1e-6


def test_only_an_index_comes_back_and_the_right_event_is_charged():
    ledger = open_ledger()
    index = pick(SCORES, eps=0.5, ledger=ledger)
    assert type(index) is int
    assert type(pick(SCORES, eps=0.25, ledger=ledger, by=select_permute_and_flip)) is int
    assert ledger.events == (BoundedRange(0.5), PureDp(0.25))


@pytest.mark.parametrize("monotone", [True, False])
def test_choices_of_neighbours_have_a_bounded_range(monotone):
    """All neighbours of small score vectors, ties and all: log-ratios span at most epsilon, and some reach it."""
    from itertools import product

    eps, reached = 1.0, 0.0
    factor = eps if monotone else eps / 2
    moves = (0.0, 1.0) if monotone else (-1.0, 0.0, 1.0)
    for scores in product((0.0, 1.0, 3.0), repeat=3):
        for move in product(moves, repeat=3):
            ratio = np.log(softmax(factor * np.array(scores)) / softmax(factor * (np.array(scores) + move)))
            reached = max(reached, np.ptp(ratio))
    assert reached <= eps * (1 + 1e-9)
    assert reached == pytest.approx(eps)


def test_permute_and_flip_is_pure_but_not_of_bounded_range():
    """Why it is charged as PureDp: its log-ratios span more than epsilon."""
    eps = 1.0
    ratio = np.log(permute_and_flip([0.0, 0.0, 5.0], 2 / eps) / permute_and_flip([1.0, -1.0, 4.0], 2 / eps))
    assert np.abs(ratio).max() <= eps
    widest = max(
        np.ptp(np.log(permute_and_flip([a, b], 2.0) / permute_and_flip([a + 1, b - 1], 2.0)))
        for a in np.linspace(-3, 3, 25)
        for b in (0.0,)
    )
    assert widest > eps * 1.1


def test_without_a_limit_the_best_is_taken():
    ledger = no_limit()
    for by in (select, select_permute_and_flip):
        assert pick(SCORES, eps=math.inf, ledger=ledger, by=by) == 4
        assert pick([1.0, 2.0, 2.0], eps=math.inf, ledger=ledger, by=by) == 1
    assert set(ledger.events) == {NonPrivate()}
    with pytest.raises(BudgetError):
        pick(SCORES, eps=math.inf)


@pytest.mark.parametrize("scores", [[math.nan, SECRET], [math.inf, SECRET], [-math.inf, SECRET]])
@pytest.mark.parametrize("by", [select, select_permute_and_flip])
def test_scores_that_are_no_numbers_are_refused_without_showing_one(by, scores):
    with pytest.raises(DataError) as caught:
        pick(scores, by=by)
    assert "987" not in str(caught.value)


@pytest.mark.parametrize("given", [{"eps": 0.0}, {"eps": -1.0}, {"eps": math.nan}, {"sensitivity": 0.0}])
def test_wrong_selection_options_cost_nothing(given):
    ledger = open_ledger()
    with pytest.raises(OptionError):
        pick(SCORES, ledger=ledger, **given)
    assert ledger.events == ()


@pytest.mark.parametrize("seeded", [True, False])
def test_extreme_scores_are_no_trouble(seeded):
    assert pick([0.0, 1e12, -1e15], seeded=seeded) == 1
    assert pick([5.0], seeded=seeded) == 0


def test_prepaid_rounds_serve_a_mechanism():
    ledger = Ledger(Budget(1.0, 1e-6))
    rounds = ledger.prepay(BoundedRange(0.1), 2, "choices")
    for _ in range(2):
        pick(SCORES, eps=0.1, ledger=rounds)
    with pytest.raises(BudgetError):
        pick(SCORES, eps=0.1, ledger=rounds)
    assert len(ledger.entries) == 1
