"""Smoothing of ordered columns: consistent whatever comes in, and closer to the truth where noise is large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.schema import Integer, Schema
from understudy.synthesizers.denoise import project_to_total
from understudy.synthesizers.ladder import RUNG, climb, widths_of
from understudy.synthesizers.one_way import consistent, fine_cells
from understudy.synthesizers.smooth import MOST_SPIKES, Pieces, cut, smooth

MOST = 256


def noisy_rungs(truth: np.ndarray, noises: tuple[float, ...], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    widths = widths_of(len(truth))
    return [climb(truth, w) + rng.normal(0, s, -(-len(truth) // w)) for w, s in zip(widths, noises, strict=True)]


def even_noise(cells: int, noise: float) -> tuple[float, ...]:
    return (noise,) * len(widths_of(cells))


def smoothed(truth: np.ndarray, noise: float, seed: int = 0) -> np.ndarray:
    noises = even_noise(len(truth), noise)
    return smooth(noisy_rungs(truth, noises, seed), noises, truth.sum(), np.ones(len(truth)), most_pieces=MOST)


def farthest(found: np.ndarray, truth: np.ndarray) -> float:
    """The largest error of a share of the rows below some value."""
    return float(np.abs(np.cumsum(found - truth)).max() / truth.sum())


@given(
    st.integers(4, 1500),
    st.floats(0.0, 1e6),
    st.floats(1e-3, 1e5),
    st.sampled_from([8, 64, MOST]),
    st.integers(0, 2**32 - 1),
)
def test_counts_are_not_negative_and_sum_to_the_total(cells: int, total: float, noise: float, most: int, seed: int):
    truth = np.random.default_rng(seed).integers(0, 30, cells).astype(float)
    noises = even_noise(cells, noise)
    found = smooth(noisy_rungs(truth, noises, seed), noises, total, np.ones(cells), most_pieces=most)
    assert len(found) == cells
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("cells", [5, 100, 700, 2048])
def test_where_noise_is_small_the_counts_come_back(cells: int):
    truth = np.random.default_rng(0).integers(0, 1000, cells).astype(float)
    np.testing.assert_allclose(smoothed(truth, 0.01), truth, atol=0.2)


def test_no_value_is_impossible():
    """Rows that rules move, and those of others that are scored, may hold any value between the bounds."""
    truth = np.zeros(2048)
    truth[100:110] = 300.0
    assert (smoothed(truth, 20.0) > 0).all()


@pytest.mark.parametrize("cells", [90, 2048])
def test_pieces_hold_every_cell_and_every_count(cells: int):
    truth = np.random.default_rng(0).poisson(np.linspace(0, 40, cells)).astype(float)
    noises = even_noise(cells, 1.0)
    pieces = cut([climb(truth, width) for width in widths_of(cells)], noises, np.ones(cells), MOST)
    check_pieces(pieces, truth)


def check_pieces(pieces: Pieces, truth: np.ndarray) -> None:
    assert len(pieces.counts) <= MOST + MOST_SPIKES
    np.testing.assert_array_equal(pieces.lengths, np.bincount(pieces.owners))
    np.testing.assert_allclose(pieces.counts, np.bincount(pieces.owners, weights=truth))
    np.testing.assert_allclose(pieces.members @ pieces.counts, pieces.joint_counts)
    assert len(pieces.joint_counts) == len(pieces.joint_variances) > 0


def test_heavy_runs_alone_are_cut_into_cells():
    truth = np.zeros(2048)
    truth[800:832] = 500.0
    pieces = cut([climb(truth, width) for width in widths_of(2048)], (10.0, 10.0, 10.0), np.ones(2048), MOST)
    assert (pieces.middles[pieces.lengths == 1] - 0.5).tolist() == list(range(800, 832))


@pytest.mark.parametrize("values", [40, 600])
def test_spikes_are_pieces_of_their_own_beside_what_is_left_of_their_run(values: int):
    """Of more spikes than there is time for, the heaviest."""
    truth = np.random.default_rng(0).poisson(3.0, 2048).astype(float)
    at = np.sort(np.random.default_rng(1).choice(2048, values, replace=False))
    truth[at] += 300.0 + at
    noises = (10.0, 10.0, 10.0)
    pieces = cut([climb(truth, width) for width in widths_of(2048)], noises, np.ones(2048), MOST)
    check_pieces(pieces, truth)
    kept = np.sort(at[np.argsort(-truth[at], kind="stable")[:MOST_SPIKES]])
    spiky = np.flatnonzero(pieces.spiky[pieces.owners])
    assert len(spiky) == min(values, MOST_SPIKES)
    assert np.isin(spiky, kept).mean() > 0.9
    assert (pieces.lengths[pieces.spiky] == 1).all()
    # The count of a run is told once: with its piece where it is one, else with all of its pieces.
    runs = pieces.members[: len(pieces.members) - 8]
    assert ((runs @ pieces.lengths) == RUNG).all()
    assert ((runs > 0).sum(axis=1) > 1).all()


@pytest.mark.parametrize(("cells", "part"), [(60, 0.75), (200, 0.4), (2048, 0.2)])
def test_a_smooth_column_is_closer_than_by_its_counts_alone(cells: int, part: float):
    where = np.random.default_rng(1).normal(cells / 3, cells / 12, 2000)
    truth = np.bincount(np.clip(where, 0, cells - 1).astype(int), minlength=cells).astype(float)
    ours, plain = [], []
    for seed in range(5):
        noises = even_noise(cells, 30.0)
        rungs = noisy_rungs(truth, noises, seed)
        found = smooth(rungs, noises, truth.sum(), np.ones(cells), most_pieces=MOST)
        ours.append(np.abs(climb(found - truth, cells // 20)).sum())
        plain.append(np.abs(climb(project_to_total(rungs[0], truth.sum()) - truth, cells // 20)).sum())
    assert np.mean(ours) < part * np.mean(plain)


def test_an_empty_tail_stays_almost_empty():
    """All rows lie in the first tenth of the domain; noise above zero in the rest must not add up."""
    truth = np.zeros(2048)
    truth[:200] = 10.0
    tails = [smoothed(truth, 40.0, seed)[256:].sum() / truth.sum() for seed in range(5)]
    assert np.mean(tails) < 0.05


@pytest.mark.parametrize(("cells", "at"), [(100, 40), (2048, 700), (2048, 0)])
def test_a_spike_among_noise_keeps_its_height(cells: int, at: int):
    truth = np.zeros(cells)
    truth[at] = 500.0
    found = smoothed(truth, 10.0)
    assert found.argmax() == at
    assert found[at] > 400


def test_round_values_stand_out_of_a_smooth_column():
    truth = np.full(100, 20.0)
    truth[::10] = 400.0
    noises = even_noise(100, 15.0)
    rungs = noisy_rungs(truth, noises, 0)
    assert np.flatnonzero(cut(rungs, noises, np.ones(100), MOST).spiky).tolist() == list(range(0, 100, 10))
    found = smooth(rungs, noises, truth.sum(), np.ones(100), most_pieces=MOST)
    assert np.abs(found[::10] - 400).max() < 60
    assert np.abs(np.delete(found, np.arange(0, 100, 10)) - 20).mean() < 8


def test_long_runs_are_known_far_better_than_by_single_cells():
    """A skewed column of few rows: halves, quarters and tenths of the domain."""
    rng = np.random.default_rng(0)
    truth = np.bincount(np.minimum(rng.exponential(60, 800).astype(int), 2047), minlength=2048).astype(float)
    ladder, single = [], []
    for seed in range(5):
        ladder.append(farthest(smoothed(truth, 20.0 * 3**0.5, seed), truth))  # what three rungs cost each
        flat = truth + np.random.default_rng(seed).normal(0, 20.0, 2048)
        single.append(farthest(project_to_total(flat, truth.sum()), truth))
    assert np.mean(ladder) < 0.4 * np.mean(single)


def test_missing_cells_take_their_part_of_the_total_beside_the_order():
    schema = Schema(rows=1000, columns={"age": Integer(low=0, high=49, missing=True)})
    cells = fine_cells(schema)
    truth = np.append(np.full(50, 10.0), 500.0)
    rng = np.random.default_rng(0)
    found = consistent(cells, {"age": [truth + rng.normal(0, 5, 51)]}, noise={"age": (5.0,)})
    assert found.counts["age"].sum() == pytest.approx(found.total)
    assert found.counts["age"][-1] == pytest.approx(500, abs=25)


def test_a_column_of_missing_cells_alone_is_told_too():
    schema = Schema(rows=100, columns={"age": Integer(low=0, high=49, missing=True)})
    noisy = np.append(np.full(50, -3.0), 200.0)
    found = consistent(fine_cells(schema), {"age": [noisy]}, noise={"age": (5.0,)})
    assert (found.counts["age"][:-1] == 0).all()
    assert found.counts["age"][-1] == pytest.approx(found.total)


def test_a_column_of_few_values_has_little_beside_them():
    """A lattice of 150 values, each eight times the noise, and nothing between: all but a few hundredths on them."""
    truth = np.zeros(2048)
    truth[9 + 13 * np.arange(150)] = 300.0
    off = [smoothed(truth, 38.0, seed)[truth == 0].sum() / truth.sum() for seed in range(5)]
    assert np.mean(off) < 0.02


def test_runs_tell_how_high_spikes_are():
    """A spike and nothing beside it is told by its cell, its run and the run of runs: closer than by its cell alone."""
    truth = np.zeros(2048)
    truth[[100, 700, 1500]] = 800.0, 2000.0, 1500.0
    ours, plain = [], []
    for seed in range(20):
        noises = even_noise(2048, 40.0)
        rungs = noisy_rungs(truth, noises, seed)
        found = smooth(rungs, noises, truth.sum(), np.ones(2048), most_pieces=MOST)
        ours.append(np.abs(found - truth)[truth > 0].sum())
        plain.append(np.abs(rungs[0] - truth)[truth > 0].sum())
    assert np.mean(ours) < 0.8 * np.mean(plain)
