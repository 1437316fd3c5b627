"""Cells to compact codes and back, from the schema alone: no code, type or bound ever depends on the rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from understudy.errors import DataError
from understudy.schema.columns import SECONDS, Boolean, Categorical, Datetime, Facts, Integer, Real
from understudy.schema.decimals import shortest_decimals
from understudy.schema.fields import value_key
from understudy.table import parse
from understudy.table.parse import Parsed

OUTSIDE = "not among the declared values"
NOT_BOOLEAN = "neither true nor false"
MISSING = "missing, but the schema says missing: false"
CLIPPED = "outside low and high, clipped to them"
TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0"})
ABSENT, UNKNOWN = -1, -2


@dataclass(frozen=True)
class Encoded:
    """A block of codes. `bad` maps a broken rule to the positions that break it: their codes mean nothing."""

    codes: np.ndarray
    clipped_at: np.ndarray
    bad: dict[str, np.ndarray]

    @property
    def clipped(self) -> int:
        return len(self.clipped_at)


@dataclass(frozen=True)
class Codec(ABC):
    """What all codecs share: `size` codes (None for floats) in `dtype`; `missing` is the code of a missing cell."""

    column: Facts
    size: int | None
    dtype: np.dtype
    sentinels: frozenset[str] = frozenset()

    @property
    def missing(self) -> int | float:
        return float("nan") if self.size is None else self.size

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        """The codes of cells of any Arrow type; in a union (a column of mixed objects) each kind is read by itself."""
        if not parse.is_mixed(array.type):
            return self._encode(array)
        codes = np.zeros(len(array), dtype=self.dtype)
        clipped: list[np.ndarray] = []
        bad: dict[str, list[np.ndarray]] = {}
        kinds, offsets = array.type_codes.to_numpy(), array.offsets.to_numpy()
        for kind in np.unique(kinds):
            where = np.flatnonzero(kinds == kind)
            part = self._encode(array.field(int(kind)).take(pa.array(offsets[where])))
            codes[where] = part.codes
            clipped.append(where[part.clipped_at])
            for rule, positions in part.bad.items():
                bad.setdefault(rule, []).append(where[positions])
        clipped_at = np.sort(np.concatenate(clipped)) if clipped else np.zeros(0, dtype=np.int64)
        return Encoded(codes, clipped_at, {rule: np.sort(np.concatenate(found)) for rule, found in bad.items()})

    @abstractmethod
    def _encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        """The codes of cells of one Arrow type."""

    @abstractmethod
    def decode(self, codes: np.ndarray) -> pd.Series:
        """The values of codes, in the type that the schema dictates."""

    def _finish(
        self, codes: np.ndarray, missing: np.ndarray, clipped: np.ndarray, bad: dict[str, np.ndarray]
    ) -> Encoded:
        broken = {rule: np.flatnonzero(where & ~missing) for rule, where in bad.items() if where.any()}
        if missing.any():
            if self.column.missing:
                codes[missing] = self.missing
            else:
                broken[MISSING] = np.flatnonzero(missing)
        unusable = np.zeros(len(codes), dtype=bool)
        for positions in broken.values():
            unusable[positions] = True
        codes[unusable] = 0
        clipped_at = np.flatnonzero(clipped & ~missing & ~unusable)
        return Encoded(codes, clipped_at, {rule: where for rule, where in broken.items() if len(where)})

    def check(self, codes: np.ndarray) -> np.ndarray:
        """The codes in this column's type, or a DataError if one of them is outside its domain."""
        codes = np.asarray(codes)
        if codes.ndim != 1:
            raise DataError(f"codes must be an array of one dimension, got {codes.ndim}")
        if not self._inside(codes):
            raise DataError(f"codes of a column of kind {self.column.kind} must lie in its declared domain")
        return codes.astype(self.dtype, copy=False)

    def _inside(self, codes: np.ndarray) -> bool:
        most = self.size if self.column.missing else self.size - 1
        return codes.dtype.kind in "ui" and (not len(codes) or (int(codes.min()) >= 0 and int(codes.max()) <= most))


