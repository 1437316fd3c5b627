"""What peers are told, how cells are run and kept, and what the referee sees in tables whose quality is known."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bench.cells import ROOT, Method, Record, read_made, run_cell
from bench.datasets import Dataset
from bench.peers import common, comparison
from bench.peers.domain import domain, plain, public_edges
from bench.referee import judge
from understudy import Schema

SCHEMA = """
rows: 600
label: ill
columns:
  age: {kind: integer, low: 0, high: 120}
  gain: {kind: integer, low: 0, high: 99999, log: true, zero_inflated: true}
  weight: {kind: real, low: 0, high: 1, missing: true}
  size: {kind: categorical, values: [1, 2, 3], missing: true}
  ill: {kind: boolean}
  notes: {kind: text}
"""


@pytest.fixture(scope="module")
def schema():
    return Schema.loads(SCHEMA)


def made_table(rows, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 121, rows)
    frame = pd.DataFrame({"age": age, "gain": np.where(rng.random(rows) < 0.8, 0, rng.integers(1, 99999, rows))})
    frame["weight"] = np.where(rng.random(rows) < 0.2, np.nan, age / 120)
    frame["size"] = pd.Series(1 + age // 41).where(rng.random(rows) > 0.1)
    frame["ill"] = (age + rng.normal(0, 10, rows) > 60).astype(int)
    return frame.assign(notes="x")


def test_plain_rows_have_one_spelling(schema):
    frame = made_table(200, 0)
    once = plain(frame, schema)
    assert list(once.columns) == list(schema.modelled)
    assert set(once["size"].dropna()) == {"1", "2", "3"}
    assert set(once["ill"]) == {"0", "1"}
    assert plain(once, schema).equals(once)
    wild = frame.assign(age=500)
    assert (plain(wild, schema)["age"] == 120).all()


def test_times_of_a_declared_format_have_one_spelling_as_text_and_as_times():
    schema = Schema.loads("""
rows: 3
columns:
  day: {kind: datetime, low: 1990-01-01, high: 1999-12-31, resolution: day, format: "%m/%d/%Y %H:%M", missing: true}
""")
    text = pd.DataFrame({"day": ["7/31/1992 0:00", "12/1/1994 00:00", None]})
    times = pd.DataFrame({"day": pd.to_datetime(["1992-07-31", "1994-12-01", None])})
    rows = plain(text, schema)
    assert rows["day"].tolist()[:2] == ["07/31/1992 00:00", "12/01/1994 00:00"]
    assert rows["day"].isna().tolist() == [False, False, True]
    assert rows.equals(plain(times, schema))
    assert rows.equals(plain(rows, schema))


def test_public_cells_cover_every_value_and_come_back_inside_their_cell(schema):
    facts = json.loads(json.dumps(domain(schema)))["columns"]
    rows = plain(made_table(2000, 1), schema)
    rows.loc[0, ["age", "gain", "weight"]] = [120, 99999, 1.0]  # the upper ends
    codes, sizes = common.encode(rows, facts)
    assert all(codes[name].between(0, sizes[name] - 1).all() for name in facts)
    back = common.decode(codes, facts, np.random.default_rng(0))
    again, _ = common.encode(back, facts)
    assert again.equals(codes)
    assert back["size"].isna().equals(rows["size"].isna())
    assert back["size"].dropna().equals(rows["size"].dropna())
    assert (back.loc[rows["gain"] == 0, "gain"] == 0).all()
    assert back["age"].mod(1).eq(0).all()


def test_few_values_get_a_cell_each():
    column = Schema.loads("rows: 9\ncolumns: {n: {kind: integer, low: 2, high: 5}}").columns["n"]
    assert public_edges(column) == [2, 3, 4, 5, 6]


def test_referee_tells_good_tables_from_bad(schema):
    train, fresh, test = (plain(made_table(rows, seed), schema) for rows, seed in ((1500, 2), (1500, 3), (800, 4)))
    rng = np.random.default_rng(0)
    shuffled = pd.DataFrame({name: rng.permutation(fresh[name]) for name in fresh})
    good, bad = judge(fresh, train, test, schema), judge(shuffled, train, test, schema)
    assert bad["tvd2"] > good["tvd2"] + 0.05
    assert bad["tvd3"] > good["tvd3"] + 0.05
    assert good["c2st"] < 0.6 < 0.9 < bad["c2st"]
    flipped = judge(fresh.assign(ill=fresh["ill"].map({"0": "1", "1": "0"})), train, test, schema)
    assert flipped["auc_logistic_regression"] < 0.1 < 0.9 < good["auc_logistic_regression"]
    assert good["tvd2_real"] == bad["tvd2_real"]
    assert abs(good["tvd2"] - good["tvd2_real"]) < 0.05


STAND_IN = """
import sys
sys.path.insert(0, {peers!r})
from common import run

def make(options, frame, facts):
    if options.method == "slow":
        while True:
            pass
    if options.method == "broken":
        raise RuntimeError("no such luck")
    return frame.sample(options.rows, replace=True, random_state=options.seed), 0.5

