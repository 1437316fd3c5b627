"""Tables that are noise for the most part are drawn towards independent columns; what may be dependence is left."""

import numpy as np
import pytest

from understudy.schema import Integer, Schema
from understudy.synthesizers.mixture.pairs import Coarse, Interactions, deviations, interactions
from understudy.synthesizers.mixture.targets import make_targets
from understudy.synthesizers.mixture.weak import LEAST_PART, part_kept, parts_kept, shares_by_class
from understudy.synthesizers.one_way import OneWay, fine_cells

RNG = np.random.default_rng(0)
NOISE = interactions(RNG.normal(size=(2, 12, 10)))


def test_noise_is_halved_and_dependence_is_not():
    weights = np.ones_like(NOISE)
    assert part_kept(NOISE, weights) == LEAST_PART
    assert part_kept(1.5 * NOISE, weights) == 1
    assert part_kept(1.5 * NOISE, weights / 1.5**2) == LEAST_PART  # it is the size over the noise that tells


def test_more_dependence_keeps_more():
    kept = [part_kept(size * NOISE, np.ones_like(NOISE)) for size in (0.8, 1.0, 1.15, 1.2, 1.5)]
    assert kept == sorted(kept)
    assert LEAST_PART < kept[2] < 1


def test_a_cell_that_stands_out_keeps_its_table():
    marked = NOISE.copy()
    marked[0, 3, 4] = 5.0
    assert part_kept(marked, np.ones_like(marked)) == 1


def test_a_little_in_every_class_is_seen():
    little = np.repeat(NOISE[:1], 4, axis=0) * 0.9
    little[:, 2, 2] = 2.2
    assert np.abs(little).max() < np.sqrt(2 * np.log(4 * 99))  # no class by itself shows it
    assert part_kept(little, np.ones_like(little)) == 1
    alone = np.concatenate([little[:1], 0.9 * interactions(RNG.normal(size=(3, 12, 10)))])
    assert part_kept(alone, np.ones_like(alone)) == LEAST_PART


def test_where_few_tables_are_weak_they_are_not_taken_for_it():
    noise, strong = (NOISE, np.ones_like(NOISE)), (2 * NOISE, np.ones_like(NOISE))
    small = tuple(table[:, :3, :3] for table in noise)
    assert parts_kept([noise, noise, strong]) == [LEAST_PART, LEAST_PART, 1]
    assert parts_kept([noise, strong, strong]) == [1, 1, 1]
    assert parts_kept([noise, small, small]) == [LEAST_PART, 1, 1]  # it is numbers that count, not tables
    assert parts_kept([]) == []


@pytest.mark.parametrize("shape", [(1, 2, 2), (2, 3, 3), (1, 1, 5)])
def test_few_cells_cannot_tell(shape: tuple[int, int, int]):
    table = interactions(RNG.normal(size=shape))
    assert part_kept(table, np.ones(shape)) == 1


def test_shares_are_those_of_each_class_and_never_negative():
    counts = np.array([[30.0, 60.0, 10.0], [0.0, 5.0, 45.0]])
    found = shares_by_class(deviations(counts), counts.sum(axis=0), counts.sum(axis=1))
    np.testing.assert_allclose(found, counts / counts.sum(axis=1, keepdims=True), atol=3e-3)
    noisy = shares_by_class(deviations(counts) - np.array([20.0, 0, 0]), counts.sum(axis=0), counts.sum(axis=1))
    assert (noisy > 0).all()
    assert (shares_by_class(np.zeros((1, 3)), np.zeros(3), np.zeros(1)) > 0).all()  # no rows at all


def test_independent_columns_are_what_a_weak_table_is_drawn_to():
    """And the error that a fit may leave there is that of what was kept."""
    schema = Schema(rows=1000, columns={"a": Integer(low=0, high=11), "b": Integer(low=0, high=9)})
    rows = {"a": RNG.dirichlet(np.ones(12)), "b": RNG.dirichlet(np.ones(10))}
    alone = 1000 * np.outer(rows["a"], rows["b"])[None]
    ones = {name: 1000 * share for name, share in rows.items()}
    one_way = OneWay(fine_cells(schema), ones, 1000.0, dict.fromkeys(rows, (1.0,)))
    coarse = Coarse({name: np.arange(len(share)) for name, share in rows.items()}, None, 1)
    margins = {name: deviations(count[None]) for name, count in ones.items()}

    def made(table: np.ndarray, *, clear: bool = False):
        found = Interactions([interactions(table)], [10.0], margins, 10.0)
        targets = make_targets(schema, one_way, coarse, [("a", "b")], found, clear=clear)
        return targets.pairs[:, :12, 12:], targets.freedom

    noise = 10 * NOISE[:1]
    weak, free = made(alone + noise)
    np.testing.assert_allclose(weak, interactions(alone) + LEAST_PART * noise, atol=0.05)
    assert free == pytest.approx(LEAST_PART**2 * 11 * 9 + 11 + 9)
    strong, all_free = made(alone + 2 * noise)
    np.testing.assert_allclose(strong, interactions(alone) + 2 * noise, atol=1e-3)
    assert all_free == 11 * 9 + 11 + 9
    clear, _ = made(alone + noise, clear=True)
    np.testing.assert_allclose(clear, alone + noise, atol=1e-3)
