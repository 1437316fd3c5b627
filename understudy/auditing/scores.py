"""What an attacker reads off one fit, and how the readings of many fits become lower bounds.

There are two attackers. One holds the released model: its tables of counts, and its probability of the row. The other
holds synthetic rows alone, and counts those that are like the row. Each has several scores; which of them is used is
decided, and the weights of the one that is learnt are fitted, on every fourth run (practice). The bounds come from the
rest. So no score is chosen on the runs that it is judged by.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.auditing import bounds
from understudy.auditing.bounds import LowerBound
from understudy.auditing.canaries import Codes, Pair
from understudy.auditing.other_readings import boosted_readings, picture_readings
from understudy.errors import UnderstudyError
from understudy.privacy.events import Event, Gaussian, Parallel, SelfComposed
from understudy.synthesizers.api import BOOSTED, Model
from understudy.synthesizers.one_way import fine_cells, one_way_noise
from understudy.table.cells import cells_of
from understudy.table.codec import codec

MODEL, ROWS = "released model", "synthetic rows"
VIEWS = (MODEL, ROWS)
PRACTICE = 4  # every fourth run is practice
FEWEST_RUNS = 8  # of each world; below, nothing is said
_MOST_PROBES = 6
_MOST_LISTED = 512
_LEAST_LOG = -60.0  # of a probability that is 0: sums of scores must stay finite
_RIDGE = 0.1
_MOST = 0.8
LEARNT = "learnt weights of all readings"
CELLS, LOG_PROBABILITY, AGREEING = (
    "counts of its cells, weighed by their noise",
    "log-probability of the row",
    "cells that agree with it",
)
# What is used unless practice shows something clearly better: of a Gaussian release of counts, the first is optimal.
_USUAL = (CELLS, LOG_PROBABILITY, AGREEING)


@dataclass(frozen=True)
class Run:
    """One fit: which world it was, and the readings of either attacker by name."""

    with_row: bool
    readings: dict[str, dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        return {"with": self.with_row, "readings": self.readings}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> "Run":
        readings = {view: {name: float(x) for name, x in data["readings"][view].items()} for view in VIEWS}
        return Run(bool(data["with"]), readings)


@dataclass(frozen=True)
class Shown:
    """What one attacker showed: the score that did best in practice, all that were tried with their chance of ranking a
    table with the row above one without (0.5 is guessing), and the bounds from the other runs.
    """

    view: str
    score: str
    tried: dict[str, float]
    bounds: tuple[LowerBound, ...]

    @property
    def best(self) -> LowerBound | None:
        return max(self.bounds, key=lambda bound: bound.epsilon, default=None)


def read(model: Model, pair: Pair, *, draws: int, rng: np.random.Generator) -> dict[str, dict[str, float]]:
    """The readings of one model, and of so many rows drawn from it."""
    return {MODEL: _model_readings(model, pair), ROWS: _row_readings(model, pair, draws, rng)}


def _model_readings(model: Model, pair: Pair) -> dict[str, float]:
    found = {"number of rows": float(model.rows)}
    if model.method == BOOSTED:
        return found | boosted_readings(model, pair)
    if pair.schema.images:
        return found | picture_readings(model, pair)
    arrays = model.released.arrays()
    columns = fine_cells(pair.schema.learnt())
    noise = one_way_noise(columns, 1.0)
    counted = []
    for number, (name, cells) in enumerate((columns | getattr(model.released, "cells", {})).items()):
        # Methods that release one-way tables keep them under these names; any other has log_prob.
        table = arrays.get(f"fine.{number}")
        if table is not None:
            cell = int(cells.index(pair.row[name])[0])
            found[f"count of its cell in column {number + 1}"] = float(table[cell])
            counted.append(float(table[cell]) / noise[name][0] ** 2)
    if counted:
        found[CELLS] = sum(counted)
    try:
        logs = np.maximum(np.asarray(model.released.log_prob(_probes(pair)), dtype=float), _LEAST_LOG)
    except (UnderstudyError, NotImplementedError, AttributeError):
        return found
    found[LOG_PROBABILITY] = float(logs[0])
    found["log-probability above that of rows like it"] = float(logs[0] - logs.mean())
    found |= {f"log-probability of a row like it ({number})": float(x) for number, x in enumerate(logs[1:], start=1)}
    return found | _pair_readings(model, pair)


def _pair_readings(model: Model, pair: Pair) -> dict[str, float]:
    """How many rows the model expects in the row's cell of every two columns, where all possible rows can be listed."""
    columns = pair.schema.learnt().modelled
    sizes = [codec(column).size for column in columns.values()]
    if None in sizes or len(sizes) < 2 or pair.schema.images:
        return {}
    sizes = [size + column.missing for size, column in zip(sizes, columns.values(), strict=True)]
    if math.prod(sizes) > _MOST_LISTED:
        return {}
    everything = np.indices(sizes).reshape(len(sizes), -1)
    codes = {
        name: listed.astype(codec(column).dtype)
        for (name, column), listed in zip(columns.items(), everything, strict=True)
    }
    expected = model.rows * np.exp(model.released.log_prob(codes))
    hits = [listed == pair.row[name][0] for name, listed in zip(columns, everything, strict=True)]
    found = {
        f"expected rows in its cell of columns {i + 1} and {j + 1}": float(expected[hits[i] & hits[j]].sum())
        for i, j in itertools.combinations(range(min(len(hits), _MOST_PROBES)), 2)
    }
    return found | {"expected rows in its cells of pairs": sum(found.values())}


