"""Released tables in the layout of the fit."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from understudy.schema import Schema
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, Pair, interactions
from understudy.synthesizers.mixture.ties import ties_of
from understudy.synthesizers.mixture.weak import free_numbers, parts_kept, shares_by_class
from understudy.synthesizers.one_way import OneWay
from understudy.table.rules import impossible

# The rows are themselves a sample: a part of a count's sampling variance joins its noise, so that no effort goes into
# copying luck; and half a row of rounding keeps weights finite without noise.
SAMPLING_PART = 0.1
ROUNDING_VARIANCE = 0.25


@dataclass(frozen=True, eq=False)
class Targets:
    """Released tables in the layout of the fit, each number with the inverse of its variance (0: not measured).

    Codes of all columns lie side by side, D in all. `pairs` (classes, D, D), symmetric, and `margins` (classes, D) are
    of probabilities less `even` (D,): with even shares in there, interactions and deviations, with zeros, counts.
    `ones` (D,) are counts, and so are `class_shares` (classes,) times `total`. `empty_weights` (D, D): how much a row
    costs in a pair of codes that rules forbid, or None.
    `ties` (D, D): how far codes of a column move together in a step, or None where each moves alone.
    `freedom`: independent numbers in pairs and margins; of tables that were drawn in, what is left of their squares.
    """

    pairs: np.ndarray
    pair_weights: np.ndarray
    margins: np.ndarray
    margin_weights: np.ndarray
    even: np.ndarray
    empty_weights: np.ndarray | None
    ties: np.ndarray | None
    freedom: float
    ones: np.ndarray
    one_weights: np.ndarray
    class_shares: np.ndarray
    class_weights: np.ndarray
    sizes: tuple[int, ...]
    total: float


def make_targets(
    schema: Schema, one_way: OneWay, coarse: Coarse, pairs: list[Pair], found: Interactions, *, clear: bool = False
) -> Targets:
    """Stacks all tables; they weigh the inverse of their variance.

    clear: where there is hardly any noise, interactions and columns are put together to counts again. They say the
    same, and a fit that has only its own steps to limit it gets closer by them.

    Otherwise tables that are noise for the most part are drawn towards independent columns (`weak`).

    Cells that the schema's rules leave empty are known to be 0, with no noise at all, in pairs that were not measured
    too: the mixture puts nothing there, so that few rows are drawn that break a rule.
    """
    names = list(coarse.groups)
    sizes = tuple(coarse.size(name) for name in names)
    starts = dict(zip(names, np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist(), strict=True))
    width = sum(sizes)
    place = {name: slice(starts[name], starts[name] + size) for name, size in zip(names, sizes, strict=True)}
    ones = {name: np.bincount(coarse.groups[name], weights=one_way.counts[name]) for name in names}
    class_shares, class_weights = np.ones(1), np.zeros(1)
    if coarse.label is not None:
        class_shares = one_way.counts[coarse.label] / one_way.total
        class_weights = 1 / _one_way_variance(one_way, coarse.label, np.arange(len(class_shares)))
    classes, free = coarse.label_classes, 0.0
    tables, weights = np.zeros((2, classes, width, width), dtype=np.float32)
    class_rows = one_way.total * class_shares
    measured = _pair_tables(pairs, found, ones, class_rows, by_class=coarse.label is not None, clear=clear)
    for (first, second), (table, weight, part) in zip(pairs, measured, strict=True):
        a, b = place[first], place[second]
        tables[:, a, b], weights[:, a, b] = table, weight
        tables[:, b, a], weights[:, b, a] = table.transpose(0, 2, 1), weight.transpose(0, 2, 1)
        free += part**2 * free_numbers(table)
    margins, margin_weights = np.zeros((2, classes, width), dtype=np.float32)
    for name, table in found.margins.items():
        margins[:, place[name]] = (
            _centred(table, axis=1) + clear * one_way.total * class_shares[:, None] / table.shape[1]
        )
        margin_weights[:, place[name]] = _weight(found.margin_noise, np.outer(class_shares, ones[name]))
        free += classes * (table.shape[1] - 1)
    empty = np.zeros((width, width), dtype=np.float32)
    for first, second in combinations(names, 2) if schema.rules else ():
        a, b = place[first], place[second]
        empty[a, b] = _empty(schema, one_way, coarse, first, second) / ROUNDING_VARIANCE
        empty[b, a] = empty[a, b].T
    ties = np.eye(width, dtype=np.float32)
    for name in names:
        ties[place[name], place[name]] = ties_of(one_way.cells[name], coarse.groups[name], one_way.counts[name])
    variances = [_one_way_variance(one_way, name, coarse.groups[name]) for name in names]
    return Targets(
        pairs=tables,
        pair_weights=weights,
        margins=margins,
        margin_weights=margin_weights,
        even=np.repeat((1 - clear) / np.array(sizes), sizes),
        empty_weights=empty if empty.any() else None,
        ties=ties if any(one_way.cells[name].ordered for name in names) else None,
        freedom=free,
        ones=np.concatenate(list(ones.values())),
        one_weights=1 / np.concatenate(variances),
        class_shares=class_shares,
        class_weights=class_weights,
        sizes=sizes,
        total=one_way.total,
    )


def _pair_tables(
    pairs: list[Pair],
    found: Interactions,
    ones: dict[str, np.ndarray],
    class_rows: np.ndarray,
    *,
    by_class: bool,
    clear: bool,
) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """Of every pair: its table for the fit, the inverses of its variances, and how much of its deviations was kept."""
    columns = {name: _centred(found.margins[name] if by_class else ones[name][None], axis=1) for name in found.margins}
    tables = [_centred(_centred(table, axis=1), axis=2) for table in found.pairs]
    counts = [
        table + _spread(columns[first], columns[second], class_rows)
        for (first, second), table in zip(pairs, tables, strict=True)
    ]
    inverse = [_weight(noise, count) for noise, count in zip(found.pair_noise, counts, strict=True)]
    if clear:
        return list(zip(counts, inverse, [1.0] * len(pairs), strict=True))
    shares = {name: shares_by_class(column, ones[name], class_rows) for name, column in columns.items()}
    alone = [_independent(class_rows, shares[first], shares[second]) for first, second in pairs]
    beyond = [table - expected for table, expected in zip(tables, alone, strict=True)]
    kept = parts_kept(list(zip(beyond, inverse, strict=True)))
    drawn = [expected + part * table for expected, part, table in zip(alone, kept, beyond, strict=True)]
    return list(zip(drawn, inverse, kept, strict=True))


def _centred(table: np.ndarray, axis: int) -> np.ndarray:
    """Without the noise in means, which tell nothing: they were taken out before."""
    return table - table.mean(axis=axis, keepdims=True)


def _spread(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What two columns (deviations by class) and each class's rows say of a table: with interactions, its counts."""
    a, b = first.shape[1], second.shape[1]
    return first[:, :, None] / b + second[:, None, :] / a + rows[:, None, None] / (a * b)


