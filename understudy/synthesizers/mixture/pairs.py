"""Two-way tables of coarse codes: counted, chosen where there are too many, and released together."""

import math
from dataclasses import dataclass

import numpy as np

from understudy.privacy import BoundedRange, Ledger, Streams, gaussian, select
from understudy.privacy.mechanisms import check_counts
from understudy.synthesizers.mixture.plan import MARGIN_WEIGHT, MOST_CELLS, Plan, freedom
from understudy.synthesizers.one_way import ROWS_PER_BLOCK, OneWay
from understudy.table.table import Table

Pair = tuple[str, str]
# Choosing looks at every pair: above this many (row, pair) counts, it looks at a random part of the rows.
MOST_LOOKS = 4_000_000_000
# One round compares at most so many pairs, drawn anew by public coins: exact choices among more take too long, and what
# a round does not see, a later one does.
MOST_COMPARED = 10_000
# Scores are summed on this grid, where floats add without rounding: one row moves them by the bound and not a bit more.
STEPS_PER_COUNT = 2.0**10


@dataclass(frozen=True, eq=False)
class Coarse:
    """How fine cells map to coarse codes, by column, and the label that tables are split by."""

    groups: dict[str, np.ndarray]
    label: str | None
    label_classes: int

    def size(self, name: str) -> int:
        return int(self.groups[name].max()) + 1

    def shape(self, pair: Pair) -> tuple[int, int, int]:
        return self.label_classes, self.size(pair[0]), self.size(pair[1])


def count_pairs(
    table: Table,
    one_way: OneWay,
    coarse: Coarse,
    pairs: list[Pair],
    keep: np.random.Generator | None = None,
    rate: float = 1.0,
) -> list[np.ndarray]:
    """Exact counts, private: each row falls into one cell of every pair's table (split by the label)."""
    shapes = [coarse.shape(pair) for pair in pairs]
    counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
    lookups = {name: _code_lookup(one_way, name, groups) for name, groups in coarse.groups.items()}
    for block in table.blocks(ROWS_PER_BLOCK):
        codes = {name: lookup(block[name]) for name, lookup in lookups.items()}
        if coarse.label is not None:
            label = one_way.cells[coarse.label].index(block[coarse.label]).astype(np.int64)
            split = {name: label * coarse.size(name) + codes[name] for name in codes}
        else:
            split = codes
        if keep is not None:
            kept = keep.random(len(next(iter(codes.values())))) < rate
            codes = {name: c[kept] for name, c in codes.items()}
            split = {name: c[kept] for name, c in split.items()}
        for (first, second), shape, count in zip(pairs, shapes, counts, strict=True):
            cell = split[first] * shape[2]
            cell += codes[second]
            count += np.bincount(cell, minlength=len(count))
    return [count.reshape(shape) for count, shape in zip(counts, shapes, strict=True)]


def _code_lookup(one_way: OneWay, name: str, groups: np.ndarray):
    cells = one_way.cells[name]
    return lambda codes: groups[cells.index(codes)]


def check_pairs(plan: Plan) -> None:
    """Refuses noise that `release_pairs` could not draw, before a row is read."""
    if plan.pairs:
        check_counts(
            l2_sensitivity=plan.pair_sensitivity,
            noise_multiplier=max(plan.pair_multiplier, plan.fine_multiplier),
            purpose=_purpose(plan.pairs),
            fractions=MOST_CELLS,
        )


@dataclass(frozen=True, eq=False)
class Interactions:
    """Released: what each pair's table holds beyond its columns, and the columns themselves, in each class.

    `pairs` are (classes, codes, codes), `margins` (classes, codes) by column: without noise their rows and columns
    would sum to 0. `pair_noise` and `margin_noise` are standard deviations.
    """

    pairs: list[np.ndarray]
    pair_noise: list[float]
    margins: dict[str, np.ndarray]
    margin_noise: float