run(make)
"""


@pytest.fixture
def data(schema, tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text(SCHEMA)
    return Dataset("made", made_table(600, 5), made_table(300, 6), path, "ill", "made here")


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN.format(peers=str(ROOT / "bench" / "peers")))
    monkeypatch.setattr(Method, "command", lambda self: [sys.executable, str(script)])
    return lambda argument: Method(argument, "stand-in", argument)


BUDGET = {"epsilon": 1.0, "delta": 1e-5}


def test_a_cell_is_fitted_in_its_own_process_and_judged(data, stand_in):
    cell = run_cell(data, stand_in("resample"), 0, **BUDGET, cpu_seconds=60)
    assert cell["status"] == "ok"
    assert cell["fit_seconds"] == 0.5
    assert 20 < cell["peak_mib"] < 2000
    assert cell["cpu_seconds"] > 0
    assert cell["tvd2"] < cell["tvd2_real"]  # drawn from the training rows themselves


def test_peak_memory_is_the_programs_own():
    """A child of a large process must not be charged for its parent."""
    ballast = np.ones(60_000_000)  # 480 MB
    command = [sys.executable, "-c", "import common; print(common.peak_mib())"]
    done = subprocess.run(command, cwd=ROOT / "bench" / "peers", capture_output=True, text=True, check=True)
    assert 20 < float(done.stdout) < 400 < ballast.nbytes / 2**20


def test_failures_and_time_outs_are_outcomes(data, stand_in):
    broken = run_cell(data, stand_in("broken"), 0, **BUDGET, cpu_seconds=60)
    assert broken == {"status": "failed: RuntimeError: no such luck"}
    slow = run_cell(data, stand_in("slow"), 0, **BUDGET, cpu_seconds=3)
    assert slow == {"status": "not done within 0.05 minutes of processor time"}


def test_cells_are_kept_and_not_run_again(tmp_path, monkeypatch):
    calls = []

    def fake(data, method, seed, **_):
        calls.append((method.name, seed))
        status = "not done within 15 minutes" if method.name == "slow" else "ok"
        return {"status": status, **({"tvd2": 0.1 + seed} if status == "ok" else {})}

    monkeypatch.setattr(comparison, "run_cell", fake)
    monkeypatch.setattr(comparison, "load", lambda name: None)
    monkeypatch.setattr(comparison, "version", lambda runner: "v1")
    methods = (Method("quick", "ours", "q"), Method("slow", "ours", "s"))
    for _ in range(2):
        cells = comparison.run(("adult",), methods, (0, 1, 2), Record(tmp_path / "cells.jsonl"), epsilon=1.0)
    assert calls == [("quick", 0), ("quick", 1), ("quick", 2), ("slow", 0)]
    quick, slow = comparison.summarise(cells)
    assert quick["tvd2"] == {"mean": pytest.approx(1.1), "spread": pytest.approx(1.0)}
    assert (slow["seeds"], slow["problems"]) == (0, ["not done within 15 minutes"])
    monkeypatch.setattr(comparison, "version", lambda runner: "v2")
    at_hand = comparison.run(("adult",), methods[:1], (0,), Record(tmp_path / "cells.jsonl"), epsilon=1.0, minutes=0)
    assert at_hand == []
    assert len(calls) == 4
    comparison.run(("adult",), methods[:1], (0,), Record(tmp_path / "cells.jsonl"), epsilon=1.0)
    assert calls[-1] == ("quick", 0)
    comparison.run(("adult",), methods[:1], (0,), Record(tmp_path / "cells.jsonl"), epsilon=0.1)
    assert len(calls) == 6


def test_markdown_has_a_line_for_every_method_and_problem():
    rows = comparison.summarise(
        [
            {"key": {"dataset": "d", "method": "m"}, "status": "ok", "tvd2": 0.25, "tvd2_real": 0.01, "peak_mib": 99.0},
            {"key": {"dataset": "d", "method": "p"}, "status": "not done within 15 minutes"},
        ]
    )
    facts = {
        "title": "Some methods",
        "epsilon": 0.5,
        "seeds": 2,
        "use": {"p": "as its page says"},
        "date": "2024-01-01",
        "python": "3.11",
        "cores": 2,
        "datasets": {"d": {"rows": 10, "columns": 2, "note": "n", "confirmed": ["high of x"]}},
        "packages": {"ours": ["understudy==0.1.0"]},
    }
    text = comparison.markdown(rows, facts)
    assert "| m (1 seed) | 0.250 ± 0.000 |" in text
    assert "| p | not done within 15 minutes |" in text
    assert "| real rows | 0.010 |" in text
    assert "high of x" in text
    assert text.startswith("# Some methods, 2024-01-01")
    assert "epsilon 0.5, delta 1e-05, unit one row" in text
    assert "- **p**: as its page says" in text


def test_made_rows_are_read_in_the_judged_form(schema, tmp_path):
    path = tmp_path / "made.csv"
    path.write_text("age,gain,weight,size,ill\n40,0,,2,True\n41,10,0.5,,False\n")
    rows = read_made(path, schema)
    assert list(rows["ill"]) == ["1", "0"]
    assert list(rows["size"].isna()) == [False, True]
    assert rows["weight"].isna().tolist() == [True, False]
