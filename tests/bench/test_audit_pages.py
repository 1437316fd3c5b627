"""Audits of all methods and games against peers: tables, verdicts and pages, from made-up cells. Needs no peer."""

import json

import pandas as pd
import pytest

from bench.audit import methods, peers
from bench.audit.methods_page import bounds_of, lower, page, refuted, verdict
from bench.audit.peer_games import LEAKS, Match, games, matches
from bench.audit.peers_page import READINGS, USES
from bench.audit.peers_page import page as peers_page
from bench.audit.played import EQUAL, LIKE, ONLY, frame_of, readings
from bench.audit.verdicts import SIZE, verdicts
from bench.cells import ROOT, Record
from understudy.auditing.mechanisms import MECHANISMS, StepGame
from understudy.auditing.result import Audit
from understudy.synthesizers.api import METHODS

FACTS = {
    "date": "2024-01-01", "source": "0" * 64, "minutes": 1.0, "workers": 2, "confidence": 0.95, "longer_epsilon": 4.0,
}  # fmt: skip


def bound(epsilon: float, rule: str = "counted") -> dict:
    return {"epsilon": epsilon, "rule": rule, "runs": [90, 90], "ceiling": 3.0}


def cell(name: str, counted: float, gaussian: float, *, valid: bool, claim: float = 1.0, minutes: float = 1.0) -> dict:
    shown = {"view": "released model", "score": "s", "bounds": [bound(counted), bound(gaussian, "gaussian")]}
    game = {"canary": "corner", "gaussian": valid, "runs": [100, 100], "shown": [shown]}
    best = max(counted, gaussian) if valid else counted
    audit = {
        "epsilon": claim, "delta": 1e-6, "lower_bound": best, "games": [game], "seconds": 70.0,
        "steps": [{"name": "gaussian"}],
    }  # fmt: skip
    return {"key": {"subject": name, "epsilon": claim, "minutes": minutes}, "audit": audit}


def step(shown: float, *, claim: float = 1.0) -> dict:
    told = {"name": "gaussian", "words": "a count", "epsilon": claim, "delta": 1e-6, "bound": bound(shown, "gaussian")}
    return {"key": {"mechanism": "gaussian", "epsilon": claim}, "step": told, "seconds": 2.0}


# --- methods ---


def test_a_bound_by_gaussian_dp_counts_where_every_event_is_gaussian():
    assert bounds_of(cell("a", 0.2, 0.7, valid=True)["audit"])[0]["epsilon"] == 0.7
    assert bounds_of(cell("a", 0.2, 0.7, valid=False)["audit"])[0]["epsilon"] == 0.2
    assert bounds_of(cell("a", 0.2, 0.7, valid=False)["audit"], "gaussian")[0]["epsilon"] == 0.7


def test_what_passes_its_claim_is_named():
    good, bad = cell("good", 0.2, 0.7, valid=True), cell("bad", 1.2, 0.7, valid=False)
    assert refuted([good, bad], [step(0.9), step(1.1)]) == ["bad at epsilon 1", "a count at epsilon 1"]
    assert verdict([good], [step(0.9)]).startswith("No bound passes its claim. Every mechanism")
    assert "Refuted: bad at epsilon 1" in verdict([bad], [step(0.9)])
    assert "half is not reached by a count" in verdict([good], [step(0.4)])


def test_the_page_rounds_down_and_brackets_indications():
    assert [lower(value) for value in (0.699, 0.004, 3.999)] == ["0.69", "0", "3.99"]
    text = page(
        [cell("one", 0.2, 0.699, valid=True), cell("two", 0.2, 0.7, valid=False)],
        [step(0.9)],
        [cell("mixture", 0.5, 1.5, valid=True, claim=4.0, minutes=9.0)],
        FACTS,
    )
    assert "| one | 1 | 1e-06 | 0.69 | 0.20 | 0.69 | corner, released model | 200 | 70 |" in text
    assert "| two | 1 | 1e-06 | 0.20 | 0.20 | (0.70) |" in text
    assert "| a count | 1e-06 | 1.00 | 0.90 | 90% | 90 | 2 | one, two |" in text
    assert "| 9 | 200 | 1.50 |" in text


