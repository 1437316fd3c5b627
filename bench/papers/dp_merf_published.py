"""What the DP-MERF paper (Harder, Adamczewski, Park) prints in its tables 2 and 3, and beside which of our cells.

dp_merf_tables.csv: means over twelve classifiers at epsilon 1 and without privacy (`inf`). dp_merf_images.csv: accuracy
and F1 on MNIST and Fashion-MNIST; rows of the kind `real` have no epsilon.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

TABLES = Path(__file__).parent / "dp_merf_tables.csv"
IMAGES = Path(__file__).parent / "dp_merf_images.csv"
DELTA = 1e-5

# Our name of a method, and the paper's.
NAMES = {"dp-merf": "DP-MERF", "dp-cgan": "DP-CGAN", "real": "real"}
# Our name of a figure, and the paper's. The paper's two areas are those of decisions, not of scores (see the judge).
MEASURES = {"decided_roc": "roc_auc", "decided_pr": "pr_auc", "f1_weighted": "f1"}
IMAGE_MEASURES = {"accuracy": "accuracy", "f1_macro": "f1"}


@cache
def figures() -> dict[tuple[str, str, str, str], float]:
    """Figures by (dataset, the paper's method, epsilon as text or "" for real rows, our name of the measure)."""
    found, ours = {}, {theirs: name for name, theirs in MEASURES.items()}
    with TABLES.open(newline="") as file:
        for row in csv.DictReader(file):
            epsilon = "" if row["method"] == "real" else row["epsilon"]
            place = (row["dataset"], row["method"], epsilon, ours[row["metric"]])
            found[place] = float(row["mean_over_12_classifiers"])
    with IMAGES.open(newline="") as file:
        for row in csv.DictReader(file):
            for measure, theirs in IMAGE_MEASURES.items():
                found[row["dataset"], row["method"], row["epsilon"], measure] = float(row[theirs])
    return found


def printed(dataset: str, method: str, epsilon: str, measure: str) -> float | None:
    """What the paper prints for one of our figures, if it does.

    >>> printed("adult", "dp-merf", "1", "decided_roc"), printed("mnist", "real", "", "f1_macro")
    (0.65, 0.86)
    >>> printed("adult", "mixture", "1", "decided_roc"), printed("adult", "dp-merf", "1", "roc_auc")
    (None, None)
    """
    return figures().get((dataset, NAMES.get(method, ""), epsilon, measure))


def printed_share(dataset: str, method: str, epsilon: str, measure: str) -> float | None:
    """The paper's figure as a share of its figure after real rows.

    >>> round(printed_share("credit", "dp-merf", "1", "decided_roc"), 3)
    0.836
    """
    made, real = printed(dataset, method, epsilon, measure), printed(dataset, "real", "", measure)
    return None if made is None or real is None else made / real
