"""All results of one comparison, to be read by a person, a notebook or a program."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from understudy.evaluation.result import HEADINGS, OUTSIDE_THE_GUARANTEE, MetricResult
from understudy.notebook import card


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Results in the order of the suite, with what they were computed from."""

    results: tuple[MetricResult, ...]
    rows: Mapping[str, int]
    which: str
    seed: int
    outside: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[MetricResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, name: str) -> MetricResult:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"no metric {name!r}; there are {', '.join(result.name for result in self.results)}")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before the numbers."""
        notes = [OUTSIDE_THE_GUARANTEE]
        if "holdout" not in self.rows:
            notes.append(
                "No holdout rows were given: there are no references, nothing is tested by prediction, and the attacks"
                " are left out. Keep some real rows back from the synthesizer and give them as the holdout (--holdout,"
                " holdout=)."
            )
        for role, columns in self.outside.items():
            for name, count in columns.items():
                notes.append(
                    f"{count} cells of the {role} table lie outside the schema's domain in column {name!r}:"
                    " clipped, or counted as a category of their own, or as missing."
                )
        return tuple(notes)

    def table(self) -> pd.DataFrame:
        """One row a metric."""
        return pd.DataFrame(
            [
                {
                    "metric": result.name,
                    "family": result.family,
                    "value": result.value,
                    "reference": result.reference,
                    "ideal": result.ideal,
                    "direction": result.direction,
                    "low": None if result.interval is None else result.interval[0],
                    "high": None if result.interval is None else result.interval[1],
                    "shortfall": result.shortfall,
                    "worst_columns": ", ".join(result.worst_columns()),
                    "undefined": result.undefined or "",
                    "reference_undefined": result.reference_undefined or "",
                }
                for result in self.results
            ]
        ).astype(dict.fromkeys(("value", "reference", "ideal", "low", "high", "shortfall"), "float64"))

    def weakest(self, count: int = 3) -> tuple[MetricResult, ...]:
        """The metrics that fall furthest short of fresh real rows, worst first; undefined ones do not take part."""
        known = [result for result in self.results if result.shortfall is not None]
        return tuple(sorted(known, key=lambda result: (-result.shortfall, result.name))[:count])

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": 1,
            "which": self.which,
            "seed": self.seed,
            "rows": dict(self.rows),
            "outside": {role: dict(columns) for role, columns in self.outside.items()},
            "notes": list(self.notes),
            "weakest": [result.name for result in self.weakest()],
            "seconds": {name: round(seconds, 3) for name, seconds in self.seconds.items()},
            "results": [result.to_dict() for result in self.results],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Strict JSON: no NaN, no infinity."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def __repr__(self) -> str:
        weakest = ", ".join(result.name for result in self.weakest())
        return f"Evaluation({self.which}, {len(self)} metrics, weakest: {weakest or 'none'})"

    def _repr_html_(self) -> str:
        return card(
            f"Evaluation ({self.which})",
            headings=HEADINGS,
            rows=[result.cells() for result in self.results],
            notes=self.notes,
        )
