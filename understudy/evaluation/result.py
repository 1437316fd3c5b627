"""What a metric returns: a number, the number that fresh real rows would score, and why either is missing."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from understudy.notebook import card

Direction = Literal["lower", "higher", "target"]

OUTSIDE_THE_GUARANTEE = (
    "Computed from the real rows: for the data steward alone, and outside the differential privacy guarantee."
)
HEADINGS = ("metric", "value", "fresh real rows", "ideal", "worst columns")
NO_HOLDOUT = "no holdout rows (--holdout, holdout=) were given: real rows that the synthesizer never saw"


@dataclass(frozen=True, kw_only=True, repr=False)
class MetricResult:
    """One metric of one synthetic table.

    `value` and `reference` are None exactly when `undefined` and `reference_undefined` give the reason. `per_column`
    holds the parts that are defined, `undefined_columns` a reason for each of the others. `ideal` is the best value
    there is; `direction` says on which side of it a table is worse ("target": on both).

    >>> scale = dict(name="tvd", family="distributions", direction="lower", ideal=0.0, range=(0.0, 1.0))
    >>> round(MetricResult(**scale, value=0.3, reference=0.1).shortfall, 3)
    0.2
    """

    name: str
    family: str
    value: float | None
    direction: Direction
    ideal: float
    range: tuple[float, float]
    reference: float | None = None
    per_column: Mapping[str, float] = field(default_factory=dict)
    per_column_reference: Mapping[str, float] = field(default_factory=dict)
    undefined: str | None = None
    reference_undefined: str | None = NO_HOLDOUT
    undefined_columns: Mapping[str, str] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _number(self.value))
        object.__setattr__(self, "reference", _number(self.reference))
        object.__setattr__(self, "ideal", float(self.ideal))
        if self.reference is not None:
            object.__setattr__(self, "reference_undefined", None)
        # A number without a meaning must never pass for one: NaN is a bug in the metric, not a result.
        if (self.value is None) != (self.undefined is not None):
            raise ValueError(f"{self.name}: a value or a reason must be given, not both and not neither")
        if (self.reference is None) != (self.reference_undefined is not None):
            raise ValueError(f"{self.name}: a reference or a reason for its absence must be given")
        for part in ("per_column", "per_column_reference"):
            numbers = {key: _number(number) for key, number in getattr(self, part).items()}
            object.__setattr__(self, part, numbers)
        object.__setattr__(self, "undefined_columns", dict(self.undefined_columns))
        object.__setattr__(self, "details", dict(self.details))

    @property
    def shortfall(self) -> float | None:
        """How much worse than fresh real rows, on a scale from 0 (as good) to 1 (as bad as can be).

        Distances from the ideal are divided by the worst possible one; where there is no worst one, x becomes x/(1+x).
        Without a reference the distance from the ideal itself counts. None where the metric is undefined.
        """
        if self.value is None:
            return None
        gap = self._badness(self.value) - (0.0 if self.reference is None else self._badness(self.reference))
        return min(max(gap, 0.0), 1.0)

    def _badness(self, number: float) -> float:
        low, high = self.range
        below, above = self.ideal - number, number - self.ideal
        worst_below, worst_above = self.ideal - low, high - self.ideal
        if self.direction == "lower":
            distance, worst = above, worst_above
        elif self.direction == "higher":
            distance, worst = below, worst_below
        else:
            distance, worst = max(below, above), worst_below if below > above else worst_above
        distance = max(distance, 0.0)
        if math.isinf(worst):
            return 1.0 if math.isinf(distance) else distance / (1.0 + distance)
        return min(distance / worst, 1.0) if worst > 0 else 0.0

    def worst_columns(self, count: int = 3) -> tuple[str, ...]:
        """The columns whose parts are furthest from the ideal, worst first; ties go by name."""
        return tuple(sorted(self.per_column, key=lambda name: (-self._badness(self.per_column[name]), name))[:count])

    def cells(self) -> tuple[str, ...]:
        """Name, value, reference, ideal and worst columns as short texts; a number that is missing says why."""
        return (
            self.name,
            f"undefined: {self.undefined}" if self.value is None else f"{self.value:.4g}",
            f"none: {self.reference_undefined}" if self.reference is None else f"{self.reference:.4g}",
            f"{self.ideal:.4g}",
            ", ".join(self.worst_columns()),
        )

    def __repr__(self) -> str:
        value, reference = ("undefined" if n is None else f"{n:.4g}" for n in (self.value, self.reference))
        return f"MetricResult({self.name}: {value}, fresh real rows {reference}, best {self.ideal:g})"

    def _repr_html_(self) -> str:
        columns = sorted({*self.per_column, *self.undefined_columns})
        parts = [
            (name, self.per_column.get(name, self.undefined_columns.get(name)), self.per_column_reference.get(name, ""))
            for name in columns
        ]
        return card(
            self.name,
            list(zip(HEADINGS[1:], self.cells()[1:], strict=True)),
            headings=("column", "value", "fresh real rows"),
            rows=parts,
            notes=[*self.notes, OUTSIDE_THE_GUARANTEE],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; infinite range ends become None."""
        record = {key: getattr(self, key) for key in self.__dataclass_fields__}
        record["range"] = [end if math.isfinite(end) else None for end in self.range]
        record["shortfall"] = self.shortfall
        record["details"] = plain(self.details)
        record["notes"] = list(self.notes)
        record["interval"] = None if self.interval is None else [float(end) for end in self.interval]
        return record


def _number(number: float | None) -> float | None:
    if number is None:
        return None
    number = float(number)
    if math.isnan(number) or math.isinf(number):
        raise ValueError("a metric must give a finite number or a reason")
    return number


def plain(thing: Any) -> Any:
    """Mappings, sequences, NumPy arrays and dataclasses as JSON types; a number that is not finite as None."""
    if hasattr(thing, "__dataclass_fields__"):
        return plain(asdict(thing))
    if isinstance(thing, Mapping):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(value) for value in thing]
    if hasattr(thing, "tolist"):
        return plain(thing.tolist())
    if isinstance(thing, float) and not math.isfinite(thing):
        return None
    return thing
