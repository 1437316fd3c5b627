"""Declared rules and tables: rows that break them, and cells that no row which holds them can fall into."""

from collections.abc import Iterator, Mapping

import numpy as np

from understudy.schema import Order, Schema
from understudy.schema.axis import Axis, axis_of
from understudy.schema.combinations import Parts
from understudy.schema.combinations import Table as RuleTable
from understudy.schema.ruleset import Ruleset
from understudy.schema.shown import rule_words
from understudy.table.cells import Cells

BREAKING = "breaking rule "


def rule_names(schema: Schema) -> list[str]:
    """What findings call the rules: number and words."""
    return [f"{BREAKING}{number} ({rule_words(rule)})" for number, rule in enumerate(schema.rules, start=1)]


def broken_rows(rules: Ruleset, codes: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
    """For each rule in turn, which rows of codes break it."""
    for number in range(1, len(rules.rules) + 1):
        yield ~rules.held(codes, number)


def impossible(schema: Schema, a: str, b: str, cells_a: Cells, cells_b: Cells) -> np.ndarray:
    """Pairs of fine cells, missing ones included, that no row which holds the rules can fall into.

    (cells_a.count, cells_b.count) of booleans, from public facts alone. Sound: where it says so, no two codes of the
    two cells go together. Of rules with other columns it takes what they say about these two, and follows orders
    through columns that cannot be missing; beyond that, what only several rules together exclude is not found.
    """
    found = np.zeros((cells_a.count, cells_b.count), dtype=bool)
    if not schema.rules or a == b:
        return found
    rules = schema.ruleset()
    for table in rules.tables:
        found |= _outside(table, a, b, cells_a, cells_b)
    axes = {name: axis_of(schema.modelled[name]) for name in (a, b)}
    orders = [rule for rule in schema.rules if isinstance(rule, Order)]
    for lower, upper, cells_lower, cells_upper in ((a, b, cells_a, cells_b), (b, a, cells_b, cells_a)):
        relation = _relation(orders, schema, lower, upper)
        if relation is not None:
            above = _above(axes[lower], axes[upper], cells_lower, cells_upper, strict=relation)
            found |= above if lower == a else above.T
    found |= _out_of_reach(orders, rules, a, cells_a)[:, None]
    found |= _out_of_reach(orders, rules, b, cells_b)[None, :]
    return found


def _out_of_reach(orders: list[Order], rules: Ruleset, name: str, cells: Cells) -> np.ndarray:
    """Cells beyond all that another column, which cannot be missing, can hold where an order ties the two."""
    gone = np.zeros(cells.count, dtype=bool)
    for rule in orders:
        other = rules.axes[rule.upper if rule.column == name else rule.column]
        if name not in rule.involved or other.column.missing:
            continue
        own = rules.axes[name]
        firsts, lasts = cell_ends(cells, own)
        if rule.column == name:
            least, most = own.numbers(firsts), other.numbers([other.bounds[1]])
        else:
            least, most = other.numbers([other.bounds[0]]), own.numbers(lasts)
        gone[: cells.values] |= least >= most if rule.strict else least > most
    return gone


def _outside(table: RuleTable, a: str, b: str, cells_a: Cells, cells_b: Cells) -> np.ndarray:
    """Pairs of cells without an allowed pair of parts."""
    found = np.zeros((cells_a.count, cells_b.count), dtype=bool)
    columns = [name for name in (a, b) if name in table.columns]
    if not columns:
        return found
    places = [table.columns.index(name) for name in columns]
    others = tuple(k for k in range(len(table.columns)) if k not in places)
    allowed = table.allowed.any(axis=others) if others else table.allowed
    if len(places) == 2 and places[0] > places[1]:
        allowed = allowed.T
    cells = {a: cells_a, b: cells_b}
    counts = np.pad(allowed.astype(np.int64), [(1, 0)] * allowed.ndim)
    for axis in range(allowed.ndim):
        counts = np.cumsum(counts, axis=axis)
    # How many allowed pairs of parts a pair of runs of parts holds, from sums over all that comes before.
    ranges = [_part_range(table.parts[place], cells[name]) for place, name in zip(places, columns, strict=True)]
    if len(ranges) == 1:
        ((first, last),) = ranges
        gone = counts[last + 1] - counts[first] == 0
        return found | (gone[:, None] if columns == [a] else gone[None, :])
    (first_a, last_a), (first_b, last_b) = ranges
    inside = (
        counts[np.ix_(last_a + 1, last_b + 1)]
        - counts[np.ix_(first_a, last_b + 1)]
        - counts[np.ix_(last_a + 1, first_b)]
        + counts[np.ix_(first_a, first_b)]
    )
    return inside == 0


def cell_ends(cells: Cells, axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last code of every cell of values."""
    if cells.size is None:
        low, high = map(np.float32, axis.bounds)
        firsts = np.clip(cells.starts, low, high)
        return firsts, np.append(np.nextafter(cells.starts[1:], np.float32(-np.inf)), high).clip(low, high)
    firsts = cells.starts.astype(np.uint64)
    return firsts, np.append(firsts[1:] - np.uint64(1), np.uint64(cells.size - 1))


def _part_range(parts: Parts, cells: Cells) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last part that each cell reaches into; missing is a cell and a part of its own."""
    firsts, lasts = (parts.index(ends) for ends in cell_ends(cells, parts.axis))
    if cells.missing:
        firsts, lasts = np.append(firsts, parts.values), np.append(lasts, parts.values)
    return firsts, lasts


def _above(lower: Axis, upper: Axis, cells_lower: Cells, cells_upper: Cells, *, strict: bool) -> np.ndarray:
    """Pairs of cells whose every number in the first lies above (strict: at or above) every one in the second."""
    found = np.zeros((cells_lower.count, cells_upper.count), dtype=bool)
    least = lower.numbers(cell_ends(cells_lower, lower)[0])[:, None]
    most = upper.numbers(cell_ends(cells_upper, upper)[1])[None, :]
    found[: cells_lower.values, : cells_upper.values] = least >= most if strict else least > most
    return found


def _relation(orders: list[Order], schema: Schema, lower: str, upper: str) -> bool | None:
    """Whether orders put one column below another (True), at most at it (False), or say nothing (None)."""
    best: bool | None = None
    for rule in orders:
        if rule.column != lower:
            continue
        if rule.upper == upper:
            rest: bool | None = False
        elif schema.modelled[rule.upper].missing:
            continue  # a missing cell in between ties nothing together
        else:
            rest = _relation(orders, schema, rule.upper, upper)
        if rest is not None:
            best = bool(best) or rule.strict or rest
    return best
