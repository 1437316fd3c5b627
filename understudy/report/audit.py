"""The part of a page about an audit: what is claimed, what was shown against it, and what was tried."""

import math

from understudy.report import charts
from understudy.report.contents import Audited, AuditedStep, Shown
from understudy.report.markup import Html, join, tag
from understudy.report.sections import table

WIDTH, LEFT, STEP = 560.0, 236.0, 22.0


def audit(found: Audited) -> Html:
    """A sentence, a chart of the claim beside the bounds, and tables of what was tried."""
    # The conclusion stands out, what limits it follows; an audit of something else concludes nothing here.
    head, mark, rest = found.statement.partition("confidence).")
    verdict = tag("p", head + mark, class_="bad" if not found.holds else None if found.note else "good")
    told = (
        "Whoever audits fits neighbouring made-up tables over and over, and guesses from what is released whether one "
        "row was there. How often the guesses are right bounds epsilon from below; the claim bounds it from above. "
        f"All bounds hold together with {found.confidence:.0%} confidence."
    )
    parts = [
        tag("p", found.note, class_="bad") if found.note else None,
        verdict,
        tag("p", rest.strip()) if rest.strip() else None,
        tag("p", told, class_="soft"),
    ]
    caption = tag("figcaption", "Epsilon: the claim, and what was shown of it at least.")
    parts.append(tag("figure", bars(found), caption, class_="single"))
    parts.append(tag("h3", "What was tried on the whole path"))
    parts.append(_tried(found.shown))
    if found.steps:
        parts.append(tag("h3", "What was tried on the mechanisms behind it"))
        parts.append(_steps(found.steps))
    return join(parts)


def bars(found: Audited) -> Html:
    """One bar for the claim, one for the best bound of every attacker; a line where the claim ends."""
    most = max([found.epsilon, *(shown.bound for shown in found.shown)]) or 1.0
    scale = (WIDTH - LEFT - 56.0) / most
    rows = [("claimed", found.epsilon, True), *((shown.who, shown.bound, False) for shown in found.shown)]
    height = 10.0 + STEP * len(rows)
    parts = []
    for at, (name, value, claim) in enumerate(rows):
        y = 6.0 + at * STEP
        look = {"fill": charts.REAL, "fill_opacity": 0.6} if claim else {"fill": charts.SYNTHETIC, "fill_opacity": 0.75}
        bar = tag("rect", x=LEFT, y=y, width=max(value * scale, 0.8), height=12, **look)
        label = tag("text", name, x=LEFT - 8, y=y + 10, text_anchor="end")
        told = f"{value:g}" if claim else _down(value, 2)
        number = tag("text", told, x=LEFT + value * scale + 6, y=y + 10, class_="faint")
        parts.append(tag("g", tag("title", f"{name}: {told}"), bar, label, number))
    x = LEFT + found.epsilon * scale
    parts.append(
        tag("line", x1=x, y1=2, x2=x, y2=height - 2, stroke="var(--ink)", stroke_width=1, stroke_dasharray="3 3")
    )
    return charts.picture(height, "Claimed epsilon and lower bounds", *parts, width=WIDTH)


def _tried(shown: tuple[Shown, ...]) -> Html:
    headings = ("canary", "attacker holds", "score", "runs of each", "counted", "by Gaussian DP")
    rows = [(s.canary, s.view, s.score, f"{s.runs:,}", s.counted, s.gaussian) for s in shown]
    return table(headings, rows, numbers=headings[3:])


def _steps(steps: tuple[AuditedStep, ...]) -> Html:
    headings = ("mechanism", "runs of each", "delta", "claimed", "at least", "of the claim")
    rows = [
        (s.words, f"{s.runs:,}", f"{s.delta:g}", f"{s.epsilon:.3f}", _down(s.bound, 3), _share(s.bound, s.epsilon))
        for s in steps
    ]
    return table(headings, rows, numbers=headings[1:])


def _share(bound: float, claim: float) -> str:
    return f"{_down(100 * bound / claim, 0)}%" if claim > 0 else "-"


def _down(value: float, digits: int) -> str:
    """A lower bound may be told smaller than it is, never larger.

    >>> _down(1.2999, 2), _down(0.0, 3), _down(99.7, 0)
    ('1.29', '0.000', '99')
    """
    unit = 10**digits
    return f"{math.floor(value * unit + 1e-9) / unit:.{digits}f}"
