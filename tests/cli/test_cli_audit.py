"""`understudy audit`: against a method, and about one model with its table."""

import json
import signal
import subprocess
import time
import zipfile
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from cli_helpers import command, tiny_rows
from typer.testing import Result

from understudy.auditing.result import Audit

Run = Callable[..., Result]
QUICK = ("-m", "independent", "-e", 4, "--canary", "corner", "--workers", 0)


def test_a_method_is_audited_and_shown_in_a_report(run: Run, made: SimpleNamespace, tmp_path) -> None:
    # At the usual confidence a sound method is refuted once in twenty times at most; here once in a million.
    found = tmp_path / "audit.json"
    said = run("audit", *QUICK, "--confidence", 1 - 1e-6, "--minutes", 0.02, "-o", found)
    assert said.exit_code == 0, said.stderr
    assert "The claim of epsilon 4" in said.stdout
    assert "a count with Gaussian noise" in said.stdout
    audit = Audit.from_json(found.read_text())
    assert (audit.method, audit.epsilon, audit.confidence, audit.holds) == ("independent", 4.0, 1 - 1e-6, True)
    assert (tmp_path / "audit.runs.jsonl").exists()
    again = run("audit", *QUICK, "--minutes", 0.01, "-o", found, "--json")  # that time is spent already
    assert json.loads(again.stdout)["games"][0]["runs"] == list(audit.games[0].runs)
    page = tmp_path / "page.html"
    rows = tmp_path / "rows.csv"
    assert run("sample", made.fresh, "-n", 50, "-o", rows).exit_code == 0
    told = run(
        "report", made.table, rows, "-s", made.schema, "--model", made.fresh, "--public", "--audit", found, "-o", page
    )
    assert told.exit_code == 0, told.stderr
    assert "Audit: the claim, put to the test" in page.read_text()
    assert "says nothing about this model" not in page.read_text()


def test_a_report_refuses_what_is_no_audit_and_tells_of_another_method(
    run: Run, made: SimpleNamespace, tmp_path
) -> None:
    page, rows = tmp_path / "page.html", tmp_path / "rows.csv"
    assert run("sample", made.fresh, "-n", 50, "-o", rows).exit_code == 0
    base = ("report", made.table, rows, "-s", made.schema, "--model", made.fresh, "--public", "-o", page, "--audit")
    for given, what in ((made.table, "audit file"), (tmp_path / "none.json", "cannot be read")):
        told = run(*base, given)
        assert (told.exit_code, what in told.stderr) == (2, True)
    other = tmp_path / "other.json"
    other.write_text(Audit("mst", 0.5, 1e-6, 0.95, (), (), None, 1.0, {}, "0").to_json())
    assert run(*base, other).exit_code == 0
    assert "says nothing about this model" in page.read_text()


def test_a_fit_that_boosts_is_audited(run: Run) -> None:
    said = run("audit", *QUICK, "--minutes", 0.01, "--boost", "--boost-set", "rounds=20", "--json")
    assert said.exit_code in (0, 1), said.stderr  # a few runs may refute once in twenty times
    told = json.loads(said.stdout)
    assert told["method"] == "independent with boosting"
    assert any("pick" in step["words"] for step in told["steps"])


def test_a_refuted_claim_has_exit_code_1(run: Run, monkeypatch) -> None:
    from understudy.auditing import audit as audit_module
    from understudy.auditing.mechanisms import StepGame

    def broken(name, epsilon, *, confidence):
        from understudy.auditing.bounds import LowerBound

        return StepGame(name, "a broken count", 4.0, 1e-6, LowerBound(5.0, "counted", 0.99, 1e-6, (9, 9), 6.0))

    monkeypatch.setattr(audit_module, "play_mechanism", broken)
    said = run("audit", *QUICK, "--minutes", 0.005)
    assert said.exit_code == 1
    assert "refuted" in said.stdout


