"""A made-up table of patients whose truth is known: nobody in it exists, so it can be shown to anyone."""

import numpy as np
import pandas as pd

from understudy.schema import Schema

REGIONS = {
    "North": 0.27,
    "Coast": 0.23,
    "Plains": 0.19,
    "Hills": 0.15,
    "Capital": 0.13,
    "Border": 0.025,
    "Isles": 0.005,
}
BLOOD = {"O+": 0.37, "A+": 0.34, "B+": 0.10, "O-": 0.06, "A-": 0.06, "AB+": 0.045, "B-": 0.019, "AB-": 0.006}
SMOKING = ("never", "former", "light", "heavy")
ACTIVITY = ("none", "low", "medium", "high")
FIRST_DAY, DAYS = np.datetime64("2021-01-01"), 1095
REMARKS = ("seen by the ward team", "asked for a call back", "came with family", "see letter")

SCHEMA = """\
rows: 20000
label: readmitted
columns:
  patient: {kind: id, prefix: P-}
  age: {kind: integer, low: 18, high: 100}
  sex: {kind: categorical, values: [female, male, other]}
  region: {kind: categorical, values: [North, Coast, Plains, Hills, Capital, Border, Isles]}
  blood: {kind: categorical, values: [O+, A+, B+, O-, A-, AB+, B-, AB-], missing: true}
  smoking: {kind: ordinal, values: [never, former, light, heavy]}
  activity: {kind: ordinal, values: [none, low, medium, high], missing: true}
  bmi: {kind: real, low: 12, high: 60, resolution: 0.1}
  systolic: {kind: integer, low: 70, high: 230}
  cholesterol: {kind: real, low: 2, high: 12, resolution: 0.1, missing: true}
  diabetic: {kind: boolean}
  admitted: {kind: datetime, low: 2021-01-01, high: 2023-12-31, resolution: day}
  nights: {kind: integer, low: 0, high: 120, log: true, zero_inflated: true}
  cost: {kind: real, low: 0, high: 50000, resolution: 0.01, log: true, zero_inflated: true}
  remarks: {kind: text}
  readmitted: {kind: boolean}
"""


def demo_schema() -> Schema:
    """The public facts of the demo table, as its makers declared them: nothing in here was read off the rows."""
    return Schema.loads(SCHEMA)


def demo_table(rows: int = 20_000, seed: int = 0) -> pd.DataFrame:
    """Draws `rows` patients, independently of each other, from this process (logit: p with log p/(1-p) of that size):

    - age: 18 + 77 Beta(2.2, 1.9), rounded. sex, region, blood: drawn from the shares above; "other" has 0.6 %, the
      Isles 0.5 %, AB- 0.6 %. Blood is missing for 4 %, by pure chance.
    - smoking: how many of the thresholds 0, 0.9, 1.6 lie below 0.5 male + 0.35 (age > 35) - 0.3 + N(0, 1).
    - activity: how many of -0.9, 0, 0.9 lie below 0.6 - 0.02 (age - 45) - 0.25 smoking + N(0, 1). Missing for 2 % of
      those under 60 and 12 % of the others.
    - bmi: 20.5 - 1.1 activity + 2.5 sin(pi (age - 18) / 77) + Gamma(3.5, 2.2), skewed to the right.
    - systolic: 98 + 0.45 age + 0.7 (bmi - 25) + 3 smoking + N(0, 12); 45 % of the nurses round to the nearest ten.
    - cholesterol: 4.1 + 0.012 age + 0.05 (bmi - 25) + N(0, 0.8); measured for 25 % below the age of 40 and 85 % above,
      a quarter less often on the Border and the Isles.
    - diabetic: logit -4 + 0.045 age + 0.1 (bmi - 27).
    - admitted: a day of 2021 to 2023, half as likely at weekends, and more likely in winter.
    - nights: 0 (a day case) with logit 1.1 - 0.025 (age - 50) - 0.9 diabetic, else 1 + Poisson(G) with
      G ~ Gamma(1.3, 1.5 + 0.04 (age - 18)).
    - cost: 0 for those who are insured in full (55 %, in the Capital 80 %), else (180 + 310 nights) exp(N(-0.1, 0.45)).
    - readmitted, the label: logit -2.9 + 2.4 ((bmi - 27)/10)^2 + 2.1 diabetic (activity < 2) - 1.2 diabetic
      (activity >= 2) + 1.3 (age > 65)(smoking >= 2) + 0.55 log(1 + nights) + 0.8 (systolic > 140) - 0.5 (cost = 0).
      Diabetes and exercise only count together, and bmi harms on both sides: no straight line finds either.
    - patient: a number; remarks: a phrase, a bed and a time. Neither tells anything.

    The same rows and seed give the same table. `demo_risk` gives the label's true probabilities.

    >>> demo_table(3)["region"].tolist()
    ['North', 'Capital', 'Plains']
    """
    return _draw(rows, seed)[0]


