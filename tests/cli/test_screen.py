"""Tables on narrow screens: whole words as long as there is room for them, and nothing cut."""

import io

import pytest
from rich.console import Console

from understudy.cli import screen

HEADINGS = ("tables", "number", "cells", "noise", "TVD")
ROWS = [("one-way", "13", "7,482", "12 to 70.7", "0.096"), ("two-way by readmitted", "66", "10,458", "32 to 48", "0.2")]


def printed(width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(screen, "out", Console(width=width, file=io.StringIO()))
    screen.print_table(HEADINGS, ROWS, right=HEADINGS[1:])
    return screen.out.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [44, 50, 60, 90])
def test_words_and_numbers_stay_whole(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(width, monkeypatch)
    assert max(map(len, lines)) <= width
    wanted = sorted(word for row in (HEADINGS, *ROWS) for cell in row for word in cell.split())
    assert sorted(word for line in lines if "─" not in line for word in line.split()) == wanted


def test_a_screen_too_narrow_for_words_still_loses_no_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed(24, monkeypatch)
    assert max(map(len, lines)) <= 24
    assert sorted("".join(line for line in lines if "─" not in line).replace(" ", "")) == sorted(
        "".join(cell for row in (HEADINGS, *ROWS) for cell in row).replace(" ", "")
    )
