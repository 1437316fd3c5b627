"""The Gaussian releases of tables: how far one row moves them, what is charged, when, and with which noise.

Each check is a function that also runs on code with a bug planted in it, where it must fail.
"""

import math
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest, norm

from understudy.errors import BudgetError
from understudy.privacy import Budget, Gaussian, Ledger, Streams, gaussian
from understudy.schema import Schema
from understudy.synthesizers import one_way as one_way_module
from understudy.synthesizers.mixture import guides as guides_module
from understudy.synthesizers.mixture import pairs as pairs_module
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.synthesizers.mixture.pairs import Coarse
from understudy.synthesizers.one_way import OneWay, fine_cells, release_one_way
from understudy.table.table import Table

MULTIPLIER = 3.0
# By column of the tiny schema: width and weight of every rung that it is counted on. Weights are eight times the cube
# root of the cells (at most 16 of an ordered column), rounded.
RUNGS = {"town": [(1, 13)], "age": [(1, 12)], "sick": [(1, 12)], "wage": [(1, 20), (16, 20), (256, 16)]}
# A row that is missing in `wage` is on its first rung alone, so that it moves less than one that is not.
ONE_WAY_MOVED = math.sqrt(13**2 + 12**2 + 12**2 + 20**2 + 20**2 + 16**2)
OPEN = Budget(1e6, 1e-6)
# A release, given a module to run it from: (module, table, streams, ledger) -> whatever it gives back.
Release = Callable[[ModuleType, Table, Streams | None, Ledger | None], Any]


def run_one_way(module: ModuleType, table: Table, streams: Streams | None, ledger: Ledger | None) -> OneWay:
    return module.release_one_way(
        table, fine_cells(table.schema), noise_multiplier=MULTIPLIER, streams=streams, ledger=ledger
    )


@pytest.fixture(scope="module")
def one_way(every_row: Table) -> OneWay:
    """Some released one-way tables, held fixed from here on."""
    return release_one_way(
        every_row,
        fine_cells(every_row.schema),
        noise_multiplier=MULTIPLIER,
        streams=Streams.from_seed(0),
        ledger=Ledger(OPEN),
    )


def coarse_of(one_way: OneWay, schema: Schema, *, split: bool) -> Coarse:
    names = [name for name in schema.modelled if not (split and name == "sick")]
    groups = {
        name: coarse_groups(one_way.cells[name], one_way.counts[name], bins=5, most_codes=64, rare=0.0)
        for name in names
    }
    return Coarse(groups, "sick" if split else None, 3 if split else 1)


def all_pairs(coarse: Coarse) -> list[tuple[str, str]]:
    names = list(coarse.groups)
    return [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]


def pair_weights(pairs: list[tuple[str, str]], *, split: bool, chosen: int) -> list[int]:
    """Pairs with a label that tables are not split by count double, and so do the first `chosen`."""
    return [2 if number < chosen or (not split and "sick" in pair) else 1 for number, pair in enumerate(pairs)]


def pair_release(one_way: OneWay, schema: Schema, *, split: bool, chosen: int = 0) -> Release:
    coarse = coarse_of(one_way, schema, split=split)
    pairs = all_pairs(coarse)
    weights = pair_weights(pairs, split=split, chosen=chosen)

    def run(module: ModuleType, table: Table, streams: Streams | None, ledger: Ledger | None) -> list[np.ndarray]:
        return module.release_pairs(
            *(table, one_way, coarse, pairs, weights), noise_multiplier=MULTIPLIER, streams=streams, ledger=ledger
        )

    return run


def fine_release(one_way: OneWay, schema: Schema) -> Release:
    """Finer tables of three pairs, one column being guided and a guide itself."""
    coarse = coarse_of(one_way, schema, split=True)
    of = {"wage": "town", "age": "wage", "sick": "age"}
    coarse = Coarse(coarse.groups | {"sick": np.arange(3)}, None, 1)
    plan = SimpleNamespace(fine_multiplier=MULTIPLIER, runs=lambda guided: 12)

    def run(module: ModuleType, table: Table, streams: Streams | None, ledger: Ledger | None) -> list[np.ndarray]:
        return module.release_fine(table, one_way, coarse, of, plan, streams=streams, ledger=ledger)

    return run


