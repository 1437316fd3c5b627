"""Charts put numbers where they belong."""

import re

import pytest

from understudy.report import Histogram, charts


def numbers(svg: str, element: str, attribute: str) -> list[float]:
    return [float(found) for found in re.findall(rf'<{element}\b[^>]*?\b{attribute}="([\d.]+)"', svg)]


def bars(**more) -> Histogram:
    facts = {"name": "x", "kind": "categorical", "ordered": False, "cells": ("a", "b"), "synthetic": (0.25, 0.75)}
    return Histogram(**(facts | more))


def test_bars_are_as_long_as_shares() -> None:
    real_a, synthetic_a, real_b, synthetic_b = numbers(charts.histogram(bars(real=(0.5, 0.5))), "rect", "width")
    assert real_a == real_b == pytest.approx(2 * synthetic_a, abs=0.05)
    assert synthetic_b == pytest.approx(3 * synthetic_a, abs=0.05)
    assert len(numbers(charts.histogram(bars()), "rect", "width")) == 2


def test_many_categories_become_others() -> None:
    cells = tuple(f"v{at}" for at in range(40))
    shares = tuple(0.9 / 3 if at in (5, 20, 30) else 0.1 / 37 for at in range(40))
    svg = charts.histogram(bars(cells=cells, synthetic=shares))
    assert len(numbers(svg, "rect", "width")) == charts.MOST_BARS
    assert svg.index(">v5<") < svg.index(">v20<") < svg.index(">v30<") < svg.index(">29 others<")


def test_steps_reach_the_top_at_the_largest_share() -> None:
    shown = bars(ordered=True, cells=("0 to 1", "1 to 2"), synthetic=(0.2, 0.8), real=(0.4, 0.6))
    paths = re.findall(r'<path d="([^"]+)"', charts.histogram(shown))
    real, synthetic = ([float(y) for y in re.findall(r"V([\d.]+)", path)] for path in paths)
    assert synthetic == [98.0, 8.0, 128.0]
    assert real == [68.0, 38.0, 128.0]


def test_empty_columns_are_said_to_be_empty() -> None:
    assert "no values" in charts.histogram(bars(cells=(), synthetic=(), real=()))
    flat = bars(ordered=True, cells=("all",), synthetic=(0.0,), real=(0.0,))
    assert "NaN" not in charts.histogram(flat)


def test_heat_map_shades() -> None:
    svg = charts.heat_map(["a", "b"], [[0, -0.2], [0.1, 0]], label="difference", most=0.2, signed=True)
    assert re.findall(r'fill="var\(--(\w+)\)" fill-opacity="([\d.]+)"', svg) == [("real", "1"), ("synthetic", "0.5")]
    assert "a, b: -0.20" in svg
    assert 'fill-opacity="0"' in charts.heat_map(["a", "b"], [[0, 0], [0, 0]], label="none", most=0.0)


def test_scatter_places_scores() -> None:
    svg = charts.score_scatter({"x": (1.0, 0.0), "y": (0.5, 0.5)}, x="real", y="synthetic")
    assert numbers(svg, "circle", "cx") == [372, 207]
    assert numbers(svg, "circle", "cy") == [338, 173]
    assert ">x</text>" in svg


def test_planes_share_a_frame() -> None:
    frame = charts.frame_of([[0, 0], [2, 1]], [[1, 3]])
    assert frame == (0, 2, 0, 3)
    svg = charts.plane([[0, 0], [2, 3]], frame, label="rows", colour=charts.REAL)
    assert 'd="M4.0 316.0h0M416.0 4.0h0"' in svg
    assert "h0" in charts.plane([[1.0]], charts.frame_of([[1.0]]), label="a line", colour=charts.REAL)
