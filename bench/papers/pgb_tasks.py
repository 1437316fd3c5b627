"""The tables of `bench.papers.pgb`: what is fitted, and how rows are judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

import understudy as us
from bench.datasets import load, locate, split
from bench.peers.domain import plain
from bench.referee import BINS, MODELS, SEED
from understudy.evaluation.distributions import tvd
from understudy.evaluation.modes import gaussians_quality
from understudy.evaluation.prediction import train_on_synthetic
from understudy.evaluation.regression import regression_similarity
from understudy.evaluation.telling_apart import pmse_ratio
from understudy.table.table import Table

MODEL_ROWS = 10_000
MEASURES = {"auc": "roc_auc", "pr": "pr_auc", "accuracy": "accuracy"}

# In the place of the paper's census excerpts (one state, persons with an income): NIST's national excerpts of two
# years, persons of 15 and over, income in thousands of dollars and cut at 200, as the census of 1940 cut it at 5.
ACS = {"acs2019": "national2019", "acs2018": "national2018"}
ACS_TOP = 200
# All seeds of a task share its test rows, and with them their luck; here each seed has its own.
SPLITS = {"titanic-splits": "titanic"}
RACE, INCOME = "RAC1P", "INCOME"
ACS_SCHEMA = f"""
rows: 17000
label: SEX
columns:
  AGEP: {{kind: integer, low: 15, high: 99}}
  SEX: {{kind: categorical, values: [1, 2]}}
  MSP: {{kind: categorical, values: [1, 2, 3, 4, 5, 6]}}
  HISP: {{kind: categorical, values: [0, 1, 2, 3, 4]}}
  RAC1P: {{kind: categorical, values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}}
  NOC: {{kind: integer, low: 0, high: 19, missing: true}}
  OWN_RENT: {{kind: categorical, values: [0, 1, 2]}}
  EDU: {{kind: ordinal, values: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}
  INDP_CAT:
    {{kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18], missing: true}}
  INCOME: {{kind: integer, low: 0, high: {ACS_TOP}}}
"""


@dataclass(frozen=True, eq=False)
class Setup:
    """One task's rows, as all lines are fitted to and judged by them."""

    task: str
    schema: us.Schema
    train: pd.DataFrame
    test: pd.DataFrame
    table: Table


def setup(task: str, seed: int) -> Setup:
    """A task's rows; those of `SPLITS` cut anew for each seed, into parts as large as the official ones."""
    if task not in SPLITS:
        return _setup(task)
    official = _setup(SPLITS[task])
    rows = pd.concat([official.train, official.test], ignore_index=True)
    train, test = split(rows, share=len(official.train) / len(rows), seed=seed)
    return Setup(task, official.schema, train, test, us.read_table(train, official.schema))


@cache
def _setup(task: str) -> Setup:
    if task in ACS:
        schema = us.Schema.loads(ACS_SCHEMA)
        frame = pd.read_csv(locate("acs_excerpts", f"{ACS[task]}.csv"), dtype=str, keep_default_na=False)
        parts = split(acs_persons(frame))
    else:
        data = load(task)
        schema = us.Schema.load(data.schema_path).confirmed()
        parts = data.train, data.test
    train, test = (plain(part, schema) for part in parts)
    return Setup(task, schema, train, test, us.read_table(train, schema))


def acs_persons(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of `ACS_SCHEMA` of an excerpt read as text: whoever is old enough to have an income."""
    frame = frame[frame["PINCP"] != "N"].reset_index(drop=True)
    income = (frame["PINCP"].astype(float) / 1000).round().clip(0, ACS_TOP).astype(int)
    frame = frame.assign(INCOME=income).replace("N", None)
    names = list(us.Schema.loads(ACS_SCHEMA).columns)
    return frame[names].assign(**{name: pd.to_numeric(frame[name]) for name in ("AGEP", "NOC")})


def judge(found: Setup, made: pd.DataFrame) -> tuple[dict[str, float | None], dict[str, Any]]:
    """Figures of made rows, what real rows score beside each (`_real`), and what a picture needs."""
    sources = (found.train, made, found.schema)
    if found.task == "gaussians25":
        quality = gaussians_quality(*sources, holdout=found.test)
        return {"quality": quality.value, "quality_real": quality.reference}, {}
    pairs = tvd(*sources, holdout=found.test, order=2, bins=BINS, seed=SEED)
    figures = {"tvd2": pairs.value, "tvd2_real": pairs.reference}
    if found.task in ACS:
        return judge_census(found, made, figures)
    caps = {"rows": MODEL_ROWS, "test_rows": MODEL_ROWS, "seed": SEED}
    scores = train_on_synthetic(*sources, holdout=found.test, models=MODELS, **caps)
    for model, by in scores.details.get("models", {}).items():
        for name, measure in MEASURES.items():
            figures[f"{name}_{model}"] = by.get("synthetic", {}).get(measure)
            figures[f"{name}_{model}_real"] = by.get("real", {}).get(measure)
    return figures, {}


def judge_census(
    found: Setup, made: pd.DataFrame, figures: dict[str, float | None]
) -> tuple[dict[str, float | None], dict[str, Any]]:
    """The paper's census figures: telling apart, the races' shares, and regressions of income on three columns each."""
    sources = (found.train, made, found.schema)
    for name, model in (("pmse_ratio", "logistic"), ("pmse_tree", "tree")):
        ratio = pmse_ratio(*sources, holdout=found.test, model=model, seed=SEED)
        figures |= {name: ratio.value, f"{name}_real": ratio.reference}
    figures |= {"race_tvd": share_distance(found.train[RACE], made[RACE])}
    figures |= {"race_tvd_real": share_distance(found.train[RACE], found.test[RACE])}
    regressions = regression_similarity(*sources, holdout=found.test, target=INCOME, seed=SEED)
    models = regressions.details.get("models", [])
    figures |= {"regression": regressions.value, "regression_real": regressions.reference}
    scale = float(ACS_TOP)  # `models` has RMSEs as shares of the target's range
    return figures, {"rmse": [[scale * one["real"], scale * one["other"]] for one in models]}


def share_distance(real: pd.Series, made: pd.Series) -> float:
    """Total variation distance of two columns' shares.

    >>> share_distance(pd.Series(["a", "a", "b", "b"]), pd.Series(["a", "a", "a", "c"]))
    0.5
    """
    shares = [column.astype(str).value_counts(normalize=True) for column in (real, made)]
    return float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2)
