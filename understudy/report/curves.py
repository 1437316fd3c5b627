"""Curves and bars that compare methods: each has a dash and a mark of its own, so that nobody needs its colour."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from understudy.report.compared import Cost, Curve, Point, TradeOff
from understudy.report.markup import Html, tag

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 16.0, 12.0, 208.0
LABEL_WIDTH = 76.0
COLOURS = 8
DASHES = (None, "7 3", "2 3", "9 3 2 3")


def trade_off(shown: TradeOff, methods: Sequence[str]) -> Html:
    """A figure against epsilon on a logarithmic axis, whiskers of one standard deviation, fresh real rows as a line."""
    epsilons = sorted({point.epsilon for curve in shown.curves for point in curve.points})
    if not epsilons:
        return tag("p", "No fit came to an end.", class_="soft")
    places = across(epsilons, LEFT + 14.0, WIDTH - RIGHT - 14.0)
    ticks = nice_ticks(*_range(shown))
    low, high = ticks[0], ticks[-1]

    def up(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (value - low) / (high - low)

    parts = [*_axes(ticks, up), *_epsilon_axis(places)]
    if shown.fresh is not None:
        height = up(shown.fresh)
        line = {"x1": LEFT, "x2": WIDTH - RIGHT, "y1": height, "y2": height}
        parts.append(tag("line", **line, stroke="var(--ink)", stroke_width=1.2, stroke_dasharray="1 3"))
    # Marks of different methods at one epsilon stand side by side, or whiskers would hide each other.
    step = min(5.0, 24.0 / max(len(methods), 1))
    for curve in shown.curves:
        at = methods.index(curve.method)
        parts.append(_curve(curve, at, places, up, shift=(at - (len(methods) - 1) / 2) * step))
    if shown.fresh is not None:
        parts.append(_fresh_label(shown, places, up))
    box = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return tag("svg", tag("title", shown.heading), parts, viewBox=box, role="img", aria_label=shown.heading)


def _fresh_label(shown: TradeOff, places: dict[float, float], up: Callable[[float], float]) -> Html:
    """Written above or below its line, wherever along it the curves leave most room."""
    height = up(shown.fresh)
    lines = [
        ([places[point.epsilon] for point in curve.points], [up(point.mean) for point in curve.points])
        for curve in shown.curves
    ]
    best, spot = -math.inf, (LEFT + 4.0, height - 4.0)
    for left in (LEFT + 4.0, (LEFT + WIDTH - RIGHT - LABEL_WIDTH) / 2, WIDTH - RIGHT - LABEL_WIDTH):
        for base in (height - 4.0, height + 13.0):
            if not TOP + 8 <= base <= BOTTOM:
                continue
            corners = [left + LABEL_WIDTH * part / 4 for part in range(5)]
            room = min(abs(_height(line, x) - (base - 4.0)) for line in lines for x in corners)
            if room > best:
                best, spot = room, (left, base)
    return tag("text", "fresh real rows", x=spot[0], y=spot[1], class_="faint over")


def _height(line: tuple[Sequence[float], Sequence[float]], x: float) -> float:
    """A curve's height at a place, level beyond its ends.

    >>> _height(([0.0, 10.0], [0.0, 20.0]), 5.0), _height(([0.0, 10.0], [0.0, 20.0]), 12.0)
    (10.0, 20.0)
    """
    along, heights = line
    for (first, low), (last, high) in pairwise(zip(along, heights, strict=True)):
        if first <= x <= last and last > first:
            return low + (high - low) * (x - first) / (last - first)
    return heights[0] if x < along[0] else heights[-1]


def across(epsilons: Sequence[float], left: float, right: float) -> dict[float, float]:
    """Places of epsilons along a logarithmic axis; infinity stands at the end, past a gap.

    >>> across([1.0, 10.0], 0.0, 100.0)
    {1.0: 0.0, 10.0: 100.0}
    >>> across([2.0], 0.0, 100.0), across([1.0, math.inf], 0.0, 100.0)
    ({2.0: 50.0}, {1.0: 37.5, inf: 100.0})
    """
    finite = [epsilon for epsilon in epsilons if math.isfinite(epsilon)]
    endless = len(finite) < len(epsilons)
    end = right - (right - left) * (0.25 if endless else 0.0)
    logs = [math.log(epsilon) for epsilon in finite]
    span = logs[-1] - logs[0] if len(logs) > 1 else 0.0
    places = {
        epsilon: left + (end - left) * ((log - logs[0]) / span if span else 0.5)
        for epsilon, log in zip(finite, logs, strict=True)
    }
    return places | ({math.inf: right if finite else (left + right) / 2} if endless else {})


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers around a range, three to seven of them.

    >>> nice_ticks(0.0, 0.31)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * at, 10) for at in range(first, last + 1)]


def _range(shown: TradeOff) -> tuple[float, float]:
    values = [shown.fresh] if shown.fresh is not None else []
    for curve in shown.curves:
        for point in curve.points:
            values += [point.mean - (point.spread or 0.0), point.mean + (point.spread or 0.0)]
    low, high = min(values), max(values)
    # Where zero is near it belongs on the axis: a distance twice as long should look it.
    return (0.0 if 0 < low < 0.5 * high else low), high


def _axes(ticks: Sequence[float], up: Callable[[float], float]) -> list[Html]:
    parts = []
    for tick in ticks:
        height = up(tick)
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=height, y2=height, stroke="var(--line)"))
        parts.append(tag("text", f"{tick:g}", x=LEFT - 6, y=height + 4, text_anchor="end", class_="faint"))
    return parts


def _epsilon_axis(places: dict[float, float]) -> list[Html]:
    parts = []
    taken = -math.inf
    for epsilon, place in places.items():
        parts.append(tag("line", x1=place, x2=place, y1=BOTTOM, y2=BOTTOM + 4, stroke="var(--soft)"))
        # Numbers that would run into each other give way.
        if place - taken >= 24:
            text = "inf" if math.isinf(epsilon) else f"{epsilon:g}"
            parts.append(tag("text", text, x=place, y=BOTTOM + 17, text_anchor="middle", class_="faint"))
            taken = place
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(tag("text", "epsilon (less privacy to the right)", x=middle, y=BOTTOM + 34, text_anchor="middle"))
    return parts


def _curve(curve: Curve, at: int, places: dict[float, float], up: Callable[[float], float], *, shift: float) -> Html:
    colour = method_colour(at)
    finite = [point for point in curve.points if math.isfinite(point.epsilon)]
    path = "".join(
        f"{'L' if number else 'M'}{places[point.epsilon] + shift:.1f} {up(point.mean):.1f}"
        for number, point in enumerate(finite)
    )
    line = {"fill": "none", "stroke": colour, "stroke_width": 1.8, "stroke_dasharray": method_dash(at)}
    parts = [tag("path", d=path, **line)] if len(finite) > 1 else []
    for point in curve.points:
        x, y = places[point.epsilon] + shift, up(point.mean)
        if point.spread:
            ends = {"y1": up(point.mean - point.spread), "y2": up(point.mean + point.spread)}
            parts.append(tag("line", x1=x, x2=x, **ends, stroke=colour, stroke_width=1.4))
            for end in ends.values():
                parts.append(tag("line", x1=x - 3, x2=x + 3, y1=end, y2=end, stroke=colour, stroke_width=1.4))
        parts.append(tag("g", tag("title", _told(curve.method, point)), mark(at, x, y)))
    return tag("g", parts)


def _told(method: str, point: Point) -> str:
    epsilon = "inf" if math.isinf(point.epsilon) else f"{point.epsilon:g}"
    spread = "" if point.spread is None else f" ± {point.spread:.2g}"
    return f"{method}, epsilon {epsilon}: {point.mean:.4g}{spread}"


def method_colour(at: int) -> str:
    return f"var(--method-{at % COLOURS})"


def method_dash(at: int) -> str | None:
    return DASHES[(at + at // COLOURS) % len(DASHES)]


def mark(at: int, x: float, y: float, size: float = 4.2) -> Html:
    """The method's own mark: eight shapes, then filled and open change places."""
    s = size
    shapes = (
        f"M{x - s:.1f} {y:.1f}a{s} {s} 0 1 0 {2 * s} 0a{s} {s} 0 1 0 {-2 * s} 0z",
        f"M{x - s:.1f} {y - s:.1f}h{2 * s}v{2 * s}h{-2 * s}z",
        f"M{x:.1f} {y - s * 1.2:.1f}l{s * 1.2} {s * 2.1}h{-s * 2.4}z",
        f"M{x:.1f} {y - s * 1.35:.1f}l{s * 1.35} {s * 1.35}l{-s * 1.35} {s * 1.35}l{-s * 1.35} {-s * 1.35}z",
        f"M{x:.1f} {y + s * 1.2:.1f}l{s * 1.2} {-s * 2.1}h{-s * 2.4}z",
        f"M{x - s:.1f} {y - s:.1f}l{2 * s} {2 * s}m0 {-2 * s}l{-2 * s} {2 * s}",
        f"M{x - s * 1.2:.1f} {y:.1f}h{s * 2.4}m{-s * 1.2} {-s * 1.2}v{s * 2.4}",
        f"M{x - s * 1.3:.1f} {y - s * 0.6:.1f}h{s * 2.6}v{s * 1.2}h{-s * 2.6}z",
    )
    open_mark = (at // COLOURS) % 2 == 1
    fill = "var(--card)" if open_mark else method_colour(at)
    return tag("path", d=shapes[at % len(shapes)], fill=fill, stroke=method_colour(at), stroke_width=1.8)


def legend(methods: Sequence[str]) -> Html:
    """Every method beside its line and mark."""
    keys = []
    for at, method in enumerate(methods):
        dash = {"stroke": method_colour(at), "stroke_width": 1.8, "stroke_dasharray": method_dash(at)}
        drawn = tag("svg", tag("path", d="M0 8H34", **dash), mark(at, 17.0, 8.0), viewBox="0 0 34 16")
        keys.append(tag("span", drawn, method))
    return tag("p", keys, class_="legend")


def cost_bars(costs: Sequence[Cost], field: str, unit: str, heading: str) -> Html:
    """One bar a method."""
    known = [(at, cost.method, getattr(cost, field)) for at, cost in enumerate(costs)]
    most = max((value for _, _, value in known if value is not None), default=0.0) or 1.0
    left, room = 132.0, WIDTH - 132.0 - 74.0
    parts = []
    for row, (at, method, value) in enumerate(known):
        y = 4.0 + 20.0 * row
        parts.append(tag("text", shortened(method), x=left - 6, y=y + 11, text_anchor="end"))
        if value is None:
            parts.append(tag("text", "no fit ended", x=left, y=y + 11, class_="faint"))
            continue
        bar = {"x": left, "y": y + 2, "width": max(room * value / most, 1.0), "height": 11}
        parts.append(tag("rect", tag("title", f"{method}: {value:.4g} {unit}"), **bar, fill=method_colour(at)))
        end = left + max(room * value / most, 1.0) + 5
        parts.append(tag("text", f"{_short_number(value)} {unit}", x=end, y=y + 11, class_="faint"))
    box = f"0 0 {WIDTH:.0f} {8 + 20 * len(known):.0f}"
    return tag("svg", tag("title", heading), parts, viewBox=box, role="img", aria_label=heading)


def shortened(name: str) -> str:
    """
    >>> shortened("mixture"), shortened("a_method_with_a_long_name")
    ('mixture', 'a_method_w…ong_name')
    """
    return name if len(name) <= 19 else f"{name[:10]}…{name[-8:]}"


def _short_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
