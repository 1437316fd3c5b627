"""The graphical model against brute force on small domains, and that its double precision stays its own."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from understudy.schema import Schema
from understudy.synthesizers.api import fit
from understudy.synthesizers.marginals.inference import Measured, fit_potentials, independent_potentials
from understudy.synthesizers.marginals.network import Network, families_of, model_cells

SIZES = (2, 3, 2, 1, 4)
STRUCTURES = {
    "tree": [(0, 1), (1, 2), (1, 4), (3, 4)],
    "cycle": [(0, 1), (1, 2), (2, 4), (0, 4), (3,)],
    "triple": [(0, 1, 2), (2, 4), (3,)],
    "apart": [(0, 1), (2,), (3,), (4,)],
    "out of order": [(4, 0), (2, 1, 4), (3,)],
}


def random_potentials(structure, seed=0):
    rng = np.random.default_rng(seed)
    return {members: rng.normal(0, 1.5, [SIZES[c] for c in members]) for members in STRUCTURES[structure]}


def joint_of(potentials):
    """The whole joint table, cell by cell."""
    joint = np.zeros(SIZES)
    for cell in itertools.product(*map(range, SIZES)):
        joint[cell] = sum(values[tuple(cell[c] for c in members)] for members, values in potentials.items())
    joint = np.exp(joint - joint.max())
    return joint / joint.sum()


def joint_of_network(network):
    cells = np.array(list(itertools.product(*map(range, SIZES))))
    return np.exp(network.log_prob(dict(enumerate(cells.T)))).reshape(SIZES)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_conditional_tables_make_the_joint_of_the_potentials(structure):
    potentials = random_potentials(structure)
    network = Network.from_potentials(SIZES, potentials)
    np.testing.assert_allclose(joint_of_network(network), joint_of(potentials), atol=1e-12)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_parents_lie_in_one_family_and_come_first(structure):
    families = families_of(SIZES, STRUCTURES[structure])
    by_column = {family.column: family for family in families}
    seen = set()
    for family in families:
        assert set(family.parents) <= seen
        if family.parents:
            assert set(family.parents) <= set(by_column[family.parents[-1]].axes)
        seen.add(family.column)
    assert all(any(set(members) <= set(family.axes) for family in families) for members in STRUCTURES[structure])
    cells = sum(math.prod(SIZES[c] for c in family.axes) for family in families)
    assert model_cells(SIZES, STRUCTURES[structure]) == cells


@pytest.mark.parametrize("structure", STRUCTURES)
def test_conditions_are_exact(structure):
    potentials = random_potentials(structure)
    evidence = {1: np.array([0.0, 0.3, 1.0]), 4: np.array([0.5, 0.0, 0.0, 0.2])}
    network = Network.from_potentials(SIZES, potentials).given(evidence)
    expected = joint_of(potentials) * evidence[1][None, :, None, None, None] * evidence[4]
    np.testing.assert_allclose(joint_of_network(network), expected / expected.sum(), atol=1e-12)
    assert Network.from_potentials(SIZES, potentials).given({1: np.zeros(3)}) is None


def test_draws_follow_the_tables():
    potentials = random_potentials("cycle")
    network = Network.from_potentials(SIZES, potentials)
    rng = np.random.default_rng(0)
    # One row a draw: rows of one draw are spread more evenly than chance would.
    rows = [network.draw(1, rng) for _ in range(4_000)]
    cells = [np.ravel_multi_index([row[c][0] for c in range(len(SIZES))], SIZES) for row in rows]
    found = np.bincount(cells, minlength=math.prod(SIZES))
    expected = joint_of(potentials).ravel() * len(rows)
    often = expected > 5
    pooled = [np.append(v[often], v[~often].sum()) for v in (found, expected)]
    assert chisquare(*pooled).pvalue > 1e-4
    assert chisquare(pooled[0], np.roll(pooled[1], 1)).pvalue < 1e-6
    many = network.draw(50_000, rng)
    table = np.zeros((SIZES[1], SIZES[2]))
    np.add.at(table, (many[1], many[2]), 1 / 50_000)
    np.testing.assert_allclose(table, joint_of(potentials).sum(axis=(0, 3, 4)), atol=2e-3)


def margin(joint, members):
    return joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in members))


def fitted_joint(measured, counts, total, steps=3000):
    start = independent_potentials(counts)
    return joint_of_network(
        Network.from_potentials(SIZES, fit_potentials(SIZES, measured, start, total=total, steps=steps))
    )


@pytest.mark.parametrize("noise", [0.0, 1.0, 300.0])
@pytest.mark.parametrize("structure", ["tree", "cycle", "triple"])
def test_exact_tables_are_recovered_with_the_most_entropy(structure, noise):
    """The fit matches the tables that it was given; of all joints that do, it finds the one of the family."""
    truth, total = joint_of(random_potentials(structure, seed=3)), 1000.0
    columns = [margin(truth, (c,)) * total for c in range(len(SIZES))]
    measured = [Measured((c,), table, noise) for c, table in enumerate(columns)]
    measured += [Measured(m, margin(truth, m) * total, noise) for m in STRUCTURES[structure] if len(m) > 1]
    np.testing.assert_allclose(fitted_joint(measured, columns, total), truth, atol=2e-3)


def test_noisy_tables_are_weighed_by_their_noise():
    """Two tables of one pair that contradict each other: the fit lies where the inverse variances say."""
    total = 900.0
    uniform = [np.full(size, total / size) for size in SIZES]
    agree, differ = np.diag([450.0, 450.0]), np.array([[0.0, 450.0], [450.0, 0.0]])
    measured = [Measured((c,), table, 10.0) for c, table in enumerate(uniform)]
    measured += [Measured((0, 2), agree, 10.0), Measured((0, 2), differ, 20.0)]
    found = margin(fitted_joint(measured, uniform, total), (0, 2)) * total
    assert found[0, 0] == pytest.approx(450 * 0.8, rel=0.02)


def test_other_methods_do_not_notice():
    """A method that compiles in single precision gives the same bits before and after."""
    schema = Schema.loads("rows: 60\ncolumns: {a: {kind: boolean}, b: {kind: boolean}, c: {kind: boolean}}")
    frame = pd.DataFrame({name: np.arange(60) % step == 0 for name, step in (("a", 2), ("b", 3), ("c", 4))})

    def digest(method, **options):
        return fit(frame, schema, method=method, epsilon=2.0, seed=0, **options).certificate.arrays_digest

    before = digest("mixture", components=2, steps=5)
    digest("mst", steps=2)
    assert digest("mixture", components=2, steps=5) == before


def test_double_precision_stays_inside():
    import jax
    import jax.numpy as jnp

    uniform = [np.full(size, 10.0 / size) for size in SIZES]
    measured = [Measured((c,), table, 1.0) for c, table in enumerate(uniform)]
    potentials = fit_potentials(SIZES, measured, independent_potentials(uniform), total=10.0, steps=3)
    assert all(values.dtype == np.float64 for values in potentials.values())
    assert not jax.config.jax_enable_x64
    assert jnp.ones(2).dtype == jnp.float32
    assert jax.jit(lambda x: x * 2)(np.ones(2)).dtype == jnp.float32
