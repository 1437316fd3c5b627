"""`understudy compare` from the outside: pages, files, going on after Ctrl-C, the choice under the budget, refusals."""

import json
import signal
import stat
import subprocess
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from cli_helpers import SECRET, command, left_over
from typer.testing import Result

Run = Callable[..., Result]
QUICK = ("-m", "independent", "-e", "1", "--seeds", 1)


@pytest.fixture(scope="module")
def compared(tmp_path_factory, run: Run) -> SimpleNamespace:
    """One comparison of two cells, and its files."""
    from cli_helpers import SCHEMA, tiny_rows

    folder = tmp_path_factory.mktemp("compared")
    table, schema, page = folder / "table.csv", folder / "schema.yaml", folder / "page.html"
    table.write_text(tiny_rows())
    schema.write_text(SCHEMA)
    files = {"json": folder / "all.json", "csv": folder / "all.csv"}
    arguments = ("compare", table, "-s", schema, *QUICK[:2], "-e", "1,inf", "--seeds", 1, "-o", page)
    said = run(*arguments, "--json", files["json"], "--csv", files["csv"])
    assert said.exit_code == 0, said.output
    state = folder / "page.cells.jsonl"
    return SimpleNamespace(folder=folder, page=page, state=state, said=said, arguments=arguments, **files)


def test_the_answer_is_on_the_screen_and_in_the_files(compared: SimpleNamespace) -> None:
    assert "Take independent at epsilon 1." in compared.said.stdout
    assert "falls short by" in compared.said.stdout
    assert "outside the differential privacy guarantee" in compared.said.stderr
    assert "--choose private and --on simulated" in compared.said.stdout
    page = compared.page.read_text()
    assert "Take independent at epsilon 1." in page
    data = json.loads(compared.json.read_text())
    assert [cell["epsilon"] for cell in data["cells"]] == [1.0, "inf"]
    assert compared.csv.read_text().splitlines()[0].startswith("method,epsilon,repeat,status")
    for path in (compared.page, compared.state, compared.json, compared.csv):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert SECRET not in path.read_text()


def test_the_same_command_again_only_writes(compared: SimpleNamespace, run: Run) -> None:
    before = compared.state.read_bytes()
    compared.page.unlink()
    again = run(*compared.arguments)
    assert again.exit_code == 0, again.output
    assert "fits ..." not in again.stderr  # nothing was fitted
    assert compared.page.exists()
    assert compared.state.read_bytes() == before


def test_a_state_file_of_another_table_is_kept(compared: SimpleNamespace, run: Run, here: SimpleNamespace) -> None:
    state = here.folder / "compare.cells.jsonl"
    state.write_bytes(compared.state.read_bytes())
    result = run("compare", here.table, "-s", here.schema, *QUICK, "-o", here.folder / "compare.html")
    assert result.exit_code == 2
    assert "move it away" in result.stderr
    assert state.read_bytes() == compared.state.read_bytes()


def test_ctrl_c_keeps_what_is_done_and_the_next_run_goes_on(here: SimpleNamespace, run: Run) -> None:
    page = here.folder / "page.html"
    arguments = ("compare", here.table, "-s", here.schema, *QUICK[:2], "-e", "1,2", "--seeds", 1, "-o", page, "-j", 1)
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while "1 of 2 fits" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in said + err
    assert left_over(here.folder) == {"table.csv", "schema.yaml", "page.cells.jsonl"}
    kept = len((here.folder / "page.cells.jsonl").read_text().splitlines())
    assert kept == 2  # its head and one cell
    again = run(*arguments)
    assert again.exit_code == 0, again.output
    assert "1 of 2 fits" in again.stderr
    assert "0 of 2 fits" not in again.stderr
    assert len((here.folder / "page.cells.jsonl").read_text().splitlines()) == 3


def test_simulated_tables_need_no_table(run: Run, here: SimpleNamespace) -> None:
    here.table.unlink()
    page = here.folder / "made_up.html"
    result = run("compare", "--on", "simulated", "-s", here.schema, *QUICK, "-o", page)
    assert result.exit_code == 0, result.output
    assert "made from the schema alone" in result.stdout
    assert "no private row was read" in page.read_text()
    assert "steward" not in page.read_text()


