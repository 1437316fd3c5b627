"""The released mixture over a pool of synthetic rows: drawn from with NumPy alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from understudy.boosting.evenly import even_order
from understudy.boosting.raking import raked
from understudy.boosting.rejection import reweighted
from understudy.errors import DataError, OptionError
from understudy.schema import Schema
from understudy.synthesizers.draw import systematic
from understudy.synthesizers.evidence import Pieces, conditions
from understudy.synthesizers.one_way import fine_cells
from understudy.table.cells import Cells
from understudy.table.codec import Codec, codec
from understudy.table.pictures import ImageCodec, image_codec

NAME = "boosted"


@dataclass(frozen=True, eq=False)
class Released:
    """Released values alone: synthetic rows, a weight for each, the picks that led to them, and public settings.

    average: the average of the picked distinguishers on the pool; with `drs`, rows are also rejected by it. Where
    `settings` say `columns_kept`, every column keeps the pool's own shares (`raking`).
    """

    schema: Schema
    pool: dict[str, np.ndarray]
    weights: np.ndarray
    average: np.ndarray
    picks: np.ndarray
    rows: int
    drs: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        columns = {f"pool.{number}": self.pool[name] for number, name in enumerate(_codecs(self.schema))}
        return {
            **columns,
            "weights": self.weights.astype(np.float64),
            "average": self.average.astype(np.float32),
            "picks": self.picks.astype(np.int32),
        }

    def facts(self) -> dict[str, Any]:
        return {"rows": self.rows, "drs": self.drs, "settings": self.settings}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        pool = {}
        for number, (name, reader) in enumerate(_codecs(schema).items()):
            try:
                pool[name] = reader.check(arrays[f"pool.{number}"])
            except DataError:
                raise ValueError(f"column {name!r}: has codes outside its domain") from None
        released = cls(
            schema=schema,
            pool=pool,
            weights=arrays["weights"].astype(np.float64),
            average=arrays["average"].astype(np.float64),
            picks=arrays["picks"],
            rows=int(facts["rows"]),
            drs=bool(facts["drs"]),
            settings=dict(facts["settings"]),
        )
        w = released.weights
        if {len(codes) for codes in pool.values()} != {len(w)} or w.ndim != 1 or released.average.shape != w.shape:
            raise ValueError("pool, weights and average: must have one length")
        if not ((released.average >= 0) & (released.average <= 1)).all():
            raise ValueError("average: must lie between 0 and 1")
        if not (np.isfinite(w) & (w >= 0)).all() or not math.isclose(w.sum(), 1.0, abs_tol=1e-6):
            raise ValueError("weights: must not be negative, and must sum to 1")
        return released

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return fine_cells(self.schema)

    @cached_property
    def row_weights(self) -> np.ndarray:
        """What rows are drawn by."""
        weights = reweighted(self.weights, self.average) if self.drs else self.weights
        return raked(weights, self.pool, self.cells) if self.settings.get("columns_kept") else weights

    @cached_property
    def order(self) -> np.ndarray:
        """Rows of the pool with those that are alike side by side."""
        return even_order(self.row_weights, self.pool, self.cells, self.schema.label)

    @property
    def effective_rows(self) -> float:
        """How many rows of equal weight the pool is worth; draws of many more rows repeat themselves."""
        return float(1 / (self.row_weights**2).sum())

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows of the pool by their weights: each comes n times its weight, rounded up or down, and so do rows that
        are alike together (`evenly`); in random order."""
        weights = self.row_weights
        for name, pieces in conditions(self.schema, self.cells, where).items():
            weights = weights * _meets(self.pool[name], pieces)
        if not weights.sum() > 0:
            raise OptionError(
                f"where: no synthetic row has {' and '.join(map(repr, where or ()))} like this; loosen it"
            )
        drawn = self.order[rng.permutation(systematic(weights[self.order], n, rng))]
        return {name: codes[drawn] for name, codes in self.pool.items()}

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        raise OptionError(
            "a boosted model is a set of weighted rows and has no probabilities of others; ask the models"
        )


def _codecs(schema: Schema) -> dict[str, Codec | ImageCodec]:
    """Of all columns that a pool holds, images last."""
    columns = {name: codec(column) for name, column in schema.modelled.items()}
    return columns | {name: image_codec(column) for name, column in schema.images.items()}


def _meets(codes: np.ndarray, pieces: Pieces) -> np.ndarray:
    """Which codes lie in one of the pieces that a condition leaves."""
    met = np.zeros(len(codes), dtype=bool)
    for first, last in zip(pieces.first, pieces.last, strict=True):
        if first != first:  # NaN, the missing code of floats
            met |= np.isnan(codes)
        else:
            met |= (codes >= first) & (codes <= last)
    return met
