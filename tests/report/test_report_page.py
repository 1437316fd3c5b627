"""The page: well-formed, alone, safe against names, and plain about what lies outside the guarantee."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from understudy.evaluation.evaluation import OUTSIDE_THE_GUARANTEE, Evaluation
from understudy.privacy.certificate import Finding
from understudy.report import Dependence, Guarantee, Histogram, public_report, steward_report, words
from understudy.report.sections import MOST_CHARTS

EVIL = "<script>alert(1)</script>"
ALLOWED = set(
    re.findall(
        r"\w+",
        "html head meta title style body main section nav div span p a h1 h2 h3 ol li code strong details summary "
        "table thead tbody tr th td figure figcaption svg text rect path line circle g",
    )
)


class Reader(HTMLParser):
    """Checks that elements close in order, and keeps what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href", "action")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


def read(page: str) -> Reader:
    """Reads a page and holds it to being alone: nothing to run, nothing to fetch."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert reader.seen <= ALLOWED
    assert not any(name.startswith("on") for name in reader.attributes)
    assert all(link.startswith("#") for link in reader.links)
    assert not re.search(r"url\(|@import|https?://|=[\"']//", page)
    return reader


def words_of(page: str) -> str:
    return " ".join(" ".join(read(page).text).split())


def test_a_page_says_it_all(evaluation, histograms, dependence, guarantee) -> None:
    text = words_of(steward_report(evaluation, histograms, dependence, title="Report", guarantee=guarantee))
    assert guarantee.certificate.statement() in text
    assert "counting <columns>" in text
    for result in evaluation.weakest(3):
        assert words.title(result.name) in text
    assert "0.1 (0.03 for fresh real rows)" in text  # a column's distance beside its reference
    assert "missing: 10% real, 5% synthetic" in text
    assert f"{EVIL} and age" in text
    assert "0.800 0.710 0.090" in text  # what a model learns from synthetic rows, and what is lost
    assert "0.003 to 0.005" in text
    assert "there is no such thing" in text
    assert "200 holdout rows" in text


def test_names_are_text(evaluation, histograms, dependence, guarantee) -> None:
    reader = read(steward_report(evaluation, histograms, dependence, title=EVIL, guarantee=guarantee))
    assert "script" not in reader.seen
    assert "a<b" in " ".join(reader.text)
    assert EVIL in reader.text


def test_the_reader_can_fail() -> None:
    for bad in (
        "<p><b></p></b>",
        "<script>1</script>",
        '<a href="https://example.org">x</a>',
        '<p onclick="x">x</p>',
        "<p>",
        "<style>p{background:url(x.png)}</style>",
    ):
        with pytest.raises(AssertionError):
            read(bad)


def test_links_lead_to_sections(evaluation, histograms, dependence, guarantee) -> None:
    page = steward_report(evaluation, histograms, dependence, title="Report", guarantee=guarantee)
    for link in read(page).links:
        assert page.count(f'id="{link[1:]}"') == 1


def test_every_section_from_real_rows_is_marked(evaluation, histograms, dependence, guarantee) -> None:
    page = steward_report(evaluation, histograms, dependence, title="Report", guarantee=guarantee)
    parts = re.split(r"<section ", page)
    assert OUTSIDE_THE_GUARANTEE in parts[0]
    marked = {
        re.search(r'id="(\w+)"', part)[1]: f'class="outside">{OUTSIDE_THE_GUARANTEE}' in part for part in parts[1:]
    }
    assert marked.pop("certificate") is False
    assert len(marked) == 6
    assert all(marked.values())
    assert page.count("each-page") == 3  # style, printed style, and the line at the foot of each printed page


def test_public_page_has_no_real_number(histograms, guarantee) -> None:
    own = [dataclasses.replace(h, real=None, missing_real=0.0) for h in histograms]
    page = public_report(own, title="Report", guarantee=guarantee)
    text = words_of(page)
    assert guarantee.certificate.statement() in text
    assert "counting <columns>" in text
    assert "key real" not in page
    assert 'class="outside"' not in page
    assert "fresh real rows" not in text
    assert "No real row was read" in text
    assert 'fill="var(--real)"' not in page


def test_public_page_refuses_real_shares(histograms, guarantee) -> None:
    with pytest.raises(ValueError, match="public"):
        public_report(histograms, title="Report", guarantee=guarantee)


def test_no_model_no_guarantee(evaluation, histograms, dependence) -> None:
    text = words_of(steward_report(evaluation, histograms, dependence, title="Report"))
    assert "knows of no guarantee" in text
    assert "epsilon" not in text


def test_a_broken_certificate_is_not_praised(evaluation, histograms, dependence, guarantee) -> None:
    broken = Guarantee(
        certificate=guarantee.certificate,
        findings=(*guarantee.findings, Finding(False, "released arrays", "differs")),
        ledger=guarantee.ledger,
    )
    page = steward_report(evaluation, histograms, dependence, title="Report", guarantee=broken)
    first = words_of(page).split("Every column")[0]
    assert "does NOT hold: released arrays" in first
    assert guarantee.certificate.statement() not in first


def test_wide_tables_show_the_worst_in_full(evaluation, guarantee) -> None:
    names = [f"column {at:03}" for at in range(300)]
    distance = dataclasses.replace(
        evaluation["tvd_1way"], per_column={name: at / 300 for at, name in enumerate(names)}, per_column_reference={}
    )
    wide = dataclasses.replace(evaluation, results=(distance, *evaluation.results[1:]))
    shown = [
        Histogram(name=n, kind="boolean", ordered=False, cells=("False", "True"), synthetic=(0.5, 0.5), real=(0.4, 0.6))
        for n in names
    ]
    row = (0.1,) * 40
    some = Dependence(names=tuple(names[-40:]), real=(row,) * 40, synthetic=(row,) * 40, of=300)
    page = steward_report(wide, shown, some, title="Report", guarantee=guarantee)
    charts, rest = page.split("<details>")
    drawn = re.findall(r"<h3>(column \d+)</h3>", charts)
    assert drawn == names[::-1][:MOST_CHARTS]
    assert re.findall(r"<td>(column \d+)</td>", rest.split("</details>")[0]) == names[::-1][MOST_CHARTS:]
    assert "the 40 of 300 columns" in words_of(page)
    assert len(page) < 2_000_000


@pytest.mark.parametrize(
    ("pairs", "fresh", "letter"),
    [
        (0.05, 0.05, "A"),
        (0.14, 0.1, "B"),
        (0.18, 0.1, "C"),
        (0.3, 0.12, "D"),
        (0.9, 0.1, "E"),
        (0.04, None, "at least B"),
    ],
)
def test_grades(evaluation: Evaluation, pairs: float, fresh: float | None, letter: str) -> None:
    two = dataclasses.replace(
        evaluation["tvd_2way"],
        value=pairs,
        reference=fresh,
        reference_undefined=None if fresh is not None else "no holdout",
    )
    found = words.grade(dataclasses.replace(evaluation, results=(two,)))
    assert found.letter == letter
    assert ("fresh real rows" in found.why) == (fresh is not None)


def test_the_grade_is_that_of_the_weakest(evaluation: Evaluation) -> None:
    found = words.grade(evaluation)
    assert found.letter == "C"  # prediction loses 0.0875, the columns 0.01, the pairs 0.02
    assert "predicting the label: 0.713 (fresh real rows 0.8, best 1)" in found.why
    assert words.grade(dataclasses.replace(evaluation, results=())) is None


def test_every_metric_of_the_suite_has_words() -> None:
    from understudy.evaluation.suite import IMAGE_METRICS, REGISTRY

    assert set(words.QUESTIONS) == {*REGISTRY, *IMAGE_METRICS}


def test_the_room_imports_results_and_certificates_only() -> None:
    room = Path(words.__file__).parent
    seen = set()
    for path in room.glob("*.py"):
        seen |= set(re.findall(r"understudy\.(?:evaluation|privacy)[\w.]*", path.read_text(encoding="utf-8")))
    assert seen == {
        "understudy.evaluation.evaluation",
        "understudy.evaluation.result",
        "understudy.privacy.certificate",
    }
