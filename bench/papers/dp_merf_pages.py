"""Cells to lines, lines to the page with the DP-MERF paper's figures beside ours, and what was not reached."""

from __future__ import annotations

import json
import statistics
from typing import Any

from bench.papers.dp_merf_published import IMAGE_MEASURES, MEASURES, NAMES, printed, printed_share

TITLES = {
    "decided_roc": "ROC (decided)",
    "decided_pr": "PRC (decided)",
    "f1_weighted": "F1, weighted",
    "accuracy": "accuracy",
    "f1_macro": "F1",
    "roc_auc": "ROC AUC",
    "pr_auc": "PR AUC",
}
SCORES = ("roc_auc", "pr_auc")  # what the paper does not print
NOT_FIGURES = ("key", "status", "models")
REAL = "real"

Line = dict[str, Any]


def summarise(cells: list[dict[str, Any]]) -> list[Line]:
    """A line for each dataset, method and epsilon, in the order of the cells: mean and spread (standard deviation) of
    every figure, and `kept`, its share of the figure after real rows."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        key = cell["key"]
        groups.setdefault((key["dataset"], key["method"], key["epsilon"]), []).append(cell)
    lines = []
    for (dataset, method, epsilon), group in groups.items():
        done = [cell for cell in group if cell["status"] == "ok"]
        line: Line = {"dataset": dataset, "method": method, "epsilon": epsilon, "seeds": len(done)}
        line["problems"] = sorted({cell["status"] for cell in group if cell["status"] != "ok"})
        for name in sorted({name for cell in done for name in cell} - set(NOT_FIGURES)):
            values = [cell[name] for cell in done if name in cell]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            line[name] = {"mean": statistics.fmean(values), "spread": spread, "seeds": len(values)}
        lines.append(line)
    real = {line["dataset"]: line for line in lines if line["method"] == REAL}
    for line in lines:
        beside = real.get(line["dataset"], {})
        line["kept"] = {
            name: line[name]["mean"] / beside[name]["mean"] for name in TITLES if name in line and name in beside
        }
    return lines


def not_reached(lines: list[Line]) -> list[str]:
    """Every figure, and every share of the figure after real rows, that falls short of the paper's."""
    found = []
    for line in lines:
        where = f"{line['dataset']}, {line['method']} at {line['epsilon']}" if line["epsilon"] else line["dataset"]
        found += [f"{where}: {problem}" for problem in line["problems"]]
        if line["method"] == REAL:
            continue
        place = (line["dataset"], line["method"], line["epsilon"])
        for name in TITLES:
            paper, paper_share = printed(*place, name), printed_share(*place, name)
            if paper is None or name not in line:
                continue
            if line[name]["mean"] < paper:
                found.append(f"{where}: {TITLES[name]} {line[name]['mean']:.3f}, the paper {paper:.3f}")
            share = line["kept"].get(name)
            if share is not None and paper_share is not None and share < paper_share:
                found.append(f"{where}: {TITLES[name]} kept {share:.3f}, the paper {paper_share:.3f}")
    return found


def markdown(lines: list[Line], facts: dict[str, Any]) -> str:
    tables = [line for line in lines if not _of_images(line)]
    pictures = [line for line in lines if _of_images(line)]
    text = [f"# The DP-MERF paper's tables 2 and 3, {facts['date']}", "", _preface(facts), ""]
    text += ["## Table 2: tables", "", *beside_paper(tables, tuple(MEASURES)), ""]
    text += ["## The same classifiers by their scores", "", SCORES_WORDS, "", *beside_paper(tables, SCORES), ""]
    text += ["## Table 3: images", "", *_images_words(facts), "", *beside_paper(pictures, tuple(IMAGE_MEASURES)), ""]
    text += ["## The tables", "", *about_tables(facts["tables"]), ""]
    missed = not_reached(lines) + _unfinished(lines, facts["seeds"])
    text += ["## Not reached", "", *([f"- {one}" for one in missed] or ["Nothing that was measured falls short."]), ""]
    text += ["## Versions", "", f"`{facts['command']}`", ""]
    packages = ", ".join(facts["packages"])
    sources = ", ".join(facts["sources"])
    text += [f"Python {facts['python']}, {facts['cores']} cores; source {sources}; {packages}."]
    return "\n".join(text) + "\n"


