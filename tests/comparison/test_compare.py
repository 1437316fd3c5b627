"""The grid as a whole: a real run, going on where one stopped, what it refuses, and what it gives back."""

import json
import math
import os

import numpy as np
import pytest
from comparison_helpers import EVIL, cell, compared

import understudy as us
from understudy.comparison import runs
from understudy.comparison.grid import FAILED, REFUSED, Cell
from understudy.comparison.tables import split_rows, view_of
from understudy.errors import DataError, OptionError, SchemaError
from understudy.evaluation.inputs import open_table
from understudy.schema import Schema
from understudy.table.read import read_table

ONE = {"methods": ["independent"], "jobs": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, people):
    folder = tmp_path_factory.mktemp("compared")
    people.to_csv(folder / "people.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def run(folder, schema):
    """Two cells, one of them without privacy; and what was told on the way."""
    said: list[tuple] = []
    found = us.compare(
        folder / "people.csv",
        schema,
        epsilons=[math.inf, 1],
        seeds=1,
        state=folder / "state",
        progress=lambda *told: said.append(told),
        **ONE,
    )
    return found, said


def never(*_, **__):
    raise AssertionError("a cell was run")
    yield


def test_a_run_gives_a_table_words_json_and_a_page(run, schema) -> None:
    found, said = run
    cells = found.cells
    assert list(cells["status"]) == ["ok", "ok"]
    assert list(cells["epsilon"]) == [1.0, math.inf]
    assert cells["gap"].notna().all()
    assert cells.loc[1, "tvd_2way"] < cells.loc[0, "tvd_2way"]  # noise costs
    assert cells.loc[0, "fresh_tvd_2way"] == cells.loc[1, "fresh_tvd_2way"]  # the same rows are held back
    assert found.recommendation.startswith("Take independent at epsilon 1.")
    assert list(found.summary()["method"]) == ["independent", "independent"]
    data = json.loads(found.to_json())
    assert data["cells"][1]["epsilon"] == "inf"
    assert data["recommendation"]["method"] == "independent"
    assert "outside the differential privacy guarantee" in data["notes"][0]
    assert "independent" in found._repr_html_()
    assert "Take independent" in repr(found)
    page = found.html()
    assert "not covered by the guarantee" in page
    assert "--choose private" in page
    assert "--on simulated" in page
    stages = [stage for stage, *_ in said]
    assert stages[0] == "reading the table"
    assert stages[-1] == "2 of 2 fits"
    assert any("independent at epsilon 1, repeat 1" in note for _, _, *notes in said for note in notes)


def test_a_second_run_runs_nothing_and_a_larger_grid_only_what_is_new(run, folder, schema, monkeypatch) -> None:
    first, _ = run
    monkeypatch.setattr(runs, "run_cells", never)
    again = us.compare(folder / "people.csv", schema, epsilons=[1, math.inf], seeds=1, state=folder / "state", **ONE)
    assert again.results == first.results
    asked: list = []

    def pretend(questions, **_):
        for job, _header, rows in questions:
            asked.append(job)
            assert len(rows) > 1000
            yield job, cell(job.method, job.epsilon, 0.1, job.repeat)

    monkeypatch.setattr(runs, "run_cells", pretend)
    more = us.compare(folder / "people.csv", schema, epsilons=[1, 2], seeds=2, state=folder / "state", **ONE)
    assert {(job.epsilon, job.repeat) for job in asked} == {(2.0, 0), (1.0, 1), (2.0, 1)}
    assert more.results[0] == first.results[0]


def test_a_table_that_has_changed_is_not_taken_for_the_old_one(run, folder, schema) -> None:
    before = (folder / "state").read_bytes()
    about = (folder / "people.csv").stat()
    os.utime(folder / "people.csv", ns=(about.st_atime_ns, about.st_mtime_ns + 1))
    try:
        with pytest.raises(OptionError, match="another table"):
            us.compare(folder / "people.csv", schema, epsilons=[1], seeds=1, state=folder / "state", **ONE)
    finally:
        os.utime(folder / "people.csv", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (folder / "state").read_bytes() == before


def test_no_value_of_the_table_is_in_the_state_file(run, folder) -> None:
    text = (folder / "state").read_text()
    assert "Brock" not in text
    assert "real_points" not in text


def test_simulated_tables_need_no_table_and_differ_by_repeat(schema, monkeypatch) -> None:
    asked: list = []

    def pretend(questions, **_):
        for job, header, rows in questions:
            asked.append((header["simulated"], rows))
            yield job, cell(job.method, job.epsilon, 0.1, job.repeat)

    monkeypatch.setattr(runs, "run_cells", pretend)
    found = us.compare(None, schema, epsilons=[1], seeds=2, **ONE)
    assert asked == [(0, b""), (1, b"")]
    assert "no private row was read" in found.notes[0]
    page = found.html()
    assert "steward" not in page
    assert "uses no private row" in page


def test_failures_are_results_with_their_messages(schema, people, monkeypatch) -> None:
    def pretend(questions, **_):
        for job, _header, _rows in questions:
            where = {"method": job.method, "epsilon": job.epsilon, "repeat": job.repeat}
            if job.epsilon < 1:
                yield job, Cell(**where, status=REFUSED, message=f"too little {EVIL}")
            else:
                yield job, cell(job.method, job.epsilon, 0.1, job.repeat)

    monkeypatch.setattr(runs, "run_cells", pretend)
    found = us.compare(people, schema, epsilons=[0.1, 1], seeds=2, **ONE)
    assert list(found.cells["status"]) == [REFUSED, "ok"] * 2
    assert "2 of 4 fits came to no end" in " ".join(found.notes)
    page = found.html()
    assert "Fits that came to no end" in page
    assert "too little &lt;script&gt;" in page
    assert "<script" not in page


def test_a_refusal_of_a_real_fit_is_a_cell(schema, people) -> None:
    found = us.compare(people, schema, epsilons=[1e-18], delta=1e-18, seeds=1, **ONE)
    (only,) = found.results
    assert only.status == REFUSED, only
    assert "too large for exact noise" in only.message
    assert found.recommendation.startswith("No recommendation.")


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"methods": ["mixtur"]}, OptionError, "did you mean 'mixture'"),
        ({"methods": []}, OptionError, "at least one"),
        ({"methods": "mixture"}, OptionError, "a list of names"),
        ({"epsilons": ["one"]}, OptionError, "must be a number"),
        ({"epsilons": [float("nan")]}, OptionError, "must be a number"),
        ({"epsilons": [-1]}, OptionError, "above 0"),
        ({"epsilons": []}, OptionError, "at least one number"),
        ({"seeds": 0}, OptionError, "seeds must be"),
        ({"jobs": 0}, OptionError, "jobs must be"),
        ({"limit": 0}, OptionError, "limit must be"),
        ({"seed": -1}, OptionError, "seed must be"),
        ({"which": "all"}, OptionError, "fast or full"),
        ({"holdout": 1.5}, OptionError, "share between 0 and 1"),
        ({"options": {"independent": {"steps": 3}}}, OptionError, "no option 'steps'"),
        ({"options": {"mixture": {}}}, OptionError, "not compared"),
        ({"state": "x"}, OptionError, "files"),
        ({"source": None, "holdout": 0.5}, OptionError, "simulated tables bring fresh rows"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(people, schema, monkeypatch, change, error, told) -> None:
    monkeypatch.setattr(runs, "run_cells", never)
    arguments = {"source": people, "methods": ["independent"], "epsilons": [1.0], "seeds": 1} | change
    with pytest.raises(error, match=told):
        us.compare(arguments.pop("source"), schema, **arguments)


def test_tables_that_do_not_fit_are_refused(people, schema, monkeypatch) -> None:
    monkeypatch.setattr(runs, "run_cells", never)
    arguments = {"methods": ["independent"], "epsilons": [1.0], "seeds": 1}
    with pytest.raises(DataError, match="'age'"):
        us.compare(people, schema, holdout=people.drop(columns="age"), **arguments)
    with pytest.raises(DataError, match="too few rows"):
        us.compare(people.head(1), schema, **arguments)
    with pytest.raises(DataError, match="too few rows held back"):
        us.compare(people, schema, holdout=people.head(2), **arguments)
    marked = Schema.loads(schema.dumps().replace("rows: 300", "rows: 300\nsource: {rows: data}"))
    with pytest.raises(SchemaError, match="confirm"):
        us.compare(people, marked, **arguments)
    with pytest.raises(SchemaError, match="rows"):
        us.compare(people, Schema.loads(schema.dumps().replace("rows: 300\n", "")), **arguments)


def test_options_reach_the_fit_whatever_their_type(people, schema, monkeypatch) -> None:
    asked: list = []

    def pretend(questions, **_):
        for job, header, _rows in questions:
            asked.append(header["options"])
            yield job, cell(job.method, job.epsilon, 0.1)

    monkeypatch.setattr(runs, "run_cells", pretend)
    monkeypatch.setattr(runs.api, "make_config", lambda module, options: None)
    given = {"independent": {"sizes": [64, 32], "steps": 3}}
    us.compare(people, schema, epsilons=[1], seeds=1, options=given, **ONE)
    assert json.loads(json.dumps(asked)) == [{"sizes": [64, 32], "steps": 3}]


def test_rows_are_held_back_by_coins_of_their_own(people, schema) -> None:
    whole = read_table(people, schema)
    rows = split_rows(people, schema, 0.25, coins=5)
    held = len(rows.held_back["age"])
    assert 45 < held < 105
    assert held + len(rows.fitted["age"]) == 300
    together = np.concatenate([rows.fitted["age"], rows.held_back["age"]])
    assert np.array_equal(np.sort(together), np.sort(whole.codes("age")))
    # What a row holds changes neither its own coin nor those of others.
    other = people.assign(age=people["age"].where(people.index != 7, 99))
    again = split_rows(other, schema, 0.25, coins=5)
    assert (again.fitted["weight"] == rows.fitted["weight"]).all()
    assert len(split_rows(people, schema, people.head(50), coins=5).fitted["age"]) == 300


def test_codes_are_seen_as_the_metrics_see_tables(people, schema) -> None:
    table = read_table(people, schema)
    mine = view_of({name: table.codes(name) for name in schema.modelled}, schema)
    theirs = open_table(people, schema, role="real")
    assert mine.facts == theirs.facts
    for name in schema.modelled:
        assert np.array_equal(mine.codes[name], theirs.codes[name], equal_nan=True)
        assert mine.codes[name].dtype == theirs.codes[name].dtype


def test_a_table_of_many_methods_keeps_them_apart() -> None:
    many = [
        cell(f"method {at} {EVIL}", epsilon, 0.02 * at, r) for at in range(12) for epsilon in (0.5, 1.0) for r in (0, 1)
    ]
    page = compared(many).html()
    assert "<script" not in page
    assert page.count("<svg") == 2 * 12 + 5 + 3  # two legends, overall and four figures, three costs
    lost = [Cell(method="a", epsilon=1.0, repeat=0, status=FAILED, message="gone")]
    assert "No recommendation." in compared(lost).html()
