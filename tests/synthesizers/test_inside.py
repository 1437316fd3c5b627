"""Values inside bins lean the way their class does from bin to bin; nothing else about columns and classes changes."""

import numpy as np
import pytest

from understudy.schema import Categorical, Integer
from understudy.synthesizers.mixture.inside import inside
from understudy.table.cells import cells_of

CELLS = cells_of(Integer(low=0, high=11, missing=True))
GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3])  # three bins of four values, and missing
COUNTS = np.array([8.0, 8, 8, 8, 6, 7, 8, 9, 9, 3, 2, 2, 5])
RISING = np.array([[0.3, 0.2, 0.1, 0.05], [0.05, 0.1, 0.2, 0.0]])  # the second class, from bin to bin


def placed(by_class: np.ndarray = RISING, counts: np.ndarray = COUNTS) -> np.ndarray:
    return inside(CELLS, GROUPS, counts, by_class)


def test_parts_of_a_code_sum_to_one_in_every_class():
    for of_class in placed():
        np.testing.assert_allclose(np.bincount(GROUPS, weights=of_class), 1, atol=1e-9)


def test_columns_stay_as_they_were():
    """Summed over the classes, each cell has the part of its code that the fine table tells."""
    joint = (RISING[:, GROUPS] * placed()).sum(axis=0)
    expected = RISING.sum(axis=0)[GROUPS] * COUNTS / np.bincount(GROUPS, weights=COUNTS)[GROUPS]
    np.testing.assert_allclose(joint, expected, rtol=1e-3, atol=1e-6)


def test_a_class_leans_inside_bins_as_it_does_between_them():
    """Also in the outermost ones, whose neighbours are on one side alone."""
    first, second = placed()
    share = second / (first + second)
    for code in range(3):
        assert (np.diff(share[code == GROUPS]) > 0.01).all()


def test_classes_that_are_alike_lean_nowhere():
    alike = np.outer([0.7, 0.3], RISING[0] / RISING[0].sum())
    first, second = placed(alike)
    np.testing.assert_allclose(first, second, atol=1e-9)
    np.testing.assert_allclose(first, COUNTS / np.bincount(GROUPS, weights=COUNTS)[GROUPS], atol=1e-9)


def test_values_that_stand_out_tell_nothing_of_the_bins_around():
    """The first class has nearly all of a frequent value; around it classes are alike."""
    groups = np.array([0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 3])
    counts = np.array([5.0, 5, 5, 5, 90, 5, 5, 5, 5, 5, 5, 5, 1])
    by_class = np.array([[0.1, 0.4, 0.1, 0.01], [0.1, 0.01, 0.1, 0.01]])
    first, second = inside(CELLS, groups, counts, by_class)
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("column", [Categorical(values=list("abcdefgh")), Integer(low=0, high=3)])
def test_without_an_order_or_wide_bins_there_is_nothing_to_lean(column):
    cells = cells_of(column)
    groups = np.minimum(np.arange(cells.count), 3)
    by_class = np.array([[0.1, 0.2, 0.1, 0.1], [0.3, 0.1, 0.05, 0.05]])
    first, second = inside(cells, groups, np.ones(cells.count), by_class)
    np.testing.assert_array_equal(first, second)


def test_a_class_without_a_row_in_a_code_is_no_trouble():
    empty = RISING.copy()
    empty[1] = 0
    assert np.isfinite(placed(empty)).all()
    assert np.isfinite(placed(RISING, np.zeros(13))).all()


def test_lines_beyond_two_close_middles_stay_finite():
    """Two rare bins between frequent values: what they tell goes on for thousands of rows."""
    groups = np.array([0, 1, 1, 2, 2, 3, 4])
    counts = np.array([9e5, 1.0, 1, 1, 1, 9e5, 5])
    found = inside(
        cells_of(Integer(low=0, high=5, missing=True)),
        groups,
        counts,
        np.array([[0.5, 1e-9, 0.1, 0.3, 0.1], [0.3, 0.1, 1e-9, 0.5, 0.0]]),
    )
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.bincount(groups, weights=found[0]), 1, atol=1e-9)
