"""The kinds of column, each a frozen set of public facts."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from understudy.schema.fields import (
    Edges,
    Flag,
    Moment,
    Number,
    Scalar,
    Source,
    Values,
    Whole,
    Words,
    parse_moment,
    value_key,
)
from understudy.schema.problems import Declared, shown

MOST_REAL_STEPS = 2**51  # a float64 still tells neighbouring steps apart when value/resolution is rounded
FLOAT32_HIGH = 3.4028234663852886e38
MOST_PIXELS_A_SIDE = 4096
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
INTEGER_DTYPES = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}


class Facts(Declared):
    """What all kinds share. `source` says where the facts come from, as a whole or fact by fact."""

    modelled: ClassVar[bool] = True

    kind: str
    source: Source = "public"

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if isinstance(self.source, dict):
            for fact in self.source:
                if fact not in type(self).model_fields or fact == "source":
                    raise ValueError(f"source marks {fact!r}, which is no fact of a column of kind {self.kind}")
        return self

    def facts(self) -> dict[str, Any]:
        """The stated facts without `source` and without defaults, `missing` last."""
        stated: dict[str, Any] = {"kind": self.kind}
        fields = type(self).model_fields
        for fact in sorted(fields, key="missing".__eq__):
            value = getattr(self, fact)
            if fact not in ("kind", "source") and (fields[fact].is_required() or value != fields[fact].default):
                stated[fact] = value
        return stated

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """For all of pydantic's reprs: without the values of facts that were read off private rows."""
        private = set(self.from_data()) - {"kind"}
        return [(fact, "read off the rows" if fact in private else value) for fact, value in self.facts().items()]

    def from_data(self) -> list[str]:
        """The facts that were read off the rows."""
        if isinstance(self.source, dict):
            return [fact for fact, mark in self.source.items() if mark == "data"]
        return list(self.facts()) if self.source == "data" else []


class Modelled(Facts):
    missing: Flag = False


class Categorical(Modelled):
    """Declared values without an order; `other` takes every value outside of them."""

    kind: Literal["categorical"] = "categorical"
    values: Values
    other: Scalar | None = None

    @model_validator(mode="after")
    def _check_other(self) -> Self:
        if self.other is not None and value_key(self.other) not in map(value_key, self.values):
            raise ValueError(f"other must be one of the values, got {shown(self.other)}; add it to values")
        return self


class Ordinal(Categorical):
    """Declared values in their order, lowest first."""

    kind: Literal["ordinal"] = "ordinal"


class Boolean(Modelled):
    kind: Literal["boolean"] = "boolean"


class Numeric(Modelled):
    """Bounds and scale. `log`: cells widen like log(1 + x); `zero_inflated`: zero is a cell of its own."""

    low: Any
    high: Any
    resolution: Any = None
    bins: Edges | None = None
    log: Flag = False
    zero_inflated: Flag = False

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        check_bounds(self.low, self.high)
        if self.bins is not None and not self.low <= self.bins[0] <= self.bins[-1] <= self.high:
            raise ValueError(f"bins must lie between low={self.low} and high={self.high}")
        if self.log and self.low < 0:
            raise ValueError(f"log: true needs low of at least 0, got {self.low}; its cells are spaced like log(1 + x)")
        if self.zero_inflated and not self.low <= 0 <= self.high:
            raise ValueError(f"zero_inflated: true needs 0 between low={self.low} and high={self.high}")
        return self


def check_bounds(low: Any, high: Any) -> None:
    if not low < high:
        raise ValueError(
            f"low={low} must be below high={high}; take both from public documents, not from the data"
            " (a column with one value is categorical with that value)"
        )


