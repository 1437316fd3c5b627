"""All rules of a schema together, on codes: which rows hold them, whether a row can, and one that does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.schema.axis import Axis, axis_of, comparable
from understudy.schema.columns import Boolean, Categorical, Facts
from understudy.schema.combinations import Parts, Run, Table, cut, table_of
from understudy.schema.problems import RefusalError
from understudy.schema.rules import AnyRule, Dependence, Order
from understudy.schema.search import find_row, possible_parts

Codes = dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Ruleset:
    """Rules made ready for rows of codes. `gives` are the dependences, each after those that it needs."""

    rules: tuple[AnyRule, ...]
    axes: dict[str, Axis]
    orders: tuple[tuple[int, Order], ...]
    tables: tuple[Table, ...]
    gives: tuple[Table, ...]

    @property
    def determined(self) -> tuple[str, ...]:
        """Columns that others give, in an order in which they can be worked out."""
        return tuple(table.columns[-1] for table in self.gives)

    @cached_property
    def components(self) -> tuple[tuple[str, ...], ...]:
        """Columns that rules tie together, directly or through others: rules never reach from one to another."""
        groups: list[set[str]] = []
        for rule in self.rules:
            tied = set(rule.involved)
            touching = [group for group in groups if group & tied]
            groups = [group for group in groups if not group & tied] + [tied.union(*touching)]
        return tuple(tuple(name for name in self.axes if name in group) for group in groups)

    def held(self, codes: Codes, number: int) -> np.ndarray:
        """Which rows hold one rule, by its number from 1."""
        for at, rule in self.orders:
            if at == number:
                return order_held(rule, self.axes, codes)
        return next(table for table in self.tables if table.number == number).held(codes)

    def all_held(self, codes: Codes, columns: Sequence[str] | None = None) -> np.ndarray:
        """Which rows hold all rules, or all within one component."""
        held = np.ones(len(next(iter(codes.values()))), dtype=bool)
        for number, rule in enumerate(self.rules, start=1):
            if columns is None or rule.involved[0] in columns:
                held &= self.held(codes, number)
        return held

    def complete(self, codes: Codes) -> Codes:
        """With every determined column worked out from the others."""
        codes = dict(codes)
        for table in self.gives:
            codes[table.columns[-1]] = table.give(codes)
        return codes

    def find(self, columns: Sequence[str], runs: Mapping[str, Sequence[Run]] | None = None) -> dict[str, Any] | None:
        """Codes of one component's columns that hold its rules, within `runs` of codes; None if there are none."""
        return find_row(*self._part(columns), self._parts(columns, runs or {}), runs or {})

    def narrowed(self, runs: Mapping[str, Sequence[Run]]) -> dict[str, tuple[Parts, np.ndarray]]:
        """What conditions leave of every column: parts of its codes and which of them can still occur."""
        found = {}
        for columns in self.components:
            _, tables = self._part(columns)
            parts = self._parts(columns, runs)
            left = possible_parts(tables, parts, runs)
            found |= {name: (parts[name], left[name]) for name in columns}
        return found

    def _part(self, columns: Sequence[str]) -> tuple[list[Order], list[Table]]:
        orders = [rule for _, rule in self.orders if rule.column in columns]
        return orders, [table for table in self.tables if table.columns[0] in columns]

    def _parts(self, columns: Sequence[str], runs: Mapping[str, Sequence[Run]]) -> dict[str, Parts]:
        """For each column a partition that suits all rules and conditions on it."""
        every: dict[str, list[Run]] = {name: list(runs.get(name, ())) for name in columns}
        for table in self.tables:
            for name, parts in zip(table.columns, table.parts, strict=True):
                if name in every:
                    every[name] += zip(parts.starts.tolist(), parts.lasts.tolist(), strict=True)
        return {name: cut(self.axes[name], every[name]) for name in columns}


def order_held(rule: Order, axes: Mapping[str, Axis], codes: Codes) -> np.ndarray:
    """Which rows hold an order; a missing side holds it."""
    a, b = (axes[name].numbers(codes[name]) for name in rule.involved)
    absent = axes[rule.column].absent(codes[rule.column]) | axes[rule.upper].absent(codes[rule.upper])
    return absent | (a < b if rule.strict else a <= b)


def make_ruleset(columns: Mapping[str, Facts], rules: Sequence[AnyRule]) -> Ruleset:
    """The rules on these columns, without asking whether they agree with each other."""
    axes = {name: axis_of(column) for name, column in columns.items() if any(name in r.involved for r in rules)}
    numbered = list(enumerate(rules, start=1))
    tables = tuple(table_of(number, rule, axes) for number, rule in numbered if not isinstance(rule, Order))
    by_target = {table.columns[-1]: table for table in tables if table.given is not None}
    gives = tuple(by_target[name] for name in _sorted({n: t.columns[:-1] for n, t in by_target.items()}))
    return Ruleset(
        tuple(rules), axes, tuple((number, rule) for number, rule in numbered if isinstance(rule, Order)), tables, gives
    )


