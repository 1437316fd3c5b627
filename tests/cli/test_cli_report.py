"""`understudy report`: what is written, what is refused, and what the public never gets."""

import os
import re
import stat

import pytest
from cli_helpers import SCHEMA, SECRET, left_over, tiny_rows

from understudy.cli.histograms import histograms
from understudy.evaluation.inputs import open_table
from understudy.schema import Schema

RARE = "Zuffenhausen"


@pytest.fixture(scope="module")
def rows(made, run):
    """Synthetic rows, and the files of the model that they come from."""
    drawn = made.folder / "synthetic.csv"
    assert run("sample", made.fresh, "-n", 300, "-o", drawn, "--seed", 1).exit_code == 0
    holdout = made.folder / "holdout.csv"
    header, *lines = tiny_rows(700).splitlines()
    holdout.write_text("\n".join([header, *lines[400:]]) + "\n")
    return drawn, holdout


@pytest.fixture(scope="module")
def page(made, rows, run):
    """A steward's page with all that the fast set has."""
    drawn, holdout = rows
    output = made.folder / "report.html"
    options = ("--holdout", holdout, "--model", made.fresh, "-o", output)
    said = run("report", made.table, drawn, "-s", made.schema, *options)
    assert said.exit_code == 0, said.output
    assert "for the data steward alone" in said.stdout
    return output


def test_steward_page(page) -> None:
    text = page.read_text()
    assert "Recomputed from the model file: it holds." in text
    for name in ("age", "town", "weight", "joined", "ill"):
        assert f"<h3>{name}</h3>" in text
    assert text.count("<svg") == 5 + 3 + 2  # columns, heat maps, planes
    assert "logistic regression" in text
    assert "300 holdout rows" in text
    assert SECRET not in text
    assert "person" not in re.findall(r"<h3>(\w+)</h3>", text)


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of POSIX systems")
def test_steward_page_is_the_owners_alone(page) -> None:
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_public_page_never_opens_the_table(made, rows, run, tmp_path) -> None:
    output = tmp_path / "public.html"
    options = ("-s", made.schema, "--model", made.fresh, "--public", "-o", output)
    said = run("report", tmp_path / "there is no such table.csv", rows[0], *options)
    assert said.exit_code == 0, said.output
    text = output.read_text()
    assert "No real row was read" in text
    assert "outside the differential privacy guarantee" not in text
    assert text.count("<svg") == 5


def test_public_page_is_the_same_for_any_real_table(made, rows, run, tmp_path) -> None:
    pages = []
    for count in (400, 7):
        table, output = tmp_path / "table.csv", tmp_path / "public.html"
        table.write_text(tiny_rows(count))
        options = ("-s", made.schema, "--model", made.fresh, "--public", "-o", output)
        assert run("report", table, rows[0], *options).exit_code == 0
        pages.append(output.read_bytes())
    assert pages[0] == pages[1]


def test_public_page_shows_no_file_that_was_given_by_mistake(made, rows, run, tmp_path) -> None:
    pages = []
    for order in ((made.table, rows[0]), (rows[0], made.table), (rows[0], tmp_path / "nowhere.csv")):
        output = tmp_path / "public.html"
        options = ("-s", made.schema, "--model", made.fresh, "--public", "-o", output)
        assert run("report", *order, *options).exit_code == 0
        pages.append(re.sub(r"Report on [^<]+", "", output.read_text()))
    assert pages[0] == pages[1] == pages[2]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--public",), 2, "needs --model"),
        (("--public", "--model", "fresh", "--full"), 2, "leave out --holdout and --full"),
        (("--public", "--model", "fresh", "--holdout", "table"), 2, "leave out --holdout and --full"),
        (("--public", "--model", "seeded"), 1, "made with a seed"),
        (("--model", "nowhere"), 2, "there is no such file"),
    ],
)
def test_refusals_leave_nothing(made, rows, run, tmp_path, options, code, words) -> None:
    known = {"fresh": made.fresh, "seeded": made.seeded, "table": made.table, "nowhere": tmp_path / "nowhere"}
    said = run(
        "report", made.table, rows[0], "-s", made.schema, *(known.get(x, x) for x in options), "-o", tmp_path / "r.html"
    )
    assert said.exit_code == code, said.output
    assert words in " ".join(said.stderr.split())
    assert left_over(tmp_path) == set()


