"""All columns of a table, one by one: how round their numbers are, fine one-way tables, and values that rows share."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy.privacy import Event, Ledger, Streams
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Schema
from understudy.synthesizers.one_way import OneWay, check_one_way, fine_cells, release_one_way
from understudy.synthesizers.rounding import Rounding, plan_rounding, release_rounding, scales_of
from understudy.synthesizers.zoom import Reach, Zoom, plan_zoom, reach_of, zoom_in
from understudy.table.cells import Cells, refined
from understudy.table.decimals import Decimals
from understudy.table.grain import Scale
from understudy.table.table import Table


@dataclass(frozen=True)
class ColumnFacts:
    """What a plan for the columns follows from, besides the declared rows; public."""

    scales: tuple[tuple[str, Scale | Decimals], ...]
    reach: Reach


def column_facts(schema: Schema) -> ColumnFacts:
    return ColumnFacts(tuple(scales_of(schema).items()), reach_of(fine_cells(schema)))


@dataclass(frozen=True)
class ColumnPlan:
    """How the budget of the columns is divided; public."""

    rounding: Rounding
    zoom: Zoom

    @property
    def events(self) -> list[Event]:
        """In the order of the releases; the inverses of their squared noise add up to what was planned for."""
        return [*self.rounding.events, *self.zoom.events]


def plan_columns(facts: ColumnFacts, rows: int, noise_multiplier: float) -> ColumnPlan:
    """Divides the noise multiplier of all one-way tables between round numbers, the tables, and looks into cells."""
    rounding = plan_rounding(dict(facts.scales), rows, noise_multiplier)
    return ColumnPlan(rounding, plan_zoom(facts.reach, rows, rounding.rest_multiplier))


def check_columns(schema: Schema, *, noise_multiplier: float) -> None:
    """Refuses noise that `release_columns` could not draw, before a row is read."""
    plan = plan_columns(column_facts(schema), schema.rows, noise_multiplier)
    check_one_way(schema, noise_multiplier=plan.zoom.one_way_multiplier)
    if plan.rounding.scales:
        check_counts(
            l2_sensitivity=plan.rounding.sensitivity,
            noise_multiplier=plan.rounding.multiplier,
            purpose=plan.rounding.purpose,
        )
    if plan.zoom.columns:
        check_counts(
            l2_sensitivity=plan.zoom.sensitivity,
            noise_multiplier=plan.zoom.look_multiplier,
            purpose=plan.zoom.purpose,
        )


def release_columns(
    table: Table, schema: Schema, *, noise_multiplier: float, streams: Streams, ledger: Ledger
) -> OneWay:
    """One-way tables of all columns: common values of numeric ones apart, round numbers as frequent as they are.

    Guarantee: Gaussian releases (`release_rounding`, `release_one_way`, `zoom_in`) whose 1/z^2 add up to
    1/noise_multiplier^2, which together are as much as one Gaussian release with `noise_multiplier`.
    """
    plan = plan_columns(column_facts(schema), schema.rows, noise_multiplier)
    rounded = release_rounding(table, plan.rounding, streams=streams, ledger=ledger)
    one_way = release_one_way(
        table,
        fine_cells(schema),
        noise_multiplier=plan.zoom.one_way_multiplier,
        streams=streams,
        ledger=ledger,
        rounded=rounded,
    )
    return zoom_in(table, one_way, plan.zoom, streams=streams, ledger=ledger)


def found_cuts(schema: Schema, one_way: OneWay) -> dict[str, np.ndarray]:
    """Where released values cut the public cells, by column that has any: to be kept in a model."""
    public = fine_cells(schema)
    cuts = {name: np.setdiff1d(cells.starts, public[name].starts) for name, cells in one_way.cells.items()}
    return {name: found for name, found in cuts.items() if len(found)}


def found_grains(one_way: OneWay) -> dict[str, np.ndarray]:
    """The weights of round numbers, by column that has them: to be kept in a model."""
    return {name: cells.grain.weights for name, cells in one_way.cells.items() if cells.grain is not None}


def released_cells(
    schema: Schema, cuts: Mapping[str, np.ndarray], grains: Mapping[str, np.ndarray]
) -> dict[str, Cells]:
    """The cells of a released model: the public ones with its cuts and its weights of round numbers."""
    cells, scales = fine_cells(schema), scales_of(schema)
    for name, weights in grains.items():
        if name not in scales or weights.shape != (scales[name].classes,):
            raise ValueError(f"column {name!r}: weights of round numbers must be those of its values")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError(f"column {name!r}: weights of round numbers must be positive")
        cells[name] = replace(cells[name], grain=scales[name].weighted(weights))
    for name, found in cuts.items():
        if found.ndim != 1 or found.dtype != cells[name].starts.dtype or not np.isfinite(found).all():
            raise ValueError(f"column {name!r}: cuts must be codes of the column")
        cells[name] = refined(cells[name], found)
    return cells
