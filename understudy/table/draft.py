"""A first schema, guessed from the rows and marked so: a person has to confirm it before anything is fitted."""

import re
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np
import pandas as pd

from understudy.errors import DataError, SchemaError
from understudy.schema import Boolean, Categorical, Datetime, Id, Integer, Ordinal, Real, Schema, Text
from understudy.schema.columns import MOST_REAL_STEPS, SECONDS, Column
from understudy.table.image_profile import ImageProfile
from understudy.table.image_sources import DRAFTED, LABELS
from understudy.table.parse import parse_number
from understudy.table.profile import Numbers, Profile, Times
from understudy.table.read import RAGGED, Finding, told
from understudy.table.sources import open_source

HEADER = """\
A draft: `source: data` marks what was read off the private rows, which nothing may be built on.
For each column, set the facts from public knowledge (a code book, a form, the law), not from the rows:
values, low and high, missing; height and width. Then change `source: data` to `source: public`, or remove it.
Look at the kinds too: codes that are numbers, dates, identifiers (kind: id), free text (kind: text).
Add `label: COLUMN` if one column is to be predicted from the others, and make `rows` a round number."""

MOST_CATEGORIES = 1_000
FEW_CATEGORIES = 20
FEW_NUMBERS = 12
NARROW = 30
ZERO_SHARE = 0.4
SKEW = 10
ID_NAME = re.compile(r"(^|[\W_])(id|key|uuid|guid)$|[a-z](Id|ID)$", re.IGNORECASE)
MISSING_WORD = "?"
CLASSES = DRAFTED[LABELS]  # a column of this name beside images has their classes


def draft(source: Any) -> Schema:
    """Guesses a schema from all rows of a table; every column is marked `source: data`."""
    opened = open_source(source)
    if not opened.names:
        raise DataError(f"{opened.label}: it has no columns; it needs at least one")
    if isinstance(source, pd.DataFrame):
        if any(not isinstance(name, str) for name in source.columns):
            raise DataError(f"{opened.label}: its columns must have names, not numbers; set `columns` to names")
    elif 2 * sum(parse_number(name) is not None for name in opened.names) > len(opened.names):
        raise DataError(f"{opened.label}: the first line must name the columns, but it looks like a row of values")
    profiles = {name: ImageProfile() if name in opened.images else Profile() for name in opened.names}
    for block in opened.blocks(opened.names):
        for name, array in block.items():
            profiles[name].add(array)
    if opened.ragged:
        raise DataError(f"{opened.label}: {told(None, RAGGED, Finding.of(opened.ragged))}; mend them first")
    rows = next(iter(profiles.values())).rows
    if not rows:
        raise DataError(f"{opened.label}: it is empty; it needs at least one row")
    pictured = {name: profiles.pop(name).declared(opened.label, name) for name in opened.images}
    label = CLASSES if pictured and CLASSES in profiles else None
    columns = {
        name: _guess_class(profile) if name == label else _guess(name, profile) for name, profile in profiles.items()
    }
    if not pictured and not any(column.modelled for column in columns.values()):
        raise DataError(f"{opened.label}: every column looks like an id or free text; write the schema by hand")
    words = sorted(set().union(*(_missing_words(profile, columns[name]) for name, profile in profiles.items())))
    marks = {"rows": "data"} | ({"missing_values": "data"} if words else {})
    if label is not None and columns[label].modelled:
        marks["label"] = "data"
    else:
        label = None
    return Schema(
        rows=_one_digit(rows), label=label, missing_values=words, source=marks, columns={**columns, **pictured}
    )


def _guess_class(profile: Profile) -> Column:
    """The classes of images are values without an order, also where they are written as numbers."""
    texts = [text for text in profile.counts or () if text not in profile.marked]
    if not 0 < len(texts) <= MOST_CATEGORIES:
        return Text(source="data")
    if profile.could_be_number:
        values = sorted({_scalar(text) for text in texts})
    else:
        values = sorted(texts, key=_natural)
    missing = {"missing": True} if profile.absent or profile.marked else {}
    return Categorical(values=values, **missing, source="data")


def _guess(name: str, profile: Profile) -> Column:
    missing = {"missing": True} if profile.absent else {}
    if not profile.present:
        return Text(source="data")
    if profile.could_be_boolean:
        return Boolean(**missing, source="data")
    if profile.order and len(profile.order) <= MOST_CATEGORIES:
        with suppress(SchemaError):  # values that no schema declares, such as intervals: guessed like any others
            return Ordinal(values=profile.order, **missing, source="data")
    if profile.could_be_number and np.isfinite(profile.numbers.low):
        missing = {"missing": True} if profile.absent or profile.marked else {}
        return _guess_number(name, profile, missing)
    if profile.times:
        form, times = next(iter(profile.times.items()))
        if times.low < times.high:
            return _guess_time(form, times, missing)
    return _guess_text(profile, missing)


