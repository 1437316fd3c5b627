"""The comparison with peers: which there are, how a run goes on, and the picture of what came out. Needs no peer."""

import json

import pytest

from bench.cells import ROOT, Method
from bench.peers import __main__ as command
from bench.peers import comparison, install
from bench.peers.plot import plot
from understudy.synthesizers import api

LACKING = command.without_environment
SUMMARY = [
    {
        "dataset": "d",
        "method": method,
        "seeds": 2,
        "problems": [],
        "tvd2": {"mean": 0.1, "spread": 0.01},
        "tvd2_real": {"mean": 0.05, "spread": 0.0},
        "cpu_seconds": {"mean": seconds, "spread": 1.0},
    }
    for method, seconds in (("quick", 2.0), ("slow", 300.0))
]


def test_every_peer_has_an_environment_a_runner_and_words_about_its_use():
    for peer in command.PEERS:
        assert peer.runner in install.PEERS
        assert (ROOT / "bench" / "peers" / f"run_{peer.runner}.py").exists()
        assert comparison.USE[peer.runner]


def test_ours_are_methods_of_the_house():
    assert {method.name for method in command.OURS} <= set(api.METHODS)
    assert set(api.METHODS) < set(command.known())


@pytest.fixture
def run_peers(tmp_path, monkeypatch):
    """Runs the command with cells made up, and tells which were asked for."""
    asked = []

    def fake(data, method, seed, **_):
        asked.append((method.name, seed))
        if method.name == "dpmm mst":
            return {"status": "failed: no environment"}
        return {"status": "ok", "tvd2": 0.1 + seed / 100, "cpu_seconds": 3.0, "fit_seconds": 2.0}

    told = {"date": "2024-01-01", "python": "3", "cores": 2, "datasets": {}, "packages": {}, "use": {}}
    told["datasets"]["titanic"] = {"rows": 9, "columns": 2, "note": "n", "confirmed": []}
    monkeypatch.setattr(comparison, "run_cell", fake)
    monkeypatch.setattr(comparison, "load", lambda name: None)
    monkeypatch.setattr(command, "without_environment", lambda methods: [])
    monkeypatch.setattr(comparison, "version", lambda runner: "v1")
    monkeypatch.setattr(
        comparison,
        "facts_of",
        lambda d, m, seeds, title, epsilon: told | {"seeds": seeds, "title": title, "epsilon": epsilon},
    )

    def run(*arguments):
        places = ["--results", str(tmp_path), "--cells", str(tmp_path / "cells.jsonl")]
        monkeypatch.setattr("sys.argv", ["bench.peers", "--datasets", "titanic", *places, *arguments])
        command.main()
        return asked

    return run


def test_a_run_writes_a_page_numbers_and_a_picture_and_goes_on(run_peers, tmp_path):
    asked = run_peers("--methods", "independent", "dpmm mst", "--seeds", "0", "1")
    assert asked == [("independent", 0), ("independent", 1), ("dpmm mst", 0), ("dpmm mst", 1)]
    page = (tmp_path / "2024-01-01-peers.md").read_text()
    assert "| independent | 0.105 ± 0.007 |" in page
    assert "| dpmm mst | failed: no environment |" in page
    assert "(2024-01-01-peers.png)" in page
    assert (tmp_path / "2024-01-01-peers.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "2024-01-01-peers.json").read_text())["cells"]) == 4
    assert run_peers("--methods", "independent", "--seeds", "0", "1", "2")[4:] == [("independent", 2)]


def test_a_name_that_no_one_has_is_refused(run_peers):
    with pytest.raises(SystemExit):
        run_peers("--methods", "dpmm nothing")


def test_the_picture_is_left_out_where_nothing_came_to_an_end(tmp_path):
    assert plot(SUMMARY, tmp_path / "some.png")
    assert not plot([{**row, "seeds": 0} for row in SUMMARY], tmp_path / "none.png")
    assert [file.name for file in tmp_path.iterdir()] == ["some.png"]


def test_a_missing_environment_is_refused_with_the_remedy(run_peers, monkeypatch, capsys):
    methods = (Method("x y", "nobody", "y"), Method("x z", "nobody", "z"), Method("mst", "ours", "mst"))
    assert LACKING(methods) == ["nobody"]
    monkeypatch.setattr(command, "without_environment", lambda methods: ["nobody"])
    with pytest.raises(SystemExit):
        run_peers("--methods", "independent")
    assert "run python -m bench.peers.install nobody" in capsys.readouterr().err
