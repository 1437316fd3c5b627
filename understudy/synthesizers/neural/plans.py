"""From public facts to plans of private steps: batch sizes, noise, and refusals that come before any row is read."""

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget, Gaussian
from understudy.privacy.calibrate import calibrate, noise_multiplier
from understudy.privacy.ledger import Entry
from understudy.schema import Boolean, Categorical, Schema
from understudy.synthesizers.planned import Planned, one_way_entry
from understudy.table.cells import cells_of

if TYPE_CHECKING:
    from understudy.training.dpsgd import DpSgd

MOST_BINS = 16  # coarse codes of a numeric column
MOST_CODES = 64  # coarse codes of a categorical one
# Above a noise of about 1, larger batches cost time and gain nothing.
ROWS_PER_BATCH_ROW = 32
SMALLEST_BATCH, LARGEST_BATCH = 128, 2048
MOST_PARAMETERS = 50_000_000  # some 800 MB with gradients, noise and the optimiser's moments
MOST_CLASSES = 64
ONE_WAY_ROWS, LEAST_ONE_WAY, MOST_ONE_WAY = 60.0, 0.15, 0.9


@dataclass(frozen=True)
class Phase:
    """A stretch of private steps: expected batch (None: by rule), steps, its share of the budget, its clip norm.

    pauses: how many states on the way can be kept at least.
    """

    batch: int | None
    steps: int
    share: float
    clip: float
    pauses: int = 0


@dataclass(frozen=True)
class Plans:
    """The noise of the one-way tables, one plan of steps a phase, and the noise of further releases."""

    one_way_multiplier: float
    phases: "tuple[DpSgd, ...]"
    release_multipliers: tuple[float, ...] = ()


def make_plans(
    schema: Schema,
    budget: Budget,
    *,
    one_way_share: float,
    phases: tuple[Phase, ...],
    releases: tuple[tuple[int, float], ...] = (),
) -> Plans:
    """Splits one budget over the one-way tables and the phases, by shares of 1/z^2, and finds all noise together.

    releases: (count, share) of further Gaussian releases, `count` of one kind each.

    T steps at sampling rate q with noise z weigh about q^2 T / z^2, the limit of many small steps, which is what the
    shares are of; the calibration itself is exact. Everything here is public.
    """
    from understudy.training.dpsgd import CHUNKS, DpSgd

    rates = tuple(_rate(schema.rows, phase.batch) for phase in phases)
    shapes = tuple((rate, phase.steps, phase.share) for rate, phase in zip(rates, phases, strict=True))
    # A Gaussian release of all rows is a step that samples every row.
    repeated = tuple((1.0, count, share) for count, share in releases)
    noise = _noise(budget, one_way_share, shapes + repeated)
    plans = tuple(
        DpSgd(
            rate=rate,
            steps=steps,
            clip=phase.clip,
            noise_multiplier=_multiplier(noise, rate, steps, share),
            expected_batch=rate * schema.rows,
            chunks=max(CHUNKS, phase.pauses),
        )
        for (rate, steps, share), phase in zip(shapes, phases, strict=True)
    )
    multipliers = tuple(_multiplier(noise, *shape) for shape in repeated)
    return Plans(_multiplier(noise, 1.0, 1, one_way_share), plans, multipliers)


def planned_steps(schema: Schema, plans: Plans, *names: str) -> Planned:
    """What plans will charge: the one-way tables, and the steps of every phase, which `names` are of."""
    steps = [Entry(phase.event, f"steps of the {name}") for name, phase in zip(names, plans.phases, strict=True)]
    batches = dict.fromkeys(f"about {phase.expected_batch:,.0f} of {schema.rows:,} rows" for phase in plans.phases)
    return Planned(
        (one_way_entry(schema, plans.one_way_multiplier), *steps), (("batch", f"{' and '.join(batches)} in a step"),)
    )


def one_way_share_of(config: Any, schema: Schema, budget: Budget) -> float:
    """The share of the budget for the one-way tables: as asked for, or by the public rule.

    Methods whose module has this by name are boosted with their columns as they are without (boosting/shares.py).
    """
    return config.one_way_share or share_of_one_way(schema, budget)


def share_of_one_way(schema: Schema, budget: Budget) -> float:
    """The share of the budget for the one-way tables: more where noise is large beside the declared rows.

    With few rows networks learn little more than the columns themselves, which their own tables tell best.
    """
    noise = noise_multiplier(budget) * math.sqrt(len(schema.modelled))
    return min(max(ONE_WAY_ROWS * noise / schema.rows, LEAST_ONE_WAY), MOST_ONE_WAY)


def _rate(rows: int, batch: int | None) -> float:
    """The sampling rate for a batch size; a batch larger than the table takes every row in every step."""
    if batch is None:
        batch = min(max(rows // ROWS_PER_BATCH_ROW, SMALLEST_BATCH), LARGEST_BATCH)
    return min(1.0, batch / rows)


def _multiplier(noise: float, rate: float, steps: int, share: float) -> float:
    return noise * rate * math.sqrt(steps / share)


@lru_cache(maxsize=256)
def _noise(budget: Budget, one_way_share: float, shapes: tuple[tuple[float, int, float], ...]) -> float:
    """Calibration takes seconds and is asked for twice, before the budget is booked and when the fit begins."""
    from understudy.training.dpsgd import sgd_event

    return calibrate(
        lambda noise: [
            Gaussian(_multiplier(noise, 1.0, 1, one_way_share)),
            *(sgd_event(rate, steps, _multiplier(noise, rate, steps, share)) for rate, steps, share in shapes),
        ],
        budget,
    )


def widest(schema: Schema) -> int:
    """The most units that rows can take, whatever the released tables say."""
    width = 0
    for column in schema.modelled.values():
        cells = cells_of(column)
        width += min(cells.values, MOST_BINS if cells.ordered else MOST_CODES) + cells.missing
    return width


def check_size(parameters: int, option: str) -> None:
    """Refuses a network that would not fit."""
    if parameters > MOST_PARAMETERS:
        raise OptionError(
            f"{option} makes a network of {parameters:,} weights; at most {MOST_PARAMETERS:,} fit in memory: lower it"
        )


def label_classes(schema: Schema, method: str) -> int:
    """The number of codes of the label, refusing what a conditional method cannot use."""
    if schema.label is None:
        raise SchemaError(f"{method} needs a label: declare `label:` in the schema, or choose another method")
    column = schema.modelled[schema.label]
    classes = cells_of(column).count
    if not isinstance(column, Categorical | Boolean):
        raise SchemaError(f"{method} needs a label with declared values, and {schema.label!r} is {column.kind}")
    if not 2 <= classes <= MOST_CLASSES:
        raise SchemaError(
            f"{method} needs a label of 2 to {MOST_CLASSES} classes, and {schema.label!r} has {classes}; "
            "choose another label or method"
        )
    return classes


def check_options(config: Any, **limits: tuple[type, float, float]) -> None:
    """Refuses options of the wrong type or range: name=(int or float, least, most), of each number where several go."""
    types = {field.name: str(field.type) for field in fields(config)}
    for name, (kind, least, most) in limits.items():
        value = getattr(config, name)
        values = value if isinstance(value, tuple) and "tuple" in types[name] else (value,)
        for number in values:
            right = isinstance(number, int if kind is int else int | float) and not isinstance(number, bool)
            if not right or not least <= number <= most:
                what = "a whole number" if kind is int else "a number"
                raise OptionError(f"{name} must be {what} from {least:g} to {most:g}, got {value!r}")
