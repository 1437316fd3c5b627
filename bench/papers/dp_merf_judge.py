"""Twelve classifiers trained on one table and tested on another: the figures of the DP-MERF paper, and sharper ones.

The paper's two areas (ROC, PRC) are computed from decided classes, not from scores: its ROC area is the mean of the two
classes' recalls. `decided_roc` and `decided_pr` are those, to stand beside its figures; `roc_auc` and `pr_auc` are the
areas that scores give. With more than two classes: F1 weighted by class, as in its table 2, and the plain mean over the
classes (`f1_macro`), as in its table 3.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.papers.dp_merf_tasks import Task
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import open_table
from understudy.evaluation.models import CLASSIFIERS, Prediction, classify
from understudy.evaluation.view import View

TRAINED = 20_000  # the most rows that a classifier of a table is trained on
TESTED = 20_000
SEED = 0  # of the classifiers, and of which rows are looked at

Examples = tuple[NDArray[np.float32], NDArray[np.int64]]


def judge_table(task: Task, made: pd.DataFrame) -> dict[str, Any]:
    """The figures of rows that a method made for a task; with the task's own train rows, those to compare with."""
    label = task.schema.label
    real = open_table(task.train, task.schema, role="real")
    encoder = Encoder.of(real).without(label)
    train, test = (
        _examples(encoder, open_table(frame, task.schema, role="synthetic"), label, most)
        for frame, most in ((made, TRAINED), (task.test, TESTED))
    )
    return twelve(train, test, classes=real.facts[label].size, positive=task.positive_code)


def _examples(encoder: Encoder, view: View, label: str, most: int) -> Examples:
    """At most so many rows that have a declared label, as numbers."""
    chosen = view.sample(None, SEED)
    chosen = chosen[view.codes[label][chosen] < view.facts[label].size][:most]
    rows = view.take(chosen)
    return encoder.one_hot(rows.without(label)), rows.codes[label].astype(np.int64)


def twelve(
    train: Examples,
    test: Examples,
    *,
    classes: int,
    positive: int | None,
    learn: Callable[..., Prediction] = classify,
    names: tuple[str, ...] = CLASSIFIERS,
) -> dict[str, Any]:
    """Means over the classifiers, and `models`: the figures of each. A classifier that cannot be trained is left out
    of the means, and `classifiers` says how many were."""
    models, reasons = {}, set()
    for name in names:
        found = learn(name, *train, test[0], classes, SEED)
        if found.scores is None:
            reasons.add(found.undefined)
        else:
            models[name] = scored(test[1], found.scores, positive)
    if not models:
        return {"status": f"no classifier could be trained: {'; '.join(sorted(map(str, reasons)))}"}
    means = {figure: fmean(one[figure] for one in models.values()) for figure in next(iter(models.values()))}
    rounded = {name: {key: round(value, 4) for key, value in one.items()} for name, one in models.items()}
    return {**means, "classifiers": len(models), "trained_on": len(train[1]), "models": rounded}


def scored(truth: NDArray[np.int64], scores: NDArray[np.float32], positive: int | None) -> dict[str, float]:
    """All figures of one classifier.

    >>> scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> {name: round(value, 3) for name, value in scored(np.array([0, 1, 1]), scores, 1).items()}
    {'decided_roc': 0.75, 'decided_pr': 0.833, 'roc_auc': 1.0, 'pr_auc': 1.0}
    """
    from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

    decided = scores.argmax(axis=1)
    if positive is None:
        present = np.unique(truth)
        of_class = {"labels": present, "zero_division": 0.0}
        return {
            "f1_weighted": float(f1_score(truth, decided, average="weighted", **of_class)),
            "f1_macro": float(f1_score(truth, decided, average="macro", **of_class)),
            "accuracy": float((decided == truth).mean()),
        }
    searched, lead = truth == positive, scores[:, positive] - scores[:, 1 - positive]
    return {
        "decided_roc": float(roc_auc_score(searched, decided == positive)),
        "decided_pr": float(average_precision_score(searched, decided == positive)),
        "roc_auc": float(roc_auc_score(searched, lead)),
        "pr_auc": float(average_precision_score(searched, lead)),
    }