@dataclass(frozen=True)
class ValueCodec(Codec):
    """Categorical, ordinal and boolean columns: the index into the declared values."""

    values: tuple[Any, ...] = ()
    by_text: dict[str, int] = field(default_factory=dict, repr=False)
    by_number: dict[int | float, int] = field(default_factory=dict, repr=False)

    def _encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if not pa.types.is_dictionary(array.type):
            array = parse.plain(array)
            if pa.types.is_nested(array.type):
                present = parse.mask(array.is_valid(), len(array))
                return self._finish(np.zeros(len(array), self.dtype), ~present, ~present, {parse.WRONG_TYPE: present})
            array = array.dictionary_encode()
        # One look-up a distinct value, then one gather for all rows; the last entry stands for null.
        table = np.array([*map(self._find, parse.plain(array.dictionary).to_pylist()), ABSENT], dtype=np.int64)
        found = table[pc.fill_null(array.indices.cast(pa.int64()), len(table) - 1).to_numpy(zero_copy_only=False)]
        missing, unknown = found == ABSENT, found == UNKNOWN
        codes = np.where(found < 0, 0, found).astype(self.dtype)
        rule = NOT_BOOLEAN if isinstance(self.column, Boolean) else OUTSIDE
        return self._finish(codes, missing, np.zeros(len(codes), dtype=bool), {rule: unknown})

    def _find(self, value: Any) -> int:
        if value is None:
            return ABSENT
        if isinstance(value, str):
            code = self._find_text(value)
        elif isinstance(value, bool):
            code = self._first(str(value), str(value).lower(), str(value).upper(), str(int(value)))
        elif isinstance(value, int | float | Decimal):
            code = self._find_number(value)
        elif isinstance(value, bytes):
            code = UNKNOWN
        else:
            code = self._first(value.isoformat() if isinstance(value, date | datetime) else str(value), str(value))
        other = getattr(self.column, "other", None)
        return self.by_text[value_key(other)] if code == UNKNOWN and other is not None else code

    def _first(self, *texts: str) -> int:
        return next((self.by_text[text] for text in texts if text in self.by_text), UNKNOWN)

    def _find_text(self, text: str) -> int:
        if text in self.by_text:
            return self.by_text[text]
        text = text.strip()
        if text in self.by_text:
            return self.by_text[text]
        if not text or text in self.sentinels:
            return ABSENT
        if isinstance(self.values[0], bool):
            text = text.lower()
            word = "true" if text in TRUE_WORDS else "false" if text in FALSE_WORDS else text
            if word in self.by_text:
                return self.by_text[word]
        number = parse.parse_number(text)
        return self.by_number.get(number, UNKNOWN) if number is not None else UNKNOWN

    def _find_number(self, number: int | float | Decimal) -> int:
        if number != number:
            return ABSENT
        key = value_key(float(number) if isinstance(number, Decimal) else number)
        if number in self.by_number:
            return self.by_number[number]
        if key in self.by_text:
            return self.by_text[key]
        return ABSENT if key in self.sentinels else UNKNOWN

    def decode(self, codes: np.ndarray) -> pd.Series:
        codes = self.check(codes)
        absent = codes == self.size
        if isinstance(self.column, Boolean):
            truth = np.where(absent, 0, codes).astype(bool)
            return pd.Series(pd.arrays.BooleanArray(truth, absent)) if self.column.missing else pd.Series(truth)
        mixed = (
            len(
                {str if isinstance(value, str) else bool if isinstance(value, bool) else float for value in self.values}
            )
            > 1
        )
        categories = pd.Index(self.values, dtype=object if mixed else None)
        dtype = pd.CategoricalDtype(categories, ordered=self.column.kind == "ordinal")
        positions = np.where(absent, -1, codes.astype(np.int64))
        return pd.Series(pd.Categorical.from_codes(positions, dtype=dtype))


