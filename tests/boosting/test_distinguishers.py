"""Distinguishers: values in [0, 1] that depend on one row alone, on the codes that networks were trained on."""

import dataclasses

import numpy as np
import pytest

from understudy.boosting import distinguishers as kinds
from understudy.boosting.exact import UNIT, on_grid, outputs, sigmoid_steps
from understudy.boosting.pool import make_pool
from understudy.errors import DataError, OptionError
from understudy.table.read import read_table
from understudy.table.table import Table


def test_a_rows_value_is_the_same_in_any_company(tiny_pool, every_row, take):
    """Bit by bit: alone, at any place in a batch, among any other rows."""
    family = kinds.critics(tiny_pool)
    rng = np.random.default_rng(0)
    alone = np.stack([family.sums(take(every_row, [row])) for row in range(every_row.rows)])
    assert ((alone >= 0) & (alone <= UNIT)).all()
    assert alone.std() > 0
    for size in (2, 7, 64, 1000):
        rows = rng.integers(0, every_row.rows, size).tolist()
        assert (family.sums(take(every_row, rows)) == alone[rows].sum(axis=0)).all()


def test_sums_over_inputs_are_exact_in_any_order():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(300, 50)) * 3, rng.normal(size=50)), (rng.normal(size=(50, 1)), rng.normal(size=1))]
    units = (rng.random((40, 300)) < 0.3).astype(float)
    exact = on_grid(layers)
    first = outputs(exact, units)
    order = rng.permutation(300)
    shuffled = [dataclasses.replace(exact[0], w=exact[0].w[order]), exact[1]]
    assert (outputs(shuffled, units[:, order]) == first).all()
    rounding = [dataclasses.replace(layer, w=layer.w * (1 + 1e-9), step=2.0**-60) for layer in exact]
    again = [dataclasses.replace(rounding[0], w=rounding[0].w[order]), rounding[1]]
    assert (outputs(again, units[:, order]) != outputs(rounding, units)).any()  # the test can fail
    hidden = units @ layers[0][0] + layers[0][1]
    expected = np.where(hidden > 0, hidden, 0.2 * hidden) @ layers[1][0] + layers[1][1]
    np.testing.assert_allclose(first, expected[:, 0], atol=1e-2)


def test_critics_see_what_they_were_trained_on(gan, rows):
    """The same numbers as the training's own network on the training's own encoding."""
    import jax.numpy as jnp

    from understudy.synthesizers.neural.rows import Layout, coarse_rows
    from understudy.synthesizers.one_way import OneWay
    from understudy.training import nets

    released, schema = gan.released, gan.schema
    pool = make_pool([released], schema, 300, np.random.default_rng(0))
    family = kinds.critics(pool)
    assert family.count == 3
    table = Table.from_codes(schema, pool.codes)
    layout = Layout(
        schema, OneWay(released.cells, released.fine, 1.0, dict.fromkeys(released.cells, (0.0,))), released.groups
    )
    encoded = layout.blocks.encode(jnp.asarray(coarse_rows(table, layout)))
    for number in range(3):
        layers = [{"w": w, "b": b} for w, b in kinds.kept_layers(released.trajectory, "critic", number)]
        net = nets.Net.of([len(layers[0]["w"]), *(len(layer["b"]) for layer in layers)])
        found = np.asarray(nets.apply(net, layers, encoded))[:, 0]
        expected = 1 / (1 + np.exp(-kinds.GAIN * (found - found.mean()) / found.std()))
        np.testing.assert_allclose(family.of_pool(number), expected, atol=5e-3)
    assert family.sums(table) == pytest.approx(family.matrix.sum(axis=1) * UNIT, rel=1e-6)


def test_the_pool_has_rows_of_every_generator(gan, plain):
    pool = make_pool([gan.released, plain.released], gan.schema, 600, np.random.default_rng(0))
    # Two checkpoints and the last generator share one half, the other model has the other.
    assert np.bincount(pool.generator).tolist() == [100, 100, 100, 300]
    assert pool.rows == round((gan.rows + plain.rows) / 2)


@pytest.mark.parametrize("name", ["critics", "classifiers", "marginals"])
def test_expectations_are_means_of_values(tiny_pool, name: str):
    family = kinds.distinguishers(tiny_pool, name)
    weights = np.random.default_rng(0).dirichlet(np.ones(tiny_pool.size))
    values = np.stack([family.of_pool(number) for number in range(family.count)])
    np.testing.assert_allclose(family.expectations(weights), values @ weights, atol=1e-6)
    assert ((values >= 0) & (values <= 1)).all()
    pooled = Table.from_codes(tiny_pool.schema, tiny_pool.codes)
    np.testing.assert_allclose(family.sums(pooled) / UNIT, values.sum(axis=1), atol=1e-3)


def test_marginals_are_all_codes_and_pairs(tiny_pool, every_row):
    family = kinds.marginals(tiny_pool)
    sizes = [family.sizes[name] for name in tiny_pool.schema.modelled]
    assert family.count == sum(sizes) + sum(a * b for i, a in enumerate(sizes) for b in sizes[i + 1 :])
    sums = family.sums(every_row) / UNIT
    for number in range(len(family.tables)):  # every row falls into one cell of every table
        assert sums[family.starts[number] : family.starts[number + 1]].sum() == every_row.rows


