"""From cells of `bench.papers.pgb` to a page."""

from __future__ import annotations

import math
import statistics
from typing import Any

from bench.papers.pgb_published import REAL, published
from bench.papers.pgb_tasks import SPLITS

LINES = ("last", "DRS", "PGB critics", "PGB+DRS critics", "PGB auto", "PGB+DRS auto")
MODELS = {"logistic_regression": "logistic", "random_forest": "forest", "xgboost": "XGBoost"}
# Tables of a task, each with its measures; "down": the less the better.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "": {
        "quality": ("quality", "up"),
        "score": ("score", "up"),
        "recognised": ("label recognised", "up"),
        "tvd2": ("TVD of pairs", "down"),
        "pmse_ratio": ("pMSE ratio, logistic", "down"),
        "pmse_tree": ("pMSE ratio, tree", "down"),
        "race_tvd": ("TVD of race", "down"),
        "regression": ("RMSE off by", "down"),
    },
    **{
        title: {f"{key}_{model}": (f"{title}, {name}", "up") for model, name in MODELS.items()}
        for key, title in (("auc", "ROC AUC"), ("pr", "PR AUC"), ("accuracy", "accuracy"))
    },
}
MEASURES = {name: shown for group in GROUPS.values() for name, shown in group.items()}
INTRODUCTION = """All lines of a method have one total epsilon: `last` is the generator with the whole budget, `DRS` \
rejects its rows by its own newest critic (images: by the mean distinguisher of the game), PGB lines spend a part of \
the budget on picks (`critics` as in the paper, `auto`: critics where a method keeps some, and marginals; images: \
networks that know blends, and clusters). Mean ± standard error over seeds; the paper's figure in brackets. \
Classifiers are trained on synthetic rows and tested on real test rows. `real rows`: test rows in the place of \
synthetic ones, or classifiers trained on real rows."""
GAINS = """What is gained over the last generator with the whole budget, seed by seed: mean difference ± standard \
error, bold where it is for the better. Distances (TVD, pMSE, RMSE) are better where they are less."""
SHARES = """As a share of what classifiers trained on real rows of the same split have, seed by seed: mean ± standard \
error; the paper's figure over its own real rows' in brackets."""


