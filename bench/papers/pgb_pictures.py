"""Pictures of `bench.papers.pgb`, from what its cells kept of the first seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench.papers.pgb_pages import LINES

INK, FAINT = "#1f4e79", "#7a8ca0"
METHOD_SHOWN = "dp-wgan"  # of the 25 Gaussians


def pictures(folders: list[Path], stem: Path, real: Any = None) -> list[Path]:
    """All pictures that something was kept for, the newest folder's; `real` gives the rows of the 25 Gaussians."""
    kept = {path.name: path for folder in folders for path in sorted(folder.glob("*")) if folder.exists()}
    made = []
    for name, path in kept.items():
        target = stem.with_name(f"{stem.name}-{path.stem}.png")
        if name.startswith(f"gaussians25-{METHOD_SHOWN}") and real is not None:
            scatter(real(), json.loads(path.read_text()), target)
        elif name.startswith("mnist"):
            with np.load(path) as arrays:
                grids(dict(arrays), target)
        else:
            continue
        made.append(target)
    for task in sorted({name.split("-")[0] for name in kept if name.startswith("acs")}):
        found = {path.stem.removeprefix(f"{task}-"): path for name, path in kept.items() if name.startswith(task)}
        target = stem.with_name(f"{stem.name}-{task}.png")
        regressions({name: json.loads(path.read_text()) for name, path in found.items()}, target)
        made.append(target)
    return made


def scatter(real: Any, lines: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Real rows, and the rows of every line, one panel each."""
    panels = [("real rows", real), *((name, lines[name]) for name in LINES if name in lines)]
    figure, axes = _figure(len(panels), (2.2, 2.4))
    for axis, (title, rows) in zip(axes, panels, strict=True):
        axis.scatter(rows["Var1"], rows["Var2"], s=0.3, color=INK, linewidths=0)
        axis.set(xlim=(-5, 5), ylim=(-5, 5), aspect="equal", xticks=[], yticks=[])
        axis.set_title(title, fontsize=8)
    _save(figure, path)


def grids(lines: dict[str, np.ndarray], path: Path) -> None:
    """Images of every line, a column a class."""
    panels = [(name, lines[name]) for name in LINES if name in lines]
    figure, axes = _figure(len(panels), (4.4, 2.1), rows=2)
    for axis, (title, picture) in zip(axes, panels, strict=False):  # an odd number leaves a place empty
        axis.imshow(255 - picture, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axis.set_title(title, fontsize=8)
    for axis in axes:
        axis.set_axis_off()
    _save(figure, path)


def regressions(methods: dict[str, dict[str, dict[str, Any]]], path: Path) -> None:
    """Parallel coordinates: a thin line a regression, its RMSE on real rows after training on each kind of rows."""
    figure, axes = _figure(len(methods), (3.0, 3.0), sharey=True)
    for axis, (title, lines) in zip(axes, methods.items(), strict=True):
        names = [name for name in LINES if lines.get(name, {}).get("rmse")]
        columns = [np.array(lines[names[0]]["rmse"])[:, 0], *(np.array(lines[name]["rmse"])[:, 1] for name in names)]
        places = np.arange(len(columns))
        axis.plot(places, np.stack(columns), color=INK, linewidth=0.4, alpha=0.35)
        axis.plot(places, [np.median(column) for column in columns], color="#c8452d", linewidth=1.6)
        axis.set_xticks(places, ["real rows", *names], rotation=60, ha="right", fontsize=7)
        axis.tick_params(axis="y", labelsize=7)
        axis.grid(axis="x", color=FAINT, linewidth=0.4)
        axis.set_title(title.rsplit("-", 1)[0], fontsize=8)
    axes[0].set_ylabel("RMSE on real test rows (1,000 dollars)", fontsize=7)
    _save(figure, path)


def _figure(panels: int, size: tuple[float, float], rows: int = 1, **options: Any) -> tuple[Any, list[Any]]:
    """Panels of this size side by side, in so many rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = -(-panels // rows)
    figure, axes = pyplot.subplots(rows, columns, figsize=(size[0] * columns, size[1] * rows), **options)
    return figure, list(np.ravel(axes))


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot

    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
