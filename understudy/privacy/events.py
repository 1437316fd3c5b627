"""What touched the rows, as plain data: frozen, hashable, JSON in and out.

An event says what an adversary may learn about one row that is added or removed; `accountant` turns a list of them into
an epsilon. Multipliers are always standard deviation over sensitivity, with the sensitivity computed for that relation
by whoever releases.
"""

import math
import numbers
from dataclasses import dataclass, fields
from typing import Any

from understudy.errors import OptionError

_MAX_COUNT = 10**9
_MAX_DEPTH = 8


@dataclass(frozen=True)
class Event:
    """Base of all events; never made on its own."""

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON-ready data.

        >>> SelfComposed(Gaussian(2.0), 3).to_dict()
        {'type': 'self-composed', 'event': {'type': 'gaussian', 'noise_multiplier': 2.0}, 'count': 3}
        """
        return {"type": _NAMES[type(self)]} | {f.name: _plain(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True)
class Gaussian(Event):
    """A value plus Gaussian noise whose standard deviation is `noise_multiplier` times the L2 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_positive(self, "noise_multiplier")


@dataclass(frozen=True)
class BoundedRange(Event):
    """A choice whose log-probability ratios on neighbours span at most `epsilon` (the exponential mechanism).

    It is epsilon**2/8-zCDP (Cesar & Rogers 2021) and epsilon-DP; the accountants use both.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _set_positive(self, "epsilon")


@dataclass(frozen=True)
class PureDp(Event):
    """Anything epsilon-DP of which no more is known."""

    epsilon: float

    def __post_init__(self) -> None:
        _set_positive(self, "epsilon")


@dataclass(frozen=True)
class ApproxDp(Event):
    """Anything (epsilon, delta)-DP of which no more is known; a fit's whole budget before the fit has run."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _set_positive(self, "epsilon")
        _set_positive(self, "delta")
        if self.delta >= 1:
            raise OptionError(f"approx-dp: delta must be below 1, got {self.delta}")


@dataclass(frozen=True)
class ZCdp(Event):
    """Anything rho-zCDP of which no more is known."""

    rho: float

    def __post_init__(self) -> None:
        _set_positive(self, "rho")


@dataclass(frozen=True)
class PoissonSampled(Event):
    """A Gaussian release over rows that each took part independently with probability `rate`."""

    rate: float
    event: Gaussian

    def __post_init__(self) -> None:
        _set_rate(self)
        if not isinstance(self.event, Gaussian):
            raise OptionError(f"poisson-sampled: event must be gaussian, got {type(self.event).__name__}")


@dataclass(frozen=True)
class ReplaceOneSampled(Event):
    """A Gaussian release on a sample in which the row, or the one in its place, lies with probability `rate`.

    Dominated by the pair (1-q) N(0, z^2) + q N(1, z^2) against (1-q) N(0, z^2) + q N(-1, z^2), q the rate, z the noise
    multiplier, which covers both replacing a row and adding or removing one.
    """

    rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_rate(self)
        _set_positive(self, "noise_multiplier")


@dataclass(frozen=True)
class OneOfMany(Event):
    """A Gaussian release of one answer, drawn in secret among many: with probability `rate` the row lies behind it.

    One step of GS-WGAN. All answers, with the row and without it, lie within one sensitivity of each other, which the
    pair of `ReplaceOneSampled` does not use; the proof stands beside `loss_distributions._one_of_many`.
    """

    rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        _set_rate(self)
        _set_positive(self, "noise_multiplier")


