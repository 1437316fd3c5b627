"""The page of a comparison: escaped, complete, honest about what it is made from; charts inside their frames."""

import math
import re

import pytest
from compared_helpers import EVIL, curve, grid

from understudy.report import Grid, TradeOff, comparison_report
from understudy.report.curves import (
    HEIGHT,
    LEFT,
    WIDTH,
    across,
    mark,
    method_colour,
    method_dash,
    nice_ticks,
    trade_off,
)


def test_the_first_screen_has_the_advice_before_all_else() -> None:
    page = comparison_report(grid())
    places = [page.index(text) for text in ("From real rows.", "Take a at epsilon 1.", "It leads.", "Quality against")]
    assert places == sorted(places)


def test_names_are_text_everywhere() -> None:
    page = comparison_report(grid())
    assert "<script" not in page
    assert page.count("&lt;script&gt;") > 5


def test_every_part_says_where_it_comes_from() -> None:
    page = comparison_report(grid())
    for name in ("curves", "costs", "figures", "failures"):
        part = page[page.index(f'id="{name}"') :]
        assert 'class="outside">From real rows.' in part[:400], name
    assert "not covered by the guarantee" in page
    assert "Charge the choice" in page
    assert "Choose on simulated tables" in page


def test_a_page_of_simulated_tables_says_why_nothing_is_charged() -> None:
    page = comparison_report(grid(simulated=True, banner="From the schema alone."))
    assert 'class="outside"' not in page
    assert "uses no private row" in page
    assert "Charge the choice" not in page


def test_no_failures_no_section_and_nothing_to_draw_is_said() -> None:
    page = comparison_report(grid(failures=Grid(headings=("a",), rows=())))
    assert 'id="failures"' not in page
    empty = comparison_report(grid(overall=None, trade_offs=(), verdicts=Grid(headings=("a",), rows=())))
    assert "No fit came to an end" in empty


@pytest.mark.parametrize(
    "means", [(0.3, 0.2, 0.1), (0.1, 0.1, 0.1), (-0.5, 0.0, 2.0), (0.0, 1e-7, 0.0), (5000.0, 10.0, 1.0)]
)
def test_marks_and_whiskers_lie_inside_the_chart(means) -> None:
    shown = TradeOff(heading="h", told="t", curves=(curve("a", *means), curve("b", *means)), fresh=means[0])
    drawn = trade_off(shown, ("a", "b"))
    assert "nan" not in drawn
    for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)", drawn):
        assert 0 < float(x) < WIDTH
        assert -2 < float(y) < HEIGHT - 20
    for y in re.findall(r'y[12]="(-?[\d.]+)"', drawn):
        assert 0 < float(y) < HEIGHT
    assert drawn.count("<title>a, epsilon") == 3


def test_more_budget_lies_to_the_right_and_infinity_last() -> None:
    places = across([0.1, 1.0, 10.0, math.inf], LEFT, WIDTH)
    assert list(places.values()) == sorted(places.values())
    assert places[1.0] - places[0.1] == pytest.approx(places[10.0] - places[1.0])  # logarithmic
    assert across([math.inf], 0.0, 10.0) == {math.inf: 5.0}


def test_ticks_are_round_and_cover_the_range() -> None:
    for low, high in ((0.0, 1.0), (0.013, 0.0171), (-3.0, 40.0), (0.5, 0.5)):
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 3 <= len(ticks) <= 7


def test_twenty_methods_can_be_told_apart_without_colour() -> None:
    looks = {(re.sub(r"--method-\d", "", mark(at, 0, 0)), method_dash(at)) for at in range(16)}
    assert len(looks) == 16
    assert len({(mark(at, 0, 0), method_dash(at), method_colour(at)) for at in range(20)}) == 20
    assert EVIL not in comparison_report(grid())