def test_where_not_all_pairs_fit_those_with_the_label_stay(tiny_pool, monkeypatch):
    monkeypatch.setattr(kinds, "MOST_TABLES", 7)
    tables = kinds.marginals(tiny_pool).tables
    assert len(tables) == 7
    assert sum(len(names) == 2 and "sick" in names for names in tables) == 3


def test_classifiers_tell_generators_apart(plain, rows):
    pool = make_pool([plain.released, plain.released], plain.schema, 800, np.random.default_rng(0))
    young = pool.codes["age"] < 30
    pool.codes["age"][(pool.generator == 0) & young] = 80
    family = kinds.classifiers(pool)
    first = family.of_pool(0)
    assert family.count == 2
    assert first[pool.generator == 0].mean() > first[pool.generator == 1].mean() + 0.1
    table = read_table(rows, plain.schema)
    assert ((family.sums(table) >= 0) & (family.sums(table) <= table.rows * UNIT)).all()


def test_functions_are_refused_on_the_pool_and_clipped_on_rows(tiny_pool, every_row):
    size = tiny_pool.size
    for wrong in (lambda c: np.full(size, 1.5), lambda c: np.full(size, np.nan), lambda c: np.full(size, -1e-9)):
        with pytest.raises(OptionError, match="distinguisher 2 must give numbers from 0 to 1"):
            kinds.of_functions(tiny_pool, [lambda c: c["age"] / 2, wrong])
    with pytest.raises(OptionError, match="distinguisher 1 must give one number a row"):
        kinds.of_functions(tiny_pool, [lambda c: 0.5])
    private = []

    def odd(codes):
        return np.full(size, 0.5) if not private else np.resize([np.nan, 7.0, -3.0, np.inf], len(codes["age"]))

    family = kinds.of_functions(tiny_pool, [odd])
    private.append(True)
    assert family.sums(every_row).tolist() == [every_row.rows // 4 * (UNIT // 2 + UNIT + UNIT)]


def test_a_function_that_fails_on_rows_tells_nothing(tiny_pool, every_row):
    family = kinds.of_functions(tiny_pool, [lambda c: np.full(tiny_pool.size, 0.5)])
    with pytest.raises(DataError, match="distinguisher 1 failed on the rows"):
        family.sums(every_row)  # the wrong length there

    def failing(codes):
        if len(codes["age"]) == every_row.rows:
            raise ValueError("secret row 17")
        return codes["age"] / 2

    with pytest.raises(DataError) as caught:
        kinds.of_functions(tiny_pool, [failing]).sums(every_row)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_critics_are_asked_for_where_there_are_none(plain):
    pool = make_pool([plain.released], plain.schema, 100, np.random.default_rng(0))
    with pytest.raises(OptionError, match="no model kept its critics"):
        kinds.distinguishers(pool, "critics")
    with pytest.raises(OptionError, match="there is one"):
        kinds.distinguishers(pool, "classifiers")
    assert isinstance(kinds.distinguishers(pool, "auto"), kinds.Marginals)
    for wrong in ("critic", ["marginals", "x"], []):
        with pytest.raises(OptionError, match="distinguishers must"):
            kinds.distinguishers(pool, wrong)


def test_networks_without_finite_weights_are_refused():
    with pytest.raises(OptionError, match="not finite"):
        on_grid([(np.array([[np.nan]]), np.zeros(1))])


def test_the_sigmoid_has_its_ends():
    assert sigmoid_steps(np.array([-np.inf, 0.0, np.inf])).tolist() == [0, UNIT // 2, UNIT]


def test_earlier_generators_of_a_conditional_gan_know_their_labels(gan):
    """Kept networks take latent numbers and a class; drawn rows have the released shares of classes and columns."""
    from understudy.boosting.pool import generators_of
    from understudy.synthesizers.neural.released import Released
    from understudy.synthesizers.neural.weights import class_generators
    from understudy.training.nets import Net

    released, rng = gan.released, np.random.default_rng(0)
    net = Net.of([4 + 2, 8, len(released.generators[0].layers[-1][1])], hidden="relu")
    kept = {
        f"generator.{place}.{part}": rng.normal(size=(3, *(shape if part == "w" else shape[1:]))).astype(np.float32)
        for place, shape in enumerate([net.sizes[:2], net.sizes[1:]])
        for part in ("w", "b")
    }
    last = [{"w": kept[f"generator.{place}.w"][2], "b": kept[f"generator.{place}.b"][2]} for place in range(2)]
    share = released.fine["ill"] / released.fine["ill"].sum()
    generators = class_generators(last, net, share)
    conditional = Released(released.schema, generators, released.groups, released.fine, released.rows, kept)
    draws = generators_of(conditional)
    assert len(draws) == 3  # two earlier ones, and the last, which its own checkpoint repeats
    town = released.fine["town"] / released.fine["town"].sum()
    made = [draw(4000, rng) for draw in draws]
    for codes in made[:2]:
        assert (codes["ill"] == 1).mean() == pytest.approx(share[1], abs=0.02)
        np.testing.assert_allclose(np.bincount(codes["town"], minlength=3) / 4000, town, atol=0.05)
    assert len(generators_of(conditional, earlier=False)) == 1
