"""The measures of the paper's ADULT section, and those that its own bars are too low for.

Two parts, because the second is dear: `tables` (diversity, lost categories, marginals, the label's prediction), and
`columns` (every column predicted from the others, the plane of principal components, a forest on categories alone).
Diversity is measured against all 48,842 real rows, train and test, as the paper does; all else has training rows on one
side and test rows, which no method saw, as the reference or to test on.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pandas as pd

from bench.datasets import load
from bench.papers.published import CATEGORICAL
from bench.peers.domain import plain
from bench.referee import BINS, MODELS, SEED, TRIPLES
from understudy import Schema
from understudy.evaluation.dimension_wise import dimension_wise_prediction
from understudy.evaluation.distributions import jsd, lost_categories, mu_kl, tvd
from understudy.evaluation.prediction import train_on_synthetic
from understudy.evaluation.projection import pca_marginal

PARTS = ("tables", "columns")
MODEL_ROWS = 20_000  # the most that a forest and boosted trees see, and are tested on
COLUMN_ROWS = 2500  # the same for the models of every column

Real = tuple[pd.DataFrame, pd.DataFrame, Schema]


@cache
def adult() -> Real:
    """Training rows, test rows, schema."""
    data = load("adult")
    schema = Schema.load(data.schema_path)
    return plain(data.train, schema), plain(data.test, schema), schema


def judge(part: str, made: pd.DataFrame, real: Real) -> dict[str, Any]:
    """The figures of one part; what is undefined (a label with one class) is left out."""
    return {"tables": judge_tables, "columns": judge_columns}[part](made, *real)


def judge_tables(made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: Schema) -> dict[str, float]:
    figures: dict[str, float] = {}
    everyone = pd.concat([train, test], ignore_index=True)
    for name, metric in (("jsd", jsd), ("mu_kl", mu_kl)):
        found = metric(everyone, made, schema)
        figures[name] = found.value
        figures |= {f"{name}:{column}": value for column, value in found.per_column.items()}
    lost = lost_categories(train, made, schema)
    figures["lost_categories"] = lost.value
    categorical = [name for name, column in schema.modelled.items() if column.kind not in ("integer", "real")]
    figures["collapsed"] = float(sum(name in categorical for name in lost.details["collapsed"]))
    for order, sets in ((1, None), (2, None), (3, TRIPLES)):
        found = tvd(train, made, schema, holdout=test, order=order, bins=BINS, sets=sets, seed=SEED)
        figures |= {f"tvd{order}": found.value, f"tvd{order}_real": found.reference}
    caps = {"rows": MODEL_ROWS, "test_rows": MODEL_ROWS, "seed": SEED}
    found = train_on_synthetic(train, made, schema, holdout=test, models=MODELS, **caps)
    for model, scores in found.details.get("models", {}).items():
        figures |= _both(f"auc_{model}", scores, "roc_auc")
    return figures | _both("accuracy", found.details.get("models", {}).get("random_forest", {}), "accuracy")


def judge_columns(made: pd.DataFrame, train: pd.DataFrame, test: pd.DataFrame, schema: Schema) -> dict[str, Any]:
    found = dimension_wise_prediction(
        train, made, schema, holdout=test, rows=COLUMN_ROWS, test_rows=COLUMN_ROWS, seed=SEED
    )
    figures: dict[str, Any] = {"dimension_wise": found.value, "dimension_wise_real": found.reference}
    figures["points"] = found.details.get("points", {})
    plane = pca_marginal(train, made, schema, holdout=test, seed=SEED)
    figures |= {"pca": plane.value, "pca_real": plane.reference}
    few = schema.model_copy(update={"columns": {name: schema.columns[name] for name in CATEGORICAL}})
    frames = [frame[list(CATEGORICAL)] for frame in (train, made, test)]
    caps = {"rows": MODEL_ROWS, "test_rows": MODEL_ROWS, "seed": SEED}
    forest = train_on_synthetic(frames[0], frames[1], few, holdout=frames[2], models=("random_forest",), **caps)
    figures |= _both("accuracy_categorical", forest.details.get("models", {}).get("random_forest", {}), "accuracy")
    return {name: value for name, value in figures.items() if value is not None}


def _both(name: str, scores: dict[str, dict[str, float]], measure: str) -> dict[str, float]:
    """A score after synthetic rows, and beside it after real ones."""
    found = {name: scores.get("synthetic", {}).get(measure), f"{name}_real": scores.get("real", {}).get(measure)}
    return {key: value for key, value in found.items() if value is not None}
