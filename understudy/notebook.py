"""What a notebook shows of an object: a title, facts, a table. All of it is text: a column's name is never markup."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

MOST_ROWS = 40


def card(
    title: str,
    facts: Iterable[tuple[str, Any]] = (),
    *,
    headings: Sequence[str] = (),
    rows: Sequence[Sequence[Any]] = (),
    notes: Iterable[str] = (),
) -> str:
    """HTML for `_repr_html_`. Long tables end with a line that says how much is left out.

    >>> card("A <b> & $c", notes=["<script>"])
    '<div><p><strong>A &lt;b&gt; &amp; &#36;c</strong></p><p>&lt;script&gt;</p></div>'
    """
    parts = [f"<p><strong>{_text(title)}</strong></p>"]
    facts = list(facts)
    if facts:
        lines = "".join(f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in facts)
        parts.append(f"<table><tbody>{lines}</tbody></table>")
    if rows:
        head = "".join(f"<th>{_text(heading)}</th>" for heading in headings)
        body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST_ROWS])
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    if len(rows) > MOST_ROWS:
        parts.append(f"<p>and {len(rows) - MOST_ROWS} more</p>")
    parts += [f"<p>{_text(note)}</p>" for note in notes]
    return f"<div>{''.join(parts)}</div>"


def _text(value: Any) -> str:
    """Escaped, with four digits of a float. A dollar sign would start a formula in most notebooks."""
    words = f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(words).replace("$", "&#36;")
