"""The types of single facts: each says in words what it must be."""

import math
from datetime import date, datetime, time
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from understudy.schema.problems import shown

MOST_VALUES = 63_000  # cells are numbered in 16 bits, and bins are cut out of some 2,000 cells
INT64_LOW, INT64_HIGH = -(2**63), 2**63 - 1

Mark = Literal["public", "data"]


def is_text(value: Any) -> bool:
    """Text that can be written to a file: lone surrogates cannot."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _whole(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, got {shown(value)}")
    if not INT64_LOW <= value <= INT64_HIGH:
        raise ValueError("must fit in 64 bits")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"must be a number, got {shown(value)}")
    return float(value)


def _flag(value: Any) -> bool:
    words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, got {shown(value)}")
    return value


def scalar(value: Any) -> str | int | float | bool:
    if value is None:
        raise ValueError("must not hold null: write `missing: true` for missing cells, or quote the word")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"must hold finite numbers, got {shown(value)}")
    if isinstance(value, str) and not is_text(value):
        raise ValueError("must hold text that UTF-8 can write")
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"must hold text, numbers or true/false, got {shown(value)}; quote dates")
    return value


def _values(values: Any) -> tuple[str | int | float | bool, ...]:
    if not isinstance(values, list | tuple) or not values:
        raise ValueError(f"must be a list of at least one value, got {shown(values)}")
    if len(values) > MOST_VALUES:
        raise ValueError(f"has {len(values)} entries, must be at most {MOST_VALUES}; use kind: text, or group them")
    values = tuple(scalar(value) for value in values)
    if len({isinstance(value, bool) for value in values}) == 2:
        raise ValueError("mixes true/false with other values; quote the words that are text ('true', 'no', ...)")
    seen: dict[Any, Any] = {}
    for value in values:
        key = value_key(value)
        if key in seen:
            raise ValueError(f"must be unique, but {shown(seen[key])} and {shown(value)} look the same in a file")
        seen[key] = value
    return values


def value_key(value: str | int | float | bool) -> Any:
    """What a file can tell apart: 1, 1.0 and "1" are written alike, "01" and "1" are not.

    >>> value_key("1") == value_key(1) == value_key(1.0), value_key("01") == value_key(1)
    (True, False)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def _edges(edges: Any) -> tuple[float, ...]:
    if not isinstance(edges, list | tuple) or not edges:
        raise ValueError(f"must be a list of numbers, got {shown(edges)}")
    if len(edges) > MOST_VALUES:
        raise ValueError(f"has {len(edges)} edges, must be at most {MOST_VALUES}; use fewer")
    numbers = tuple(_number(edge) for edge in edges)
    if any(right <= left for left, right in pairwise(numbers)):
        raise ValueError("must increase from edge to edge")
    return numbers


def _text(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not is_text(value):
        raise ValueError(f"must be text, got {shown(value)}; quote it")
    return value


def parse_moment(value: Any) -> datetime:
    """A point in time; a bare date is its first second (`Datetime` moves a bare `high` to its last step)."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(f"must be a date or time such as 2019-01-31T08:00, got {shown(value)}") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError(f"must be a date or time such as 2019-01-31, got {shown(value)}")
    if value.tzinfo is not None:
        raise ValueError("must be without a time zone; columns with a zone are read as UTC")
    if value.microsecond:
        raise ValueError("must be a whole second")
    return value


def _source(source: Any) -> str | dict[str, str]:
    marks = source if isinstance(source, dict) else {"": source}
    for fact, mark in marks.items():
        if mark not in ("public", "data"):
            raise ValueError(f"must be public or data{f' for {fact}' if fact else ''}, got {shown(mark)}")
    return source


Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number)]
Flag = Annotated[bool, BeforeValidator(_flag)]
Scalar = Annotated[str | bool | int | float, BeforeValidator(scalar)]
Values = Annotated[tuple[str | bool | int | float, ...], BeforeValidator(_values)]
Edges = Annotated[tuple[float, ...], BeforeValidator(_edges)]
Words = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[datetime, BeforeValidator(parse_moment), WithJsonSchema({"type": "string"})]
Source = Annotated[Mark | dict[str, Mark], BeforeValidator(_source)]
