"""What goes on the screen: answers to standard output, everything else (progress, notes, errors) to standard error."""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

GAP = 3  # letters between two columns of a table


def say(text: str = "", *, style: str | None = None, console: Console = out) -> None:
    """A paragraph, wrapped at words on a screen and left whole in a file or pipe."""
    console.print(escape(text), style=style, soft_wrap=not console.is_terminal)


def note(text: str, *, style: str | None = None) -> None:
    """Something beside the answer."""
    say(text, style=style, console=err)


def print_json(data: Any) -> None:
    """Strict JSON for programs: an infinite number becomes the word inf."""
    print(json.dumps(_strict(data), indent=2, allow_nan=False, ensure_ascii=False))


def _strict(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _strict(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_strict(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return "inf" if data > 0 else None
    return data


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """A plain table; columns named in `right` hold numbers. Narrow screens wrap cells, never cut them."""
    rows = [*rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    widths = column_widths([columns, *rows], out.width - GAP * (len(columns) - 1))
    for name, width in zip(columns, widths, strict=True):
        table.add_column(escape(name), justify="right" if name in right else "left", overflow="fold", width=width)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    out.print(table)


def column_widths(lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """How wide each column may be; where room is short, the widest give way first, at words as long as that is enough.

    >>> column_widths([["table", "noise"], ["two-way by readmitted", "32 to 48"]], 30)
    [21, 8]
    >>> column_widths([["table", "noise"], ["two-way by readmitted", "32 to 48"]], 16)
    [10, 6]
    """
    cells = [[cell.splitlines() or [""] for cell in column] for column in zip(*lines, strict=True)]
    widths = [max(cell_len(line) for cell in column for line in cell) for column in cells]
    words = [
        max((cell_len(word) for cell in column for line in cell for word in line.split()), default=0)
        for column in cells
    ]
    while sum(widths) > room and max(widths) > 1:
        wrappable = [place for place, width in enumerate(widths) if width > words[place]]
        widths[max(wrappable or range(len(widths)), key=widths.__getitem__)] -= 1
    return widths


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, one a line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(escape(name), escape(text))
    out.print(table)


def number(value: float | None) -> str:
    """Four significant digits, or a dash.

    >>> number(0.123456), number(None), number(32546), number(float("inf"))
    ('0.1235', '-', '32,546', 'inf')
    """
    if value is None:
        return "-"
    if isinstance(value, int) or (math.isfinite(value) and abs(value) >= 1e4):
        return f"{round(value):,}"
    return f"{value:.4g}"