class Integer(Numeric):
    kind: Literal["integer"] = "integer"
    low: Whole
    high: Whole
    resolution: Whole = 1
    dtype: Literal[(*INTEGER_DTYPES, "float32", "float64")] | None = None

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if self.resolution < 1:
            raise ValueError(f"resolution must be at least 1, got {self.resolution}")
        if (self.high - self.low) % self.resolution:
            last = self.high - (self.high - self.low) % self.resolution
            raise ValueError(
                f"high must be low plus a whole number of steps of resolution={self.resolution}; "
                f"use high={last} or high={last + self.resolution}"
            )
        if (self.high - self.low) // self.resolution + 2 > 2**64:
            raise ValueError("low and high are too far apart for 64 bits; give narrower bounds or a resolution")
        if self.zero_inflated and self.low % self.resolution:
            raise ValueError("zero_inflated: true needs 0 to be a whole number of steps above low")
        if self.dtype in INTEGER_DTYPES:
            sign, bits = INTEGER_DTYPES[self.dtype]
            least, most = (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            if self.low < least or self.high > most:
                raise ValueError(f"dtype {self.dtype} cannot hold low={self.low} to high={self.high}; use a wider one")
        return self


class Real(Numeric):
    kind: Literal["real"] = "real"
    low: Number
    high: Number
    resolution: Number | None = None
    dtype: Literal["float32", "float64"] | None = None

    @model_validator(mode="after")
    def _check_steps(self) -> Self:
        if max(abs(self.low), abs(self.high)) > FLOAT32_HIGH:
            raise ValueError("low and high must be below 3.4e38 in size")
        if self.resolution is None:
            # Without steps cells are held as float32: some of those must lie inside the bounds.
            if abs(self.high - self.low) <= 2**-20 * max(abs(self.low), abs(self.high)):
                raise ValueError("low and high are too near to each other for single precision; give a resolution")
            return self
        if self.resolution <= 0:
            raise ValueError(f"resolution must be above 0, got {self.resolution:g}")
        steps = (self.high - self.low) / self.resolution
        if steps > MOST_REAL_STEPS:
            raise ValueError("resolution is too fine for these bounds; use a coarser one, or leave it out")
        if abs(steps - round(steps)) > 1e-6 + 2**-50 * steps or round(steps) < 1:  # the quotient itself is rounded
            raise ValueError(
                f"high must be low plus a whole number of steps of resolution={self.resolution:g}; move high"
            )
        zero = self.low / self.resolution
        if self.zero_inflated and abs(zero - round(zero)) > 1e-6:
            raise ValueError("zero_inflated: true needs 0 to be a whole number of steps above low")
        return self


class Datetime(Modelled):
    """A span of time in steps of `resolution`; `format` is how a CSV file writes it (ISO 8601 when left out)."""

    kind: Literal["datetime"] = "datetime"
    low: Moment
    high: Moment
    resolution: Literal["second", "minute", "hour", "day"] = "second"
    format: Words | None = None

    def __init__(self, **facts: Any) -> None:
        high, resolution = facts.get("high"), facts.get("resolution", "second")
        if _is_bare_date(high) and resolution in SECONDS:
            # `high: 2023-12-31` means the whole of that day, at any resolution.
            with suppress(ValueError):  # not a date after all: the field's own check says so
                facts["high"] = parse_moment(high) + timedelta(seconds=86400 - SECONDS[resolution])
        super().__init__(**facts)

    def facts(self) -> dict[str, Any]:
        stated = super().facts()
        if self.resolution == "day":  # a bare date, which for finer resolutions would mean the end of that day
            stated |= {"low": self.low.date(), "high": self.high.date()}
        return stated

    @model_validator(mode="after")
    def _check_span(self) -> Self:
        check_bounds(self.low, self.high)
        for name, bound in (("low", self.low), ("high", self.high)):
            if (bound - datetime(1, 1, 1)) % timedelta(seconds=SECONDS[self.resolution]):
                raise ValueError(f"{name}={bound.isoformat()} must be a whole {self.resolution}, as resolution says")
        if self.format is not None:
            self._check_format(self.format)
        return self

    def _check_format(self, form: str) -> None:
        for bound in (self.low, self.high):
            try:
                again = datetime.strptime(bound.strftime(form), form)
            except (ValueError, IndexError):
                again = None
            if again != bound:
                raise ValueError(
                    f"format {form!r} must write every {self.resolution} so that it can be read back,"
                    " like '%Y-%m-%d %H:%M:%S'"
                )


def _is_bare_date(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.strip()) == 10
    return isinstance(value, date) and not isinstance(value, datetime)


class Id(Facts):
    """Left out of the model; made anew, 1 to n, for synthetic rows."""

    modelled: ClassVar[bool] = False
    kind: Literal["id"] = "id"
    prefix: Words = ""


class Text(Facts):
    """Free text: neither modelled nor made."""

    modelled: ClassVar[bool] = False
    kind: Literal["text"] = "text"


class Image(Facts):
    """A picture a row: whole numbers 0 to 255, `channels` 1 (grey) or 3 (red, green, blue). Never missing.

    Not among `Schema.modelled`, whose columns have one code a row: `Schema.images` has it.
    """

    modelled: ClassVar[bool] = False
    kind: Literal["image"] = "image"
    height: Whole
    width: Whole
    channels: Whole = 1

    @property
    def pixels(self) -> int:
        """Numbers an image: those of a table's codes."""
        return self.height * self.width * self.channels

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image as an array: (height, width), and 3 where it is in colour."""
        return (self.height, self.width) if self.channels == 1 else (self.height, self.width, self.channels)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        for fact, length in (("height", self.height), ("width", self.width)):
            if not 1 <= length <= MOST_PIXELS_A_SIDE:
                raise ValueError(f"{fact} must be 1 to {MOST_PIXELS_A_SIDE} pixels, got {length}")
        if self.channels not in (1, 3):
            raise ValueError(f"channels must be 1 (grey) or 3 (red, green, blue), got {self.channels}")
        return self


Column = Annotated[
    Categorical | Ordinal | Boolean | Integer | Real | Datetime | Id | Text | Image,
    Field(discriminator="kind"),
]
KINDS: dict[str, type[Facts]] = {
    kind.model_fields["kind"].default: kind
    for kind in (Categorical, Ordinal, Boolean, Integer, Real, Datetime, Id, Text, Image)
}
