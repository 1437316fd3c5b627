"""Games on the whole path: any method can be played, what is shown stays below the claim, and a broken one loses."""

import dataclasses
import itertools

import numpy as np
import pytest

import understudy as us
from understudy.auditing import canaries, games, scores
from understudy.auditing.mechanisms import mechanisms_of
from understudy.auditing.one_run import one_run
from understudy.auditing.other_readings import PICKS
from understudy.errors import OptionError, SchemaError
from understudy.privacy import BoundedRange, Gaussian, Parallel, PoissonSampled, SelfComposed, gaussian
from understudy.schema import Schema
from understudy.synthesizers import one_way
from understudy.synthesizers.api import METHODS, method_module
from understudy.table.table import Table

MIXED = Schema.loads("""
rows: 300
label: ill
columns:
  age: {kind: integer, low: 0, high: 90, missing: true}
  wage: {kind: real, low: 0, high: 1000, missing: true}
  town: {kind: categorical, values: [Aachen, Bern, Ulm], missing: true}
  seen: {kind: datetime, low: 2021-01-01, high: 2021-12-31, resolution: day}
  ill: {kind: boolean}
""")


def test_every_canary_is_a_row_more():
    for name in canaries.CANARIES:
        pair = canaries.pair_from_schema(name, MIXED, 50)
        with_row, without = pair.table(True), pair.table(False)
        assert with_row.rows == without.rows + 1 == 51
        for column in MIXED.modelled:
            np.testing.assert_array_equal(with_row.codes(column)[:-1], without.codes(column))


def test_canaries_are_what_they_say():
    made = {name: canaries.pair_from_schema(name, MIXED, 60) for name in canaries.CANARIES}
    corner = made["corner"].row
    assert (corner["age"][0], corner["wage"][0], corner["town"][0], corner["ill"][0]) == (90, 1000.0, 2, 1)
    missing = made["missing"].row
    assert missing["age"][0] == 91
    assert np.isnan(missing["wage"][0])
    assert missing["ill"][0] == 0
    assert not (made["rare"].without["town"] == made["rare"].row["town"]).any()
    assert all(len(np.unique(codes)) == 1 for codes in made["outlier"].without.values())
    same = np.all([made["duplicate"].without[c] == made["duplicate"].row[c] for c in ("age", "town", "ill")], axis=0)
    assert same.any()
    with pytest.raises(OptionError, match="choose from duplicate"):
        canaries.pair_from_schema("parrot", MIXED, 10)


def test_canaries_stand_in_a_given_table():
    table = canaries.pair_from_schema("corner", MIXED, 30).table(False)
    pair = canaries.pair_from_table("outlier", table)
    assert pair.rows == 30
    assert pair.table(True).rows == 31
    found = games.play("independent", MIXED, 4.0, runs=9, table=table)
    assert found.runs == (9, 9)
    with pytest.raises(OptionError, match="not sent to other processes"):
        games.play("independent", MIXED, 4.0, runs=9, table=table, workers=1)


def compiles(method: str) -> bool:
    """Methods that train on batches spend seconds on compiling."""
    return any(field.name == "batch" for field in dataclasses.fields(method_module(method).Config))


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.slow) if compiles(name) else name for name in METHODS]
)
def test_every_method_can_be_played(method):
    """A few runs of either world: readings of both attackers are numbers, whatever the method releases."""
    setting = games.make_setting(method, None, 4.0, None, canary="outlier")
    pair = games.pair_of(setting)
    one = games.runner(setting, pair)
    runs = [one(world) for world in (True, False)]
    for run in runs:
        assert set(run.readings) == set(scores.VIEWS)
        assert all(np.isfinite(list(readings.values())).all() for readings in run.readings.values())
        assert scores.CELLS in run.readings[scores.MODEL] or scores.LOG_PROBABILITY in run.readings[scores.MODEL]
        assert scores.Run.from_dict(run.to_dict()) == run
    assert [list(run.readings[scores.MODEL]) for run in runs[1:]] == [list(runs[0].readings[scores.MODEL])]
    assert setting == games.Setting.from_dict(setting.to_dict())


