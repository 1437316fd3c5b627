"""Every command does what it says, in the order in which a steward meets them."""

import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cli_helpers import SCHEMA, SECRET, left_over
from typer.testing import Result

import understudy as us
from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.api import METHODS
from understudy.synthesizers.mixture.plan import Config

Run = Callable[..., Result]


def test_draft_marks_facts_and_shows_no_values(run: Run, here: SimpleNamespace) -> None:
    path = here.folder / "drafted.yaml"
    result = run("draft", here.table, "-o", path)
    assert result.exit_code == 0, result.output
    schema = us.Schema.load(path)
    assert ("town", "values") in schema.unconfirmed()
    assert "Brock" not in result.output
    assert "confirm" in result.stdout
    assert path.stat().st_mode & 0o077 == 0  # it holds values of private rows
    again = run("draft", here.table, "-o", path)
    assert (again.exit_code, "--force" in again.stderr) == (2, True)
    assert run("draft", here.table, "-o", path, "--force").exit_code == 0


def test_confirm_shows_all_facts_and_asks(run: Run, here: SimpleNamespace) -> None:
    path = here.folder / "drafted.yaml"
    run("draft", here.table, "-o", path)
    before = path.read_bytes()
    for answer in ("n\n", "\n", "", "what\n"):
        refused = run("confirm", path, answer=answer)
        assert refused.exit_code == 1
        assert path.read_bytes() == before
    assert "Alm, Brock, Cray" in refused.stdout
    drafted = us.Schema.load(path)
    for name, _ in drafted.unconfirmed():
        assert (name or "(the table)") in refused.stdout
    agreed = run("confirm", path, answer="y\n")
    assert agreed.exit_code == 0
    confirmed = us.Schema.load(path)
    assert confirmed.unconfirmed() == []
    assert confirmed.digest() == drafted.digest()
    assert "nothing to confirm" in run("confirm", path).stdout


@pytest.mark.parametrize("ending", [".yaml", ".json"])
def test_confirm_yes_keeps_comments_and_all_other_facts(run: Run, here: SimpleNamespace, ending: str) -> None:
    path = here.folder / f"mixed{ending}"
    if ending == ".yaml":
        path.write_text(
            "# by Ann, from the code book\n"
            "rows: 100\n"
            "source: {rows: data}\n"
            "columns:\n"
            "  age: {kind: integer, low: 0, high: 9, source: {low: data, high: public}}  # page 3\n"
            "  word: {kind: categorical, values: ['source: x', b], source: data}\n"
        )
    else:
        us.Schema.loads(SCHEMA.replace("{kind: boolean}", "{kind: boolean, source: data}")).save(path)
    before = us.Schema.load(path)
    assert before.unconfirmed()
    assert run("confirm", path, "--yes").exit_code == 0
    after = us.Schema.load(path)
    assert after.unconfirmed() == []
    assert after.digest() == before.digest()
    if ending == ".yaml":
        assert "# by Ann" in path.read_text()
        assert "# page 3" in path.read_text()


def test_confirm_changes_no_value_that_looks_like_a_mark(run: Run, here: SimpleNamespace) -> None:
    path = here.folder / "odd.yaml"
    path.write_text("rows: 9\ncolumns:\n  word: {kind: categorical, values: ['source: data', b], source: data}\n")
    assert run("confirm", path, "--yes").exit_code == 0
    assert us.Schema.load(path).columns["word"].values == ("source: data", "b")
    assert us.Schema.load(path).unconfirmed() == []


def test_check_says_yes_or_no(run: Run, here: SimpleNamespace) -> None:
    assert run("check", here.table, "-s", here.schema).exit_code == 0
    here.table.write_text(here.table.read_text().replace(",Cray,", f",{SECRET},"))
    out = here.folder / "offending.csv"
    result = run("check", here.table, "-s", here.schema, "-o", out)
    assert result.exit_code == 1
    assert "'town'" in result.stdout
    written = pd.read_csv(out)
    assert set(written["value"]) == {SECRET}
    assert out.stat().st_mode & 0o077 == 0
    found = json.loads(run("check", here.table, "-s", here.schema, "--json").stdout)
    assert found["fits"] is False
    assert found["findings"][0]["count"] == len(written)


