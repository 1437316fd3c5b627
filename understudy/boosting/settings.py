"""The public settings of boosting, checked before anything is spent."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from understudy.boosting.distinguishers import AUTO, KINDS, Distinguisher
from understudy.boosting.pool import MOST_ROWS
from understudy.errors import OptionError

MOST_ROUNDS = 100_000
WEIGHTS = ("likely", "average")


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Public settings.

    rounds: picks of a distinguisher, all of them charged; None is a rule by the declared rows and the budget.
    distinguishers: auto, critics, classifiers, marginals, several of these, or functions from codes to [0, 1].
    drs: reject rows by the average distinguisher as well.
    pool_rows: synthetic rows that get weights.
    rate: of the multiplicative weights; None is a rule, smaller where rounds are many.
    weights: likely (those that explain the picks best, without privacy the rows) or average (of all rounds, as in the
        paper).
    both_ways: play with 1 - D beside every distinguisher D.
    share: share of the budget (of 1/z^2) for the picks, where one budget pays for training and boosting.
    checkpoints: how many earlier generators and critics to keep, where boosting is part of a fit.
    """

    rounds: int | None = None
    distinguishers: str | Sequence[str | Distinguisher] = AUTO
    drs: bool = False
    pool_rows: int = 20_000
    rate: float | None = None
    weights: str = WEIGHTS[0]
    both_ways: bool = True
    share: float = 0.15
    checkpoints: int = 10

    def __post_init__(self) -> None:
        if self.rounds is not None:
            _whole(self.rounds, "rounds", 1, MOST_ROUNDS)
        _whole(self.pool_rows, "pool_rows", 2, MOST_ROWS)
        _whole(self.checkpoints, "checkpoints", 0, 1000)
        for name in ("drs", "both_ways"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be true or false, got {getattr(self, name)!r}")
        if not _number(self.share) or not 0 < self.share < 1:
            raise OptionError(f"share must be a number above 0 and below 1, got {self.share!r}")
        if self.rate is not None and not (_number(self.rate) and 0 < self.rate <= 100):
            raise OptionError(f"rate must be a number above 0 and at most 100, or none, got {self.rate!r}")
        if self.weights not in WEIGHTS:
            raise OptionError(f"weights must be {' or '.join(WEIGHTS)}, got {self.weights!r}")
        asked = [self.distinguishers] if isinstance(self.distinguishers, str) else self.distinguishers
        if not isinstance(asked, Sequence) or not asked:
            raise OptionError(f"distinguishers must be {AUTO}, functions, or some of {', '.join(KINDS)}")
        for one in asked:
            if (not callable(one) and one not in (AUTO, *KINDS)) or (one == AUTO and len(asked) > 1):
                raise OptionError(f"distinguishers must be {AUTO}, functions, or some of {', '.join(KINDS)}")

    @property
    def kinds(self) -> tuple[str, ...]:
        """The distinguishers that were asked for by name."""
        asked = [self.distinguishers] if isinstance(self.distinguishers, str) else self.distinguishers
        return tuple(one for one in asked if isinstance(one, str))

    def told(self, rounds: int) -> dict[str, Any]:
        """As a model file keeps them, with the rounds that were played: functions by their number alone."""
        shown = list(self.kinds)
        if not isinstance(self.distinguishers, str) and len(self.distinguishers) > len(shown):
            shown.append(f"{len(self.distinguishers) - len(shown)} functions")
        return asdict(_without_functions(self)) | {"distinguishers": shown, "rounds": rounds}


def _without_functions(settings: Boosting) -> Boosting:
    return Boosting(**{f.name: getattr(settings, f.name) for f in fields(Boosting) if f.name != "distinguishers"})


def read_settings(given: bool | Mapping[str, Any] | Boosting) -> Boosting:
    """`boost=True`, or a mapping of settings."""
    if isinstance(given, Boosting):
        return given
    if given is True:
        return Boosting()
    if not isinstance(given, Mapping):
        raise OptionError(f"boost must be true, false or a mapping of settings, got {type(given).__name__}")
    known = [f.name for f in fields(Boosting)]
    for name in given:
        if name not in known:
            raise OptionError(f"boost has no setting {name!r}; it takes {', '.join(known)}")
    return Boosting(**given)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any, name: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise OptionError(f"{name} must be a whole number from {least:,} to {most:,}, got {value!r}")
