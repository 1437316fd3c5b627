"""Mending synthetic rows that break rules: as little of a row is changed as is easily found, and it always ends."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.schema import Order
from understudy.schema.combinations import Table
from understudy.schema.ruleset import Codes, order_held

if TYPE_CHECKING:
    from understudy.synthesizers.rules_held import Held

PASSES = 3
MOST_DONORS = 20_000
MOST_KINDS = 2_000  # of broken combinations that are mended one by one


def mend(held: "Held", codes: Codes, good: np.ndarray, rng: np.random.Generator) -> Codes:
    """All rows, those that were not good changed so that they hold rules and conditions.

    First single rules: combinations become the nearest allowed ones, by their frequency among the drawn rows; orders
    are swapped, else clipped. Where that is not enough, all columns that rules tie together are taken from another
    row that holds their rules and, if there is none, from the row by which the schema was found to be possible.
    """
    at = np.flatnonzero(~good)
    rows = {name: column[at] for name, column in codes.items()}
    for _ in range(PASSES):
        broken = ~held.met(rows)
        if not broken.any():
            break
        for table in held.rules.tables:
            if not set(table.columns) & set(held.rules.determined):
                _mend_combinations(held, table, rows, codes, rng)
        _mend_orders(held, rows)
        rows = held.complete(rows)
    for columns in held.rules.components:
        _replace(held, columns, rows, codes, rng)
    for name, column in codes.items():
        column[at] = rows[name]
    return codes


def _replace(held: "Held", columns: tuple[str, ...], rows: Codes, codes: Codes, rng: np.random.Generator) -> None:
    """Takes the columns of one component from rows that hold its rules; rules of others are not touched by that."""
    broken = np.flatnonzero(~held.met(rows, columns))
    if not len(broken):
        return
    donors = np.flatnonzero(held.met(codes, columns))
    if len(donors):
        taken = rng.choice(donors, len(broken))
        for name in columns:
            rows[name][broken] = codes[name][taken]
        return
    found = held.rules.find(columns, held.runs)
    for name in columns:
        rows[name][broken] = found[name]


def _mend_combinations(held: "Held", table: Table, rows: Codes, codes: Codes, rng: np.random.Generator) -> None:
    broken = np.flatnonzero(~table.held(rows))
    if not len(broken):
        return
    donors, places = _donors(held, table, codes, rng)
    if not len(places):
        return
    kinds, kind_of, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    by_kind = np.argsort(kind_of.ravel(), kind="stable")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    given = np.stack(table.places({name: rows[name][broken] for name in table.columns}), axis=1)
    wrong, wrong_of = np.unique(given, axis=0, return_inverse=True)
    for number, combination in enumerate(wrong[:MOST_KINDS]):
        members = broken[wrong_of.ravel() == number]
        distance = (kinds != combination).sum(axis=1)
        nearest = np.flatnonzero(distance == distance.min())
        picked = rng.choice(nearest, len(members), p=counts[nearest] / counts[nearest].sum())
        donor = by_kind[starts[picked] + rng.integers(0, counts[picked])]
        for k, name in enumerate(table.columns):
            differs = kinds[picked, k] != combination[k]
            rows[name][members[differs]] = donors[name][donor[differs]]


def _donors(held: "Held", table: Table, codes: Codes, rng: np.random.Generator) -> tuple[Codes, np.ndarray]:
    """Rows that hold the rule and meet the conditions on its columns; if none was drawn, combinations as declared."""
    usable = table.held(codes)
    for name in table.columns:
        usable &= held.within(name, codes[name])
    found = np.flatnonzero(usable)
    if len(found):
        found = rng.permutation(found)[:MOST_DONORS]
        donors = {name: codes[name][found] for name in table.columns}
        return donors, np.stack(table.places(donors), axis=1)
    places = np.argwhere(table.allowed)
    places = places[rng.permutation(len(places))[:MOST_DONORS]]
    made = {}
    for k, (name, parts) in enumerate(zip(table.columns, table.parts, strict=True)):
        codes_of_parts = np.append(parts.starts, parts.axis.plain([parts.axis.missing_code]))
        made[name] = codes_of_parts[places[:, k]].astype(codes[name].dtype)
    usable = np.ones(len(places), dtype=bool)
    for name in table.columns:
        usable &= held.within(name, made[name])
    return {name: column[usable] for name, column in made.items()}, places[usable]


def _mend_orders(held: "Held", rows: Codes) -> None:
    """Swaps the two sides where both stay in their columns, as often as a chain needs; then clips."""
    orders = [rule for _, rule in held.rules.orders]
    for _ in orders:
        if not sum(_swap(held, rule, rows) for rule in orders):
            break
    broken = np.zeros(len(next(iter(rows.values()))), dtype=bool)
    for rule in orders:
        broken |= ~order_held(rule, held.rules.axes, rows)
    if broken.any():
        _clip(held, orders, rows, np.flatnonzero(broken))


def _swap(held: "Held", rule: Order, rows: Codes) -> bool:
    """Exchanges the two values of broken rows; columns of other kinds of rules stay as they are."""
    names, axes = rule.involved, held.rules.axes
    if any(name in table.columns for table in held.rules.tables for name in names):
        return False
    broken = np.flatnonzero(~order_held(rule, axes, rows))
    if not len(broken):
        return False
    numbers = [axes[name].numbers(rows[name][broken]) for name in names]
    swapped, fits = [], np.ones(len(broken), dtype=bool)
    for name, wanted in zip(names, reversed(numbers), strict=True):
        code, found = axes[name].lowest(wanted, strict=False)
        code = code.astype(rows[name].dtype)
        fits &= found & (axes[name].numbers(code) == wanted) & held.within(name, code)
        swapped.append(code)
    fits &= numbers[0] != numbers[1]  # equal numbers break a strict order, and swapping them would not help
    for name, code in zip(names, swapped, strict=True):
        rows[name][broken[fits]] = code[fits]
    return bool(fits.any())


def _clip(held: "Held", orders: list[Order], rows: Codes, at: np.ndarray) -> None:
    """Brings numbers below what leaves room for those above them, then raises each to those below it.

    After the first pass each number is at most the highest for which all that lie above it have room, so that the
    second finds a place for every column that is not determined by others or bound by a condition.
    """
    axes = held.rules.axes
    names = _upwards(orders)
    free = {name for name in names if name not in held.rules.determined}
    codes = {name: axes[name].plain(rows[name][at]) for name in names}
    present = {name: ~axes[name].absent(codes[name]) for name in names}
    caps = {}
    for name in reversed(names):
        cap = np.full(len(at), _top(held, name)) if name in free else codes[name].copy()
        for rule in orders:
            if rule.column == name:
                most, found = axes[name].highest(axes[rule.upper].numbers(caps[rule.upper]), strict=rule.strict)
                cap = np.where(found & present[rule.upper], np.minimum(cap, most), cap)
        caps[name] = cap
        if name in free:
            codes[name] = np.where(present[name], np.minimum(codes[name], cap), codes[name])
    for name in names:
        for rule in orders:
            if rule.upper == name and name in free:
                least, found = axes[name].lowest(axes[rule.column].numbers(codes[rule.column]), strict=rule.strict)
                raised = found & present[name] & present[rule.column]
                codes[name] = np.where(raised, np.maximum(codes[name], least), codes[name])
    for name in free:
        rows[name][at] = codes[name].astype(rows[name].dtype)


def _top(held: "Held", name: str) -> Any:
    """The highest code that conditions leave."""
    axis = held.rules.axes[name]
    values = [last for _, last in held.runs.get(name, ()) if last == last and last != axis.size]
    return axis.plain(min(max(values), axis.bounds[1]) if values else axis.bounds[1])


def _upwards(orders: list[Order]) -> list[str]:
    """Columns of orders, each after those that lie below it."""
    waiting = list(dict.fromkeys(name for rule in orders for name in rule.involved))
    done: list[str] = []
    while waiting:
        done.append(next(n for n in waiting if not any(r.upper == n and r.column in waiting for r in orders)))
        waiting.remove(done[-1])
    return done
