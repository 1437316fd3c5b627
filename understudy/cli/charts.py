"""The demo's pictures: columns side by side, and how they hang together. Colours are safe for colour-blind eyes."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from understudy.demo import ACTIVITY, REGIONS
from understudy.table.written import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Light filled bars against a dark line: they differ in shape and lightness, not only in colour.
REAL_COLOUR, SYNTHETIC_COLOUR = "#BBBBBB", "#0072B2"
DOTS_PER_INCH = 110


def draw_histograms(real: pd.DataFrame, synthetic: pd.DataFrame, path: Path) -> None:
    """Six looks at the demo table: shapes, spikes, rare values, missing cells, and one three-way dependence."""
    figure, axes = _figure(2, 3, size=(13.5, 7.2))
    _numbers(axes[0, 0], real["age"], synthetic["age"], np.arange(17.5, 101, 3), "Age", "years")
    _numbers(axes[0, 1], real["systolic"], synthetic["systolic"], np.arange(84.5, 181), "Blood pressure", "mmHg")
    _amounts(axes[0, 2], real["cost"], synthetic["cost"])
    _bars(axes[1, 0], [_shares(t["region"], REGIONS) for t in (real, synthetic)], list(REGIONS), "Region (log scale)")
    axes[1, 0].set_yscale("log")
    _with_missing(axes[1, 1], real["cholesterol"], synthetic["cholesterol"])
    _bars(
        axes[1, 2], [_rates(table) for table in (real, synthetic)], list(ACTIVITY), "Readmitted diabetics, by activity"
    )
    axes[1, 2].set_ylabel("share readmitted")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper center", ncols=2, frameon=False, fontsize=12)
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    _save(figure, path)


def draw_dependence(real: Mapping[str, np.ndarray], synthetic: Mapping[str, np.ndarray], path: Path) -> None:
    """How strongly each pair of columns hangs together, in both tables, and where they differ.

    Both tables are given as small cell numbers by column, cut at the same edges.
    """
    names = list(real)
    matrices = [dependence(table) for table in (real, synthetic)]
    figure, axes = _figure(1, 3, size=(16, 5.4))
    top = max(matrix.max() for matrix in matrices)
    pictures = [("Real", matrices[0], "viridis", 0.0, top), ("Synthetic", matrices[1], "viridis", 0.0, top)]
    change = matrices[1] - matrices[0]
    most = max(float(np.abs(change).max()), 0.01)
    pictures.append(("Synthetic minus real", change, "PuOr", -most, most))
    for axis, (title, matrix, colours, low, high) in zip(axes[0], pictures, strict=True):
        hidden = np.ma.masked_where(np.eye(len(names), dtype=bool), matrix)
        image = axis.imshow(hidden, cmap=colours, vmin=low, vmax=high)
        axis.set_title(title, fontsize=13)
        axis.set_xticks(range(len(names)), names, rotation=90)
        axis.set_yticks(range(len(names)), names)
        axis.tick_params(length=0)
        bar = figure.colorbar(image, ax=axis, fraction=0.046, pad=0.03)
        bar.set_label("difference in Cramer's V" if colours == "PuOr" else "Cramer's V (0: independent)")
    figure.tight_layout()
    _save(figure, path)


def dependence(table: Mapping[str, np.ndarray]) -> np.ndarray:
    """Cramer's V of every pair of coded columns, corrected for chance (Bergsma 2013); the diagonal is 0.

    >>> dependence({"a": np.array([0, 1] * 50), "b": np.array([0, 1] * 50)}).round(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    names = list(table)
    matrix = np.zeros((len(names), len(names)))
    for (i, first), (j, second) in combinations(enumerate(names), 2):
        matrix[i, j] = matrix[j, i] = _cramers_v(table[first], table[second])
    return matrix


def _cramers_v(first: np.ndarray, second: np.ndarray) -> float:
    shape = int(first.max()) + 1, int(second.max()) + 1
    counts = np.bincount(np.ravel_multi_index((first, second), shape), minlength=shape[0] * shape[1]).reshape(shape)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    n, (rows, columns) = counts.sum(), counts.shape
    if min(rows, columns) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    strength = ((counts - expected) ** 2 / expected).sum() / n - (rows - 1) * (columns - 1) / (n - 1)
    most = min(size - (size - 1) ** 2 / (n - 1) for size in (rows, columns)) - 1
    return float(np.sqrt(max(strength, 0.0) / most))


def _figure(rows: int, columns: int, *, size: tuple[float, float]) -> tuple["Figure", np.ndarray]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Without pyplot: no window system is asked for, and nothing is kept alive.
    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def _numbers(axis: "Axes", real: pd.Series, synthetic: pd.Series, edges: np.ndarray, title: str, unit: str) -> None:
    real_shares, synthetic_shares = (np.histogram(s.dropna(), bins=edges)[0] / len(s) for s in (real, synthetic))
    axis.stairs(real_shares, edges, fill=True, color=REAL_COLOUR, label="real")
    axis.stairs(synthetic_shares, edges, color=SYNTHETIC_COLOUR, linewidth=1.6, label="synthetic")
    _finish(axis, title)
    axis.set_xlabel(unit)


def _amounts(axis: "Axes", real: pd.Series, synthetic: pd.Series) -> None:
    """Zero is most of the column: a bar of its own, beside logarithmic bins."""
    edges = np.geomspace(30, 20_000, 28)
    _numbers(axis, real[real > 0], synthetic[synthetic > 0], edges, "Cost", "euros, of those who paid any")
    axis.set_xscale("log")
    shares = [float((series == 0).mean()) for series in (real, synthetic)]
    axis.text(0.97, 0.93, f"no cost: {shares[0]:.1%} real,\n{shares[1]:.1%} synthetic", **_corner(axis))


def _with_missing(axis: "Axes", real: pd.Series, synthetic: pd.Series) -> None:
    _numbers(axis, real, synthetic, np.arange(1.95, 8.6, 0.2), "Cholesterol", "mmol/l")
    shares = [float(series.isna().mean()) for series in (real, synthetic)]
    axis.text(0.97, 0.93, f"missing: {shares[0]:.1%} real,\n{shares[1]:.1%} synthetic", **_corner(axis))


def _corner(axis: "Axes") -> dict[str, Any]:
    return {"transform": axis.transAxes, "ha": "right", "va": "top", "fontsize": 10}


def _bars(axis: "Axes", heights: list[np.ndarray], names: list[str], title: str) -> None:
    places = np.arange(len(names))
    axis.bar(places - 0.2, heights[0], 0.4, color=REAL_COLOUR, label="real")
    axis.bar(places + 0.2, heights[1], 0.4, color=SYNTHETIC_COLOUR, label="synthetic")
    axis.set_xticks(places, names, fontsize=9)
    _finish(axis, title)


def _finish(axis: "Axes", title: str) -> None:
    axis.set_title(title, fontsize=12)
    axis.set_ylabel("share of rows")
    axis.spines[["top", "right"]].set_visible(False)


def _shares(column: pd.Series, names: Mapping[str, float]) -> np.ndarray:
    return np.array([float((column == name).mean()) for name in names])


def _rates(table: pd.DataFrame) -> np.ndarray:
    diabetics = table[table["diabetic"].astype(bool)]
    return np.array([float(diabetics.loc[diabetics["activity"] == name, "readmitted"].mean()) for name in ACTIVITY])


def _save(figure: "Figure", path: Path) -> None:
    with written_whole(path) as file:
        figure.savefig(file, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
