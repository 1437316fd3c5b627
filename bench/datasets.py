"""The public tables that the bench measures on, split the same way everywhere.

The environment variable UNDERSTUDY_DATA names a folder laid out as `<dataset>/<file>` (FILES below). Without it, tables
are looked for in a per-user cache, which `bench.downloads` fills from the tables' public homes where it knows them.

Splits: the publisher's where there is one; otherwise 75/25 by a permutation with a fixed seed, so that every method and
every later run sees the same rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SETTING = "UNDERSTUDY_DATA"
SCHEMAS = Path(__file__).parent / "schemas"
SPLIT_SEED = 20240101
TRAIN_SHARE = 0.75

# Median income of persons of 15 and over in the United States in 2019, rounded (Census Bureau: 35,980 dollars).
MEDIAN_INCOME_2019 = 36_000

ACS_TABLES = ("ma2019", "tx2019", "national2019", "ma2018", "tx2018", "national2018")
ACS_NUMBERS = ("AGEP", "NOC", "NPF", "DENSITY", "PINCP", "POVPIP", "PWGTP", "WGTP")

FILES: dict[str, tuple[str, ...]] = {
    "adult": ("train.csv", "test.csv"),
    "cardio": ("cardio_train.csv",),
    "titanic": ("train.csv", "test.csv", "test_labels.csv"),
    "intrusion": ("train.csv.gz", "test.csv.gz"),
    "cervical": ("cervical.csv",),
    "mnist": ("train.npz", "test.npz"),
    "fashion_mnist": ("train.npz", "test.npz"),
    "covtype": ("covtype.csv.gz",),
    "isolet": ("train.csv.gz", "test.csv.gz"),
    "epileptic": ("epileptic.csv.gz",),
    "creditcard": ("creditcard_sample.csv",),
    "census_kdd": ("census_test_part.csv.gz",),
    "acs_excerpts": tuple(f"{table}.csv" for table in ACS_TABLES),
    "pums_small": ("PUMS.csv",),
    "gaussians25": ("gaussian_df.csv",),
    "bank": ("bank.csv",),
    "german_credit": ("german_credit.csv",),
}

# `acs_excerpts` alone means its first table; the other five have names of their own.
NAMES: tuple[str, ...] = (*FILES, *(f"acs_{table}" for table in ACS_TABLES[1:]))

LABELS: dict[str, str] = {
    "adult": "income",
    "cardio": "cardio",
    "titanic": "Survived",
    "intrusion": "label",
    "cervical": "Biopsy",
    "mnist": "label",
    "fashion_mnist": "label",
    "covtype": "Cover_Type",
    "isolet": "label",
    "epileptic": "y",
    "creditcard": "Class",
    "census_kdd": "income_50k",
    "acs_excerpts": "income_over_36k",
    "bank": "y",
    "german_credit": "credit_risk",
}

NOTES: dict[str, str] = {
    "adult": "official split; fnlwgt (a sampling weight) and education (education-num in words) are dropped",
    "cardio": "75/25 split; impossible blood pressures are left in: the schema's bounds clip them",
    "titanic": "official split, test labels joined in",
    "intrusion": "the usual 10% train file and the official test file, which has 17 attacks that train lacks",
    "cervical": "75/25 split; the other three diagnoses (Hinselmann, Schiller, Citology) stay in as columns",
    "mnist": "official split; pixels p0..p783",
    "fashion_mnist": "70,000 images, but the parts are not those of the original files: scores near published ones",
    "covtype": "75/25 split of the balanced first 15,120 rows, not of the full 581,012",
    "isolet": "official test part; train is a quarter of the official one",
    "epileptic": "75/25 split by recording, so that no recording is in both parts; segment and chunk are dropped",
    "creditcard": "75/25 split of a subsample with 9.1% fraud (0.17% in the full table)",
    "census_kdd": "75/25 split of the official test part (the train part is absent); instance_weight is dropped",
    "acs_excerpts": (
        "75/25 split; PINCP and PINCP_DECILE give way to income_over_36k: PINCP above the national median of 2019, "
        "false for persons under 15, who have no PINCP; N (not applicable) is missing"
    ),
    "pums_small": "75/25 split; no label",
    "gaussians25": "75/25 split; no label; simulated",
    "bank": "75/25 split; duration is known only after the call, and stays in",
    "german_credit": "75/25 split",
}


@dataclass(frozen=True)
class Dataset:
    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    schema_path: Path | None  # None for the two image sets
    label: str | None
    note: str


def load(name: str) -> Dataset:
    """Reads one table by name (NAMES), cleaned and split."""
    if name not in NAMES:
        raise ValueError(f"dataset must be one of {', '.join(NAMES)}; got {name!r}")
    family = "acs_excerpts" if name.startswith("acs_") else name
    train, test = _READERS[name](family)
    return Dataset(
        name=name,
        train=train,
        test=test,
        schema_path=_schema_path(name),
        label=LABELS.get(family),
        note=NOTES[family],
    )


def locate(family: str, file: str) -> Path:
    """The path of one file of a dataset; downloads it if that is what the default setting calls for."""
    folder = os.environ.get(SETTING)
    if folder:
        path = Path(folder) / family / file
        if not path.exists():
            raise FileNotFoundError(
                f"dataset {family!r}: {SETTING} names {folder}, which must hold {family}/{file}; "
                f"put the file there, or unset {SETTING} to use the cache and its downloads"
            )
        return path
    path = cache_folder() / family / file
    if not path.exists():
        from bench.downloads import download

        download(family, path.parent)
    return path


def cache_folder() -> Path:
    return Path.home() / ".cache" / "understudy" / "data"


def _schema_path(name: str) -> Path | None:
    if name in ("mnist", "fashion_mnist"):
        return None
    if name.startswith("acs_"):
        # Places are public: each part of the country declares its own areas, both years share them.
        table = "ma2019" if name == "acs_excerpts" else name.removeprefix("acs_")
        return SCHEMAS / f"acs_{table[:-4]}.yaml"
    return SCHEMAS / f"{name}.yaml"


def _read_csv(path: Path, **options: object) -> pd.DataFrame:
    # Only the empty field is missing: "NA" is a category of census_kdd, and "N" is handled where it means something.
    options.setdefault("na_values", [""])
    return pd.read_csv(path, keep_default_na=False, low_memory=False, **options)


def split(
    frame: pd.DataFrame, groups: pd.Series | None = None, share: float = TRAIN_SHARE, seed: int = SPLIT_SEED
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """75/25 by a seeded permutation of the rows, or of the groups so that no group is in both parts."""
    rng = np.random.default_rng(seed)
    if groups is None:
        order = rng.permutation(len(frame))
        cut = round(share * len(frame))
        parts = order[:cut], order[cut:]
    else:
        names = rng.permutation(np.sort(groups.unique()))
        in_train = groups.isin(names[: round(share * len(names))]).to_numpy()
        order = rng.permutation(len(frame))
        parts = order[in_train[order]], order[~in_train[order]]
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in parts)
    return train, test


Parts = tuple[pd.DataFrame, pd.DataFrame]


def _two_files(family: str, drop: tuple[str, ...] = ()) -> Parts:
    train, test = (_read_csv(locate(family, file)).drop(columns=list(drop)) for file in FILES[family])
    return train, test


def _one_file(family: str, drop: tuple[str, ...] = (), **options: object) -> Parts:
    return split(_read_csv(locate(family, FILES[family][0]), **options).drop(columns=list(drop)))


def _titanic(family: str) -> Parts:
    train, test, labels = (_read_csv(locate(family, file)) for file in FILES[family])
    return train, test.merge(labels, on="PassengerId", validate="1:1")[list(train.columns)]


def _epileptic(family: str) -> Parts:
    frame = _read_csv(locate(family, FILES[family][0]))
    return split(frame.drop(columns=["segment", "chunk"]), groups=frame["segment"])


def _images(family: str) -> Parts:
    parts = []
    for file in FILES[family]:
        with np.load(locate(family, file)) as arrays:
            pixels = arrays["images"].reshape(len(arrays["images"]), -1)
            frame = pd.DataFrame(pixels, columns=[f"p{i}" for i in range(pixels.shape[1])])
            parts.append(frame.assign(label=arrays["labels"]))
    return parts[0], parts[1]


def _acs(table: str) -> Parts:
    # "N" marks what does not apply to a person (the marital status of a child): a missing value with a reason.
    # Codes stay text: as numbers they would turn into 1.0 and 2.0 beside the missing ones.
    frame = _read_csv(locate("acs_excerpts", f"{table}.csv"), na_values=["", "N"], dtype=str)
    frame = frame.assign(**{name: pd.to_numeric(frame[name]) for name in ACS_NUMBERS})
    label = (frame["PINCP"] > MEDIAN_INCOME_2019).astype(int)
    return split(frame.drop(columns=["PINCP", "PINCP_DECILE"]).assign(income_over_36k=label))


_READERS = {
    "adult": lambda family: _two_files(family, drop=("fnlwgt", "education")),
    "cardio": lambda family: _one_file(family, sep=";"),
    "titanic": _titanic,
    "intrusion": _two_files,
    "cervical": _one_file,
    "mnist": _images,
    "fashion_mnist": _images,
    "covtype": _one_file,
    "isolet": _two_files,
    "epileptic": _epileptic,
    "creditcard": _one_file,
    "census_kdd": lambda family: _one_file(family, drop=("instance_weight",)),
    "acs_excerpts": lambda _: _acs("ma2019"),
    "pums_small": _one_file,
    "gaussians25": _one_file,
    "bank": _one_file,
    "german_credit": _one_file,
    **{f"acs_{table}": (lambda _, table=table: _acs(table)) for table in ACS_TABLES[1:]},
}
