"""A standard audit: processes, runs that are kept and gone on from, and what is written down about it."""

import json
import math
import time

import pytest

import understudy as us
from understudy.auditing import audit as audit_module
from understudy.auditing import games, state
from understudy.auditing.audit import audit
from understudy.auditing.bounds import LowerBound
from understudy.auditing.crew import runs_of_workers
from understudy.auditing.mechanisms import StepGame
from understudy.auditing.result import Audit
from understudy.errors import DataError, OptionError
from understudy.privacy.events import Gaussian


def setting(epsilon: float = 4.0, canary: str = "corner") -> games.Setting:
    return games.make_setting("independent", None, epsilon, None, canary=canary)


@pytest.fixture
def no_steps(monkeypatch):
    """Mechanisms have tests of their own."""
    monkeypatch.setattr(audit_module, "mechanisms_of", lambda events, boosted: [])


def test_processes_play_both_worlds_and_end():
    crew = runs_of_workers(setting(), 2)
    runs = [next(crew)[0] for _ in range(8)]
    assert {run.with_row for run in runs} == {True, False}
    crew.close()


def test_a_process_that_cannot_play_says_why():
    broken = games.Setting("mixture", games.SMALL, 1.0, 1e-6, "corner", 100, {"steps": -3})
    with pytest.raises(OptionError, match="mixture cannot be played: steps"):
        next(iter(runs_of_workers(broken, 1)))


def test_an_audit_goes_on_from_what_is_kept(tmp_path, no_steps):
    path = tmp_path / "runs.jsonl"
    short = audit("independent", epsilon=4.0, minutes=0.02, canaries=("corner",), workers=0, state=path)
    before = len(path.read_text().splitlines()) - 1
    assert sum(short.games[0].runs) == before > 2
    with path.open("a") as file:
        file.write('{"key": "half a li')  # where a machine went down
    longer = audit("independent", epsilon=4.0, minutes=0.04, canaries=("corner",), workers=0, state=path)
    assert sum(longer.games[0].runs) > before
    assert len(state.kept_runs(path, setting())) == sum(longer.games[0].runs)
    # All of the time is spent: nothing more is played.
    again = audit("independent", epsilon=4.0, minutes=0.02, canaries=("corner",), workers=0, state=path)
    assert again.games[0].runs == longer.games[0].runs


def test_an_interrupted_audit_keeps_its_runs(tmp_path, no_steps):
    path = tmp_path / "runs.jsonl"
    calls = []

    def stop(stage, done, note=""):
        calls.append(stage)
        if len(calls) > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit("independent", epsilon=4.0, minutes=1, canaries=("corner",), workers=0, state=path, progress=stop)
    assert len(state.kept_runs(path, setting())) == len(calls)


def test_runs_of_other_settings_or_sources_are_not_used(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    own = setting()
    run = games.runner(own, games.pair_of(own))(True)
    state.keeper(path, own)(run, 0.1)
    assert state.kept_runs(path, own) == [(run, 0.1)]
    assert state.kept_runs(path, setting(epsilon=3.0)) == []
    assert state.kept_runs(path, setting(canary="rare")) == []
    monkeypatch.setattr(state, "source_digest", lambda: "another program")
    assert state.kept_runs(path, own) == []


def test_a_file_of_someone_else_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    for text in ("my notes\n", '{"a": 1}\n', ""):
        path.write_text(text)
        with pytest.raises(OptionError, match="not one of `understudy audit`"):
            state.kept_runs(path, setting())
        assert path.read_text() == text


def bound(epsilon: float, *, mu: float | None = None, ceiling: float = 9.0) -> LowerBound:
    rule = "counted" if mu is None else "gaussian"
    return LowerBound(epsilon, rule, 0.99, 1e-6, (100, 100), ceiling, threshold=-math.inf, mu=mu)


def made(shown: float, *, claim: float = 1.0, ceiling: float = 9.0, steps: tuple = ()) -> Audit:
    one = games.Shown(
        "released model", "a score", {"a score": 0.7}, (bound(shown, ceiling=ceiling), bound(7.0, mu=1.0))
    )
    game = games.Game("mst", "corner", "a row", claim, 1e-6, False, (50, 50), 3.0, (one,))
    return Audit("mst", claim, 1e-6, 0.95, (game,), steps, None, 3.0, {"python": "3"}, "0" * 64)


def test_an_audit_is_plain_json():
    step = StepGame("select", "a choice", 1.0, 0.01, bound(0.5))
    found = made(0.4, steps=(step,))
    assert Audit.from_json(found.to_json()) == found
    data = json.loads(found.to_json())
    assert (data["lower_bound"], data["holds"]) == (0.4, True)
    worded = found.to_json().replace('"ceiling": 9.0', '"ceiling": "nine"')
    for text in (
        worded,
        "",
        "{}",
        '{"format": 2}',
        "[1]",
        found.to_json()[:-20],
        found.to_json().replace('"rule"', '"role"'),
    ):
        with pytest.raises(DataError, match="audit file"):
            Audit.from_json(text)


def test_statements_say_what_can_be_concluded():
    assert "stands" in made(0.4).statement()
    assert "at least 0.4 " in made(0.4).statement()
    assert "refuted" in made(1.2).statement()
    assert not made(1.2).holds
    assert "could show no more than 0.7" in made(0.0, ceiling=0.7).statement()
    broken = StepGame("select", "a choice", 1.0, 0.01, bound(1.5))
    assert not made(0.4, steps=(broken,)).holds
    assert "a choice" in made(0.4, steps=(broken,)).statement()


def test_too_little_time_is_told(no_steps):
    # At the usual confidence a bound may be wrong once in twenty times.
    careful = {"workers": 0, "confidence": 1 - 1e-6}
    found = audit("independent", epsilon=4.0, minutes=0.005, canaries=("corner",), **careful)
    assert found.lower_bound < 4
    assert "stands" in found.statement()


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"minutes": 0}, "minutes must be above 0"),
        ({"workers": -1}, "workers"),
        ({"canaries": ()}, "canaries"),
        ({"canaries": ("corner", "corner")}, "canaries"),
        ({"canaries": ("parrot",)}, "parrot"),
        ({"one_run": -1}, "one_run"),
    ],
)
def test_wrong_use_is_refused(given, what):
    with pytest.raises(OptionError, match=what):
        us.audit("independent", **({"minutes": 0.01, "workers": 0} | given))


def test_mechanisms_behind_a_method_are_played(monkeypatch):
    played = []

    def play(name, epsilon, *, confidence):
        played.append((name, epsilon, confidence))
        return StepGame(name, name, epsilon, 1e-2, bound(0.1))

    monkeypatch.setattr(audit_module, "play_mechanism", play)
    monkeypatch.setattr(games, "events_of", lambda setting: (Gaussian(1.0),))
    begin = time.monotonic()
    found = audit("independent", epsilon=4.0, minutes=0.01, canaries=("corner",), workers=0)
    assert played == [("gaussian", 4.0, pytest.approx(0.99))]
    assert found.steps[0].words == "gaussian"
    assert time.monotonic() - begin < 60
