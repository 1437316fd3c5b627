"""Contents of a comparison's page, made by hand, with a method whose name is an attack."""

import math

from understudy.report import Compared, Cost, Curve, Grid, Point, TradeOff

EVIL = "<script>alert(1)</script>"


def curve(method: str, *means: float) -> Curve:
    epsilons = (0.5, 1.0, math.inf)
    spreads = (0.01, None, 0.02)
    points = zip(epsilons, means, spreads, strict=False)
    return Curve(method=method, points=tuple(Point(epsilon=e, mean=m, spread=s) for e, m, s in points))


def grid(**more) -> Compared:
    shown = TradeOff(heading="Pairs", told="how far", curves=(curve("a", 0.3, 0.2, 0.1), curve(EVIL, 0.4)), fresh=0.08)
    costs = (
        Cost(method="a", fit_seconds=2.0, processor_seconds=3.0, peak_megabytes=400.0),
        Cost(method=EVIL, fit_seconds=None, processor_seconds=None, peak_megabytes=None),
    )
    table = Grid(headings=("method", "figure"), rows=(("a", "0.1 ± 0.01"), (EVIL, "-")), numbers=("figure",))
    given = {
        "title": f"Comparison {EVIL}",
        "banner": "From real rows.",
        "simulated": False,
        "methods": ("a", EVIL),
        "advice": "Take a at epsilon 1.",
        "reasons": ("It leads.",),
        "notes": ("No label.",),
        "verdicts": table,
        "overall": shown,
        "trade_offs": (shown,),
        "costs": costs,
        "cost_note": "Means.",
        "summary": table,
        "cells": table,
        "failures": Grid(headings=("method", "what was said"), rows=((EVIL, f"refused: {EVIL}"),)),
        "setting": Grid(headings=("what", "how"), rows=(("delta", "1e-06"),)),
        "choose_command": "understudy compare --choose private",
        "simulate_command": "understudy compare --on simulated",
    }
    return Compared(**(given | more))