def test_fit_prints_the_guarantee_and_what_comes_next(made: SimpleNamespace) -> None:
    assert "at most 2.72 times as likely" in made.told.stdout
    assert "delta 1e-06" in made.told.stdout
    assert "understudy verify" in made.told.stdout
    assert "not for release" in made.said.stdout
    assert "epsilon" in made.said.stderr  # spent so far, among the progress


def test_fit_json_is_one_document(run: Run, here: SimpleNamespace) -> None:
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model, "--json")
    told = json.loads(result.stdout)
    assert told["certificate"]["epsilon"] == pytest.approx(1.0, abs=1e-3)
    assert us.load(told["model"]).method == "independent"


def test_clipped_cells_are_told_to_the_steward_and_not_written(run: Run, here: SimpleNamespace) -> None:
    lines = here.table.read_text().splitlines()
    lines[1:4] = [re.sub(r"^(\d+),\d+", r"\1,150", line) for line in lines[1:4]]
    here.table.write_text("\n".join(lines))
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    assert result.exit_code == 0
    assert "steward alone" in result.stderr
    assert "age 3" in result.stderr
    assert "were clipped" not in result.stdout
    with zipfile.ZipFile(here.model) as archive:
        assert not any(b"clip" in archive.read(name) for name in archive.namelist())


def test_settings_reach_the_method(run: Run, here: SimpleNamespace) -> None:
    base = ("fit", here.table, "-s", here.schema, "-o", here.model)
    for setting, words in (
        ("one_way_share=much", "a number"),
        ("steps=2.5", "a whole number"),
        ("split_label=7", "true or false"),
        ("one_way_share=0.9", "between 0 and 0.6"),
        ("one_way_shre=0.2", "one_way_share"),
        ("steps", "OPTION=VALUE"),
    ):
        result = run(*base, "--set", setting)
        assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert run(*base, "--set", "steps=3", "--set", "steps=4").exit_code == 2
    assert run(*base, "-m", "independent", "--set", "steps=3").exit_code == 2
    assert left_over(here.folder) == {"table.csv", "schema.yaml"}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_sample_writes_every_format(run: Run, made: SimpleNamespace, tmp_path, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    assert run("sample", made.seeded, "-n", 50, "-o", path, "--seed", 1).exit_code == 0
    drawn = pd.read_parquet(path) if ending == ".parquet" else pd.read_csv(path)
    assert len(drawn) == 50
    assert list(drawn.columns) == ["person", "age", "town", "weight", "joined", "ill"]
    assert left_over(tmp_path) == {path.name}


def test_sample_repeats_with_a_seed_and_not_without(run: Run, made: SimpleNamespace, tmp_path) -> None:
    for name, seed in (("a", ["--seed", 3]), ("b", ["--seed", 3]), ("c", []), ("d", [])):
        run("sample", made.seeded, "-n", 200, "-o", tmp_path / f"{name}.csv", *seed)
    texts = [(tmp_path / f"{name}.csv").read_text() for name in "abcd"]
    assert texts[0] == texts[1]
    assert texts[2] != texts[3]


def test_one_row_is_not_called_rows(run: Run, made: SimpleNamespace, tmp_path) -> None:
    assert "Wrote 1 synthetic row to" in run("sample", made.seeded, "-n", 1, "-o", tmp_path / "row.csv").stdout


def test_sample_without_a_number_draws_about_as_many_as_there_were(run: Run, made: SimpleNamespace, tmp_path) -> None:
    run("sample", made.seeded, "-o", tmp_path / "rows.csv")
    assert abs(len(pd.read_csv(tmp_path / "rows.csv")) - 400) < 150


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        (["town=Brock"], lambda t: (t["town"] == "Brock").all()),
        (["town=Brock,Cray"], lambda t: t["town"].isin(["Brock", "Cray"]).all() and t["town"].nunique() == 2),
        (["town="], lambda t: t["town"].isna().all()),
        (["age=60..70"], lambda t: t["age"].between(60, 70).all() and t["age"].nunique() > 3),
        (["age=..30", "ill=yes"], lambda t: (t["age"] <= 30).all() and t["ill"].all()),
        (["weight=80.."], lambda t: (t["weight"] >= 80).all()),
        (["age=60..1000"], lambda t: (t["age"] >= 60).all()),
        (["joined=2021-05-01..2021-05-31"], lambda t: t["joined"].between("2021-05-01", "2021-05-31").all()),
    ],
)
def test_sample_keeps_conditions(run: Run, made: SimpleNamespace, tmp_path, where: list[str], holds) -> None:
    path = tmp_path / "rows.csv"
    options = [word for condition in where for word in ("--where", condition)]
    result = run("sample", made.seeded, "-n", 80, "-o", path, *options)
    assert result.exit_code == 0, result.output
    drawn = pd.read_csv(path)
    assert len(drawn) == 80
    assert holds(drawn)


