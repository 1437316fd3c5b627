"""Would a modeller who sees synthetic rows alone choose the same model as one who sees the real rows?"""

from typing import Any

import numpy as np

from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.inputs import Source
from understudy.evaluation.prediction import FAMILY, LabelScores, score_label
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.schema import Schema


def ranking_agreement(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, **options: Any
) -> MetricResult:
    """Kendall's tau of the models' ranking when trained on synthetic and on real rows; 1 is best, -1 worst.

    All are tested on holdout rows. The reference ranks models trained on half of the holdout rows and tested on the
    other half. Options are those of `score_label`.
    """
    return read_ranking_agreement(score_label(real, synthetic, schema, holdout=holdout, fresh=True, **options))


def read_ranking_agreement(found: LabelScores) -> MetricResult:
    """`ranking_agreement` from scores at hand."""
    scale = Scale(name="ranking_agreement", family=FAMILY, direction="higher", ideal=1.0, range=(-1.0, 1.0))
    if found.undefined:
        return scale.result(Part(undefined=found.undefined), None, missing=found.undefined)
    real, synthetic = found.column("real"), found.column("synthetic")
    part = _agreement(real, synthetic)
    if found.undefined_synthetic:
        part = Part(undefined=found.undefined_synthetic)
    fresh = found.column("fresh")
    reference = _agreement(found.column("real_on_half"), fresh) if fresh else None
    missing = (
        "the holdout rows were not split, or a half of them has one class only"
        if found.truth is not None
        else NO_HOLDOUT
    )
    return scale.result(part, reference, missing=missing)


def _agreement(first: dict[str, float], second: dict[str, float]) -> Part:
    models = [model for model in first if model in second]
    if len(models) < 3:
        return Part(undefined=f"a ranking needs at least 3 models, {len(models)} could be trained on both tables")
    left, right = (np.array([scores[model] for model in models]) for scores in (first, second))
    tau = kendall_tau(left, right)
    if tau is None:
        return Part(undefined="all models score the same, so there is no ranking")
    ranks = {model: [_rank(left, at), _rank(right, at)] for at, model in enumerate(models)}
    return Part(value=tau, details={"models": len(models), "ranks": ranks})


def _rank(scores: np.ndarray, at: int) -> int:
    return int((scores > scores[at]).sum()) + 1


def kendall_tau(left: np.ndarray, right: np.ndarray) -> float | None:
    """Kendall's tau-b, which allows for ties; None where one side is all ties.

    >>> kendall_tau(np.array([1, 2, 3]), np.array([1, 3, 2]))
    0.3333333333333333
    """
    upper = np.triu_indices(len(left), k=1)
    first = np.sign(left[:, None] - left)[upper]
    second = np.sign(right[:, None] - right)[upper]
    norm = float(np.abs(first).sum() * np.abs(second).sum()) ** 0.5
    return float((first * second).sum()) / norm if norm else None
