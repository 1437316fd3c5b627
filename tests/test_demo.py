"""The demo table does what its docstring says, and the demo command leaves what it promises."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from understudy.cli.main import app
from understudy.demo import BLOOD, REGIONS, demo_risk, demo_schema, demo_table
from understudy.table.check import check_table
from understudy.table.draft import draft


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    return demo_table(60_000, seed=5)


def test_same_seed_same_table() -> None:
    pd.testing.assert_frame_equal(demo_table(50, seed=3), demo_table(50, seed=3))
    assert not demo_table(50, seed=3).equals(demo_table(50, seed=4))


def test_fits_its_schema_and_clips_nothing(patients: pd.DataFrame) -> None:
    schema = demo_schema()
    assert list(patients.columns) == list(schema.columns)
    assert check_table(patients, schema).findings == {}
    assert schema.unconfirmed() == []


def test_rare_values_have_their_shares(patients: pd.DataFrame) -> None:
    for column, shares in (("region", REGIONS), ("blood", BLOOD)):
        seen = patients[column].value_counts(normalize=True)
        for value, share in shares.items():
            assert abs(seen[value] - share) < 5 * np.sqrt(share / len(patients)), value
        assert min(shares.values()) < 0.01


def test_nurses_round_to_ten(patients: pd.DataFrame) -> None:
    tens = float((patients["systolic"] % 10 == 0).mean())
    assert abs(tens - (0.45 + 0.55 / 10)) < 0.02


def test_missing_cells_depend_on_other_columns(patients: pd.DataFrame) -> None:
    absent, young = patients["cholesterol"].isna(), patients["age"] < 40
    assert abs(absent[young].mean() - 0.75) < 0.02
    assert abs(absent[~young].mean() - 0.15) < 0.02
    unanswered, old = patients["activity"].isna(), patients["age"] >= 60
    assert abs(unanswered[old].mean() - 0.12) < 0.01
    assert abs(unanswered[~old].mean() - 0.02) < 0.01


def test_cost_is_inflated_with_zeros_more_so_in_the_capital(patients: pd.DataFrame) -> None:
    free, capital = patients["cost"] == 0, patients["region"] == "Capital"
    assert abs(free[capital].mean() - 0.80) < 0.02
    assert abs(free[~capital].mean() - 0.55) < 0.01


def test_risk_is_the_truth_about_the_label(patients: pd.DataFrame) -> None:
    risk = demo_risk(60_000, seed=5)
    for part in np.array_split(np.argsort(risk), 10):
        expected, spread = risk[part].mean(), np.sqrt((risk[part] * (1 - risk[part])).sum()) / len(part)
        assert abs(patients["readmitted"].to_numpy()[part].mean() - expected) < 4.5 * spread


def test_label_depends_on_an_interaction_that_no_single_column_shows(patients: pd.DataFrame) -> None:
    rate = patients.groupby(["diabetic", patients["activity"].isin(["medium", "high"])])["readmitted"].mean()
    assert rate[True, False] - rate[False, False] > 0.2  # diabetes harms those who do not move
    assert rate[True, True] - rate[False, True] < 0.0  # and not those who do


def test_draft_guesses_the_kinds_that_rows_can_tell() -> None:
    kinds = {name: column.kind for name, column in draft(demo_table(3_000)).columns.items()}
    told = {name: column.kind for name, column in demo_schema().columns.items()}
    # The order of an ordinal column's values is not in the rows.
    assert kinds == told | {"smoking": "categorical", "activity": "categorical"}


def test_demo_command_leaves_everything_it_promises(tmp_path) -> None:
    folder = tmp_path / "made" / "demo"
    result = CliRunner().invoke(app, ["demo", "-o", str(folder)])
    assert result.exit_code == 0, result.output
    expected = {
        "patients.csv",
        "patients.yaml",
        "model.understudy",
        "certificate.json",
        "synthetic.csv",
        "report.html",
        "histograms.png",
        "dependence.png",
    }
    assert {path.name for path in folder.iterdir()} == expected
    assert json.loads((folder / "certificate.json").read_text())["rng"] == "os-entropy"
    for name in ("histograms.png", "dependence.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    synthetic = pd.read_csv(folder / "synthetic.csv")
    assert list(synthetic.columns) == [name for name in demo_schema().columns if name != "remarks"]
    assert "it holds" in result.stdout
    numbers = {
        line[:26].strip(): [float(word) for word in line[26:].split()]
        for line in result.stdout.splitlines()
        if line.startswith(("TVD of", "AUC of"))
    }
    one, two, auc = numbers["TVD of columns"], numbers["TVD of pairs of columns"], numbers["AUC of readmission"]
    # Fresh rows score about 0.011 and 0.032, and independent columns an AUC of 0.5.
    assert one[0] < 0.03
    assert two[0] < 0.08
    assert 0.77 < auc[0] < auc[2]
    assert 0.80 < auc[1] < auc[2]


def test_demo_refuses_a_file_in_place_of_a_folder(tmp_path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    result = CliRunner().invoke(app, ["demo", "-o", str(place)])
    assert result.exit_code == 2
    assert "it is a file" in result.stderr
