"""What the boosting paper's bench does to rows and images: excerpts, figures, one budget for every line."""

import numpy as np
import pandas as pd
import pytest

import understudy as us
from bench.papers import digit_score, pgb_fits, pgb_images, pgb_tasks
from bench.peers.domain import plain
from understudy.privacy import Budget

PEOPLE = us.Schema.loads("""
rows: 800
label: ill
columns:
  age: {kind: integer, low: 0, high: 99}
  town: {kind: categorical, values: [a, b, c]}
  ill: {kind: boolean}
""")


def people(rows: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, rows)
    return pd.DataFrame({"age": age, "town": np.where(age > 60, "a", "b"), "ill": rng.random(rows) < 0.2 + age / 150})


def survey(rows: int) -> pd.DataFrame:
    """A made-up excerpt, as text, with incomes that go with age."""
    rng = np.random.default_rng(1)
    schema = us.Schema.loads(pgb_tasks.ACS_SCHEMA)
    age = rng.integers(5, 90, rows)
    income = np.where(age < 15, "N", (2500 * age + rng.integers(-45_000, 30_000, rows)).astype(str))
    frame = pd.DataFrame({"AGEP": age.astype(str), "PINCP": income, "PUMA": "x"})
    for name, column in schema.columns.items():
        if name not in ("AGEP", "INCOME"):
            values = [0, 1, 2] if name == "NOC" else list(column.values)
            frame[name] = rng.choice([str(value) for value in values], rows)
    return frame.assign(NOC=np.where(rng.random(rows) < 0.1, "N", frame["NOC"]))


def test_excerpts_hold_persons_with_an_income_cut_at_the_top():
    raw = survey(300)
    found = pgb_tasks.acs_persons(raw)
    schema = us.Schema.loads(pgb_tasks.ACS_SCHEMA)
    assert list(found.columns) == list(schema.columns)
    assert len(found) == (raw["PINCP"] != "N").sum() < 300
    assert found["INCOME"].between(0, pgb_tasks.ACS_TOP).all()
    assert (found["INCOME"] == pgb_tasks.ACS_TOP).any()
    assert (found["AGEP"] >= 15).all()
    assert found["NOC"].isna().any()
    assert us.read_table(plain(found, schema), schema).rows == len(found)


def test_seeds_of_a_split_task_have_rows_of_their_own(monkeypatch):
    rows = people(600)
    parts = rows.iloc[:400].reset_index(drop=True), rows.iloc[400:].reset_index(drop=True)
    official = pgb_tasks.Setup("titanic", PEOPLE, *parts, us.read_table(parts[0], PEOPLE))
    monkeypatch.setattr(pgb_tasks, "_setup", {"titanic": official}.__getitem__)
    first, again, other = (pgb_tasks.setup("titanic-splits", seed) for seed in (0, 0, 1))
    assert (len(first.train), len(first.test), first.table.rows) == (400, 200, 400)
    assert first.train.equals(again.train)
    assert not first.train.equals(other.train)
    both = pd.concat([first.train, first.test]).sort_values(list(rows)).reset_index(drop=True)
    assert both.equals(rows.sort_values(list(rows)).reset_index(drop=True))
    assert pgb_tasks.setup("titanic", 3) is official


def test_census_figures_know_good_rows_from_bad_ones():
    schema = us.Schema.loads(pgb_tasks.ACS_SCHEMA)
    rows = plain(pgb_tasks.acs_persons(survey(1500)), schema)
    train, test = rows.iloc[:1000].reset_index(drop=True), rows.iloc[1000:].reset_index(drop=True)
    setup = pgb_tasks.Setup("acs2019", schema, train, test, us.read_table(train, schema))
    bad = train.assign(INCOME=train["INCOME"].to_numpy()[::-1], RAC1P="1")
    good_figures, drawn = pgb_tasks.judge(setup, test)
    bad_figures, _ = pgb_tasks.judge(setup, bad)
    for name in ("pmse_ratio", "race_tvd", "regression"):
        assert good_figures[name] < bad_figures[name]
        assert good_figures[f"{name}_real"] == bad_figures[f"{name}_real"]
    assert bad_figures["race_tvd"] == pytest.approx(1 - (train["RAC1P"] == "1").mean())
    assert len(drawn["rmse"]) == 84  # nine regressors, by threes
    assert np.array(drawn["rmse"]).min() > 5  # thousands of dollars


