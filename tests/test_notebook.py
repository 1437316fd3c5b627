"""What a notebook shows: useful, escaped, and without anything that only the rows could tell."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.evaluation.distributions import tvd
from understudy.notebook import MOST_ROWS, card
from understudy.privacy import BudgetFile
from understudy.table.check import check_table
from understudy.table.draft import draft

EVIL = "<script>alert('x')</script>"
SCHEMA = us.Schema(
    rows=200,
    label=EVIL,
    columns={
        EVIL: {"kind": "boolean"},
        "age": {"kind": "integer", "low": 0, "high": 99, "missing": True},
        "town": {"kind": "categorical", "values": ["<img src=x>", "Brock", "$Alm$"]},
    },
)
SECRET_AGE, SECRET_TOWN = 71, "Xyzzyham"


def test_completion_finds_what_is_not_loaded_yet() -> None:
    assert {"fit", "load", "Model", "__version__"} <= set(dir(us))
    assert all(hasattr(us, name) for name in dir(us))


def people(rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    towns = rng.choice(["<img src=x>", "Brock", "$Alm$"], rows)
    return pd.DataFrame({EVIL: rng.random(rows) < 0.4, "age": rng.integers(0, SECRET_AGE, rows), "town": towns})


class Tags(HTMLParser):
    """All tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[Any] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self.tags.add(tag)
        self.attributes += attributes

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One of everything that a notebook user meets."""
    frame = people()
    book = BudgetFile.create(tmp_path_factory.mktemp("books") / f"{EVIL.replace('/', '')}.json", us.Budget(3.0, 1e-6))
    model = us.fit(frame, SCHEMA, method="independent", seed=1, budget_file=book)
    rows = model.sample(100, seed=1)
    return {
        "schema": SCHEMA,
        "model": model,
        "certificate": model.certificate,
        "budget file": book,
        "table": us.read_table(frame, SCHEMA),
        "check": check_table(frame.assign(town="Xyzzyham", age=100), SCHEMA),
        "metric": tvd(frame, rows, SCHEMA, holdout=frame, order=1),
        "evaluation": us.evaluate(frame, rows, SCHEMA, jobs=1),
    }


KINDS = ("schema", "model", "certificate", "budget file", "table", "check", "metric", "evaluation")
ALLOWED = {"div", "p", "strong", "table", "tbody", "thead", "tr", "th", "td"}


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_values_are_text(shown: dict[str, Any], kind: str) -> None:
    page = Tags(shown[kind]._repr_html_())
    assert page.tags <= ALLOWED
    assert page.attributes == []
    assert "$" not in shown[kind]._repr_html_()  # would start a formula
    if kind in ("schema", "model", "table", "metric", "evaluation"):
        assert EVIL in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_text_reprs_are_one_short_line_without_private_values(shown: dict[str, Any], kind: str) -> None:
    words = repr(shown[kind])
    assert type(shown[kind]).__name__ in words
    assert len(words) < 300
    assert "\n" not in words
    assert "array" not in words
    for private in (str(len(people())), SECRET_TOWN, "100"):
        assert private not in words


def test_reprs_say_what_one_wants_to_know(shown: dict[str, Any]) -> None:
    assert repr(shown["schema"]) == f"Schema(columns=3, rows=200, label={EVIL!r}, unconfirmed=0)"
    assert repr(shown["certificate"]) == "Certificate(independent, epsilon 1, delta 1e-07, 1 use of the rows, seeded)"
    assert "total epsilon 3, delta 1e-06, 1 fit, 0 not settled" in repr(shown["budget file"])
    assert "tvd_1way: 0." in repr(shown["metric"])
    assert repr(shown["check"]) == "CheckResult(does not fit; lines() has the findings)"
    assert "weakest: " in repr(shown["evaluation"])
    model = Tags(shown["model"]._repr_html_()).text
    assert "0 to 99, may be missing" in model
    assert "one-way tables of 3 columns" in Tags(shown["certificate"]._repr_html_()).text
    assert "not for release" in model
    assert "fit of method independent" in Tags(shown["budget file"]._repr_html_()).text
    assert "for the data steward alone" in Tags(shown["evaluation"]._repr_html_()).text


def test_a_table_shows_no_rows(shown: dict[str, Any]) -> None:
    page = Tags(shown["table"]._repr_html_()).text
    assert str(len(people())) not in page
    assert "neither they nor their number" in page


def test_findings_show_where_and_never_what(shown: dict[str, Any]) -> None:
    page = Tags(shown["check"]._repr_html_()).text
    assert "town" in page
    assert SECRET_TOWN not in page


@pytest.mark.parametrize("of", [repr, str, lambda schema: schema._repr_html_(), lambda schema: repr(schema.columns)])
def test_a_draft_shows_nothing_that_it_read_off_the_rows(of: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"age": [SECRET_AGE, 53, 40] * 20, "town": [SECRET_TOWN, "Brock", "Ulm"] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = draft(tmp_path / "t.csv")
    words = of(schema)
    for private in (str(schema.columns["age"].high), SECRET_TOWN, f"{schema.rows}"):
        assert private in schema.dumps()
        assert private not in words
    assert "unconfirmed=" in words or "read off the rows" in words
    assert SECRET_TOWN in schema.confirmed()._repr_html_()  # vouched for as public: shown


def test_long_tables_end_with_what_is_left_out() -> None:
    page = card("many", headings=["n"], rows=[[number] for number in range(MOST_ROWS + 7)])
    assert page.count("<td>") == MOST_ROWS
    assert "and 7 more" in page
    assert "more" not in card("few", headings=["n"], rows=[[1]])
