"""No command writes over a file that it reads: a private table, a schema or a budget file cannot be had again."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from cli_helpers import left_over
from typer.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize("own", ["table", "schema"])
@pytest.mark.parametrize("command", ["fit", "check", "budget"])
def test_inputs_are_not_written_over(run: Run, here: SimpleNamespace, command: str, own: str) -> None:
    before = {path: path.read_bytes() for path in (here.table, here.schema)}
    # The same file by another name counts as the same.
    alias = here.folder / "alias"
    alias.symlink_to(getattr(here, own))
    for output in (getattr(here, own), alias):
        arguments = {
            "fit": ("fit", here.table, "-s", here.schema, "-m", "independent", "-o", output),
            "check": ("check", here.table, "-s", here.schema, "-o", output),
            "budget": (
                *("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model),
                *("--budget-file", output, "--total-epsilon", 2),
            ),
        }[command]
        result = run(*arguments)
        assert result.exit_code == 2
        assert "reads this file too" in result.stderr
        assert {path: path.read_bytes() for path in before} == before
        assert alias.is_symlink()
    assert left_over(here.folder) == {"table.csv", "schema.yaml", "alias"}


def test_a_model_does_not_replace_the_budget_file(run: Run, here: SimpleNamespace) -> None:
    book = here.folder / "book.json"
    fit = ("fit", here.table, "-s", here.schema, "-m", "independent", "--budget-file", book, "--total-epsilon", 2)
    assert run(*fit, "-o", book).exit_code == 2
    assert not book.exists()
    assert run(*fit, "-o", here.model).exit_code == 0
    before = book.read_bytes()
    assert run(*fit, "-o", book).exit_code == 2
    assert book.read_bytes() == before


def test_a_draft_does_not_replace_its_table(run: Run, here: SimpleNamespace) -> None:
    before = here.table.read_bytes()
    assert run("draft", here.table, "-o", here.table, "--force").exit_code == 2
    assert here.table.read_bytes() == before


def test_rows_do_not_replace_their_model(run: Run, here: SimpleNamespace, made: SimpleNamespace) -> None:
    model = here.folder / "model.csv"
    model.write_bytes(made.fresh.read_bytes())
    assert run("sample", model, "-n", 5, "-o", model).exit_code == 2
    assert model.read_bytes() == made.fresh.read_bytes()