def test_classifiers_give_every_measure():
    rows = plain(people(), PEOPLE)
    setup = pgb_tasks.Setup("titanic", PEOPLE, rows.iloc[:500], rows.iloc[500:], None)
    figures, _ = pgb_tasks.judge(setup, rows.iloc[:500])
    for measure in ("auc", "pr", "accuracy"):
        assert figures[f"{measure}_random_forest"] == figures[f"{measure}_random_forest_real"]


def test_all_lines_spend_one_budget():
    table = us.read_table(people(), PEOPLE)
    budget = Budget(1.0, 1e-6)
    trained = us.fit(table, PEOPLE, method="independent", epsilon=0.9, delta=1e-6, seed=0)
    boosted = pgb_fits.boost_up_to(budget, trained, table, seed=0, pool_rows=300)
    assert boosted.certificate.epsilon == pytest.approx(1.0, rel=2e-3)
    both = pgb_fits.with_rejection(boosted)
    assert both.released.drs
    assert not boosted.released.drs
    assert (both.released.picks == boosted.released.picks).all()
    pgb_fits.check_spent({"PGB": boosted}, 1.0)
    with pytest.raises(RuntimeError, match="PGB spent more"):
        pgb_fits.check_spent({"PGB": boosted}, 0.9)


def test_what_is_boosted_was_trained_as_in_a_fit_with_boosting():
    table = us.read_table(people(), PEOPLE)
    trained = pgb_fits.trained_part(table, PEOPLE, "dp-vae", Budget(1.0, 1e-6), seed=0)
    boosted = us.fit(table, PEOPLE, method="dp-vae", epsilon=1.0, delta=1e-6, seed=0, boost=True)
    whole = us.fit(table, PEOPLE, method="dp-vae", epsilon=1.0, delta=1e-6, seed=0)
    events = [entry.event for entry in trained.certificate.entries]
    assert events == [entry.event for entry in boosted.certificate.entries][: len(events)]
    columns, steps = ([model.certificate.entries[place].event for model in (whole, trained)] for place in (0, 1))
    assert columns[1].noise_multiplier == pytest.approx(columns[0].noise_multiplier, rel=0.01)
    assert steps[1] != steps[0]
    again = pgb_fits.boost_up_to(Budget(1.0, 1e-6), trained, table, seed=0)
    ours, fitted = (model.certificate.entries[-1].event for model in (again, boosted))
    assert ours.count == fitted.count
    assert ours.event.epsilon == pytest.approx(fitted.event.epsilon, rel=1e-3)


def test_the_digit_network_learns_and_scores():
    """Two kinds of pictures, a bright left and a bright right half."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 800)
    images = rng.integers(0, 40, (800, 8, 8)).astype(np.uint8)
    images[labels == 0, :, :4] += 180
    images[labels == 1, :, 4:] += 180
    net = digit_score.learn(images[:640], labels[:640], epochs=6)
    found = digit_score.score(net, images[640:], labels[640:])
    assert found["recognised"] > 0.95
    assert 1.6 < found["score"] <= 2.0
    one_kind = digit_score.score(net, images[labels == 0], labels[labels == 0])
    assert one_kind["score"] < 1.2
    wrong = digit_score.score(net, images[640:], 1 - labels[640:])
    assert wrong["recognised"] < 0.05


def test_a_grid_has_a_column_a_class():
    images = np.stack([np.full((3, 3), 10 * label + copy, dtype=np.uint8) for label in (0, 2) for copy in range(6)])
    grid = pgb_images.by_row(images, np.repeat([0, 2], 6))
    assert grid.shape == (3 * pgb_images.SHOWN, 30)
    assert grid[::3, 0].tolist() == [0, 1, 2, 3]
    assert (grid[:, 3:6] == 0).all()  # no image of class 1
    assert grid[::3, 6].tolist() == [20, 21, 22, 23]
