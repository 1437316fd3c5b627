"""Released tables in the layout of the fit."""

from itertools import combinations

import numpy as np

from understudy.schema import Schema
from understudy.synthesizers.mixture.fit import Targets
from understudy.synthesizers.mixture.pairs import Coarse, Pair
from understudy.synthesizers.one_way import OneWay
from understudy.table.rules import impossible

# The rows are themselves a sample: a part of a count's sampling variance joins its noise, so that no effort goes into
# copying luck; and half a row of rounding keeps weights finite without noise.
SAMPLING_PART = 0.1
ROUNDING_VARIANCE = 0.25


def make_targets(
    schema: Schema,
    one_way: OneWay,
    coarse: Coarse,
    pairs: list[Pair],
    tables: list[np.ndarray],
    noise: list[float],
) -> Targets:
    """Stacks all tables, `noise` being the standard deviation of each; cells weigh the inverse of their variance.

    Cells that the schema's rules leave empty are known to be 0, with no noise at all, in pairs that were not measured
    too: the mixture puts nothing there, so that few rows are drawn that break a rule.
    """
    names = list(coarse.groups)
    sizes = tuple(coarse.size(name) for name in names)
    starts = dict(zip(names, np.concatenate([[0], np.cumsum(sizes)[:-1]]).tolist(), strict=True))
    width = sum(sizes)
    counts = np.zeros((coarse.label_classes, width, width), dtype=np.float32)
    weights = np.zeros_like(counts)
    for (first, second), table, deviation in zip(pairs, tables, noise, strict=True):
        a = slice(starts[first], starts[first] + table.shape[1])
        b = slice(starts[second], starts[second] + table.shape[2])
        weight = 1 / (deviation**2 + SAMPLING_PART * np.maximum(table, 0) + ROUNDING_VARIANCE)
        counts[:, a, b], counts[:, b, a] = table, table.transpose(0, 2, 1)
        weights[:, a, b], weights[:, b, a] = weight, weight.transpose(0, 2, 1)
    for first, second in combinations(names, 2) if schema.rules else ():
        empty = _empty(schema, one_way, coarse, first, second)
        if empty.any():
            a = slice(starts[first], starts[first] + len(empty))
            b = slice(starts[second], starts[second] + empty.shape[1])
            for block, mask in (((slice(None), a, b), empty), ((slice(None), b, a), empty.T)):
                counts[block] = np.where(mask, 0.0, counts[block])
                weights[block] = np.where(mask, 1 / ROUNDING_VARIANCE, weights[block])
    ones = [np.bincount(coarse.groups[name], weights=one_way.counts[name]) for name in names]
    variances = [
        one_way.coarse_variance(name, coarse.groups[name]) + SAMPLING_PART * counted + ROUNDING_VARIANCE
        for name, counted in zip(names, ones, strict=True)
    ]
    if coarse.label is None:
        class_shares = np.ones(1)
    else:
        class_shares = one_way.counts[coarse.label] / one_way.total
    return Targets(
        pairs=counts,
        pair_weights=weights,
        ones=np.concatenate(ones),
        one_weights=1 / np.concatenate(variances),
        class_shares=class_shares,
        sizes=sizes,
        total=one_way.total,
    )


def _empty(schema: Schema, one_way: OneWay, coarse: Coarse, first: str, second: str) -> np.ndarray:
    """Pairs of coarse codes all of whose cells are impossible together."""
    possible = ~impossible(schema, first, second, one_way.cells[first], one_way.cells[second])
    held = possible.astype(np.float32)
    for axis, name in enumerate((first, second)):
        member = np.arange(coarse.size(name))[:, None] == coarse.groups[name]
        held = np.moveaxis(np.tensordot(member.astype(np.float32), held, axes=(1, axis)), 0, axis)
    return held == 0
