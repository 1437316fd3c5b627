"""Whether some row holds all rules, by narrowing down and trying out parts of columns; from public facts alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from understudy.errors import SchemaError
from understudy.schema.combinations import Parts, Run, Table
from understudy.schema.rules import Order

MOST_TRIES = 5_000

Left = dict[str, np.ndarray]  # by column, which of its parts can still occur


def possible_parts(tables: Sequence[Table], parts: Mapping[str, Parts], runs: Mapping[str, Sequence[Run]]) -> Left:
    """What tables and conditions leave of every column: a part that is gone occurs in no row that holds them."""
    left = {name: np.ones(part.count, dtype=bool) for name, part in parts.items()}
    for name in set(runs) & set(left):
        left[name] &= parts[name].inside(runs[name])
    return _narrow_by_tables(tables, parts, left)


def find_row(
    orders: Sequence[Order], tables: Sequence[Table], parts: Mapping[str, Parts], runs: Mapping[str, Sequence[Run]]
) -> dict[str, Any] | None:
    """A code for each column such that all hold; None if there is no such row.

    Exact: parts are tried until tables allow one a column, and for those the lowest codes that meet the orders are the
    best there are. In general that is a hard problem; rules that take more than 5,000 tries are refused.
    """
    tries = [0]

    def search(left: Left) -> dict[str, Any] | None:
        tries[0] += 1
        if tries[0] > MOST_TRIES:
            raise SchemaError(
                f"rules: those on {', '.join(map(repr, parts))} are too entangled to be checked; use fewer or simpler"
            )
        left = _narrow(orders, tables, parts, left)
        counts = {name: int(mask.sum()) for name, mask in left.items()}
        if not all(counts.values()):
            return None
        open_columns = [name for name, count in counts.items() if count > 1]
        if not open_columns:
            return _lowest_codes(orders, parts, {name: int(np.argmax(mask)) for name, mask in left.items()})
        name = min(open_columns, key=counts.__getitem__)
        for part in np.flatnonzero(left[name]):
            one = np.zeros_like(left[name])
            one[part] = True
            found = search({**left, name: one})
            if found is not None:
                return found
        return None

    return search(possible_parts(tables, parts, runs))


def _narrow(orders: Sequence[Order], tables: Sequence[Table], parts: Mapping[str, Parts], left: Left) -> Left:
    while True:
        before = sum(int(mask.sum()) for mask in left.values())
        left = _narrow_by_tables(tables, parts, left)
        for rule in orders:
            left = _narrow_by_order(rule, parts, left)
        if sum(int(mask.sum()) for mask in left.values()) == before:
            return left


def _narrow_by_tables(tables: Sequence[Table], parts: Mapping[str, Parts], left: Left) -> Left:
    left = dict(left)
    changed = True
    while changed:
        changed = False
        for table in tables:
            # Each column's parts lie within the table's own, which are coarser.
            within = [_within(parts[name], own) for name, own in zip(table.columns, table.parts, strict=True)]
            live = [
                np.bincount(place[left[name]], minlength=own.count) > 0
                for name, own, place in zip(table.columns, table.parts, within, strict=True)
            ]
            allowed = table.allowed[np.ix_(*live)]
            for k, name in enumerate(table.columns):
                kept = np.zeros(table.parts[k].count, dtype=bool)
                kept[live[k]] = allowed.any(axis=tuple(axis for axis in range(allowed.ndim) if axis != k))
                narrowed = left[name] & kept[within[k]]
                changed |= bool((narrowed != left[name]).any())
                left[name] = narrowed
    return left


def _within(parts: Parts, coarser: Parts) -> np.ndarray:
    places = np.searchsorted(coarser.starts, parts.starts, side="right") - 1
    return np.append(places, coarser.values) if parts.count > parts.values else places


def _narrow_by_order(rule: Order, parts: Mapping[str, Parts], left: Left) -> Left:
    lower, upper = rule.involved
    a, b = parts[lower], parts[upper]
    values_a, values_b = np.flatnonzero(left[lower][: a.values]), np.flatnonzero(left[upper][: b.values])
    left = dict(left)
    if len(values_a) and left[lower][: a.values].sum() == left[lower].sum():  # a value for certain
        least = a.axis.numbers(a.starts[values_a[:1]])
        most = b.axis.numbers(b.lasts)
        left[upper] = left[upper].copy()
        left[upper][: b.values] &= most > least if rule.strict else most >= least
    if len(values_b) and left[upper][: b.values].sum() == left[upper].sum():
        most = b.axis.numbers(b.lasts[values_b[-1:]])
        least = a.axis.numbers(a.starts)
        left[lower] = left[lower].copy()
        left[lower][: a.values] &= least < most if rule.strict else least <= most
    return left


def _lowest_codes(
    orders: Sequence[Order], parts: Mapping[str, Parts], chosen: Mapping[str, int]
) -> dict[str, Any] | None:
    """The lowest code of each chosen part that lies above what the orders put below it."""
    codes: dict[str, Any] = {}
    waiting = list(chosen)
    while waiting:
        name = next(n for n in waiting if not any(r.upper == n and r.column in waiting for r in orders))
        waiting.remove(name)
        part, axis = parts[name], parts[name].axis
        if chosen[name] == part.values:
            codes[name] = axis.missing_code
            continue
        code = part.starts[chosen[name]]
        for rule in orders:
            if rule.upper == name and chosen[rule.column] < parts[rule.column].values:
                least, found = axis.lowest(parts[rule.column].axis.numbers([codes[rule.column]]), strict=rule.strict)
                if not found[0]:
                    return None
                code = max(code, least[0])
        if code > part.lasts[chosen[name]]:
            return None
        codes[name] = code.item()
    return codes
