"""Distinguishers of images, made from synthetic ones alone: clusters of each class, and networks that know blends.

Pixels of real and made images differ in grain, and a game about grain keeps the wrong images: fewer of those that were
kept for their contrasts could be read. So an image is seen through sums of blocks, in two ways that are about what it
shows: which of its class's clusters it is nearest to (do all ways of writing a digit come as often as they should), and
whether it looks like one image rather than two laid over each other, which is what a generator does between modes.

All numbers of an image are whole and small enough for float64 to add them up exactly, in any order: a row's value does
not depend on its neighbours (see `exact`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.boosting.exact import LEAK, Layers
from understudy.boosting.pool import Codes, Pool, make_pool
from understudy.schema import Schema

SIDE = 14  # blocks a side, at most
LARGEST = 1 << 20  # that a block's number may be, as `exact.on_grid` has it
CLUSTERS = 20  # of a class, at most, and of fewer than this many images each never more
IMAGES_A_CLUSTER = 10
CLUSTERED = 2_000  # images of a class that its clusters are made from
ROUNDS_OF_CLUSTERS = 10
BLENDERS = 6  # networks that know blends
LEARNT_FROM = 10_000  # fresh images that a network learns from
HIDDEN, STEPS, BATCH, RATE = 64, 500, 256, 0.003


@dataclass(frozen=True)
class Blocks:
    """How an image of the schema is read: whole sums over blocks of pixels and all channels."""

    name: str
    height: int
    width: int
    channels: int

    @staticmethod
    def of(schema: Schema) -> "Blocks":
        ((name, image),) = schema.images.items()
        return Blocks(name, image.height, image.width, image.channels)

    @property
    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """First rows and columns of the blocks."""
        found = []
        for side in (self.height, self.width):
            blocks = min(SIDE, side)
            found.append(np.arange(blocks) * side // blocks)
        return found[0], found[1]

    @property
    def _most(self) -> int:
        """The largest sum that a block can have."""
        rows, columns = self.edges
        most = [int(np.diff([*first, side]).max()) for first, side in ((rows, self.height), (columns, self.width))]
        return 255 * most[0] * most[1] * self.channels

    @property
    def shift(self) -> int:
        """Bits that the sums of very large blocks are cut by."""
        return max(0, self._most.bit_length() - LARGEST.bit_length() + 1)

    @property
    def largest(self) -> int:
        """The largest number that a block can have."""
        return self._most >> self.shift

    def sums(self, codes: Codes) -> np.ndarray:
        """(rows, blocks) of whole numbers, as float64."""
        pixels = codes[self.name]
        rows, columns = self.edges
        shaped = pixels.reshape(len(pixels), self.height, self.width * self.channels)
        if not len(pixels):
            return np.zeros((0, len(rows) * len(columns)))
        down = np.add.reduceat(shaped, rows, axis=1, dtype=np.int64)
        across = np.add.reduceat(down, columns * self.channels, axis=2)
        return (across.reshape(len(pixels), -1) >> self.shift).astype(np.float64)


def classes_of(schema: Schema, codes: Codes) -> np.ndarray:
    """The class of every row: its label, or one for all where there is none or a number."""
    rows = len(next(iter(codes.values())))
    return codes[schema.label].astype(np.int64) if _labelled(schema) else np.zeros(rows, dtype=np.int64)


def _labelled(schema: Schema) -> bool:
    return schema.label is not None and schema.modelled[schema.label].kind in ("categorical", "ordinal", "boolean")


def class_count(pool: Pool) -> int:
    """Codes of the label, with that of a missing one: public."""
    return pool.cells[pool.schema.label].count if _labelled(pool.schema) else 1


@dataclass(frozen=True, eq=False)
class Clusters:
    """Centres by class, (classes, clusters, blocks) of whole numbers; a class without images has zeros."""

    blocks: Blocks
    schema: Schema
    centres: np.ndarray

    @property
    def count(self) -> int:
        return self.centres.shape[0] * self.centres.shape[1]

    def index(self, codes: Codes) -> np.ndarray:
        """The nearest centre of a row's own class, numbered through all classes; the first of several that are.

        |x - c|^2 = |x|^2 - 2 x c + |c|^2, and the first term is the same for all: what is compared are whole numbers
        below 2^53 (196 blocks of at most 2^20 each), so no order of adding can change it.
        """
        sums, classes = self.blocks.sums(codes), classes_of(self.schema, codes)
        found = np.zeros(len(sums), dtype=np.int64)
        for number, centres in enumerate(self.centres):
            mine = classes == number
            if mine.any():
                found[mine] = number * len(centres) + _nearest(sums[mine], centres)
        return found


def _nearest(sums: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.argmin((centres**2).sum(axis=1) - 2 * (sums @ centres.T), axis=1)


def clusters_of(pool: Pool) -> Clusters:
    """k-means of the pool's images, class by class."""
    blocks, count = Blocks.of(pool.schema), class_count(pool)
    sums, classes = blocks.sums(pool.codes), classes_of(pool.schema, pool.codes)
    most = max(1, min(CLUSTERS, pool.size // count // IMAGES_A_CLUSTER))
    centres = np.zeros((count, most, sums.shape[1]))
    rng = np.random.default_rng(0)
    for number in range(count):
        mine = sums[classes == number][:CLUSTERED]
        if len(mine):
            centres[number] = _means(mine, most, rng)
    return Clusters(blocks, pool.schema, centres)


def _means(sums: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Lloyd's rounds from random images; an empty cluster stays where it was."""
    centres = sums[rng.integers(len(sums), size=count)] if len(sums) < count else rng.permutation(sums)[:count]
    for _ in range(ROUNDS_OF_CLUSTERS):
        nearest = _nearest(sums, centres)
        for number in np.unique(nearest):
            centres[number] = np.rint(sums[nearest == number].mean(axis=0))
    return centres


def units_of(pool_schema: Schema, blocks: Blocks, classes: int, codes: Codes) -> np.ndarray:
    """What a network sees of a row: block sums, and its class as one unit of the same size."""
    own = classes_of(pool_schema, codes)[:, None] == np.arange(classes)
    return np.concatenate([blocks.sums(codes), blocks.largest * own], axis=1)


def networks(pool: Pool) -> list[Layers]:
    """Networks that tell images from blends of two, and each generator's images from the others' where there are some.

    They learn from images drawn afresh: a network knows the images that it learnt from too well, and would take real
    ones for blends.
    """
    blocks, classes = Blocks.of(pool.schema), class_count(pool)
    rng = np.random.default_rng(0)
    fresh = make_pool(pool.released, pool.schema, min(LEARNT_FROM, max(pool.size, 2)), rng)
    units = units_of(pool.schema, blocks, classes, fresh.codes) / blocks.largest
    learnt = []
    for _ in range(BLENDERS):
        learnt.append(_learn(units, blend(units, units.shape[1] - classes, rng), rng))
    generators = np.unique(fresh.generator)
    if len(generators) > 1:
        for number in generators:
            mine = fresh.generator == number
            learnt.append(_learn(units[mine], units[~mine], rng))
    # Networks learnt from blocks of 0 to 1; they are asked about whole sums.
    return [[(layers[0][0] / blocks.largest, layers[0][1]), *layers[1:]] for layers in learnt]


def blend(units: np.ndarray, pixels: int, rng: np.random.Generator) -> np.ndarray:
    """Two rows' images laid over each other, each with a weight of a quarter or more, and the class of one of them."""
    first, second = units, units[rng.permutation(len(units))]
    share = rng.uniform(0.25, 0.75, (len(units), 1))
    mixed = share * first + (1 - share) * second
    mixed[:, pixels:] = np.where(rng.random((len(units), 1)) < 0.5, first[:, pixels:], second[:, pixels:])
    return mixed


def _learn(good: np.ndarray, bad: np.ndarray, rng: np.random.Generator) -> Layers:
    """A hidden layer of leaky units, by Adam on the logistic loss, as many rows of either kind a step."""
    inputs = good.shape[1]
    parts = [
        rng.standard_normal((inputs, HIDDEN)) * np.sqrt(2 / inputs),
        np.zeros(HIDDEN),
        rng.standard_normal((HIDDEN, 1)) * np.sqrt(2 / HIDDEN),
        np.zeros(1),
    ]
    first, second = [np.zeros_like(part) for part in parts], [np.zeros_like(part) for part in parts]
    wanted = np.repeat([1.0, 0.0], BATCH // 2)[:, None]
    for step in range(1, STEPS + 1):
        rows = [part[rng.integers(len(part), size=BATCH // 2)] for part in (good, bad)]
        for number, slope in enumerate(_slopes(parts, np.concatenate(rows), wanted)):
            first[number] += 0.1 * (slope - first[number])
            second[number] += 0.001 * (slope**2 - second[number])
            size = (first[number] / (1 - 0.9**step)) / (np.sqrt(second[number] / (1 - 0.999**step)) + 1e-8)
            parts[number] -= RATE * (1 - (step - 1) / STEPS) * size
    return [(parts[0], parts[1]), (parts[2], parts[3])]


def _slopes(parts: Sequence[np.ndarray], x: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
    w, b, v, c = parts
    before = x @ w + b
    hidden = np.where(before > 0, before, LEAK * before)
    wrong = (1 / (1 + np.exp(-np.clip(hidden @ v + c, -30, 30))) - wanted) / len(x)
    back = (wrong @ v.T) * np.where(before > 0, 1.0, LEAK)
    return [x.T @ back, back.sum(axis=0), hidden.T @ wrong, wrong.sum(axis=0)]
