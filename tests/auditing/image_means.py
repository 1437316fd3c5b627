"""A small honest method of images, for the tests of conformance: the mean image of every class, from noisy sums."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import SchemaError
from understudy.privacy import Budget, Ledger, Streams, gaussian, noise_multiplier
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.table.table import Table

NAME, SUMMARY = "image-means", "the mean image of every class"
IMAGES = True
FULL = 255


@dataclass(frozen=True, kw_only=True)
class Config:
    """Public settings: none."""


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple["Released", Ledger]:
    """A row adds its pixels and one full pixel to one class: at most 255 sqrt(pixels + 1) in L2."""
    if not schema.images:
        raise SchemaError("needs an image column")
    ((name, image),) = schema.images.items()
    classes = len(schema.columns[schema.label].values)
    sums = np.zeros((classes, image.pixels + 1), dtype=np.int64)
    for number in range(classes):
        mine = table.codes(name)[table.codes(schema.label) == number].astype(np.int64)
        sums[number] = np.append(mine.sum(axis=0), FULL * len(mine))
    ledger = Ledger(budget)
    noisy = gaussian(
        sums.ravel(),
        l2_sensitivity=FULL * math.sqrt(image.pixels + 1),
        noise_multiplier=noise_multiplier(budget),
        streams=streams,
        ledger=ledger,
        purpose="sums of pixels",
    ).reshape(sums.shape)
    counts = np.maximum(noisy[:, -1] / FULL, 0.5)
    means = np.clip(noisy[:, :-1] / counts[:, None], 0, FULL)
    return Released(schema, means, counts), ledger


@dataclass(frozen=True, eq=False)
class Released:
    schema: Schema
    means: np.ndarray
    counts: np.ndarray

    @property
    def rows(self) -> int:
        return max(1, round(float(self.counts.sum())))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"means": self.means, "counts": self.counts}

    def facts(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        return cls(schema, arrays["means"], arrays["counts"])

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        label = rng.choice(len(self.counts), n, p=self.counts / self.counts.sum())
        (name,) = self.schema.images
        return {self.schema.label: label.astype(np.uint8), name: np.rint(self.means[label]).astype(np.uint8)}
