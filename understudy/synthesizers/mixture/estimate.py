"""What a plan will cost and how much noise it will carry, before a row is read: from public facts alone.

Errors are those of the noisy tables as they are released. The fit averages over all of them, so that synthetic rows are
usually several times closer than this; how much closer depends on the rows, which nobody has looked at yet.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Column, Schema
from understudy.synthesizers.columns import column_facts, plan_columns
from understudy.synthesizers.mixture.pairs import MOST_LOOKS
from understudy.synthesizers.mixture.plan import CHOSEN_WEIGHT, MOST_AT_ONCE, MOST_TIMES_MORE, Config, Plan, freedom
from understudy.synthesizers.one_way import fine_cells, one_way_noise, rungs_of
from understudy.table.cells import Cells, cells_of
from understudy.table.codec import codec
from understudy.table.storage import SPILL_BYTES

# The mean size of a normal variable is sqrt(2/pi) times its standard deviation.
MEAN_SIZE = math.sqrt(2 / math.pi)
# Rough speeds of two cores of an ordinary machine; estimates may be out by a factor of two or three.
START_SECONDS = 2.0  # libraries
READ_CELLS_PER_SECOND = 4e6
COUNTS_PER_SECOND = 2e8
NOISE_DRAWS_PER_SECOND = 5e4
FIT_OPERATIONS_PER_SECOND = 1.5e11
START_BYTES = 250 << 20
# Arrays as large as all two-way tables (counts and weights, and both again in tiles, without what is mirrored), and as
# the mixture (logits, their mean gradients and mean squares; and what lies between them and their gradients).
TABLE_COPIES, MIXTURE_COPIES = 3, 10
LARGEST_EPSILON, SMALLEST_EPSILON = 1e4, 1e-3
CHOSEN: tuple[str, ...] = ()  # stands for a pair that is not known yet


@dataclass(frozen=True)
class TableEstimate:
    """A released table: its columns, its cells, the standard deviation of the noise on a cell, and what that means.

    `error` is the mean absolute error of a count, `tvd` the total variation distance that noise alone brings about.
    A table that is split by the label counts as one, its `tvd` is that of the two columns summed over the classes.
    """

    columns: tuple[str, ...]
    cells: int
    noise: float
    error: float
    tvd: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """All tables of a plan; `chosen` is a table of middling size that stands for each pair that is chosen later.

    Where all pairs are measured and the chosen ones are counted double, `two_way` has all of them, with the noise of
    those that will not be chosen.
    """

    one_way: tuple[TableEstimate, ...]
    two_way: tuple[TableEstimate, ...]
    chosen: TableEstimate | None
    chosen_pairs: int
    doubled: bool
    codes: int  # coarse codes of all columns together
    cells: int  # counts that get noise, all together
    memory_bytes: int
    seconds: float

    @property
    def one_way_tvd(self) -> float:
        return _mean([table.tvd for table in self.one_way])

    @property
    def two_way_tvd(self) -> float:
        """Mean over the pairs that are measured."""
        tables = [table.tvd for table in self.two_way]
        if self.chosen is None:
            return _mean(tables)
        if self.doubled:
            # As if pairs of middling size were chosen: theirs is what the weight leaves of a table's distance.
            saved = self.chosen_pairs * self.chosen.tvd * (CHOSEN_WEIGHT - 1)
            return max((sum(tables) - saved) / len(tables), 0.0)
        return _mean(tables + [self.chosen.tvd] * self.chosen_pairs)


def noise_tvd(cells: int, noise: float, rows: int) -> float:
    """Half the expected sum of absolute errors, over the rows; a distance is at most 1.

    >>> round(noise_tvd(100, noise=10.0, rows=10_000), 4)
    0.0399
    """
    return min(cells * noise * MEAN_SIZE / (2 * rows), 1.0)


def estimate_one_way(schema: Schema, noise_multiplier: float) -> tuple[TableEstimate, ...]:
    """The fine one-way tables of all modelled columns.

    Long ordered columns are counted on several rungs and smoothed: theirs is the distance between the widest runs.
    """
    cells = fine_cells(schema)
    # A part of the budget may go to round numbers and common values.
    plan = plan_columns(column_facts(schema), schema.rows, noise_multiplier)
    noise = one_way_noise(cells, plan.zoom.one_way_multiplier)
    return tuple(_column(name, c, noise[name], schema.rows) for name, c in cells.items())


def estimate(plan: Plan, config: Config, schema: Schema) -> Estimate:
    """Everything that follows from the plan.

    Seconds: starting, reading and counting the declared rows, one draw of noise a cell, and `fits` times `steps`
    gradient steps of 6 K D^2 operations (K components, D codes of all columns together); fits that need more components
    take about twice as long. Memory: the libraries, the
    codes of the rows (up to where they move to a file), a few copies of the fit's tables, classes * D^2, and of the
    mixture, K * D.
    """
    modelled = schema.modelled
    sizes = {name: coarse_codes(modelled[name], plan) for name in plan.columns}
    one_way = estimate_one_way(schema, plan.one_way_multiplier)
    two_way = tuple(_pair(plan, pair, tuple(sizes[name] for name in pair)) for pair in plan.always)
    candidates = plan.candidates if plan.chosen_pairs else []
    chosen = None
    if candidates:
        middling = math.sqrt(_mean([sizes[first] * sizes[second] for first, second in candidates]))
        chosen = _pair(plan, CHOSEN, (middling, middling))
    besides = chosen.cells * plan.chosen_pairs if chosen and not plan.doubled else 0
    cells = sum(table.cells for table in one_way + two_way) + besides
    codes = sum(sizes.values())
    looks = min(plan.rows * len(candidates), MOST_LOOKS)
    return Estimate(
        one_way=one_way,
        two_way=two_way,
        chosen=chosen,
        chosen_pairs=plan.chosen_pairs,
        doubled=plan.doubled,
        codes=codes,
        cells=cells,
        memory_bytes=_memory(plan, schema, codes),
        seconds=_seconds(plan, config, columns=len(schema.modelled), looks=looks, cells=cells, codes=codes),
    )


def epsilon_for_error(estimate_at: Callable[[float], Estimate], tvd: float, *, precision: float = 0.01) -> float:
    """An epsilon, as small as can be found, at which noise alone costs at most `tvd` in the mean two-way table.

    Walks from 1 in steps of two to a bracket, then halves it. Plans change by jumps (bins, pairs), so that a smaller
    epsilon further away may do as well; the one returned was evaluated, and does.
    """
    if not 0 < tvd < 1:
        raise OptionError(f"error must lie between 0 and 1, got {tvd:g}")

    def good(epsilon: float) -> bool:
        return estimate_at(epsilon).two_way_tvd <= tvd

    low = high = 1.0
    if good(high):
        while good(low := low / 2):
            high = low
            if low < SMALLEST_EPSILON:
                return high
    else:
        while not good(high := high * 2):
            low = high
            if high > LARGEST_EPSILON:
                raise OptionError(f"no epsilon up to {LARGEST_EPSILON:g} brings the error to {tvd:g}; ask for less")
    while high > low * (1 + precision):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def coarse_codes(column: Column, plan: Plan) -> int:
    """The most coarse codes that a column can get under this plan, missing included."""
    cells = cells_of(column)
    return _coarse_values(cells, plan) + cells.missing


def _coarse_values(cells: Cells, plan: Plan) -> int:
    if cells.bins is not None:
        return int(cells.bins.max()) + 1
    return min(cells.values, plan.bins if cells.ordered else plan.most_codes)


def _pair(plan: Plan, pair: tuple[str, ...], sizes: tuple[float, ...]) -> TableEstimate:
    """A pair's table of so many codes, as far as its interactions go: noise in its columns' means is taken out."""
    cells = round(math.prod(sizes))
    noise = plan.pair_noise * math.sqrt(freedom(sizes)) / plan.weight(pair, chosen=(CHOSEN,))
    # Summed over the classes of the label, a cell carries the noise of all of them.
    tvd = noise_tvd(cells, noise * math.sqrt(plan.label_classes), plan.rows)
    measured = _table(pair, cells * plan.label_classes, noise, plan.rows)
    return TableEstimate(pair, measured.cells, measured.noise, measured.error, tvd)


def _column(name: str, cells: Cells, noise: tuple[float, ...], rows: int) -> TableEstimate:
    widest = -(-cells.count // rungs_of(cells)[-1])
    tvd = noise_tvd(widest, noise[-1], rows)
    return TableEstimate((name,), cells.count, noise[0], noise[0] * MEAN_SIZE, tvd)


def _table(columns: tuple[str, ...], cells: int, noise: float, rows: int) -> TableEstimate:
    return TableEstimate(columns, cells, noise, noise * MEAN_SIZE, noise_tvd(cells, noise, rows))


def _memory(plan: Plan, schema: Schema, codes: int) -> int:
    rows = plan.rows * sum(np.dtype(codec(column).dtype).itemsize for column in schema.modelled.values())
    at_once = min(plan.fits, MOST_AT_ONCE)
    tables = TABLE_COPIES * plan.label_classes * codes**2 * 4
    components = MOST_TIMES_MORE * plan.components if plan.fits >= MOST_TIMES_MORE else plan.components
    mixture = (MIXTURE_COPIES * at_once + plan.fits) * components * codes * 4
    return START_BYTES + min(rows, SPILL_BYTES) + tables + mixture


def _seconds(plan: Plan, config: Config, *, columns: int, looks: int, cells: int, codes: int) -> float:
    return (
        START_SECONDS
        + plan.rows * columns / READ_CELLS_PER_SECOND
        + (plan.rows * (columns + plan.pairs) + looks) / COUNTS_PER_SECOND
        + (cells / NOISE_DRAWS_PER_SECOND if plan.pair_multiplier else 0.0)
        + plan.fits * config.steps * 6 * plan.components * codes**2 / FIT_OPERATIONS_PER_SECOND
    )


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
