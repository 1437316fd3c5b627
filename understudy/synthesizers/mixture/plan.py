"""Everything that is decided before a row is read: from the schema, the declared rows and the budget alone."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations

from understudy.errors import OptionError
from understudy.privacy import BoundedRange, Budget, Event, Gaussian, SelfComposed, noise_multiplier
from understudy.privacy.calibrate import calibrate
from understudy.schema import Boolean, Categorical, Column, Schema
from understudy.synthesizers.columns import ColumnFacts, column_facts, plan_columns
from understudy.table.cells import cells_of

MOST_LABEL_CLASSES = 10  # a label with more classes is a column like any other
FEWEST_BINS, MOST_BINS = 4, 32
# Bins of a numeric column: BINS_FACTOR times the cube root of rows over noise (the balance of detail against noise).
BINS_FACTOR = 1.7
# Rows over the noise of a cell, were the whole budget spent on all pairs: below this they are too noisy, fewer are
# chosen, and they are not split by the label.
WORTH_MEASURING = 40
# What columns alone are worth: a share of the budget that falls with the rows over the noise of a cell. It is
# ONE_WAY_MOST where pairs drown (columns are most of what can be kept there), ONE_WAY_LEAST where both are clear.
ONE_WAY_MOST, ONE_WAY_LEAST = 0.55, 0.2
ONE_WAY_PER_DECADE = 0.09
# Tables of pairs with a label that they are not split by are counted with this weight, the others with 1: predictions
# live on them, and they are few.
LABEL_WEIGHT = 2
MARGIN_WEIGHT = 1  # of the columns themselves (by class, where tables are split), which are released beside pairs
FEW_PAIRS = 10  # up to here all are measured alike
# Where all pairs are measured, one in so many is chosen privately, as one of those that depend most on each other, and
# counted with this weight.
PAIRS_PER_CHOSEN = 3
CHOSEN_WEIGHT = 2
# The share for choosing: a wrong choice costs a table where few are measured, and a better one where all are.
SHARE_FOR_CHOOSING, SHARE_FOR_DOUBLING = 0.05, 0.02
# The share for columns that follow from others inside their bins, which is known once pairs are; where there are none,
# it goes to the pairs again.
FINE_SHARE = 0.03
# A column is cut into so many runs for that that one holds this many times the noise of a cell, if rows were spread
# evenly; with fewer runs there is nothing to gain over bins.
NOISE_PER_RUN = 6
FEWEST_RUNS, MOST_RUNS = 24, 64
MOST_GUIDED = 4
# Above this many rows over the noise of a cell, more components find more to learn.
CLEAR = 1000
VERY_CLEAR = 2000  # above this, noise is no concern of the fit
MOST_PAIRS_PER_COLUMN = 4
MANY_COLUMNS = 64  # up to here at least one pair a column is chosen, beyond it one for two: each choice takes time
MOST_CODES = 64  # coarse codes of a categorical column
MOST_TOTAL_CODES = 3000  # of all columns together: bounds memory (its square) and time
# Components of one fit where noise limits what can be learnt (twice as many where so many fits can be afforded), of any
# fit, and of all fits code by code. More of them make rows harder to tell from real ones, up to a few thousand.
FEW_COMPONENTS, MOST_COMPONENTS, TOTAL_COMPONENTS = 100, 600, 2400
MOST_FITS = 12  # code by code
STEP_PRODUCTS = 4e8  # products of components and squared codes that all fits together do in a step
# Where a first fit shows that components are too few, fits get up to so many times as many, and a part of the fits is
# left out for the time; not where few fits could be afforded in the first place.
MOST_TIMES_MORE, LESS_FITS = 3, 2 / 3
# Where all pairs are measured, one in so many fits has components that are points of a space of few dimensions, besides
# as many others as there would be without them.
FITS_PER_POINTS = 3
# The error at which a fit ends: half the mean squared residual over its variance, which is 0.5 under the truth. Below
# that noise is fitted; a little of it averages out between fits, and is the price for what few cells show. There is
# less of that to be had where rows are few over the noise of a cell: the first up to NOISY of them, the last from four
# times as many on.
NOISY_END, CLEAR_END = 0.46, 0.44
NOISY = 80
MOST_AT_ONCE = 4  # fits that run side by side, one a core: each holds tables of its own
MOST_CELLS = 600_000  # of all two-way tables together: exact noise costs some 20 microseconds a cell


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings. The defaults need no tuning.

    one_way_share: share of the budget (of 1/z^2) for the fine one-way tables; None follows a public rule.
    selection_share: share for choosing pairs, where there are more than a few; None follows a public rule.
    components: product distributions of one fit; None follows a public rule, and more are taken where a first fit to
    the released tables shows that they are too few, unless `fits` is given.
    fits: fits from different starts, which are averaged; None follows a public rule.
    bins: most coarse bins of a numeric column; None follows a public rule.
    split_label: split every pair table by a declared label of few classes.
    guides: place values inside bins by another column, where one tells much of them.
    steps: most gradient steps of the fit.
    """

    one_way_share: float | None = None
    selection_share: float | None = None
    components: int | None = None
    fits: int | None = None
    bins: int | None = None
    split_label: bool = True
    guides: bool = True
    steps: int = 1000

    def __post_init__(self) -> None:
        for name, most in (("one_way_share", 0.6), ("selection_share", 0.4)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, float) or not 0 < value < most):
                raise OptionError(f"{name} must be a number between 0 and {most}, got {value!r}")
        # A fit that memory or time cannot bear would break off after its budget is spent.
        for name, least, most, optional in (
            ("components", 1, 10_000, True),
            ("fits", 1, 1_000, True),
            ("bins", 2, 65_536, True),
            ("steps", 1, 1_000_000, False),
        ):
            value = getattr(self, name)
            whole = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
            if not whole and not (optional and value is None):
                raise OptionError(f"{name} must be a whole number from {least} to {most}, got {value!r}")
        for name in ("split_label", "guides"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"{name} must be true or false, got {getattr(self, name)!r}")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What will be measured, with which noise."""

    columns: tuple[str, ...]
    label_classes: int  # 1 where tables are not split by the label
    label: str | None  # the label that tables are split by
    weighted: str | None  # the label that they are not split by: its pairs are counted with LABEL_WEIGHT
    always: tuple[tuple[str, str], ...]  # pairs that are measured without choosing
    chosen_pairs: int  # pairs that are chosen privately
    doubled: bool  # chosen among those that are always measured, to be counted with CHOSEN_WEIGHT; or else besides them
    one_way_multiplier: float
    pair_multiplier: float
    fine_multiplier: float  # of what is counted once pairs are known
    guided: int  # the most columns that may follow from others inside their bins; 0: nothing is counted after pairs
    selection_epsilon: float  # of one round of choosing; 0 where nothing is chosen
    bins: int
    most_codes: int
    sizes: Mapping[str, int]  # the most coarse codes that a column can get
    components: int  # of one fit
    fits: int
    rows: int

    @property
    def pairs(self) -> int:
        return len(self.always) + (0 if self.doubled else self.chosen_pairs)

    @property
    def candidates(self) -> list[tuple[str, str]]:
        """The pairs to choose from; those with a label that tables are not split by have their weight already."""
        if self.doubled:
            return [pair for pair in self.always if self.weighted not in pair]
        always = set(self.always)
        return [pair for pair in combinations(self.columns, 2) if pair not in always]

    @property
    def pair_noise(self) -> float:
        """About the standard deviation of a cell of a two-way table that is counted with weight 1.

        Known once pairs are chosen and columns are cut: this is what they have if they have the most codes, if chosen
        pairs are of middling size, and if pairs are counted again for want of columns that follow from others.
        """
        return _together(self.pair_multiplier, self.fine_multiplier) * self.pair_sensitivity

    def runs(self, guided: int) -> int:
        """How many runs a column is cut into where so many columns follow from others."""
        return _runs(self.rows, self.fine_multiplier * math.sqrt(guided))

    @property
    def noisy(self) -> bool:
        """Whether the fit should keep noise out."""
        return self.rows < VERY_CLEAR * self.pair_noise

    @property
    def end(self) -> float:
        """The error at which a fit ends."""
        if self.pair_noise == 0:
            return CLEAR_END
        clear = math.log(self.rows / self.pair_noise / NOISY, 4)
        return NOISY_END + (CLEAR_END - NOISY_END) * min(max(clear, 0.0), 1.0)

    @property
    def points(self) -> int:
        """How many of the fits have components that are points: none where noise hides most of what columns share."""
        return self.fits // FITS_PER_POINTS if self.doubled and self.noisy else 0

    @cached_property
    def pair_sensitivity(self) -> float:
        """About how far a row moves all two-way tables together, in L2."""
        return _sensitivity(self.always, self.chosen_pairs, self.sizes, weighted=self.weighted, doubled=self.doubled)

    def weight(self, pair: tuple[str, ...], chosen: Collection[tuple[str, ...]] = ()) -> int:
        """What a pair is counted with, once `chosen` are known."""
        return CHOSEN_WEIGHT if self.doubled and pair in chosen else _weight(pair, self.weighted)


def _weight(pair: tuple[str, ...], weighted: str | None) -> int:
    return LABEL_WEIGHT if weighted in pair else 1


def freedom(sizes: Iterable[float]) -> float:
    """The square of how far a row moves a table's interactions, in L2: each column's code less an even share of all.

    >>> freedom([2, 2]), round(freedom([10, 5]), 6)
    (0.25, 0.72)
    """
    return math.prod(1 - 1 / size for size in sizes)


def _sensitivity(
    always: Sequence[tuple[str, ...]], chosen: int, sizes: Mapping[str, int], *, weighted: str | None, doubled: bool
) -> float:
    """The root of the sum of all squares, chosen pairs taken for as free as the mean of all pairs."""
    moved = sum(_weight(pair, weighted) ** 2 * freedom(sizes[name] for name in pair) for pair in always)
    if always or chosen:
        moved += MARGIN_WEIGHT**2 * sum(freedom([size]) for size in sizes.values())
    if chosen:
        free = [freedom([size]) for size in sizes.values()]
        mean = (sum(free) ** 2 - sum(f * f for f in free)) / (len(free) * (len(free) - 1))
        moved += (CHOSEN_WEIGHT**2 - 1 if doubled else 1) * chosen * mean
    return math.sqrt(moved)


def _together(first: float, second: float) -> float:
    """The noise multiplier of the best mean of two releases of the same; 0 stands for none of the second.

    >>> round(_together(3.0, 4.0), 6), _together(3.0, 0.0)
    (2.4, 3.0)
    """
    return first * second / math.hypot(first, second) if second else first


def _runs(rows: int, noise: float) -> int:
    return MOST_RUNS if noise == 0 else min(int(rows / (NOISE_PER_RUN * noise)), MOST_RUNS)


def make_plan(config: Config, schema: Schema, budget: Budget) -> Plan:
    """Decides from public facts alone: whether to split by the label, which pairs, how many bins and components."""
    rows, modelled = schema.rows, schema.modelled
    z = noise_multiplier(budget)
    label, classes = _split_label(config, schema)
    columns, every = _all_pairs(schema, without=label)
    if label is not None and z * math.sqrt(len(every)) > rows / WORTH_MEASURING:
        label, classes = None, 1
        columns, every = _all_pairs(schema, without=None)
    noise = z * math.sqrt(len(every))
    one_way_share = config.one_way_share or _one_way_share(rows, noise)
    fine_share = FINE_SHARE if config.guides and _may_follow(schema, columns, z) else 0.0
    shares = [one_way_share, 1 - one_way_share - fine_share, fine_share]
    always, chosen, doubled, selection_epsilon = every, 0, False, 0.0
    if len(every) > FEW_PAIRS and z > 0:
        with_label = [pair for pair in every if schema.label in pair]
        most = min(MOST_PAIRS_PER_COLUMN * len(columns), len(every) - len(with_label))
        doubled = noise <= rows / WORTH_MEASURING
        selection_share = config.selection_share or (SHARE_FOR_DOUBLING if doubled else SHARE_FOR_CHOOSING)
        shares[1] -= selection_share
        if doubled:
            chosen = min((len(every) - len(with_label)) // PAIRS_PER_CHOSEN, most)
        else:
            # Too noisy to measure everything: whatever touches the label, and a private choice of the rest.
            always = with_label
            affordable = int(shares[1] * (rows / WORTH_MEASURING / z) ** 2) - len(always)
            least = max(min(len(columns), MANY_COLUMNS), len(columns) // 2)
            chosen = min(max(affordable, least), most)
        z = _calibrated(column_facts(schema), rows, tuple(shares), selection_share, chosen, budget)
        selection_epsilon = _round_epsilon(z, selection_share, chosen)
    if not always and not chosen:
        shares = [1.0, 0.0, 0.0]  # a single column: the one-way table takes it all
    pair_z = z / math.sqrt(shares[1]) if shares[1] else z
    fine_z = z / math.sqrt(fine_share) if fine_share else 0.0
    both_z = _together(pair_z, fine_z)
    weighted = schema.label if label is None and len(columns) > 2 else None
    pairs = len(always) + (0 if doubled else chosen)

    def sized(noise: float) -> tuple[int, int, dict[str, int], float]:
        bins, most_codes = _within_limits(schema, columns, config.bins or _bins(rows, noise), pairs, classes)
        sizes = {name: _codes(modelled[name], bins, most_codes) for name in columns}
        moved = _sensitivity(always, chosen, sizes, weighted=weighted, doubled=doubled)
        return bins, most_codes, sizes, both_z * moved

    # Fewer codes mean less noise, and less noise more codes: from the noise of many codes, once.
    *_, noise = sized(0.0)
    bins, most_codes, sizes, noise = sized(noise)
    codes = sum(sizes.values())
    components = config.components or _components(rows, noise, codes)
    return Plan(
        columns=columns,
        label_classes=classes,
        label=label,
        weighted=weighted,
        always=tuple(always),
        chosen_pairs=chosen,
        doubled=doubled,
        one_way_multiplier=z / math.sqrt(shares[0]),
        pair_multiplier=pair_z,
        fine_multiplier=fine_z,
        guided=_most_guided(rows, fine_z) if fine_share else 0,
        selection_epsilon=selection_epsilon,
        bins=bins,
        most_codes=most_codes,
        sizes=sizes,
        components=components,
        fits=config.fits or _fits(components, codes, doubled=doubled),
        rows=rows,
    )


@lru_cache(maxsize=32)
def _calibrated(
    facts: ColumnFacts, rows: int, shares: tuple[float, ...], selection_share: float, rounds: int, budget: Budget
) -> float:
    """Remembered, since a plan is made twice: to be checked before anything is spent, and to be carried out."""
    return calibrate(lambda noise: _events(noise, facts, rows, shares, selection_share, rounds), budget)


def _round_epsilon(noise: float, share: float, rounds: int) -> float:
    """Of one choice: the zCDP of all, rounds * epsilon^2 / 8, is the share of the budget's 1/(2 z^2)."""
    return math.sqrt(4 * share / rounds) / noise


