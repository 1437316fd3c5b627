"""The pool B: rows drawn from every generator of every model, earlier ones included. All of it is synthetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError, SchemaError
from understudy.schema import Schema
from understudy.synthesizers.api import Model
from understudy.synthesizers.neural import released as neural
from understudy.synthesizers.one_way import fine_cells
from understudy.synthesizers.rules_held import Draw, draw_rows
from understudy.table.cells import Cells

Codes = dict[str, np.ndarray]
MOST_ROWS = 1_000_000
MOST_PIXELS = 1 << 27  # of all images of a pool together: it is part of the model


@dataclass(frozen=True, eq=False)
class Pool:
    """Rows as codes of the schema's columns, the generator that made each, and the models behind them.

    rows: the number of rows of the private table as the models released it, their mean.
    """

    schema: Schema
    codes: Codes
    generator: np.ndarray
    released: tuple[Any, ...]
    rows: int

    @property
    def size(self) -> int:
        return len(self.generator)

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return fine_cells(self.schema)


def make_pool(
    models: Sequence[Any], schema: Schema, rows: int, rng: np.random.Generator, *, earlier: bool = True
) -> Pool:
    """About `rows` rows: every model the same share, within it every generator the same. `models` are released.

    Fewer where images are large (`MOST_PIXELS`).

    schema: what the models have learnt (`Schema.learnt`); rows hold the rules that it has.
    earlier: also generators from the way through a training, where they were kept.
    """
    for image in schema.images.values():
        rows = min(rows, max(2, MOST_PIXELS // image.pixels))
    drawn, made_by = [], []
    for released in models:
        draws = generators_of(released, earlier=earlier)
        for draw in draws:
            count = max(1, round(rows / len(models) / len(draws)))
            drawn.append(draw_rows(schema, draw, count, rng))
            made_by.append(np.full(count, len(made_by), dtype=np.int32))
    return Pool(
        schema=schema,
        codes={name: np.concatenate([codes[name] for codes in drawn]) for name in [*schema.modelled, *schema.images]},
        generator=np.concatenate(made_by),
        released=tuple(models),
        rows=max(1, round(float(np.mean([released.rows for released in models])))),
    )


def check_models(models: Sequence[Model]) -> None:
    """Refuses what cannot be mixed."""
    if isinstance(models, Model) or not models or not all(isinstance(model, Model) for model in models):
        raise OptionError("models must be a list of at least one model, as `fit` and `load` give them")
    first, *others = models
    for number, model in enumerate(others, start=2):
        if model.schema.digest() != first.schema.digest():
            raise SchemaError(f"models must have one schema, and model {number} has another than the first")
    digests = [model.certificate.arrays_digest for model in models]
    for number, digest in enumerate(digests):
        if digest in digests[:number]:
            raise OptionError(f"models must differ, and model {number + 1} is model {digests.index(digest) + 1} again")


def generators_of(released: Any, *, earlier: bool = True) -> list[Draw]:
    """The released generator, and those of the kept trajectory before it, with their marginals brought in line."""
    before = _earlier(released) if earlier else []
    return [one.sample for one in [*before, released]]


def _earlier(released: Any) -> list[neural.Released]:
    """The newest checkpoint is the released generator itself, so it is left out."""
    trajectory = getattr(released, "trajectory", {})
    if "generator.0.w" not in trajectory:
        return []
    from understudy.synthesizers.neural.correction import correct_marginals
    from understudy.synthesizers.neural.rows import Layout
    from understudy.synthesizers.neural.weights import class_generators, generator_of
    from understudy.synthesizers.one_way import OneWay
    from understudy.training.nets import Net

    layout = Layout(
        released.schema,
        OneWay(released.cells, released.fine, float(released.rows), noise={}),
        released.groups,
    )
    like = released.generators[0]
    net = Net(sizes=(), activations=like.activations)
    earlier = []
    for number in range(len(trajectory["generator.0.w"]) - 1):
        layers = [{"w": w, "b": b} for w, b in kept_layers(trajectory, "generator", number)]
        if like.label is None:
            generators = [generator_of(layers, net)]
        else:
            shares = np.zeros(int(released.groups[released.schema.label].max()) + 1)
            for generator in released.generators:
                shares[generator.label] = generator.share
            generators = class_generators(layers, net, shares)
        # Post-processing of released tables, as at the end of training; without it early generators would be far off.
        corrected = correct_marginals(generators, layout, seed=number)
        earlier.append(neural.Released(released.schema, corrected, released.groups, released.fine, released.rows))
    return earlier


def kept_layers(trajectory: dict[str, np.ndarray], name: str, number: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """One checkpoint's layers of one network."""
    layers = []
    while f"{name}.{len(layers)}.w" in trajectory:
        place = f"{name}.{len(layers)}"
        layers.append((trajectory[f"{place}.w"][number], trajectory[f"{place}.b"][number]))
    return layers
