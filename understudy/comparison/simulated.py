"""Tables made from a schema alone, to try methods on: no private row is read, so looking at them costs nothing.

Every row has a hidden class and two hidden factors. A column leans on both, so that columns hang together in lumps and
along lines; the label, where there is one, leans on up to six columns and on a product of two, so that it can be
predicted, but not by a straight line alone. An image shows its class. Shares are skewed, numbers
too, and declared missing cells occur.
"""

import math

import numpy as np
import pandas as pd

from understudy.errors import OptionError, SchemaError
from understudy.schema import Boolean, Categorical, Column, Image, Schema
from understudy.schema.columns import Numeric
from understudy.table.codec import codec
from understudy.table.frame import frame

CLASSES = 6
FACTORS = 2
MOST_CAUSES = 6
BLOBS = 3
IMAGES_PER_BLOCK = 1024


def simulate(schema: Schema, rows: int | None = None, *, seed: int = 0) -> pd.DataFrame:
    """A made-up table with the schema's columns and types, of its declared number of rows unless `rows` is given.

    The same schema, rows and seed give the same table; another seed gives another process, not only other rows.

    >>> schema = Schema.loads("rows: 100\\ncolumns: {age: {kind: integer, low: 0, high: 99}, ill: {kind: boolean}}")
    >>> table = simulate(schema)
    >>> len(table), table.equals(simulate(schema)), table.equals(simulate(schema, seed=1))
    (100, True, False)
    """
    return frame(schema, simulated_codes(schema, rows, seed=seed))


def simulated_codes(schema: Schema, rows: int | None = None, *, seed: int = 0) -> dict[str, np.ndarray]:
    """The table as codes of its modelled columns, and pixels of its image; rows that break a rule are mended."""
    if not schema.rules:
        return _process(schema, rows, seed)
    from understudy.synthesizers.rules_held import draw_rows

    made = _process(schema, rows, seed)
    count = len(next(iter(made.values())))
    return draw_rows(schema, lambda *_: made, count, np.random.default_rng(seed), rounds=0)


def _process(schema: Schema, rows: int | None, seed: int) -> dict[str, np.ndarray]:
    rows = schema.rows if rows is None else rows
    if rows is None:
        raise SchemaError("the schema must declare `rows:`, a public round number: simulated tables get that many")
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise OptionError(f"rows must be a whole number of at least 1, got {rows!r}")
    process, draws = (np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(2))
    hidden_class = draws.choice(CLASSES, rows, p=process.dirichlet(np.full(CLASSES, 2.0)))
    factors = draws.normal(size=(rows, FACTORS))
    ranks: dict[str, np.ndarray] = {}
    for name in schema.modelled:
        loadings = process.normal(0.0, 0.8, FACTORS)
        shifts = process.normal(0.0, 1.0, CLASSES)
        ranks[name] = _rank(factors @ loadings + shifts[hidden_class] + draws.normal(size=rows))
    if schema.label is not None and len(ranks) > 1:
        ranks[schema.label] = _label_rank(ranks, schema.label, process, draws)
    codes = {
        name: _codes(column, ranks[name], factors[:, 0], process, draws, label=name == schema.label)
        for name, column in schema.modelled.items()
    }
    for name, image in schema.images.items():
        label = schema.modelled.get(schema.label or "")
        known = isinstance(label, Categorical | Boolean)
        codes[name] = _images(image, codes[schema.label] if known else hidden_class, process, draws)
    return codes


def _rank(scores: np.ndarray) -> np.ndarray:
    """Scores as their place in the order, strictly between 0 and 1: a copula's coordinate."""
    return (np.argsort(np.argsort(scores, kind="stable"), kind="stable") + 0.5) / len(scores)


def _label_rank(
    ranks: dict[str, np.ndarray], label: str, process: np.random.Generator, draws: np.random.Generator
) -> np.ndarray:
    others = [name for name in ranks if name != label]
    causes = [others[at] for at in process.permutation(len(others))[:MOST_CAUSES]]
    weights = process.choice([-1.0, 1.0], len(causes)) * process.uniform(1.0, 3.0, len(causes))
    score = sum(weight * (ranks[name] - 0.5) for weight, name in zip(weights, causes, strict=True))
    # A product and a valley: what a straight line cannot find.
    score = score + 8.0 * (ranks[causes[0]] - 0.5) * (ranks[causes[-1]] - 0.5) + 4.0 * (ranks[causes[0]] - 0.5) ** 2
    return _rank(score + draws.normal(0.0, 0.7, len(score)))


