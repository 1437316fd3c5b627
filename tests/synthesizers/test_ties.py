"""Neighbouring bins move together; what has no neighbours moves alone."""

import numpy as np
import pytest

from understudy.schema import Categorical, Integer
from understudy.synthesizers.mixture.ties import ties_of
from understudy.table.cells import cells_of

EVEN = np.full(6, 10.0)


def test_neighbours_move_together_and_the_further_the_less():
    ties = ties_of(cells_of(Integer(low=1, high=6)), np.arange(6), EVEN)
    assert (np.diagonal(ties) == 1).all()
    assert np.array_equal(ties, ties.T)
    assert (np.diff(ties[0]) < 0).all()
    assert 0.5 < ties[0, 1] < 0.8
    # Every direction is open: no difference between bins is out of reach of a fit.
    assert np.linalg.eigvalsh(ties).min() > 0.1


def test_codes_without_an_order_move_alone():
    ties = ties_of(cells_of(Categorical(values=list("abc"))), np.arange(3), np.array([5.0, 1.0, 9.0]))
    assert np.array_equal(ties, np.eye(3))


def test_missing_moves_alone():
    ties = ties_of(cells_of(Integer(low=1, high=5, missing=True)), np.arange(6), EVEN)
    assert np.array_equal(ties[5], np.eye(6)[5])
    assert ties[3, 4] > 0.5


@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_spike_moves_alone(place: int):
    counts = EVEN.copy()
    counts[place] = 1000
    ties = ties_of(cells_of(Integer(low=1, high=6)), np.arange(6), counts)
    assert np.array_equal(ties[place], np.eye(6)[place])
    others = np.delete(np.arange(6), place)
    assert (ties[np.ix_(others, others)] > 0).all()


def test_a_wide_bin_is_no_spike():
    """Many values that share a bin are many rows, and none of them stands out."""
    groups = np.array([0, 1, 1, 1, 1, 2])
    ties = ties_of(cells_of(Integer(low=1, high=6)), groups, EVEN)
    assert (ties > 0).all()


def test_a_column_in_one_bin_has_nothing_to_tie():
    assert np.array_equal(ties_of(cells_of(Integer(low=1, high=6)), np.zeros(6, dtype=int), EVEN), np.eye(1))
