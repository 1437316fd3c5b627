"""Can a model tell synthetic rows from real ones? Propensity scores and the classifier two-sample test."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from understudy.errors import OptionError
from understudy.evaluation.compare import Part, Scale, against_holdout
from understudy.evaluation.encoding import Encoder, compact
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.logistic import fit_probabilities
from understudy.evaluation.parallel import one_thread
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "telling apart"

# Cells of a matrix that is made to be thrown away: 80 MB.
MOST_CELLS = 20_000_000


def c2st(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    rows: int = 20_000,
    folds: int = 3,
    seed: int = 0,
) -> MetricResult:
    """Classifier two-sample test: AUC of boosted trees telling holdout rows from synthetic rows; 0.5 is best, 1 worst.

    The reference tells holdout rows from the real training rows. Without holdout rows, the real rows take their place
    in the value, and there is no reference. The AUC is that on rows left out of the training, in `folds` folds of at
    most `rows` rows a table. `details["importance"]` is the loss of AUC when a column is shuffled.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="c2st", family=FAMILY, direction="lower", ideal=0.5, range=(0.0, 1.0))

    def compare(fresh: View, other: View, *, importance: bool = True) -> Part:
        if min(fresh.rows, other.rows) < 2 * folds:
            return Part(undefined=f"at least {2 * folds} rows a table are needed")
        areas, losses = _cross_tested(fresh, other, rows, folds, seed, importance=importance)
        return Part(value=float(np.mean(areas)), details={"folds": areas, "importance": losses})

    if t is None:
        part = compare(r, s)
        note = (
            "without holdout rows: real rows are told from synthetic ones, and rows that were copied pull it below 0.5"
        )
        return scale.result(Part(value=part.value, undefined=part.undefined, details=part.details, notes=(note,)), None)
    return scale.result(compare(t, s), compare(t, r, importance=False))