def test_columns_that_rules_give_are_no_stumbling_block():
    schema = Schema.loads("""
rows: 100
columns:
  degree: {kind: ordinal, values: [none, school, college]}
  years: {kind: integer, low: 0, high: 20}
  town: {kind: categorical, values: [Bern, Cork]}
rules:
  - {columns: [degree], give: years, by: [[none, 0], [school, 10], [college, 16]]}
""")
    setting = games.make_setting("independent", schema, 4.0, None, canary="corner")
    run = games.runner(setting, games.pair_of(setting))(True)
    counts = [name for name in run.readings[scores.MODEL] if name.startswith("count of its cell")]
    assert len(counts) == 2
    assert games.Setting.from_dict(setting.to_dict()) == setting


def test_a_fit_with_boosting_can_be_played():
    setting = games.make_setting("independent", None, 4.0, None, canary="corner", boost={"rounds": 5})
    assert setting.title == "independent with boosting"
    assert games.Setting.from_dict(setting.to_dict()) == setting
    one = games.runner(setting, games.pair_of(setting))
    assert 0 <= one(True).readings[scores.MODEL][PICKS] <= 5
    events = games.events_of(setting)
    assert {type(event) for event in events} == {Gaussian, SelfComposed}
    assert "boosting-pick" in mechanisms_of(events, boosted=True)
    with pytest.raises(OptionError, match="boost has no setting 'round'"):
        games.make_setting("independent", None, 4.0, None, canary="corner", boost={"round": 5})
    with pytest.raises(OptionError, match="one_run"):
        us.audit("independent", boost=True, one_run=1)


def test_picks_of_boosting_speak_for_the_row():
    """Without noise on the picks, a row that the pool lacks is what they pick: the score knows its cells by name."""
    setting = games.make_setting("independent", None, 4.0, None, canary="corner", boost={"rounds": 20})
    pair = games.pair_of(setting)
    last = {name: np.repeat(code, 400) for name, code in pair.row.items()}
    other = {name: np.repeat(1 - code[:1] % 2, 400).astype(code.dtype) for name, code in pair.row.items()}
    picks = []
    for codes in (last, other):
        table = Table.from_codes(setting.schema, codes)
        training = us.fit(pair.table(False), setting.schema, method="independent", epsilon=4.0, seed=1)
        boosted = us.boost([training], table, epsilon=1e4, seed=1, rounds=20)
        picks.append(scores.read(boosted, pair, draws=10, rng=np.random.default_rng(0))[scores.MODEL][PICKS])
    assert picks[0] > picks[1]


SCANS = Schema.loads("""
rows: 100
label: d
columns: {d: {kind: categorical, values: [a, b]}, scan: {kind: image, height: 4, width: 4}}
""")


@pytest.mark.slow
def test_boosted_images_can_be_played():
    boost = {"rounds": 3, "pool_rows": 60, "distinguishers": "marginals"}
    setting = games.make_setting("dp-merf", SCANS, 4.0, None, canary="corner", boost=boost)
    run = games.runner(setting, games.pair_of(setting))(True)
    assert 0 <= run.readings[scores.MODEL][PICKS] <= 3


@pytest.mark.slow
@pytest.mark.parametrize("canary", canaries.CANARIES)
def test_images_can_be_played(canary):
    setting = games.make_setting("auto", SCANS, 4.0, None, canary=canary)
    run = games.runner(setting, games.pair_of(setting))(True)
    assert run.readings[scores.ROWS].keys() >= {scores.AGREEING}
    assert "rows of its class" in run.readings[scores.MODEL]


def test_a_sound_method_survives_and_the_game_has_power():
    setting = games.make_setting("independent", None, 8.0, 1e-6, canary="duplicate")
    endless = games.runs_of(setting, games.pair_of(setting), workers=0)
    made = [run for run, _ in itertools.islice(endless, 800)]
    events = games.events_of(setting)
    careful, usual = (games.judged(setting, "", made, 1.0, events, confidence=c) for c in (1 - 1e-6, 0.95))
    assert usual.gaussian
    assert usual.runs == (400, 400)
    assert careful.lower_bound < 8.0  # wrong once in a million times
    assert usual.lower_bound > 8.0 / 2
    model, rows = usual.shown
    assert model.view == scores.MODEL
    assert rows.best.epsilon > 0
    assert sum(1 - b.confidence for shown in usual.shown for b in shown.bounds) == pytest.approx(0.05)


