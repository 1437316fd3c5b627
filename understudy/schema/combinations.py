"""Rules on combinations as tables of truth: codes are cut into parts that the rule cannot tell apart."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.schema.axis import Axis
from understudy.schema.columns import Boolean, Categorical, Datetime
from understudy.schema.problems import shown
from understudy.schema.rules import Combinations, Dependence

MOST_COMBINATIONS = 1 << 25  # of parts, in one rule
SHOWN_VALUES = 5  # of a part, in messages
LOOKUP_LIMIT = 1 << 16  # up to this many codes, a table of their parts is faster than a search

Run = tuple[Any, Any]  # first and last code, both included; missing is (missing_code, missing_code)


@dataclass(frozen=True, eq=False)
class Parts:
    """A partition of a column's codes: part i goes from `starts[i]` up to the next start; missing comes last."""

    axis: Axis
    starts: np.ndarray

    @property
    def values(self) -> int:
        return len(self.starts)

    @property
    def count(self) -> int:
        return len(self.starts) + self.axis.column.missing

    @cached_property
    def lasts(self) -> np.ndarray:
        """The last code of each part that holds values."""
        end = self.axis.plain([self.axis.bounds[1]])
        if self.axis.size is None:
            return np.append(np.nextafter(self.starts[1:], np.float32(-np.inf)), end)
        return np.append(self.starts[1:] - np.uint64(1), end)

    @cached_property
    def _lookup(self) -> np.ndarray | None:
        if self.axis.size is None or self.axis.size > LOOKUP_LIMIT:
            return None
        codes = np.arange(self.axis.size, dtype=np.uint64)
        return np.append(np.searchsorted(self.starts, codes, side="right") - 1, self.values)

    def index(self, codes: np.ndarray) -> np.ndarray:
        """The part of each code."""
        if self._lookup is not None:
            return self._lookup[codes]
        codes = self.axis.plain(codes)
        found = np.clip(np.searchsorted(self.starts, codes, side="right") - 1, 0, self.values - 1)
        return np.where(self.axis.absent(codes), self.values, found)

    def inside(self, runs: Iterable[Run]) -> np.ndarray:
        """Which parts lie in one of the runs, whose ends are ends of parts."""
        found = np.zeros(self.count, dtype=bool)
        for run in runs:
            found[self.covered(run)] = True
        return found

    def covered(self, run: Run) -> slice:
        """The parts of one run, whose ends are ends of parts."""
        first, last = run
        if first != first or first == self.axis.size:
            return slice(self.values, self.values + 1)
        kind = self.starts.dtype.type
        return slice(
            int(np.searchsorted(self.starts, kind(first))), int(np.searchsorted(self.starts, kind(last), side="right"))
        )

    def told(self, part: int) -> str:
        """A part in words, for messages."""
        if part == self.values:
            return "missing"
        first, last = self.starts[part], self.lasts[part]
        column = self.axis.column
        if isinstance(column, Boolean | Categorical):
            declared = ("false", "true") if isinstance(column, Boolean) else [*map(shown, column.values)]
            return " or ".join(declared[int(first) : int(last) + 1][:SHOWN_VALUES])
        a, b = (self.axis.numbers([code])[0].item() for code in (first, last))
        if isinstance(column, Datetime):
            a, b = (np.datetime64(number, "s").item().isoformat() for number in (a, b))
        return f"{a}" if first == last else f"{a} to {b}"


def cut(axis: Axis, runs: Iterable[Run]) -> Parts:
    """The coarsest partition in which every run is a union of parts."""
    low, high = axis.bounds
    starts = {low}
    for first, last in runs:
        if first != first or first == axis.size:
            continue
        starts.add(first)
        after = float(np.nextafter(np.float32(last), np.float32(np.inf))) if axis.size is None else last + 1
        if after <= high:
            starts.add(after)
    return Parts(axis, axis.plain(np.array(sorted(starts), dtype=np.float32 if axis.size is None else np.uint64)))


def runs_of(axis: Axis, entry: Any) -> list[Run]:
    """The runs of codes that one column's part of a combination means."""
    if isinstance(entry, dict):
        return [axis.span(entry)]
    return [(code, code) for code in map(axis.place, entry if isinstance(entry, tuple) else (entry,))]