@dataclass(frozen=True)
class SelfComposed(Event):
    """`count` runs of the same event, each of which may look at the results of the earlier ones."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _require_event(self, self.event)
        if isinstance(self.count, bool) or not isinstance(self.count, numbers.Integral):
            raise OptionError(f"self-composed: count must be a whole number, got {type(self.count).__name__}")
        if not 1 <= self.count <= _MAX_COUNT:
            raise OptionError(f"self-composed: count must be between 1 and {_MAX_COUNT}, got {self.count}")
        object.__setattr__(self, "count", int(self.count))


@dataclass(frozen=True)
class Parallel(Event):
    """Events on disjoint parts of the rows, each row in one part alone: costs the largest, not the sum.

    Which part a row falls into may depend on that row and on what was released before, on no other row.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        if not self.events:
            raise OptionError("parallel: events must hold at least one event")
        for event in self.events:
            _require_event(self, event)


@dataclass(frozen=True)
class NonPrivate(Event):
    """A release without any guarantee (epsilon is infinite)."""


_TYPES: dict[str, type[Event]] = {
    "gaussian": Gaussian,
    "bounded-range": BoundedRange,
    "pure-dp": PureDp,
    "approx-dp": ApproxDp,
    "zcdp": ZCdp,
    "poisson-sampled": PoissonSampled,
    "replace-one-sampled": ReplaceOneSampled,
    "one-of-many": OneOfMany,
    "self-composed": SelfComposed,
    "parallel": Parallel,
    "non-private": NonPrivate,
}
_NAMES = {kind: name for name, kind in _TYPES.items()}


def event_from_dict(data: Any, *, _depth: int = 0) -> Event:
    """The event that `to_dict` wrote; anything else is an OptionError.

    >>> event_from_dict({"type": "gaussian", "noise_multiplier": 2})
    Gaussian(noise_multiplier=2.0)
    """
    if _depth > _MAX_DEPTH:
        raise OptionError(f"event: nested more than {_MAX_DEPTH} deep")
    if not isinstance(data, dict):
        raise OptionError(f"event: must be an object with a type, got {type(data).__name__}")
    name = data.get("type")
    kind = _TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise OptionError(f"event: type must be one of {', '.join(_TYPES)}, got {name!r}")
    expected = {f.name for f in fields(kind)}
    if set(data) - {"type"} != expected:
        raise OptionError(f"event {name}: must have exactly the fields {sorted(expected)}")
    arguments = {key: value for key, value in data.items() if key != "type"}
    if "event" in expected:
        arguments["event"] = event_from_dict(arguments["event"], _depth=_depth + 1)
    if "events" in expected:
        if not isinstance(arguments["events"], list | tuple):
            raise OptionError(f"event {name}: events must be a list")
        arguments["events"] = tuple(event_from_dict(e, _depth=_depth + 1) for e in arguments["events"])
    return kind(**arguments)


def told(event: Any) -> str:
    """An event (its dict, or a list of them) in words.

    >>> told({"type": "self-composed", "event": {"type": "gaussian", "noise_multiplier": 2.0}, "count": 3})
    'self-composed (gaussian, noise multiplier 2), count 3'
    """
    if isinstance(event, list):
        return "; ".join(map(told, event))
    words = [event["type"]]
    for name, value in event.items():
        if isinstance(value, dict | list):
            words[0] += f" ({told(value)})"
        elif name != "type":
            words.append(f"{name.replace('_', ' ')} {value:.6g}")
    return ", ".join(words)


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _require_event(owner: Event, event: Any) -> None:
    if not isinstance(event, Event) or type(event) is Event:
        raise OptionError(f"{_NAMES[type(owner)]}: must hold events, got {type(event).__name__}")


def _set_positive(event: Event, field: str) -> None:
    value = getattr(event, field)
    where = f"{_NAMES[type(event)]}: {field}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionError(f"{where} must be a number, got {type(value).__name__}")
    if not (math.isfinite(value) and value > 0):
        raise OptionError(f"{where} must be positive and finite, got {value}")
    # NumPy scalars would break hashing across types and JSON.
    object.__setattr__(event, field, float(value))


def _set_rate(event: Event) -> None:
    _set_positive(event, "rate")
    if event.rate > 1:
        raise OptionError(f"{_NAMES[type(event)]}: rate must be at most 1, got {event.rate}")
