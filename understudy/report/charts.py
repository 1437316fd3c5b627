"""Charts as inline SVG: pure functions from numbers to markup, in colours that follow the page's theme.

Real is a filled shape and synthetic an outline, so that the two differ without colour too.
"""

from collections.abc import Mapping, Sequence

from understudy.report.contents import Histogram
from understudy.report.markup import Html, tag

REAL, SYNTHETIC = "var(--real)", "var(--synthetic)"
WIDTH = 340.0
MOST_BARS = 12
LONGEST_NAME = 16
MOST_LABELS = 6


def histogram(shown: Histogram) -> Html:
    """One column in both tables, or in the synthetic one alone."""
    if not shown.cells:
        return picture(30.0, f"{shown.name}: no values", tag("text", "no values", x=4, y=18, class_="faint"))
    return _steps(shown) if shown.ordered else _bars(shown)


def _steps(shown: Histogram) -> Html:
    left, top, bottom, height = 46.0, 8.0, 128.0, 148.0
    most = max(max(shown.synthetic), max(shown.real or (0.0,))) or 1.0
    wide = (WIDTH - left - 8.0) / len(shown.cells)

    def outline(shares: Sequence[float]) -> str:
        x, path = left, f"M{left:.1f} {bottom:.1f}"
        for share in shares:
            path += f"V{bottom - (bottom - top) * share / most:.1f}H{(x := x + wide):.1f}"
        return f"{path}V{bottom:.1f}"

    parts = [_line(left, bottom, WIDTH - 8.0, bottom), *_shares_axis(most, left, top, bottom)]
    if shown.real is not None:
        parts.append(tag("path", d=outline(shown.real), fill=REAL, fill_opacity=0.55))
    alone = {"fill": SYNTHETIC, "fill_opacity": 0.3} if shown.real is None else {"fill": "none"}
    parts.append(tag("path", d=outline(shown.synthetic), **alone, stroke=SYNTHETIC, stroke_width=1.8))
    for at, cell in enumerate(shown.cells):
        told = f"{cell}: {_both(shown, at)}"
        hover = {"x": left + at * wide, "y": top, "width": wide, "height": bottom - top, "fill": "transparent"}
        parts.append(tag("rect", tag("title", told), **hover))
    last = len(shown.cells) - 1
    for at, anchor in ((0, "start"), (last // 2, "middle"), (last, "end")) if last > 1 else ((0, "start"),):
        place = {"start": left, "middle": left + (at + 0.5) * wide, "end": WIDTH - 8.0}[anchor]
        text = _short(shown.cells[at].split(" to ")[0])
        parts.append(tag("text", text, x=place, y=bottom + 14, text_anchor=anchor, class_="faint"))
    return picture(height, f"Distribution of {shown.name}", *parts)


def _shares_axis(most: float, left: float, top: float, bottom: float) -> list[Html]:
    return [
        tag("text", _percent(share), x=left - 4, y=y + 4, text_anchor="end", class_="faint")
        for share, y in ((most, top), (0.0, bottom))
    ]


def _bars(shown: Histogram) -> Html:
    left, right = 124.0, 46.0
    rows = _largest(shown)
    most = max(max(synthetic, real or 0.0) for _, real, synthetic in rows) or 1.0
    scale = (WIDTH - left - right) / most
    both = shown.real is not None
    step = 21.0 if both else 16.0
    parts = []
    for at, (cell, real, synthetic) in enumerate(rows):
        y = 4.0 + at * step
        told = (
            f"{cell}: " + (f"{_percent(real)} real, " if real is not None else "") + f"{_percent(synthetic)} synthetic"
        )
        bars = []
        if real is not None:
            bars.append(tag("rect", x=left, y=y, width=real * scale, height=7, fill=REAL, fill_opacity=0.7))
        below = y + 8 if both else y + 1
        outline = {"fill": "none" if both else SYNTHETIC, "fill_opacity": 0.5, "stroke": SYNTHETIC, "stroke_width": 1.5}
        bars.append(tag("rect", x=left, y=below, width=max(synthetic * scale, 0.5), height=6, **outline))
        end = left + max(synthetic, real or 0.0) * scale + 5
        bars.append(tag("text", _percent(synthetic), x=end, y=y + (13 if both else 8), class_="faint"))
        bars.append(tag("text", _short(cell), x=left - 6, y=y + (11 if both else 8), text_anchor="end"))
        parts.append(tag("g", tag("title", told), bars))
    return picture(8.0 + len(rows) * step, f"Shares of {shown.name}", *parts)


def _largest(shown: Histogram) -> list[tuple[str, float | None, float]]:
    """The cells with the largest shares, in the declared order, and one row for all the others."""
    reals = shown.real if shown.real is not None else (None,) * len(shown.cells)
    rows = list(zip(shown.cells, reals, shown.synthetic, strict=True))
    if len(rows) <= MOST_BARS:
        return rows
    by_size = sorted(range(len(rows)), key=lambda at: -max(rows[at][1] or 0.0, rows[at][2]))
    kept = set(by_size[: MOST_BARS - 1])
    rest = [row for at, row in enumerate(rows) if at not in kept]
    real = None if shown.real is None else sum(row[1] or 0.0 for row in rest)
    other = (f"{len(rest)} others", real, sum(row[2] for row in rest))
    return [*(row for at, row in enumerate(rows) if at in kept), other]


def heat_map(
    names: Sequence[str], matrix: Sequence[Sequence[float]], *, label: str, most: float, signed: bool = False
) -> Html:
    """A square of shades, full at `most`; signed ones are blue below 0 and orange above."""
    cell = 16.0 if len(names) > 16 else 22.0
    left = 124.0
    size = left + cell * len(names)
    parts = []
    for i, (name, row) in enumerate(zip(names, matrix, strict=True)):
        middle = (i + 0.5) * cell + 4
        parts.append(tag("text", _short(name), x=left - 6, y=middle, text_anchor="end"))
        turned = f"translate({left + middle:.1f} {cell * len(names) + 8:.1f}) rotate(-90)"
        parts.append(tag("text", _short(name), transform=turned, text_anchor="end"))
        for j, value in enumerate(row):
            if i == j:
                continue
            fill = (REAL if value < 0 else SYNTHETIC) if signed else "var(--ink)"
            shade = round(min(abs(value) / (most or 1.0), 1.0), 2)
            told = tag("title", f"{name}, {names[j]}: {value:{'+' if signed else ''}.2f}")
            place = {"x": left + j * cell, "y": i * cell, "width": cell - 1, "height": cell - 1}
            parts.append(tag("rect", told, **place, fill=fill, fill_opacity=shade))
    frame = {"x": left - 0.5, "y": 0.5, "width": cell * len(names), "height": cell * len(names)}
    parts.append(tag("rect", **frame, fill="none", stroke="var(--line)"))
    large = "large" if len(names) > 16 else None
    return picture(cell * len(names) + 130.0, label, *parts, width=size + 4, class_=large)


def score_scatter(points: Mapping[str, tuple[float, float]], *, x: str, y: str) -> Html:
    """One dot a column on axes from 0 to 1; on the diagonal both tables teach equally well. The worst are named."""
    left, top, side = 42.0, 8.0, 330.0
    bottom = top + side
    gaps = sorted(points, key=lambda name: (-abs(points[name][0] - points[name][1]), name))
    parts = [_line(left, bottom, left + side, top), *_unit_axes(left, top, side)]
    for name, (first, second) in points.items():
        place = {"cx": left + side * first, "cy": bottom - side * second, "r": 4}
        told = tag("title", f"{name}: {first:.3f} real, {second:.3f} synthetic")
        parts.append(tag("circle", told, **place, fill=SYNTHETIC, fill_opacity=0.75))
    taken: list[tuple[float, float]] = []
    for name in gaps[:MOST_LABELS]:
        first, second = points[name]
        right = first > 0.6
        place, height = left + side * first + (-8 if right else 8), bottom - side * second + 4
        # Names that would lie on top of each other give way downwards.
        while any(abs(height - up) < 12 and abs(place - across) < 100 for across, up in taken):
            height += 12
        taken.append((place, height))
        parts.append(tag("text", _short(name), x=place, y=height, text_anchor="end" if right else "start"))
    parts.append(tag("text", x, x=left + side / 2, y=bottom + 32, text_anchor="middle"))
    turned = f"translate(12 {top + side / 2:.1f}) rotate(-90)"
    parts.append(tag("text", y, transform=turned, text_anchor="middle"))
    return picture(bottom + 40, "Scores of models that learnt from either table", *parts, width=left + side + 16)


def _unit_axes(left: float, top: float, side: float) -> list[Html]:
    bottom = top + side
    parts = [tag("rect", x=left, y=top, width=side, height=side, fill="none", stroke="var(--line)")]
    for share in (0.0, 0.5, 1.0):
        along, up = left + side * share, bottom - side * share + 4
        parts.append(tag("text", f"{share:g}", x=along, y=bottom + 15, text_anchor="middle", class_="faint"))
        parts.append(tag("text", f"{share:g}", x=left - 5, y=up, text_anchor="end", class_="faint"))
    return parts


def plane(
    points: Sequence[Sequence[float]], frame: tuple[float, float, float, float], *, label: str, colour: str
) -> Html:
    """Rows as dots in a plane; `frame` is (x low, x high, y low, y high), shared by charts that are compared."""
    low_x, high_x, low_y, high_y = frame
    width, height = 420.0, 320.0
    path = "".join(
        f"M{4 + (width - 8) * (p[0] - low_x) / (high_x - low_x):.1f} "
        f"{height - 4 - (height - 8) * ((p[1] if len(p) > 1 else 0.0) - low_y) / (high_y - low_y):.1f}h0"
        for p in points
    )
    dots = {"stroke": colour, "stroke_width": 4, "stroke_linecap": "round", "stroke_opacity": 0.45, "fill": "none"}
    border = tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, fill="none", stroke="var(--line)")
    return picture(height, label, border, tag("path", d=path, **dots), width=width)


def frame_of(*clouds: Sequence[Sequence[float]]) -> tuple[float, float, float, float]:
    """The smallest frame around all points, never without extent.

    >>> frame_of([[0.0, 1.0], [2.0, 1.0]])
    (0.0, 2.0, 0.5, 1.5)
    """
    ends: list[float] = []
    for axis in (0, 1):
        values = [p[axis] if len(p) > axis else 0.0 for cloud in clouds for p in cloud] or [0.0]
        low, high = min(values), max(values)
        ends += [low, high] if high > low else [low - 0.5, high + 0.5]
    return ends[0], ends[1], ends[2], ends[3]


def picture(height: float, label: str, *parts: Html, width: float = WIDTH, class_: str | None = None) -> Html:
    box = f"0 0 {width:.0f} {height:.0f}"
    return tag("svg", tag("title", label), parts, viewBox=box, role="img", aria_label=label, class_=class_)


def _line(x1: float, y1: float, x2: float, y2: float) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke="var(--line)")


def _both(shown: Histogram, at: int) -> str:
    real = "" if shown.real is None else f"{_percent(shown.real[at])} real, "
    return f"{real}{_percent(shown.synthetic[at])} synthetic"


def _percent(share: float) -> str:
    """
    >>> _percent(0.123), _percent(0.0005), _percent(0.0), _percent(1.0)
    ('12.3%', '<0.1%', '0%', '100%')
    """
    return "<0.1%" if 0 < share < 0.001 else f"{100 * share:.3g}%"


def _short(name: str) -> str:
    """Long names lose their middle: those of one table often differ at the end alone.

    >>> _short("age"), _short("number_of_nights_2021")
    ('age', 'number_o…ts_2021')
    """
    return name if len(name) <= LONGEST_NAME else f"{name[:8]}…{name[-7:]}"
