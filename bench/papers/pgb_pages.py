"""From cells of `bench.papers.pgb` to a page and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# The paper's figures, by task, epsilon, line and measure.
PUBLISHED = {
    ("gaussians25", 1.0, "quality"): {"last": 0.031, "DRS": 0.035, "PGB": 0.044, "PGB+DRS": 0.053},
    ("gaussians25", float("inf"), "quality"): {"last": 0.904, "DRS": 0.826, "PGB": 0.918, "PGB+DRS": 0.874},
    ("titanic", 2.0, "auc_logistic_regression"): {"last": 0.477, "DRS": 0.568, "PGB": 0.621, "PGB+DRS": 0.624},
    ("titanic", 2.0, "auc_random_forest"): {"last": 0.512, "DRS": 0.553, "PGB": 0.558, "PGB+DRS": 0.652},
    ("titanic", 2.0, "auc_xgboost"): {"last": 0.530, "DRS": 0.586, "PGB": 0.619, "PGB+DRS": 0.596},
}
LINES = ("last", "DRS", "PGB critics", "PGB+DRS critics", "PGB auto", "PGB+DRS auto")
TITLES = {
    "quality": "quality",
    "tvd2": "TVD of pairs",
    "auc_logistic_regression": "AUC logistic",
    "auc_random_forest": "AUC forest",
    "auc_xgboost": "AUC XGBoost",
}


def summarise(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and spread over the seeds, one entry a task, epsilon, method and line."""
    found: dict[tuple, list[dict]] = {}
    for cell in cells:
        key = cell["key"]
        for line, figures in cell["lines"].items():
            found.setdefault((key["task"], key["epsilon"], key["method"], line), []).append(figures)
    lines = []
    for (task, epsilon, method, line), figures in found.items():
        entry: dict[str, Any] = {"task": task, "epsilon": epsilon, "method": method, "line": line}
        entry["seeds"] = len(figures)
        for name in TITLES:
            for each in (name, f"{name}_real"):
                values = [one[each] for one in figures if one.get(each) is not None]
                if values:
                    entry[each] = {"mean": float(np.mean(values)), "spread": float(np.std(values))}
        lines.append(entry)
    return lines


def markdown(lines: list[dict[str, Any]], told: dict[str, Any]) -> str:
    text = [f"# The Post-GAN boosting paper's tables, {told['date']}", ""]
    text += [
        "All lines of a method have one total epsilon: `last` is the generator with the whole budget, `DRS` rejects",
        "its rows by its own critic, PGB lines spend a part of the budget on picks (`critics` as in the paper, `auto`:",
        "critics and marginals). Mean ± standard deviation over seeds; the paper's figure in brackets. AUC: trained on",
        "synthetic rows, tested on real test rows.",
        "",
    ]
    for task, epsilon in dict.fromkeys((line["task"], line["epsilon"]) for line in lines):
        mine = [line for line in lines if (line["task"], line["epsilon"]) == (task, epsilon)]
        names = [name for name in TITLES if any(name in line for line in mine)]
        text += [f"## {task}, epsilon {epsilon:g}", ""]
        text += ["| method | line | seeds | " + " | ".join(TITLES[name] for name in names) + " |"]
        text += ["| --- | --- | ---: |" + " ---: |" * len(names)]
        real = [
            _mean(next((line.get(f"{name}_real") for line in mine if f"{name}_real" in line), None)) for name in names
        ]
        text += ["| real rows |  |  | " + " | ".join(real) + " |"]
        for line in mine:
            cells = [_cell(line, name, task, epsilon) for name in names]
            text += [f"| {line['method']} | {line['line']} | {line['seeds']} | " + " | ".join(cells) + " |"]
        text += [""]
    return "\n".join([*text, f"Source {told['source']}, NumPy {told['numpy']}.", ""])


def _cell(line: dict[str, Any], name: str, task: str, epsilon: float) -> str:
    if name not in line:
        return "-"
    paper = PUBLISHED.get((task, epsilon, name), {}).get(line["line"].split()[0])
    spread = f" ± {line[name]['spread']:.3f}" if line["seeds"] > 1 else ""
    return f"{line[name]['mean']:.3f}{spread}" + (f" ({paper:.3f})" if paper is not None else "")


def _mean(entry: dict[str, float] | None) -> str:
    return "" if entry is None else f"{entry['mean']:.3f}"


def picture(real: pd.DataFrame, made: list[Path], path: Path) -> None:
    """Real rows, and the rows of every line, one panel each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    named = {one.stem.split("-", 4)[-1]: one for one in made}
    panels = [("real", real.iloc[:5000]), *((name, pd.read_csv(named[name])) for name in LINES if name in named)]
    figure, axes = pyplot.subplots(1, len(panels), figsize=(2.2 * len(panels), 2.4), sharex=True, sharey=True)
    for axis, (title, rows) in zip(np.ravel(axes), panels, strict=True):
        axis.scatter(rows["Var1"], rows["Var2"], s=0.3, color="#1f4e79", linewidths=0)
        axis.set(title=title, xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xticks=[], yticks=[])
        axis.title.set_fontsize(8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
