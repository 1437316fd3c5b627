"""The Post-GAN boosting paper's printed figures, by our task, epsilon and measure: last generator, DRS, PGB, both."""

from __future__ import annotations

from math import inf

LINES = ("last", "DRS", "PGB", "PGB+DRS")

# Its excerpts of the censuses of 1940 and 2010 stand beside ours of the American Community Survey: other rows, so the
# figures tell how much a line gains there, and nothing more.
PUBLISHED: dict[tuple[str, float, str], tuple[float, ...]] = {
    ("gaussians25", 1.0, "quality"): (0.031, 0.035, 0.044, 0.053),
    ("gaussians25", inf, "quality"): (0.904, 0.826, 0.918, 0.874),
    ("titanic", 2.0, "accuracy_logistic_regression"): (0.566, 0.577, 0.640, 0.649),
    ("titanic", 2.0, "auc_logistic_regression"): (0.477, 0.568, 0.621, 0.624),
    ("titanic", 2.0, "pr_logistic_regression"): (0.407, 0.482, 0.532, 0.547),
    ("titanic", 2.0, "accuracy_random_forest"): (0.487, 0.459, 0.481, 0.628),
    ("titanic", 2.0, "auc_random_forest"): (0.512, 0.553, 0.558, 0.652),
    ("titanic", 2.0, "pr_random_forest"): (0.407, 0.442, 0.425, 0.535),
    ("titanic", 2.0, "accuracy_xgboost"): (0.577, 0.589, 0.609, 0.641),
    ("titanic", 2.0, "auc_xgboost"): (0.530, 0.586, 0.619, 0.596),
    ("titanic", 2.0, "pr_xgboost"): (0.398, 0.479, 0.488, 0.526),
    ("titanic", inf, "accuracy_logistic_regression"): (0.626, 0.746, 0.701, 0.765),
    ("titanic", inf, "auc_logistic_regression"): (0.591, 0.760, 0.726, 0.792),
    ("titanic", inf, "pr_logistic_regression"): (0.483, 0.686, 0.655, 0.748),
    ("titanic", inf, "accuracy_random_forest"): (0.594, 0.724, 0.719, 0.742),
    ("titanic", inf, "auc_random_forest"): (0.531, 0.744, 0.741, 0.771),
    ("titanic", inf, "pr_random_forest"): (0.425, 0.701, 0.706, 0.743),
    ("titanic", inf, "accuracy_xgboost"): (0.547, 0.724, 0.683, 0.740),
    ("titanic", inf, "auc_xgboost"): (0.503, 0.732, 0.681, 0.772),
    ("titanic", inf, "pr_xgboost"): (0.400, 0.689, 0.611, 0.732),
    ("mnist", 10.0, "score"): (8.07, 8.18, 8.58, 8.66),
    ("mnist", inf, "score"): (8.41, 8.21, 8.76, 8.77),
    ("acs2019", 1.0, "pmse_ratio"): (2.357, 2.313, 2.253, 2.445),
    ("acs2019", 1.0, "race_tvd"): (0.58, 0.44, 0.22, 0.13),
    ("acs2018", 0.795, "pmse_ratio"): (1.934, 1.889, 1.609, 1.485),
}
REAL: dict[tuple[str, str], float] = {
    ("titanic", "accuracy_logistic_regression"): 0.764,
    ("titanic", "auc_logistic_regression"): 0.813,
    ("titanic", "pr_logistic_regression"): 0.785,
    ("titanic", "accuracy_random_forest"): 0.768,
    ("titanic", "auc_random_forest"): 0.809,
    ("titanic", "pr_random_forest"): 0.767,
    ("titanic", "accuracy_xgboost"): 0.768,
    ("titanic", "auc_xgboost"): 0.773,
    ("titanic", "pr_xgboost"): 0.718,
    ("mnist", "score"): 9.93,
}


def published(task: str, epsilon: float, measure: str, line: str) -> float | None:
    """The paper's figure for one of our lines ("PGB auto" is its PGB), or None where it has none.

    >>> published("titanic", 2.0, "auc_xgboost", "PGB+DRS auto")
    0.596
    """
    found = PUBLISHED.get((task, epsilon, measure))
    kind = line.split()[0]
    return found[LINES.index(kind)] if found is not None and kind in LINES else None