def interactions(counts: np.ndarray) -> np.ndarray:
    """What a table has beyond its columns, class by class: less the means of its rows and columns, plus that of all.

    >>> interactions(np.array([[[3, 1], [1, 3]]])).tolist()
    [[[1.0, -1.0], [-1.0, 1.0]]]
    """
    first, second = counts.shape[1:]
    rows, columns = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
    # In whole numbers up to the division, which alone rounds, by 2^-53 of a number: for 100 million rows that is still
    # far below the 2^-14 of the sensitivity by which the mechanism has more noise than it needs.
    whole = first * second * counts - first * rows - second * columns + counts.sum(axis=(1, 2), keepdims=True)
    return whole / (first * second)


def deviations(counts: np.ndarray) -> np.ndarray:
    """A column's counts less their mean, class by class.

    >>> deviations(np.array([[3, 1]])).tolist()
    [[1.0, -1.0]]
    """
    return (counts.shape[1] * counts - counts.sum(axis=1, keepdims=True)) / counts.shape[1]


def release_pairs(
    table: Table,
    one_way: OneWay,
    coarse: Coarse,
    pairs: list[Pair],
    weights: list[int],
    *,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
) -> Interactions:
    """The interactions of all pairs and the columns in them, class by class, in one Gaussian release.

    A table of counts would tell of its columns again and again, once for each pair they are in. That is taken out
    before the noise, and released once: what is left of a row's effect on a table of A by B codes has a norm of
    sqrt((1 - 1/A) (1 - 1/B)), a half for two columns of two codes.

    Guarantee: tables are multiplied by public whole weights before, and divided after. One row adds the weight times
    (e_a - 1/A) (e_b - 1/B) to the interactions of two columns, where e is 1 at its own code and 0 elsewhere, and
    (e_a - 1/A) to a column; splitting by the label only says in which class. The square of |e_a - 1/A| is 1 - 1/A
    (`freedom`), so adding or removing the row moves everything by exactly the root of the sum of squared weights times
    these, in L2. Which tables and which cells there are, and which weights they have, is public or was released before.
    """
    if not pairs:
        return Interactions([], [], {}, 0.0)
    exact = count_pairs(table, one_way, coarse, pairs)
    columns = _columns_of(pairs, exact)
    moved = sum(w**2 * freedom(coarse.size(name) for name in pair) for pair, w in zip(pairs, weights, strict=True))
    moved += MARGIN_WEIGHT**2 * sum(freedom([coarse.size(name)]) for name in columns)
    parts = [weight * interactions(count) for weight, count in zip(weights, exact, strict=True)]
    parts += [MARGIN_WEIGHT * deviations(count) for count in columns.values()]
    sensitivity = math.sqrt(moved) or 1.0  # where all columns have one code, nothing moves
    stacked = gaussian(
        np.concatenate([part.ravel() for part in parts]),
        l2_sensitivity=sensitivity,
        noise_multiplier=noise_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=_purpose(len(pairs)),
    )
    split = np.split(stacked, np.cumsum([part.size for part in parts])[:-1])
    noisy = [found.reshape(part.shape) for found, part in zip(split, parts, strict=True)]
    noise = noise_multiplier * sensitivity
    return Interactions(
        pairs=[found / weight for found, weight in zip(noisy[: len(pairs)], weights, strict=True)],
        pair_noise=[noise / weight for weight in weights],
        margins={name: found / MARGIN_WEIGHT for name, found in zip(columns, noisy[len(pairs) :], strict=True)},
        margin_noise=noise / MARGIN_WEIGHT,
    )


