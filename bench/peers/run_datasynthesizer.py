"""DataSynthesizer: PrivBayes, its correlated attribute mode.

Its documented use: two parents a column, and domains in a file, so that categories are not read off the rows. Numeric
columns come as 20 public cells (its own default is 20 bins; ours follow the column's declared scale), missing as a
value of its own. It gives pure epsilon-DP and has no delta.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import decode, encode, run
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator

PARENTS = 2
CELLS = 20


def make(options: argparse.Namespace, frame: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, float]:
    facts = {name: _fewer_cells(fact) for name, fact in facts.items()}
    codes, sizes = encode(frame, facts)
    # The library puts names into code that it evaluates, and guesses types of what looks like a number.
    plain = {name: f"column{number}" for number, name in enumerate(facts)}
    words = codes.rename(columns=plain).map(lambda code: f"v{code}")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, domains, description = (str(Path(folder) / name) for name in ("rows.csv", "domains.json", "told.json"))
        words.to_csv(rows, index=False)
        listed = {plain[name]: [f"v{code}" for code in range(size)] for name, size in sizes.items()}
        Path(domains).write_text(json.dumps(listed))
        begin = time.perf_counter()
        describer = DataDescriber(category_threshold=max(sizes.values()))
        describer.describe_dataset_in_correlated_attribute_mode(
            dataset_file=rows,
            k=PARENTS,
            epsilon=options.epsilon,
            attribute_to_datatype=dict.fromkeys(listed, "String"),
            attribute_to_is_categorical=dict.fromkeys(listed, True),
            attribute_to_is_candidate_key=dict.fromkeys(listed, False),
            categorical_attribute_domain_file=domains,
            seed=options.seed,
        )
        describer.save_dataset_description_to_file(description)
        seconds = time.perf_counter() - begin
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(options.rows, description, seed=options.seed)
    made = generator.synthetic_dataset.rename(columns={new: name for name, new in plain.items()})
    back = made.apply(lambda column: column.str[1:].astype(int))
    return decode(back, facts, np.random.default_rng(options.seed)), seconds


def _fewer_cells(fact: dict[str, Any]) -> dict[str, Any]:
    """Neighbouring public cells joined to 20; the first one stays alone, since it may be a zero that is frequent."""
    edges = fact.get("edges")
    if edges is None or len(edges) <= CELLS + 1:
        return fact
    kept = [0, *np.unique(np.linspace(1, len(edges) - 1, CELLS).round().astype(int)).tolist()]
    return fact | {"edges": [edges[place] for place in kept]}


if __name__ == "__main__":
    run(make)
