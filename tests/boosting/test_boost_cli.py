"""`understudy boost` and `understudy fit --boost`: files in, one file out, exit codes that say why."""

import json
from pathlib import Path

import pytest
from boosting_helpers import PEOPLE
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.privacy import Budget, BudgetFile
from understudy.synthesizers.api import load


def run(*arguments: object):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


@pytest.fixture
def here(tmp_path: Path, plain, rows) -> Path:
    rows.to_csv(tmp_path / "t.csv", index=False)
    PEOPLE.save(tmp_path / "s.yaml")
    plain.save(tmp_path / "one.understudy")
    return tmp_path


def test_boost_writes_a_model_that_verifies(here: Path):
    out = here / "out.understudy"
    asked = ("boost", here / "one.understudy", "--table", here / "t.csv", "-e", 0.5, "-o", out, "--rounds", 20)
    said = run(*asked, "--pool-rows", 500, "--drs", "--distinguishers", "marginals", "--json")
    assert said.exit_code == 0, said.output
    certificate = json.loads(said.stdout)["certificate"]
    assert certificate["method"] == "boosted"
    assert certificate["entries"][-1]["event"]["count"] == 20
    assert run("verify", out, "--release").exit_code == 0
    assert run("sample", out, "-n", 20, "-o", here / "rows.csv").exit_code == 0
    assert run("inspect", out).exit_code == 0


def test_fit_boost_is_one_budget(here: Path):
    out = here / "out.understudy"
    said = run(
        "fit", here / "t.csv", "-s", here / "s.yaml", "-m", "independent", "-e", 1, "--boost", "-o", out, "--json"
    )
    assert said.exit_code == 0, said.output
    certificate = json.loads(said.stdout)["certificate"]
    assert certificate["epsilon"] <= 1 + 1e-6
    assert [entry["purpose"] for entry in certificate["entries"]] == [
        "round numbers of 1 column",
        "one-way tables of 3 columns",
        "103 picks of a distinguisher",  # by rule: 2,000 declared rows bear no more
    ]


@pytest.mark.parametrize("weights", ["likely", "average"])
def test_settings_reach_the_game(here: Path, weights: str):
    out = here / "out.understudy"
    asked = ("boost", here / "one.understudy", "-t", here / "t.csv", "-e", 0.5, "-o", out, "--rounds", 20)
    said = run(*asked, "--pool-rows", 500, "--set", f"weights={weights}", "--set", "both-ways=no", "--set", "rate=0.5")
    assert said.exit_code == 0, said.output
    told = load(out).released.settings
    assert (told["weights"], told["both_ways"], told["rate"]) == (weights, False, 0.5)


def test_settings_of_a_fit_that_boosts(here: Path):
    out = here / "out.understudy"
    asked = ("fit", here / "t.csv", "-s", here / "s.yaml", "-m", "independent", "-o", out)
    said = run(*asked, "--boost", "--boost-set", "rounds=30", "--boost-set", "share=0.4")
    assert said.exit_code == 0, said.output
    assert load(out).certificate.entries[-1].event.count == 30
    told = load(out).released.settings
    assert (told["rounds"], told["share"]) == (30, 0.4)
    said = run(*asked, "--force", "--boost-set", "rounds=30")
    assert said.exit_code == 2
    assert "add --boost" in said.output


def test_a_spent_budget_is_a_no(here: Path):
    BudgetFile.create(here / "b.json", Budget(0.3, 1e-6))
    asked = ("boost", here / "one.understudy", "-t", here / "t.csv", "-e", 0.9, "-o", here / "out.understudy")
    said = run(*asked, "--budget-file", here / "b.json")
    assert said.exit_code == 1
    assert "budget file b.json" in said.output
    assert not (here / "out.understudy").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--distinguishers", "critics"), "kept its critics"),
        (("--distinguishers", "critics,x"), "distinguishers must be"),
        (("--rounds", "0"), "rounds must be"),
        (("--set", "weights=heavy"), "weights must be likely or average"),
        (("--set", "drs=yes"), "there is an option --drs"),
        (("--set", "share=0.3"), "share belongs to a fit that boosts"),
        (("--set", "speed=3"), "no setting 'speed'"),
    ],
)
def test_wrong_use_is_told(here: Path, more: tuple, message: str):
    asked = ("boost", here / "one.understudy", "-t", here / "t.csv", "-e", 0.5, "-o", here / "out.understudy")
    said = run(*asked, *more)
    assert said.exit_code == 2
    assert message in " ".join(said.output.split())


def test_a_model_is_never_written_over(here: Path):
    said = run("boost", here / "one.understudy", "-t", here / "t.csv", "-e", 1, "-o", here / "one.understudy")
    assert said.exit_code == 2
    assert "reads this file too" in " ".join(said.output.split())
    (here / "other.understudy").write_bytes(b"spent")
    said = run("boost", here / "one.understudy", "-t", here / "t.csv", "-e", 1, "-o", here / "other.understudy")
    assert said.exit_code == 2
    assert "there is a file already" in " ".join(said.output.split())
    assert (here / "other.understudy").read_bytes() == b"spent"