def test_everything_registered_is_audited_and_boosting_and_images_too():
    names = [subject.name for subject in methods.subjects()]
    assert set(METHODS) < set(names)
    assert any(subject.boost for subject in methods.subjects())
    assert any(subject.schema is methods.PICTURES for subject in methods.subjects())
    assert len(names) == len(set(names))


def test_a_run_goes_on_and_other_code_counts_for_nothing(tmp_path, monkeypatch):
    """The audit itself has tests of its own: here it is made up."""
    asked = []

    def audit(method, schema, *, epsilon, play_step, **_):
        asked.append((method, epsilon))
        found = play_step("gaussian", epsilon, 0.99)
        return Audit(method, epsilon, 1e-6, 0.95, (), (found,), None, 3.0, {}, "0" * 64)

    def play(name, epsilon, *, confidence):
        asked.append((name, epsilon))
        return StepGame(
            name, name, epsilon, 1e-6, methods.LowerBound(0.9 * epsilon, "counted", confidence, 1e-6, (9, 9), 3.0)
        )

    monkeypatch.setattr(methods, "audit", audit)
    monkeypatch.setattr(methods, "play_mechanism", play)
    arguments = ["methods", "--subjects", "independent", "--epsilons", "1", "--longer", "--cache", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [*arguments, "--results", str(tmp_path)])
    methods.main()
    assert asked == [*((name, 1.0) for name in MECHANISMS), ("independent", 1.0)]
    methods.main()
    assert len(asked) == len(MECHANISMS) + 1
    (written,) = tmp_path.glob("*-audit-methods.json")
    told = json.loads(written.read_text())
    assert told["audits"][0]["audit"]["steps"][0]["bound"]["epsilon"] == 0.9
    monkeypatch.setattr(methods, "source_digest", lambda: "another program")
    methods.main()
    assert len(asked) == 2 * len(MECHANISMS) + 2


# --- peers ---


def test_tables_are_neighbours_and_the_row_is_what_it_is_called():
    for game in games().values():
        assert all(len(row) == len(game.columns) == len(game.canary) for row in game.others)
        own, others = game.canary, list(zip(*game.others, strict=True))
        new = [value not in column for value, column in zip(own, others, strict=True)]
        assert any(new) == (game.name in LEAKS)
        with_row, without = (frame_of({"columns": game.columns, "others": game.others, "canary": own}, with_row=world)
                             for world in (True, False))  # fmt: skip
        pd.testing.assert_frame_equal(with_row.iloc[:-1].astype(object), without.astype(object), check_dtype=False)


def test_every_match_has_a_runner_and_words():
    for match in matches():
        assert (ROOT / "bench" / "audit" / f"run_{match.peer}.py").exists()
        assert (match.peer, match.use) in USES
        assert match.game in games()
    known = {(match.peer, match.use, match.game) for match in matches()}
    assert set(READINGS) <= known


def test_readings_find_what_only_the_row_could_have():
    job = {
        "columns": {"town": {"values": ["a", "b", "c"]}, "wage": {"low": 0, "high": 50}},
        "others": [["a", 10], ["b", 40]],
        "canary": ["c", 1000],
    }
    made = pd.DataFrame({"town": ["a", "c", None, "b"], "wage": [5.0, 996.0, 79.0, 81.0]})
    assert readings(job, made) == {LIKE: 2.0, EQUAL: 1.0, ONLY: 4.0}
    absent = {**job, "canary": [None, 10]}
    assert readings(absent, made)[ONLY] == 4.0  # c, 996, a missing cell, 81
    assert readings({**absent, "others": [["a", 10], [None, 500]]}, made)[ONLY] == 2.0  # b and c


def lines(with_row: list[dict], without: list[dict]) -> list[dict]:
    pairs = [(True, found) for found in with_row] + [(False, found) for found in without]
    return [{"with": world, **found} for world, found in pairs]


KEY = {"peer": "dpmm", "method": "mst", "use": "declared", "delta": 1e-6}