def _events(
    noise: float, facts: ColumnFacts, rows: int, shares: tuple[float, ...], selection_share: float, rounds: int
) -> list[Event]:
    return [
        *plan_columns(facts, rows, noise / math.sqrt(shares[0])).events,
        SelfComposed(BoundedRange(_round_epsilon(noise, selection_share, rounds)), rounds),
        *(Gaussian(noise / math.sqrt(share)) for share in shares[1:] if share),
    ]


def _may_follow(schema: Schema, columns: tuple[str, ...], noise_multiplier: float) -> bool:
    """Whether some column has values enough, and the table rows, for runs that are finer than bins."""
    modelled = schema.modelled
    fine = [name for name in columns if cells_of(modelled[name]).ordered]
    fine = [name for name in fine if cells_of(modelled[name]).values > FEWEST_RUNS]
    noise = noise_multiplier / math.sqrt(FINE_SHARE)
    return len(columns) > 1 and bool(fine) and _runs(schema.rows, noise) >= FEWEST_RUNS


def _most_guided(rows: int, noise_multiplier: float) -> int:
    return max(n for n in range(1, MOST_GUIDED + 1) if n == 1 or _runs(rows, noise_multiplier * n**0.5) >= FEWEST_RUNS)


def _all_pairs(schema: Schema, *, without: str | None) -> tuple[tuple[str, ...], list[tuple[str, str]]]:
    columns = tuple(name for name in schema.modelled if name != without)
    return columns, [(a, b) for i, a in enumerate(columns) for b in columns[i + 1 :]]