def moved_by_hand(coarse: Coarse, *, split: bool, chosen: int) -> float:
    """The square: a row's own code is 1 and every code of a column less one part of so many as there are codes."""
    free = {}
    for name in coarse.groups:
        own = np.eye(coarse.size(name))[0] - 1 / coarse.size(name)
        free[name] = float(own @ own)
    pairs = all_pairs(coarse)
    weights = pair_weights(pairs, split=split, chosen=chosen)
    return sum(w**2 * free[a] * free[b] for (a, b), w in zip(pairs, weights, strict=True)) + sum(free.values())


@pytest.fixture(scope="module", params=["one-way", "pairs", "pairs split by label", "pairs with a chosen one", "fine"])
def case(request: pytest.FixtureRequest, one_way: OneWay, tiny_schema: Schema) -> SimpleNamespace:
    """Each release with its module and how far one row moves it, worked out by hand."""
    if request.param == "one-way":
        return SimpleNamespace(name=request.param, module=one_way_module, run=run_one_way, moved=ONE_WAY_MOVED)
    if request.param == "fine":
        run = fine_release(one_way, tiny_schema)
        return SimpleNamespace(name=request.param, module=guides_module, run=run, moved=math.sqrt(3))
    split, chosen = request.param != "pairs", int(request.param == "pairs with a chosen one")
    run = pair_release(one_way, tiny_schema, split=split, chosen=chosen)
    moved = moved_by_hand(coarse_of(one_way, tiny_schema, split=split), split=split, chosen=chosen)
    return SimpleNamespace(name=request.param, module=pairs_module, run=run, moved=math.sqrt(moved), chosen=chosen)


# --- checks ---


class CapturedError(Exception):
    """Ends a release once the mechanism has been asked."""


def captured_call(module: ModuleType, run: Release, table: Table) -> SimpleNamespace:
    """What the release hands to the mechanism (`check_order` sees that it asks once)."""
    calls = []

    def capture(values: np.ndarray, **options: Any) -> np.ndarray:
        calls.append(SimpleNamespace(values=np.array(values), **options))
        raise CapturedError

    module.gaussian = capture
    with pytest.raises(CapturedError):
        run(module, table, None, None)
    return calls[0]


def check_sensitivity(module: ModuleType, run: Release, neighbours: list, distance: float) -> None:
    """Added rows move the stacked counts by at most this distance, and some reach it; the noise was told of it."""
    largest = 0.0
    for base, grown in neighbours:
        before = captured_call(module, run, base)
        for table in grown:
            after = captured_call(module, run, table)
            assert after.values.shape == before.values.shape
            # Whole numbers leave nothing for floating point to leak; interactions are fractions, which the mechanism
            # rounds to its grid with noise to cover that.
            assert after.values.dtype.kind == ("f" if hasattr(module, "release_pairs") else "i")
            moved = np.linalg.norm((after.values - before.values).astype(float))
            largest = max(largest, moved)
            assert moved <= after.l2_sensitivity * (1 + 1e-12)
            assert moved > distance / 2  # a sum, not a mean: rows count for much the same beside few and many others
            assert (after.l2_sensitivity, after.noise_multiplier) == (before.l2_sensitivity, before.noise_multiplier)
    assert largest == pytest.approx(distance, rel=1e-12)


def residuals(module: ModuleType, run: Release, table: Table, runs: int, mechanism: Any = gaussian) -> np.ndarray:
    """Released less exact counts, over many runs."""
    exact = captured_call(module, run, table).values
    outputs = []

    def passing(values: np.ndarray, **options: Any) -> np.ndarray:
        outputs.append(mechanism(values, **options))
        return outputs[-1]

    module.gaussian = passing
    streams = Streams.from_seed(11)
    for _ in range(runs):
        run(module, table, streams, Ledger(OPEN))
    return np.concatenate([output - exact for output in outputs])


