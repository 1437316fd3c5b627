"""Values that many rows share, found inside the fine cells of a numeric column.

A column of 100,000 steps has a few thousand public cells, but its rows may stand on a few values: round amounts, one
density a district, a fee. Cells that stand out of their neighbours are counted again in 128 parts, and heavy parts once
more, until a part is a single value or no wider than a float can tell. Values found become cells of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Event, Gaussian, Ledger, Streams, gaussian
from understudy.privacy.ledger import Prepaid
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay
from understudy.table.cells import Cells, refined
from understudy.table.table import Table

SHARE = 0.2  # of what the one-way tables of a fit get, for all looks together
PARTS = 128
MOST_LOOKS = 3
MOST_CELLS = 64  # of a column that one look divides, the heaviest
STANDS_OUT = 5.0  # times the noise of a count
FEWEST_ROWS = 5.0  # where there is little noise or none
# Declared rows over that noise: below this even a value that a twentieth of all rows share would not stand out.
WORTH_LOOKING = 20 * STANDS_OUT
NEIGHBOURS = 8  # on either side, that a cell must stand out of


@dataclass(frozen=True)
class Zoom:
    """What is looked at, with which noise; public. Without `columns`, the one-way tables have all of the budget."""

    columns: tuple[str, ...]
    looks: int
    one_way_multiplier: float
    look_multiplier: float

    @property
    def sensitivity(self) -> float:
        """How far a row moves all counts of a look together, in L2."""
        return math.sqrt(len(self.columns))

    @property
    def noise(self) -> float:
        """Standard deviation of a count."""
        return self.look_multiplier * self.sensitivity

    @property
    def least(self) -> float:
        """Rows that must share a value for it to be found: counts below are too easily noise."""
        return max(STANDS_OUT * self.noise, FEWEST_ROWS)

    @property
    def purpose(self) -> str:
        return f"common values of {len(self.columns)} column" + "s" * (len(self.columns) > 1)

    @property
    def events(self) -> list[Event]:
        """The one-way tables, then the looks: the inverses of their squared noise add up to what was planned for."""
        return [Gaussian(self.one_way_multiplier), *(Gaussian(self.look_multiplier) for _ in range(self.looks))]


@dataclass(frozen=True)
class Reach:
    """Which columns have cells of several values, and how many looks it takes to part the widest of them; public."""

    columns: tuple[str, ...]
    looks: int


def reach_of(cells: Mapping[str, Cells]) -> Reach:
    columns = tuple(name for name, c in cells.items() if c.ordered and _widest(c) > 1)
    widest = max((_widest(cells[name]) for name in columns), default=1.0)
    return Reach(columns, min(max(math.ceil(math.log(widest, PARTS) - 1e-9), 1), MOST_LOOKS))


def plan_zoom(reach: Reach, rows: int, noise_multiplier: float) -> Zoom:
    """Divides the noise multiplier of one-way tables between them and looks into their cells, from public facts.

    Nothing is looked at where the declared rows are too few for a common value to stand out of the noise.
    """
    looked = Zoom(
        reach.columns,
        reach.looks,
        one_way_multiplier=noise_multiplier / math.sqrt(1 - SHARE),
        look_multiplier=noise_multiplier * math.sqrt(reach.looks / SHARE),
    )
    if reach.columns and rows >= WORTH_LOOKING * looked.noise:
        return looked
    return Zoom((), 0, one_way_multiplier=noise_multiplier, look_multiplier=0.0)


def _widest(cells: Cells) -> float:
    """Codes of the widest cell; of floats, about as many as there are between the ends of one of thousands."""
    if cells.size is None:
        return float(PARTS**2)
    return float(cells.widths[: cells.values].max())


@dataclass(frozen=True, eq=False)
class _Parts:
    """Disjoint runs of codes, in order: from `starts` up to `ends`, which are left out."""

    starts: np.ndarray
    ends: np.ndarray

    def take(self, chosen: np.ndarray) -> "_Parts":
        return _Parts(self.starts[chosen], self.ends[chosen])

    def count(self, codes: np.ndarray) -> np.ndarray:
        """How many codes fall into each part; a missing code falls into none."""
        place = np.searchsorted(self.starts, codes, side="right") - 1
        inside = (place >= 0) & (codes < self.ends[place])
        return np.bincount(place[inside], minlength=len(self.starts))


def zoom_in(table: Table, one_way: OneWay, zoom: Zoom, *, streams: Streams, ledger: Ledger) -> OneWay:
    """The one-way tables with a cell of its own for every value that many rows share.

    Guarantee: which runs of codes are divided comes from the schema and from counts released before. The parts of a
    column are disjoint, so a row adds 1 to at most one count of each of the columns looked at, and moves all of them
    together by at most sqrt(columns) in L2: one Gaussian event a look. All looks are charged before the first: whether
    one finds something to divide follows from the rows, and a charge must not.
    """
    if not zoom.columns:
        return one_way
    paid: Ledger | Prepaid = ledger
    if zoom.look_multiplier:
        paid = ledger.prepay(Gaussian(zoom.look_multiplier), zoom.looks, zoom.purpose)
    left = {name: _outstanding(one_way, name, zoom.least) for name in zoom.columns}
    found: dict[str, list[tuple[_Parts, np.ndarray]]] = {name: [] for name in zoom.columns}
    for look in range(zoom.looks):
        divided = {name: _divide(parts, one_way.cells[name]) for name, parts in left.items() if len(parts.starts)}
        if not divided:
            break
        counts = _release(table, divided, zoom, streams=streams, paid=paid)
        left = {}
        for name, parts in divided.items():
            heavy = np.flatnonzero(counts[name] >= zoom.least)
            done = _single(parts, one_way.cells[name]) | (look == zoom.looks - 1)
            ready = heavy[done[heavy]]
            found[name].append((parts.take(ready), counts[name][ready]))
            wide = heavy[~done[heavy]]
            wide = np.sort(wide[np.argsort(-counts[name][wide], kind="stable")[:MOST_CELLS]])
            left[name] = parts.take(wide)
    cells, counts = dict(one_way.cells), dict(one_way.counts)
    for name, pieces in found.items():
        cells[name], counts[name] = _with_values(one_way, name, pieces, zoom.noise)
    return OneWay(cells, counts, one_way.total, one_way.noise)


def _release(
    table: Table, divided: dict[str, _Parts], zoom: Zoom, *, streams: Streams, paid: Ledger | Prepaid
) -> dict[str, np.ndarray]:
    exact = {name: np.zeros(len(parts.starts), dtype=np.int64) for name, parts in divided.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        for name, parts in divided.items():
            exact[name] += parts.count(block[name])
    stacked = gaussian(
        np.concatenate(list(exact.values())),
        l2_sensitivity=zoom.sensitivity,
        noise_multiplier=zoom.look_multiplier,
        streams=streams,
        ledger=paid,
        purpose=zoom.purpose,
    )
    ends = np.cumsum([len(counts) for counts in exact.values()])
    return dict(zip(exact, np.split(stacked, ends[:-1]), strict=True))


def _outstanding(one_way: OneWay, name: str, least: float) -> _Parts:
    """Cells of several values that hold more than their neighbours would let one expect, the heaviest of them."""
    cells = one_way.cells[name]
    counts, sizes = one_way.counts[name][: cells.values], cells.sizes
    padded = np.pad(counts / sizes, NEIGHBOURS, mode="reflect" if cells.values > NEIGHBOURS else "edge")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    above = counts - sizes * np.median(around, axis=1)
    parts = _all_parts(cells)
    stands = (above >= max(least, STANDS_OUT * one_way.cell_noise(name))) & ~_single(parts, cells)
    chosen = np.flatnonzero(stands)
    chosen = chosen[np.argsort(-above[chosen], kind="stable")[:MOST_CELLS]]
    return parts.take(np.sort(chosen))


def _all_parts(cells: Cells) -> _Parts:
    end = np.float32(cells.end) if cells.size is None else np.uint64(cells.size)
    if cells.size is None:
        end = np.nextafter(end, np.float32(np.inf))  # the last cell holds the upper bound
    return _Parts(cells.starts, np.append(cells.starts[1:], end).astype(cells.starts.dtype))


def _single(parts: _Parts, cells: Cells) -> np.ndarray:
    """Which parts hold one code alone."""
    if cells.size is None:
        return np.nextafter(parts.starts, np.float32(np.inf)) >= parts.ends
    return parts.ends - parts.starts <= 1


def _divide(parts: _Parts, cells: Cells) -> _Parts:
    """Each part in up to PARTS parts of about equal width."""
    starts, ends = [], []
    for first, last in zip(parts.starts, parts.ends, strict=True):
        if cells.size is None:
            edges = np.unique(np.linspace(float(first), float(last), PARTS + 1).astype(np.float32))
        else:
            width = int(last) - int(first)
            pieces = min(width, PARTS)
            edges = np.array([int(first) + width * i // pieces for i in range(pieces + 1)], dtype=np.uint64)
        starts.append(edges[:-1])
        ends.append(edges[1:])
    return _Parts(np.concatenate(starts), np.concatenate(ends))


def _with_values(
    one_way: OneWay, name: str, pieces: list[tuple[_Parts, np.ndarray]], noise: float
) -> tuple[Cells, np.ndarray]:
    """Cells and counts of a column with the found values apart; every old cell keeps its count in all."""
    old, counts = one_way.cells[name], one_way.counts[name]
    starts = np.concatenate([parts.starts for parts, _ in pieces]) if pieces else old.starts[:0]
    if not len(starts):
        return old, counts
    ends = np.concatenate([parts.ends for parts, _ in pieces])
    held = np.concatenate([found for _, found in pieces])
    order = np.argsort(starts, kind="stable")
    starts, ends, held = starts[order], ends[order], held[order]
    cells = refined(old, np.concatenate([starts, ends]))
    parents = old.index(cells.starts.astype(old.dtype))
    values = np.searchsorted(cells.starts, starts)
    shares = np.zeros(cells.values)
    shares[values] = held
    inside = np.bincount(parents[values], weights=held, minlength=old.values)
    number = np.bincount(parents[values], minlength=old.values)
    rest = counts[: old.values] - inside
    # What is left of a cell may be noise alone: then nothing is.
    noisy = np.sqrt(one_way.cell_noise(name) ** 2 + number * noise**2)
    rest = np.where((number > 0) & (rest < 2 * noisy), 0.0, rest)
    sizes = cells.sizes
    sizes[values] = 0.0
    room = np.bincount(parents, weights=sizes, minlength=old.values)
    spread = np.divide(rest, room, out=np.zeros(old.values), where=room > 0)
    shares += sizes * spread[parents]
    total = np.bincount(parents, weights=shares, minlength=old.values)
    scale = np.divide(counts[: old.values], total, out=np.zeros(old.values), where=total > 0)
    return cells, np.append(shares * scale[parents], counts[old.values :])
