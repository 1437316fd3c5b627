"""Games against dpmm (SAS): its pipelines, as its page shows them.

declared: categories and bounds are given, as its README does. undeclared: they are left out, which `fit` allows. Few
steps of inference are made: they come after the noise. epsilon and proc_epsilon are halves of the claim
where there is a number; without one, nothing is spent on processing. AIM has few rounds, to be quick.
"""

from __future__ import annotations

import logging
from functools import cache

import pandas as pd
from dpmm.models import mst, priv_bayes
from dpmm.models.base.mbi import FactoredInference
from dpmm.models.base.mechanisms import mechanism
from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline
from played import Job, play

PIPELINES = {"mst": MSTPipeline, "aim": AIMPipeline, "privbayes": PrivBayesPipeline}
STEPS = 10
SETTINGS = {"mst": {}, "aim": {"rounds": 4}, "privbayes": {}}

logging.disable(logging.WARNING)
_make = FactoredInference.__init__


def _make_short(self, *args, **settings) -> None:
    """Few steps for every inference; one of MST's has a number of its own. They see noisy tables alone."""
    _make(self, *args, **(settings | {"iters": STEPS}))


FactoredInference.__init__ = _make_short
for module in (mechanism, mst, priv_bayes):
    module.cdp_rho = cache(module.cdp_rho)  # a number of epsilon and delta alone, worked out for most of a second


def fit(job: Job, table: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    facts = job["columns"]
    numbers = any("values" not in fact for fact in facts.values())
    model = PIPELINES[job["method"]](
        epsilon=job["epsilon"] / 2 if numbers else job["epsilon"],
        delta=job["delta"],
        proc_epsilon=job["epsilon"] / 2 if numbers else 0.1,
        n_jobs=1,
        gen_kwargs=SETTINGS[job["method"]],
    )
    declared = job["use"] == "declared"
    domain = {}
    for name, fact in facts.items():
        if "values" in fact:
            values = fact["values"] if declared else None
            table[name] = table[name].astype(pd.CategoricalDtype(values))
            domain[name] = {"categories": fact["values"]}
        else:
            domain[name] = {"lower": fact["low"], "upper": fact["high"]}
    model.fit(table, domain=domain if declared else None)
    return model.generate(n_records=job["draws"]), {}


if __name__ == "__main__":
    play(fit)
