import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    event_from_dict,
)

positive = st.floats(min_value=1e-6, max_value=1e6)
rates = st.floats(min_value=1e-6, max_value=1.0)
simple = st.one_of(
    st.builds(Gaussian, positive),
    st.builds(BoundedRange, positive),
    st.builds(PureDp, positive),
    st.builds(ApproxDp, positive, st.floats(min_value=1e-12, max_value=0.5)),
    st.builds(ZCdp, positive),
    st.builds(PoissonSampled, rates, st.builds(Gaussian, positive)),
    st.builds(ReplaceOneSampled, rates, positive),
    st.builds(NonPrivate),
)
events = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(SelfComposed, inner, st.integers(1, 10**6)),
        st.builds(Parallel, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=4,
)


@given(events)
@settings(deadline=None)
def test_json_round_trip(event):
    again = event_from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False)))
    assert again == event
    assert hash(again) == hash(event)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, -math.inf, True, "2", None])
@pytest.mark.parametrize(
    "make",
    [
        Gaussian,
        BoundedRange,
        PureDp,
        ZCdp,
        lambda value: ApproxDp(value, 1e-6),
        lambda value: ApproxDp(1.0, value),
        lambda value: PoissonSampled(value, Gaussian(1.0)),
        lambda value: ReplaceOneSampled(value, 1.0),
        lambda value: ReplaceOneSampled(0.1, value),
    ],
)
def test_parameters_must_be_positive_finite_numbers(make, bad):
    with pytest.raises(OptionError, match="must be"):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PoissonSampled(1.5, Gaussian(1.0)),
        lambda: PoissonSampled(0.5, PureDp(1.0)),
        lambda: ReplaceOneSampled(1.01, 1.0),
        lambda: ApproxDp(1.0, 1.0),
        lambda: SelfComposed(Gaussian(1.0), 0),
        lambda: SelfComposed(Gaussian(1.0), 2.0),
        lambda: SelfComposed(Gaussian(1.0), True),
        lambda: SelfComposed(Gaussian(1.0), 10**12),
        lambda: SelfComposed(1.0, 2),
        lambda: Parallel(()),
        lambda: Parallel((Gaussian(1.0), "gaussian")),
    ],
)
def test_wrong_parts_are_refused(make):
    with pytest.raises(OptionError):
        make()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"type": "laplace", "scale": 1.0},
        {"type": ["gaussian"]},
        {"type": "gaussian"},
        {"type": "gaussian", "noise_multiplier": 1.0, "count": 2},
        {"type": "gaussian", "noise_multiplier": -1.0},
        {"type": "parallel", "events": {"type": "non-private"}},
        {"type": "self-composed", "event": {"type": "event"}, "count": 1},
    ],
)
def test_malformed_data_is_refused(data):
    with pytest.raises(OptionError):
        event_from_dict(data)


def test_bottomless_nesting_is_refused():
    data = {"type": "gaussian", "noise_multiplier": 1.0}
    for _ in range(5_000):
        data = {"type": "self-composed", "event": data, "count": 1}
    with pytest.raises(OptionError, match="deep"):
        event_from_dict(data)


def test_numpy_numbers_become_plain_ones():
    event = SelfComposed(Gaussian(np.float32(2.0)), np.int64(3))
    assert event == SelfComposed(Gaussian(2.0), 3)
    assert json.dumps(event.to_dict())
