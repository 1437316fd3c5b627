"""The whole page: for the steward, with everything; or for the public, without a number from the real rows."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from understudy.evaluation.evaluation import OUTSIDE_THE_GUARANTEE, Evaluation
from understudy.report import sections
from understudy.report.contents import Dependence, Guarantee, Histogram
from understudy.report.markup import Html, join, tag
from understudy.report.sections import section

# The page runs nothing and fetches nothing, and the browser holds it to that.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
PUBLIC = "For anyone: made from the synthetic rows and the certificate alone. No real row was read for this page."


def steward_report(
    evaluation: Evaluation,
    histograms: Sequence[Histogram],
    dependence: Dependence | None,
    *,
    title: str,
    guarantee: Guarantee | None = None,
) -> str:
    """Everything, most of it computed from real rows: for the steward alone, and the page says so everywhere."""
    first = [
        tag("p", OUTSIDE_THE_GUARANTEE + " Keep this page where the real table is.", class_="outside"),
        tag(
            "div",
            sections.promise(guarantee),
            sections.quality(evaluation),
            sections.weakest(evaluation),
            class_="first",
        ),
        tag("p", "; ".join(f"{count:,} {role} rows" for role, count in evaluation.rows.items()), class_="soft"),
        sections.notes(evaluation),
    ]
    parts = [
        section("columns", "Every column", sections.columns(histograms, evaluation), outside=True),
        section("pairs", "Pairs of columns", sections.pairs(dependence, evaluation), outside=True),
        section("prediction", "Prediction", sections.prediction(evaluation), outside=True),
        section("planes", "The tables from afar", sections.planes(evaluation), outside=True),
        section("disclosure", "Disclosure", sections.disclosure(evaluation), outside=True),
        section("measures", "All measures", sections.metrics(evaluation.results), outside=True),
    ]
    links = ["columns", "pairs", "prediction", "planes", "disclosure", "measures"]
    if guarantee is not None:
        parts.append(_certified(guarantee))
        links.append("certificate")
    return page(title, first, parts, links, footer=OUTSIDE_THE_GUARANTEE)


def public_report(histograms: Sequence[Histogram], *, title: str, guarantee: Guarantee) -> str:
    """Guarantee, certificate, ledger and the synthetic columns. It takes nothing that was computed from real rows."""
    if any(shown.real is not None or shown.missing_real for shown in histograms):
        raise ValueError("a public report must not be given shares of real rows")
    first = [
        tag("p", PUBLIC, class_="inside"),
        tag("div", sections.promise(guarantee), class_="first"),
    ]
    parts = [
        section("columns", "Every column of the synthetic rows", sections.columns(histograms, None), outside=False),
        _certified(guarantee),
    ]
    return page(title, first, parts, ["columns", "certificate"], footer=PUBLIC)


def _certified(guarantee: Guarantee) -> Html:
    return section("certificate", "Certificate and ledger", sections.certificate(guarantee), outside=False)


def page(title: str, first: Sequence[Any], parts: Sequence[Html], links: Sequence[str], *, footer: str) -> str:
    """The frame that all pages share: policy, style, heading, menu, footer."""
    # The style sheet is ours and holds no name of a column: the one text besides `tag` that is taken as it is.
    style = Html(f"<style>{resources.files('understudy.report').joinpath('style.css').read_text('utf-8')}</style>")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        style,
    )
    menu = tag("nav", [tag("a", link, href=f"#{link}") for link in links])
    body = tag("main", tag("h1", title), first, menu, parts, tag("p", footer, class_="each-page soft"))
    return f"<!doctype html>\n{tag('html', join([head, tag('body', body)]), lang='en')}\n"
