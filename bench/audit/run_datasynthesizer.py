"""Games against DataSynthesizer: PrivBayes, its correlated attribute mode, with two parents.

undeclared: as its notebook does, with a file of rows and columns named as categorical. declared: values and bounds in
its domain file and ranges. The seed of its noise is the default in the game that is about it (a duplicate, undeclared),
and drawn anew for every fit in all others. Its pool of processes is one of threads here: the same work, without
starting processes for every fit.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from multiprocessing.dummy import Pool
from pathlib import Path

import pandas as pd
from DataSynthesizer.DataDescriber import DataDescriber
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes
from played import Job, play

PARENTS = 2
TABLES, MISSING, SIZE = (
    "its cells in the described one-way tables",
    "described share of missing cells",
    "number of rows",
)

PrivBayes.Pool = lambda: Pool(1)


def fit(job: Job, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    facts = job["columns"]
    categories = {name: fact["values"] for name, fact in facts.items() if "values" in fact}
    default = job["use"] == "undeclared" and job["game"] == "duplicate"
    seeds = {} if default else {"seed": secrets.randbits(32)}
    with tempfile.TemporaryDirectory() as folder:
        rows, domains, told = (str(Path(folder) / name) for name in ("rows.csv", "domains.json", "told.json"))
        table.to_csv(rows, index=False)
        Path(domains).write_text(json.dumps(categories))
        known = {}
        if job["use"] == "declared":
            ranges = {name: [fact["low"], fact["high"]] for name, fact in facts.items() if "values" not in fact}
            known = {"categorical_attribute_domain_file": domains, "numerical_attribute_ranges": ranges}
        describer = DataDescriber(category_threshold=20)
        describer.describe_dataset_in_correlated_attribute_mode(
            dataset_file=rows,
            k=PARENTS,
            epsilon=job["epsilon"],
            attribute_to_is_categorical={name: name in categories for name in facts},
            attribute_to_is_candidate_key=dict.fromkeys(facts, False),
            **known,
            **seeds,
        )
        describer.save_dataset_description_to_file(told)
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(job["draws"], told, **seeds)
        described = json.loads(Path(told).read_text())
    return generator.synthetic_dataset, _described(job, described)


def _described(job: Job, described: dict) -> dict[str, float]:
    """Readings of the description, which is what its owner hands on."""
    mass = 0.0
    for own, (name, facts) in zip(job["canary"], job["columns"].items(), strict=True):
        column = described["attribute_description"][name]
        if "values" in facts and own in column["distribution_bins"]:
            mass += column["distribution_probabilities"][column["distribution_bins"].index(own)]
    columns = described["attribute_description"].values()
    found = {TABLES: mass, MISSING: sum(column["missing_rate"] for column in columns)}
    return found | ({SIZE: float(described["meta"]["num_tuples"])} if job["game"] == "duplicate" else {})


if __name__ == "__main__":
    play(fit)
