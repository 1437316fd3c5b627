"""DP-MERF (Harder, Adamczewski & Park 2021): a noisy mean embedding, and a generator that matches it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.privacy import Budget, Ledger, Streams
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.dp_merf import tables
from understudy.synthesizers.dp_merf.config import Config
from understudy.synthesizers.neural import released as networks
from understudy.synthesizers.planned import Planned
from understudy.table.table import Table

NAME = "dp-merf"
SUMMARY = "noisy mean embedding (random features, columns, pairs); a generator matches it; tables and images"
IMAGES = True

__all__ = ["IMAGES", "NAME", "SUMMARY", "Config", "Released", "check", "planned", "train"]


class Released:
    """What a model file of this method holds: a generator of rows or one of images."""

    @staticmethod
    def from_parts(schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> Any:
        if schema.images:
            from understudy.synthesizers.dp_merf.pictures.released import PictureReleased

            return PictureReleased.from_parts(schema, arrays, facts)
        return networks.Released.from_parts(schema, arrays, facts)


def check(config: Config, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    _room(schema).check(config, schema, budget)


def planned(config: Config, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    return _room(schema).planned(config, schema, budget)


def train(
    config: Config, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[Any, Ledger]:
    """See `tables.train` and `pictures.train` for what each charges, and why that is right."""
    return _room(schema).train(config, schema, table, budget, streams=streams, progress=progress)


def _room(schema: Schema) -> Any:
    if schema.images:
        from understudy.synthesizers.dp_merf import pictures

        return pictures
    return tables
