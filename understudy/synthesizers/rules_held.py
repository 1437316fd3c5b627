"""Synthetic rows that hold every declared rule: determined columns worked out, other rows drawn again, the rest mended.

All of it sees released models and public facts alone: post-processing, which costs no privacy.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Boolean, Categorical, Datetime, Schema
from understudy.schema.combinations import Parts, Run
from understudy.schema.ruleset import Codes, Ruleset
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.one_way import fine_cells
from understudy.synthesizers.rules_repair import mend
from understudy.table.codec import codec

Draw = Callable[[int, np.random.Generator, Mapping[str, Any] | None], Codes]

ROUNDS = 6
DRAWN_PER_ROW = 10  # rows drawn for one that is kept, at most; what is then still broken is mended
FEWEST = 2_000  # rows that may be drawn however few are wanted
LEAST_RATE = 0.02  # where fewer than this share hold the rules, drawing again is a waste


def draw_rows(
    schema: Schema,
    draw: Draw,
    n: int,
    rng: np.random.Generator,
    where: Mapping[str, Any] | None = None,
    *,
    rounds: int = ROUNDS,
) -> Codes:
    """n rows of all the schema's columns that hold its rules and the conditions; `draw` makes those of `learnt()`.

    Columns that a dependence gives are worked out. Rows that break another rule are drawn again, which is drawing from
    the model on the condition that the rules hold; those that are still broken after `rounds` rounds are mended
    (`rules_repair`). Always ends with n rows. Without rules, this is the method's own draw.

    Costs no privacy: nothing but released values and public facts is looked at.
    """
    if not schema.rules:
        return draw(n, rng, where)
    held = Held.of(schema, where)
    codes = held.draw(draw, n, rng)
    good = held.met(codes)
    drawn, kept = n, int(good.sum())
    for _ in range(rounds):
        short = np.flatnonzero(~good)
        rate = (kept + 0.5) / (drawn + 1)
        left = DRAWN_PER_ROW * n + FEWEST - drawn
        if not len(short) or left < 1 or (rate < LEAST_RATE and drawn >= FEWEST):
            break
        asked = min(math.ceil(1.1 * len(short) / rate) + 16, 2 * n + FEWEST, left)
        more = held.draw(draw, asked, rng)
        found = rng.permutation(np.flatnonzero(held.met(more)))
        drawn, kept = drawn + asked, kept + len(found)
        slots = short[: len(found)]
        for name, column in codes.items():
            column[slots] = more[name][found[: len(slots)]]
        good[slots] = True
    if not good.all():
        codes = mend(held, codes, good, rng)
    return codes


@dataclass(frozen=True, eq=False)
class Held:
    """What rows have to hold: the rules, and conditions as runs of codes by column."""

    schema: Schema
    rules: Ruleset
    runs: dict[str, list[Run]]
    where: dict[str, Any]
    implied: dict[str, Any]

    @classmethod
    def of(cls, schema: Schema, where: Mapping[str, Any] | None) -> "Held":
        """Refuses conditions that no row which holds the rules can meet."""
        rules = schema.ruleset()
        runs = _runs(schema, where)
        tied = [columns for columns in rules.components if set(columns) & set(runs)]
        for columns in tied:
            if rules.find(columns, runs) is None:
                named = " and ".join(repr(name) for name in columns if name in runs)
                raise OptionError(f"where: no row that holds the schema's rules has {named} like this; loosen it")
        learnt = schema.learnt().modelled
        own = {name: condition for name, condition in (where or {}).items() if name in learnt}
        return cls(schema, rules, runs, own, _implied(schema, rules, runs))

    def draw(self, draw: Draw, n: int, rng: np.random.Generator) -> Codes:
        """n rows of all columns, determined ones worked out; others may still break a rule."""
        try:
            codes = draw(n, rng, self.where | self.implied or None)
        except OptionError:
            if not self.implied:
                raise
            codes = draw(n, rng, self.where or None)  # the model knows no such row: what comes will be mended
        return self.complete({name: np.array(column) for name, column in codes.items()})

    def complete(self, codes: Codes) -> Codes:
        """With determined columns, in the schema's order and types."""
        codes = self.rules.complete(codes)
        order = [*self.schema.modelled, *self.schema.images]
        given = {name: codec(self.schema.modelled[name]).dtype for name in self.rules.determined}
        return {name: codes[name].astype(given[name]) if name in given else codes[name] for name in order}

    def met(self, codes: Codes, columns: Sequence[str] | None = None) -> np.ndarray:
        """Which rows hold all rules and conditions, or those of one component."""
        good = self.rules.all_held(codes, columns)
        for name in self.runs:
            if columns is None or name in columns:
                good &= self.within(name, codes[name])
        return good

    def within(self, name: str, codes: np.ndarray) -> np.ndarray:
        """Which codes of a column meet the conditions on it."""
        if name not in self.runs:
            return np.ones(len(codes), dtype=bool)
        met = np.zeros(len(codes), dtype=bool)
        for first, last in self.runs[name]:
            met |= np.isnan(codes) if first != first else (codes >= first) & (codes <= last)
        return met


