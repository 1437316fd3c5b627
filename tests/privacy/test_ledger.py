import math
import time

import pytest

from understudy.errors import BudgetError, OptionError
from understudy.privacy import (
    BoundedRange,
    Budget,
    Entry,
    Gaussian,
    Ledger,
    NonPrivate,
    PoissonSampled,
    SelfComposed,
    accountant,
    default_delta,
    epsilon,
    noise_multiplier,
    split,
)

BUDGET = Budget(1.0, 1e-5)


@pytest.mark.parametrize(
    ("eps", "delta", "option"),
    [
        (0, 1e-6, "epsilon"),
        (-1, 1e-6, "epsilon"),
        (math.nan, 1e-6, "epsilon"),
        ("1", 1e-6, "epsilon"),
        (True, 1e-6, "epsilon"),
        (1e300, 1e-6, "epsilon"),
        (1, 0, "delta"),
        (1, 1, "delta"),
        (1, math.nan, "delta"),
        (1, None, "delta"),
    ],
)
def test_budgets_that_make_no_sense(eps, delta, option):
    with pytest.raises(OptionError, match=f"^{option} must"):
        Budget(eps, delta)


def test_default_delta():
    assert default_delta(10) == 1e-6
    assert default_delta(10**8) == pytest.approx(1e-9)
    for bad in (0, -5, 1.5, True):
        with pytest.raises(OptionError, match="rows"):
            default_delta(bad)


def test_a_charge_is_written_down_with_its_purpose():
    ledger = Ledger(BUDGET)
    ledger.charge(Gaussian(10.0), "one-way tables")
    ledger.charge(BoundedRange(0.1), "choice of a pair")
    assert ledger.entries == (
        Entry(Gaussian(10.0), "one-way tables"),
        Entry(BoundedRange(0.1), "choice of a pair"),
    )
    assert ledger.spent() == epsilon([Gaussian(10.0), BoundedRange(0.1)], 1e-5).value
    with pytest.raises(AttributeError):
        ledger.entries.append  # noqa: B018


@pytest.mark.parametrize(
    "event", [Gaussian(3.0), BoundedRange(1.1), SelfComposed(PoissonSampled(0.1, Gaussian(1.0)), 100), NonPrivate()]
)
def test_a_refusal_leaves_no_trace(event):
    ledger = Ledger(BUDGET)
    ledger.charge(Gaussian(8.0), "first")
    before = ledger.entries, ledger.spent()
    with pytest.raises(BudgetError, match="second"):
        ledger.charge(event, "second")
    assert (ledger.entries, ledger.spent()) == before
    ledger.charge(Gaussian(8.0), "what still fits")


def test_shares_of_a_budget_fit_to_the_last_digit():
    for eps in (0.01, 0.3, 1.0, 7.7, 100.0):
        budget = Budget(eps, 1e-7)
        ledger = Ledger(budget)
        for z in split(noise_multiplier(budget), [0.1] * 10):
            ledger.charge(Gaussian(z), "a tenth")
        assert ledger.spent() == pytest.approx(eps, rel=1e-8)
        with pytest.raises(BudgetError):
            ledger.charge(Gaussian(20 * noise_multiplier(budget)), "a drop more")


def test_the_slow_accountant_decides_where_the_fast_one_would_refuse():
    event = SelfComposed(PoissonSampled(0.01, Gaussian(1.0)), 100)
    found = epsilon([event], 1e-5)
    assert found.pld < found.rdp
    ledger = Ledger(Budget((found.pld + found.rdp) / 2, 1e-5))
    ledger.charge(event, "training")
    with pytest.raises(BudgetError):
        Ledger(Budget(found.pld * 0.999, 1e-5)).charge(event, "training")


def test_without_a_budget_everything_is_written_down():
    ledger = Ledger(Budget(math.inf, 1e-5))
    ledger.charge(NonPrivate(), "exact tables")
    ledger.charge(Gaussian(0.1), "little noise")
    assert ledger.spent() == math.inf


@pytest.mark.parametrize(("event", "purpose"), [(1.0, "x"), (None, "x"), (Gaussian(9.0), ""), (Gaussian(9.0), None)])
def test_charges_need_an_event_and_a_purpose(event, purpose):
    ledger = Ledger(BUDGET)
    with pytest.raises(OptionError):
        ledger.charge(event, purpose)
    assert ledger.entries == ()


def test_charges_stay_cheap_however_many_there_are():
    ledger = Ledger(Budget(20.0, 1e-5))
    ledger.charge(BoundedRange(0.01), "warm up")
    start = time.process_time()
    for _ in range(1_000):
        ledger.charge(BoundedRange(0.01), "round")
    assert time.process_time() - start < 5
    assert accountant.flatten(ledger.events) == ((BoundedRange(0.01), 1_001),)


def test_rounds_paid_in_advance():
    ledger = Ledger(BUDGET)
    rounds = ledger.prepay(BoundedRange(0.05), 3, "choices")
    assert ledger.events == (SelfComposed(BoundedRange(0.05), 3),)
    for _ in range(3):
        rounds.charge(BoundedRange(0.05), "round")
    with pytest.raises(BudgetError, match="used up"):
        rounds.charge(BoundedRange(0.05), "round")
    again = ledger.prepay(BoundedRange(0.05), 3, "choices")
    with pytest.raises(BudgetError, match="not what was paid"):
        again.charge(BoundedRange(0.06), "round")
    assert again.left == 3
    with pytest.raises(BudgetError):
        ledger.prepay(BoundedRange(0.05), 10_000, "too many")
