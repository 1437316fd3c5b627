"""One referee for our methods and for peers: the same metrics, seeds and caps on rows for whoever made the table.

- TVD2, TVD3: mean total variation distance of all pairs of columns and of 100 fixed triples, numeric columns cut at 20
  quantiles of the real training rows. The floor is what fresh real rows (the test part) score.
- AUC of three classifiers trained on the synthetic rows and tested on real test rows; with more than two classes the
  mean over the classes that the test rows show, a class that the training rows lack being ranked last. The ceiling is
  the score of the same classifier trained on real rows.
- C2ST: AUC of boosted trees telling synthetic rows from real test rows, in folds; 0.5 is best. The floor tells real
  training rows from real test rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from understudy import Schema
from understudy.evaluation.distributions import tvd
from understudy.evaluation.prediction import train_on_synthetic
from understudy.evaluation.telling_apart import c2st

MODELS = ("logistic_regression", "random_forest", "xgboost")
TRIPLES = 100
BINS = 20
SEED = 0  # of the referee itself: which triples, which capped rows, which folds


@dataclass(frozen=True)
class Caps:
    """The most rows that each part of the referee looks at, for speed."""

    marginals: int = 100_000
    training: int = 20_000
    testing: int = 20_000
    telling_apart: int = 10_000


# Forty classes make a classifier forty times as dear.
CAPS = {"intrusion": Caps(training=10_000)}


def judge(
    synthetic: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: Schema, caps: Caps | None = None
) -> dict[str, float]:
    """All figures of one synthetic table; undefined ones (no label, a label with one class) are left out."""
    caps = caps or Caps()
    figures: dict[str, float] = {}
    fewer = [_head(frame, caps.marginals) for frame in (train, synthetic, test)]
    for order, sets in ((2, None), (3, TRIPLES)):
        found = tvd(fewer[0], fewer[1], schema, holdout=fewer[2], order=order, bins=BINS, sets=sets, seed=SEED)
        _note(figures, f"tvd{order}", found.value, found.reference)
    found = c2st(train, synthetic, schema, holdout=test, rows=caps.telling_apart, seed=SEED)
    _note(figures, "c2st", found.value, found.reference)
    if schema.label is not None:
        found = train_on_synthetic(
            train,
            synthetic,
            schema,
            holdout=test,
            models=MODELS,
            rows=caps.training,
            test_rows=caps.testing,
            seed=SEED,
        )
        for model, scores in found.details.get("models", {}).items():
            made, real = (scores.get(table, {}).get("roc_auc") for table in ("synthetic", "real"))
            _note(figures, f"auc_{model}", made, real)
    return figures


def _note(figures: dict[str, float], name: str, value: float | None, reference: float | None) -> None:
    """A figure, and beside it what real rows score: a floor for distances, a ceiling for AUC."""
    if value is not None:
        figures[name] = float(value)
    if reference is not None:
        figures[f"{name}_real"] = float(reference)


def _head(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    if len(frame) <= rows:
        return frame
    chosen = np.random.default_rng(SEED).permutation(len(frame))[:rows]
    return frame.iloc[np.sort(chosen)].reset_index(drop=True)
