"""Fits one of our methods in a process of its own, with the arguments of the peers' runners (a schema for a domain)."""

from __future__ import annotations

import time

import pandas as pd

import understudy as us
from bench.peers.common import arguments, finish


def main() -> None:
    options = arguments()
    schema = us.Schema.load(options.domain).confirmed()  # public tables: what only the rows told is public too
    numbers = [name for name, column in schema.modelled.items() if column.kind in ("integer", "real")]
    frame = pd.read_csv(options.train, dtype=str, keep_default_na=False, na_values=[""])
    frame = frame.assign(**{name: frame[name].astype(float) for name in numbers})
    begin = time.perf_counter()
    # Noise from the operating system, as a release would have it: its exact sampler is part of the time.
    model = us.fit(frame, schema, method=options.method, epsilon=options.epsilon, delta=options.delta)
    fit_seconds = time.perf_counter() - begin
    rows = model.sample(options.rows, seed=options.seed)
    finish(options, rows[list(schema.modelled)], fit_seconds, time.perf_counter() - begin)


if __name__ == "__main__":
    main()
