"""How far mixtures are from released tables, and which way is down: what every step of a fit works out.

Several fits lie side by side, along the first axis of all arrays. None knows of the others: what comes out for one does
not depend on how many there are. Works on released numbers alone: nothing here is private.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from understudy.synthesizers.mixture.targets import Targets

TILE = 110  # codes on a side, about: what a core works at stays at hand, and mirrored parts are worked out once


class Tile(NamedTuple):
    """A part of all two-way tables: codes `first` by codes `second`, on the diagonal or above it.

    `wanted` is None where nothing is; weights are by class, or alike for all.
    """

    first: slice
    second: slice
    wanted: np.ndarray | None
    weights: np.ndarray


@dataclass(frozen=True, eq=False)
class Tables:
    """Targets as a loop reads them: in single precision, two-way tables in tiles, and which codes belong together.

    `empty`: tiles of the pairs of codes that rules forbid, where there are any.
    `member` (D, columns): 1 where a code is of a column. `ties`: for every column whose codes move together where they
    are, and how far.
    """

    rows: np.float32
    pairs: tuple[Tile, ...]
    margins: np.ndarray
    margin_weights: np.ndarray
    even: np.ndarray
    ones: np.ndarray
    one_weights: np.ndarray
    class_shares: np.ndarray
    class_weights: np.ndarray
    empty: tuple[Tile, ...]
    member: np.ndarray
    ties: tuple[tuple[slice, np.ndarray], ...]

    @classmethod
    def of(cls, targets: Targets) -> "Tables":
        names = ("margins", "margin_weights", "even", "ones", "one_weights", "class_shares", "class_weights")
        empty = targets.empty_weights
        return cls(
            rows=np.float32(targets.total),
            **{name: _single(getattr(targets, name)) for name in names},
            pairs=_tiles(targets.pairs, targets.pair_weights),
            empty=() if empty is None else _tiles(None, empty),
            member=np.repeat(np.eye(len(targets.sizes), dtype=np.float32), targets.sizes, axis=0),
            ties=_blocks(targets),
        )


class Errors(NamedTuple):
    """Half the sum of squared residuals over their variances (fits,), and its derivatives."""

    errors: np.ndarray
    of_weights: np.ndarray
    of_shares: np.ndarray


def errors(tables: Tables, weights: np.ndarray, shares: np.ndarray) -> Errors:
    """Of mixtures with weights (fits, classes, K) and shares of codes by component (fits, classes, K, D)."""
    fits = len(weights)
    rows = tables.rows * weights
    of_row = rows[..., None]
    # Less even shares, a product of two columns has their interactions alone.
    uneven = shares - tables.even
    found, of_shares = _two_way(tables.pairs, uneven, of_row)
    by_class = np.matmul(rows[:, :, None], uneven)[:, :, 0] - tables.margins
    of_class = tables.margin_weights * by_class
    one_way = np.matmul(rows.reshape(fits, 1, -1), shares.reshape(fits, -1, shares.shape[-1]))[:, 0] - tables.ones
    of_one = tables.one_weights * one_way
    # Interactions and deviations say little of how many rows a class has.
    in_class = rows.sum(axis=2) - tables.rows * tables.class_shares
    of_size = tables.class_weights * in_class
    found += 0.5 * (_inner(of_class, by_class) + _inner(of_one, one_way) + _inner(of_size, in_class))
    of_weights = 0.5 * np.einsum("flkd,flkd->flk", uneven, of_shares)
    of_weights += np.matmul(uneven, of_class[..., None])[..., 0] + of_size[..., None]
    of_weights += np.matmul(shares.reshape(fits, -1, shares.shape[-1]), of_one[..., None]).reshape(weights.shape)
    of_shares += (of_class + of_one[:, None])[:, :, None]
    if tables.empty:
        of_found, of_empty = _two_way(tables.empty, shares, of_row)
        found += of_found
        of_weights += 0.5 * np.einsum("flkd,flkd->flk", shares, of_empty)
        of_shares += of_empty
    of_shares *= of_row
    return Errors(found, tables.rows * of_weights, of_shares)


def softmax(logits: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Shares of codes within each column."""
    shares = np.exp(logits)
    shares *= (1 / (_rows(shares) @ member) @ member.T).reshape(shares.shape)
    return shares


def of_logits(of_shares: np.ndarray, shares: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Derivatives by logits from those by shares, which are overwritten."""
    of_shares *= shares
    of_shares -= shares * ((_rows(of_shares) @ member) @ member.T).reshape(shares.shape)
    return of_shares


def spread(of_logits: np.ndarray, ties: tuple[tuple[slice, np.ndarray], ...]) -> None:
    """Lets neighbours move together, in place."""
    for place, tie in ties:
        of_logits[..., place] = (_rows(of_logits[..., place]) @ tie).reshape(*of_logits.shape[:-1], -1)


def _rows(array: np.ndarray) -> np.ndarray:
    """Components of a fit one below the other, (fits, classes * K, D)."""
    return array.reshape(len(array), -1, array.shape[-1])


def _two_way(tiles: tuple[Tile, ...], shares: np.ndarray, of_row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of all pairs: half the sum of squared residuals over their variances (fits,), and forces on shares by row."""
    weighted = of_row * shares
    found, forces = np.zeros(len(shares), dtype=np.float32), np.zeros_like(shares)
    for tile in tiles:
        residual = np.matmul(shares[..., tile.first].swapaxes(-1, -2), weighted[..., tile.second])
        if tile.wanted is not None:
            residual -= tile.wanted
        force = tile.weights * residual
        forces[..., tile.first] += np.matmul(shares[..., tile.second], force.swapaxes(-1, -2))
        if tile.first == tile.second:
            # Every pair stands twice in a symmetric tile, hence a quarter in place of a half.
            found += 0.25 * _inner(force, residual)
        else:
            found += 0.5 * _inner(force, residual)
            forces[..., tile.second] += np.matmul(shares[..., tile.first], force)
    return found, forces


def _inner(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Sums of products, one for each fit; by a product of matrices, which adds in the same order beside any others."""
    fits = len(first)
    return np.matmul(first.reshape(fits, 1, -1), second.reshape(fits, -1, 1))[:, 0, 0]


def _tiles(wanted: np.ndarray | None, weights: np.ndarray) -> tuple[Tile, ...]:
    """Symmetric tables (..., D, D), as tiles on the diagonal and strips from there to the right."""
    codes = weights.shape[-1]
    ends = np.linspace(0, codes, max(1, round(codes / TILE)) + 1).astype(int).tolist()
    tiles = []
    for start, end in pairwise(ends):
        first = slice(start, end)
        for second in (first, slice(end, codes)):
            if second.start < codes:
                part = (..., first, second)
                tiles.append(
                    Tile(first, second, None if wanted is None else _single(wanted[part]), _single(weights[part]))
                )
    return tuple(tiles)


def _single(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.float32)


def _blocks(targets: Targets) -> tuple[tuple[slice, np.ndarray], ...]:
    if targets.ties is None:
        return ()
    ends = np.cumsum(targets.sizes)
    places = [slice(int(end - size), int(end)) for end, size in zip(ends, targets.sizes, strict=True)]
    blocks = [(place, _single(targets.ties[place, place])) for place in places]
    return tuple((place, block) for place, block in blocks if (block != np.eye(len(block))).any())
