"""What must hold of every release that counts how round numbers are, whatever columns it counts."""

import math

import numpy as np
import pandas as pd
import pytest

from understudy.privacy import Budget, Gaussian, Ledger, Streams
from understudy.schema import Schema
from understudy.synthesizers import one_way as one_way_module
from understudy.synthesizers import rounding as rounding_module
from understudy.synthesizers import zoom as zoom_module
from understudy.synthesizers.columns import release_columns
from understudy.synthesizers.rounding import plan_rounding, release_rounding, scales_of
from understudy.table.read import read_table
from understudy.table.table import Table


def check_sensitivity(monkeypatch: pytest.MonkeyPatch, schema: Schema, rows: pd.DataFrame, *, columns: int) -> None:
    """One row less moves all counts by at most the stated sensitivity, and the counts are what gets noise."""
    rounding = plan_rounding(scales_of(schema), schema.rows, 3.0)

    def asked(part: pd.DataFrame) -> tuple[np.ndarray, float]:
        seen: list[tuple[np.ndarray, float, float]] = []

        def answer(counts, *, l2_sensitivity: float, noise_multiplier: float, **_: object) -> np.ndarray:
            seen.append((counts, l2_sensitivity, noise_multiplier))
            return counts.astype(float)

        monkeypatch.setattr(rounding_module, "gaussian", answer)
        release_rounding(
            read_table(part, schema), rounding, streams=Streams.from_seed(0), ledger=Ledger(Budget(1, 0.1))
        )
        ((counts, sensitivity, multiplier),) = seen
        assert multiplier == rounding.multiplier
        return counts, sensitivity

    whole, sensitivity = asked(rows)
    assert sensitivity == pytest.approx(math.sqrt(columns))
    assert len(whole) == sum(scale.classes for scale in rounding.scales.values())
    moved = [math.sqrt(float(((whole - asked(rows.drop(index=row))[0]) ** 2).sum())) for row in range(60)]
    assert max(moved) <= sensitivity * (1 + 1e-12)
    assert max(moved) == pytest.approx(sensitivity)  # a row all of whose numbers count


def check_post_processing(monkeypatch: pytest.MonkeyPatch, one: Table, other: Table) -> None:
    """With the mechanism's answers held fixed, a change of rows changes no count and no weight."""

    def canned(values: np.ndarray, *, ledger, noise_multiplier: float, **_: object) -> np.ndarray:
        ledger.charge(Gaussian(noise_multiplier), "canned")
        return np.random.default_rng(values.size).normal(100.0, 40.0, values.shape)

    for module in (rounding_module, one_way_module, zoom_module):
        monkeypatch.setattr(module, "gaussian", canned)
    first, second = (
        release_columns(
            rows, one.schema, noise_multiplier=5.0, streams=Streams.from_seed(0), ledger=Ledger(Budget(9.0, 0.1))
        )
        for rows in (one, other)
    )
    assert any(cells.grain is not None for cells in first.cells.values())
    for name in one.schema.modelled:
        np.testing.assert_array_equal(first.counts[name], second.counts[name])
        if first.cells[name].grain is not None:
            np.testing.assert_array_equal(first.cells[name].grain.weights, second.cells[name].grain.weights)