def _codes(
    column: Column,
    rank: np.ndarray,
    factor: np.ndarray,
    process: np.random.Generator,
    draws: np.random.Generator,
    *,
    label: bool,
) -> np.ndarray:
    coder = codec(column)
    skew = math.exp(process.uniform(-0.9, 0.9))
    if isinstance(column, Categorical | Boolean):
        codes = _categories(coder.size, rank, process, ordered=column.kind == "ordinal", even=label)
    else:
        position = rank**skew
        if isinstance(column, Numeric) and column.zero_inflated and column.low <= 0 <= column.high:
            zeros = process.uniform(0.2, 0.7)
            position = np.where(rank < zeros, np.nan, np.clip((rank - zeros) / (1 - zeros), 0.0, 1.0) ** skew)
        codes = _numbers(column, coder.size, position)
    codes = codes.astype(coder.dtype)
    if column.missing:
        share = process.uniform(0.02, 0.15)
        # Not by chance alone: people with a high factor leave more out.
        absent = draws.random(len(rank)) < np.clip(share * (1 + 0.5 * factor), 0.0, 0.5)
        codes[absent] = coder.missing
    return codes


def _categories(size: int, rank: np.ndarray, process: np.random.Generator, *, ordered: bool, even: bool) -> np.ndarray:
    """Values with skewed shares (like one over their place); those of a label are more even, so that none is lost."""
    shares = np.arange(1, size + 1, dtype=np.float64) ** -process.uniform(0.2 if even else 0.5, 0.5 if even else 1.5)
    shares = process.permutation(shares) if ordered else shares
    found = np.searchsorted(np.cumsum(shares / shares.sum()), rank, side="right").clip(0, size - 1)
    return found if ordered else process.permutation(size)[found]


def _images(image: Image, classes: np.ndarray, process: np.random.Generator, draws: np.random.Generator) -> np.ndarray:
    """Blobs of light whose places, widths and colours tell the class, a little displaced in every image, with noise."""
    kinds = int(classes.max()) + 1
    centres = process.uniform(0.2, 0.8, (kinds, BLOBS, 2))
    widths = process.uniform(0.06, 0.2, (kinds, BLOBS))
    colours = process.uniform(0.5, 1.0, (kinds, BLOBS, image.channels))
    codes = np.empty((len(classes), image.pixels), dtype=np.uint8)
    places = [(np.arange(side) + 0.5) / side for side in (image.height, image.width)]
    for first in range(0, len(classes), IMAGES_PER_BLOCK):
        kind = classes[first : first + IMAGES_PER_BLOCK].astype(np.int64)
        moved = centres[kind] + draws.normal(0.0, 0.04, (len(kind), 1, 2))
        down, across = (
            np.exp(-(((place - moved[:, :, axis, None]) / widths[kind][:, :, None]) ** 2) / 2)
            for axis, place in enumerate(places)
        )
        light = np.einsum("nbh,nbw,nbc->nhwc", down, across, colours[kind])
        light = light * draws.uniform(0.7, 1.0, (len(kind), 1, 1, 1)) + draws.normal(0.0, 0.05, light.shape)
        codes[first : first + len(kind)] = np.rint(255 * np.clip(light, 0.0, 1.0)).reshape(len(kind), -1)
    return codes


def _numbers(column: Column, size: int | None, position: np.ndarray) -> np.ndarray:
    """Codes at positions between the bounds, on the column's own scale; NaN stands for the value zero."""
    zero = np.isnan(position)
    position = np.where(zero, 0.0, position)
    # The last code as a float that is not above it: beyond 2^53 floats round, and 2^64 - 1 would become 2^64.
    last = None if size is None else float(size - 1) if size < 2**53 else np.nextafter(float(size - 1), 0.0)
    if not isinstance(column, Numeric):
        return np.minimum(np.floor(position * size), last)
    low, high = float(column.low), float(column.high)
    if column.log:
        values = np.expm1(math.log1p(low) + position * (math.log1p(high) - math.log1p(low)))
    else:
        values = low + position * (high - low)
    values = np.clip(np.where(zero, 0.0, values), low, high)
    if size is None:
        return np.clip(values.astype(np.float32), np.float32(low), np.float32(high))
    step = (high - low) / max(size - 1, 1)
    return np.clip(np.rint((values - low) / step), 0.0, last)