def test_an_event_that_cannot_happen_without_the_row_refutes():
    seen = [{"readings": {ONLY: 3.0}}] * 38 + [{"failed": "ValueError"}] * 2
    unseen = [{"readings": {ONLY: 0.0}}] * 40
    (found,) = verdicts({"key": KEY | {"game": "missing"}, "lines": lines(seen, unseen)})
    assert found["refuted"]
    assert found["seen"] == [38, 0]
    assert found["failed"] == [2, 0]
    assert 1 < found["bound"] < found["ceiling"]
    (found,) = verdicts({"key": KEY | {"game": "missing"}, "lines": lines(unseen, unseen)})
    assert found["bound"] == 0
    (found,) = verdicts({"key": KEY | {"game": "missing"}, "lines": lines(seen, seen)})
    assert not found["refuted"]


def test_scores_share_the_error_and_the_number_of_rows_is_told_apart():
    one = [{"readings": {LIKE: float(n % 7), EQUAL: 0.0, ONLY: 0.0, SIZE: 121.0}} for n in range(80)]
    two = [{"readings": {LIKE: float(n % 7), EQUAL: 0.0, ONLY: 0.0, SIZE: 120.0}} for n in range(80)]
    rows, size = verdicts({"key": KEY | {"game": "duplicate"}, "lines": lines(one, two)})
    assert (rows["refuted"], size["refuted"]) == (False, True)
    assert size["what"] == SIZE
    assert verdicts({"key": KEY | {"game": "duplicate"}, "lines": lines(one, [])}) == []


def test_the_page_tells_findings_and_what_stood():
    def judged(what: str, shown: float) -> dict:
        return {"what": what, "bound": shown, "ceiling": 2.0, "refuted": shown > 1, "runs": [40, 41], "failed": [0, 0]}

    found = [
        KEY | {"game": "missing", "status": "ok", "verdicts": [judged(ONLY, 1.999) | {"seen": [39, 0]}]},
        KEY | {"game": "value", "status": "ok", "verdicts": [judged(ONLY, 0.0) | {"seen": [20, 21]}]},
        KEY | {"game": "duplicate", "status": "failed: no memory", "verdicts": []},
        KEY
        | {"game": "constant", "status": "ok", "verdicts": [judged(ONLY, 0.0) | {"seen": [1, 0], "failed": [2, 1]}]},
    ]
    text = peers_page(found, {"date": "2024-01-01", "epsilon": 1.0, "packages": {"dpmm": ["dpmm==0.1"]}})
    assert "| 1.99 | 2.00 | 40 | 39 / 0 | **refuted** [1] |" in text
    assert "1. A finding in careful use: a column gets missing cells" in text
    assert "| 0 | 2.00 | 40 | 20 / 21 | stands |" in text
    assert "failed: no memory" in text
    assert "| 40 (3 ended with an error) | 1 / 0 | stands |" in text
    assert "in careful use: dpmm mst (a value that no other row has); dpmm mst (another value" in text
    assert "Of 3 games for leaks in careful use, 2 stood" in text
    assert "smartnoise" not in text.split("## Uses")[1].split("- mbi")[0].split("- AIM")[0]


def test_games_that_are_done_are_not_played_again(tmp_path, monkeypatch):
    played = []
    monkeypatch.setattr(peers, "packages", lambda peer: ("dpmm==0.1",))
    monkeypatch.setattr(peers, "VENVS", tmp_path)
    (tmp_path / "dpmm").mkdir()

    def play(match, seconds, cache):
        played.append(match)
        return {"status": "ok", "lines": lines([{"readings": {ONLY: 1.0}}] * 9, [{"readings": {ONLY: 0.0}}] * 9)}

    monkeypatch.setattr(peers, "play", play)
    monkeypatch.setattr(peers, "matches", lambda: (Match("dpmm", "mst", "declared", "missing", 9),))
    places = ["--cache", str(tmp_path), "--results", str(tmp_path)]
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["peers", *places])
        peers.main()
    assert len(played) == 1
    assert len(Record(tmp_path / "peers.jsonl").cells) == 1
    monkeypatch.setattr(peers, "VENVS", tmp_path / "nowhere")
    with pytest.raises(SystemExit):
        peers.main()
