"""Metrics that count: marginals of one, two and three columns. No model is fitted."""

from math import log
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.evaluation.cells import CellTables, cell_labels, cut_tables
from understudy.evaluation.choices import column_sets
from understudy.evaluation.compare import Part, Scale, against_holdout, mean
from understudy.evaluation.divergences import (
    jensen_shannon,
    joint_tv_distance,
    mu_smoothed_kl,
    shares,
    tv_distance,
    wasserstein1,
)
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "distributions"

# Beyond these many sets of columns, a random but fixed selection is measured.
MOST_SETS = {1: None, 2: 5000, 3: 200}


def tvd(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    order: int = 2,
    bins: int = 20,
    sets: int | None = None,
    seed: int = 0,
) -> MetricResult:
    """Mean total variation distance of the marginals of `order` columns (1, 2 or 3); 0 is best, 1 worst.

    Numeric columns are cut at public bin edges or at `bins` real quantiles. All sets of columns are measured, or `sets`
    random ones where there are more (by default 5,000 pairs and 200 triples). A column's part is the mean over its
    sets.
    """
    if order not in MOST_SETS:
        raise OptionError(f"order must be 1, 2 or 3, got {order!r}")
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name=f"tvd_{order}way", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    if len(r.facts) < order:
        part = Part(undefined=f"{order} modelled columns are needed, the schema has {len(r.facts)}")
        return scale.result(part, None, missing=part.undefined or "")
    tables = cut_tables(r, s, t, bins=bins)
    chosen, note = column_sets(list(r.facts), order, MOST_SETS[order] if sets is None else sets, seed)
    return against_holdout(scale, lambda other: _joint(tables, other, chosen, note), tables.synthetic, tables.holdout)


def _joint(tables: CellTables, other: dict, chosen: list[tuple[str, ...]], note: tuple[str, ...]) -> Part:
    distances: dict[tuple[str, ...], float] = {}
    for names in chosen:
        left, right = [tables.real[name] for name in names], [other[name] for name in names]
        distances[names] = joint_tv_distance(left, right, [tables.sizes[name] for name in names])
    by_column: dict[str, list[float]] = {}
    for names, distance in distances.items():
        for name in names:
            by_column.setdefault(name, []).append(distance)
    worst = sorted(distances, key=lambda names: (-distances[names], names))[:20]
    return Part(
        value=float(np.mean(list(distances.values()))),
        per_column={name: float(np.mean(parts)) for name, parts in by_column.items()},
        notes=note,
        details={"sets": len(distances), "worst": [{"columns": list(n), "value": distances[n]} for n in worst]},
    )


def nist_three_way(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    sets: int = 100,
    bins: int = 100,
    seed: int = 0,
) -> MetricResult:
    """L1 distance of three-column joints on 100 equal bins between the real minimum and maximum; 0 is best, 2 worst.

    Averaged over `sets` random triples. `details["score"]` is the challenge's form, (2 - L1)/2 x 1,000,000.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="nist_3way", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 2.0))
    if len(r.facts) < 3:
        reason = f"3 modelled columns are needed, the schema has {len(r.facts)}"
        return scale.result(Part(undefined=reason), None, missing=reason)
    tables = cut_tables(r, s, t, bins=bins, equal=True)
    chosen, note = column_sets(list(r.facts), 3, sets, seed)

    def compare(other: dict) -> Part:
        part = _joint(tables, other, chosen, note)
        return Part(
            value=2 * part.value,
            per_column={name: 2 * number for name, number in part.per_column.items()},
            notes=note,
            details={"sets": len(chosen), "score": (1 - part.value) * 1e6},
        )

    return against_holdout(scale, compare, tables.synthetic, tables.holdout)


def wasserstein(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """Mean Wasserstein-1 distance of the numeric columns, each as a share of its public range; 0 is best, 1 worst."""
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="wasserstein", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    places = {name: _present(r, name) for name in r.numeric}

    def compare(other: View) -> Part:
        parts, reasons = {}, {}
        for name, mine in places.items():
            theirs = _present(other, name)
            if len(mine) == 0 or len(theirs) == 0:
                reasons[name] = "one of the two tables has no value here, all are missing"
            else:
                parts[name] = wasserstein1(mine, theirs)
        return _mean_of_columns(parts, reasons, "numeric")

    return against_holdout(scale, compare, s, t)


def _present(view: View, name: str) -> np.ndarray:
    place = view.position(name)
    return place[~np.isnan(place)]


def _mean_of_columns(parts: dict[str, float], reasons: dict[str, str], kind: str, **details: object) -> Part:
    if not parts:
        reason = f"no {kind} column has a value" if reasons else f"the schema has no {kind} column"
        return Part(undefined=reason, undefined_columns=reasons)
    return Part(value=mean(parts), per_column=parts, undefined_columns=reasons, details=details)


def jsd(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """Jensen-Shannon divergence, summed over the categorical columns; 0 is best, ln 2 a column worst.

    The logarithm is the natural one. Missing is a category of its own.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(
        name="jsd", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, log(2) * max(len(r.categorical), 1))
    )
    return against_holdout(scale, lambda other: _summed(r, other, jensen_shannon), s, t)


