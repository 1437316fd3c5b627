"""From cells to what the page shows: curves, words, tables."""

import statistics
from collections.abc import Callable, Sequence

from understudy.comparison.grid import HEADLINES, QUALITY, Cell, gap_of, measured, shown_epsilon
from understudy.comparison.recommend import Verdict
from understudy.comparison.result import Comparison
from understudy.report import Compared, Cost, Curve, Grid, Point, TradeOff, comparison_report
from understudy.report.words import number, question, title

KEEP_HERE = " Keep this page where the real table is."


def page(found: Comparison) -> str:
    """The whole page as HTML."""
    return comparison_report(contents(found))


def contents(found: Comparison) -> Compared:
    """Everything that the page shows, in words and numbers."""
    setting, cells, advice = found.setting, found.results, found.advice
    names = measured(cells, HEADLINES)
    methods, joined = setting.methods, ",".join(setting.methods)
    banner, *notes = found.notes
    return Compared(
        title=f"Comparison of methods on {setting.table}",
        banner=banner + ("" if setting.simulated else KEEP_HERE),
        simulated=setting.simulated,
        methods=methods,
        advice=advice.advice,
        reasons=advice.reasons,
        notes=tuple(notes),
        verdicts=_verdicts(advice.verdicts),
        overall=_overall(found),
        trade_offs=tuple(_trade_off(found, name) for name in names),
        costs=tuple(_cost(method, cells) for method in methods),
        cost_note=_cost_note(found),
        summary=_summary(found, names),
        cells=_cells(found, names),
        failures=_failures(cells),
        setting=_setting(found),
        choose_command=f"understudy compare TABLE -s SCHEMA --choose private -m {joined} -e 1 -o MODEL.understudy",
        simulate_command=f"understudy compare --on simulated -s SCHEMA -m {joined} -o simulated.html",
    )


def _curves(found: Comparison, value: Callable[[Cell], float | None]) -> tuple[Curve, ...]:
    curves = []
    for method in found.setting.methods:
        points = []
        for epsilon in found.setting.epsilons:
            cells = [cell for cell in found.results if (cell.method, cell.epsilon) == (method, epsilon) and cell.ok]
            values = [number for number in map(value, cells) if number is not None]
            if values:
                spread = statistics.stdev(values) if len(values) > 1 else None
                points.append(Point(epsilon=epsilon, mean=statistics.fmean(values), spread=spread))
        if points:
            curves.append(Curve(method=method, points=tuple(points)))
    return tuple(curves)


def _overall(found: Comparison) -> TradeOff | None:
    counted = measured(found.results, QUALITY)
    if not counted:
        return None
    names = ", ".join(title(name).lower() for name in counted)
    return TradeOff(
        heading="How far short of fresh real rows",
        told=f"Mean over {names}: 0 is as good as fresh real rows, 1 as bad as can be. Lower is better; below 0 is "
        "chance, as fresh rows are mostly fewer than synthetic ones.",
        curves=_curves(found, lambda cell: gap_of(cell, counted)),
        fresh=0.0,
    )


def _trade_off(found: Comparison, name: str) -> TradeOff:
    def value(cell: Cell) -> float | None:
        return cell.figures[name].value if name in cell.figures else None

    known = [cell.figures[name] for cell in found.results if cell.ok and name in cell.figures]
    references = [figure.reference for figure in known if figure.reference is not None]
    better = "Higher" if known[0].direction == "higher" else "Lower"
    return TradeOff(
        heading=title(name),
        told=f"{question(name).capitalize()}. {better} is better; best {known[0].ideal:g}.",
        curves=_curves(found, value),
        fresh=statistics.fmean(references) if references else None,
    )


def _verdicts(verdicts: Sequence[Verdict]) -> Grid:
    rows = []
    for one in verdicts:
        tied = [standing.method for standing in one.tied]
        ahead = "-" if one.after is None else f"by {one.lead:.3f} over {one.after.method}"
        who = one.best.method if len(tied) == 1 else f"tie: {', '.join(tied)}"
        rows.append((shown_epsilon(one.epsilon), who, f"{one.best.gap:.3f}", ahead))
    headings = ("epsilon", "best", "falls short by", "lead")
    return Grid(headings=headings, rows=tuple(rows), numbers=("epsilon", "falls short by"))