@dataclass(frozen=True)
class StepCodec(Codec):
    """Integers, times (in seconds since 1970) and reals with a resolution: whole `step`s above `low`."""

    low: int | float = 0
    high: int | float = 0
    step: int | float = 1

    def _encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        array = parse.plain(array)
        if isinstance(self.column, Real):
            parsed = parse.real_numbers(array, self.sentinels)
            steps, clipped = self._real_steps(parsed)
        elif isinstance(self.column, Datetime):
            parsed = parse.times(array, self.column.format, self.sentinels)
            # A time belongs to the day (hour, ...) in which it lies; the last one ends just before the next begins.
            steps, clipped = self._whole_steps(parsed, last=self.high + self.step - 1, rounding=0)
        else:
            parsed = parse.whole_numbers(array, self.sentinels)
            steps, clipped = self._whole_steps(parsed, last=self.high, rounding=self.step // 2)
        return self._finish(steps.astype(self.dtype), parsed.missing, clipped, parsed.bad)

    def _real_steps(self, parsed: Parsed) -> tuple[np.ndarray, np.ndarray]:
        clipped = (parsed.values < self.low) | (parsed.values > self.high)
        inside = np.clip(
            np.nan_to_num(parsed.values, nan=self.low, posinf=self.high, neginf=self.low), self.low, self.high
        )
        return np.minimum(np.rint((inside - self.low) / self.step), self.size - 1), clipped

    def _whole_steps(self, parsed: Parsed, *, last: int, rounding: int) -> tuple[np.ndarray, np.ndarray]:
        clipped = (parsed.values < self.low) | (parsed.values > last)
        if parsed.beyond is not None:
            clipped |= parsed.beyond
        inside = np.clip(parsed.values, self.low, last)
        # The distance may pass 2**63: unsigned subtraction wraps round to exactly the right number.
        above = inside.view(np.uint64) - np.uint64(self.low % 2**64)
        if self.step == 1:
            return above, clipped
        return (above + np.uint64(rounding)) // np.uint64(self.step), clipped

    def decode(self, codes: np.ndarray) -> pd.Series:
        codes = self.check(codes)
        absent = codes == self.size
        steps = np.where(absent, 0, codes)
        if isinstance(self.column, Real):
            return self._decode_real(steps, absent)
        whole = (steps.astype(np.uint64) * np.uint64(self.step) + np.uint64(self.low % 2**64)).view(np.int64)
        if isinstance(self.column, Datetime):
            moments = whole.view("datetime64[s]")
            moments[absent] = np.datetime64("NaT")
            return pd.Series(moments)
        dtype = self.column.dtype or "int64"
        if dtype.startswith("float"):
            return pd.Series(np.where(absent, np.nan, whole).astype(dtype))
        whole = whole.astype(dtype)
        return pd.Series(pd.arrays.IntegerArray(whole, absent)) if self.column.missing else pd.Series(whole)

    def _decode_real(self, steps: np.ndarray, absent: np.ndarray) -> pd.Series:
        places = max(-Decimal(repr(number)).as_tuple().exponent for number in (self.low, self.step))
        values = np.clip(np.round(self.low + steps * self.step, min(max(places, 0), 15)), self.low, self.high)
        return pd.Series(np.where(absent, np.nan, values).astype(self.column.dtype or "float64"))


@dataclass(frozen=True)
class FloatCodec(Codec):
    """Reals without a resolution: single precision, kept inside the bounds."""

    def _encode(self, array: pa.Array | pa.ChunkedArray) -> Encoded:
        parsed = parse.real_numbers(parse.plain(array), self.sentinels)
        clipped = (parsed.values < self.column.low) | (parsed.values > self.column.high)
        low, high = float32_bounds(self.column.low, self.column.high)
        inside = np.clip(np.nan_to_num(parsed.values, nan=low, posinf=high, neginf=low), low, high)
        # Rounding to single precision is monotone, so that what lay between two float32 bounds still does.
        return self._finish(inside.astype(np.float32), parsed.missing, clipped, parsed.bad)

    def _inside(self, codes: np.ndarray) -> bool:
        within = (codes >= self.column.low) & (codes <= self.column.high)
        return codes.dtype.kind == "f" and bool(np.all(within | np.isnan(codes) if self.column.missing else within))

    def check(self, codes: np.ndarray) -> np.ndarray:
        return np.clip(super().check(codes), *map(np.float32, float32_bounds(self.column.low, self.column.high)))

    def decode(self, codes: np.ndarray) -> pd.Series:
        codes = self.check(codes)
        if self.column.dtype == "float32":
            return pd.Series(codes)
        return pd.Series(shortest_decimals(codes, self.column.low, self.column.high))


def float32_bounds(low: float, high: float) -> tuple[float, float]:
    """The lowest and highest single-precision numbers inside two bounds.

    >>> float32_bounds(0.1, 1.0)[0] >= 0.1
    True
    """
    first, last = np.float32(low), np.float32(high)
    if float(first) < low:
        first = np.nextafter(first, np.float32(np.inf))
    if float(last) > high:
        last = np.nextafter(last, np.float32(-np.inf))
    return float(first), float(last)


def smallest_dtype(size: int) -> np.dtype:
    """The smallest unsigned type that holds codes 0 to size - 1 and `size` itself for missing.

    >>> smallest_dtype(255).name, smallest_dtype(256).name
    ('uint8', 'uint16')
    """
    return np.min_scalar_type(size)


def codec(column: Facts, missing_values: Iterable[str] = ()) -> Codec:
    """The codec of a modelled column; `missing_values` are the schema's texts for a missing cell.

    >>> from understudy.schema import Integer
    >>> age = codec(Integer(low=17, high=90))
    >>> age.size, age.dtype.name, age.encode(pa.array(["17", " 90", "200"])).codes
    (74, 'uint8', array([ 0, 73, 73], dtype=uint8))
    """
    shared: dict[str, Any] = {"column": column, "sentinels": frozenset(text.strip() for text in missing_values)}
    if isinstance(column, Boolean | Categorical):
        values = (False, True) if isinstance(column, Boolean) else column.values
        texts = {value_key(value): code for code, value in enumerate(values)}
        numbers = {value: code for code, value in enumerate(values) if not isinstance(value, str | bool)}
        if isinstance(column, Boolean):
            numbers = {0: 0, 1: 1}
        return ValueCodec(**shared, **_sized(len(values)), values=values, by_text=texts, by_number=numbers)
    if isinstance(column, Datetime):
        low, high = (int((bound - datetime(1970, 1, 1)).total_seconds()) for bound in (column.low, column.high))
        step = SECONDS[column.resolution]
        return StepCodec(**shared, **_sized((high - low) // step + 1), low=low, high=high, step=step)
    if isinstance(column, Integer):
        size = (column.high - column.low) // column.resolution + 1
        return StepCodec(**shared, **_sized(size), low=column.low, high=column.high, step=column.resolution)
    if isinstance(column, Real) and column.resolution is not None:
        size = round((column.high - column.low) / column.resolution) + 1
        return StepCodec(**shared, **_sized(size), low=column.low, high=column.high, step=column.resolution)
    if isinstance(column, Real):
        return FloatCodec(**shared, size=None, dtype=np.dtype(np.float32))
    raise DataError(f"a column of kind {column.kind} is not modelled and has no codes")


def _sized(size: int) -> dict[str, Any]:
    return {"size": size, "dtype": smallest_dtype(size)}