def _runs(schema: Schema, where: Mapping[str, Any] | None) -> dict[str, list[Run]]:
    if not where:
        return {}
    return {
        name: _joined(schema, name, pieces) for name, pieces in conditions(schema, fine_cells(schema), where).items()
    }


def _joined(schema: Schema, name: str, pieces: Pieces) -> list[Run]:
    """The pieces of a condition as few runs of codes."""
    coder = codec(schema.modelled[name])
    pairs = sorted((a, b) for a, b in zip(pieces.first.tolist(), pieces.last.tolist(), strict=True) if a == a)
    runs: list[Run] = []
    for first, last in pairs:
        if coder.size is None:
            first, last = (float(np.float32(end)) for end in (first, last))
        apart = 0 if coder.size is None else 1
        if runs and first <= runs[-1][1] + apart and coder.missing not in (first, runs[-1][0]):
            runs[-1] = (runs[-1][0], max(last, runs[-1][1]))
        else:
            runs.append((first, last))
    return runs + [(a, a) for a in pieces.first.tolist() if a != a]


def _implied(schema: Schema, rules: Ruleset, runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Conditions on learnt columns that follow from those on columns which they give: methods know the former alone."""
    sources: set[str] = set()
    for table in reversed(rules.gives):
        if table.columns[-1] in runs or table.columns[-1] in sources:
            sources |= set(table.columns[:-1])
    if not sources:
        return {}
    narrowed = rules.narrowed(runs)
    learnt = schema.learnt().modelled
    found = {}
    for name in sources & set(learnt):
        parts, left = narrowed[name]
        condition = None if left.all() else _condition(parts, left)
        if condition is not None:
            found[name] = condition
    return {name: found[name] for name in learnt if name in found}


def _condition(parts: Parts, left: np.ndarray) -> list[Any] | tuple[Any, Any] | None:
    """A `where` for some parts of a column; None where it has no words for them."""
    column, values = parts.axis.column, np.flatnonzero(left[: parts.values])
    missing = len(left) > parts.values and bool(left[-1])
    if isinstance(column, Boolean | Categorical):
        declared = (False, True) if isinstance(column, Boolean) else column.values
        spans = [(int(parts.starts[part]), int(parts.lasts[part])) for part in values]
        named = [value for first, last in spans for value in declared[first : last + 1]]
        return named + [None] * missing
    if missing or not len(values) or values[-1] - values[0] + 1 != len(values):
        return None
    ends = [parts.starts[values[0]], parts.lasts[values[-1]]]
    low, high = (parts.axis.numbers([end])[0].item() for end in ends)
    if isinstance(column, Datetime):
        return datetime(1970, 1, 1) + timedelta(seconds=low), datetime(1970, 1, 1) + timedelta(seconds=high)
    return low, high