def check_rules(columns: Mapping[str, Facts], rules: Sequence[AnyRule]) -> None:
    """Refuses rules that name what is not there, say nothing, or contradict the schema or each other."""
    problems = [
        f"rule {number}: {problem}"
        for number, rule in enumerate(rules, start=1)
        for problem in _problems(columns, rule, rules[: number - 1])
    ]
    problems += [] if problems else _circles(rules)
    if problems:
        raise RefusalError(problems)
    ruleset = make_ruleset(columns, rules)
    problems = list(_never_occurring(ruleset))
    if not problems:
        for component in ruleset.components:
            if ruleset.find(component) is None:
                problems.append(
                    f"rules: no row can hold all rules on {', '.join(map(repr, component))}; they contradict each other"
                )
    if problems:
        raise RefusalError(problems)


def _problems(columns: Mapping[str, Facts], rule: AnyRule, earlier: Sequence[AnyRule]) -> Iterator[str]:
    absent = [name for name in rule.involved if name not in columns]
    if absent:
        known = ", ".join(map(repr, absent))
        yield f"{known} must be modelled columns of the schema (not id, text or image); check the names"
        return
    if rule in earlier:
        yield f"is rule {earlier.index(rule) + 1} again; keep one of them"
        return
    axes = {name: axis_of(columns[name]) for name in rule.involved}
    if isinstance(rule, Order):
        yield from _order_problems(rule, axes)
        return
    if isinstance(rule, Dependence):
        others = [other for other in earlier if isinstance(other, Dependence) and other.give == rule.give]
        if others:
            yield f"gives {rule.give!r}, which rule {earlier.index(others[0]) + 1} gives already; keep one of them"
            return
    problem = ""
    try:
        table_of(0, rule, axes)
    except ValueError as error:
        problem = str(error)
    if problem:
        yield problem


def _order_problems(rule: Order, axes: Mapping[str, Axis]) -> Iterator[str]:
    lower, upper = (axes[name] for name in rule.involved)
    if not comparable(lower.column, upper.column):
        yield (
            f"{rule.column!r} ({lower.column.kind}) and {rule.upper!r} ({upper.column.kind}) cannot be compared; both "
            "must be numbers, both datetimes, or both ordinal with the same values"
        )
        return
    _, found = upper.lowest(lower.numbers([lower.bounds[0]]), strict=rule.strict)
    if not found[0]:
        relation = "below" if rule.strict else "at most"
        yield f"the lowest {rule.column!r} is not {relation} the highest {rule.upper!r}: no row with both could hold it"


def _circles(rules: Sequence[AnyRule]) -> Iterator[str]:
    above: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        if isinstance(rule, Order):
            above[rule.column] = (*above.get(rule.column, ()), rule.upper)
    circle = _circle(above)
    if circle:
        yield (
            f"rules: the orders go round in a circle ({' -> '.join(map(repr, circle))}); take one out (columns that "
            "are always equal are one column)"
        )
    circle = _circle({rule.give: rule.columns for rule in rules if isinstance(rule, Dependence)})
    if circle:
        yield f"rules: columns give each other in a circle ({' -> '.join(map(repr, circle))}); take one out"


def _circle(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns of a circle, if there is one."""
    left = set(edges)
    while free := {name for name in left if not left & set(edges[name])}:
        left -= free
    if not left:
        return []
    path = [min(left)]
    while len(set(path)) == len(path):
        path.append(next(name for name in edges[path[-1]] if name in left))
    return path[path.index(path[-1]) :]


def _sorted(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Names, each after those that it needs."""
    done: list[str] = []
    while len(done) < len(needs):
        done += [n for n in needs if n not in done and all(need in done or need not in needs for need in needs[n])]
    return done


def _never_occurring(ruleset: Ruleset) -> Iterator[str]:
    """Declared values, and declared missing cells, that tables of combinations leave no room for."""
    for name, (parts, left) in ruleset.narrowed({}).items():
        column = ruleset.axes[name].column
        for part in np.flatnonzero(~left):
            if part == parts.values:
                yield (
                    f"rules: {name!r} may be missing (missing: true), but no rule leaves room for that; name it as "
                    "null, or declare missing: false"
                )
            elif isinstance(column, Categorical | Boolean):
                yield f"rules: {name!r} can never be {parts.told(int(part))} under them; mend them, or its values"
