"""smartnoise-synth (OpenDP): MST and AIM.

Its documented use: discrete columns through a TableTransformer. The library would learn the categories from the rows;
here every column gets our public cells and a transformer that was fitted to the declared codes alone, so that nothing
is spent on, or leaked by, the domain.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from common import decode, encode, run
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer


def make(options: argparse.Namespace, frame: pd.DataFrame, facts: dict[str, Any]) -> tuple[pd.DataFrame, float]:
    np.random.seed(options.seed)  # the library draws from the global generator
    codes, sizes = encode(frame, facts)
    begin = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):  # it prints progress; ours is the only line on standard output
        model = Synthesizer.create(options.method, epsilon=options.epsilon, delta=options.delta)
        model.fit(codes, transformer=_public_transformer(sizes))
        seconds = time.perf_counter() - begin
        rows = pd.DataFrame(model.sample(options.rows), columns=list(facts))
    return decode(rows, facts, np.random.default_rng(options.seed)), seconds


def _public_transformer(sizes: dict[str, int]) -> TableTransformer:
    transformers = []
    for size in sizes.values():
        transformer = LabelTransformer(nullable=False)
        transformer.fit(list(range(size)))
        transformers.append(transformer)
    return TableTransformer(transformers)


if __name__ == "__main__":
    run(make)