@pytest.mark.parametrize(
    "where", ["town", "twon=Alm", "town=Delft", "age=70..60", "age=old", "town=Alm..Cray", "age=1000..2000"]
)
def test_sample_refuses_wrong_conditions(run: Run, made: SimpleNamespace, tmp_path, where: str) -> None:
    result = run("sample", made.seeded, "-n", 5, "-o", tmp_path / "rows.csv", "--where", where)
    assert result.exit_code == 2
    assert "where" in result.stderr
    assert left_over(tmp_path) == set()


def test_sample_refuses_wrong_numbers_and_endings(run: Run, made: SimpleNamespace, tmp_path) -> None:
    assert run("sample", made.seeded, "-n", 0, "-o", tmp_path / "rows.csv").exit_code == 2
    result = run("sample", made.seeded, "-n", 5, "-o", tmp_path / "rows.xlsx")
    assert (result.exit_code, ".parquet" in result.stderr) == (2, True)
    assert (
        run("sample", made.seeded, "--where", "ill=true", "--where", "ill=no", "-o", tmp_path / "r.csv").exit_code == 2
    )


def test_verify_recomputes(run: Run, made: SimpleNamespace) -> None:
    result = run("verify", made.fresh, "--release")
    assert result.exit_code == 0
    assert "The certificate holds" in result.stdout
    told = json.loads(run("verify", made.fresh, "--json").stdout)
    assert told["holds"] is True
    assert {finding["what"] for finding in told["findings"]} >= {"epsilon", "released arrays", "schema"}


def test_a_seeded_model_holds_but_may_not_be_released(run: Run, made: SimpleNamespace) -> None:
    assert run("verify", made.seeded).exit_code == 0
    refused = run("verify", made.seeded, "--release")
    assert refused.exit_code == 1
    assert "randomness" in refused.stdout
    assert json.loads(run("verify", made.seeded, "--release", "--json").stdout)["holds"] is False


def test_a_delta_that_would_publish_a_row_may_not_be_released(run: Run, here: SimpleNamespace) -> None:
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-d", 0.01, "-o", here.model)
    assert (result.exit_code, "warning: delta" in result.stderr) == (0, True)
    assert run("verify", here.model).exit_code == 0  # the claim as such is true
    refused = run("verify", here.model, "--release")
    assert refused.exit_code == 1
    assert "NOT hold: delta." in refused.stdout


