"""Dimension-wise prediction: every column predicted from all the others."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.choices import some_columns
from understudy.evaluation.compare import Part, Scale, mean
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.models import FEWEST_ROWS, classify, regress
from understudy.evaluation.parallel import run
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.progress import Progress, silent
from understudy.schema import Schema

FAMILY = "prediction"

# Two-valued columns whose rarer value has a smaller real share than these are left out of the summaries beside it.
SPARSE = (0.01, 0.025, 0.05)

# A linear model that explains less than this of a real column gives way to boosted trees, for all tables alike.
POOR_R2 = 0.2

# Three models a column: a table with hundreds of columns is measured on a fixed random choice of them.
MOST_COLUMNS = 60


def dimension_wise_prediction(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    columns: tuple[str, ...] | None = None,
    rows: int = 5000,
    test_rows: int = 5000,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress = silent,
) -> MetricResult:
    """Each column predicted from the others: mean absolute gap between synthetic-trained and real-trained scores.

    0 is best, 1 worst. Scores are those on holdout rows: AUROC of a logistic regression for two-valued columns,
    micro-F1 of a random forest for other categorical ones, R2 of the Lasso for numeric ones (of boosted trees where the
    Lasso is poor on real rows), where an R2 below 0 counts as 0. `details["points"]` has (real, synthetic) a column and
    `details["thresholds"]` the mean gap without the sparse two-valued columns, whose sparsity is that of the real
    table. The reference trains on one half of the holdout rows in the place of the synthetic ones, and tests on the
    other half.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="dimension_wise_prediction", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    if t is None or len(r.facts) < 2:
        reason = NO_HOLDOUT if t is None else "there is one modelled column only, and nothing to predict it from"
        return scale.result(Part(undefined=reason), None, missing=reason)
    names, notes = some_columns(list(r.facts), columns, MOST_COLUMNS, seed)
    tables = [view.take(view.sample(count, seed)) for view, count in ((r, rows), (s, rows), (t, test_rows))]
    encoder = Encoder.of(r)
    tasks = [(_one_column, (tables, encoder, name, seed)) for name in names]
    points = dict(zip(names, run(tasks, jobs=jobs, stage="every column", progress=progress), strict=True))
    return scale.result(_summary(points, r, notes, fresh=False), _summary(points, r, notes, fresh=True))


@dataclass(frozen=True)
class _Point:
    """One column's scores: real and synthetic on all test rows, then real and fresh on the second half of them."""

    kind: str
    whole: tuple[float, float] | None
    half: tuple[float, float] | None
    undefined: str | None = None
    half_undefined: str | None = None


def _summary(points: dict[str, _Point], real: View, notes: tuple[str, ...], *, fresh: bool) -> Part:
    pairs, reasons = {}, {}
    for name, point in points.items():
        pair = point.half if fresh else point.whole
        if pair is None:
            reasons[name] = (point.half_undefined if fresh else point.undefined) or ""
        else:
            pairs[name] = pair
    gaps = {name: abs(first - second) for name, (first, second) in pairs.items()}
    if not gaps:
        return Part(undefined="no column can be predicted from the others", undefined_columns=reasons)
    thresholds = {}
    for least in SPARSE:
        kept = {name: gap for name, gap in gaps.items() if _rarer_share(real, name) >= least}
        thresholds[f"{least:g}"] = mean(kept) if kept else None
    details = {
        "points": pairs,
        "kinds": {name: points[name].kind for name in pairs},
        "thresholds": thresholds,
    }
    return Part(value=mean(gaps), per_column=gaps, undefined_columns=reasons, notes=notes, details=details)


def _rarer_share(view: View, name: str) -> float:
    """The real share of a two-valued column's rarer value; other columns are never sparse."""
    if view.facts[name].size != 2 or not view.facts[name].categorical:
        return 1.0
    counts = np.bincount(view.codes[name], minlength=2)[:2]
    return float(counts.min() / max(counts.sum(), 1))


def _one_column(tables: list[View], encoder: Encoder, name: str, seed: int) -> _Point:
    others = encoder.without(name)
    facts = tables[0].facts[name]
    rows, targets = [], []
    for view in tables:
        has = view.codes[name] < facts.size if facts.categorical else ~view.absent(name)
        kept = view.take(np.flatnonzero(has))
        targets.append(kept.codes[name].astype(np.int64) if facts.categorical else kept.position(name))
        rows.append(others.one_hot(kept.without(name)))
    word = "class" if facts.categorical else "value"
    for target, role in zip(targets, ("real", "synthetic", "holdout"), strict=True):
        reason = _unlearnable(target, f"the {role} column", word)
        if reason:
            return _Point(facts.kind, None, None, reason, reason)
    test, truth = rows[2], targets[2]
    predict, score = _classification(facts.size, seed) if facts.categorical else _regression(rows, targets, seed)
    real = predict(rows[0], targets[0], test)
    whole = score(truth, real), score(truth, predict(rows[1], targets[1], test))
    half = len(truth) // 2
    reason = _unlearnable(truth[:half], "half of the holdout column", word)
    if reason or len(np.unique(truth[half:])) < 2:
        return _Point(facts.kind, whole, None, None, reason or f"half of the holdout column has one {word} only")
    fresh = predict(test[:half], truth[:half], test[half:])
    return _Point(facts.kind, whole, (score(truth[half:], real[half:]), score(truth[half:], fresh)))


def _unlearnable(target: NDArray, where: str, word: str) -> str | None:
    distinct = len(np.unique(target))
    least = max(FEWEST_ROWS, 2 * distinct) if word == "class" else FEWEST_ROWS
    if len(target) < least:
        return f"{where} has {len(target)} rows with a value, at least {least} are needed"
    return f"{where} has one {word} only" if distinct < 2 else None


Predict = Callable[[NDArray, NDArray, NDArray], NDArray]
Score = Callable[[NDArray, NDArray], float]


def _classification(classes: int, seed: int) -> tuple[Predict, Score]:
    model = "logistic_regression" if classes == 2 else "random_forest"

    def predict(rows: NDArray, target: NDArray, test: NDArray) -> NDArray:
        return classify(model, rows, target, test, classes, seed).scores

    def score(truth: NDArray, found: NDArray) -> float:
        from sklearn.metrics import roc_auc_score

        if classes == 2:
            return float(roc_auc_score(truth, found[:, 1]))
        # Micro-F1 of one guess a row is the share of right guesses.
        return float((found.argmax(axis=1) == truth).mean())

    return predict, score


def _regression(rows: list[NDArray], targets: list[NDArray], seed: int) -> tuple[Predict, Score]:
    def score(truth: NDArray, guess: NDArray) -> float:
        return max(0.0, 1.0 - float(((truth - guess) ** 2).mean() / truth.var()))

    linear = regress("lasso", rows[0], targets[0], rows[2], seed).scores
    model = "lasso" if score(targets[2], linear) >= POOR_R2 else "boosted_trees"
    return lambda rows, target, test: regress(model, rows, target, test, seed).scores, score
