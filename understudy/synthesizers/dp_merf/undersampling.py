"""Undersampling by class with public rates: each row is kept or dropped by a coin of its own."""

from dataclasses import dataclass

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Boolean, Schema
from understudy.schema.fields import value_key
from understudy.synthesizers.dp_merf.config import Config
from understudy.table.table import Table


@dataclass(frozen=True, eq=False)
class Rates:
    """The public chance that a row is kept, by code of the label."""

    of_codes: np.ndarray


def rates_of(config: Config, schema: Schema, *, classes: int) -> Rates | None:
    """The declared rates by code; classes that are not named are kept whole."""
    if not config.undersample:
        return None
    if not classes:
        raise OptionError("undersample needs a label with declared values; leave it out")
    column = schema.modelled[schema.label]
    values = list(getattr(column, "values", (False, True)))
    places = {value_key(value): code for code, value in enumerate(values)}
    if isinstance(column, Boolean):
        places |= {"False": 0, "True": 1}  # as a command line may have it
    rates = np.ones(classes)
    for value, rate in config.undersample.items():
        key = value_key(value)
        if key not in places:
            raise OptionError(f"undersample names {value!r}, which is no declared value of the label {schema.label!r}")
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
            raise OptionError(f"undersample must give every class a rate above 0, at most 1, got {rate!r}")
        rates[places[key]] = rate
    return Rates(rates)


def keep_rows(table: Table, schema: Schema, rates: Rates, rng: np.random.Generator) -> Table:
    """A part of the rows, private like all of them; the schema's order of columns and types stay.

    Whether a row is kept depends on its class, its public rate and a coin of its own.
    """
    labels = table.codes(schema.label)
    kept = rng.random(len(labels)) < rates.of_codes[labels]
    return Table(
        schema, {name: table.codes(name)[kept] for name in (*schema.modelled, *schema.images)}, int(kept.sum())
    )
