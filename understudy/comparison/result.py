"""All cells of a comparison, to be read by a person, a notebook or a program."""

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from understudy.comparison.grid import HEADLINES, QUALITY, Cell, gap_of, measured, shown_epsilon
from understudy.comparison.recommend import Recommendation, recommend
from understudy.evaluation.evaluation import OUTSIDE_THE_GUARANTEE
from understudy.notebook import card

SIMULATED = "Computed on tables made from the schema alone: no private row was read, and the guarantee is not touched."
COSTS = ("fit_seconds", "sample_seconds", "processor_seconds", "peak_megabytes")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What was compared, and how."""

    table: str
    simulated: bool
    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    repeats: int
    delta: float
    which: str
    label: str | None
    holdout: str
    seeded: bool
    jobs: int
    limit: float | None
    version: str
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The outcome of `compare`. Unless it is of simulated tables, its figures come from real rows: for the steward."""

    setting: Setting
    results: tuple[Cell, ...]

    @cached_property
    def advice(self) -> Recommendation:
        """The recommendation in parts."""
        return recommend(self.results)

    @property
    def recommendation(self) -> str:
        """Which method to take at which epsilon, and why, in words."""
        return self.advice.words

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before the numbers."""
        notes = [SIMULATED if self.setting.simulated else OUTSIDE_THE_GUARANTEE]
        if self.setting.label is None:
            notes.append("The schema names no label, so prediction is left out of the figures.")
        lost = [cell for cell in self.results if not cell.ok]
        if lost:
            notes.append(f"{len(lost)} of {len(self.results)} fits came to no end; see their messages.")
        return tuple(notes)

    @property
    def cells(self) -> pd.DataFrame:
        """One row a fit: where, how it ended, its gap, every figure beside that of fresh real rows, time and memory."""
        names = list(dict.fromkeys(name for cell in self.results for name in cell.figures))
        counted = measured(self.results, QUALITY)
        rows = []
        for cell in self.results:
            row: dict[str, Any] = {name: getattr(cell, name) for name in ("method", "epsilon", "repeat", "status")}
            row |= {"message": cell.message, "gap": gap_of(cell, counted), "spent": cell.spent}
            row |= {name: getattr(cell, name) for name in COSTS}
            for name in names:
                figure = cell.figures.get(name)
                row[name] = None if figure is None else figure.value
                row[f"fresh_{name}"] = None if figure is None else figure.reference
            rows.append(row)
        fixed = ["method", "epsilon", "repeat", "status", "message", "gap", "spent", *COSTS]
        figures = [column for name in names for column in (name, f"fresh_{name}")]
        table = pd.DataFrame(rows, columns=[*fixed, *figures])
        return table.astype(dict.fromkeys(["gap", "spent", *COSTS, *figures], "float64"))

    def summary(self) -> pd.DataFrame:
        """One row a method and epsilon: means and standard deviations over repeats of the headline figures."""
        names = measured(self.results, HEADLINES)
        counted = measured(self.results, QUALITY)
        groups: dict[tuple[str, float], list[Cell]] = {}
        for cell in self.results:
            groups.setdefault((cell.method, cell.epsilon), []).append(cell)
        rows = []
        for (method, epsilon), group in groups.items():
            done = [cell for cell in group if cell.ok]
            row: dict[str, Any] = {"method": method, "epsilon": epsilon, "done": len(done), "of": len(group)}
            row |= _spread("gap", [gap_of(cell, counted) for cell in done])
            for name in names:
                row |= _spread(name, [cell.figures[name].value for cell in done if name in cell.figures])
            for name in COSTS:
                row[name] = _mean([getattr(cell, name) for cell in done])
            rows.append(row)
        numbers = [part for name in ("gap", *names) for part in (name, f"{name}_spread")]
        table = pd.DataFrame(rows, columns=["method", "epsilon", "done", "of", *numbers, *COSTS])
        table = table.astype(dict.fromkeys([*numbers, *COSTS], "float64"))
        return table.sort_values(["epsilon", "gap", "method"], ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        advice = self.advice
        setting = asdict(self.setting)
        setting["epsilons"] = [_plain(epsilon) for epsilon in self.setting.epsilons]
        return {
            "format": 1,
            "notes": list(self.notes),
            "setting": setting,
            "recommendation": {
                "words": advice.words,
                "method": advice.method,
                "epsilon": advice.epsilon,
                "by_epsilon": [
                    {
                        "epsilon": _plain(one.epsilon),
                        "best": one.best.method,
                        "gap": one.best.gap,
                        "tied": [standing.method for standing in one.tied],
                        "next": None if one.after is None else one.after.method,
                        "lead": one.lead,
                    }
                    for one in advice.verdicts
                ],
            },
            "cells": [cell.to_dict() for cell in self.results],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """Strict JSON: an infinite epsilon is the word inf."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def html(self) -> str:
        """One standalone page."""
        from understudy.comparison.page import page

        return page(self)

    def _repr_html_(self) -> str:
        names = measured(self.results, HEADLINES)
        rows = [
            (
                row["method"],
                shown_epsilon(row["epsilon"]),
                *("-" if row[name] != row[name] else float(row[name]) for name in ("gap", *names, "fit_seconds")),
                f"{row['done']} of {row['of']}",
            )
            for row in self.summary().to_dict("records")
        ]
        headings = ("method", "epsilon", "falls short by", *names, "seconds", "ended")
        return card(self.advice.advice, headings=headings, rows=rows, notes=(*self.advice.reasons, *self.notes))

    def __repr__(self) -> str:
        s = self.setting
        grid = f"{len(s.methods)} methods, {len(s.epsilons)} epsilons, {s.repeats} repeats"
        return f"Comparison({grid}: {self.advice.advice})"


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _spread(name: str, values: list[float | None]) -> dict[str, float | None]:
    known = [value for value in values if value is not None]
    return {name: _mean(values), f"{name}_spread": statistics.stdev(known) if len(known) > 1 else None}


def _plain(number: float) -> float | str:
    return "inf" if math.isinf(number) else number
