"""Cells to lines, lines to the page with the paper's figures beside ours, and what was not reached."""

from __future__ import annotations

import statistics
from typing import Any

from bench.papers.published import CATEGORICAL, COMPARED, FOREST_REAL, epsilon_of, printed

# A line's figures, their headings and digits.
PREDICTION = {
    "auc_logistic_regression": ("AUC log. reg.", 3),
    "auc_random_forest": ("AUC forest", 3),
    "auc_xgboost": ("AUC XGBoost", 3),
    "accuracy_categorical": ("forest, categories only", 3),
    "dimension_wise": ("columns' gap", 3),
}
TABLES = {
    "tvd1": ("TVD1", 3),
    "tvd2": ("TVD2", 3),
    "tvd3": ("TVD3", 3),
    "pca": ("PCA plane", 3),
    "lost_categories": ("lost categories", 3),
    "collapsed": ("collapsed", 1),
    "cpu_seconds": ("processor (s)", 0),
}
MEASURES = {"jsd": "JSD", "mu_kl": "mu-KL", "accuracy": "forest accuracy"}
NOT_FIGURES = ("key", "status", "points")

LEAST_AUC = 0.80  # asked of every compared method at epsilon 1
COLLAPSE_FROM = 0.5  # at this epsilon and above no categorical column may have one value only

Line = dict[str, Any]


def summarise(cells: list[dict[str, Any]]) -> list[Line]:
    """Mean, spread (standard deviation) and largest value of every figure: a line for each method and epsilon."""
    groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault((cell["key"]["epsilon"], cell["key"]["method"]), []).append(cell)
    lines = []
    for (epsilon, method), group in sorted(groups.items(), key=lambda item: item[0][0]):
        done = [cell for cell in group if cell["status"] == "ok"]
        line: Line = {"method": method, "epsilon": epsilon, "paper_epsilon": epsilon_of(method, epsilon)}
        for part in ("tables", "columns"):
            line[f"seeds_{part}"] = len({cell["key"]["seed"] for cell in done if cell["key"]["part"] == part})
        line["problems"] = sorted({cell["status"] for cell in group if cell["status"] != "ok"})
        for name in sorted({name for cell in done for name in cell} - set(NOT_FIGURES)):
            # What a fit spent stands in both parts of its cell.
            values = list({cell["key"]["seed"]: cell[name] for cell in done if name in cell}.values())
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            line[name] = {"mean": statistics.fmean(values), "spread": spread, "most": max(values), "seeds": len(values)}
        lines.append(line)
    return lines


def not_reached(lines: list[Line]) -> list[str]:
    """Every figure that falls short of the paper's, and every bar of our own that was missed."""
    found = []
    independent = {line["epsilon"]: line for line in lines if line["method"] == "independent"}
    for line in lines:
        method, epsilon = line["method"], line["epsilon"]
        where = f"{method} at {epsilon:g}"
        found += [f"{where}: {problem}" for problem in line["problems"]]
        for name in (*MEASURES, "accuracy_categorical"):
            paper = printed(name, method, epsilon)
            if paper is not None and name in line and not paper.reached(line[name]["mean"]):
                found.append(f"{where}: {name} {line[name]['mean']:.4f}, the paper {paper.value:g}")
        if epsilon >= COLLAPSE_FROM and line.get("collapsed", {}).get("most", 0) > 0:
            found.append(f"{where}: up to {line['collapsed']['most']:.0f} categorical columns with a single value")
        if method not in COMPARED:
            continue
        for name in ("auc_logistic_regression", "auc_random_forest", "auc_xgboost"):
            if epsilon >= 1 and line.get(name, {"mean": 0.0})["mean"] <= LEAST_AUC:
                shown = f"{line[name]['mean']:.3f}" if name in line else "undefined"
                found.append(f"{where}: {name} {shown}, not over {LEAST_AUC:g}")
        for name in ("tvd2", "tvd3"):
            alone = independent.get(epsilon, {}).get(name)
            if alone is not None and name in line and line[name]["mean"] >= alone["mean"]:
                found.append(f"{where}: {name} {line[name]['mean']:.3f}, independent columns {alone['mean']:.3f}")
    return found


def markdown(lines: list[Line], facts: dict[str, Any]) -> str:
    text = [f"# The DP-auto-GAN paper's ADULT tables, {facts['date']}", "", _preface(facts), ""]
    text += ["## Paper and ours", "", *_beside_paper(lines), ""]
    text += ["## Prediction", "", PREDICTION_WORDS, "", *_figures(lines, PREDICTION), ""]
    text += ["## Tables", "", TABLES_WORDS, "", *_figures(lines, TABLES), ""]
    for measure in ("jsd", "mu_kl"):
        text += [f"## {MEASURES[measure]} by column", "", "Ours / the paper's.", ""]
        text += [*_by_column(lines, measure), ""]
    missed = not_reached(lines) + _unfinished(lines, facts["seeds"])
    text += [
        "## Not reached",
        "",
        *([f"- {one}" for one in missed] or ["No figure that was measured falls short."]),
        "",
    ]
    text += ["## Versions", "", f"`{facts['command']}`", ""]
    text += [
        f"Python {facts['python']}, {facts['cores']} cores; source {facts['source']}; {', '.join(facts['packages'])}."
    ]
    return "\n".join(text) + "\n"


