"""The trade-off of quality against time, a row of panels for each dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PANELS = {"tvd2": "TVD2 (lower is better)", "tvd3": "TVD3 (lower is better)", "auc_xgboost": "AUC XGBoost (higher)"}
SECONDS = "cpu_seconds"
MARKS = "osD^vP*X<>hp"


def plot(rows: list[dict[str, Any]], path: Path) -> bool:
    """Draws the means of a summary with their spread; false, and no file, where nothing came to an end."""
    done = [row for row in rows if row["seeds"] and SECONDS in row]
    if not done:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    datasets = list(dict.fromkeys(row["dataset"] for row in done))
    methods = list(dict.fromkeys(row["method"] for row in done))
    figure = Figure(figsize=(4.2 * len(PANELS), 3.1 * len(datasets) + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(datasets), len(PANELS), squeeze=False)
    lines = {}
    for axes, dataset in zip(grid, datasets, strict=True):
        for panel, (figure_name, title) in zip(axes, PANELS.items(), strict=True):
            panel.set(xscale="log", xlabel="processor seconds", title=f"{dataset}: {title}")
            panel.grid(alpha=0.3)
            panel.title.set_fontsize(9)
            for row in done:
                if row["dataset"] != dataset or figure_name not in row:
                    continue
                place = methods.index(row["method"])
                lines[row["method"]] = panel.errorbar(
                    max(row[SECONDS]["mean"], 0.01),
                    row[figure_name]["mean"],
                    yerr=row[figure_name]["spread"],
                    fmt=MARKS[place % len(MARKS)],
                    color=f"C{place % 10}",
                    capsize=2,
                )
            real = [row[f"{figure_name}_real"]["mean"] for row in done
                    if row["dataset"] == dataset and f"{figure_name}_real" in row]  # fmt: skip
            if real:
                lines["real rows"] = panel.axhline(real[0], color="0.4", linestyle=":", linewidth=1)
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=min(len(lines), 6), fontsize=8)
    figure.savefig(path, dpi=110)
    return True
