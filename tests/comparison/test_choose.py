"""The choice under the budget: its score's sensitivity by brute force, its ledger, its refusals, its certificate."""

import itertools
import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import understudy as us
from understudy.comparison import scores, shares
from understudy.comparison.choice import choose
from understudy.comparison.scores import coarse_cells, score_tables, scored_pairs
from understudy.comparison.shares import choice_epsilon
from understudy.errors import BudgetError, OptionError, SchemaError
from understudy.privacy import (
    BoundedRange,
    Budget,
    BudgetFile,
    Gaussian,
    Ledger,
    NonPrivate,
    PureDp,
    Streams,
    noise_multiplier,
    select,
)
from understudy.schema import Schema
from understudy.synthesizers import api, model_file
from understudy.table.table import Table

TINY = Schema.loads(
    "rows: 4\ncolumns: {a: {kind: boolean}, b: {kind: ordinal, values: [x, y, z]}, c: {kind: boolean, missing: true}}"
)
QUICK = {"mixture": {"components": 4, "steps": 20}}


@dataclass
class Fixed:
    """Released rows that are always the same."""

    codes: dict[str, np.ndarray]
    rows: int = 4

    def sample(self, n, rng, where=None):
        return {name: np.resize(codes, n) for name, codes in self.codes.items()}

    def arrays(self):
        return {"nothing": np.zeros(1)}

    def facts(self):
        return {}


def table_of(rows) -> Table:
    names = list(TINY.modelled)
    return Table.from_codes(
        TINY, {name: np.array([row[at] for row in rows], dtype=np.uint8) for at, name in enumerate(names)}
    )


def fixed(*rows) -> Fixed:
    return Fixed({name: np.array([row[at] for row in rows], dtype=np.uint8) for at, name in enumerate(TINY.modelled)})


def scores_of(rows, candidates) -> np.ndarray:
    return score_tables(table_of(rows), TINY, candidates, Streams.from_seed(0))[0]


def test_one_row_moves_no_score_by_more_than_the_sensitivity_and_some_by_as_much(monkeypatch) -> None:
    monkeypatch.setattr(scores, "SCORE_ROWS", 180)
    domain = list(itertools.product(range(2), range(3), range(3)))
    candidates = {"one": fixed((0, 0, 0)), "many": fixed(*domain), "two": fixed((1, 2, 2), (0, 1, 1), (0, 0, 0))}
    rng = np.random.default_rng(0)
    largest = -np.inf
    ways = set()
    for _ in range(40):
        rows = [domain[at] for at in rng.integers(0, len(domain), rng.integers(1, 7))]
        before = scores_of(rows, candidates)
        for row in domain:
            moved = scores_of([*rows, row], candidates) - before
            largest = max(largest, float(np.abs(moved).max()))
            ways.add(tuple(np.sign(np.round(moved, 9))))
    sensitivity = score_tables(table_of([domain[0]]), TINY, candidates, Streams.from_seed(0))[1]
    assert sensitivity == 3.0  # the pairs of three columns
    assert largest == sensitivity
    # Not monotone: a row can raise one candidate's score while it lowers another's.
    assert any(len({way for way in each if way}) == 2 for each in ways)


def test_scores_are_exact_on_their_grid() -> None:
    candidates = {"thirds": fixed((0, 0, 0), (1, 1, 1), (0, 2, 1))}
    candidates["thirds"].rows = 1000
    found = scores_of([(0, 0, 0)] * 5, candidates)
    assert (found * scores.STEPS_PER_COUNT % 1 == 0).all()


def test_the_right_candidate_scores_best() -> None:
    rows = [(0, 0, 0)] * 30 + [(1, 2, 1)] * 10
    right, wrong = fixed(*rows), fixed(*[(0, 0, 0), (1, 2, 1), (0, 2, 1), (1, 0, 0)])
    right.rows = wrong.rows = 40
    good, bad = scores_of(rows, {"right": right, "wrong": wrong})
    assert good == pytest.approx(0, abs=0.5)
    assert bad < -30


