"""A metric and its reference in one go: the same function on the synthetic rows, then on the holdout rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from understudy.evaluation.result import NO_HOLDOUT, Direction, MetricResult


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one comparison gives, before it meets its reference."""

    value: float | None = None
    undefined: str | None = None
    per_column: Mapping[str, float] = field(default_factory=dict)
    undefined_columns: Mapping[str, str] = field(default_factory=dict)
    interval: tuple[float, float] | None = None
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How a metric's number is to be read."""

    name: str
    family: str
    direction: Direction
    ideal: float
    range: tuple[float, float]

    def result(self, part: Part, reference: Part | None, *, missing: str = NO_HOLDOUT) -> MetricResult:
        """The metric's result; without a reference, `missing` says why there is none."""
        known = reference is not None and reference.value is not None
        return MetricResult(
            name=self.name,
            family=self.family,
            direction=self.direction,
            ideal=self.ideal,
            range=self.range,
            value=part.value,
            undefined=part.undefined,
            reference=reference.value if known else None,
            reference_undefined=None if known else (reference.undefined if reference is not None else missing),
            per_column=part.per_column,
            per_column_reference=reference.per_column if reference is not None else {},
            undefined_columns=part.undefined_columns,
            interval=part.interval,
            notes=part.notes,
            details=part.details,
        )

    def with_range(self, low: float, high: float) -> "Scale":
        return replace(self, range=(low, high))


def against_holdout(scale: Scale, compare: Callable[[Any], Part], synthetic: Any, holdout: Any) -> MetricResult:
    """`compare(synthetic)` as the value and `compare(holdout)` as the reference."""
    return scale.result(compare(synthetic), None if holdout is None else compare(holdout))


def mean(parts: Mapping[str, float]) -> float:
    return sum(parts.values()) / len(parts)
