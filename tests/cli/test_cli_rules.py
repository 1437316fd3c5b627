"""Rules between columns through the commands: told, counted, and held."""

import json
from pathlib import Path

import pandas as pd
from cli_helpers import SCHEMA

from understudy.schema import Schema

RULES = """\
  old: {kind: boolean}
rules:
  - {columns: [age], give: old, by: [[{to: 64}, false], [{from: 65}, true]]}
  - {columns: [town, ill], never: [[Alm, true]]}
"""
TOLD = ("age gives old", "town, ill: 1 listed combination never occurs")


def test_from_check_to_rows(run, here):
    rows = pd.read_csv(here.table)
    broken = int(((rows.town == "Alm") & rows.ill).sum())
    rows.assign(old=rows.age >= 65).to_csv(here.table, index=False)
    here.schema.write_text(SCHEMA + RULES)

    checked = run("check", here.table, "-s", here.schema, "-o", here.folder / "off.csv")
    assert checked.exit_code == 0  # they do not stand in the way of a fit
    assert f"{broken} rows breaking rule 2 ({TOLD[1]})" in " ".join(checked.stdout.split())
    assert "rule 1" not in checked.stdout
    written = pd.read_csv(here.folder / "off.csv")
    assert len(written) == broken
    assert written["value"].isna().all()
    found = json.loads(run("check", here.table, "-s", here.schema, "--json").stdout)
    assert found["fits"]
    assert [finding["count"] for finding in found["findings"]] == [broken]

    planned = run("plan", "-s", here.schema, "-m", "independent", "--json")
    assert "old" not in [table["columns"][0] for table in json.loads(planned.stdout)["one_way"]]
    assert all(words in " ".join(planned.stderr.split()) for words in TOLD)

    model = here.folder / "m.understudy"
    fitted = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", model)
    assert fitted.exit_code == 0, fitted.output
    told = " ".join(fitted.stderr.split())
    assert all(words in told for words in TOLD)
    assert "no budget is spent on them: old" in told
    inspected = " ".join(run("inspect", model).stdout.split())
    assert all(words in inspected for words in TOLD)
    assert run("verify", model, "--release").exit_code == 0

    out = here.folder / "out.csv"
    assert run("sample", model, "-n", 300, "-o", out, "--where", "old=true").exit_code == 0
    made = pd.read_csv(out)
    assert len(made) == 300
    assert (made.age >= 65).all()
    assert made.old.all()
    assert not ((made.town == "Alm") & made.ill).any()
    refused = run("sample", model, "-o", out, "--where", "old=true", "--where", "age=3")
    assert refused.exit_code == 2
    assert "no row that holds the schema's rules has 'age' and 'old' like this" in " ".join(refused.stderr.split())


def test_confirming_leaves_rules_as_they_are(run, here):
    here.schema.write_text((SCHEMA + RULES).replace("high: 99}", "high: 99, source: {high: data}}"))
    before = Schema.load(here.schema)
    assert run("confirm", here.schema, "--yes").exit_code == 0
    after = Schema.load(here.schema)
    assert after.unconfirmed() == []
    assert after.rules == before.rules


def test_the_page_shows_a_schema_that_works():
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
    schema = Schema.loads(page.split("```yaml\n")[1].split("```")[0])
    assert len(schema.rules) == 7
    assert list(schema.determined) == ["years", "group"]
