"""The page of a comparison of methods: what to take and why, then everything behind it."""

from typing import Any

from understudy.report import curves
from understudy.report.build import page
from understudy.report.compared import Compared, Grid
from understudy.report.markup import Html, join, tag
from understudy.report.sections import table

NOT_COVERED = "Choosing a method by looking at real rows is not covered by the guarantee"


def comparison_report(found: Compared) -> str:
    """One standalone page."""
    told = "inside" if found.simulated else "outside"
    first = [
        tag("p", found.banner, class_=told),
        tag("div", _advice(found), _overall(found), _verdicts(found), class_="first"),
        [tag("p", note, class_="soft") for note in found.notes],
    ]
    parts = [
        _part(found, "curves", "Quality against epsilon", _curves(found)),
        _part(found, "costs", "Time and memory", _costs(found)),
        _part(found, "figures", "All figures", _figures(found)),
    ]
    links = ["curves", "costs", "figures"]
    if found.failures.rows:
        parts.append(_part(found, "failures", "Fits that came to no end", _grid(found.failures)))
        links.append("failures")
    parts += [
        tag("section", tag("h2", NOT_COVERED), _choosing(found), id="choosing"),
        tag("section", tag("h2", "What was compared"), _grid(found.setting), id="setting"),
    ]
    return page(found.title, first, parts, [*links, "choosing", "setting"], footer=found.banner)


def _part(found: Compared, name: str, heading: str, *parts: Any) -> Html:
    told = tag("p", found.banner, class_="inside" if found.simulated else "outside")
    return tag("section", tag("h2", heading), told, parts, id=name)


def _grid(grid: Grid) -> Html:
    return table(grid.headings, grid.rows, numbers=grid.numbers)


def _advice(found: Compared) -> Html:
    return tag(
        "div",
        tag("h3", "Recommendation"),
        tag("p", found.advice, class_="advice"),
        [tag("p", reason) for reason in found.reasons],
        class_="card",
    )


def _overall(found: Compared) -> Html | None:
    if found.overall is None:
        return None
    return tag(
        "div",
        tag("h3", found.overall.heading),
        curves.legend(found.methods),
        curves.trade_off(found.overall, found.methods),
        tag("p", found.overall.told, class_="soft"),
        class_="card",
    )


def _verdicts(found: Compared) -> Html | None:
    if not found.verdicts.rows:
        return None
    return tag("div", tag("h3", "Best at each epsilon"), _grid(found.verdicts), class_="card")


def _curves(found: Compared) -> Html:
    if not found.trade_offs:
        return tag("p", "No fit came to an end with a figure to draw.")
    lead = (
        "Marks are means over repeats, whiskers one standard deviation. The dotted line is what fresh real rows score."
    )
    figures = [
        tag("figure", tag("h3", shown.heading), curves.trade_off(shown, found.methods), tag("figcaption", shown.told))
        for shown in found.trade_offs
    ]
    return join([tag("p", lead, class_="soft"), curves.legend(found.methods), tag("div", figures, class_="three")])


def _costs(found: Compared) -> Html:
    kinds = (
        ("fit_seconds", "s", "Time of a fit by the clock"),
        ("processor_seconds", "s", "Processor time of a fit and its rows"),
        ("peak_megabytes", "MB", "Most memory held"),
    )
    figures = [
        tag("figure", tag("h3", heading), curves.cost_bars(found.costs, field, unit, heading))
        for field, unit, heading in kinds
    ]
    return join([tag("p", found.cost_note, class_="soft"), tag("div", figures, class_="three")])


def _figures(found: Compared) -> Html:
    lead = "Mean ± standard deviation over repeats."
    every = tag("details", tag("summary", f"Every fit by itself ({len(found.cells.rows)})"), _grid(found.cells))
    return join([tag("p", lead, class_="soft"), _grid(found.summary), every])


def _choosing(found: Compared) -> Html:
    """Said in full on the page of real rows; on one of simulated tables, why it does not apply."""
    if found.simulated:
        said = (
            "These tables were made from the schema alone, so choosing by this page uses no private row: nothing has "
            "to be charged. They are like the real table as far as the schema is: what wins here need not win there."
        )
        return join(
            [tag("p", said), tag("p", "To choose by the real rows, under the budget:"), _code(found.choose_command)]
        )
    said = (
        "A certificate counts the uses of the rows that made its model. Looking at this page, made from real rows, and "
        "then fitting the winner is one use more, which nobody counted: which method wins can depend on single rows. "
        "Two ways to choose within a guarantee:"
    )
    return join(
        [
            tag("p", said),
            tag("h3", "1. Charge the choice"),
            tag(
                "p",
                "Every method is fitted on the whole table under one budget, and one is picked by the exponential "
                "mechanism. The certificate of the model lists all candidates and the choice:",
            ),
            _code(found.choose_command),
            tag("h3", "2. Choose on simulated tables"),
            tag(
                "p",
                "The same comparison on tables made from the schema alone: no private row is read, it costs nothing:",
            ),
            _code(found.simulate_command),
        ]
    )


def _code(command: str) -> Html:
    return tag("p", tag("code", command))
