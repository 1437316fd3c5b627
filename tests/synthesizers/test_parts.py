"""Components lean inside the bins of an ordered column; codes, classes and the column itself stay as they were."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import understudy as us
from understudy.schema import Categorical, Integer, Schema
from understudy.synthesizers.mixture import parts as parts_module
from understudy.synthesizers.mixture.parts import part_codes, part_probabilities
from understudy.synthesizers.mixture.released import Released
from understudy.synthesizers.neural import released as generators
from understudy.synthesizers.neural.released import Generator
from understudy.table.cells import cells_of

CELLS = cells_of(Integer(low=0, high=11, missing=True))
GROUPS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3])  # three bins of four values, and missing
COUNTS = 100 * np.array([8.0, 8, 8, 8, 6, 7, 8, 9, 9, 3, 2, 2, 5])
WITHIN = COUNTS / np.bincount(GROUPS, weights=COUNTS)[GROUPS]
WEIGHTS = np.array([0.5, 0.3, 0.2])
TABLE = np.array([[0.6, 0.3, 0.0, 0.1], [0.05, 0.25, 0.7, 0.0], [0.3, 0.4, 0.3, 0.0]])  # falling, rising, neither


def leaning() -> tuple[np.ndarray, np.ndarray]:
    parts = part_codes(CELLS, GROUPS, COUNTS)
    return parts, part_probabilities(CELLS, GROUPS, parts, COUNTS, WITHIN, WEIGHTS, TABLE)


def test_parts_follow_the_cells_and_lie_in_one_code():
    parts, _ = leaning()
    assert (np.diff(parts) >= 0).all()
    assert len({(part, code) for part, code in zip(parts, GROUPS, strict=True)}) == parts.max() + 1
    long = np.zeros(500, dtype=np.int64)
    cells = cells_of(Integer(low=0, high=499))
    assert np.bincount(part_codes(cells, long, np.ones(500))).tolist() == [125] * 4
    assert np.bincount(part_codes(cells, long, np.full(500, 0.5))).tolist() == [250] * 2  # 250 rows
    assert not part_codes(cells, long, np.full(500, 0.1)).any()


def test_unordered_columns_and_single_values_have_no_parts():
    groups = np.array([0, 1, 1, 2])
    assert part_codes(cells_of(Categorical(values=("a", "b", "c", "d"))), groups, np.ones(4)) is groups
    apart = np.arange(13)
    assert part_codes(CELLS, apart, COUNTS) is apart
    table = np.full((1, 13), 1 / 13)
    assert part_probabilities(CELLS, apart, apart, COUNTS, np.ones(13), np.ones(1), table) is table


def test_draws_of_a_generator_have_no_parts():
    """Each of them is a component: thousands, none of which tells anything of the inside of a bin."""
    schema = Schema(rows=10_000, columns={"a": Integer(low=0, high=11, missing=True)})
    mixture = Released(
        schema=schema,
        weights=WEIGHTS[None],
        probabilities=TABLE[None],
        groups={"a": GROUPS},
        fine={"a": COUNTS},
        label=None,
        rows=10_000,
    )
    assert mixture.parts["a"].max() > GROUPS.max()
    assert replace(mixture, lean=False).parts["a"] is mixture.groups["a"]
    rng = np.random.default_rng(0)
    generator = Generator.standard([(rng.normal(size=(2, 4)).astype(np.float32), np.zeros(4))], ("linear",))
    made = generators.Released(schema, [generator], {"a": GROUPS}, {"a": COUNTS}, 10_000)
    assert not made._draws(10, rng).lean


def test_components_keep_their_codes():
    parts, found = leaning()
    for code in range(4):
        np.testing.assert_allclose(found[:, np.unique(parts[code == GROUPS])].sum(axis=1), TABLE[:, code], rtol=1e-9)


def test_the_column_keeps_its_fine_table():
    parts, found = leaning()
    expected = np.bincount(parts, weights=WITHIN * (WEIGHTS @ TABLE)[GROUPS])
    np.testing.assert_allclose(WEIGHTS @ found, expected, rtol=1e-3)


def test_components_lean_inside_bins_as_they_do_between_them():
    parts, found = leaning()
    for code in (0, 1):
        inside = found[:, np.unique(parts[code == GROUPS])]
        assert (np.diff(inside[0] / inside[1]) < 0).all()


def test_empty_bins_and_components_that_lack_a_code_do_no_harm():
    counts = np.where(GROUPS == 1, 0.0, COUNTS)
    table = np.array([[1.0, 0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 1.0]])
    within = np.where(GROUPS == 1, 0.25, WITHIN)
    parts = part_codes(CELLS, GROUPS, counts)
    found = part_probabilities(CELLS, GROUPS, parts, counts, within, WEIGHTS, table)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-9)


def test_two_columns_go_together_inside_their_bins(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 1000, 20_000)
    rows = pd.DataFrame({"a": first, "b": np.clip(first + rng.integers(-40, 41, 20_000), 0, 999)})
    column = Integer(low=0, high=999)
    schema = Schema(rows=20_000, columns={"a": column, "b": column})
    model = us.fit(rows, schema, method="mixture", epsilon=10.0, seed=0, bins=8)

    def apart() -> float:
        drawn = Released(**vars_of(model.released)).sample(20_000, np.random.default_rng(1))
        return float(np.abs(drawn["a"].astype(float) - drawn["b"].astype(float)).mean())

    with_parts = apart()
    monkeypatch.setattr(parts_module, "PARTS", 1)
    assert with_parts < 0.9 * apart()


def vars_of(released: object) -> dict[str, object]:
    """The fields alone, without what was worked out from them."""
    names = ("schema", "weights", "probabilities", "groups", "fine", "label", "rows", "cuts")
    return {name: getattr(released, name) for name in names}
