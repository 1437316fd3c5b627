"""Public rules between columns: what holds for every possible row, known without looking at one.

A rule is a fact like a bound: from a law, a form, a code book. Synthetic rows hold every declared rule exactly.
"""

from datetime import date
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from understudy.schema.fields import Words, scalar
from understudy.schema.problems import Declared, RefusalError, shown

SPAN_ENDS = ("from", "to")


def _names(names: Any) -> tuple[str, ...]:
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"must be a list of column names, got {shown(names)}")
    if len(set(names)) < len(names):
        raise ValueError("names a column twice; keep one of them")
    return tuple(names)


def _combinations(rows: Any) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(rows, list | tuple) or not rows:
        raise ValueError(f"must be a list of combinations such as [[male, true]], got {shown(rows)}")
    return tuple(_combination(row) for row in rows)


def _combination(row: Any) -> tuple[Any, ...]:
    if not isinstance(row, list | tuple):
        raise ValueError(f"must hold lists of one entry a column such as [male, true], got {shown(row)}")
    return tuple(_entry(entry) for entry in row)


def _entry(entry: Any) -> Any:
    """One column's part of a combination: a value, null for missing, a list of these, or {from: A, to: B}."""
    if isinstance(entry, dict):
        if not entry or set(entry) - set(SPAN_ENDS):
            raise ValueError(f"must give a range as {{from: A, to: B}} (one may be left out), got {shown(entry)}")
        return {end: _value(entry[end]) for end in SPAN_ENDS if end in entry}
    if isinstance(entry, list | tuple):
        if not entry or any(isinstance(value, dict | list | tuple) for value in entry):
            raise ValueError("must give several values as a list such as [school, college], not nested further")
        return tuple(None if value is None else _value(value) for value in entry)
    return None if entry is None else _value(entry)


def _value(value: Any) -> str | int | float | bool:
    return value.isoformat() if isinstance(value, date) else scalar(value)


_SCALAR_SCHEMA = {"type": ["string", "number", "boolean", "null"]}
_ENTRY_SCHEMA = {
    "anyOf": [
        _SCALAR_SCHEMA,
        {"type": "array", "items": _SCALAR_SCHEMA, "minItems": 1},
        {
            "type": "object",
            "properties": {end: {"type": ["string", "number"]} for end in SPAN_ENDS},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
Names = Annotated[
    tuple[str, ...],
    BeforeValidator(_names),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 1}),
]
Rows = Annotated[
    tuple[Any, ...],
    BeforeValidator(_combinations),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": _ENTRY_SCHEMA}, "minItems": 1}),
]


class Rule(Declared):
    """What all rules share."""

    @property
    def involved(self) -> tuple[str, ...]:
        """The columns that the rule is about."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Plain Python: what the file holds."""
        return {fact: getattr(self, fact) for fact in type(self).model_fields if getattr(self, fact) is not None}


class Order(Rule):
    """`column` is at most, or below, another; a row in which one of the two is missing holds it.

    >>> Order(column="ap_lo", at_most="ap_hi").involved
    ('ap_lo', 'ap_hi')
    """

    column: Words
    at_most: Words | None = None
    below: Words | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.at_most is None) == (self.below is None):
            raise ValueError("must have one of at_most (equal is fine) and below, naming the other column")
        if self.column == self.upper:
            raise ValueError(f"compares {self.column!r} with itself; name two columns")
        return self

    @property
    def upper(self) -> str:
        return self.at_most if self.below is None else self.below

    @property
    def strict(self) -> bool:
        return self.below is not None

    @property
    def involved(self) -> tuple[str, ...]:
        return self.column, self.upper


class Combinations(Rule):
    """Combinations of `columns` that cannot occur (`never`), or all that can (`only`).

    Missing is a value like others here, written null: `only` must name it, `never` touches it only where it does.
    """

    columns: Names
    never: Rows | None = None
    only: Rows | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.never is None) == (self.only is None):
            raise ValueError("must have one of never (combinations that cannot occur) and only (all that can)")
        if len(self.columns) < 2:
            raise ValueError("columns must name at least two; what one column can hold is told by its own facts")
        _check_lengths(self.rows, len(self.columns))
        return self

    @property
    def rows(self) -> tuple[tuple[Any, ...], ...]:
        return self.only if self.never is None else self.never

    @property
    def involved(self) -> tuple[str, ...]:
        return self.columns


class Dependence(Rule):
    """`columns` give another column's value, by a declared map: combinations, each with the value that it gives last.

    >>> Dependence(columns=["degree"], give="years", by=[["none", 0], ["school", 12]]).involved
    ('degree', 'years')
    """

    columns: Names
    give: Words
    by: Rows

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.give in self.columns:
            raise ValueError(f"gives {self.give!r} by itself; leave it out of columns")
        _check_lengths(self.by, len(self.columns) + 1)
        if any(isinstance(row[-1], tuple | dict) for row in self.by):
            raise ValueError(f"by must end each entry with one value of {self.give!r}, not with a list or a range")
        return self

    @property
    def involved(self) -> tuple[str, ...]:
        return *self.columns, self.give


AnyRule = Order | Combinations | Dependence
_KEYS: dict[str, type[Rule]] = {"column": Order, "give": Dependence, "columns": Combinations}  # the first that is there


def _check_lengths(rows: tuple[tuple[Any, ...], ...], length: int) -> None:
    for number, row in enumerate(rows, start=1):
        if len(row) != length:
            raise ValueError(f"entry {number} must have {length} parts, one a column, got {len(row)}")


def read_rule(given: Any) -> AnyRule:
    """A rule from a mapping, or the rule itself."""
    if isinstance(given, Rule):
        return given
    kind = next((kind for key, kind in _KEYS.items() if isinstance(given, dict) and key in given), None)
    if kind is None or not all(isinstance(key, str) for key in given):
        raise RefusalError(
            [
                "must be {column: A, at_most: B}, {column: A, below: B}, {columns: [...], never: [...]},"
                f" {{columns: [...], only: [...]}} or {{columns: [...], give: B, by: [...]}}, got {shown(given)}"
            ]
        )
    return kind(**given)