def summarise(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean, standard error and gain over the last generator, one entry a task, epsilon, method and line."""
    found: dict[tuple, list[tuple[dict, dict]]] = {}
    for cell in cells:
        key = cell["key"]
        for line, figures in cell["lines"].items():
            place = (key["task"], key["epsilon"], key["method"], line)
            found.setdefault(place, []).append((figures, cell["lines"]["last"]))
    lines = []
    for (task, epsilon, method, line), figures in found.items():
        entry: dict[str, Any] = {"task": task, "epsilon": epsilon, "method": method, "line": line}
        entry["seeds"] = len(figures)
        for name in MEASURES:
            values = [one[name] for one, _ in figures if one.get(name) is not None]
            if not values:
                continue
            entry[name] = spread(values)
            both = [(one[name], last[name]) for one, last in figures if None not in (one.get(name), last.get(name))]
            if line != "last" and both:
                entry[name]["gain"] = spread([mine - theirs for mine, theirs in both])
            real = [one[f"{name}_real"] for one, _ in figures if one.get(f"{name}_real") is not None]
            if real:
                entry[f"{name}_real"] = spread(real)
            if len(real) == len(values):
                entry[f"{name}_share"] = spread([mine / theirs for mine, theirs in zip(values, real, strict=True)])
        lines.append(entry)
    return lines


def spread(values: list[float]) -> dict[str, float | None]:
    """Mean and standard error, which one value alone has not.

    >>> spread([1.0, 3.0]), spread([2.0])
    ({'mean': 2.0, 'error': 1.0}, {'mean': 2.0, 'error': None})
    """
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "error": error}


def markdown(lines: list[dict[str, Any]], told: dict[str, Any], pictures: list[str]) -> str:
    text = [f"# The Post-GAN boosting paper's tables, {told['date']}", "", INTRODUCTION, ""]
    for task, epsilon in dict.fromkeys((line["task"], line["epsilon"]) for line in lines):
        mine = [line for line in lines if (line["task"], line["epsilon"]) == (task, epsilon)]
        text += [f"## {task}, epsilon {epsilon:g}", ""]
        for measures in GROUPS.values():
            names = [name for name in measures if any(name in line for line in mine)]
            if names:
                text += [*_table(mine, names, task, epsilon), ""]
        if task in SPLITS:
            text += [*_shares(mine, SPLITS[task], epsilon), ""]
        text += [*_gains(mine), ""]
    text += [f"![]({name})\n" for name in pictures]
    return "\n".join([*text, f"Source {told['source']}, NumPy {told['numpy']}.", ""])


def _table(mine: list[dict[str, Any]], names: list[str], task: str, epsilon: float) -> list[str]:
    text = ["| method | line | seeds | " + " | ".join(MEASURES[name][0] for name in names) + " |"]
    text += ["| --- | --- | ---: |" + " ---: |" * len(names)]
    real = []
    for name in names:
        found = next((line[f"{name}_real"] for line in mine if f"{name}_real" in line), None)
        paper = REAL.get((task, name))
        real.append("" if found is None else f"{found['mean']:.3f}" + (f" ({paper:.3f})" if paper is not None else ""))
    text += ["| real rows |  |  | " + " | ".join(real) + " |"]
    for line in mine:
        cells = [_cell(line.get(name), published(task, epsilon, name, line["line"])) for name in names]
        text += [f"| {line['method']} | {line['line']} | {line['seeds']} | " + " | ".join(cells) + " |"]
    return text


def _cell(found: dict[str, Any] | None, paper: float | None) -> str:
    if found is None:
        return "-"
    error = f" ± {found['error']:.3f}" if found["error"] is not None else ""
    return f"{found['mean']:.3f}{error}" + (f" ({paper:.3f})" if paper is not None else "")


def _shares(mine: list[dict[str, Any]], published_as: str, epsilon: float) -> list[str]:
    """Splits are harder or easier than the paper's: what they share with it is how far a line is from real rows."""
    names = [name for name in MEASURES if name != "tvd2" and any(f"{name}_share" in line for line in mine)]
    text = [SHARES, "", "| method | line | " + " | ".join(MEASURES[name][0] for name in names) + " |"]
    text += ["| --- | --- |" + " ---: |" * len(names)]
    for line in mine:
        cells = []
        for name in names:
            paper = published(published_as, epsilon, name, line["line"])
            cells.append(_cell(line.get(f"{name}_share"), None if paper is None else paper / REAL[published_as, name]))
        text += [f"| {line['method']} | {line['line']} | " + " | ".join(cells) + " |"]
    return text


def _gains(mine: list[dict[str, Any]]) -> list[str]:
    """Differences from the last generator: of the auto lines, which are the default."""
    chosen = [line for line in mine if line["line"].endswith("auto")]
    names = [name for name in MEASURES if any("gain" in line.get(name, {}) for line in chosen)]
    if not names:
        return []
    text = [GAINS, "", "| method | line | " + " | ".join(MEASURES[name][0] for name in names) + " |"]
    text += ["| --- | --- |" + " ---: |" * len(names)]
    for line in chosen:
        cells = []
        for name in names:
            gain = line.get(name, {}).get("gain")
            if gain is None:
                cells.append("-")
                continue
            better = gain["mean"] > 0 if MEASURES[name][1] == "up" else gain["mean"] < 0
            shown = f"{gain['mean']:+.3f}" + (f" ± {gain['error']:.3f}" if gain["error"] is not None else "")
            cells.append(f"**{shown}**" if better else shown)
        text += [f"| {line['method']} | {line['line']} | " + " | ".join(cells) + " |"]
    return text
