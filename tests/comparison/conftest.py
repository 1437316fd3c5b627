"""One small table."""

import numpy as np
import pandas as pd
import pytest

from understudy.schema import Schema


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.loads(
        """
        rows: 300
        label: ill
        columns:
          person: {kind: id}
          age: {kind: integer, low: 0, high: 99}
          town: {kind: categorical, values: [Alm, Brock, Cray], missing: true}
          weight: {kind: real, low: 30, high: 150}
          ill: {kind: boolean}
        """
    )


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, 300)
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice(["Alm", "Brock", "Cray", None], 300, p=[0.6, 0.25, 0.1, 0.05]),
            "weight": 60 + age / 5 + rng.normal(0, 8, 300),
            "ill": rng.random(300) < age / 120,
        }
    )
