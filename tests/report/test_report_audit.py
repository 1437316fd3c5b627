"""The part about an audit: claim and bounds, told smaller rather than larger, refuted in plain sight, escaped."""

import re
from dataclasses import replace

import pytest
from test_report_browser import BROWSER, opened

from understudy.report import Audited, AuditedStep, Shown, public_report
from understudy.report.audit import audit, bars

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def audited() -> Audited:
    shown = [
        Shown(
            canary="corner",
            view=view,
            score=EVIL,
            runs=1234,
            bound=bound,
            counted="0.100",
            gaussian=f"{bound:.3f}",
        )
        for view, bound in (("released model", 2.799), ("synthetic rows", 0.0))
    ]
    step = AuditedStep(words="a count", runs=4000, delta=1e-6, epsilon=4.0, bound=3.9)
    return Audited(epsilon=4.0, confidence=0.95, holds=True, statement="It stands.", shown=tuple(shown), steps=(step,))


def test_it_shows_what_was_claimed_tried_and_shown(audited) -> None:
    page = audit(audited)
    assert "It stands." in page
    assert "95%" in page
    assert page.count("<svg") == 1
    assert "1,234" in page
    assert "a count" in page
    assert "<script" not in page


def test_bars_are_as_long_as_they_say_and_bounds_are_rounded_down(audited) -> None:
    chart = bars(audited)
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', chart)]
    assert len(widths) == 3
    assert widths[1] / widths[0] == pytest.approx(2.799 / 4, abs=0.01)
    assert ">2.79<" in chart
    assert "2.8" not in chart.replace("2.799", "")


def test_a_refuted_claim_is_seen(audited) -> None:
    broken = replace(
        audited, holds=False, statement="The claim is refuted.", shown=(replace(audited.shown[0], bound=9.0),)
    )
    page = audit(broken)
    assert 'class="bad"' in page
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', bars(broken))]
    assert widths[1] > 2 * widths[0]


def test_an_audit_of_something_else_says_so(audited) -> None:
    assert "not of this model" in audit(replace(audited, note="not of this model"))


def test_it_has_its_place_on_the_public_page(audited, guarantee) -> None:
    page = public_report([], title="Report", guarantee=guarantee, audited=audited)
    assert 'id="audit"' in page
    assert 'href="#audit"' in page
    assert 'id="audit"' not in public_report([], title="Report", guarantee=guarantee)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on PATH to open the page with")
def test_a_browser_opens_it(audited, guarantee, tmp_path) -> None:
    page = tmp_path / "page.html"
    page.write_text(public_report([], title="Report", guarantee=guarantee, audited=audited), encoding="utf-8")
    dom, console = opened(page.as_uri(), tmp_path / "profile")
    assert console == []
    assert dom.count("<svg") == 1
    assert "<script" not in dom


def test_an_audit_of_something_else_says_so_first_and_praises_nothing(audited) -> None:
    statement = "The claim stands: at least 2.79 (95% confidence). An audit can refute a claim."
    page = audit(replace(audited, statement=statement, note="It is of another method."))
    assert page.index("It is of another method.") < page.index("The claim stands")
    assert 'class="good"' not in page
    assert '<p class="good">The claim stands: at least 2.79 (95% confidence).</p>' in audit(
        replace(audited, statement=statement)
    )


def test_mechanisms_show_how_much_of_their_claim_is_seen_rounded_down(audited) -> None:
    page = audit(replace(audited, steps=(replace(audited.steps[0], bound=3.9999),)))
    assert "3.999" in page
    assert "99%" in page
    assert "100%" not in page
