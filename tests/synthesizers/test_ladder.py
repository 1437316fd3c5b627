"""Ladders of widths: every count has its place, and carries the noise that was planned."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.privacy import Budget, Ledger, Streams
from understudy.schema import Integer, Schema
from understudy.synthesizers.ladder import RUNG, climb, run_variance, share_out, widths_of
from understudy.synthesizers.one_way import consistent, fine_cells, one_way_noise, release_one_way, table_weights
from understudy.table.table import Table


@given(st.lists(st.integers(0, 50), min_size=1, max_size=1200).map(np.array))
def test_every_rung_holds_every_count(counts: np.ndarray):
    for width in widths_of(len(counts)):
        assert climb(counts, width).sum() == counts.sum()
        assert len(climb(counts, width)) == -(-len(counts) // width)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20).map(np.array), st.floats(0, 1000))
def test_a_family_shares_what_it_holds(found: np.ndarray, mass: float):
    parts = share_out(found, np.ones(len(found)), np.ones(len(found)), mass)
    assert (parts >= 0).all()
    assert parts.sum() == pytest.approx(mass, abs=1e-6)


def test_differences_that_noise_explains_are_levelled_and_others_stay():
    rng = np.random.default_rng(1)
    level = share_out(100 + rng.normal(0, 5, 16), np.full(16, 25.0), np.ones(16), 1600)
    assert np.ptp(level) < 8
    stepped = share_out(np.repeat([50.0, 150.0], 8), np.full(16, 25.0), np.ones(16), 1600)
    assert stepped[0] < 56
    assert stepped[-1] > 144


def test_a_runs_variance_is_read_off_the_best_rung():
    assert run_variance(np.array([1, RUNG, 10 * RUNG]), (2.0, 3.0)).tolist() == [4.0, 9.0, 90.0]


def test_a_tables_weight_grows_with_its_cells():
    schema = Schema.loads("""
rows: 100
columns:
  flag: {kind: boolean}
  code: {kind: categorical, values: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, "0"]}
  age: {kind: integer, low: 0, high: 99}
""")
    cells = fine_cells(schema)
    assert table_weights(cells) == {"flag": (10,), "code": (24,), "age": (20, 15)}
    noise = one_way_noise(cells, 2.0)
    assert noise["flag"][0] == pytest.approx(2 * (10**2 + 24**2 + 20**2 + 15**2) ** 0.5 / 10)


def test_released_noise_is_what_was_planned():
    """By column and rung, against the exact counts: a weight that is not divided out again would show."""
    schema = Schema(rows=1000, columns={"age": Integer(low=0, high=99), "year": Integer(low=0, high=3)})
    cells = fine_cells(schema)
    rng = np.random.default_rng(0)
    codes = {"age": rng.integers(0, 100, 1000, dtype=np.uint8), "year": rng.integers(0, 4, 1000, dtype=np.uint8)}
    table = Table.from_codes(schema, codes)
    seen: dict[str, list[list[np.ndarray]]] = {"age": [], "year": []}

    def keep(cells, noisy, *, noise):
        for name, rungs in noisy.items():
            seen[name].append(rungs)
        return consistent(cells, noisy, noise=noise)

    import understudy.synthesizers.one_way as module

    original, module.consistent = module.consistent, keep
    try:
        streams = Streams.from_seed(0)
        for _ in range(200):
            release_one_way(table, cells, noise_multiplier=3.0, streams=streams, ledger=Ledger(Budget(1e6, 1e-6)))
    finally:
        module.consistent = original
    planned = one_way_noise(cells, 3.0)
    for name, widths in (("age", (1, 16)), ("year", (1,))):
        exact = np.bincount(codes[name], minlength=cells[name].count)
        for rung, width in enumerate(widths):
            off = np.concatenate([rungs[rung] - climb(exact, width) for rungs in seen[name]])
            assert off.std() == pytest.approx(planned[name][rung], rel=6 / (2 * len(off)) ** 0.5)
            assert abs(off.mean()) < 6 * off.std() / len(off) ** 0.5
