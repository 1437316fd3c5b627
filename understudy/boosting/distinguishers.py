"""Where distinguishers come from. Each is a function of one row, fixed by released values before the game begins."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from understudy.boosting import pictures
from understudy.boosting.exact import UNIT, ExactLayer, on_grid, one_hot, outputs, sigmoid_steps
from understudy.boosting.game import Family
from understudy.boosting.pool import Codes, Pool, kept_layers
from understudy.errors import DataError, OptionError
from understudy.synthesizers.mixture.coarse import coarse_groups
from understudy.table.cells import Cells
from understudy.table.table import Table

KINDS = ("critics", "classifiers", "marginals")
AUTO = "auto"
CLUSTER = "(cluster)"  # in the place of a column's name: of the image, where there is one
GAIN = 2.0  # a network's output that lies a standard deviation above the pool's mean becomes sigmoid(2) = 0.88
CODES = 8  # coarse codes of a column, in marginals and classifiers
MOST_TABLES = 200  # of codes and pairs of codes
MOST_PLACES = 1 << 27
LEARNT_FROM = 10_000  # rows of the pool that a classifier sees
_RIDGE, _NEWTON_STEPS = 1.0, 8
ROWS_PER_BLOCK = 1 << 13

Distinguisher = Callable[[Codes], np.ndarray]


@dataclass(frozen=True, eq=False)
class Dense:
    """Distinguishers with their values on the pool side by side; `evaluate` gives steps of 1/UNIT for other rows."""

    matrix: np.ndarray
    evaluate: Callable[[Codes], np.ndarray]

    @property
    def count(self) -> int:
        return len(self.matrix)

    def of_pool(self, number: int) -> np.ndarray:
        return self.matrix[number]

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        return np.clip((self.matrix @ np.asarray(weights, dtype=np.float32)).astype(np.float64), 0.0, 1.0)

    def sum_of(self, factors: np.ndarray) -> np.ndarray:
        return factors @ self.matrix

    def sums(self, table: Table) -> np.ndarray:
        total = np.zeros(self.count, dtype=np.int64)
        for block in table.blocks(ROWS_PER_BLOCK):
            total += self.evaluate(block).sum(axis=1, dtype=np.int64)
        return total


@dataclass(frozen=True, eq=False)
class Marginals:
    """Indicators of a code of one column, or of codes of two: tables (tuples of columns), each with all its cells.

    coarse: a few codes of every row, column by column, each from that row alone; sizes: how many there can be.
    """

    coarse: Callable[[Codes], Codes]
    sizes: Mapping[str, int]
    tables: tuple[tuple[str, ...], ...]
    pool: np.ndarray  # (tables, rows): the cell that each row of the pool falls into, numbered through all tables

    @cached_property
    def starts(self) -> np.ndarray:
        sizes = [math.prod(self.sizes[name] for name in names) for names in self.tables]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def of_pool(self, number: int) -> np.ndarray:
        table = int(np.searchsorted(self.starts, number, side="right")) - 1
        return (self.pool[table] == number).astype(np.float64)

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        found = np.zeros(self.count)
        for table, places in enumerate(self.pool):
            first, end = self.starts[table], self.starts[table + 1]
            found[first:end] = np.bincount(places - first, weights=weights, minlength=end - first)
        return found

    def sum_of(self, factors: np.ndarray) -> np.ndarray:
        total = np.zeros(self.pool.shape[1])
        for places in self.pool:
            total += factors[places]
        return total

    def sums(self, table: Table) -> np.ndarray:
        total = np.zeros(self.count, dtype=np.int64)
        for block in table.blocks(ROWS_PER_BLOCK):
            codes = self.coarse(block)
            for number, names in enumerate(self.tables):
                places = _places(codes, self.sizes, names) + self.starts[number]
                total += np.bincount(places, minlength=self.count)
        return total * UNIT


@dataclass(frozen=True, eq=False)
class Joined:
    """Several families as one."""

    families: tuple[Family, ...]

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.cumsum([0, *(family.count for family in self.families)])

    @property
    def count(self) -> int:
        return int(self._starts[-1])

    def of_pool(self, number: int) -> np.ndarray:
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        return self.families[place].of_pool(number - int(self._starts[place]))

    def expectations(self, weights: np.ndarray) -> np.ndarray:
        return np.concatenate([family.expectations(weights) for family in self.families])

    def sum_of(self, factors: np.ndarray) -> np.ndarray:
        parts = np.split(factors, self._starts[1:-1])
        return np.sum([family.sum_of(part) for family, part in zip(self.families, parts, strict=True)], axis=0)

    def sums(self, table: Table) -> np.ndarray:
        return np.concatenate([family.sums(table) for family in self.families])


def distinguishers(pool: Pool, wanted: str | Sequence[str | Distinguisher], *, triples: bool = False) -> Family:
    """The distinguishers of a game: kinds by name (`KINDS`), `auto`, or functions from codes to values in [0, 1].

    auto: critics of every model that kept some, and marginals; for images classifiers and marginals.
    triples: marginals of the label and two more columns too.
    """
    asked = [wanted] if isinstance(wanted, str) else list(wanted)
    if asked == [AUTO]:
        kept = any(has_critics(released) for released in pool.released)
        asked = [*["critics"] * kept, *["classifiers"] * bool(pool.schema.images), "marginals"]
    functions = [one for one in asked if callable(one)]
    families: list[Family] = []
    for kind in asked:
        if callable(kind):
            continue
        if kind not in KINDS:
            raise OptionError(f"distinguishers must be {AUTO}, functions, or some of {', '.join(KINDS)}, got {kind!r}")
        make = {"critics": critics, "classifiers": classifiers, "marginals": partial(marginals, triples=triples)}
        families.append(make[kind](pool))
    if functions:
        families.append(of_functions(pool, functions))
    if not families:
        raise OptionError(f"distinguishers must name at least one of {', '.join(KINDS)}, or give a function")
    return families[0] if len(families) == 1 else Joined(tuple(families))


def has_critics(released: object) -> bool:
    return "critic.0.w" in getattr(released, "trajectory", {})


def critics(pool: Pool) -> Dense:
    """Critics of kept trajectories, on one-hot rows of the coarse codes that each model was trained on."""
    sets = []
    for released in pool.released:
        if has_critics(released):
            kept = released.trajectory
            networks = [on_grid(kept_layers(kept, "critic", number)) for number in range(len(kept["critic.0.w"]))]
            sets.append((partial(_units, cells=pool.cells, groups=released.groups), networks))
    if not sets:
        raise OptionError(
            "distinguishers: no model kept its critics; fit a GAN with checkpoints=10, or ask for"
            " marginals or classifiers"
        )
    return _networks(pool, sets)


def classifiers(pool: Pool) -> Dense:
    """Functions that tell synthetic rows from synthetic rows: no private row.

    For every generator a logistic regression that tells its rows from the others' in the pool; for images networks
    (`pictures.networks`).
    """
    if pool.schema.images:
        blocks, classes = pictures.Blocks.of(pool.schema), pictures.class_count(pool)
        units = partial(pictures.units_of, pool.schema, blocks, classes)
        exact = [on_grid(layers, largest=blocks.largest) for layers in pictures.networks(pool)]
        return _networks(pool, [(units, exact)])
    generators = np.unique(pool.generator)
    if len(generators) < 2:
        raise OptionError(
            "distinguishers: classifiers tell generators apart, and there is one; give several models, keep"
            " checkpoints, or ask for marginals"
        )
    groups = coarse_by_pool(pool)
    encode = partial(_units, cells=pool.cells, groups=groups)
    units = encode(pool.codes)
    some = np.random.default_rng(0).permutation(pool.size)[:LEARNT_FROM]
    learnt = [_logistic(units[some], pool.generator[some] == number) for number in generators]
    return _networks(pool, [(encode, [on_grid([layer]) for layer in learnt])])


def marginals(pool: Pool, *, triples: bool = False) -> Marginals:
    """Codes of all columns and pairs of columns, those with the label first; numeric columns in bins of the pool.

    triples: then those of the label and two more columns, as far as they fit. A cell of them holds so few rows that a
    noisy pick would hardly ever take it, and they make the choice wider: for games without privacy.
    An image's code is the cluster of its class that it is nearest to (`pictures.Clusters`).
    """
    groups = coarse_by_pool(pool)
    coarse, sizes = partial(_coarse, cells=pool.cells, groups=groups), dict(zip(groups, _sizes(groups), strict=True))
    if pool.schema.images:
        clusters = pictures.clusters_of(pool)
        coarse, sizes = partial(_with_cluster, coarse=coarse, clusters=clusters), sizes | {CLUSTER: clusters.count}
    label = pool.schema.label
    pairs = [pair for pair in combinations(sizes, 2) if pair != (label, CLUSTER)]  # a class's clusters are its own
    # Beyond what fits, pairs are taken by a public lot: what the pool knows of a pair says little about what it lacks.
    lot = np.random.default_rng(0).permutation(len(pairs))
    pairs = sorted((pairs[place] for place in lot), key=lambda pair: label not in pair)
    most = max(1, min(MOST_TABLES, MOST_PLACES // pool.size))
    tables = tuple([*((name,) for name in sizes), *pairs, *(with_label(sizes, label) if triples else [])][:most])
    codes = coarse(pool.codes)
    family = Marginals(coarse, sizes, tables, np.empty((0, pool.size), dtype=np.int32))
    places = [_places(codes, sizes, columns) + family.starts[number] for number, columns in enumerate(tables)]
    return Marginals(coarse, sizes, tables, np.stack(places).astype(np.int32))


def with_label(names: Iterable[str], label: str | None) -> list[tuple[str, str, str]]:
    """The label with any two other columns.

    >>> with_label(["a", "b", "y", "c"], "y")
    [('y', 'a', 'b'), ('y', 'a', 'c'), ('y', 'b', 'c')]
    """
    others = [name for name in names if name not in (label, CLUSTER)]
    return [] if label is None else [(label, *pair) for pair in combinations(others, 2)]


def of_functions(pool: Pool, functions: Sequence[Distinguisher]) -> Dense:
    """Functions that someone gives. Each must treat rows one by one: its value for a row may depend on that row alone.

    On the pool, values outside [0, 1] are refused. On real rows they are clipped and NaN counts as one half, row by
    row: an error there would tell something about a row.
    """
    values = []
    for number, function in enumerate(functions, start=1):
        found = np.asarray(function(dict(pool.codes)), dtype=np.float64)
        if found.shape != (pool.size,):
            raise OptionError(f"distinguisher {number} must give one number a row, got the shape {found.shape}")
        if not ((found >= 0) & (found <= 1)).all():
            raise OptionError(f"distinguisher {number} must give numbers from 0 to 1 alone; pass it through a sigmoid")
        values.append(found)

    def evaluate(codes: Codes) -> np.ndarray:
        rows = len(next(iter(codes.values())))
        return np.stack([_safe_steps(function, codes, rows, at) for at, function in enumerate(functions, start=1)])

    return Dense(np.stack(values).astype(np.float32), evaluate)


def _safe_steps(function: Distinguisher, codes: Codes, rows: int, number: int) -> np.ndarray:
    found = None
    with suppress(Exception):  # whose message may hold a value of a row
        found = np.asarray(function(dict(codes)), dtype=np.float64)
    if found is None or found.shape != (rows,):
        raise DataError(f"distinguisher {number} failed on the rows; it must give one number for any row of the schema")
    found = np.where(np.isnan(found), 0.5, np.clip(found, 0.0, 1.0))
    return np.rint(found * UNIT).astype(np.int64)


def _networks(pool: Pool, sets: Iterable[tuple[Callable[[Codes], np.ndarray], list[list[ExactLayer]]]]) -> Dense:
    """Networks, with what each sees of a row, as sigmoids of outputs centred and scaled by what they give on the pool.

    A Wasserstein critic's outputs have no scale of their own (with its weights cut, all sigmoids would be 0.5); centre
    and scale come from released values, so each is a fixed function of a row all the same.
    """
    prepared = []
    for encode, networks in sets:
        units = encode(pool.codes)
        for layers in networks:
            found = np.concatenate([outputs(layers, units[at : at + 8192]) for at in range(0, len(units), 8192)])
            centre, spread = float(found.mean()), float(found.std())
            scale = GAIN / spread if spread > 1e-9 else 0.0
            prepared.append((encode, layers, centre, scale, sigmoid_steps((found - centre) * scale)))

    def evaluate(codes: Codes) -> np.ndarray:
        steps, seen, units = [], None, None
        for encode, layers, centre, scale, _ in prepared:
            if encode is not seen:
                seen, units = encode, encode(codes)
            steps.append(sigmoid_steps((outputs(layers, units) - centre) * scale))
        return np.stack(steps)

    return Dense(np.stack([steps for *_, steps in prepared]).astype(np.float32) / UNIT, evaluate)


def coarse_by_pool(pool: Pool) -> dict[str, np.ndarray]:
    """A few codes for every column, cut at quantiles of the pool: released values alone."""
    groups = {}
    for name, cells in pool.cells.items():
        counts = np.bincount(cells.index(pool.codes[name]), minlength=cells.count).astype(np.float64)
        groups[name] = coarse_groups(cells, counts, bins=CODES, most_codes=CODES, rare=0.0)
    return groups


def _coarse(codes: Codes, cells: Mapping[str, Cells], groups: Mapping[str, np.ndarray]) -> Codes:
    return {name: group[cells[name].index(codes[name])] for name, group in groups.items()}


def _with_cluster(codes: Codes, coarse: Callable[[Codes], Codes], clusters: pictures.Clusters) -> Codes:
    return coarse(codes) | {CLUSTER: clusters.index(codes)}


def _units(codes: Codes, cells: Mapping[str, Cells], groups: Mapping[str, np.ndarray]) -> np.ndarray:
    """Rows as networks of tables see them."""
    return one_hot(np.stack(list(_coarse(codes, cells, groups).values()), axis=1), _sizes(groups))


def _sizes(groups: Mapping[str, np.ndarray]) -> list[int]:
    return [int(group.max()) + 1 for group in groups.values()]


def _places(codes: Codes, sizes: Mapping[str, int], names: tuple[str, ...]) -> np.ndarray:
    place = codes[names[0]].astype(np.int64)
    for name in names[1:]:
        place = place * sizes[name] + codes[name]
    return place


def _logistic(units: np.ndarray, mine: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of a ridge logistic regression, by Newton's method; both sides weigh the same."""
    x = np.concatenate([units, np.ones((len(units), 1))], axis=1)
    share = min(max(mine.mean(), 1e-6), 1 - 1e-6)
    importance = np.where(mine, 0.5 / share, 0.5 / (1 - share))
    ridge = np.full(x.shape[1], _RIDGE)
    ridge[-1] = 1e-6
    w = np.zeros(x.shape[1])
    for _ in range(_NEWTON_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (importance * (mine - p)) - ridge * w
        curvature = (x * (importance * p * (1 - p))[:, None]).T @ x + np.diag(ridge)
        w = w + np.linalg.solve(curvature, gradient)
    return w[:-1, None].astype(np.float32), w[-1:].astype(np.float32)
