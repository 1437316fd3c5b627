"""Which method to take, from public facts alone; docs/methods/auto.md has the measurements behind the rule."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from understudy.errors import SchemaError
from understudy.privacy import Budget, noise_multiplier
from understudy.schema import Boolean, Categorical, Schema
from understudy.table.cells import cells_of

NAME = "auto"
SUMMARY = "picks one of the methods below by a public rule: columns, declared rows, budget, label"

# Declared rows over the noise of a cell when all pairs of columns are counted. Below the first, models trained on the
# rows of either method are near chance, and distances are smaller without pairs; from there on models trained on the
# rows of `mixture` predict a label, and from the second on its pairs and triples of columns are mostly closer too.
WORTH_PREDICTING = 2.5
WORTH_PAIRING = 15.0

# Where the table of all columns together has so few cells that a mean one holds this many times the noise it would have
# with the whole budget, graphical models of measured pairs and triples are closer than a mixture.
CLEAR_CELLS = 10.0
FEW_CELLS_METHOD = "aim"
FEW_COLUMNS = 8  # up to here it was measured

# The others count cells or learn rows of columns; this one is made for pixels.
IMAGE_METHOD = "dp-merf"


@dataclass(frozen=True)
class Choice:
    """A method by name, and the reason in public words."""

    method: str
    why: str


def choose(schema: Schema, budget: Budget) -> Choice:
    """The method that measured best on tables like this one. Costs no privacy: it sees the schema and the budget alone.

    >>> small = Schema.loads("rows: 1000\\ncolumns: {a: {kind: boolean}, b: {kind: boolean}, c: {kind: boolean}}")
    >>> [choose(small, Budget(epsilon, 1e-6)).method for epsilon in (1.0, 0.1, 0.01)]
    ['aim', 'mixture', 'independent']
    """
    if schema.rows is None:
        raise SchemaError("the schema must declare `rows:`, a public round number, for auto to pick a method")
    if schema.images and IMAGE_METHOD in _registered():
        image = next(iter(schema.images))
        return Choice(IMAGE_METHOD, f"column {image!r} is of kind image, and it is the method that makes images")
    columns = len(schema.modelled)
    pairs = columns * (columns - 1) // 2
    if not pairs:
        return Choice("independent", "there is one column, so there is no dependence to keep")
    if not budget.private:
        return Choice("mixture", "without noise, every pair of columns can be learnt from")
    noise = noise_multiplier(budget) * math.sqrt(pairs)
    least = WORTH_PAIRING if schema.label is None else WORTH_PREDICTING
    facts = (
        f"the {schema.rows:,} declared rows are {_short(schema.rows / noise)} times the noise of a cell "
        f"({_short(noise)} rows) when all {pairs:,} pairs of columns are counted"
    )
    aim = "to keep dependence" if schema.label is None else f"to predict {schema.label!r}"
    if schema.rows < least * noise:
        return Choice("independent", f"{facts}; {aim} takes {least:g} times, so single columns get the whole budget")
    held = held_by_a_cell(schema, budget)
    if held >= CLEAR_CELLS:
        return Choice(
            FEW_CELLS_METHOD,
            f"the {schema.rows:,} declared rows are so many for the few cells of all {columns} columns together that a "
            f"mean one holds {_short(held)} times its noise; {CLEAR_CELLS:g} times are enough to count combinations",
        )
    return Choice("mixture", f"{facts}; {least:g} times are enough {aim}")


def held_by_a_cell(schema: Schema, budget: Budget) -> float:
    """Declared rows of a mean cell of all columns together, over the noise of a cell with the whole (finite) budget.

    Numeric columns are taken in as many bins as `mixture` would, categories each by itself. 0 beyond `FEW_COLUMNS`.
    """
    from understudy.synthesizers.mixture.plan import Config, make_plan

    if len(schema.modelled) > FEW_COLUMNS:
        return 0.0
    bins = make_plan(Config(), schema, budget).bins
    cells = math.prod(
        count if isinstance(column, Boolean | Categorical) else min(count, bins)
        for column in schema.modelled.values()
        for count in [cells_of(column).count]
    )
    return schema.rows / (cells * noise_multiplier(budget))


def _registered() -> Collection[str]:
    from understudy.synthesizers.api import METHODS  # which stands on this rule

    return METHODS


def _short(number: float) -> str:
    """
    >>> _short(0.02345), _short(4.56), _short(12345.6)
    ('0.023', '4.6', '12,346')
    """
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"
