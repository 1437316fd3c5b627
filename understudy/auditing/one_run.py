"""Many canaries in a few fits, for methods of which thousands of fits would take too long.

Each canary joins the table by a fair coin of its own. All of them are guessed at once from one released model, so that
a single fit gives as many guesses as there are canaries. It shows less than as many fits would: a canary stands among
others. For a method that says nothing about rare values it shows nothing.
"""

import secrets
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.auditing import games
from understudy.auditing.bounds import LowerBound, one_run_lower_bound
from understudy.errors import OptionError
from understudy.privacy import Budget, default_delta, noise_multiplier
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers.api import check_plan, make_config, method_module
from understudy.table.table import Table

LARGEST = 500  # canaries in one table
_ABOVE_NOISE = 6  # rows that each canary's value has anyway, in units of the noise on a count


def one_run(
    method: str,
    epsilon: float,
    delta: float | None = None,
    *,
    canaries: int = LARGEST,
    fits: int = 1,
    confidence: float = 0.95,
    options: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> LowerBound:
    """A lower bound from so many fits, each with canaries of its own.

    Every canary is the owner of one value of a column. Fits on disjoint sets of canaries, each with its own coins and
    noise, are together one mechanism on all of them: a row meets one fit alone.
    """
    if canaries < 2 or fits < 1:
        raise OptionError(f"canaries must be at least 2 and fits at least 1, got {canaries} and {fits}")
    declared = 2 * canaries
    delta = default_delta(declared) if delta is None else delta
    filled = int(_ABOVE_NOISE * noise_multiplier(Budget(epsilon, delta)) * 2) + 1
    rows = filled * canaries
    values = ", ".join(f"v{number}" for number in range(canaries))
    schema = Schema.loads(
        f"rows: {rows}\nlabel: half\ncolumns:\n  value: {{kind: categorical, values: [{values}]}}\n"
        "  half: {kind: boolean}\n"
    )
    module = method_module(method)
    chosen = games.short_options(module, rows) | dict(options or {})
    check_plan(module, make_config(module, chosen), schema, Budget(epsilon, delta))
    setting = games.Setting(method, schema, epsilon, delta, "one run", rows, chosen)
    scores, coins = [], []
    begin = time.monotonic()
    for number in range(fits):
        progress(f"playing {method} on {canaries} canaries at once", number / fits, f"{time.monotonic() - begin:.0f} s")
        joined = np.random.default_rng(secrets.randbits(128)).random(canaries) < 0.5
        own = np.flatnonzero(joined)
        codes = {
            "value": np.concatenate([np.repeat(np.arange(canaries), filled), own]),
            "half": np.concatenate([np.arange(rows) % 2, own % 2]),
        }
        model = games.fitted(setting, Table.from_codes(schema, _typed(codes, schema)))
        scores.append(_scores(model, canaries, schema))
        coins.append(joined)
    return one_run_lower_bound(np.concatenate(scores), np.concatenate(coins), delta, confidence)


def _typed(codes: dict[str, np.ndarray], schema: Schema) -> dict[str, np.ndarray]:
    from understudy.table.codec import codec

    return {name: column.astype(codec(schema.columns[name]).dtype) for name, column in codes.items()}


def _scores(model: Any, canaries: int, schema: Schema) -> np.ndarray:
    """The released count of every canary's value where there is one, or else its probability."""
    counts = model.released.arrays().get("fine.0")
    if counts is not None and len(counts) == canaries:
        return np.asarray(counts, dtype=float)
    rows = {"value": np.arange(canaries), "half": np.arange(canaries) % 2}
    return np.maximum(np.asarray(model.released.log_prob(_typed(rows, schema)), dtype=float), -1e6)