def _cost(method: str, cells: Sequence[Cell]) -> Cost:
    done = [cell for cell in cells if cell.method == method and cell.ok]

    def mean(name: str) -> float | None:
        values = [getattr(cell, name) for cell in done if getattr(cell, name) is not None]
        return statistics.fmean(values) if values else None

    return Cost(
        method=method,
        fit_seconds=mean("fit_seconds"),
        processor_seconds=mean("processor_seconds"),
        peak_megabytes=mean("peak_megabytes"),
    )


def _cost_note(found: Comparison) -> str:
    jobs = found.setting.jobs
    side = f"{jobs} fits ran side by side, which lengthens time by the clock. " if jobs > 1 else ""
    return (
        f"Means over all fits of a method, each in a process of its own. {side}Compiling is part of the time; memory "
        "is that of the whole process, libraries included."
    )


def _summary(found: Comparison, names: Sequence[str]) -> Grid:
    table = found.summary()
    titles = tuple(title(name) for name in names)
    rows = []
    for row in table.to_dict("records"):
        figures = [_plus_minus(row[name], row[f"{name}_spread"]) for name in ("gap", *names)]
        rows.append((row["method"], shown_epsilon(row["epsilon"]), f"{row['done']} of {row['of']}", *figures))
    fresh = []
    for name in names:
        known = [cell.figures[name].reference for cell in found.results if cell.ok and name in cell.figures]
        known = [value for value in known if value is not None]
        fresh.append(f"{statistics.fmean(known):.3f}" if known else "-")
    rows.append(("fresh real rows", "", "", "0.000", *fresh))
    headings = ("method", "epsilon", "ended", "falls short by", *titles)
    return Grid(headings=headings, rows=tuple(rows), numbers=headings[1:])


def _plus_minus(mean: float, spread: float) -> str:
    if mean != mean:
        return "-"
    return f"{mean:.3f}" if spread != spread else f"{mean:.3f} ± {spread:.3f}"


def _cells(found: Comparison, names: Sequence[str]) -> Grid:
    counted = measured(found.results, QUALITY)
    rows = []
    for cell in found.results:
        values = [cell.figures[name].value if name in cell.figures else None for name in names]
        figures = ["-" if value is None else f"{value:.3f}" for value in (gap_of(cell, counted), *values)]
        figures += [number(cell.fit_seconds), number(cell.peak_megabytes)]
        rows.append((cell.method, shown_epsilon(cell.epsilon), str(cell.repeat + 1), *figures, cell.status))
    titles = tuple(title(name) for name in names)
    headings = ("method", "epsilon", "repeat", "falls short by", *titles, "seconds", "MB", "ended")
    return Grid(headings=headings, rows=tuple(rows), numbers=headings[1:-1])


def _failures(cells: Sequence[Cell]) -> Grid:
    """What was said, once for all repeats that said the same."""
    told: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if not cell.ok:
            told.setdefault((cell.method, cell.status, cell.message), []).append(cell)
    rows = []
    for (method, status, message), group in told.items():
        epsilons = ", ".join(dict.fromkeys(shown_epsilon(cell.epsilon) for cell in group))
        rows.append((method, epsilons, str(len(group)), status, message))
    headings = ("method", "epsilon", "fits", "how", "what was said")
    return Grid(headings=headings, rows=tuple(rows), numbers=("fits",))


def _setting(found: Comparison) -> Grid:
    s = found.setting
    options = "; ".join(f"{m}: {', '.join(f'{k}={v}' for k, v in o.items())}" for m, o in s.options.items() if o)
    rows = [
        ("table", s.table),
        ("methods", ", ".join(s.methods)),
        ("options", options or "none: every method by its defaults"),
        ("epsilon", ", ".join(map(shown_epsilon, s.epsilons))),
        ("delta", f"{s.delta:g}"),
        ("repeats", str(s.repeats)),
        ("fresh rows", s.holdout),
        ("label", s.label or "none: nothing is predicted"),
        ("metrics", f"the {s.which} set"),
        ("noise", "seeded: repeatable, for research" if s.seeded else "from the operating system, as for a release"),
        ("limit of time", "none" if s.limit is None else f"{s.limit:g} seconds a fit"),
        ("version", s.version),
        ("models", "thrown away: nothing but figures is kept"),
    ]
    return Grid(headings=("what", "how"), rows=tuple(rows))