def test_cells_are_public_and_few() -> None:
    values = ", ".join(f"v{i}" for i in range(100))
    schema = Schema.loads(
        "columns:\n  n: {kind: integer, low: 0, high: 100000, missing: true}\n"
        f"  t: {{kind: categorical, values: [{values}]}}\n"
    )
    for column in schema.modelled.values():
        cells, groups, size = coarse_cells(column)
        assert size == scores.SCORE_CELLS + column.missing
        assert len(groups) == cells.count
        assert (np.diff(groups) >= 0).all()
    wide = Schema.loads("columns:\n" + "".join(f"  c{i}: {{kind: boolean}}\n" for i in range(40)))
    assert len(scored_pairs(wide)) == scores.MOST_PAIRS
    assert scored_pairs(wide) == scored_pairs(wide)
    assert scored_pairs(Schema.loads("columns: {c: {kind: boolean}}")) == [("c",)]


@pytest.fixture(scope="module")
def chosen(people, schema):
    return choose(people, schema, epsilon=2.0, options=QUICK, methods=["mixture", "independent"])


def test_the_certificate_lists_every_candidate_and_the_choice(chosen, schema, tmp_path) -> None:
    certificate = chosen.certificate
    purposes = [entry.purpose for entry in certificate.entries]
    assert sum(purpose.startswith("candidate mixture: ") for purpose in purposes) == 2
    assert sum(purpose.startswith("candidate independent: ") for purpose in purposes) == 1
    assert purposes[-1] == "choice among the methods mixture, independent"
    assert isinstance(certificate.entries[-1].event, BoundedRange)
    assert 1.9 < certificate.epsilon <= 2.0
    assert certificate.method == chosen.method
    path = tmp_path / "model.understudy"
    chosen.save(path)
    parts = model_file.read(path)
    arrays = model_file.certified_arrays(parts.arrays, parts.facts, parts.config)
    assert parts.certificate.holds(arrays=arrays, schema_digest=schema.digest(), release=True)
    assert len(us.load(path).sample(20)) == 20


def test_each_candidate_has_its_share(chosen) -> None:
    precision = {"mixture": 0.0, "independent": 0.0}
    for entry in chosen.certificate.entries[:-1]:
        precision[entry.purpose.split()[1].rstrip(":")] += entry.event.noise_multiplier**-2
    assert precision["mixture"] == pytest.approx(precision["independent"], rel=1e-3)
    whole = noise_multiplier(Budget(2.0, 1e-6)) ** -2
    assert sum(precision.values()) / whole == pytest.approx(1 - shares.CHOICE_SHARE - shares.SPARE_SHARE, rel=1e-3)


def test_a_seed_marks_the_model(people, schema) -> None:
    options = {"methods": ["independent"], "seed": 3}
    first, second = (choose(people, schema, **options) for _ in range(2))
    assert first.certificate.rng == "seeded"
    assert first.certificate.arrays_digest == second.certificate.arrays_digest


def method(name, train, **more):
    """A method that exists for one test."""

    @dataclass(frozen=True, kw_only=True)
    class Config:
        """Nothing to set."""

    return SimpleNamespace(NAME=name, SUMMARY="", Config=Config, train=train, **more)


@pytest.fixture
def registered(monkeypatch):
    def put(**modules) -> None:
        monkeypatch.setattr(api, "METHODS", dict.fromkeys(modules, ""))
        monkeypatch.setattr(api, "method_module", lambda name: modules[name])

    return put


def spender(event_of, calls=None):
    """A method that charges what `event_of` makes of its budget, and releases rows that never change."""

    def train(config, schema, table, budget, *, streams, progress):
        if calls is not None:
            calls.append((table.rows, budget))
        ledger = Ledger(budget)
        ledger.charge(event_of(budget), "all of it")
        return fixed((0, 0, 0), (1, 2, 1)), ledger

    return train


def pure(budget: Budget) -> PureDp:
    return PureDp(budget.epsilon)


def test_releases_that_are_not_concentrated_get_smaller_shares(registered) -> None:
    calls: list = []
    registered(**{f"m{i}": method(f"m{i}", spender(pure, calls)) for i in range(4)})
    found = choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)
    rehearsed, real = calls[:-4], calls[-4:]
    assert {rows for rows, _ in rehearsed} == {shares.REHEARSAL_ROWS}
    assert {rows for rows, _ in real} == {20}
    assert rehearsed[0][1].epsilon > 0.3  # a fair share, were they concentrated
    assert 0.9 < found.certificate.epsilon <= 1.0
    told = [entry.purpose for entry in found.certificate.entries[:-1]]
    assert told == [f"candidate m{i}: all of it" for i in range(4)]