def _split_label(config: Config, schema: Schema) -> tuple[str | None, int]:
    if not config.split_label or schema.label is None or len(schema.modelled) < 3:
        return None, 1
    column = schema.modelled[schema.label]
    if not isinstance(column, Categorical | Boolean):
        return None, 1
    classes = cells_of(column).count
    return (schema.label, classes) if classes <= MOST_LABEL_CLASSES else (None, 1)


def _one_way_share(rows: int, noise: float) -> float:
    """More for the columns where the noise of pairs is large; `noise` is what a cell of all pairs would have.

    >>> [round(_one_way_share(rows, noise=20.0), 2) for rows in (20, 2000, 200_000)]
    [0.55, 0.37, 0.2]
    """
    if noise == 0:
        return ONE_WAY_LEAST
    share = ONE_WAY_MOST - ONE_WAY_PER_DECADE * math.log10(rows / noise)
    return min(max(share, ONE_WAY_LEAST), ONE_WAY_MOST)


def _bins(rows: int, noise: float) -> int:
    if noise == 0:
        return MOST_BINS
    return min(max(round(BINS_FACTOR * (rows / noise) ** (1 / 3)), FEWEST_BINS), MOST_BINS)


def _codes(column: Column, bins: int, most_codes: int) -> int:
    """The most coarse codes that a column can get."""
    cells = cells_of(column)
    return min(cells.values, bins if cells.ordered else most_codes) + cells.missing