def test_public_page_wants_what_a_release_wants(made, rows, run, tmp_path) -> None:
    loose = tmp_path / "loose.understudy"
    assert run("fit", made.table, "-s", made.schema, "-m", "independent", "-d", 0.01, "-o", loose).exit_code == 0
    options = ("-s", made.schema, "--model", loose, "-o", tmp_path / "r.html")
    said = run("report", made.table, rows[0], *options, "--public")
    assert said.exit_code == run("verify", loose, "--release").exit_code == 1
    assert "not below one over the declared rows" in " ".join(said.stderr.split())


def test_outputs_are_html(made, rows, run, tmp_path) -> None:
    said = run("report", made.table, rows[0], "-s", made.schema, "-o", tmp_path / "report.pdf")
    assert said.exit_code == 2
    assert "must end in .html" in said.stderr


def test_public_page_wants_the_models_schema(made, rows, run, tmp_path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SCHEMA.replace("Cray]", f"Cray, {RARE}]"))
    options = ("-s", other, "--model", made.fresh, "--public", "-o", tmp_path / "r.html")
    said = run("report", made.table, rows[0], *options)
    assert said.exit_code == 1
    assert "schema: the digest differs" in " ".join(said.stderr.split())


def test_histograms_count_every_row(made, rows) -> None:
    schema = Schema.load(made.schema)
    real, synthetic = (open_table(path, schema, role="synthetic") for path in (made.table, rows[0]))
    for shown in histograms(synthetic, real):
        assert sum(shown.real) + shown.missing_real == pytest.approx(1)
        assert sum(shown.synthetic) + shown.missing_synthetic == pytest.approx(1)
        assert len(shown.cells) == len(shown.real) == len(shown.synthetic)
        assert len(shown.cells) <= 34
    assert all(shown.real is None for shown in histograms(synthetic, None))
    by_name = {shown.name: shown for shown in histograms(real, None)}  # synthetic towns may all be there, by chance
    assert "(missing)" in by_name["town"].cells
    assert by_name["age"].ordered


def test_histograms_of_odd_columns() -> None:
    import pandas as pd

    facts = {
        "spike": {"kind": "real", "low": 0, "high": 10},
        "heavy": {"kind": "integer", "low": 0, "high": 100000, "log": True, "zero_inflated": True},
        "amount": {"kind": "real", "low": 0, "high": 1000, "log": True},
        "gone": {"kind": "real", "low": 0, "high": 1, "missing": True},
        "binned": {"kind": "integer", "low": 0, "high": 9, "bins": [0, 3, 6, 9]},
    }
    schema = Schema(columns=facts, rows=100)
    frame = pd.DataFrame(
        {
            "spike": [5.0] * 100,
            "heavy": [0] * 60 + [10**5] + list(range(1, 40)),
            "amount": [x * 1.5 for x in range(100)],
            "gone": [None] * 100,
            "binned": [x % 10 for x in range(100)],
        }
    )
    view = open_table(frame, schema, role="real")
    found = {shown.name: shown for shown in histograms(view, view)}
    assert max(found["spike"].real) == 1.0
    assert max(found["heavy"].real) == pytest.approx(0.6)  # zero has a cell of its own
    assert found["gone"].missing_real == 1.0
    assert max(found["amount"].real) < 0.2
    assert all(sum(shown.real) + shown.missing_real == pytest.approx(1) for shown in found.values())


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        ("{x: {kind: real, low: 0, high: 1}}", "0.5"),
        ("{x: {kind: boolean}}", "true"),
        ("{x: {kind: integer, low: 0, high: 9, missing: true}, y: {kind: boolean}}", ",true"),
        ("{'<b>': {kind: real, low: 0, high: 1}, y: {kind: real, low: -1, high: 0}}", "1,-1"),
    ],
)
def test_odd_tables_have_a_page(run, tmp_path, columns, cells) -> None:
    schema, table, output = (tmp_path / name for name in ("schema.yaml", "table.csv", "report.html"))
    schema.write_text(f"rows: 100\ncolumns: {columns}\n")
    names = Schema.load(schema).columns
    table.write_text("\n".join([",".join(names), *[cells] * 40]) + "\n")
    said = run("report", table, table, "-s", schema, "-o", output)
    assert said.exit_code == 0, said.output
    text = output.read_text()
    assert "at least A" in text
    assert "No holdout rows were given" in text
    assert not re.search(r"\bnan\b", text.lower())
    assert "<b>" not in text