def _independent(rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The interactions of two columns that have these shares in each class and are independent there."""
    return interactions(rows[:, None, None] * first[:, :, None] * second[:, None, :])


def _weight(noise: float, counts: np.ndarray) -> np.ndarray:
    """The inverse of the variance of cells that hold about so many rows."""
    return 1 / (noise**2 + SAMPLING_PART * np.maximum(counts, 0) + ROUNDING_VARIANCE)


def _one_way_variance(one_way: OneWay, name: str, groups: np.ndarray) -> np.ndarray:
    counts = np.bincount(groups, weights=one_way.counts[name])
    return one_way.coarse_variance(name, groups) + SAMPLING_PART * counts + ROUNDING_VARIANCE


def _empty(schema: Schema, one_way: OneWay, coarse: Coarse, first: str, second: str) -> np.ndarray:
    """Pairs of coarse codes all of whose cells are impossible together."""
    possible = ~impossible(schema, first, second, one_way.cells[first], one_way.cells[second])
    held = possible.astype(np.float32)
    for axis, name in enumerate((first, second)):
        member = np.arange(coarse.size(name))[:, None] == coarse.groups[name]
        held = np.moveaxis(np.tensordot(member.astype(np.float32), held, axes=(1, axis)), 0, axis)
    return held == 0
