"""The parts of a report, each a pure function from results to markup."""

from collections.abc import Sequence
from typing import Any

from understudy.evaluation.evaluation import OUTSIDE_THE_GUARANTEE, Evaluation
from understudy.evaluation.result import MetricResult
from understudy.privacy.certificate import rounded_up
from understudy.report import charts, words
from understudy.report.contents import Dependence, Guarantee, Histogram
from understudy.report.markup import Html, join, tag

# Beyond these many columns a reader wants the worst in full and the rest in a list.
MOST_CHARTS = 40
INSIDE = "Nothing in this part was computed from real rows beside the budget: it is covered by the guarantee."


def section(name: str, heading: str, *parts: Any, outside: bool) -> Html:
    """A part of the page; what was computed from real rows says so under its heading."""
    told = tag("p", OUTSIDE_THE_GUARANTEE if outside else INSIDE, class_="outside" if outside else "inside")
    return tag("section", tag("h2", heading), told, parts, id=name)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[str] = ()) -> Html:
    """A table that scrolls sideways where the screen is too narrow; `numbers` are the headings of number columns."""
    classes = ["number" if heading in numbers else None for heading in headings]
    head = tag("tr", [tag("th", h, class_=c, scope="col") for h, c in zip(headings, classes, strict=True)])
    body = [tag("tr", [tag("td", x, class_=c) for x, c in zip(row, classes, strict=True)]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def promise(guarantee: Guarantee | None) -> Html:
    """The guarantee in words, for the first screen."""
    heading = tag("h3", "What is guaranteed")
    if guarantee is None:
        said = "No model file was given, so this page knows of no guarantee for the synthetic rows."
        return tag("div", heading, tag("p", said, class_="bad"), class_="card")
    if not guarantee.holds:
        failed = ", ".join(finding.what for finding in guarantee.findings if not finding.ok)
        said = f"The certificate of the model does NOT hold: {failed}. Do not rely on it."
        return tag("div", heading, tag("p", said, class_="bad"), class_="card")
    recomputed = tag("p", "Recomputed from the model file: it holds.", class_="good")
    note = "That the rows were drawn from this model is the word of whoever made this page."
    said = tag("p", guarantee.certificate.statement())
    return tag("div", heading, said, recomputed, tag("p", note, class_="soft"), class_="card")


def quality(evaluation: Evaluation) -> Html:
    """The grade, for the first screen."""
    found = words.grade(evaluation)
    heading = tag("h3", "How good the stand-in is")
    if found is None:
        return tag("div", heading, tag("p", "Not graded: no headline metric is defined."), class_="card")
    scale = "; ".join(f"{letter} up to {most:g}" for most, letter, _ in words.GRADES)
    letter = tag("div", found.letter, class_="grade")
    why = tag("p", found.why, class_="soft")
    return tag(
        "div", heading, letter, tag("p", found.meaning), why, tag("p", f"Scale: {scale}.", class_="soft"), class_="card"
    )


def weakest(evaluation: Evaluation) -> Html:
    """The three weakest points, for the first screen."""
    items = []
    for result in evaluation.weakest(3):
        columns = words.weak_columns(result)
        most = tag("div", f"Most in {columns}.", class_="soft") if columns else None
        told = [f" {words.beside(result)}.", tag("div", f"{words.question(result.name)}.", class_="soft"), most]
        items.append(tag("li", tag("strong", f"{words.title(result.name)}:"), told))
    return tag("div", tag("h3", "Its three weakest points"), tag("ol", items, class_="weakest"), class_="card")


def notes(evaluation: Evaluation) -> Html:
    """What a reader must know before the numbers, without the one that every section repeats."""
    return join(tag("p", note, class_="soft") for note in evaluation.notes if note != OUTSIDE_THE_GUARANTEE)


def columns(histograms: Sequence[Histogram], evaluation: Evaluation | None) -> Html:
    """Every column: the worst ones as charts, the rest of a wide table in a list."""
    distance = evaluation["tvd_1way"] if evaluation is not None else None
    parts = distance.per_column if distance is not None else {}
    ordered = sorted(histograms, key=lambda h: -parts.get(h.name, 0.0))
    shown, rest = ordered[:MOST_CHARTS], ordered[MOST_CHARTS:]
    figures = tag("div", [_figure(h, distance) for h in shown], class_="columns")
    order = "Worst first. " if distance is not None else ""
    percent = "Percentages are those of the synthetic rows."
    told = f"Distance: share of rows that would have to move to make the column's distribution the real one. {percent}"
    key = [tag("span", class_="key synthetic"), "synthetic rows"]
    if distance is not None:
        key = [tag("span", class_="key real"), "real rows", *key]
    lead = [tag("p", key), tag("p", order + (told if distance is not None else ""), class_="soft")]
    return join([*lead, figures, _others(rest, distance) if rest else None])


def _figure(shown: Histogram, distance: MetricResult | None) -> Html:
    said = [shown.kind]
    if distance is not None and shown.name in distance.per_column:
        fresh = distance.per_column_reference.get(shown.name)
        beside = "" if fresh is None else f" ({words.number(fresh)} for fresh real rows)"
        said.append(f"distance {words.number(distance.per_column[shown.name])}{beside}")
    if shown.missing_synthetic or shown.missing_real:
        real = "" if shown.real is None else f"{100 * shown.missing_real:.3g}% real, "
        said.append(f"missing: {real}{100 * shown.missing_synthetic:.3g}% synthetic")
    return tag("figure", tag("h3", shown.name), charts.histogram(shown), tag("figcaption", "; ".join(said)))


def _others(rest: Sequence[Histogram], distance: MetricResult | None) -> Html:
    summary = tag("summary", f"The other {len(rest)} columns")
    if distance is None:
        rows = []
        for h in rest:
            at = max(range(len(h.cells)), key=lambda i: h.synthetic[i], default=None)
            rows.append((h.name, h.kind, "-" if at is None else f"{h.cells[at]} ({100 * h.synthetic[at]:.3g}%)"))
        return tag("details", summary, table(("column", "kind", "most frequent"), rows))
    rows = []
    for h in rest:
        value, fresh = distance.per_column.get(h.name), distance.per_column_reference.get(h.name)
        rows.append((h.name, h.kind, words.number(value), words.number(fresh)))
    headings = ("column", "kind", "distance", "fresh real rows")
    return tag("details", summary, table(headings, rows, numbers=headings[2:]))


def pairs(found: Dependence | None, evaluation: Evaluation) -> Html:
    """Heat maps of dependence, and the pairs that differ most."""
    parts: list[Any] = []
    if found is None:
        parts.append(tag("p", "The table has fewer than two columns."))
    else:
        parts.append(_heat_maps(found))
    worst = evaluation["tvd_2way"].details.get("worst", [])[:10]
    if worst:
        rows = [(" and ".join(item["columns"]), words.number(item["value"])) for item in worst]
        parts.append(tag("h3", "Pairs whose joint distribution differs most"))
        parts.append(table(("columns", "distance"), rows, numbers=("distance",)))
    return join(parts)


def _heat_maps(found: Dependence) -> Html:
    differences = [
        [s - r for r, s in zip(*rows, strict=True)] for rows in zip(found.real, found.synthetic, strict=True)
    ]
    furthest, strongest = _largest(differences), max(_largest(found.real), _largest(found.synthetic))
    told = "Cramer's V corrected for chance: 0 is independent, 1 fully dependent. Numbers are cut into cells for this."
    lead = [tag("p", told, class_="soft")]
    if found.of > len(found.names):
        capped = f"Shown are the {len(found.names)} of {found.of} columns whose own distribution is furthest off."
        lead.append(tag("p", capped, class_="soft"))
    maps = [
        ("Real rows", charts.heat_map(found.names, found.real, label="Dependence, real", most=strongest)),
        (
            "Synthetic rows",
            charts.heat_map(found.names, found.synthetic, label="Dependence, synthetic", most=strongest),
        ),
        (
            "Synthetic minus real",
            charts.heat_map(found.names, differences, label="Difference in dependence", most=furthest, signed=True),
        ),
    ]
    scale = f"Full shade: {strongest:.2f}."
    captions = [scale, scale, f"Blue: weaker in the synthetic rows, orange: stronger. Full colour: {furthest:.2f}."]
    figures = [
        tag("figure", tag("h3", heading), tag("div", chart, class_="scroll"), tag("figcaption", caption))
        for (heading, chart), caption in zip(maps, captions, strict=True)
    ]
    return join([*lead, tag("div", figures, class_="three" if len(found.names) <= 16 else "two")])


def _largest(matrix: Sequence[Sequence[float]]) -> float:
    return max((abs(value) for row in matrix for value in row), default=0.0)


def prediction(evaluation: Evaluation) -> Html:
    """What models learn from either table: the label by every model, and every column from the others."""
    parts: list[Any] = []
    label = evaluation["train_on_synthetic"]
    if label.value is None:
        parts.append(tag("p", f"The label is not predicted: {label.undefined}."))
    else:
        parts.append(_models(label))
    try:
        each = evaluation["dimension_wise_prediction"]
    except KeyError:
        return join([*parts, tag("p", "With --full, every column is predicted from the others too.", class_="soft")])
    parts.append(tag("h3", "Each column predicted from the others"))
    if each.value is None:
        return join([*parts, tag("p", f"Not measured: {each.undefined}.")])
    chart = charts.score_scatter(each.details["points"], x="score after real rows", y="score after synthetic rows")
    said = f"On the diagonal, synthetic rows teach as well as real ones. Mean gap: {words.beside(each)}."
    return join([*parts, tag("figure", chart, tag("figcaption", said), class_="single")])


def _models(label: MetricResult) -> Html:
    scores, measure = label.details["models"], label.details["measure"]
    named = "area under the ROC curve" if measure == "roc_auc" else "R2"
    rows = []
    for model, by in scores.items():
        real, synthetic = (by.get(t, {}).get(measure) for t in ("real", "synthetic"))
        gap = None if real is None or synthetic is None else real - synthetic
        rows.append((model.replace("_", " "), *("-" if x is None else f"{x:.3f}" for x in (real, synthetic, gap))))
    headings = ("model", "after real rows", "after synthetic rows", "lost")
    lead = f"Models predict {label.details['label']} on unseen real rows; {named}. Mean: {words.beside(label)}."
    return join([tag("p", lead), table(headings, rows, numbers=headings[1:])])


def planes(evaluation: Evaluation) -> Html:
    """Both tables in the plane of the real one's first two principal components."""
    found = evaluation["pca_marginal"]
    if found.value is None:
        return tag("p", f"Not measured: {found.undefined}.")
    real, synthetic = found.details["real_points"], found.details["synthetic_points"]
    frame = charts.frame_of(real, synthetic)
    shares = " and ".join(f"{share:.0%}" for share in found.details["explained"])
    told = f"Rows on the first two principal components of the real table: across and up, {shares} of its variance."
    figures = [
        tag("figure", tag("h3", name), charts.plane(points, frame, label=f"{name} in the plane", colour=colour))
        for name, points, colour in (
            ("Real rows", real, charts.REAL),
            ("Synthetic rows", synthetic, charts.SYNTHETIC),
        )
    ]
    said = f"{told} Both charts have the same axes. Distance: {words.beside(found)}."
    return join([tag("p", said), tag("div", figures, class_="two")])


def disclosure(evaluation: Evaluation) -> Html:
    """Rows too close to real ones, and attacks. Not a guarantee."""
    told = "These numbers can show a leak, never that there is none. What is guaranteed is in the certificate."
    chosen = [result for result in evaluation if result.family == "disclosure"]
    return join([tag("p", told), metrics(chosen)])


def metrics(results: Sequence[MetricResult]) -> Html:
    """Results beside their references."""
    rows = []
    for result in results:
        name = [words.title(result.name), tag("div", words.question(result.name), class_="soft")]
        value = words.number(result.value)
        if result.interval is not None:
            low, high = map(words.number, result.interval)
            value = [value, tag("div", f"{low} to {high}", class_="soft")]
        remarks = [text for text in (result.undefined, *result.notes) if text]
        last = [words.weak_columns(result), [tag("div", remark, class_="soft") for remark in remarks]]
        rows.append((name, value, words.number(result.reference), words.number(result.ideal), last))
    headings = ("measure", "value", "fresh real rows", "best", "weakest columns, remarks")
    return table(headings, rows, numbers=headings[1:4])


def certificate(guarantee: Guarantee) -> Html:
    """All that a certificate says, what recomputing it found, and every use of the rows."""
    c = guarantee.certificate
    facts = [
        ("method", c.method),
        ("epsilon", rounded_up(c.epsilon, 6)),
        ("delta", rounded_up(c.delta, 6)),
        ("privacy unit", f"{c.unit}, {c.neighbours}"),
        ("noise", c.rng),
        ("made", c.created),
        ("versions", ", ".join(f"{name} {version}" for name, version in c.versions.items())),
        ("digest of the schema", tag("code", c.schema_digest)),
        ("digest of the released arrays", tag("code", c.arrays_digest)),
    ]
    return join(
        [
            tag("p", c.statement()),
            table(("certificate", ""), facts),
            tag("h3", "Recomputed"),
            table(("checked", "", "found"), [(f.what, _mark(f.ok), f.detail) for f in guarantee.findings]),
            tag("h3", "Ledger: every use of the rows"),
            table(("use", "event"), guarantee.ledger),
            tag("p", "Anyone with the model file can do this again: understudy verify MODEL.", class_="soft"),
        ]
    )


def _mark(ok: bool) -> Html:
    return tag("span", "ok" if ok else "NO", class_="good" if ok else "bad")