def mu_kl(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """mu-smoothed Kullback-Leibler divergence, summed over the categorical columns; 0 is best, without an upper end.

    It weighs lost rare categories more than the Jensen-Shannon divergence does. Missing is a category of its own.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="mu_kl", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, float("inf")))
    return against_holdout(scale, lambda other: _summed(r, other, mu_smoothed_kl), s, t)


def _summed(real: View, other: View, divergence) -> Part:
    parts, reasons = {}, {}
    for name in real.categorical:
        size = real.facts[name].size + 2
        number = divergence(shares(real.codes[name], size), shares(other.codes[name], size))
        if np.isfinite(number):
            parts[name] = number
        else:
            reasons[name] = "infinite: the real column has one value only, and the other table never shows it"
    if not parts:
        reason = "every categorical column is infinitely far" if reasons else "the schema has no categorical column"
        return Part(undefined=reason, undefined_columns=reasons)
    notes = (f"the sum leaves out {', '.join(reasons)}: infinite there",) if reasons else ()
    return Part(value=sum(parts.values()), per_column=parts, undefined_columns=reasons, notes=notes)


def dimension_wise_probability(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None
) -> MetricResult:
    """Share of ones in each two-valued column: mean absolute difference of the two tables; 0 is best, 1 worst.

    One is True, or the second declared value. Rows that miss the column, or lie outside it, do not count.
    `details["points"]` has (real, other) a column, for the scatter plot, and `details["correlation"]` that of the
    points.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="dimension_wise_probability", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))

    def compare(other: View) -> Part:
        parts, reasons, points = {}, {}, {}
        for name in r.categorical:
            if r.facts[name].size != 2:
                continue
            mine, theirs = _share_of_ones(r, name), _share_of_ones(other, name)
            if mine is None or theirs is None:
                reasons[name] = "one of the two tables has no value here"
            else:
                parts[name], points[name] = abs(mine - theirs), (mine, theirs)
        correlation, why = _correlation(list(points.values()))
        return _mean_of_columns(
            parts, reasons, "two-valued", points=points, correlation=correlation, correlation_undefined=why
        )

    return against_holdout(scale, compare, s, t)


def _share_of_ones(view: View, name: str) -> float | None:
    counts = np.bincount(view.codes[name], minlength=2)[:2]
    return float(counts[1] / counts.sum()) if counts.sum() else None


def _correlation(points: list[tuple[float, float]]) -> tuple[float | None, str | None]:
    if len(points) < 3:
        return None, "fewer than three two-valued columns"
    left, right = np.array(points).T
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return None, "all columns have the same share of ones in one of the tables"
    return float(np.corrcoef(left, right)[0, 1]), None


def lost_categories(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """Share of the real categories that the other table never shows; 0 is best, 1 worst.

    `details["lost"]` names them, `details["collapsed"]` the columns (numeric ones too) that vary in the real table and
    have one value only in the other. A column's part is its share of lost categories.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="lost_categories", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))

    def compare(other: View) -> Part:
        parts, lost, seen_total = {}, {}, 0
        for name in r.categorical:
            size = r.facts[name].size + 2
            mine = np.bincount(r.codes[name], minlength=size) > 0
            gone = np.flatnonzero(mine & (np.bincount(other.codes[name], minlength=size) == 0))
            seen_total += int(mine.sum())
            parts[name] = len(gone) / int(mine.sum())
            if len(gone):
                lost[name] = [r.facts[name].label(int(code)) for code in gone]
        collapsed = [name for name in r.facts if not _constant(r, name) and _constant(other, name)]
        if not parts:
            reason = "the schema has no categorical column"
            return Part(undefined=reason, details={"collapsed": collapsed})
        share = sum(len(names) for names in lost.values()) / seen_total
        return Part(value=share, per_column=parts, details={"lost": lost, "collapsed": collapsed})

    return against_holdout(scale, compare, s, t)


def _constant(view: View, name: str) -> bool:
    codes = view.codes[name]
    return bool((codes == codes[0]).all() or view.absent(name).all())


def one_way(real: Source, synthetic: Source, schema: Schema, *, bins: int = 20) -> dict[str, dict[str, Any]]:
    """Histograms of every column for plots: the cells, their share in the real and in the other table, the distance.

    Cells that neither table fills are left out. The mean of the distances is `tvd(..., order=1)`.
    """
    r, s, _ = open_tables(real, synthetic, schema, None)
    tables = cut_tables(r, s, None, bins=bins)
    histograms = {}
    for name, size in tables.sizes.items():
        mine, theirs = shares(tables.real[name], size), shares(tables.synthetic[name], size)
        filled = (mine > 0) | (theirs > 0)
        labels = cell_labels(r.facts[name], tables.cuts.get(name))
        histograms[name] = {
            "cells": [label for label, kept in zip(labels, filled, strict=True) if kept],
            "real": mine[filled].tolist(),
            "synthetic": theirs[filled].tolist(),
            "distance": tv_distance(tables.real[name], tables.synthetic[name], size=size),
        }
    return histograms
