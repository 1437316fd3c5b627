"""Cells are public: they follow from the schema, hold every code once, and give every value back to its own cell."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.schema import Boolean, Categorical, Column, Datetime, Integer, Ordinal, Real
from understudy.schema.columns import SECONDS
from understudy.table.cells import LOOKUP_LIMIT, MOST_CELLS, cells_of
from understudy.table.codec import codec

MOST_EDGES = 12


@st.composite
def integers(draw):
    resolution = draw(st.sampled_from([1, 1, 5, 1000]))
    size = draw(st.one_of(st.integers(2, 3000), st.integers(2, 2**40), st.integers(2**52, 2**64 - 2)))
    size = min(size, (2**64 - 3) // resolution)
    span = (size - 1) * resolution
    log = draw(st.booleans())
    lowest, highest = (0 if log else -(2**63) + 1), 2**63 - 1 - span
    if lowest > highest:
        log, lowest = False, -(2**63) + 1
    low = draw(st.integers(lowest, highest) | st.integers(max(lowest, -100), max(min(highest, 100), lowest, -100)))
    low = min(max(low, lowest), highest)
    zero = draw(st.booleans()) and low <= 0 <= low + span and low % resolution == 0
    return Integer(
        low=low,
        high=low + span,
        resolution=resolution,
        log=log,
        zero_inflated=zero,
        missing=draw(st.booleans()),
        bins=draw(edges(low, low + span)) if abs(low) + span < 2**53 else None,
    )


@st.composite
def reals(draw):
    low = draw(st.floats(-1e6, 1e6, allow_subnormal=False) | st.just(0.0) | st.just(-1.0))
    log = draw(st.booleans())
    low = abs(low) if log else low
    resolution = draw(st.sampled_from([None, None, 0.1, 0.25, 3.0]))
    if resolution:
        steps = draw(st.integers(1, 2000) | st.integers(1, 10**7))
        low = round(low / resolution) * resolution
        high = low + steps * resolution
    else:
        high = low + draw(st.floats(1e-3, 1e7)) * max(1.0, abs(low) * 1e-3)
    if not low < high:
        high = low + 1.0
    zero = low <= 0 <= high and draw(st.booleans())
    return Real(
        low=low,
        high=high,
        resolution=resolution,
        log=log,
        zero_inflated=zero,
        missing=draw(st.booleans()),
        bins=draw(edges(low, high)),
    )


@st.composite
def edges(draw, low, high):
    if draw(st.booleans()):
        return None
    shares = draw(st.lists(st.floats(0, 1), min_size=1, max_size=MOST_EDGES, unique=True))
    found = sorted({min(max(low + share * (high - low), low), high) for share in shares})
    return tuple(found)


@st.composite
def datetimes(draw):
    resolution = draw(st.sampled_from(sorted(SECONDS)))
    low = datetime(1900, 1, 1) + timedelta(days=draw(st.integers(0, 70_000)))
    high = low + timedelta(seconds=SECONDS[resolution] * draw(st.integers(1, 3000) | st.integers(1, 10**6)))
    return Datetime(low=low, high=high, resolution=resolution, missing=draw(st.booleans()))


@st.composite
def named(draw):
    values = tuple(f"v{number}" for number in range(draw(st.integers(1, 700))))
    kind = draw(st.sampled_from([Categorical, Ordinal]))
    return kind(values=values, missing=draw(st.booleans()))


columns = st.one_of(integers(), reals(), datetimes(), named(), st.builds(Boolean, missing=st.booleans()))


@given(columns, st.integers(0, 2**32))
def test_what_is_placed_in_a_cell_is_found_in_it(column: Column, seed: int):
    cells = cells_of(column)
    everywhere = np.repeat(np.arange(cells.count), 3)
    codes = cells.place(everywhere, np.random.default_rng(seed))
    assert codes.dtype == codec(column).dtype
    codec(column).check(codes)  # inside the declared domain, missing only where declared
    found = cells.index(codes)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, everywhere)


@given(columns)
def test_cells_are_a_partition_in_order(column: Column):
    cells, coder = cells_of(column), codec(column)
    assert (np.diff(cells.starts.astype(object)) > 0).all()
    assert cells.count == cells.values + column.missing
    assert len(cells.widths) == cells.count
    assert (cells.widths > 0).all()
    if coder.size is None:
        assert cells.starts[0] == np.float32(column.low)
        assert cells.starts[-1] <= np.float32(column.high)
    else:
        assert cells.starts[0] == 0
        assert cells.starts[-1] < coder.size
        assert cells.widths[: cells.values].sum() == pytest.approx(coder.size, rel=1e-12)


@given(columns, st.data())
def test_index_rises_with_the_codes_and_reaches_every_one(column: Column, data: st.DataObject):
    cells, coder = cells_of(column), codec(column)
    if coder.size is None:
        shares = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=20))
        codes = np.sort([column.low + share * (column.high - column.low) for share in shares]).astype(np.float32)
        codes = coder.check(np.clip(codes, *np.float32([column.low, column.high])))
    else:
        codes = np.array(sorted(data.draw(st.lists(st.integers(0, coder.size - 1), min_size=1))), dtype=coder.dtype)
    found = cells.index(codes).astype(int)
    assert (np.diff(found) >= 0).all()
    assert found.max() < cells.values
    # The cell of a code starts at or below it, and the next one above it: compared in exact whole numbers or floats.
    for code, cell in zip(codes.tolist(), found, strict=True):
        assert cells.starts[cell].item() <= code
        assert cell + 1 == cells.values or code < cells.starts[cell + 1].item()
    if column.missing:
        assert cells.index(np.array([coder.missing], dtype=coder.dtype)).tolist() == [cells.values]


@given(columns)
def test_numbers_have_a_bounded_number_of_cells(column: Column):
    cells = cells_of(column)
    if isinstance(column, Categorical | Boolean):
        assert cells.values == codec(column).size
    else:
        assert cells.values <= MOST_CELLS + 2 + MOST_EDGES
        # Floats may lie too far apart for that many cells between narrow bounds; steps do not.
        if (codec(column).size or 0) > MOST_CELLS and not getattr(column, "log", False):
            assert cells.values >= MOST_CELLS // 2


@given(st.one_of(integers(), reals()).filter(lambda column: column.bins))
def test_no_cell_lies_on_both_sides_of_a_public_edge(column: Integer | Real):
    cells = cells_of(column)
    assert len(cells.bins) == cells.values
    assert cells.bins[0] == 0
    assert set(np.diff(cells.bins)) <= {0, 1}
    rng = np.random.default_rng(0)
    codes = cells.place(np.repeat(np.arange(cells.values), 4), rng)
    values = codec(column).decode(codes).to_numpy(dtype=np.float64)
    if cells.size is None:  # single precision tells no finer
        sides = np.searchsorted(np.float32(column.bins), codes, side="right")
    else:
        sides = np.searchsorted(column.bins, values, side="right")
    by_bin = np.repeat(cells.bins, 4)
    for public_bin in np.unique(by_bin):
        held = values[by_bin == public_bin]
        near = np.abs(held[:, None] - np.array(column.bins)).min(axis=1) <= 1e-6 * (column.resolution or 0)
        assert len(set(sides[by_bin == public_bin][~near])) <= 1


@given(st.one_of(integers(), reals()).filter(lambda column: column.zero_inflated))
def test_zero_is_alone_in_its_cell_where_it_is_inflated(column: Integer | Real):
    cells, coder = cells_of(column), codec(column)
    zero = np.float32(0) if coder.size is None else round(-column.low / column.resolution)
    if isinstance(column, Integer):
        zero = -column.low // column.resolution
    cell = int(cells.index(np.array([zero], dtype=coder.dtype))[0])
    placed = cells.place(np.full(50, cell), np.random.default_rng(0))
    assert (placed == zero).all()
    assert cells.widths[cell] == 1


def test_common_values_are_alone_by_rule_not_by_looking():
    cells = cells_of(Integer(low=-10, high=100_000))
    for value in (-10, -1, 0, 9, 99, 999, 9_999, 99_999, 100_000, 50_000):
        cell = int(cells.index(np.array([value + 10], dtype=np.uint32))[0])
        assert cells.widths[cell] == 1, value


def test_zero_of_a_huge_span_is_exact():
    low = -(2**60) - 1
    cells = cells_of(Integer(low=low, high=2**60, zero_inflated=True))
    cell = cells.starts.tolist().index(-low)
    assert cells.starts[cell + 1] == -low + 1
    assert cells.index(np.array([-low - 1, -low, -low + 1], dtype=np.uint64)).tolist() == [cell - 1, cell, cell + 1]


def test_logarithmic_cells_widen():
    for column in (Integer(low=0, high=10**6, log=True), Real(low=0, high=1e6, log=True)):
        widths = cells_of(column).widths
        wide = widths[widths > 1]
        assert wide[-10:].mean() > 50 * wide[:10].mean()
    even = cells_of(Real(low=0, high=1e6)).widths
    assert even.max() == pytest.approx(even.min(), rel=1e-3)


def test_values_fill_their_cell_evenly():
    cells = cells_of(Integer(low=0, high=100_000))
    cell = int(np.argmax(cells.widths))
    codes = cells.place(np.full(20_000, cell), np.random.default_rng(0))
    counts = np.bincount(codes - cells.starts[cell], minlength=int(cells.widths[cell]))
    expected = 20_000 / cells.widths[cell]
    assert ((counts - expected) ** 2 / expected).sum() < 2 * cells.widths[cell]  # chi-square, far in its tail
    real = cells_of(Real(low=0, high=1))
    placed = real.place(np.full(20_000, 7), np.random.default_rng(0))
    assert placed.mean() == pytest.approx(7.5 / MOST_CELLS, rel=1e-3)


@pytest.mark.parametrize("size", [LOOKUP_LIMIT, LOOKUP_LIMIT + 2])
def test_search_and_lookup_agree(size: int):
    cells = cells_of(Integer(low=0, high=size - 1, missing=True))
    assert (cells.lookup is None) == (size > LOOKUP_LIMIT)
    codes = np.array([0, 1, 999, size // 2, size - 1, size], dtype=cells.dtype)
    found = cells.index(codes)
    expected = [np.searchsorted(cells.starts, code, side="right") - 1 for code in codes[:-1].tolist()]
    assert found.tolist() == [*expected, cells.values]


def test_only_neighbouring_values_count_as_ordered():
    ordered = [Integer(low=0, high=9), Real(low=0, high=1), Ordinal(values=("a", "b"))]
    assert all(cells_of(column).ordered for column in ordered)
    assert not any(cells_of(column).ordered for column in (Boolean(), Categorical(values=("a", "b"))))


def test_an_edge_within_the_last_cell_cuts_it():
    cells = cells_of(Real(low=0, high=1, bins=(0, 0.5, 0.9999)))
    assert cells.bins.max() == 2
    assert cells.starts[-1] == np.float32(0.9999)


@pytest.mark.parametrize("size", [2**32 + 5, 2**54, 2**62, 2**64 - 2])
def test_codes_that_no_float_could_tell_apart_find_their_cells(size: int):
    cells = cells_of(Integer(low=-(2**63) + 1, high=-(2**63) + size))
    starts = cells.starts[1:]
    np.testing.assert_array_equal(cells.index(starts), np.arange(1, cells.values))
    np.testing.assert_array_equal(cells.index(starts - np.uint64(1)), np.arange(cells.values - 1))


def test_cells_are_remembered_by_facts_alone():
    marked = Integer(low=0, high=10**6, source={"low": "data", "high": "public"})
    public = Integer(low=0, high=10**6)
    first, second = cells_of(marked), cells_of(public)
    assert first.starts is second.starts
    assert first is not second
    with pytest.raises(ValueError, match="read-only"):
        first.starts[0] = 1
    first.index(np.array([5], dtype=np.uint32))
    assert "lookup" in vars(first)
    assert "lookup" not in vars(second)
