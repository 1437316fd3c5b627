"""The fit sees released tables alone: their layout, and what the mixture makes of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.errors import OptionError
from understudy.progress import silent
from understudy.schema import Boolean, Categorical, Integer, Schema
from understudy.synthesizers.mixture import fit as fit_module
from understudy.synthesizers.mixture.error import Errors, errors
from understudy.synthesizers.mixture.fit import SHORT_OF_END, TOO_FAR, Fitted, fit_mixture
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, deviations, interactions
from understudy.synthesizers.mixture.targets import Targets, make_targets
from understudy.synthesizers.one_way import OneWay, fine_cells

SCHEMA = Schema(
    rows=1000,
    label="y",
    columns={"a": Integer(low=0, high=2), "y": Boolean(), "b": Boolean(), "c": Integer(low=0, high=3)},
)
SIZES = {"a": 3, "b": 2, "c": 4}
TOTAL = 1000.0


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    """p(y, a, b, c): a mixture of two products in each class."""
    rng = np.random.default_rng(0)
    joint = np.zeros((2, 3, 2, 4))
    for y, k in np.ndindex(2, 2):
        parts = [rng.dirichlet(np.full(size, 0.5)) for size in SIZES.values()]
        joint[y] += [0.3, 0.2][k] * np.einsum("a,b,c->abc", *parts)
    return joint


def tables_of(truth: np.ndarray, pairs: list[tuple[str, str]]) -> list[np.ndarray]:
    axes = {"a": 1, "b": 2, "c": 3}
    return [TOTAL * truth.sum(axis=6 - axes[first] - axes[second]) for first, second in pairs]


@pytest.fixture(scope="module")
def one_way(truth: np.ndarray) -> OneWay:
    sums = {"a": (0, 2, 3), "y": (1, 2, 3), "b": (0, 1, 3), "c": (0, 1, 2)}
    counts = {n: TOTAL * truth.sum(axis=over) for n, over in sums.items()}
    return OneWay(fine_cells(SCHEMA), counts, TOTAL, noise=dict.fromkeys(sums, (2.0,)))


COARSE = Coarse({name: np.arange(size) for name, size in SIZES.items()}, "y", 2)
MEASURED = [("a", "b"), ("b", "c")]


def released(truth: np.ndarray, noise: float) -> Interactions:
    """As a release would have them, but without noise."""
    axes = {"a": (2, 3), "b": (1, 3), "c": (1, 2)}
    margins = {name: deviations(TOTAL * truth.sum(axis=over)) for name, over in axes.items()}
    tables = [interactions(table) for table in tables_of(truth, MEASURED)]
    return Interactions(tables, [noise] * len(tables), margins, noise)


@pytest.fixture(scope="module")
def targets(truth: np.ndarray, one_way: OneWay) -> Targets:
    return make_targets(SCHEMA, one_way, COARSE, MEASURED, released(truth, 0.1))


@pytest.fixture(scope="module")
def clear_targets(truth: np.ndarray, one_way: OneWay) -> Targets:
    return make_targets(SCHEMA, one_way, COARSE, MEASURED, released(truth, 0.1), clear=True)


@pytest.fixture(scope="module")
def fitted(targets: Targets) -> Fitted:
    return fit_mixture(targets, components=8, fits=1, steps=400, seed=0, progress=silent, note="")


def two_way(fitted: Fitted, first: slice, second: slice) -> np.ndarray:
    weights, p = fitted.weights, fitted.probabilities.astype(float)
    return TOTAL * np.einsum("yk,ykd,yke->yde", weights, p[..., first], p[..., second])


def test_tables_lie_where_their_columns_are(targets: Targets, truth: np.ndarray):
    assert targets.sizes == (3, 2, 4)
    first, second = released(truth, 0.1).pairs
    np.testing.assert_allclose(targets.pairs[:, 0:3, 3:5], first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(targets.pairs[:, 3:5, 5:9], second, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(targets.margins[:, 0:3], released(truth, 0.1).margins["a"], rtol=1e-4, atol=1e-4)
    # Independent numbers: in each of two classes, of two tables and three columns.
    assert targets.freedom == 2 * (2 * 1 + 1 * 3) + 2 * (2 + 1 + 3)
    assert targets.empty_weights is None
    np.testing.assert_array_equal(targets.pairs, targets.pairs.transpose(0, 2, 1))
    assert not targets.pair_weights[:, 0:3, 5:9].any()  # not measured
    assert not targets.pair_weights[:, 0:3, 0:3].any()  # a column with itself
    assert (targets.pair_weights[:, 0:3, 3:5] > 0).all()
    assert targets.class_shares.sum() == pytest.approx(1)
    assert (targets.class_weights > 0).all()


@pytest.mark.parametrize("seed", range(2))
def test_classes_keep_their_shares_in_a_table_of_few_columns(seed: int):
    """Interactions and deviations of two columns say next to nothing of how many rows a class has."""
    rng = np.random.default_rng(seed)
    y = rng.random(6000) < 0.46
    b = np.where(rng.random(6000) < np.where(y, 0.03, 0.1), "x", np.where(rng.random(6000) < 0.1 * ~y, "z", "w"))
    rows = pd.DataFrame({"a": rng.random(6000) < np.where(y, 0.55, 0.4), "b": b, "y": y})
    columns = {"a": Boolean(), "b": Categorical(values=("w", "x", "z")), "y": Boolean()}
    schema = Schema(rows=6000, label="y", columns=columns)
    made = us.fit(rows, schema, method="mixture", epsilon=1.0, seed=seed).sample(6000, seed=seed)
    assert abs(made["y"].astype(bool).mean() - y.mean()) < 0.01


def test_noise_in_the_means_of_tables_is_taken_out(truth: np.ndarray, one_way: OneWay, targets: Targets):
    """Nothing was measured there, so that whatever is there is noise."""
    found = released(truth, 0.1)
    rng = np.random.default_rng(1)
    for table in found.pairs:
        table += rng.normal(0, 50, (*table.shape[:2], 1)) + rng.normal(0, 50, (len(table), 1, table.shape[2]))
    for table in found.margins.values():
        table += rng.normal(0, 50, (len(table), 1))
    shaken = make_targets(SCHEMA, one_way, COARSE, MEASURED, found)
    np.testing.assert_allclose(shaken.pairs, targets.pairs, atol=1e-3)
    np.testing.assert_allclose(shaken.margins, targets.margins, atol=1e-3)


def test_where_all_is_clear_tables_are_counts_again(clear_targets: Targets, truth: np.ndarray, one_way: OneWay):
    first, second = tables_of(truth, MEASURED)
    np.testing.assert_allclose(clear_targets.pairs[:, 0:3, 3:5], first, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(clear_targets.pairs[:, 3:5, 5:9], second, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(clear_targets.margins.sum(axis=0)[3:5], one_way.counts["b"], rtol=1e-4)
    assert not clear_targets.even.any()


def furthest(fitted: Fitted, truth: np.ndarray) -> float:
    """The largest error of a measured cell, of 1,000 rows in all."""
    places = ((slice(0, 3), slice(3, 5)), (slice(3, 5), slice(5, 9)))
    tables = zip(places, tables_of(truth, MEASURED), strict=True)
    return max(float(np.abs(two_way(fitted, *place) - table).max()) for place, table in tables)


@pytest.mark.parametrize("form", ["targets", "clear_targets"])
def test_measured_tables_are_met(form: str, truth: np.ndarray, request: pytest.FixtureRequest):
    """By either form, if a fit goes on beyond the noise."""
    given = request.getfixturevalue(form)
    fitted = fit_mixture(
        given, components=8, fits=1, steps=1000, seed=0, progress=silent, note="", noisy=False, end=0.02
    )
    assert furthest(fitted, truth) < 6


def test_tables_are_met_as_far_as_noise_goes(fitted: Fitted, truth: np.ndarray):
    """Classes that have nothing in common too, at which a fit under noise is slow."""
    apart = [table - table.sum(axis=0) / 2 for table in tables_of(truth, MEASURED)]
    assert max(np.abs(table).max() for table in apart) > 60
    assert furthest(fitted, truth) < 20


def test_the_result_is_a_mixture(fitted: Fitted):
    assert fitted.weights.shape == (2, 4)
    assert fitted.weights.sum() == pytest.approx(1)
    assert fitted.probabilities.shape == (2, 4, 9)
    assert (fitted.probabilities >= 0).all()
    for column in (slice(0, 3), slice(3, 5), slice(5, 9)):
        np.testing.assert_allclose(fitted.probabilities[..., column].sum(axis=2), 1, atol=1e-5)


def test_equal_seeds_fit_equally(targets: Targets, fitted: Fitted):
    again = fit_mixture(targets, components=8, fits=1, steps=400, seed=0, progress=silent, note="")
    np.testing.assert_array_equal(again.probabilities, fitted.probabilities)
    other = fit_mixture(targets, components=8, fits=1, steps=400, seed=1, progress=silent, note="")
    assert (other.probabilities != fitted.probabilities).any()


def test_no_more_steps_are_taken_than_asked_for(targets: Targets):
    assert fit_mixture(targets, components=8, fits=1, steps=10, seed=0, progress=silent, note="").steps <= 10


def test_a_fit_ends_at_the_step_that_meets_the_noise(truth: np.ndarray, one_way: OneWay):
    """Within a chunk of steps too: tables that noise drowns teach nothing, so that the fit stays where it began."""
    noisy = OneWay(one_way.cells, one_way.counts, one_way.total, noise=dict.fromkeys(one_way.noise, (1e4,)))
    drowned = make_targets(SCHEMA, noisy, COARSE, MEASURED, released(truth, 1e4))
    begun = fit_mixture(drowned, components=8, fits=1, steps=1, seed=0, progress=silent, note="")
    later = fit_mixture(drowned, components=8, fits=1, steps=20, seed=0, progress=silent, note="")
    np.testing.assert_array_equal(later.probabilities, begun.probabilities)
    np.testing.assert_array_equal(later.weights, begun.weights)


def test_classes_begin_alike_where_there_is_noise(targets: Targets):
    """What they have in common is learnt from both; where noise is no concern, each begins by itself."""
    begun = fit_mixture(targets, components=8, fits=1, steps=1, seed=0, progress=silent, note="").probabilities
    alone = fit_mixture(targets, components=8, fits=1, steps=1, seed=0, progress=silent, note="", noisy=False)
    assert np.abs(begun[0] - begun[1]).max() < 0.2
    assert np.abs(alone.probabilities[0] - alone.probabilities[1]).max() > 0.3


def test_neighbours_move_together_where_there_is_noise(targets: Targets):
    """Elsewhere there is nothing to learn from them, and it would be slower."""
    tied = replace(targets, ties=np.full((9, 9), 1 / 9))
    options = {"components": 8, "fits": 1, "steps": 5, "seed": 0, "progress": silent, "note": ""}
    for noisy in (True, False):
        found = [fit_mixture(given, noisy=noisy, **options).probabilities for given in (targets, tied)]
        assert (found[0] != found[1]).any() == noisy


def test_fits_lie_side_by_side(targets: Targets):
    alone = [fit_mixture(targets, components=8, fits=1, steps=25, seed=s, progress=silent, note="") for s in (3, 4)]
    both = fit_mixture(targets, components=8, fits=2, steps=25, seed=3, progress=silent, note="")
    np.testing.assert_array_equal(both.weights, np.concatenate([one.weights for one in alone], axis=1) / 2)
    np.testing.assert_array_equal(both.probabilities, np.concatenate([one.probabilities for one in alone], axis=1))


@pytest.mark.parametrize("options", [{}, {"noisy": False, "end": 0.3}, {"points": 4}], ids=str)
def test_it_makes_no_difference_which_fits_go_together(targets: Targets, monkeypatch, options: dict):
    """Fits end after steps of their own number, and the others of their group go on."""
    found, sizes, ends = [], [], []
    fit_group = fit_module._fit

    def told(*rest: object, seeds: range, **more: object) -> list[Fitted]:
        sizes[-1].append(len(seeds))
        group = fit_group(*rest, seeds=seeds, **more)
        ends.extend(fitted.steps for fitted in group)
        return group

    monkeypatch.setattr(fit_module, "_fit", told)
    for together, cores in ((1, 1), (1 << 16, 2), (200, 3)):
        sizes.append([])
        monkeypatch.setattr(fit_module, "TOGETHER", together)
        monkeypatch.setattr(fit_module.os, "cpu_count", lambda cores=cores: cores)
        found.append(fit_mixture(targets, components=8, fits=9, steps=400, seed=0, progress=silent, note="", **options))
    assert max(sizes[0]) == 1
    assert sizes[1] != sizes[2]
    assert min(max(sizes[1]), max(sizes[2])) > 1
    assert len(set(ends)) > 1
    for other in found[1:]:
        np.testing.assert_array_equal(other.probabilities, found[0].probabilities)
        np.testing.assert_array_equal(other.weights, found[0].weights)
        assert (other.steps, other.error) == (found[0].steps, found[0].error)


def test_progress_goes_through_all_fits(targets):
    told: list[float] = []
    watch = lambda stage, done, note="": told.append(done)  # noqa: E731
    fit_mixture(targets, components=8, fits=3, steps=25, seed=0, progress=watch, note="")
    assert told == sorted(told)
    assert told[0] == 0
    assert told[-1] == 1


def test_too_few_components_are_seen_and_more_taken(targets: Targets):
    """Two components a class cannot tell what depends on what in these tables; six can."""
    told: list[float] = []
    watch = lambda stage, done, note="": told.append(done)  # noqa: E731
    few = fit_mixture(targets, components=4, fits=3, steps=300, seed=0, progress=silent, note="")
    more = fit_mixture(targets, components=4, fits=3, steps=300, seed=0, progress=watch, note="", more=True)
    assert few.error > TOO_FAR > more.error
    assert few.weights.shape == (2, 3 * 2)
    assert more.weights.shape == (2, 2 * 6)
    assert more.weights.sum() == pytest.approx(1)
    assert told == sorted(told)
    assert told[-1] == 1
    enough = fit_mixture(targets, components=24, fits=3, steps=300, seed=0, progress=silent, note="", more=True)
    assert enough.weights.shape == (2, 3 * 12)


def test_a_fit_that_ends_short_gets_twice_the_components(targets: Targets):
    """Four components a class come closer than the truth is, but not as close as a fit should."""
    one = fit_mixture(targets, components=8, fits=3, steps=300, seed=0, progress=silent, note="", end=0.02)
    assert 0.02 + SHORT_OF_END < one.error < TOO_FAR
    more = fit_mixture(targets, components=8, fits=3, steps=300, seed=0, progress=silent, note="", end=0.02, more=True)
    assert more.weights.shape == (2, 2 * 8)


def test_a_step_too_far_does_not_end_a_fit(targets: Targets, monkeypatch: pytest.MonkeyPatch):
    """How far it got is looked at every so many steps; if the error has jumped just then, the fit must go on."""
    seen = []

    def jumping(*given: object) -> Errors:
        found = errors(*given)
        seen.append(1)
        return found._replace(errors=found.errors * (3 if len(seen) == 201 else 1))

    monkeypatch.setattr(fit_module, "errors", jumping)
    drowned = replace(targets, freedom=targets.freedom * 1e-9)  # so that it never ends by being close enough
    fitted = fit_mixture(drowned, components=8, fits=1, steps=400, seed=0, progress=silent, note="")
    assert fitted.steps > 200


def test_a_fit_that_goes_astray_says_so(targets: Targets, monkeypatch: pytest.MonkeyPatch):
    """And does not wait for those beside it."""
    monkeypatch.setattr(fit_module, "rate_at", lambda at, steps: 1e6)
    with pytest.raises(OptionError, match="fewer `steps`"):
        fit_mixture(targets, components=8, fits=3, steps=10_000, seed=0, progress=silent, note="")


def test_a_fit_that_fails_fails_all(targets: Targets):
    """Beside others too, and whoever listens may end it."""

    class EnoughError(Exception):
        pass

    def watch(stage: str, done: float, note: str = "") -> None:
        if done > 0.5:
            raise EnoughError

    with pytest.raises(EnoughError):
        fit_mixture(targets, components=8, fits=4, steps=25, seed=0, progress=watch, note="")


def test_what_rules_exclude_gets_no_mass():
    """Two columns in an order: the tables say nothing of it (they are even), the rule does."""
    schema = Schema.loads("""
