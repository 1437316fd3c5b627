"""Boosted models: one certificate for everything, files that come back, refusals that cost nothing, rows that gain."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.boosting.game import MOST_ROUNDS
from understudy.boosting.method import Picks, boost, pick_epsilon, plan_picks, reject
from understudy.boosting.settings import Boosting
from understudy.boosting.shares import training_budget
from understudy.errors import BudgetError, ModelFileError, OptionError, SchemaError
from understudy.privacy import BoundedRange, Budget, BudgetFile, SelfComposed, Streams, epsilon
from understudy.synthesizers.api import fit, load

QUICK = {"rounds": 40, "pool_rows": 1500}


@pytest.fixture(scope="module")
def boosted(plain, gan, rows):
    return boost([plain, gan], rows, epsilon=0.5, **QUICK)


def association(frame: pd.DataFrame) -> float:
    """How often town and illness go together as they do among the rows."""
    return float(((frame["age"] > 60) == (frame["town"] == "a")).mean())


def test_the_certificate_counts_all_models_and_every_round(plain, gan, boosted):
    entries = boosted.certificate.entries
    trained = [*plain.certificate.entries, *gan.certificate.entries]
    assert [entry.event for entry in entries[:-1]] == [entry.event for entry in trained]
    assert [entry.purpose for entry in entries[:-1]] == [
        *(f"{entry.purpose} (model 1, independent)" for entry in plain.certificate.entries),
        *(f"{entry.purpose} (model 2, dp-wgan)" for entry in gan.certificate.entries),
    ]
    picks = entries[-1].event
    assert isinstance(picks, SelfComposed)
    assert (type(picks.event), picks.count) == (BoundedRange, QUICK["rounds"])
    # What was asked for is what the picks alone cost.
    assert epsilon([picks], boosted.certificate.delta).value == pytest.approx(0.5, rel=1e-3)
    assert boosted.certificate.epsilon > max(plain.certificate.epsilon, gan.certificate.epsilon)
    assert boosted.certificate.holds(release=True)


def test_a_model_file_comes_back_and_verifies(boosted, tmp_path):
    path = tmp_path / "b.understudy"
    boosted.save(path)
    again = load(path)
    pd.testing.assert_frame_equal(again.sample(50, seed=3), boosted.sample(50, seed=3))
    assert again.certificate == boosted.certificate
    assert again.released.settings["methods"] == ["independent", "dp-wgan"]
    assert again.released.settings["alpha"] == boosted.released.settings["alpha"]


@pytest.mark.parametrize("part", ["weights", "average", "pool.0"])
def test_damaged_parts_are_refused(boosted, part: str):
    released = boosted.released
    arrays = released.arrays()
    arrays[part] = arrays[part][:-1] if part != "weights" else -arrays[part]
    with pytest.raises(ValueError):
        type(released).from_parts(released.schema, arrays, released.facts())
    with pytest.raises(ValueError):
        type(released).from_parts(released.schema, released.arrays() | {"pool.1": arrays["weights"]}, released.facts())


def test_only_released_things_are_in_the_file(boosted):
    assert set(boosted.released.arrays()) == {"pool.0", "pool.1", "pool.2", "weights", "average", "picks"}
    assert boosted.released.picks.dtype == np.int32
    assert set(boosted.released.facts()) == {"rows", "drs", "settings"}


def test_rows_gain_what_the_model_lacked(plain, rows):
    model = boost([plain], rows, epsilon=1.0, rounds=200, pool_rows=4000)
    before, after = (association(m.sample(4000, seed=0)) for m in (plain, model))
    assert before < 0.65
    assert after > before + 0.1


def test_without_privacy_it_comes_closer_still(plain, rows):
    model = boost([plain], rows, epsilon=math.inf, pool_rows=3000, distinguishers="marginals")
    assert association(model.sample(4000, seed=0)) > 0.8
    assert math.isinf(model.certificate.epsilon)
    assert not model.certificate.holds(release=True)


def test_conditions_choose_rows_of_the_pool(boosted):
    made = boosted.sample(300, where={"town": ["a", "b"], "age": (30, 50)}, seed=0)
    assert len(made) == 300
    assert made["town"].isin(["a", "b"]).all()
    assert made["age"].between(30, 50).all()
    few = dataclasses.replace(boosted.released, pool={**boosted.released.pool, "ill": boosted.released.pool["ill"] * 0})
    with pytest.raises(OptionError, match="no synthetic row has 'ill'"):
        few.sample(3, np.random.default_rng(0), {"ill": True})


def test_no_probabilities_are_promised(boosted, rows):
    with pytest.raises(OptionError, match="no probabilities"):
        boosted.log_prob(rows)


def test_a_seed_anywhere_makes_the_result_seeded(plain, rows):
    first, second = (boost([plain], rows, epsilon=0.5, seed=4, **QUICK) for _ in range(2))
    assert (first.released.picks == second.released.picks).all()
    assert first.certificate.rng == "seeded"
    seeded = fit(rows, plain.schema, method="independent", epsilon=1.0, seed=1)
    assert boost([seeded], rows, epsilon=0.5, **QUICK).certificate.rng == "seeded"


def test_a_model_without_privacy_gives_none(rows, plain):
    open_model = fit(rows, plain.schema, method="independent", epsilon=math.inf)
    model = boost([open_model, plain], rows, epsilon=0.5, **QUICK)
    assert math.isinf(model.certificate.epsilon)


def test_audit_finds_a_boosted_model_in_its_budget_file(plain, rows, tmp_path):
    """Its picks are entered by themselves, its base models' fits by theirs; a base that was not entered is missed."""
    book = BudgetFile.create(tmp_path / "b.json", Budget(6.0, 1e-6))
    base = fit(rows, plain.schema, method="independent", epsilon=1.0, delta=1e-7, budget_file=book.path)
    entered = boost([base], rows, epsilon=0.5, delta=1e-7, budget_file=book.path, **QUICK)
    outside = boost([plain], rows, epsilon=0.5, delta=1e-7, budget_file=book.path, **QUICK)
    book = BudgetFile.load(book.path)
    assert [book.holds(model.certificate) for model in (base, entered, outside)] == [True, True, False]