def together(first: Interactions, second: Interactions) -> Interactions:
    """The best mean of two releases of the same tables, whose noise differs by one factor."""
    if not first.margin_noise or not second.margin_noise:
        return first if not first.margin_noise else second
    one, other = 1 / first.margin_noise**2, 1 / second.margin_noise**2
    scale = math.sqrt(one / (one + other))

    def mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (one * a + other * b) / (one + other)

    return Interactions(
        pairs=[mean(a, b) for a, b in zip(first.pairs, second.pairs, strict=True)],
        pair_noise=[scale * noise for noise in first.pair_noise],
        margins={name: mean(table, second.margins[name]) for name, table in first.margins.items()},
        margin_noise=scale * first.margin_noise,
    )


def _columns_of(pairs: list[Pair], counts: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The counts of every column that is in a pair, class by class, summed from the first of its tables."""
    columns: dict[str, np.ndarray] = {}
    for pair, count in zip(pairs, counts, strict=True):
        for axis, name in enumerate(pair):
            if name not in columns:
                columns[name] = count.sum(axis=2 - axis)
    return columns


def _purpose(pairs: int) -> str:
    return f"two-way tables of {pairs} pair{'s' * (pairs > 1)} of columns"


def choose_pairs(
    table: Table, one_way: OneWay, coarse: Coarse, plan: Plan, *, streams: Streams, ledger: Ledger
) -> list[Pair]:
    """Picks, one by one and privately, the pairs that are furthest from independent.

    The score of a pair is half the L1 distance between its table and the product of the released one-way tables. Where
    chosen pairs alone are measured, the error that noise would bring to a table of its size (public) is taken off: a
    pair whose table drowns is not worth its place.

    Guarantee: a row moves one cell by 1 and the product not at all, so a score moves by at most 1/2, up or down: each
    round is an exponential mechanism with that sensitivity, charged as bounded range. Rounds pick without replacement
    from the same scores; each round's charge holds given the earlier picks, and given which pairs it compares where
    there are very many: coins say that, which know nothing of the rows. Where there are very many rows, scores
    come from a random part of them, each row taken with a public probability by a coin of its own. Given the coins, a
    row moves a score by at most 1/2 or not at all, so the charged curves bound the picks together with the coins, and
    the picks alone reveal no more.
    """
    candidates = plan.candidates
    rate = min(1.0, MOST_LOOKS / (plan.rows * len(candidates)))
    keep = streams.sampling if rate < 1 else None
    epsilon = plan.selection_epsilon
    rounds = ledger.prepay(BoundedRange(epsilon), plan.chosen_pairs, "choice of pairs of columns")
    exact = count_pairs(table, one_way, coarse, candidates, keep, rate)
    shares = {name: _coarse_counts(one_way, coarse, name) / one_way.total for name in plan.columns}
    scores = np.empty(len(candidates))
    for number, ((first, second), count) in enumerate(zip(candidates, exact, strict=True)):
        expected = _on_grid(one_way.total * rate * np.outer(shares[first], shares[second]))
        error = 0.0 if plan.doubled else _on_grid(math.sqrt(2 / math.pi) * plan.pair_noise * rate * count.size / 2)
        scores[number] = np.abs(count.sum(axis=0) - expected).sum() / 2 - error
    picked: list[Pair] = []
    left = np.arange(len(candidates))
    for _ in range(plan.chosen_pairs):
        seen = left
        if len(left) > MOST_COMPARED:
            seen = streams.sampling.choice(left, MOST_COMPARED, replace=False)
        place = select(
            scores[seen],
            sensitivity=0.5,
            epsilon=epsilon,
            monotone=False,
            streams=streams,
            ledger=rounds,
            purpose="choice of pairs",
        )
        picked.append(candidates[seen[place]])
        left = left[left != seen[place]]
    return picked


def _coarse_counts(one_way: OneWay, coarse: Coarse, name: str) -> np.ndarray:
    return np.bincount(coarse.groups[name], weights=one_way.counts[name])


def _on_grid(numbers: np.ndarray | float) -> np.ndarray:
    return np.rint(np.multiply(numbers, STEPS_PER_COUNT)) / STEPS_PER_COUNT