rows: 1000
columns:
  low: {kind: integer, low: 0, high: 5}
  high: {kind: integer, low: 0, high: 5}
rules:
  - {column: low, at_most: high}
""")
    cells = fine_cells(schema)
    one_way = OneWay(cells, {name: np.full(6, 200.0) for name in cells}, 1200.0, dict.fromkeys(cells, (60.0,)))
    coarse = Coarse({name: np.array([0, 0, 1, 1, 2, 2]) for name in cells}, None, 1)
    even = Interactions([np.zeros((1, 3, 3))], [60.0], {name: np.zeros((1, 3)) for name in cells}, 60.0)
    targets = make_targets(schema, one_way, coarse, [("low", "high")], even)
    below = np.tril(np.ones((3, 3), dtype=bool), -1)  # low in a later bin than high: impossible in all its cells
    np.testing.assert_array_equal(targets.empty_weights[:3, 3:] > 0, below)
    np.testing.assert_array_equal(targets.empty_weights[3:, :3] > 0, below.T)
    fitted = fit_mixture(targets, components=8, fits=1, steps=300, seed=0, progress=silent, note="")
    joint = np.einsum("lk,lkd,lke->de", fitted.weights, fitted.probabilities[..., :3], fitted.probabilities[..., 3:])
    assert joint[below].sum() < 0.03
