"""What an audit found, as plain data: JSON in and out, and in words. Holds no row, private or made up."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from understudy.auditing.bounds import LowerBound
from understudy.auditing.games import Game
from understudy.auditing.mechanisms import StepGame
from understudy.auditing.scores import Shown
from understudy.errors import DataError
from understudy.notebook import card

FORMAT = 1


@dataclass(frozen=True)
class Audit:
    """A claim, and what was shown against it. All bounds in it hold together with `confidence`.

    epsilon, delta: the claim. games: on the whole path of the method. steps: against the mechanisms behind it, each
    with a claim of its own. one_run: from many canaries in few fits, if that was asked for.
    """

    method: str
    epsilon: float
    delta: float
    confidence: float
    games: tuple[Game, ...]
    steps: tuple[StepGame, ...]
    one_run: LowerBound | None
    seconds: float
    versions: dict[str, str]
    source: str
    format: int = FORMAT

    @property
    def lower_bound(self) -> float:
        """The largest epsilon that any game has shown, without indications."""
        together = 0.0 if self.one_run is None else self.one_run.epsilon
        return max([together, *(game.lower_bound for game in self.games)])

    @property
    def holds(self) -> bool:
        """Whether the claim survived: False means that it is refuted, at the stated confidence."""
        return self.lower_bound <= self.epsilon and all(step.holds for step in self.steps)

    @property
    def ceiling(self) -> float:
        """The largest epsilon that the runs made could have shown at all."""
        found = [
            bound.ceiling
            for game in self.games
            for shown in game.shown
            for bound in shown.bounds
            if game.gaussian or bound.mu is None
        ]
        return max([0.0 if self.one_run is None else self.one_run.ceiling, *found])

    def statement(self) -> str:
        """What can be concluded, in plain words."""
        runs = sum(sum(game.runs) for game in self.games)
        many = f"{runs:,} runs of {self.method}"
        wrong = next((step for step in self.steps if not step.holds), None)
        if wrong is not None:
            return (
                f"The claim is refuted: the epsilon of {wrong.words} is at least {_down(wrong.bound.epsilon)} at delta "
                f"{wrong.delta:g}, above the {wrong.epsilon:.3g} that it is charged with "
                f"({self.confidence:.0%} confidence)."
            )
        if not self.holds:
            return (
                f"The claim is refuted: {many} show that epsilon is at least {_down(self.lower_bound)} at delta "
                f"{self.delta:g}, above the claimed {self.epsilon:g} ({self.confidence:.0%} confidence)."
            )
        if self.lower_bound > 0:
            shown = f"{many} show that epsilon is at least {_down(self.lower_bound)}"
        else:
            shown = f"{many} show nothing above 0"
        reach = (
            f" So few runs could show no more than {_down(self.ceiling)}, even with every guess right: play longer."
            if self.ceiling < self.epsilon
            else ""
        )
        tried = " No mechanism behind it shows more than it is charged with." if self.steps else ""
        return (
            f"The claim of epsilon {self.epsilon:g} at delta {self.delta:g} stands: {shown} "
            f"({self.confidence:.0%} confidence).{reach}{tried} An audit can refute a claim, not prove it."
        )

    def to_json(self) -> str:
        return (
            json.dumps(_plain(asdict(self) | {"lower_bound": self.lower_bound, "holds": self.holds}), indent=1) + "\n"
        )

    @staticmethod
    def from_json(text: str) -> "Audit":
        """Reads what `to_json` wrote; anything else is a DataError."""
        problem = "it is not one of `understudy audit`, or it is damaged; make it again"
        try:
            data = _numbers(json.loads(text))
            if data["format"] != FORMAT:
                raise ValueError
            games = tuple(_game(game) for game in data["games"])
            steps = tuple(StepGame(**(step | {"bound": _bound(step["bound"])})) for step in data["steps"])
            together = None if data["one_run"] is None else _bound(data["one_run"])
            kept = {f.name: data[f.name] for f in fields(Audit)}
            found = Audit(**(kept | {"games": games, "steps": steps, "one_run": together}))
            _need_numbers(found.epsilon, found.delta, found.confidence, *(n for g in games for n in g.runs))
            _need_numbers(*(n for step in steps for n in (step.epsilon, step.delta)))
            found.statement()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DataError(f"audit file: {problem}") from None
        return found

    def _repr_html_(self) -> str:
        return card(
            f"Audit ({self.method})",
            [
                ("claimed", f"epsilon {self.epsilon:g}, delta {self.delta:g}"),
                ("shown", f"at least {_down(self.lower_bound)}"),
                ("confidence", f"{self.confidence:.0%}"),
            ],
            headings=("canary", "attacker", "score", "bound", "rule"),
            rows=[
                (game.words, shown.view, shown.score, _down(bound.epsilon), bound.rule)
                for game in self.games
                for shown in game.shown
                for bound in shown.bounds
            ],
            notes=[self.statement()],
        )


def _game(data: Mapping[str, Any]) -> Game:
    shown = tuple(
        Shown(**(dict(one) | {"bounds": tuple(_bound(bound) for bound in one["bounds"])})) for one in data["shown"]
    )
    return Game(**(dict(data) | {"shown": shown, "runs": tuple(data["runs"])}))


def _bound(data: Mapping[str, Any]) -> LowerBound:
    found = LowerBound(**(dict(data) | {"runs": tuple(data["runs"])}))
    _need_numbers(found.epsilon, found.delta, found.confidence, found.ceiling, *found.runs)
    return found


def _need_numbers(*values: Any) -> None:
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise ValueError


def _plain(value: Any) -> Any:
    """Infinities as words: JSON has none."""
    if isinstance(value, dict):
        return {name: _plain(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _numbers(x) for name, x in value.items()}
    if isinstance(value, list):
        return [_numbers(x) for x in value]
    return float(value) if value in ("inf", "-inf") else value


def _down(value: float) -> str:
    """Three digits, rounded down: a lower bound may be told smaller than it is, never larger.

    >>> _down(1.23789), _down(0.0), _down(0.04567)
    ('1.23', '0', '0.0456')
    """
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.floor(value / unit + 1e-9) * unit:.3g}"