def check_scale(noise: np.ndarray, expected: float) -> None:
    """At 100,000 draws a scale that is off by a twentieth cannot pass, and the right one does."""
    assert len(noise) >= 100_000
    assert kstest(noise, norm(scale=expected).cdf).pvalue > 1e-4
    for wrong in (0.95, 1.05):
        assert kstest(noise, norm(scale=wrong * expected).cdf).pvalue < 1e-6


def check_order(module: ModuleType, run: Release, table: Table, logged: Any, mechanism: Any = gaussian) -> None:
    """The charge, and exactly that charge, is in the ledger before noise is drawn."""
    streams, ledger, log = logged()
    module.gaussian = mechanism
    run(module, table, streams, ledger)
    assert [entry[0] for entry in log] == ["charge", "gaussian"]
    assert ledger.events == (Gaussian(MULTIPLIER),)


class NoNoise:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError("noise was drawn")


def check_refusal(module: ModuleType, run: Release, table: Table, mechanism: Any = gaussian) -> None:
    """Over budget: nothing is drawn, nothing comes back, nothing is written down."""
    ledger = Ledger(Budget(1.0, 1e-6))
    ledger.charge(Gaussian(6.0), "before")
    module.gaussian = mechanism
    streams = Streams(noise=NoNoise(), sampling=np.random.default_rng(0), init=0, seeded=True)
    with pytest.raises(BudgetError):
        run(module, table, streams, ledger)
    assert ledger.events == (Gaussian(6.0),)


# --- as it is ---


def test_one_row_moves_the_counts_by_exactly_the_sensitivity(case, neighbours, copy_of):
    check_sensitivity(copy_of(case.module), case.run, neighbours, case.moved)