def test_the_choice_under_the_budget_verifies(run: Run, here: SimpleNamespace) -> None:
    chosen = run("compare", here.table, "-s", here.schema, "-m", "independent", "--choose", "private", "-o", here.model)
    assert chosen.exit_code == 0, chosen.output
    assert "Chosen: independent." in chosen.stdout
    verified = run("verify", here.model, "--release")
    assert verified.exit_code == 0, verified.output
    inspected = run("inspect", here.model)
    assert "choice among the methods independent" in inspected.stdout
    assert "candidate independent" in inspected.stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-m", "independant"), "did you mean 'independent'"),
        (("-e", "one"), "-e must be numbers"),
        (("-e", "0"), "above 0"),
        (("-e", ","), "at least one number"),
        (("--holdout", "2"), "share between 0 and 1"),
        (("--holdout", "no_such.csv"), "no_such.csv"),
        (("-o", "model.understudy"), "must end in .html"),
        (("-o", "no_folder/page.html"), "does not exist"),
        (("--json", "page.html"), "different files"),
        (("--set", "steps=3"), "METHOD.OPTION=VALUE"),
        (("--set", "independent.steps=3"), "no option 'steps'"),
        (("--set", "nothing.steps=3"), "'nothing' is not known"),
        (("--limit", "0"), "limit must be"),
        (("--budget-file", "book"), "--choose private"),
        (("--on", "simulated"), "leave TABLE out"),
        (("--choose", "private", "-e", "1,2", "-o", "m.understudy"), "one epsilon"),
        (("--choose", "private", "-e", "1"), "-o MODEL.understudy"),
        (("--choose", "private", "--limit", "5", "-o", "m.understudy"), "--limit does not go with"),
        (("--choose", "private", "--on", "simulated", "-o", "m.understudy"), "--on does not go with"),
    ],
)
def test_bad_use_is_refused_and_leaves_nothing(run: Run, here: SimpleNamespace, monkeypatch, arguments, told) -> None:
    monkeypatch.chdir(here.folder)
    usual = () if "-o" in arguments or "private" in arguments else ("-o", "page.html")
    result = run("compare", here.table, "-s", here.schema, *usual, *arguments)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert not {name for name in left_over(here.folder) if name.endswith((".html", ".understudy", ".json", ".jsonl"))}


def test_a_table_or_a_word_that_there_is_none_is_needed(run: Run, here: SimpleNamespace) -> None:
    result = run("compare", "-s", here.schema, "-o", here.folder / "page.html")
    assert result.exit_code == 2
    assert "TABLE is missing" in result.stderr
    result = run("compare", "-s", here.schema, "--choose", "private", "-o", here.model)
    assert "TABLE is missing" in result.stderr


@pytest.mark.parametrize("own", ["table", "schema"])
def test_inputs_are_not_written_over(run: Run, here: SimpleNamespace, own: str) -> None:
    alias = here.folder / "page.html"
    alias.symlink_to(getattr(here, own))
    before = getattr(here, own).read_bytes()
    for option in (
        ("-o", alias),
        ("-o", here.folder / "p.html", "--json", alias),
        ("-o", here.folder / "p.html", "--csv", alias),
    ):
        result = run("compare", here.table, "-s", here.schema, *QUICK, *option)
        assert result.exit_code == 2
        assert "reads this file too" in result.stderr
    assert getattr(here, own).read_bytes() == before


def test_holdout_rows_with_other_columns_are_refused(run: Run, here: SimpleNamespace) -> None:
    other = here.folder / "other.csv"
    other.write_text("age,town\n30,Alm\n")
    result = run("compare", here.table, "-s", here.schema, *QUICK, "--holdout", other, "-o", here.folder / "p.html")
    assert result.exit_code == 2
    assert "columns" in result.stderr
    assert SECRET not in result.output
