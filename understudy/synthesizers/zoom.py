"""Values that many rows share, found inside the fine cells of a numeric column.

A column of 100,000 steps has a few thousand public cells, but its rows may stand on a few values: round amounts, one
density a district, a fee. Cells that stand out of their neighbours are counted again in parts, and heavy parts once
more, until a part is a single value or no wider than a float can tell. Values found become cells of their own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.privacy import Event, Gaussian, Ledger, Streams, gaussian
from understudy.privacy.ledger import Prepaid
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay
from understudy.synthesizers.runs import Runs, all_runs, divide_all
from understudy.synthesizers.spikes import stand_out, usual_around
from understudy.table.cells import Cells, refined
from understudy.table.table import Table

SHARE, MOST_SHARE = 0.1, 0.2  # of what the one-way tables of a fit get, for a look and for all looks together
PARTS = 256  # that a run of codes is likely to be divided into at a look
MOST_LOOKS = 3
# Parts of all columns that a look counts, which bounds its time: exact noise takes some 20 microseconds a count.
MOST_PARTS = 64_000
MOST_VALUES = 4_096  # found of a column, the heaviest: a model keeps them, and cells are numbered by 16 bits
STANDS_OUT = 5.0  # times the noise of a count: by so much a lone value does, among all parts of a look
FEWEST_ROWS = 5.0  # where there is little noise or none
# Declared rows over that noise: below this even a value that a twentieth of all rows share would not stand out.
WORTH_LOOKING = 20 * STANDS_OUT
# Times the noise that cells hold more than those around, to be looked into: smoothing has left few that are noise.
LOOKED_INTO = 2.0


@dataclass(frozen=True)
class Zoom:
    """What is looked at, with which noise; public. Without `columns`, the one-way tables have all of the budget."""

    columns: tuple[str, ...]
    looks: int
    one_way_multiplier: float
    look_multiplier: float

    @property
    def sensitivity(self) -> float:
        """How far a row moves all counts of a look together in L2, where all columns are looked into."""
        return math.sqrt(len(self.columns))

    @property
    def noise(self) -> float:
        """Standard deviation of a count, at most."""
        return self.look_multiplier * self.sensitivity

    @property
    def least(self) -> float:
        """Rows with which a value is found even if it is the only one; fewer will do where many stand out."""
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
    """Which columns have cells of several values, and how many looks it takes to part them; public."""

    columns: tuple[str, ...]
    looks: int


def reach_of(cells: Mapping[str, Cells]) -> Reach:
    widest = {name: float(c.widths[: c.values].max()) for name, c in cells.items() if c.ordered}
    columns = tuple(name for name, codes in widest.items() if cells[name].size is None or codes > 1)
    codes = max((_usual_codes(cells[name]) for name in columns), default=1.0)
    return Reach(columns, min(max(math.ceil(math.log(codes, PARTS) - 1e-9), 1), MOST_LOOKS))


def plan_zoom(reach: Reach, rows: int, noise_multiplier: float) -> Zoom:
    """Divides the noise multiplier of one-way tables between them and looks into their cells, from public facts.

    Nothing is looked at where the declared rows are too few for a common value to stand out of the noise.
    """
    share = min(SHARE * reach.looks, MOST_SHARE)
    looked = Zoom(
        reach.columns,
        reach.looks,
        one_way_multiplier=noise_multiplier / math.sqrt(1 - share),
        look_multiplier=noise_multiplier * math.sqrt(reach.looks / share),
    )
    if reach.columns and rows >= WORTH_LOOKING * looked.noise:
        return looked
    return Zoom((), 0, one_way_multiplier=noise_multiplier, look_multiplier=0.0)


def _usual_codes(cells: Cells) -> float:
    """Codes of a cell; of floats, about as many as there are between the ends of one of thousands.

    The median: on a log scale the last cells, which are nearly empty, would make all columns pay for looks.
    """
    if cells.size is None:
        return float(PARTS**2)
    return float(np.median(cells.widths[: cells.values]))


@dataclass(frozen=True, eq=False)
class _Counted:
    """Runs of codes: rows that they hold, the noise of these counts, and rows that one would expect without a spike."""

    runs: Runs
    held: np.ndarray
    noise: np.ndarray
    expected: np.ndarray

    def take(self, chosen: np.ndarray) -> "_Counted":
        return _Counted(self.runs.take(chosen), self.held[chosen], self.noise[chosen], self.expected[chosen])

    @property
    def above(self) -> np.ndarray:
        return self.held - self.expected

    def expected_of(self, parts: Runs) -> np.ndarray:
        """What parts of the runs would hold of what is expected, by their width."""
        within = np.searchsorted(self.runs.starts, parts.starts, side="right") - 1
        return self.expected[within] * parts.widths / self.runs.widths[within]

    def heavy(self) -> np.ndarray:
        """Which runs hold a value that many rows share."""
        enough = self.held >= FEWEST_ROWS
        return enough & stand_out(self.above / self.noise) if self.noise[0] else enough


def zoom_in(table: Table, one_way: OneWay, zoom: Zoom, *, streams: Streams, ledger: Ledger) -> OneWay:
    """The one-way tables with a cell of its own for every value that many rows share.

    Guarantee: which runs of codes are divided comes from the schema and from counts released before. The parts of a
    column are disjoint, so a row adds 1 to at most one count of each of the c columns that have something to divide at
    a look, and moves all of them together by at most sqrt(c) in L2: one Gaussian event a look, whose noise is scaled to
    that c. All looks are charged before the first: whether one finds something to divide follows from the rows, and a
    charge must not.
    """
    if not zoom.columns:
        return one_way
    paid: Ledger | Prepaid = ledger
    if zoom.look_multiplier:
        paid = ledger.prepay(Gaussian(zoom.look_multiplier), zoom.looks, zoom.purpose)
    left = {name: _outstanding(one_way, name) for name in zoom.columns}
    found: dict[str, list[_Counted]] = {name: [] for name in zoom.columns}
    for look in range(zoom.looks):
        divided = _divided(left)
        if not divided:
            break
        looked, left = left, {}
        for name, (parts, held, noise) in _release(table, divided, zoom, streams=streams, paid=paid).items():
            counted = _Counted(parts, held, noise, looked[name].expected_of(parts))
            heavy = counted.take(counted.heavy())
            done = (heavy.runs.codes <= 1) | (look == zoom.looks - 1)
            found[name].append(heavy.take(done))
            left[name] = heavy.take(~done)
    cells, counts = dict(one_way.cells), dict(one_way.counts)
    for name, pieces in found.items():
        cells[name], counts[name] = _with_values(one_way, name, pieces)
    return OneWay(cells, counts, one_way.total, one_way.noise)


def _divided(left: dict[str, _Counted]) -> dict[str, Runs]:
    """The parts of all columns that have something to divide."""
    left = {name: counted for name, counted in left.items() if len(counted.held)}
    return divide_all({n: c.runs for n, c in left.items()}, {n: c.above for n, c in left.items()}, MOST_PARTS)


def _release(
    table: Table, parts: dict[str, Runs], zoom: Zoom, *, streams: Streams, paid: Ledger | Prepaid
) -> dict[str, tuple[Runs, np.ndarray, np.ndarray]]:
    """By column its parts, their noisy counts, and the noise of these."""
    exact = {name: np.zeros(len(runs.starts), dtype=np.int64) for name, runs in parts.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        for name, runs in parts.items():
            exact[name] += runs.count(block[name])
    sensitivity = math.sqrt(len(parts))
    stacked = gaussian(
        np.concatenate(list(exact.values())),
        l2_sensitivity=sensitivity,
        noise_multiplier=zoom.look_multiplier,
        streams=streams,
        ledger=paid,
        purpose=zoom.purpose,
    )
    noisy = np.split(stacked, np.cumsum([len(counts) for counts in exact.values()])[:-1])
    noise = zoom.look_multiplier * sensitivity
    return {
        name: (runs, held, np.full(len(held), noise)) for (name, runs), held in zip(parts.items(), noisy, strict=True)
    }


def _outstanding(one_way: OneWay, name: str) -> _Counted:
    """Cells of several values that hold more than their neighbours would let one expect."""
    cells, noise = one_way.cells[name], one_way.cell_noise(name)
    counts, sizes = one_way.counts[name][: cells.values], cells.sizes
    usual = usual_around(counts, sizes)
    runs = all_runs(cells)
    stands = np.flatnonzero((counts - usual >= max(LOOKED_INTO * noise, FEWEST_ROWS)) & (runs.codes > 1))
    return _Counted(runs.take(stands), counts[stands], np.full(len(stands), noise), usual[stands])


def _with_values(one_way: OneWay, name: str, pieces: list[_Counted]) -> tuple[Cells, np.ndarray]:
    """Cells and counts of a column with the found values apart; every old cell keeps its count in all."""
    old, counts = one_way.cells[name], one_way.counts[name]
    starts = np.concatenate([old.starts[:0], *(piece.runs.starts for piece in pieces)])
    if not len(starts):
        return old, counts
    ends = np.concatenate([piece.runs.ends for piece in pieces])
    held = np.concatenate([piece.held for piece in pieces])
    variances = np.square(np.concatenate([piece.noise for piece in pieces]))
    heaviest = np.argsort(-held, kind="stable")[:MOST_VALUES]
    order = heaviest[np.argsort(starts[heaviest], kind="stable")]
    starts, ends, held, variances = starts[order], ends[order], held[order], variances[order]
    cells = refined(old, np.concatenate([starts, ends]))
    parents = old.index(cells.starts.astype(old.dtype))
    values = np.searchsorted(cells.starts, starts)
    shares = np.zeros(cells.values)
    shares[values] = held
    inside = np.bincount(parents[values], weights=held, minlength=old.values)
    number = np.bincount(parents[values], minlength=old.values)
    rest = counts[: old.values] - inside
    # What is left of a cell may be noise alone: then nothing is.
    noisy = np.sqrt(
        one_way.cell_noise(name) ** 2 + np.bincount(parents[values], weights=variances, minlength=old.values)
    )
    rest = np.where((number > 0) & (rest < 2 * noisy), 0.0, rest)
    sizes = cells.sizes
    sizes[values] = 0.0
    room = np.bincount(parents, weights=sizes, minlength=old.values)
    spread = np.divide(rest, room, out=np.zeros(old.values), where=room > 0)
    shares += sizes * spread[parents]
    total = np.bincount(parents, weights=shares, minlength=old.values)
    scale = np.divide(counts[: old.values], total, out=np.zeros(old.values), where=total > 0)
    return cells, np.append(shares * scale[parents], counts[old.values :])
