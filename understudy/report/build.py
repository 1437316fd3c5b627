"""The whole page: for the steward, with everything; or for the public, without a number from the real rows."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from understudy.evaluation.evaluation import OUTSIDE_THE_GUARANTEE, Evaluation
from understudy.report import images, sections
from understudy.report.audit import audit
from understudy.report.contents import Audited, Dependence, Guarantee, Histogram, Pictures
from understudy.report.markup import Html, join, tag
from understudy.report.sections import section

# The page runs nothing and fetches nothing, and the browser holds it to that.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
WITH_IMAGES = f"{POLICY}; img-src data:"  # images stand in the page itself
PUBLIC = "For anyone: made from the synthetic rows and the certificate alone. No real row was read for this page."


def steward_report(
    evaluation: Evaluation,
    histograms: Sequence[Histogram],
    dependence: Dependence | None,
    *,
    title: str,
    guarantee: Guarantee | None = None,
    pictures: Pictures | None = None,
    audited: Audited | None = None,
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
    every = ("columns", "Every column", sections.columns, (histograms, evaluation))
    if pictures is not None:
        plan = [
            ("images", "Images", images.steward, (pictures, evaluation)),
            ("prediction", "Prediction", images.prediction, (evaluation,)),
            *([every] if histograms else []),
        ]
    else:
        plan = [
            every,
            ("pairs", "Pairs of columns", sections.pairs, (dependence, evaluation)),
            ("prediction", "Prediction", sections.prediction, (evaluation,)),
            ("planes", "The tables from afar", sections.planes, (evaluation,)),
            ("disclosure", "Disclosure", sections.disclosure, (evaluation,)),
        ]
    plan.append(("measures", "All measures", sections.metrics, (evaluation.results,)))
    parts = [section(link, heading, draw(*given), outside=True) for link, heading, draw, given in plan]
    links = [link for link, *_ in plan]
    if guarantee is not None:
        parts.append(_certified(guarantee))
        links.append("certificate")
    if audited is not None:
        parts.append(_audited(audited))
        links.append("audit")
    return page(title, first, parts, links, footer=OUTSIDE_THE_GUARANTEE, with_images=pictures is not None)


def public_report(
    histograms: Sequence[Histogram],
    *,
    title: str,
    guarantee: Guarantee,
    pictures: Pictures | None = None,
    audited: Audited | None = None,
) -> str:
    """Guarantee, certificate, ledger and the synthetic columns. It takes nothing that was computed from real rows."""
    if any(shown.real is not None or shown.missing_real for shown in histograms):
        raise ValueError("a public report must not be given shares of real rows")
    if pictures is not None and pictures.means:
        raise ValueError("a public report must not be given mean images")
    first = [
        tag("p", PUBLIC, class_="inside"),
        tag("div", sections.promise(guarantee), class_="first"),
    ]
    parts, links = [], []
    if pictures is not None:
        parts.append(section("images", "Synthetic images", images.samples(pictures), outside=False))
        links.append("images")
    if histograms:
        shown = sections.columns(histograms, None)
        parts.append(section("columns", "Every column of the synthetic rows", shown, outside=False))
        links.append("columns")
    parts.append(_certified(guarantee))
    links.append("certificate")
    if audited is not None:
        parts.append(_audited(audited))
        links.append("audit")
    return page(title, first, parts, links, footer=PUBLIC, with_images=pictures is not None)


def _certified(guarantee: Guarantee) -> Html:
    return section("certificate", "Certificate and ledger", sections.certificate(guarantee), outside=False)


def _audited(audited: Audited) -> Html:
    return section("audit", "Audit: the claim, put to the test", audit(audited), outside=False)


def page(
    title: str,
    first: Sequence[Any],
    parts: Sequence[Html],
    links: Sequence[str],
    *,
    footer: str,
    with_images: bool = False,
) -> str:
    """The frame that all pages share: policy, style, heading, menu, footer."""
    # The style sheet is ours and holds no name of a column: the one text besides `tag` that is taken as it is.
    style = Html(f"<style>{resources.files('understudy.report').joinpath('style.css').read_text('utf-8')}</style>")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=WITH_IMAGES if with_images else POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        style,
    )
    menu = tag("nav", [tag("a", link, href=f"#{link}") for link in links])
    body = tag("main", tag("h1", title), first, menu, parts, tag("p", footer, class_="each-page soft"))
    return f"<!doctype html>\n{tag('html', join([head, tag('body', body)]), lang='en')}\n"
