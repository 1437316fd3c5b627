"""Which method to take, from public facts alone; docs/methods/auto.md has the measurements behind the rule."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from understudy.errors import SchemaError
from understudy.privacy import Budget, noise_multiplier
from understudy.schema import Schema

NAME = "auto"
SUMMARY = "picks one of the methods below by a public rule: columns, declared rows, budget, label"

# Declared rows over the noise of a cell when all pairs of columns are counted. Below the first, models trained on the
# rows of either method are near chance, and distances are smaller without pairs; from there on models trained on the
# rows of `mixture` predict a label, and from the second on its pairs and triples of columns are mostly closer too.
WORTH_PREDICTING = 2.5
WORTH_PAIRING = 15.0

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
    >>> choose(small, Budget(1.0, 1e-6)).method, choose(small, Budget(0.01, 1e-6)).method
    ('mixture', 'independent')
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
    return Choice("mixture", f"{facts}; {least:g} times are enough {aim}")


def _registered() -> Collection[str]:
    from understudy.synthesizers.api import METHODS  # which stands on this rule

    return METHODS


def _short(number: float) -> str:
    """
    >>> _short(0.02345), _short(4.56), _short(12345.6)
    ('0.023', '4.6', '12,346')
    """
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"