def test_what_never_fits_gets_shares_of_epsilon_and_delta(registered) -> None:
    """It charges as much as before until its delta shrinks: no share of precision is small enough."""
    calls: list = []

    def stubborn(budget: Budget) -> PureDp:
        calls.append(budget)
        return PureDp(budget.epsilon if budget.delta < 1e-6 else 0.3)

    def train(config, schema, table, budget, *, streams, progress):
        ledger = Ledger(Budget(100.0, budget.delta))
        ledger.charge(stubborn(budget), "all of it")
        return fixed((0, 0, 0)), ledger

    registered(**{f"m{i}": method(f"m{i}", train) for i in range(4)})
    found = choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)
    assert len(calls) == 4 * (shares.REHEARSALS + 2)  # the last shares are rehearsed too
    assert calls[-1].epsilon == pytest.approx(0.9 / 4)
    assert calls[-1].delta == pytest.approx(0.9e-6 / 4)
    assert found.certificate.epsilon <= 1.0


def test_an_epsilon_too_small_to_share_is_refused_before_a_row_is_read(tmp_path) -> None:
    book = BudgetFile.create(tmp_path / "book", Budget(1.0, 1e-5))
    asked = {"methods": ["mixture", "independent"], "epsilon": 1e-5, "options": QUICK}
    with pytest.raises(BudgetError, match="too small to share among 2 methods"):
        choose("no such file", TINY, budget_file=book, **asked)
    assert not BudgetFile.load(book.path).events


def test_a_budget_that_is_all_delta_can_be_shared() -> None:
    asked = {"methods": ["mixture", "independent"], "epsilon": 1e-18, "options": QUICK}
    found = choose(table_of([(0, 0, 0)] * 20), TINY, **asked)
    assert found.certificate.epsilon <= 1e-18


def test_a_released_number_of_rows_never_takes_scores_off_their_grid() -> None:
    candidates = {"wild": fixed((0, 0, 0), (1, 1, 1), (0, 2, 1))}
    candidates["wild"].rows = 10**17
    moved = scores_of([(0, 0, 0)] * 6, candidates) - scores_of([(0, 0, 0)] * 5, candidates)
    assert np.abs(moved).max() == 3.0


def test_a_candidate_that_spends_more_than_it_rehearsed_is_refused_and_nothing_comes_out(registered) -> None:
    calls: list = []

    def more_each_time(budget: Budget) -> PureDp | Gaussian:
        return Gaussian(1000.0) if len(calls) <= 2 else pure(Budget(0.99 * 1.0, budget.delta))

    def train(config, schema, table, budget, *, streams, progress):
        calls.append(table.rows)
        ledger = Ledger(Budget(100.0, budget.delta))
        ledger.charge(more_each_time(budget), "more than told")
        return fixed((0, 0, 0)), ledger

    registered(a=method("a", train), b=method("b", train))
    with pytest.raises(BudgetError, match="candidate b: more than told: would bring epsilon"):
        choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)


def test_what_is_left_for_the_choice() -> None:
    ledger = Ledger(Budget(1.0, 1e-6))
    assert choice_epsilon(ledger, 0.2) == 0.2
    ledger.charge(PureDp(0.85), "candidates")
    left = choice_epsilon(ledger, 0.2)
    assert 0.149 < left < 0.16
    ledger.charge(BoundedRange(left), "choice")
    assert ledger.spent() <= 1.0 + 1e-9
    full = Ledger(Budget(1.0, 1e-6))
    full.charge(PureDp(0.95), "candidates")
    with pytest.raises(BudgetError, match="too little"):
        choice_epsilon(full, 0.2)
    assert len(full.entries) == 1


def test_a_method_that_cannot_be_fitted_shows_before_a_row_is_read(registered, tmp_path) -> None:
    def refuse(config, schema, table, budget, *, streams, progress):
        raise OptionError("too many columns for this method")

    registered(good=method("good", spender(pure)), bad=method("bad", refuse))
    book = BudgetFile.create(tmp_path / "book", Budget(3.0, 1e-5))
    with pytest.raises(OptionError, match="too many columns"):
        choose("no such file", TINY, methods=["good", "bad"], epsilon=1.0, budget_file=book)
    assert BudgetFile.load(tmp_path / "book").spent() == 0