def _guess_number(name: str, profile: Profile, missing: dict[str, bool]) -> Column:
    numbers = profile.numbers
    is_counter = numbers.whole and profile.unique and profile.rows > FEW_CATEGORIES and not missing
    if is_counter and (profile.rising or ID_NAME.search(name)):
        return Id(source="data")
    distinct = sorted({_scalar(text) for text in profile.counts or () if text not in profile.marked})
    if numbers.infinite:  # `check` will point at them: they are neither values nor bounds
        distinct = []
        if numbers.low == numbers.high:
            return Text(source="data")
    if len(distinct) == 1 or distinct == [0, 1]:
        return Categorical(values=distinct, **missing, source="data")
    repeats = 0 < len(distinct) <= min(FEW_NUMBERS, profile.present // 3)
    if repeats and numbers.whole and numbers.high - numbers.low <= NARROW:
        kind = Ordinal if len(distinct) > 2 else Categorical
        return kind(values=distinct, **missing, source="data")
    if numbers.whole:
        scale = _scale(numbers, profile.present, step=1.0)
        low, high = rounded_out(numbers.low, numbers.high, Decimal(1))
        return Integer(low=int(low), high=int(high), **scale, **missing, source="data")
    resolution = None if numbers.places is None else Decimal(1).scaleb(-numbers.places)
    if resolution is not None and numbers.high - numbers.low > float(resolution) * MOST_REAL_STEPS / 10:
        resolution = None
    if resolution is None and numbers.high - numbers.low < 1e-5 * max(abs(numbers.low), abs(numbers.high)):
        return Text(source="data")  # single precision would not tell the values apart: a person has to decide
    scale = _scale(numbers, profile.present, step=float(resolution or 0))
    low, high = rounded_out(numbers.low, numbers.high, resolution)
    steps = {} if resolution is None else {"resolution": float(resolution)}
    return Real(low=float(low), high=float(high), **steps, **scale, **missing, source="data")


def _scalar(text: str) -> int | float:
    number = parse_number(text)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _scale(numbers: Numbers, present: int, *, step: float) -> dict[str, bool]:
    scale = {}
    if numbers.low >= 0 and numbers.high > 100 * step:
        sample = np.concatenate(numbers.sample)
        positive = sample[sample > 0]
        if len(positive) and numbers.high > SKEW * np.median(positive):
            scale["log"] = True
    if numbers.zeros > ZERO_SHARE * present:
        scale["zero_inflated"] = True
    return scale


def rounded_out(low: float, high: float, resolution: Decimal | None) -> tuple[Decimal, Decimal]:
    """Rounder bounds around two numbers, in half powers of ten of their distance.

    >>> [int(bound) for bound in (*rounded_out(17, 90, Decimal(1)), *rounded_out(12285, 1484705, Decimal(1)))]
    [15, 90, 0, 1500000]
    """
    span = Decimal(repr(float(high))) - Decimal(repr(float(low)))
    step = Decimal(1).scaleb(span.adjusted()) / 2
    if resolution is not None and step % resolution:
        step = resolution
    bottom = (Decimal(repr(float(low))) / step).to_integral_value(ROUND_FLOOR) * step
    top = (Decimal(repr(float(high))) / step).to_integral_value(ROUND_CEILING) * step
    return bottom, top


def _guess_time(form: str | None, times: Times, missing: dict[str, bool]) -> Column:
    resolution = next(name for name, seconds in SECONDS.items() if seconds == times.step)
    first, last = (datetime(1970, 1, 1) + timedelta(seconds=bound) for bound in (times.low, times.high))
    return Datetime(
        low=date(first.year, 1, 1),
        high=date(last.year, 12, 31),
        resolution=resolution,
        format=form,
        **missing,
        source="data",
    )


def _guess_text(profile: Profile, missing: dict[str, bool]) -> Column:
    counts = dict(profile.counts or {})
    if counts.pop(MISSING_WORD, 0):
        missing = {"missing": True}
    if profile.unique and profile.present > FEW_CATEGORIES:
        return Text(source="data") if profile.has_blank or profile.longest > 40 or missing else Id(source="data")
    few = 0 < len(counts) <= FEW_CATEGORIES or 0 < len(counts) <= min(MOST_CATEGORIES, profile.present // 5)
    if not few or profile.longest > 200:
        return Text(source="data")
    return Categorical(values=sorted(counts, key=_natural), **missing, source="data")


def _natural(text: str) -> tuple[bool, float, str]:
    number = parse_number(text)
    return (number is None, 0.0 if number is None or number != number else number, text)


def _missing_words(profile: Profile, column: Column) -> set[str]:
    if isinstance(column, Integer | Real) or (isinstance(column, Categorical) and profile.could_be_number):
        return profile.marked
    is_value = not isinstance(column, Categorical) or MISSING_WORD in column.values
    return set() if is_value or MISSING_WORD not in (profile.counts or {}) else {MISSING_WORD}


def _one_digit(rows: int) -> int:
    """The number of rows to one significant digit.

    >>> _one_digit(32561), _one_digit(7), _one_digit(99)
    (30000, 7, 100)
    """
    return int(round(rows, 1 - len(str(rows))))
