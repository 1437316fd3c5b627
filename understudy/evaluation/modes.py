"""Two metrics of the papers for data with known modes: the 25 Gaussians, and labelled images."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from understudy.errors import OptionError
from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.models import FEWEST_ROWS, classify
from understudy.evaluation.parallel import one_thread, quiet
from understudy.evaluation.prediction import NO_LABEL
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "telling apart"

# Squared radius of the circle that holds 99 % of a round Gaussian, in variances: the chi-squared quantile of 2 degrees.
CIRCLE = 9.21034
GRID = tuple((float(x), float(y)) for x in (-4, -2, 0, 2, 4) for y in (-4, -2, 0, 2, 4))


def gaussians_quality(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    columns: tuple[str, str] | None = None,
    modes: ArrayLike = GRID,
    variance: float = 0.0025,
) -> MetricResult:
    """Share of rows that fall into the right mode, in the right number: the sum over the modes of min(p_real N, n)/N.

    p_real is the real share inside a mode's 99 % circle, n the number of the N synthetic rows there. Best is what the
    real rows themselves score (about 0.99), worst 0. `columns` are two numeric ones (by default the first two), `modes`
    their centres, in the columns' units.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    chosen = tuple(r.numeric[:2]) if columns is None else tuple(columns)
    if len(chosen) != 2 or any(name not in r.numeric for name in chosen):
        if columns is not None:
            raise OptionError(f"columns must be two numeric columns of the schema, got {columns!r}")
        scale = Scale(name="gaussians_quality", family=FAMILY, direction="higher", ideal=1.0, range=(0.0, 1.0))
        reason = f"two numeric columns are needed, the schema has {len(r.numeric)}"
        return scale.result(Part(undefined=reason), None, missing=reason)
    centres = np.asarray(modes, dtype=float)
    expected = mode_shares(_plane(r, chosen), centres, variance)
    scale = Scale(
        name="gaussians_quality", family=FAMILY, direction="higher", ideal=float(expected.sum()), range=(0.0, 1.0)
    )

    def compare(other: View) -> Part:
        found = mode_shares(_plane(other, chosen), centres, variance)
        kept = np.minimum(expected, found)
        details = {"modes": len(centres), "empty_modes": int(((found == 0) & (expected > 0)).sum())}
        return Part(value=float(kept.sum()), details=details)

    return scale.result(compare(s), None if t is None else compare(t))


def _plane(view: View, columns: tuple[str, ...]) -> NDArray[np.float64]:
    return np.column_stack([view.values(name) for name in columns])


def mode_shares(points: NDArray[np.float64], centres: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    """The share of all points inside each mode's circle; a point with a missing coordinate is in none.

    >>> mode_shares(np.array([[0.0, 0.0], [4.0, 4.0], [9.0, 9.0], [0.01, 0.0]]), np.array([[0, 0], [4, 4]]), 0.0025)
    array([0.5 , 0.25])
    """
    squared = variance * CIRCLE
    return np.array([float((((points - centre) ** 2).sum(axis=1) <= squared).mean()) for centre in centres])


@one_thread()
def classifier_score(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    label: str | None = None,
    rows: int = 10_000,
    seed: int = 0,
) -> MetricResult:
    """Inception-score form, exp E KL(p(y|x) || p(y)), by a network trained on the real rows to predict the label.

    From 1 (all rows look alike, or none is clear) to the number of classes. Best is what the real rows themselves
    score. For images the columns are the pixels and the label is the digit.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    label = schema.label if label is None else label
    classes = r.facts[label].size if label in r.categorical else 0
    reason = None
    if label is None:
        reason = NO_LABEL
    elif label not in r.facts:
        raise OptionError(f"label must be a modelled column of the schema, got {label!r}")
    elif not classes:
        reason = "the label is numeric, a class is needed"
    elif len(r.facts) < 2:
        reason = "the label is the only modelled column"
    if reason is None:
        sample = r.take(r.sample(rows, seed))
        sample = sample.take(np.flatnonzero(sample.codes[label] < classes))
        target = sample.codes[label].astype(np.int64)
        seen = len(np.unique(target))
        if seen < 2 or len(target) < max(FEWEST_ROWS, 2 * seen):
            reason = f"at least two classes in {FEWEST_ROWS} rows with a label, and two rows a class, are needed"
    if reason:
        scale = Scale(name="classifier_score", family=FAMILY, direction="higher", ideal=1.0, range=(1.0, float("inf")))
        return scale.result(Part(undefined=reason), None, missing=reason)
    encoder = Encoder.of(r).without(label)
    views = [view for view in (r, s, t) if view is not None]
    parts = [encoder.one_hot(view.take(view.sample(rows, seed)).without(label)) for view in views]
    with quiet():
        found = classify("mlp", encoder.one_hot(sample.without(label)), target, np.concatenate(parts), classes, seed)
    scores = [inception_score(part) for part in np.split(found.scores, np.cumsum([len(part) for part in parts])[:-1])]
    scale = Scale(
        name="classifier_score", family=FAMILY, direction="higher", ideal=scores[0], range=(1.0, float(classes))
    )
    notes = () if found.converged else ("the classifier stopped before converging",)
    details = {"label": label, "classes": classes}
    results = [Part(value=score, notes=notes, details=details) for score in scores[1:]]
    return scale.result(results[0], results[1] if t is not None else None)


def inception_score(probabilities: NDArray) -> float:
    """exp E KL(p(y|x) || p(y)) for one row of class probabilities a point.

    >>> inception_score(np.eye(4)), inception_score(np.full((4, 2), 0.5))
    (4.0, 1.0)
    """
    p = np.clip(np.asarray(probabilities, dtype=float), 0.0, 1.0)
    marginal = p.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / marginal), 0.0)
    return float(np.exp(terms.sum(axis=1).mean()).round(12))