def test_a_broken_method_loses(monkeypatch):
    """The noise of one table for all three: too little by the root of three."""

    def too_sure(values, *, l2_sensitivity, **rest):
        return gaussian(values, l2_sensitivity=1.0, **rest)

    monkeypatch.setattr(one_way, "gaussian", too_sure)
    found = games.play("independent", None, 8.0, 1e-6, runs=400, confidence=1 - 1e-4)
    assert found.lower_bound > 8.0


def test_bounds_by_gaussian_dp_count_for_gaussians_alone():
    plain = [Gaussian(1.0), SelfComposed(Gaussian(2.0), 3), Parallel((Gaussian(1.0), Gaussian(2.0)))]
    assert scores.all_gaussian(plain)
    for other in (BoundedRange(0.1), PoissonSampled(0.5, Gaussian(1.0)), SelfComposed(BoundedRange(0.1), 2)):
        assert not scores.all_gaussian([*plain, other])
    assert not scores.all_gaussian([])


def runs_with(shift: float, count: int, seed: int = 0) -> list[scores.Run]:
    """Readings of which the third alone tells the worlds apart."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(2 * count):
        world = number % 2 == 0
        readings = {scores.CELLS: rng.normal(), "b": rng.normal(), "c": rng.normal() + shift * world}
        made.append(scores.Run(world, {scores.MODEL: readings, scores.ROWS: {scores.AGREEING: rng.normal()}}))
    return made


def test_practice_finds_the_score_and_indications_are_no_bounds():
    model, rows = scores.judge(runs_with(2.0, 400), 1e-6, confidence=0.95, gaussian=True)
    assert model.score in ("c", scores.LEARNT)
    assert model.tried["c"] > 0.85
    assert model.bounds[1].epsilon > 5
    assert rows.score == scores.AGREEING
    game = games.Game("m", "corner", "", 1.0, 1e-6, False, (400, 400), 1.0, (model,))
    assert game.lower_bound == model.bounds[0].epsilon < model.bounds[1].epsilon


def test_without_a_difference_nothing_is_shown():
    wrong = 0
    for seed in range(40):
        shown = scores.judge(runs_with(0.0, 100, seed), 1e-6, confidence=0.9, gaussian=True)
        wrong += any(bound.epsilon > 0 for one in shown for bound in one.bounds)
    assert wrong <= 12  # 10 % of 40 on average; above 12 once in 10,000


def test_too_few_runs_say_nothing():
    shown = scores.judge(runs_with(2.0, 5), 1e-6, confidence=0.95, gaussian=True)
    assert [one.bounds for one in shown] == [(), ()]


def test_what_cannot_be_played_is_refused():
    with pytest.raises(OptionError, match="epsilon must be finite"):
        games.play("independent", None, float("inf"), runs=1)
    with pytest.raises(OptionError, match="runs or minutes"):
        games.play("independent", None, 1.0)
    with pytest.raises(SchemaError, match="rows"):
        games.play("independent", Schema.loads("columns: {a: {kind: boolean}}"), 1.0, runs=1)
    with pytest.raises(OptionError, match="has no option 'stepz'"):
        games.play("mixture", None, 1.0, runs=1, options={"stepz": 3})


def test_auto_plays_what_it_picks():
    assert games.make_setting("auto", None, 1.0, None, canary="corner").method == "mixture"


def test_many_canaries_at_once_show_something_and_not_too_much():
    found = one_run("independent", 8.0, 1e-12, fits=4, confidence=1 - 1e-6)
    assert 1.0 < found.epsilon < 8.0
    assert found.runs[1] == 2_000
    with pytest.raises(OptionError, match="at least 2"):
        one_run("independent", 1.0, canaries=1)


def test_from_the_root():
    assert us.audit.__name__ == "audit"
    assert isinstance(
        games.pair_of(games.make_setting("independent", None, 1.0, None, canary="corner")).table(True), Table
    )
