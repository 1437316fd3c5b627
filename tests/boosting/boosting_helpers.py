"""What the tests of boosting share: schemas, rows, settings of a small GAN."""

import numpy as np
import pandas as pd

from understudy.schema import Schema

TINY = Schema.loads("""
rows: 50
label: sick
columns:
  town: {kind: categorical, values: [a, b, Other], other: Other, missing: true}
  age: {kind: integer, low: 0, high: 2}
  sick: {kind: boolean}
  wage: {kind: real, low: 0, high: 1, missing: true}
""")
PEOPLE = Schema.loads("""
rows: 2000
label: ill
columns:
  age: {kind: integer, low: 0, high: 99}
  town: {kind: categorical, values: [a, b, c]}
  ill: {kind: boolean}
""")
GAN = {"steps": 6, "checkpoints": 3, "generator_hidden": (8,), "critic_hidden": (6, 4), "latent": 4, "batch": 64}


def people(rows: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Columns that go together closely, so that independent ones are far off."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    return pd.DataFrame(
        {"age": age, "town": np.where(age > 60, "a", "b"), "ill": rng.random(rows) < 0.1 + 0.8 * (age > 40)}
    )