def _probes(pair: Pair) -> Codes:
    """The row, and the row with the cell of one column of another row; all public."""
    codes = {name: np.repeat(code, 1 + min(_MOST_PROBES, len(pair.row)), axis=0) for name, code in pair.row.items()}
    for place, name in enumerate(list(codes)[:_MOST_PROBES], start=1):
        others = pair.without[name]
        if len(others):
            different = (others != pair.row[name]).reshape(len(others), -1).any(axis=1)
            codes[name][place] = others[int(np.argmax(different))]
    return {name: codes[name] for name in pair.schema.learnt().modelled}


def _row_readings(model: Model, pair: Pair, draws: int, rng: np.random.Generator) -> dict[str, float]:
    drawn = model.draw(draws, rng, even=False)
    alike = []
    for name, column in pair.schema.modelled.items():
        cells = cells_of(column)
        alike.append(cells.index(drawn[name]) == cells.index(pair.row[name])[0])
    for name in pair.schema.images:
        alike.append(np.abs(drawn[name].astype(float) - pair.row[name]).mean(axis=1) < 64)
    same = np.stack(alike)
    agreeing = same.sum(axis=0)
    return {
        "rows equal to it": float((agreeing == len(same)).sum()),
        "rows that differ in one column at most": float((agreeing >= len(same) - 1).sum()),
        AGREEING: float(agreeing.sum()),
        "pairs of cells that agree with it": float((agreeing * (agreeing - 1) / 2).sum()),
    }


def judge(runs: Sequence[Run], delta: float, *, confidence: float, gaussian: bool) -> tuple[Shown, ...]:
    """What each attacker shows, by both rules. All bounds together have the confidence given.

    What may fail is shared unevenly, most of it for what can show most. gaussian: whether a bound by Gaussian DP is
    one; otherwise it is an indication, for the same share as the counted one, and no part of what holds together.
    """
    found = []
    for view, part in zip(VIEWS, (_MOST, 1 - _MOST), strict=True):
        level = (1 - confidence) * part
        levels = ((1 - _MOST) * level, _MOST * level) if gaussian else (level, level)
        worlds = _worlds(runs, view)
        if worlds is None:
            found.append(Shown(view, "", {}, ()))
            continue
        names, with_row, without = worlds
        practice = [world[::PRACTICE] for world in (with_row, without)]
        judged = [np.delete(world, np.s_[::PRACTICE], axis=0) for world in (with_row, without)]
        tried = _practise(names, *practice)
        score = _pick(tried, min(len(world) for world in practice))
        if score == LEARNT:
            weights = _learn(*practice)
            scores = [world @ weights for world in judged]
        else:
            scores = [world[:, names.index(score)] for world in judged]
        rules = (bounds.epsilon_lower_bound, bounds.gaussian_lower_bound)
        shown = tuple(rule(*scores, delta, 1 - share) for rule, share in zip(rules, levels, strict=True))
        found.append(Shown(view, score, {name: round(chance, 4) for name, chance in tried.items()}, shown))
    return tuple(found)


def _worlds(runs: Sequence[Run], view: str) -> tuple[list[str], NDArray, NDArray] | None:
    names = list(runs[0].readings[view]) if runs else []
    split = [[list(run.readings[view].values()) for run in runs if run.with_row == world] for world in (True, False)]
    if not names or min(len(world) for world in split) < FEWEST_RUNS:
        return None
    return names, np.array(split[0]), np.array(split[1])


def _practise(names: list[str], with_row: NDArray, without: NDArray) -> dict[str, float]:
    """Every score's chance of ranking right; the learnt one is fitted on even runs and tried on odd ones."""
    tried = {name: _ranking(with_row[:, at], without[:, at]) for at, name in enumerate(names)}
    if min(len(with_row), len(without)) >= 2 * len(names):
        weights = _learn(with_row[::2], without[::2])
        tried[LEARNT] = _ranking(with_row[1::2] @ weights, without[1::2] @ weights)
    return tried


def _pick(tried: Mapping[str, float], runs: int) -> str:
    """The usual score, unless another is better by more than twice what chance makes of two worlds that are alike."""
    best = max(tried, key=tried.__getitem__)
    usual = next((name for name in _USUAL if name in tried), best)
    return best if tried[best] - tried[usual] > 2 / math.sqrt(6 * runs) else usual


def _learn(with_row: NDArray, without: NDArray) -> NDArray:
    """A linear discriminant with a ridge: the best score of all where readings are normal, as noise makes them."""
    scale = np.concatenate([with_row, without]).std(axis=0)
    scale = np.where(scale > 0, scale, np.inf)  # a reading that never changes gets no weight
    inside = np.concatenate([(world - world.mean(axis=0)) / scale for world in (with_row, without)])
    spread = inside.T @ inside / len(inside) + _RIDGE * np.eye(len(scale))
    return np.linalg.solve(spread, (with_row.mean(axis=0) - without.mean(axis=0)) / scale) / scale


def _ranking(with_row: NDArray, without: NDArray) -> float:
    """The chance that a score with the row is above one without it, ties counting half."""
    ordered = np.sort(without)
    places = np.searchsorted(ordered, with_row, side="left") + np.searchsorted(ordered, with_row, side="right")
    return float(places.mean() / (2 * len(without)))


def all_gaussian(events: Sequence[Event]) -> bool:
    """Whether everything that was released is Gaussian, so that all of it together is Gaussian-DP.

    Parts are disjoint: a row meets one of them, and that is Gaussian.
    """

    def plain(event: Event) -> bool:
        if isinstance(event, SelfComposed):
            return plain(event.event)
        if isinstance(event, Parallel):
            return all(plain(part) for part in event.events)
        return isinstance(event, Gaussian)

    return bool(events) and all(plain(event) for event in events)
