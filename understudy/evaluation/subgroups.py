"""Train on synthetic, test on real, within each value of one column: whom does the stand-in serve worse?"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import OptionError
from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.inputs import Source
from understudy.evaluation.models import classification_scores, regression_scores
from understudy.evaluation.prediction import FAMILY, WORST_R2, LabelScores, score_label
from understudy.evaluation.result import MetricResult
from understudy.schema import Schema

KINDS = ("categorical", "ordinal", "boolean")
SMALLEST = 30


def subgroup_scores(
    real: Source, synthetic: Source, schema: Schema, *, by: str, holdout: Source | None = None, **options: Any
) -> MetricResult:
    """The lowest score over the values of column `by` of models trained on synthetic rows; 1 is best.

    Scores are means over the models (ROC AUC, or R2 for a numeric label) on the holdout rows of the group. The
    reference is the lowest score of the real-trained models. `details["groups"]` has both for every group.
    """
    check_by(by, schema)
    return read_subgroup_scores(score_label(real, synthetic, schema, holdout=holdout, **options), by=by)


def check_by(by: str, schema: Schema) -> None:
    if by not in schema.modelled or schema.modelled[by].kind not in KINDS:
        raise OptionError(f"by must be a categorical, ordinal or boolean column of the schema, got {by!r}")


def read_subgroup_scores(found: LabelScores, *, by: str) -> MetricResult:
    """`subgroup_scores` from scores at hand."""
    low = 0.0 if found.task == "classification" else WORST_R2
    scale = Scale(name="subgroup_scores", family=FAMILY, direction="higher", ideal=1.0, range=(low, 1.0))
    reason = found.undefined or found.undefined_synthetic
    if reason:
        return scale.result(Part(undefined=reason), None, missing=reason)
    groups, left_out = {}, {}
    facts, codes = found.test.facts[by], found.test.codes[by]
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        if len(rows) < SMALLEST:
            left_out[facts.label(code)] = f"fewer than {SMALLEST} holdout rows"
        elif len(np.unique(found.truth[rows])) < 2:
            left_out[facts.label(code)] = "the holdout label does not vary in this group"
        else:
            groups[facts.label(code)] = {
                "rows": len(rows),
                "synthetic": _mean_score(found, "synthetic", rows, low),
                "real": _mean_score(found, "real", rows, low),
            }
    details = {"by": by, "groups": groups, "undefined_groups": left_out}
    if not groups:
        reason = "no group has enough holdout rows with a label that varies"
        return scale.result(Part(undefined=reason, details=details), None, missing=reason)
    notes = (f"groups left out: {', '.join(left_out)}",) if left_out else ()
    parts = [
        Part(value=min(group[table] for group in groups.values()), notes=notes, details=details)
        for table in ("synthetic", "real")
    ]
    return scale.result(*parts)


def _mean_score(found: LabelScores, table: str, rows: NDArray, low: float) -> float:
    scores = []
    for by_table in found.predictions.values():
        if table not in by_table:
            continue
        guess, truth = by_table[table][rows], found.truth[rows]
        if found.task == "classification":
            scores.append(classification_scores(truth, guess, positive=found.positive)["roc_auc"])
        else:
            scores.append(max(regression_scores(truth, guess)["r2"], low))
    return float(np.mean(scores))