@dataclass(frozen=True, eq=False)
class Table:
    """Which combinations of parts a rule allows; of a dependence also the code that it gives, by the other columns."""

    number: int
    columns: tuple[str, ...]
    parts: tuple[Parts, ...]
    allowed: np.ndarray
    given: np.ndarray | None = None

    def held(self, codes: dict[str, np.ndarray]) -> np.ndarray:
        """Which rows hold the rule."""
        return self.allowed[self.places(codes)]

    def places(self, codes: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        return tuple(parts.index(codes[name]) for name, parts in zip(self.columns, self.parts, strict=True))

    def give(self, codes: dict[str, np.ndarray]) -> np.ndarray:
        """What the rule gives for each row, as plain codes."""
        pairs = zip(self.columns[:-1], self.parts[:-1], strict=True)
        return self.given[tuple(parts.index(codes[name]) for name, parts in pairs)]


def table_of(number: int, rule: Combinations | Dependence, axes: dict[str, Axis]) -> Table:
    """A rule as a table; ValueError says what is wrong with it."""
    columns = rule.involved
    rows = rule.by if isinstance(rule, Dependence) else rule.rows
    read = [[_read(name, axes[name], entry) for name, entry in zip(columns, row, strict=True)] for row in rows]
    parts = tuple(cut(axes[name], (run for row in read for run in row[k])) for k, name in enumerate(columns))
    if math.prod(part.count for part in parts) > MOST_COMBINATIONS:
        raise ValueError(
            f"has more than {MOST_COMBINATIONS:,} combinations to tell apart; use ranges, or fewer columns"
        )
    inside = [tuple(_places(part, runs) for part, runs in zip(parts, row, strict=True)) for row in read]
    if isinstance(rule, Dependence):
        return _dependence(number, columns, parts, inside, [row[-1][0][0] for row in read])
    never = rule.never is not None
    allowed = np.full([part.count for part in parts], never)
    for places in inside:
        allowed[np.ix_(*places)] = not never
    if not allowed.any():
        raise ValueError("never names every combination, so that no row could exist; take some out")
    return Table(number, columns, parts, allowed)


def _places(parts: Parts, runs: Sequence[Run]) -> np.ndarray:
    covered = [parts.covered(run) for run in runs]
    return np.concatenate([np.arange(part.start, part.stop) for part in covered])


def _read(name: str, axis: Axis, entry: Any) -> list[Run]:
    problem = ""
    try:
        return runs_of(axis, entry)
    except ValueError as error:
        problem = str(error)
    raise ValueError(f"column {name!r} {problem}")


def _dependence(
    number: int,
    columns: tuple[str, ...],
    parts: tuple[Parts, ...],
    inside: Sequence[tuple[np.ndarray, ...]],
    codes: Sequence[Any],
) -> Table:
    *sources, target = parts
    shape = [part.count for part in sources]
    given = np.zeros(shape, dtype=target.starts.dtype)
    places = np.full(shape, -1, dtype=np.int64)
    for found, code in zip(inside, codes, strict=True):
        *where, (place,) = found
        cells = np.ix_(*where)
        clash = (places[cells] >= 0) & (places[cells] != place)
        if clash.any():
            at = [indexes[axis[0]] for indexes, axis in zip(where, np.nonzero(clash), strict=True)]
            raise ValueError(f"by gives two values for {_told(columns, sources, at)}; keep one of them")
        places[cells], given[cells] = place, code
    open_ = np.argwhere(places < 0)
    if len(open_):
        raise ValueError(f"by says nothing of {_told(columns, sources, open_[0])}; add what it gives ({columns[-1]!r})")
    allowed = np.zeros([*shape, target.count], dtype=bool)
    np.put_along_axis(allowed, places[..., None], True, axis=-1)
    return Table(number, columns, parts, allowed, given)


def _told(columns: Sequence[str], parts: Sequence[Parts], at: Sequence[int]) -> str:
    return ", ".join(f"{name} {part.told(int(place))}" for name, part, place in zip(columns, parts, at, strict=False))