def test_among_all_methods_those_that_cannot_be_fitted_are_left_out_with_a_word(registered) -> None:
    def refuse(config, schema, table, budget, *, streams, progress):
        raise OptionError("it needs a label")

    registered(good=method("good", spender(pure)), bad=method("bad", refuse), other=method("other", spender(pure)))
    with pytest.warns(UserWarning, match="bad is no candidate: it needs a label"):
        found = choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)
    assert found.certificate.entries[-1].purpose == "choice among the methods good, other"
    registered(bad=method("bad", refuse))
    with pytest.warns(UserWarning, match="bad"), pytest.raises(OptionError, match="needs a label"):
        choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)


def test_shares_shrink_until_what_is_charged_fits(registered) -> None:
    """A method that charges a tenth more precision than a Gaussian of its budget would."""
    calls: list = []

    def greedy(budget: Budget) -> Gaussian:
        return Gaussian(noise_multiplier(budget) / math.sqrt(1.1))

    def train(config, schema, table, budget, *, streams, progress):
        calls.append(budget)
        ledger = Ledger(Budget(100.0, budget.delta))
        ledger.charge(greedy(budget), "all of it")
        return fixed((0, 0, 0)), ledger

    registered(a=method("a", train), b=method("b", train))
    found = choose(table_of([(0, 0, 0)] * 20), TINY, epsilon=1.0)
    assert 0.9 < found.certificate.epsilon <= 1.0
    assert len(calls) == 2 * 2 + 2  # two rehearsals, then the fits
    assert calls[-1].epsilon < calls[0].epsilon


def test_a_budget_file_counts_all_of_it_and_refuses_the_next(people, schema, tmp_path) -> None:
    book = tmp_path / "book"
    BudgetFile.create(book, Budget(1.5, 1e-5))
    found = choose(people, schema, epsilon=1.0, methods=["independent"], budget_file=book)
    spent = BudgetFile.load(book).spent()
    assert 0.5 < spent <= 1.0
    assert found.certificate.delta < 1e-5
    with pytest.raises(BudgetError):
        choose(people, schema, epsilon=1.0, methods=["independent"], budget_file=book)
    assert BudgetFile.load(book).spent() == spent


def test_without_privacy_nothing_is_guaranteed_and_the_best_is_taken(registered) -> None:
    rows = [(0, 0, 0)] * 10 + [(1, 2, 1)] * 10

    def release(*released):
        def train(config, schema, table, budget, *, streams, progress):
            ledger = Ledger(budget)
            ledger.charge(NonPrivate(), "all of it")
            return fixed(*released), ledger

        return train

    registered(wrong=method("wrong", release((0, 2, 2))), right=method("right", release(*rows)))
    found = choose(table_of(rows), TINY, epsilon=math.inf)
    assert found.method == "right"
    assert found.certificate.epsilon == math.inf


def test_the_choice_is_made_by_the_scores_and_only_by_chance_otherwise() -> None:
    """The exponential mechanism as it is called here: odds of exp(epsilon * difference / (2 P))."""
    streams = Streams.from_seed(1)
    budget = Budget(1e5, 1e-6)
    difference, epsilon, sensitivity = 12.0, 0.5, 3.0
    picks = [
        select(
            np.array([-difference, 0.0]),
            sensitivity=sensitivity,
            epsilon=epsilon,
            monotone=False,
            streams=streams,
            ledger=Ledger(budget),
            purpose="choice",
        )
        for _ in range(4000)
    ]
    expected = 1 / (1 + math.exp(-epsilon * difference / (2 * sensitivity)))
    assert abs(np.mean(picks) - expected) < 0.03


def test_auto_is_no_candidate(people, schema) -> None:
    with pytest.raises(OptionError, match="auto is no candidate"):
        choose(people, schema, methods=["auto", "independent"])


def test_images_are_not_chosen_by_pairs_of_columns() -> None:
    schema = Schema.loads("rows: 100\ncolumns: {scan: {kind: image, height: 4, width: 4}, ill: {kind: boolean}}")
    with pytest.raises(SchemaError, match="'scan' is an image; name the method"):
        us.choose("nowhere", schema)
