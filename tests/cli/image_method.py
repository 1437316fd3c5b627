"""A tiny method for images, for tests of what surrounds one: noisy counts of the label, and made-up pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.privacy import Budget, Ledger, Streams, noise_multiplier
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.one_way import fine_cells, release_one_way
from understudy.table.table import Table

NAME = "made-up-images"
SUMMARY = "for tests"
IMAGES = True


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple["Released", Ledger]:
    ledger = Ledger(budget)
    (image,) = schema.images
    assert table.codes(image).shape == (table.rows, schema.images[image].pixels)
    counts = np.ones(1)
    if schema.modelled:
        (label,) = schema.modelled
        noise = noise_multiplier(budget)
        one_way = release_one_way(table, fine_cells(schema), noise_multiplier=noise, streams=streams, ledger=ledger)
        counts = one_way.counts[label]
    return Released(schema, np.asarray(counts, dtype=np.float64), 50), ledger


@dataclass(frozen=True, eq=False)
class Released:
    schema: Schema
    counts: np.ndarray
    rows: int

    def arrays(self) -> dict[str, np.ndarray]:
        return {"counts": self.counts}

    def facts(self) -> dict[str, Any]:
        return {"rows": self.rows}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        return cls(schema, arrays["counts"], int(facts["rows"]))

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        labels = rng.choice(len(self.counts), n, p=self.counts / self.counts.sum()).astype(np.uint8)
        ((image, column),) = self.schema.images.items()
        # A column of light whose place tells the class.
        pixels = rng.integers(0, 60, (n, column.height, column.width, column.channels)).astype(np.uint8)
        pixels[np.arange(n), :, labels % column.width] = 250
        drawn = {image: pixels.reshape(n, -1)}
        return drawn | ({next(iter(self.schema.modelled)): labels} if self.schema.modelled else {})