def _within_limits(schema: Schema, columns: tuple[str, ...], bins: int, pairs: int, classes: int) -> tuple[int, int]:
    """Fewer bins and codes where tables would grow past what memory and time allow."""
    most_codes = MOST_CODES
    modelled = schema.modelled
    while True:
        sizes = [_codes(modelled[name], bins, most_codes) for name in columns]
        total = sum(sizes)
        mean_cells = (total**2 - sum(size**2 for size in sizes)) / max(len(sizes) * (len(sizes) - 1), 1)
        if (total <= MOST_TOTAL_CODES and pairs * mean_cells * classes <= MOST_CELLS) or max(bins, most_codes) <= 2:
            return bins, most_codes
        bins, most_codes = max(int(bins * 0.8), 2), max(int(most_codes * 0.8), 2)


def _components(rows: int, noise: float, codes: int) -> int:
    """Of one fit: 200 where noise limits what can be learnt, up to 600 with the rows over the noise of a cell.

    Half as many where twelve fits of so many would not be affordable, and fewer for very many codes.
    """
    clear = MOST_COMPONENTS if noise == 0 else FEW_COMPONENTS * max(math.sqrt(rows / noise / CLEAR), 1.0)
    affordable = STEP_PRODUCTS / max(codes, 1) ** 2
    least = max(min(clear, MOST_COMPONENTS, affordable), FEW_COMPONENTS / 2)
    return round(max(least, min(2 * clear, MOST_COMPONENTS, affordable / MOST_FITS)))


def _fits(components: int, codes: int, *, doubled: bool) -> int:
    """Many small fits, averaged, come closer than a large one; up to 12, and fewer where each is dear.

    Half as many again where some have points for components.
    """
    affordable = int(STEP_PRODUCTS / (components * max(codes, 1) ** 2))
    fits = max(min(affordable, TOTAL_COMPONENTS // components, MOST_FITS), 1)
    return fits * FITS_PER_POINTS // (FITS_PER_POINTS - 1) if doubled else fits
