"""Games against smartnoise-synth (OpenDP): MST and AIM.

declared: a transformer that is fitted to the declared values, so that nothing is read off the rows. undeclared: as its
page shows it, columns named by kind and `preprocessor_eps` where there is a number. AIM has few rounds, to be quick.
"""

from __future__ import annotations

from functools import cache

import pandas as pd
from played import Job, play
from snsynth import Synthesizer
from snsynth.aim import aim
from snsynth.mst import mst
from snsynth.transform import LabelTransformer, TableTransformer

SETTINGS = {"mst": {}, "aim": {"rounds": 4}}
for module in (aim, mst):
    module.cdp_rho = cache(module.cdp_rho)  # a number of epsilon and delta alone
SIZE = "number of rows"  # that it makes unasked


def fit(job: Job, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    model = Synthesizer.create(job["method"], epsilon=job["epsilon"], delta=job["delta"], **SETTINGS[job["method"]])
    facts = job["columns"]
    if job["use"] == "declared":
        model.fit(table, transformer=_declared(facts))
    else:
        numbers = [name for name, fact in facts.items() if "values" not in fact]
        model.fit(
            table,
            categorical_columns=[name for name in facts if name not in numbers],
            continuous_columns=numbers,
            preprocessor_eps=job["epsilon"] / 2 if numbers else 0.0,
        )
    further = {SIZE: float(len(model.sample()))} if job["game"] == "duplicate" else {}
    return pd.DataFrame(model.sample(job["draws"]), columns=list(facts)), further


def _declared(facts: dict) -> TableTransformer:
    transformers = []
    for fact in facts.values():
        transformer = LabelTransformer(nullable=False)
        transformer.fit(fact["values"])
        transformers.append(transformer)
    return TableTransformer(transformers)


if __name__ == "__main__":
    play(fit)