def demo_risk(rows: int = 20_000, seed: int = 0) -> np.ndarray:
    """The true probability of readmission of every patient of `demo_table(rows, seed)`: the best that can be known."""
    return _draw(rows, seed)[1]


def _draw(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = np.rint(18 + 77 * rng.beta(2.2, 1.9, rows)).astype(int)
    sex = rng.choice(["female", "male", "other"], rows, p=[0.522, 0.472, 0.006])
    region = rng.choice(list(REGIONS), rows, p=list(REGIONS.values()))
    blood = rng.choice(list(BLOOD), rows, p=list(BLOOD.values()))
    smoking = _steps(0.5 * (sex == "male") + 0.35 * (age > 35) - 0.3 + rng.normal(0, 1, rows), (0.0, 0.9, 1.6))
    activity = _steps(0.6 - 0.02 * (age - 45) - 0.25 * smoking + rng.normal(0, 1, rows), (-0.9, 0.0, 0.9))
    bmi = 20.5 - 1.1 * activity + 2.5 * np.sin(np.pi * (age - 18) / 77) + rng.gamma(3.5, 2.2, rows)
    bmi = np.clip(bmi, 12, 60).round(1)
    pressure = 98 + 0.45 * age + 0.7 * (bmi - 25) + 3 * smoking + rng.normal(0, 12, rows)
    pressure = np.where(rng.random(rows) < 0.45, 10 * np.rint(pressure / 10), np.rint(pressure))
    systolic = np.clip(pressure, 70, 230).astype(int)
    cholesterol = np.clip(4.1 + 0.012 * age + 0.05 * (bmi - 25) + rng.normal(0, 0.8, rows), 2, 12).round(1)
    diabetic = _happens(_logit(-4 + 0.045 * age + 0.1 * (bmi - 27)), rng)
    day_case = _happens(_logit(1.1 - 0.025 * (age - 50) - 0.9 * diabetic), rng)
    nights = np.where(day_case, 0, 1 + rng.poisson(rng.gamma(1.3, 1.5 + 0.04 * (age - 18))))
    nights = np.minimum(nights, 120)
    insured = rng.random(rows) < np.where(region == "Capital", 0.80, 0.55)
    cost = np.where(insured, 0.0, (180 + 310 * nights) * np.exp(rng.normal(-0.1, 0.45, rows)))
    risk = _logit(
        -2.9
        + 2.4 * ((bmi - 27) / 10) ** 2
        + np.where(activity < 2, 2.1, -1.2) * diabetic
        + 1.3 * (age > 65) * (smoking >= 2)
        + 0.55 * np.log1p(nights)
        + 0.8 * (systolic > 140)
        - 0.5 * (cost == 0)
    )
    measured = np.where(age < 40, 0.25, 0.85) * np.where(np.isin(region, ["Border", "Isles"]), 0.75, 1.0)
    unanswered = rng.random(rows) < np.where(age < 60, 0.02, 0.12)
    columns = {
        "patient": [f"P-{number}" for number in rng.permutation(np.arange(1, rows + 1))],
        "age": age,
        "sex": sex,
        "region": region,
        "blood": pd.Series(blood, dtype=object).mask(rng.random(rows) < 0.04),
        "smoking": np.array(SMOKING)[smoking],
        "activity": pd.Series(np.array(ACTIVITY)[activity], dtype=object).mask(unanswered),
        "bmi": bmi,
        "systolic": systolic,
        "cholesterol": np.where(rng.random(rows) < measured, cholesterol, np.nan),
        "diabetic": diabetic,
        "admitted": _days(rows, rng),
        "nights": nights,
        "cost": np.minimum(cost, 50_000).round(2),
        "remarks": _remarks(rows, rng),
        "readmitted": _happens(risk, rng),
    }
    return pd.DataFrame(columns), risk


def _steps(hidden: np.ndarray, thresholds: tuple[float, ...]) -> np.ndarray:
    return np.searchsorted(thresholds, hidden)


def _logit(log_odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-log_odds))


def _happens(probability: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(probability)) < probability


def _remarks(rows: int, rng: np.random.Generator) -> list[str]:
    said, bed, hour, minute = rng.choice(REMARKS, rows), *(rng.integers(1, most, rows) for most in (400, 24, 60))
    return [f"{text}; bed {b}, {h}:{m:02}" for text, b, h, m in zip(said, bed, hour, minute, strict=True)]


def _days(rows: int, rng: np.random.Generator) -> np.ndarray:
    days = FIRST_DAY + np.arange(DAYS)
    weekend = (days.astype(int) + 3) % 7 >= 5  # day 0 of NumPy's calendar was a Thursday
    weight = np.where(weekend, 0.5, 1.0) * (1 + 0.3 * np.cos(2 * np.pi * (np.arange(DAYS) - 15) / 365.25))
    return rng.choice(days, rows, p=weight / weight.sum())
