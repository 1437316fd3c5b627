"""Even draws: every row as often as its weight says, groups of rows more exactly than by luck, in random order."""

import numpy as np
import pytest

from understudy.boosting.evenly import even_order, information
from understudy.boosting.method import boost
from understudy.synthesizers.draw import systematic


@pytest.fixture(scope="module")
def boosted(plain, rows):
    return boost([plain], rows, epsilon=1.0, rounds=60, pool_rows=1000, seed=0)


def test_the_order_has_every_row_once_and_the_label_first(boosted):
    released = boosted.released
    assert np.array_equal(np.sort(released.order), np.arange(len(released.weights)))
    label = released.pool["ill"][released.order]
    assert (np.diff(label.astype(int)) >= 0).all()
    without_label = even_order(released.row_weights, released.pool, released.cells, None)
    age = released.pool["age"][without_label].astype(int)
    assert (np.maximum.accumulate(age) - age < 20).all()  # sorted by age up to its eight bins
    assert even_order(released.row_weights, {}, {}, None).tolist() == list(range(len(released.weights)))


def test_information_knows_weights():
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert information(a, b, np.full(4, 0.25)) == 0
    assert information(a, b, np.array([0.5, 0.0, 0.0, 0.5])) == np.log(2)


def test_draws_have_the_weights_of_rows_and_of_groups(boosted):
    released = boosted.released
    weights, n = released.row_weights, 100
    ill = released.pool["ill"] == 1
    share = weights[ill].sum()
    young = weights[ill & (released.pool["age"] < 30)].sum()
    off, drawn = [], np.zeros(len(weights))
    for seed in range(300):
        rows = released.sample(n, np.random.default_rng(seed))
        assert abs((rows["ill"] == 1).sum() - n * share) <= 1
        off.append(((rows["ill"] == 1) & (rows["age"] < 30)).sum() - n * young)
        rng = np.random.default_rng(seed)
        np.add.at(drawn, released.order[systematic(weights[released.order], n, rng)], 1)
    assert np.std(off) < 0.6 * np.sqrt(n * young * (1 - young))  # independent draws: binomial
    assert abs(np.mean(off)) < 0.3
    expected = 300 * n * weights
    assert (np.abs(drawn - expected) < 6 * np.sqrt(expected) + 6).all()


def test_rows_come_in_random_order(boosted):
    made = boosted.released.sample(400, np.random.default_rng(0))
    first, last = made["ill"][:200].mean(), made["ill"][200:].mean()
    assert abs(first - last) < 0.25