def test_the_noise_has_the_charged_scale_and_no_other(case, every_row, copy_of):
    module = copy_of(case.module)
    runs = -(-100_000 // captured_call(module, case.run, every_row).values.size)
    noise = residuals(module, case.run, every_row, runs)
    check_scale(noise, MULTIPLIER * case.moved)
    neighbours_in_array = np.corrcoef(noise[1:], noise[:-1])[0, 1]
    assert abs(neighbours_in_array) < 5 / math.sqrt(len(noise))


def test_the_operating_systems_noise_has_the_charged_scale(case, every_row, copy_of):
    module = copy_of(case.module)
    exact = captured_call(module, case.run, every_row).values
    outputs = []
    module.gaussian = lambda values, **options: outputs.append(gaussian(values, **options)) or outputs[-1]
    runs = -(-8_000 // exact.size)
    for _ in range(runs):
        case.run(module, every_row, Streams.from_entropy(), Ledger(OPEN))
    noise = np.concatenate(outputs) - np.tile(exact, runs)
    # 8,000 draws know their standard deviation to 0.8%: six of that, and a tenth would not pass.
    assert noise.std() == pytest.approx(MULTIPLIER * case.moved, rel=0.048)


def test_the_charge_comes_before_the_noise(case, every_row, copy_of, logged):
    check_order(copy_of(case.module), case.run, every_row, logged)


def test_a_refusal_leaves_no_trace(case, every_row, copy_of):
    check_refusal(copy_of(case.module), case.run, every_row)


def test_counts_are_those_of_the_rows(case, every_row, copy_of, tiny_schema, one_way):
    """Exact counts against a loop over rows, so that the sensitivity is that of the right tables."""
    values = captured_call(copy_of(case.module), case.run, every_row).values
    cells = {name: c.index(every_row.codes(name)).astype(int) for name, c in one_way.cells.items()}
    if case.name == "one-way":
        expected = []
        for name, rungs in RUNGS.items():
            counts = np.bincount(cells[name], minlength=one_way.cells[name].count)
            for width, weight in rungs:
                runs = (
                    -(-(len(counts) - 1) // width) if width > 1 else len(counts)
                )  # missing is on the first rung alone
                inside = cells[name] < (len(counts) - 1 if width > 1 else len(counts))
                expected.append(weight * np.bincount(cells[name][inside] // width, minlength=runs))
        assert values.tolist() == np.concatenate(expected).tolist()
        return
    if case.name == "fine":
        fine = case.run(copy_of(case.module), every_row, Streams.from_seed(0), Ledger(OPEN))
        expected = []
        for name, guide in fine.of.items():
            table = np.zeros(fine.counts[name].shape, dtype=int)
            for row in range(every_row.rows):
                table[fine.runs[guide][cells[guide][row]], fine.runs[name][cells[name][row]]] += 1
            expected.append(table.ravel())
        assert values.tolist() == np.concatenate(expected).tolist()
        return
    coarse = coarse_of(one_way, tiny_schema, split=case.name != "pairs")
    expected, columns = [], {}
    pairs = all_pairs(coarse)
    weights = pair_weights(pairs, split=coarse.label is not None, chosen=case.chosen)
    for (first, second), weight in zip(pairs, weights, strict=True):
        table = np.zeros(coarse.shape((first, second)), dtype=int)
        for row in range(every_row.rows):
            label = cells["sick"][row] if coarse.label else 0
            table[label, coarse.groups[first][cells[first][row]], coarse.groups[second][cells[second][row]]] += 1
        rows, others = table.mean(axis=2, keepdims=True), table.mean(axis=1, keepdims=True)
        expected.append(weight * (table - rows - others + table.mean(axis=(1, 2), keepdims=True)).ravel())
        for axis, name in enumerate((first, second)):
            columns[name] = table.sum(axis=2 - axis)
    expected += [(columns[name] - columns[name].mean(axis=1, keepdims=True)).ravel() for name in coarse.groups]
    np.testing.assert_allclose(values, np.concatenate(expected), atol=1e-9)


def test_rows_outside_the_domain_change_no_shape(every_row, take, copy_of, one_way, tiny_schema):
    """Clipped, `other` and missing cells fall into cells that were there before them."""
    module = copy_of(one_way_module)
    inside = [row for row in range(every_row.rows) if every_row.codes("town")[row] == 0][:1]
    few = captured_call(module, run_one_way, take(every_row, inside))
    many = captured_call(module, run_one_way, every_row)
    assert few.values.shape == many.values.shape == (4 + 3 + 3 + (2049 + 128 + 8),)


# --- planted bugs ---


def halved_noise(values: np.ndarray, *, noise_multiplier: float, ledger: Ledger, purpose: str, **rest: Any) -> Any:
    ledger.charge(Gaussian(noise_multiplier), purpose)
    return gaussian(values, noise_multiplier=noise_multiplier / 2, ledger=Ledger(OPEN), purpose=purpose, **rest)


def noise_without_sensitivity(values: np.ndarray, *, l2_sensitivity: float, **rest: Any) -> np.ndarray:
    return gaussian(values, l2_sensitivity=1.0, **rest)


def charged_afterwards(
    values: np.ndarray, *, noise_multiplier: float, ledger: Ledger, purpose: str, **rest: Any
) -> Any:
    out = gaussian(values, noise_multiplier=noise_multiplier, ledger=Ledger(OPEN), purpose=purpose, **rest)
    ledger.charge(Gaussian(noise_multiplier), purpose)
    return out


def never_charged(values: np.ndarray, *, ledger: Ledger, **rest: Any) -> np.ndarray:
    return gaussian(values, ledger=Ledger(OPEN), **rest)


def charged_too_little(
    values: np.ndarray, *, noise_multiplier: float, ledger: Ledger, purpose: str, **rest: Any
) -> Any:
    ledger.charge(Gaussian(2 * noise_multiplier), purpose)
    return gaussian(values, noise_multiplier=noise_multiplier, ledger=Ledger(OPEN), purpose=purpose, **rest)


@pytest.mark.parametrize("bug", [halved_noise, noise_without_sensitivity])
def test_planted_wrong_noise_is_caught(case, every_row, copy_of, bug):
    module = copy_of(case.module)
    runs = -(-100_000 // captured_call(module, case.run, every_row).values.size)
    noise = residuals(module, case.run, every_row, runs, mechanism=bug)
    with pytest.raises(AssertionError):
        check_scale(noise, MULTIPLIER * case.moved)


@pytest.mark.parametrize("bug", [charged_afterwards, never_charged, charged_too_little])
def test_planted_wrong_charges_are_caught(case, every_row, copy_of, logged, bug):
    with pytest.raises(AssertionError):
        check_order(copy_of(case.module), case.run, every_row, logged, mechanism=bug)


@pytest.mark.parametrize("bug", [charged_afterwards, never_charged])
def test_planted_late_refusals_are_caught(case, every_row, copy_of, bug):
    with pytest.raises(AssertionError, match="noise was drawn"):
        check_refusal(copy_of(case.module), case.run, every_row, mechanism=bug)


BUGS = {
    "a rung that is not accounted for": {
        "one-way": ("for weight in rungs))", "for weight in rungs[:1]))"),
        "pairs": ("moved += MARGIN_WEIGHT**2 * sum(", "moved += 0 * sum("),
        "fine": ("sensitivity = math.sqrt(len(of))", "sensitivity = math.sqrt(len(of) - 1)"),
    },
    "sensitivity of one table": {
        "one-way": ("l2_sensitivity=_sensitivity(weights),", "l2_sensitivity=8.0,"),
        "pairs": ("l2_sensitivity=sensitivity,", "l2_sensitivity=0.8,"),
        "fine": ("l2_sensitivity=sensitivity,", "l2_sensitivity=1.0,"),
    },
    "L-infinity in place of L2": {
        "one-way": ("l2_sensitivity=_sensitivity(weights),", "l2_sensitivity=math.sqrt(_sensitivity(weights)),"),
        "pairs": ("l2_sensitivity=sensitivity,", "l2_sensitivity=math.sqrt(sensitivity),"),
        "fine": ("l2_sensitivity=sensitivity,", "l2_sensitivity=math.sqrt(sensitivity),"),
    },
    "rows counted twice": {
        "one-way": ("exact[name] += np.bincount(", "exact[name] += 2 * np.bincount("),
        "pairs": ("count += np.bincount(", "count += 2 * np.bincount("),
        "fine": ("exact[name] += np.bincount(", "exact[name] += 2 * np.bincount("),
    },
    "cells that the rows decide": {
        "one-way": (
            "        np.concatenate(counted),",
            "        np.concatenate([e[e > 0] for e in counted]),",
        ),
        "pairs": (
            "np.concatenate([part.ravel() for part in parts]),",
            "np.concatenate([part.ravel()[part.ravel() > 0] for part in parts]),",
        ),
        "fine": (
            "np.concatenate(list(exact.values())),",
            "np.concatenate([e[e > 0] for e in exact.values()]),",
        ),
    },
    "means in place of sums": {
        "one-way": (
            "        np.concatenate(counted),",
            "        np.concatenate(counted) / max(table.rows, 1),",
        ),
        "pairs": (
            "np.concatenate([part.ravel() for part in parts]),",
            "np.concatenate([part.ravel() for part in parts]) / max(table.rows, 1),",
        ),
        "fine": (
            "np.concatenate(list(exact.values())),",
            "np.concatenate(list(exact.values())) / max(table.rows, 1),",
        ),
    },
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_wrong_sensitivities_are_caught(case, neighbours, copy_of, bug):
    change = BUGS[bug][case.name if case.name in BUGS[bug] else "pairs"]
    module = copy_of(case.module, change)
    with pytest.raises(AssertionError):
        check_sensitivity(module, case.run, neighbours, case.moved)


@pytest.mark.parametrize(
    "change",
    [
        ("weight * interactions(count)", "weight * count"),
        ("MARGIN_WEIGHT * deviations(count)", "MARGIN_WEIGHT * count"),
        ("first * second * counts - first * rows", "first * second * counts - 0 * rows"),
    ],
)
def test_counts_in_place_of_what_is_beyond_columns_are_caught(case, neighbours, copy_of, change):
    """They move further than the noise is scaled to."""
    if case.name in ("one-way", "fine"):
        pytest.skip("has no interactions")
    with pytest.raises(AssertionError):
        check_sensitivity(copy_of(case.module, change), case.run, neighbours, case.moved)