def test_budget_file_counts_the_boosting_once(plain, rows, tmp_path):
    book = BudgetFile.create(tmp_path / "b.json", Budget(1.3, 1e-6))
    boost([plain], rows, epsilon=0.5, delta=1e-7, budget_file=tmp_path / "b.json", **QUICK)
    book = BudgetFile.load(tmp_path / "b.json")
    assert not book.open_reservations
    (picks,) = book.events  # the training has entries of its own, in the file it was fitted with
    assert picks.count == QUICK["rounds"]
    assert epsilon([picks], 1e-7).value == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(BudgetError):
        boost([plain], rows, epsilon=1.8, delta=1e-7, budget_file=tmp_path / "b.json", **QUICK)
    assert BudgetFile.load(tmp_path / "b.json").spent() == book.spent()


def test_one_budget_pays_for_training_and_boosting(rows, plain):
    from boosting_helpers import GAN

    settings = {"rounds": 30, "pool_rows": 1000, "share": 0.2}
    options = {name: value for name, value in GAN.items() if name != "checkpoints"}
    model = us.fit(rows, plain.schema, method="dp-wgan", epsilon=1.0, boost=settings, **options)
    assert model.method == "boosted"
    assert model.certificate.epsilon <= 1.0 * (1 + 1e-6)
    assert model.certificate.epsilon == pytest.approx(1.0, rel=2e-3)
    assert [entry.purpose.split()[-1] for entry in model.certificate.entries] == ["columns", "critic", "distinguisher"]
    # More than the pairs: the critics of the kept checkpoints were played too.
    assert model.released.settings["distinguishers_played"] > 0
    assert model.certificate.holds(release=True)


def test_shares_and_picks_add_up_to_the_budget():
    budget = Budget(1.0, 1e-6)
    part = training_budget(budget, 0.2)
    assert 0.8 < part.epsilon < 1.0
    assert training_budget(Budget(math.inf, 1e-6), 0.2).epsilon == math.inf
    pick = pick_epsilon(budget, 100)
    assert epsilon([SelfComposed(BoundedRange(pick), 100)], 1e-6).value == pytest.approx(1.0, rel=1e-3)
    assert pick_epsilon(Budget(math.inf, 1e-6), 100) == math.inf


def test_rejection_by_the_models_own_critic_costs_nothing(gan, plain):
    model = reject(gan, pool_rows=500, seed=0)
    assert [e.event for e in model.certificate.entries] == [e.event for e in gan.certificate.entries]
    assert model.certificate.epsilon == gan.certificate.epsilon
    assert np.ptp(model.released.row_weights) > 0
    with pytest.raises(OptionError, match="kept its critics"):
        reject(plain)


def test_rejection_changes_the_weights_alone(plain, rows):
    one, two = (boost([plain], rows, epsilon=0.5, seed=2, drs=drs, **QUICK) for drs in (False, True))
    assert (one.released.weights == two.released.weights).all()
    assert (one.released.row_weights != two.released.row_weights).any()