def test_ctrl_c_keeps_runs_and_the_same_command_goes_on(tmp_path, run: Run) -> None:
    found = tmp_path / "audit.json"
    asked = ("audit", "-m", "independent", "-e", 4, "--canary", "corner", "--workers", 1, "-o", found)
    asked += ("--confidence", 0.999999)  # no false alarm in a test
    process = subprocess.Popen(command(*asked, "--minutes", 5), stderr=subprocess.PIPE, text=True)
    runs = tmp_path / "audit.runs.jsonl"
    deadline = time.monotonic() + 120
    while not (runs.exists() and len(runs.read_text().splitlines()) > 5) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "finished runs are kept" in said
    kept = len(runs.read_text().splitlines())
    assert not found.exists()
    assert run(*asked, "--minutes", 0.05).exit_code == 0
    assert sum(Audit.from_json(found.read_text()).games[0].runs) >= kept - 1


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ((), "give --method"),
        (("-m", "nope"), "not known"),
        (("-m", "independent", "--table", "t.csv"), "--table belongs to the audit of a model"),
        (("-m", "independent", "-e", "inf"), "epsilon must be finite"),
        (("-m", "independent", "--canary", "parrot"), "parrot"),
        (("-m", "independent", "--minutes", 0), "minutes"),
        (("-m", "independent", "--confidence", 95), "confidence must lie between 0 and 1"),
        (("-m", "independent", "--boost-set", "rounds=30"), "add --boost"),
        (("-m", "independent", "--boost", "--boost-set", "rounds=many"), "--boost-set rounds must be a whole number"),
        (("-m", "auto", "--set", "steps=3"), "--set needs a method by name"),
        (("-m", "mixture", "--set", "stepz=3"), "stepz"),
        (("model.understudy",), "--table is missing"),
        (("model.understudy", "--table", "t.csv", "-e", 2), "--epsilon belongs to the audit of a method"),
        (("model.understudy", "--table", "t.csv", "--boost"), "--boost belongs to the audit of a method"),
    ],
)
def test_wrong_use(run: Run, given, what) -> None:
    told = run("audit", *given)
    assert (told.exit_code, what in told.stderr) == (2, True), told.stderr


def test_a_model_is_audited_with_its_table(run: Run, made: SimpleNamespace, tmp_path) -> None:
    fresh = tmp_path / "new.csv"
    fresh.write_text(tiny_rows(200))
    said = run("audit", made.fresh, "--table", made.table, "--holdout", fresh, "--json")
    assert said.exit_code == 0, said.stderr
    told = json.loads(said.stdout)
    assert told["holds"] is told["recognised"] is True
    member = told["membership"]
    assert 0.3 < member["chance"] < 0.7
    assert member["low"] < member["chance"] < member["high"]
    assert member["pairs"] == 200
    shown = run("audit", made.fresh, "--table", made.table)
    assert "for the data steward alone" in shown.stdout
    assert "no rows were given" in " ".join(shown.stdout.split())


def test_another_table_is_not_recognised_and_another_schema_named(run: Run, made: SimpleNamespace, tmp_path) -> None:
    other = tmp_path / "other.csv"
    lines = made.table.read_text().splitlines()
    header, rows = lines[0], [line.split(",") for line in lines[1:]]
    other.write_text("\n".join([header, *(",".join([r[0], "7", "Cray", *r[3:]]) for r in rows)]) + "\n")
    told = run("audit", made.fresh, "--table", other)
    assert told.exit_code == 0
    assert "hardly the table" in " ".join(told.stdout.split())
    other.write_text("\n".join([header.replace("town", "city"), *lines[1:]]) + "\n")
    refused = run("audit", made.fresh, "--table", other)
    assert (refused.exit_code, "'town'" in refused.stderr) == (2, True)


def test_a_model_that_claims_nothing_is_refused(run: Run, made: SimpleNamespace, tmp_path) -> None:
    bare = tmp_path / "bare.understudy"
    with zipfile.ZipFile(made.fresh) as whole, zipfile.ZipFile(bare, "w") as archive:
        for name in whole.namelist():
            if name != "certificate.json":
                archive.writestr(name, whole.read(name))
    told = run("audit", bare, "--table", made.table)
    assert (told.exit_code, "it has no certificate" in told.stderr) == (2, True)
    absent = run("audit", tmp_path / "none.understudy", "--table", made.table)
    assert (absent.exit_code, "no such file" in absent.stderr) == (2, True)


def test_a_certificate_that_claims_too_little_fails(run: Run, made: SimpleNamespace, tmp_path) -> None:
    false = tmp_path / "false.understudy"
    with zipfile.ZipFile(made.fresh) as whole, zipfile.ZipFile(false, "w") as archive:
        for name in whole.namelist():
            data = whole.read(name)
            if name == "certificate.json":
                claims = json.loads(data)
                data = json.dumps(claims | {"epsilon": claims["epsilon"] / 2}).encode()
            archive.writestr(name, data)
    told = run("audit", false, "--table", made.table)
    assert told.exit_code == 1
    assert "does NOT hold: epsilon" in told.stdout


def test_budget_files_are_checked(run: Run, here: SimpleNamespace, made: SimpleNamespace) -> None:
    book = here.folder / "budget.json"
    fitted = run(
        "fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model, "--budget-file", book,
        "--total-epsilon", 3,
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    asked = ("--table", here.table, "--budget-file", book)
    assert run("audit", here.model, *asked).exit_code == 0
    stranger = run("audit", made.fresh, *asked)
    assert stranger.exit_code == 1
    assert "was not counted" in " ".join(stranger.stdout.split())
    data = json.loads(book.read_text())
    data["records"][-1]["events"] = []
    book.write_text(json.dumps(data))
    edited = run("audit", here.model, *asked)
    assert (edited.exit_code, "was changed" in edited.stderr) == (1, True)
