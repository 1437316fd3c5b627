"""HTML and SVG in which everything is text unless it was built here: names of columns are never markup."""

from collections.abc import Iterable
from html import escape
from typing import Any

VOID = {"meta", "br", "hr", "img"}


class Html(str):
    """Markup that `tag` built; any other string is escaped when it gets into one."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element. `class_` is the attribute class, other underscores become hyphens, None leaves an attribute out.

    >>> tag("td", "<script>", class_="a&b", colspan=2)
    '<td class="a&amp;b" colspan="2">&lt;script&gt;</td>'
    >>> tag("tr", [tag("td", 1), tag("td", 2.50)], hidden=None)
    '<tr><td>1</td><td>2.5</td></tr>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>" if name in VOID else f"<{name}{written}>{join(children)}</{name}>")


def join(children: Iterable[Any]) -> Html:
    """Children one after the other, each escaped unless it is markup."""
    return Html("".join(map(_child, children)))


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, Iterable) and not isinstance(child, str):
        return join(child)
    return escape(_text(child))


def _text(value: Any) -> str:
    # Two digits are enough for a place on the screen, and keep the file small.
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