@one_thread()
def _cross_tested(
    first: View, second: View, rows: int, folds: int, seed: int, *, importance: bool
) -> tuple[list[float], dict[str, float]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    matrices, fold_of, origin = [], [], []
    for origin_code, view in enumerate((first, second)):
        # Both tables are dealt into folds in the same way, so rows that both hold in equal number meet in one fold.
        # Otherwise a copy in the training part would argue against its twin in the tested part.
        part = view.take(view.sample(rows, seed))
        matrix, categories = compact(part)
        matrices.append(matrix)
        fold_of.append(np.arange(part.rows) % folds)
        origin.append(np.full(part.rows, origin_code))
    matrix, fold, truth = np.concatenate(matrices), np.concatenate(fold_of), np.concatenate(origin)
    # A round costs as many histograms as there are columns: fewer rounds for very wide tables.
    rounds = max(20, min(100, 10_000 // matrix.shape[1]))
    areas = []
    for left_out in range(folds):
        model = HistGradientBoostingClassifier(
            categorical_features=categories, early_stopping=False, max_iter=rounds, random_state=seed
        )
        model.fit(matrix[fold != left_out], truth[fold != left_out])
        tested, answers = matrix[fold == left_out], truth[fold == left_out]
        areas.append(float(roc_auc_score(answers, model.predict_proba(tested)[:, 1])))
    if not importance:
        return areas, {}
    rng, losses = np.random.default_rng(seed), []
    for columns in np.array_split(np.arange(matrix.shape[1]), -(-tested.size * matrix.shape[1] // MOST_CELLS)):
        # One call for many columns: the model's own preparation of a table costs more than its trees do.
        copies = np.tile(tested, (len(columns), 1, 1))
        for copy, at in zip(copies, columns, strict=True):
            rng.shuffle(copy[:, at])
        scores = model.predict_proba(copies.reshape(-1, matrix.shape[1]))[:, 1].reshape(len(columns), -1)
        losses += [areas[-1] - float(roc_auc_score(answers, score)) for score in scores]
    return areas, dict(zip(first.facts, losses, strict=True))


def pmse(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    rows: int = 50_000,
    seed: int = 0,
) -> MetricResult:
    """Propensity mean squared error: how far a logistic regression's propensities are from the share of synthetic rows.

    0 is best; c(1 - c) is worst, where c is that share: 0.25 for tables of equal length.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="pmse", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 0.25))
    return against_holdout(scale, lambda other: _logistic_pmse(r, other, rows, seed, ratio=False), s, t)


def pmse_ratio(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    model: str = "logistic",
    rows: int | None = None,
    permutations: int = 20,
    seed: int = 0,
) -> MetricResult:
    """pMSE over its expectation if both tables came from one population; about 1 for fresh real rows, larger is worse.

    `model` is "logistic" (main effects; the expectation is c(1 - c)(k - 1)/N for k coefficients of full rank and N
    rows, the mean under exchangeable origins) or "tree" (a decision tree, which also sees interactions; the expectation
    is the mean over `permutations` shuffles of the origins). A table that copies the real rows scores below 1.
    """
    if model not in ("logistic", "tree"):
        raise OptionError(f"model must be logistic or tree, got {model!r}")
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name=f"pmse_ratio_{model}", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, float("inf")))
    compare: Callable[[View], Part]
    if model == "logistic":
        compare = lambda other: _logistic_pmse(r, other, rows or 50_000, seed, ratio=True)  # noqa: E731
    else:
        compare = lambda other: _tree_pmse(r, other, rows or 10_000, permutations, seed)  # noqa: E731
    return against_holdout(scale, compare, s, t)


@one_thread()
def _logistic_pmse(real: View, other: View, rows: int, seed: int, *, ratio: bool) -> Part:
    encoder = Encoder.of(real)
    # A Newton step costs rows x width^2: wide tables get fewer rows, so that a metric stays a matter of seconds.
    rows = min(rows, max(2 * encoder.width, int(3e10 / encoder.width**2)))
    matrix, truth = _stacked(real, other, rows, seed, encoder.one_hot)
    share, total = float(truth.mean()), len(truth)
    probabilities, rank = fit_probabilities(matrix, truth)
    deviation = float(((probabilities - share) ** 2).mean())
    details = {"rows": total, "share": share, "coefficients": rank + 1}
    if not ratio:
        return Part(value=deviation, details=details)
    expected = share * (1 - share) * rank / total
    if expected == 0:
        return Part(undefined="no column varies, so nothing can tell the tables apart", details=details)
    # Snoke and others (2018) condition on the real rows, which takes a further factor 1 - c into the expectation.
    details |= {"pmse": deviation, "expected": expected, "ratio_given_real": deviation / (expected * (1 - share))}
    return Part(value=deviation / expected, details=details)


def _stacked(
    real: View, other: View, rows: int, seed: int, encode: Callable[[View], NDArray]
) -> tuple[NDArray, NDArray[np.float64]]:
    """Both tables below each other, and 1 for the rows of the second."""
    parts = [view.take(view.sample(rows, seed)) for view in (real, other)]
    truth = np.repeat([0.0, 1.0], [part.rows for part in parts])
    return np.concatenate([encode(part) for part in parts]), truth


def _tree_pmse(real: View, other: View, rows: int, permutations: int, seed: int) -> Part:
    from sklearn.tree import DecisionTreeClassifier

    matrix, truth = _stacked(real, other, rows, seed, lambda view: compact(view)[0])
    share = float(truth.mean())

    def deviation(origin: NDArray) -> float:
        tree = DecisionTreeClassifier(min_samples_leaf=20, max_leaf_nodes=256, random_state=seed)
        return float(((tree.fit(matrix, origin).predict_proba(matrix)[:, 1] - share) ** 2).mean())

    rng = np.random.default_rng(seed)
    null = [deviation(rng.permutation(truth)) for _ in range(permutations)]
    expected, found = float(np.mean(null)), deviation(truth)
    details = {"pmse": found, "expected": expected, "null": null, "rows": len(truth), "share": share}
    if expected == 0:
        return Part(undefined="no tree can be grown: too few rows, or no column varies", details=details)
    return Part(value=found / expected, details=details)
