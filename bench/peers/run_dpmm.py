"""dpmm (SAS): MST, AIM and PrivBayes on its own pipeline.

Its documented use: categories and bounds declared, so that nothing is spent on them, and PrivTree cutting the numeric
columns with a tenth of the budget (`proc_epsilon`), which the library adds to epsilon: epsilon is therefore given as
nine tenths. (32 public cells and the whole budget for the tables came out slightly worse on ADULT, with one seed.)
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pandas as pd
from common import run
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}
PROCESSING_SHARE = 0.1


def make(options: argparse.Namespace, frame: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, float]:
    begin = time.perf_counter()
    share = PROCESSING_SHARE if any("edges" in fact for fact in facts.values()) else 0.0
    model = PIPELINES[options.method](
        epsilon=options.epsilon * (1 - share),
        delta=options.delta,
        proc_epsilon=options.epsilon * share or None,
        n_jobs=1,
    )
    table, domain = _declared(frame, facts)
    model.fit(table, domain=domain, random_state=options.seed)
    seconds = time.perf_counter() - begin
    rows = model.generate(n_records=options.rows, random_state=options.seed)
    return _rounded(rows, facts), seconds


def _declared(frame: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    table, domain = frame.copy(), {}
    for name, fact in facts.items():
        if "edges" in fact:
            domain[name] = {"lower": fact["low"], "upper": fact["high"]}
        else:
            domain[name] = {"categories": fact["values"]}
            table[name] = table[name].astype(pd.CategoricalDtype(fact["values"]))
    return table, domain


def _rounded(rows: pd.DataFrame, facts: dict[str, Any]) -> pd.DataFrame:
    for name, fact in facts.items():
        if "edges" in fact and fact["resolution"]:
            step = fact["resolution"]
            steps = np.round((rows[name] - fact["low"]) / step)  # as the library does with integers
            rows[name] = (fact["low"] + step * steps).clip(fact["low"], fact["high"])
    return rows


if __name__ == "__main__":
    run(make)
