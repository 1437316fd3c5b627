"""The diversity measures on published synthetic tables, against the figures printed for them.

    UNDERSTUDY_DATA=FOLDER python -m bench.checks.published_diversity --published FOLDER

UNDERSTUDY_DATA holds adult/train.csv and adult/test.csv. The published folder holds adult_dpvae_1.01.csv.gz and
adult_dpvae_0.36.csv.gz (the DP-VAE tables of the DP-auto-GAN comparison); beside it or in it lies diversity.csv, the
printed figures, one a row. Real rows are all 48,842 of ADULT, where a missing cell is a category of its own.
Exit code: 0 all figures agree in every printed digit, 1 one does not, 2 files are missing.
"""

import argparse
import os
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pandas as pd

from understudy.evaluation.distributions import jsd, mu_kl
from understudy.schema import Schema

COLUMNS = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country", "income")
EPSILONS = ("1.01", "0.36")
METRICS = {"jsd": jsd, "mu_kl": mu_kl}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--published", type=Path, required=True, help="folder of the published synthetic tables")
    published = parser.parse_args().published
    data = os.environ.get("UNDERSTUDY_DATA")
    if data is None:
        print("UNDERSTUDY_DATA is not set: set it to a folder with adult/train.csv and adult/test.csv", file=sys.stderr)
        return 2
    parts = [Path(data) / "adult" / f"{part}.csv" for part in ("train", "test")]
    tables = {epsilon: published / f"adult_dpvae_{epsilon}.csv.gz" for epsilon in EPSILONS}
    figures = next(
        (path for path in (published / "diversity.csv", published.parent / "diversity.csv") if path.exists()), None
    )
    missing = [str(path) for path in (*parts, *tables.values()) if not path.exists()]
    missing += [] if figures else [f"diversity.csv in {published} or beside it"]
    if missing:
        print("not found: " + ", ".join(missing), file=sys.stderr)
        return 2
    real = pd.concat([read(path) for path in parts], ignore_index=True)
    printed = pd.read_csv(figures, dtype=str)
    return 1 if sum(check(real, epsilon, path, printed) for epsilon, path in tables.items()) else 0


def read(path: Path) -> pd.DataFrame:
    """Only an empty field is missing; the published tables pad their values with a blank."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""], usecols=list(COLUMNS), skipinitialspace=True)


def check(real: pd.DataFrame, epsilon: str, path: Path, printed: pd.DataFrame) -> int:
    """Prints computed beside printed figures; returns how many disagree."""
    synthetic = read(path)
    schema = schema_of(real, synthetic)
    wrong = 0
    for measure, metric in METRICS.items():
        result = metric(real, synthetic, schema)
        if result.undefined_columns:
            raise SystemExit(f"{measure}: undefined for {', '.join(result.undefined_columns)}")
        found = {**result.per_column, "total": result.value, "salary_x100": 100 * result.per_column["income"]}
        rows = printed[(printed.measure == measure) & (printed.method == "DP-VAE") & (printed.epsilon == epsilon)]
        if len(rows) != len(COLUMNS) + 1:
            raise SystemExit(
                f"diversity.csv has {len(rows)} figures of {measure} at {epsilon}, expected one a column and a total"
            )
        for column, figure in zip(rows.column, rows.value, strict=True):
            agrees = agrees_as_printed(found[column], figure, places=2 if column == "total" else 3)
            wrong += not agrees
            mark = "" if agrees else "   <-- differs"
            print(f"{epsilon}  {measure:6s} {column:15s} computed {found[column]:.5f}  printed {figure}{mark}")
    return wrong


def schema_of(real: pd.DataFrame, synthetic: pd.DataFrame) -> Schema:
    """Every value of either table is declared; the published tables write a missing cell as a question mark."""
    columns = {}
    for name in COLUMNS:
        values = sorted({*real[name].dropna(), *synthetic[name].dropna()} - {"?"})
        columns[name] = {"kind": "categorical", "values": values, "missing": True}
    return Schema(columns=columns, missing_values=["?"])


def agrees_as_printed(found: float, printed: str, *, places: int) -> bool:
    """Whether a number, rounded to the table's places, is the printed one.

    >>> agrees_as_printed(0.02749, "0.027", places=3), agrees_as_printed(0.02751, "0.027", places=3)
    (True, False)
    """
    step = Decimal(1).scaleb(-places)
    return Decimal(repr(found)).quantize(step, ROUND_HALF_UP) == Decimal(printed).quantize(step)


if __name__ == "__main__":
    sys.exit(main())