def test_a_schema_with_open_marks_may_not_be_released(run: Run, made: SimpleNamespace, tmp_path) -> None:
    marked = tmp_path / "marked.understudy"
    with zipfile.ZipFile(made.fresh) as old, zipfile.ZipFile(marked, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.yaml":
                schema = Schema.loads(content.decode())
                content = schema.model_copy(update={"source": {"rows": "data"}}).dumps().encode()
            new.writestr(name, content)
    refused = run("verify", marked, "--release")
    assert refused.exit_code == 1
    assert "NOT hold: public facts." in refused.stdout


def test_without_privacy_everything_says_so(run: Run, here: SimpleNamespace) -> None:
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-e", "inf", "-o", here.model)
    assert result.exit_code == 0
    assert "without privacy" in result.stdout
    assert run("verify", here.model, "--release").exit_code == 1
    assert json.loads(run("verify", here.model, "--json").stdout)["epsilon"] == "inf"
    assert json.loads(run("inspect", here.model, "--json").stdout)["certificate"]["epsilon"] == "inf"
    assert "inf" in run("inspect", here.model).stdout


def test_inspect_lists_every_use_of_the_rows(run: Run, made: SimpleNamespace) -> None:
    shown = run("inspect", made.seeded).stdout
    told = json.loads(run("inspect", made.seeded, "--json").stdout)
    entries = told["certificate"]["entries"]
    assert len(entries) == len(us.load(made.seeded).certificate.entries)
    assert shown.count("noise multiplier") == len(entries)
    assert told["method"] == "mixture"
    assert told["schema"]["label"] == "ill"


def test_methods_lists_options_with_their_defaults(run: Run) -> None:
    told = {method["name"]: method for method in json.loads(run("methods", "--json").stdout)}
    assert list(told) == ["auto", *METHODS]
    assert [name for name, method in told.items() if method["default"]] == ["auto"]
    options = {option["name"]: option for option in told["mixture"]["options"]}
    assert options["steps"]["default"] == Config().steps
    assert all(option["help"] for option in options.values())
    shown = run("methods").stdout
    assert all(name in shown for name in (*told, *options))


def test_auto_says_what_it_picks_and_why(run: Run, here: SimpleNamespace) -> None:
    for epsilon, picked in ((2, "mixture"), (0.001, "independent")):
        told = json.loads(run("plan", "-s", here.schema, "-e", epsilon, "--json").stdout)
        assert told["method"] == picked
        assert "declared rows" in told["why"]
        assert f"auto picks {picked}: the " in run("plan", "-s", here.schema, "-m", "auto", "-e", epsilon).stdout
    named = run("plan", "-s", here.schema, "-m", "mixture", "-e", 2)
    assert "auto" not in named.stdout
    assert "why" not in json.loads(run("plan", "-s", here.schema, "-m", "mixture", "-e", 2, "--json").stdout)
    fitted = run("fit", here.table, "-s", here.schema, "-e", 0.001, "-o", here.model)
    assert fitted.exit_code == 0, fitted.stderr
    assert "auto picked independent: the " in fitted.stderr
    assert json.loads(run("inspect", here.model, "--json").stdout)["method"] == "independent"


def test_options_of_another_method_than_auto_picks_are_refused(run: Run, here: SimpleNamespace) -> None:
    for command in (("fit", here.table, "-o", here.model), ("plan",)):
        result = run(*command, "-s", here.schema, "-e", 0.001, "--set", "steps=5")
        assert result.exit_code == 2
        assert "auto picked independent" in result.stderr
    book = here.folder / "budget.json"
    arguments = ("fit", here.table, "-s", here.schema, "-o", here.model, "--budget-file", book, "--total-epsilon", 2)
    refused = run(*arguments, "-m", "mixture", "--set", "one_way_share=1e-30")
    assert (refused.exit_code, "too large for exact noise" in refused.stderr) == (2, True)
    assert not book.exists()
    assert not here.model.exists()


def test_evaluate_shows_values_beside_references(run: Run, made: SimpleNamespace, tmp_path) -> None:
    rows = tmp_path / "rows.csv"
    run("sample", made.seeded, "-n", 400, "-o", rows, "--seed", 1)
    base = ("evaluate", made.table, rows, "-s", made.schema)
    told = json.loads(run(*base, "--holdout", made.table, "--json").stdout)
    values = {result["name"]: result for result in told["results"]}
    assert 0 < values["tvd_1way"]["value"] < 0.5
    assert values["tvd_1way"]["reference"] == 0.0  # the same rows
    shown = run(*base)
    assert shown.exit_code == 0
    assert "tvd_2way" in shown.stdout
    assert "outside the differential privacy guarantee" in shown.stderr
    assert "holdout" in shown.stderr


def test_evaluate_asks_for_what_was_asked(run: Run, made: SimpleNamespace, monkeypatch) -> None:
    asked: list[object] = []

    def listen(*_: object, which: str, holdout: object, **__: object) -> None:
        asked.append((which, holdout))
        raise OptionError("enough")

    monkeypatch.setattr("understudy.evaluation.suite.evaluate", listen)
    base = ("evaluate", made.table, made.table, "-s", made.schema)
    assert run(*base).exit_code == 2
    assert run(*base, "--full", "--holdout", made.table).exit_code == 2
    assert asked == [("fast", None), ("full", made.table)]


def test_plan_reads_no_rows_and_answers_for_programs(run: Run, here: SimpleNamespace) -> None:
    os.unlink(here.table)
    told = json.loads(run("plan", "-s", here.schema, "-e", 2, "--json").stdout)
    assert told["rows"] == 400
    assert len(told["one_way"]) == 5
    assert told["pairs_measured"] == 6  # four columns beside the label
    assert told["two_way"][0]["columns"] == ["age", "town"]
    assert told["two_way_tvd"] == pytest.approx(np.mean([table["tvd"] for table in told["two_way"]]))
    shown = run("plan", "-s", here.schema, "-e", 2).stdout
    assert "all 6 are measured" in shown
    assert "common ones are not looked for" in shown  # too few rows
    assert "common ones are not looked for" in run("plan", "-s", here.schema, "-m", "independent", "-e", 2).stdout
    assert f"{told['two_way_tvd']:.3f}" in shown
    # At so small an epsilon nothing is counted of columns but their tables.
    alone = json.loads(run("plan", "-s", here.schema, "-m", "independent", "-e", 0.5, "--json").stdout)
    # There the whole budget goes to the one-way tables, here a share of it.
    share = 0.25
    given = json.loads(run("plan", "-s", here.schema, "-e", 0.5, "--json", "--set", f"one_way_share={share}").stdout)
    assert alone["one_way"][0]["noise"] == pytest.approx(given["one_way"][0]["noise"] * math.sqrt(share))


def test_plan_finds_the_epsilon_for_an_error(run: Run, here: SimpleNamespace) -> None:
    told = json.loads(run("plan", "-s", here.schema, "--error", 0.1, "--json").stdout)
    assert told["two_way_tvd"] <= 0.1
    # A little less may do as well, since bins change by jumps; half of it does not.
    less = json.loads(run("plan", "-s", here.schema, "-e", told["epsilon"] / 2, "--json").stdout)
    assert less["two_way_tvd"] > 0.1
    for arguments in (
        ["--error", 0.1, "-e", 1],
        ["--error", 0],
        ["--error", 1.5],
        ["-m", "independent", "--error", 0.1],
    ):
        assert run("plan", "-s", here.schema, *arguments).exit_code == 2


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout.strip() == f"understudy {us.__version__}"
    for name in (
        "draft",
        "confirm",
        "check",
        "plan",
        "fit",
        "sample",
        "verify",
        "inspect",
        "methods",
        "evaluate",
        "demo",
    ):
        assert name in run("--help").stdout
        assert run(name, "--help").exit_code == 0
