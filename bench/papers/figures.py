"""The paper's pictures with our methods' rows: histograms of every column, dimension-wise prediction, the PCA plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cells import read_made
from bench.papers.adult import adult
from bench.papers.published import COMPARED
from understudy.cli.histograms import histograms
from understudy.evaluation.inputs import open_table
from understudy.evaluation.projection import pca_marginal
from understudy.report import charts
from understudy.report.build import page
from understudy.report.contents import Histogram
from understudy.report.markup import Html, tag

DOTS = 400  # rows of each table in a plane


@dataclass(frozen=True)
class Shown:
    """One method at one epsilon: the rows of its first seed, as pictures."""

    method: str
    epsilon: float
    columns: tuple[Histogram, ...]
    points: dict[str, tuple[float, float]]
    real_plane: Sequence[Sequence[float]]
    plane: Sequence[Sequence[float]]


def shown(cells: list[dict[str, Any]], jobs: Sequence[Any], path_of: Callable[[Any], Path]) -> list[Shown]:
    """Pictures for every cell whose every column was predicted, from its rows on disk."""
    train, _, schema = adult()
    real = open_table(train, schema, role="real")
    places = {(job.method, job.epsilon, job.seed): path_of(job) for job in jobs}
    found = []
    for cell in cells:
        key = cell["key"]
        if "points" not in cell:
            continue
        made = read_made(places[key["method"], key["epsilon"], key["seed"]], schema)
        plane = pca_marginal(train, made, schema, points=DOTS).details
        found.append(
            Shown(
                method=key["method"],
                epsilon=key["epsilon"],
                columns=histograms(open_table(made, schema, role="synthetic"), real),
                points={name: tuple(pair) for name, pair in cell["points"].items()},
                real_plane=plane["real_points"],
                plane=plane["synthetic_points"],
            )
        )
    return found


def html(found: list[Shown], facts: dict[str, Any]) -> str:
    """One standalone page; histograms of the first compared method only, which the paper shows too."""
    first = [tag("p", f"Rows of the first seed; epsilons under our accounting, delta {facts['delta']:g}.")]
    key = tag("p", tag("span", class_="key real"), "real rows", tag("span", class_="key synthetic"), "synthetic rows")
    parts = [
        _section("prediction", "Every column predicted from the others", _scatters(found)),
        _section("planes", "The plane of the real rows' first two principal components", _planes(found)),
    ]
    for one in found:
        if one.method == COMPARED[0]:
            heading = f"Every column, {one.method} at epsilon {one.epsilon:g}"
            drawn = tag("div", [_figure(h.name, charts.histogram(h)) for h in one.columns], class_="columns")
            parts.append(_section(f"columns-{one.epsilon:g}", heading, key, drawn))
    links = ["prediction", "planes", *(f"columns-{one.epsilon:g}" for one in found if one.method == COMPARED[0])]
    title = "The DP-auto-GAN paper's ADULT figures"
    return page(title, first, parts, links, footer=f"{facts['command']}, {facts['date']}")


def _section(name: str, heading: str, *parts: Html) -> Html:
    return tag("section", tag("h2", heading), parts, id=name)


def _scatters(found: list[Shown]) -> Html:
    axes = {"x": "score after real rows", "y": "score after synthetic rows"}
    drawn = [_figure(_name(one), charts.score_scatter(one.points, **axes)) for one in found]
    return tag("div", drawn, class_="three")


def _planes(found: list[Shown]) -> Html:
    if not found:
        return tag("p", "Nothing was measured.")
    real = found[0].real_plane
    frame = charts.frame_of(real, *(one.plane for one in found))
    clouds = [("real rows", real, charts.REAL), *((_name(one), one.plane, charts.SYNTHETIC) for one in found)]
    drawn = [_figure(name, charts.plane(dots, frame, label=name, colour=colour)) for name, dots, colour in clouds]
    return tag("div", drawn, class_="three")


def _figure(name: str, chart: Html) -> Html:
    return tag("figure", tag("h3", name), chart)


def _name(one: Shown) -> str:
    return f"{one.method}, epsilon {one.epsilon:g}"