def beside_paper(lines: list[Line], measures: tuple[str, ...]) -> list[str]:
    """A row for each line and measure; the rows of one dataset and measure follow those of its real rows."""
    text = [
        "| dataset | figure | trained on | epsilon | fits | ours | paper | kept, ours | kept, paper | processor (s) |",
        "| --- | --- | --- |" + " ---: |" * 7,
    ]
    for dataset in dict.fromkeys(line["dataset"] for line in lines):
        for name in measures:
            for line in lines:
                if line["dataset"] == dataset and name in line:
                    text.append(row(line, name))
    return text if len(text) > 2 else ["Nothing was measured."]


def row(line: Line, name: str) -> str:
    """One measured figure beside the paper's; a paper's figure that ours does not reach is marked with a cross."""
    dataset, method, epsilon = line["dataset"], line["method"], line["epsilon"]
    entry, paper = line[name], printed(dataset, method, epsilon, name)
    ours = f"{entry['mean']:.3f}" + (f" ± {entry['spread']:.3f}" if entry["seeds"] > 1 else "")
    cells = [dataset, TITLES[name], "real rows" if method == REAL else method, epsilon]
    cells += ["" if method == REAL else str(line["seeds"]), ours, _against(paper, entry["mean"], judged=method != REAL)]
    if method == REAL:
        cells += ["", "", ""]
    else:
        share = line["kept"].get(name)
        cells.append("-" if share is None else f"{share:.3f}")
        cells.append(_against(printed_share(dataset, method, epsilon, name), share, judged=True))
        cells.append(f"{line['cpu_seconds']['mean']:.0f}" if "cpu_seconds" in line else "-")
    return "| " + " | ".join(cells) + " |"


def about_tables(tables: list[dict[str, Any]]) -> list[str]:
    text = ["| dataset | train rows | test rows | columns | base rate in the test rows | how it was made |"]
    text.append("| --- |" + " ---: |" * 4 + " --- |")
    for one in tables:
        cells = [one["dataset"], f"{one['train']:,}", f"{one['test']:,}", str(one["columns"])]
        cells += [f"{one['base_rate']:.3f} ({one['searched']})", one["note"]]
        text.append("| " + " | ".join(cells) + " |")
    return text


def as_json(facts: dict[str, Any], lines: list[Line], cells: list[dict[str, Any]]) -> str:
    """Facts, then lines and cells, one a row of the file."""
    parts = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items()]
    for name, many in (("summary", lines), ("cells", cells)):
        inner = ",\n".join(f"  {json.dumps(one)}" for one in many)
        parts.append(f" {json.dumps(name)}: [\n{inner}\n ]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _of_images(line: Line) -> bool:
    return printed(line["dataset"], REAL, "", "accuracy") is not None


def _against(paper: float | None, ours: float | None, *, judged: bool) -> str:
    if paper is None:
        return ""
    return f"{paper:.3f}" + (" ✗" if judged and ours is not None and ours < paper else "")


def _unfinished(lines: list[Line], seeds: int) -> list[str]:
    """What a run that ended early leaves open."""
    made = [line for line in lines if line["method"] != REAL]
    done = sum(line["seeds"] for line in made)
    if done == seeds * len(made):
        return []
    return [f"not all measured: {done} fits of {seeds * len(made)} that these lines stand for"]


def _preface(facts: dict[str, Any]) -> str:
    trained, tested = facts["caps"]["table"]
    compared = ", ".join(f"{ours} beside {theirs}" for ours, theirs in NAMES.items() if ours != REAL)
    return f"""\
Each method at the paper's epsilons, claimed under our accounting, delta {facts["delta"]:g} (`inf`: without privacy);
{compared}. Every figure is the mean over twelve classifiers that are trained on synthetic rows and
tested on real ones, then mean ± standard deviation over the fits (of {facts["seeds"]}), each with noise of its own. At
most {trained:,} rows are trained on and {tested:,} tested on, everywhere alike. `kept` is the figure as a share of the
figure after real rows: where our copy of a table is not the paper's, that is what can be compared. The paper's ROC and
PRC areas are those of decided classes, not of scores (its code scores `predict`), so ours here are as well: chance is
0.5 for ROC, the base rate for PRC. F1 is weighted by class in table 2. A paper's figure that ours does not reach is
marked with a cross."""


SCORES_WORDS = """\
Areas under the curves of the classifiers' scores, which the paper does not have; PR AUC of chance is the base rate."""


def _images_words(facts: dict[str, Any]) -> list[str]:
    trained, tested = facts["caps"]["images"]
    words = [
        f"Classifiers are trained on {trained:,} synthetic (or real) images and tested on all {tested:,} test images; "
        "accuracy, and F1 as the plain mean over the classes. Our Fashion-MNIST is not split as the original files are."
    ]
    for name in facts["pictures"]:
        words += ["", f"Real images, then made ones, largest epsilon first: ![]({name})"]
    return words