def _unfinished(lines: list[Line], seeds: int) -> list[str]:
    """What a run that ended early leaves open, in one sentence a part."""
    found = []
    for part in ("tables", "columns"):
        done = [line[f"seeds_{part}"] for line in lines]
        if min(done, default=0) < seeds:
            found.append(
                f"not all measured ({part}): {sum(done)} fits of {seeds * len(lines)} that these lines stand for"
            )
    return found


def _preface(facts: dict[str, Any]) -> str:
    return f"""\
Each method at the paper's epsilons, claimed under our accounting, delta {facts["delta"]:g}; mean ± standard deviation
over the seeds that are named (of {facts["seeds"]}), each a fit with noise of its own; 32,561 training rows and as many
synthetic ones. JSD and mu-smoothed KL are sums over the 8 categorical columns against all 48,842 real rows, as in the
paper; lower is better. Forest accuracy: a random forest for income, trained on synthetic rows and tested on the 16,281
test rows; the majority class alone gives 0.764. A paper's figure that ours does not reach is marked with a cross."""


PREDICTION_WORDS = """\
AUC: trained on synthetic rows, tested on test rows. Forest, categories only: accuracy with the 8 categorical columns.
Columns' gap: every column predicted from the others, mean absolute difference of scores after synthetic and after real
rows. `real rows`: models trained on training rows."""

TABLES_WORDS = """\
TVD: mean total variation distance of all columns, all pairs, and 100 triples, against training rows; `real rows` is
what test rows score. PCA plane: sliced Wasserstein distance in the plane of the real rows' first two principal
components. Collapsed: categorical columns with a single value, the most over the seeds."""


def _beside_paper(lines: list[Line]) -> list[str]:
    heads = ["method", "epsilon", "seeds"]
    for title in MEASURES.values():
        heads += [title, "paper"]
    text = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    real = next((line["accuracy_real"]["mean"] for line in lines if "accuracy_real" in line), None)
    if real is not None:
        text.append(f"| real rows |  |  |  |  |  |  | {real:.3f} | {FOREST_REAL / 100:.3f} |")
    for line in lines:
        method, epsilon = line["method"], line["epsilon"]
        told = f"{epsilon:g}"
        if line["paper_epsilon"] != epsilon:
            told += f" (paper {line['paper_epsilon']:.2f})"
        cells = [method, told, str(line["seeds_tables"])]
        for name in MEASURES:
            paper = printed(name, method, epsilon)
            cells.append(_number(line.get(name), 3))
            if paper is None:
                cells.append("")
            else:
                cross = "" if name in line and paper.reached(line[name]["mean"]) else " ✗"
                cells.append(f"{paper.value:.{4 if name == 'accuracy' else 2}f}{cross}")
        text.append("| " + " | ".join(cells) + " |")
    return text


def _figures(lines: list[Line], wanted: dict[str, tuple[str, int]]) -> list[str]:
    heads = ["method", "epsilon", "seeds", *(title for title, _ in wanted.values())]
    text = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    real = []
    for name, (_, digits) in wanted.items():
        means = [line[f"{name}_real"]["mean"] for line in lines if f"{name}_real" in line]
        real.append(f"{means[0]:.{digits}f}" if means else "")
    text.append("| real rows |  |  | " + " | ".join(real) + " |")
    for line in lines:
        seeds = sorted({line[name]["seeds"] for name in wanted if name in line}, reverse=True)
        cells = [line["method"], f"{line['epsilon']:g}", "/".join(map(str, seeds)) or "0"]
        for name, (_, digits) in wanted.items():
            most = name == "collapsed" and name in line
            cells.append(f"{line[name]['most']:.0f}" if most else _number(line.get(name), digits))
        text.append("| " + " | ".join(cells) + " |")
    return text


def _by_column(lines: list[Line], measure: str) -> list[str]:
    names = [*CATEGORICAL, "total"]
    text = ["| method | epsilon | " + " | ".join(names) + " |", "| --- |" + " ---: |" * (len(names) + 1)]
    for line in lines:
        cells = []
        for column in names:
            name = measure if column == "total" else f"{measure}:{column}"
            paper = printed(name, line["method"], line["epsilon"])
            ours = f"{line[name]['mean']:.3f}" if name in line else "-"
            cells.append(ours if paper is None else f"{ours} / {paper.value:.3f}")
        text.append(f"| {line['method']} | {line['epsilon']:g} | " + " | ".join(cells) + " |")
    return text


def _number(entry: dict[str, float] | None, digits: int) -> str:
    if entry is None:
        return "-"
    spread = f" ± {entry['spread']:.{digits}f}" if entry["seeds"] > 1 else ""  # one fit has none
    return f"{entry['mean']:,.{digits}f}{spread}"
