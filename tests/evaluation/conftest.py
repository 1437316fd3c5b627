"""Small tables with every kind of column, missing cells and a label that the others explain."""

import numpy as np
import pandas as pd
import pytest

from understudy.schema import Schema

SCHEMA = """
label: sick
columns:
  age: {kind: integer, low: 18, high: 90}
  wage: {kind: real, low: 0, high: 1000, missing: true}
  weight: {kind: real, low: 30, high: 160, resolution: 0.5}
  gain: {kind: integer, low: 0, high: 50000, log: true, zero_inflated: true}
  town: {kind: categorical, values: [Aachen, Bern, Córdoba, Žilina], missing: true}
  degree: {kind: ordinal, values: [none, school, college]}
  smoker: {kind: boolean, missing: true}
  sick: {kind: boolean}
  seen: {kind: datetime, low: 2020-01-01, high: 2021-12-31, resolution: day}
  patient: {kind: id}
"""


def people(rows: int, seed: int) -> pd.DataFrame:
    """Rows of one population; other seeds give fresh samples of it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, rows)
    degree = np.clip((age / 40 + rng.normal(size=rows)).astype(int), 0, 2)
    smoker = rng.random(rows) < 0.2 + 0.2 * (degree == 0)
    wage = np.clip(100 + 150 * degree + rng.normal(scale=60, size=rows), 0, 1000)
    sick = rng.random(rows) < 1 / (1 + np.exp(4 - age / 25 - 2 * smoker))
    town = rng.choice(["Aachen", "Bern", "Córdoba", "Žilina"], size=rows, p=[0.5, 0.3, 0.15, 0.05])
    frame = pd.DataFrame(
        {
            "age": age,
            "wage": np.where(rng.random(rows) < 0.1, np.nan, wage),
            "weight": np.round(np.clip(55 + 0.3 * age + rng.normal(scale=12, size=rows), 30, 160) * 2) / 2,
            "gain": np.where(rng.random(rows) < 0.8, 0, np.exp(rng.normal(7, 1, rows)).astype(int)),
            "town": pd.Series(town).where(rng.random(rows) > 0.05),
            "degree": np.array(["none", "school", "college"])[degree],
            "smoker": pd.array(smoker, dtype="boolean"),
            "sick": sick,
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 731, rows), unit="D"),
            "patient": np.arange(rows),
        }
    )
    frame.loc[rng.random(rows) < 0.05, "smoker"] = pd.NA
    return frame


def shuffled_cells(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Every column shuffled for itself: right marginals, no associations."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: frame[name].array[rng.permutation(len(frame))] for name in frame})


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.loads(SCHEMA)


@pytest.fixture(scope="session")
def real() -> pd.DataFrame:
    return people(400, 1)


@pytest.fixture(scope="session")
def holdout() -> pd.DataFrame:
    return people(300, 2)


@pytest.fixture(scope="session")
def synthetic() -> pd.DataFrame:
    """Half of the rows from the same population, half with their cells shuffled."""
    return pd.concat([people(200, 3), shuffled_cells(people(160, 4), 5)], ignore_index=True)


@pytest.fixture(scope="session")
def make_people():
    return people


@pytest.fixture(scope="session")
def shuffle_cells():
    return shuffled_cells