def test_models_that_cannot_be_mixed_are_refused(plain, gan, rows):
    other = fit(rows, plain.schema.model_copy(update={"rows": 3000}), method="independent", epsilon=1.0)
    with pytest.raises(SchemaError, match="model 2 has another"):
        boost([plain, other], rows, epsilon=1.0)
    with pytest.raises(OptionError, match="model 3 is model 1 again"):
        boost([plain, gan, plain], rows, epsilon=1.0)
    for wrong in ([], plain, ["model.understudy"]):
        with pytest.raises(OptionError, match="models must be a list"):
            boost(wrong, rows, epsilon=1.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rounds": 0}, "rounds must be"),
        ({"rounds": True}, "rounds must be"),
        ({"pool_rows": 1}, "pool_rows must be"),
        ({"drs": "yes"}, "drs must be"),
        ({"rate": -1.0}, "rate must be"),
        ({"rate": math.nan}, "rate must be"),
        ({"share": 1.0}, "share must be"),
        ({"distinguishers": "critic"}, "distinguishers must be"),
        ({"distinguishers": []}, "distinguishers must be"),
        ({"distinguishers": ["auto", "critics"]}, "distinguishers must be"),
        ({"distinguishers": "critics"}, "no model kept its critics"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 2.0}, "delta must lie"),
        ({"turns": 3}, "boost has no setting 'turns'"),
    ],
)
def test_wrong_settings_are_named(plain, rows, wrong: dict, message: str):
    with pytest.raises(OptionError, match=message):
        boost([plain], rows, **({"epsilon": 1.0} | QUICK | wrong))


def test_wrong_settings_cost_nothing(plain, rows, tmp_path):
    BudgetFile.create(tmp_path / "b.json", Budget(2.0, 1e-6))
    for wrong in ({"distinguishers": "critics"}, {"rounds": 0}, {"distinguishers": [lambda codes: codes["age"] * 9.0]}):
        with pytest.raises(OptionError):
            boost([plain], rows, epsilon=0.5, budget_file=tmp_path / "b.json", **(QUICK | wrong))
    assert BudgetFile.load(tmp_path / "b.json").spent() == 0
    with pytest.raises(OptionError, match="has no critics"):
        fit(rows, plain.schema, method="independent", boost={"distinguishers": "critics"})
    with pytest.raises(OptionError, match="boost must be true"):
        fit(rows, plain.schema, method="independent", boost="yes")


def test_settings_are_told_without_functions():
    told = Boosting(distinguishers=["critics", abs, abs]).told(7)
    assert told["distinguishers"] == ["critics", "2 functions"]
    assert told["rounds"] == 7


def test_functions_of_ones_own(plain, rows):
    model = boost([plain], rows, epsilon=2.0, rounds=30, pool_rows=1000, rate=0.5, distinguishers=[_goes_together])
    assert association(model.sample(1000, seed=0)) > association(plain.sample(1000, seed=0)) + 0.1


def _goes_together(codes: dict[str, np.ndarray]) -> np.ndarray:
    return ((codes["age"] > 60) == (codes["town"] == 0)).astype(float)


def test_a_table_of_another_schema_is_refused(plain, rows):
    table = us.read_table(rows, plain.schema.model_copy(update={"rows": 3000}))
    with pytest.raises(SchemaError, match="another schema"):
        boost([plain], table, epsilon=1.0, **QUICK)


def test_rounds_by_rule_grow_with_the_declared_rows_and_the_budget(plain):
    def planned(rows: int, epsilon: float) -> Picks:
        schema = plain.schema.model_copy(update={"rows": rows})
        return plan_picks(Boosting(), schema, Budget(epsilon, 1e-6))

    few, more, most = planned(1_000, 0.5), planned(4_000, 0.5), planned(4_000, 2.0)
    assert few.rounds < more.rounds < most.rounds
    for picks, spent in ((few, 0.5), (more, 0.5), (most, 2.0)):
        assert epsilon([picks.event], 1e-6).value == pytest.approx(spent, rel=1e-3)
    assert plan_picks(Boosting(rounds=7), plain.schema, Budget(0.5, 1e-6)).rounds == 7
    assert planned(2_000, math.inf) == Picks(MOST_ROUNDS, math.inf)


def test_exact_noise_plays_a_thousand_rounds(plain, rows):
    """With noise from the operating system, as in a release."""
    model = boost([plain], rows, epsilon=1.0, rounds=1000, pool_rows=1000)
    assert model.certificate.rng == "os-entropy"
    assert not Streams.from_entropy().seeded
    assert len(np.unique(model.released.picks)) > 20


def test_a_damaged_file_is_refused(boosted, tmp_path):
    path = tmp_path / "b.understudy"
    boosted.save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ModelFileError):
        load(path)
