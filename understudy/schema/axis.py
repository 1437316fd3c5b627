"""The codes of a column and the numbers that they stand for, so that rules can be checked from the schema alone.

Codes are numbered as `table/codec.py` does; numbers are compared as a reader of the rows would compare them.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from understudy.schema.columns import SECONDS, Boolean, Categorical, Datetime, Facts, Integer, Ordinal, Real
from understudy.schema.decimals import shortest_decimals
from understudy.schema.fields import parse_moment, value_key
from understudy.schema.problems import shown

_EPOCH = datetime(1970, 1, 1)
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


@dataclass(frozen=True, eq=False)
class Axis:
    """A modelled column's codes: 0 to `size` - 1 and `size` for missing, or float32 and NaN where size is None."""

    column: Facts
    size: int | None
    low: int | float = 0
    step: int | float = 1

    @property
    def missing_code(self) -> int | float:
        return float("nan") if self.size is None else self.size

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The first and the last code that is a value."""
        return (0, self.size - 1) if self.size is not None else _inner_floats(self.column.low, self.column.high)

    @property
    def ordered(self) -> bool:
        return not isinstance(self.column, Boolean | Categorical) or isinstance(self.column, Ordinal)

    def plain(self, codes: Any) -> np.ndarray:
        """Codes in the type in which all of them can be compared: uint64, or float32."""
        return np.asarray(codes).astype(np.float32 if self.size is None else np.uint64)

    def absent(self, codes: np.ndarray) -> np.ndarray:
        """Which codes stand for missing."""
        return np.isnan(codes) if self.size is None else np.asarray(codes) == self.size

    def numbers(self, codes: Any) -> np.ndarray:
        """What codes stand for, as int64 or float64 that never falls as codes grow; of missing ones, anything.

        >>> axis_of(Integer(low=17, high=90)).numbers([0, 73]).tolist()
        [17, 90]
        """
        column = self.column
        if self.size is None:
            codes = self.plain(codes)
            if column.dtype == "float32":
                return codes.astype(np.float64)
            return shortest_decimals(codes, column.low, column.high)
        steps = np.minimum(self.plain(codes), np.uint64(self.size - 1))
        if isinstance(column, Real):
            places = max(-Decimal(repr(number)).as_tuple().exponent for number in (self.low, self.step))
            values = np.round(self.low + steps * self.step, min(max(places, 0), 15))
            return np.clip(values, column.low, column.high).astype(column.dtype or "float64").astype(np.float64)
        # Unsigned arithmetic wraps round to the right number, also for spans of more than 2**63.
        whole = (steps * np.uint64(self.step) + np.uint64(self.low % 2**64)).view(np.int64)
        dtype = getattr(column, "dtype", None) or "int64"
        return whole.astype(dtype).astype(np.float64) if dtype.startswith("float") else whole

    def lowest(self, limits: Any, *, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """The first code with a number of at least (strict: above) each limit, and whether there is one."""
        limits = np.asarray(limits)
        if self.size is None:
            first, last = self.bounds
            found = _to_float32(limits)
            numbers = self.numbers(found)
            short = numbers <= limits if strict else numbers < limits
            found = np.where(short, np.nextafter(found, np.float32(np.inf)), found)
            found = np.maximum(found, np.float32(first))
            return np.minimum(found, np.float32(last)).astype(np.float32), found <= np.float32(last)
        count = self._count(limits, also_equal=strict)
        return np.minimum(count, np.uint64(self.size - 1)), count < np.uint64(self.size)

    def highest(self, limits: Any, *, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """The last code with a number of at most (strict: below) each limit, and whether there is one.

        >>> codes, found = axis_of(Integer(low=0, high=90, resolution=10)).highest([35, -1], strict=False)
        >>> codes.tolist(), found.tolist()
        ([3, 0], [True, False])
        """
        limits = np.asarray(limits)
        if self.size is None:
            first, last = self.bounds
            found = _to_float32(limits)
            numbers = self.numbers(found)
            far = numbers >= limits if strict else numbers > limits
            found = np.where(far, np.nextafter(found, np.float32(-np.inf)), found)
            found = np.minimum(found, np.float32(last))
            return np.maximum(found, np.float32(first)).astype(np.float32), found >= np.float32(first)
        count = self._count(limits, also_equal=not strict)
        return np.maximum(count, np.uint64(1)) - np.uint64(1), count > np.uint64(0)

    def _count(self, limits: np.ndarray, *, also_equal: bool) -> np.ndarray:
        """How many codes lie below each limit, by bisection: exact however numbers are rounded when shown."""
        low = np.zeros(limits.shape, dtype=np.uint64)
        high = np.full(limits.shape, self.size, dtype=np.uint64)
        for _ in range(self.size.bit_length() + 1):
            open_ = low < high
            middle = low + (high - low) // np.uint64(2)
            numbers = self.numbers(middle)
            below = open_ & ((numbers <= limits) if also_equal else (numbers < limits))
            low = np.where(below, middle + np.uint64(1), low)
            high = np.where(open_ & ~below, middle, high)
        return low

    @cached_property
    def _by_key(self) -> dict[Any, int]:
        return {value_key(value): code for code, value in enumerate(self.column.values)}

    def place(self, value: Any) -> Any:
        """The code of a declared value; None is missing. ValueError says what is wrong with it."""
        column = self.column
        if value is None:
            if not column.missing:
                raise ValueError("has no missing cells (missing: false), but null is named")
            return self.missing_code
        if isinstance(column, Boolean):
            truth = _TRUTH.get(value_key(value).lower())
            if truth is None:
                raise ValueError(f"must be true or false, got {shown(value)}")
            return truth
        if isinstance(column, Categorical):
            if value_key(value) not in self._by_key:
                raise ValueError(f"has no value {shown(value)}; add it to values, or mend the rule")
            return self._by_key[value_key(value)]
        number = self._number(value)
        if self.size is None:
            if not column.low <= number <= column.high:
                raise ValueError(f"cannot hold {shown(value)}: it must lie between low and high")
            return float(np.clip(np.float32(number), *map(np.float32, self.bounds)))
        (code,), (found,) = self.lowest([number], strict=False)
        if not found or self.numbers([code])[0] != number:
            if isinstance(column, Real):  # 0.3 need not be 3 steps of 0.1 to the last bit
                steps = (number - self.low) / self.step
                if abs(steps - round(steps)) <= 1e-6 and 0 <= round(steps) < self.size:
                    return round(steps)
            raise ValueError(f"cannot hold {shown(value)}: it must lie on a step between low and high")
        return code.item()

    def span(self, ends: dict[str, Any]) -> tuple[Any, Any]:
        """The first and last code of a range, both included."""
        if not self.ordered:
            raise ValueError("has no order: name its values, not a range")
        first, last = self.bounds
        if isinstance(self.column, Categorical):
            first = self.place(ends["from"]) if "from" in ends else first
            last = self.place(ends["to"]) if "to" in ends else last
            inside = first <= last
        else:
            inside = True
            if "from" in ends:
                (code,), (found,) = self.lowest([self._number(ends["from"])], strict=False)
                first, inside = code.item(), bool(found)
            if "to" in ends:
                (code,), (found,) = self.highest([self._number(ends["to"], last=True)], strict=False)
                last, inside = code.item(), inside and bool(found)
            inside = inside and first <= last
        if not inside:
            raise ValueError("has no value in the range; write it from low to high, inside of the column's bounds")
        return first, last

    def _number(self, value: Any, *, last: bool = False) -> int | float:
        if isinstance(self.column, Datetime):
            moment = parse_moment(value)
            if last and isinstance(value, str) and len(value.strip()) == 10:  # the whole of that day, as for `high`
                moment += timedelta(seconds=86400 - self.step)
            return int((moment - _EPOCH).total_seconds())
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must be a number, got {shown(value)}")
        return value


def axis_of(column: Facts) -> Axis:
    """The axis of a modelled column."""
    if isinstance(column, Boolean):
        return Axis(column, 2)
    if isinstance(column, Categorical):
        return Axis(column, len(column.values))
    if isinstance(column, Datetime):
        low, high = (int((bound - _EPOCH).total_seconds()) for bound in (column.low, column.high))
        step = SECONDS[column.resolution]
        return Axis(column, (high - low) // step + 1, low, step)
    if isinstance(column, Integer):
        return Axis(column, (column.high - column.low) // column.resolution + 1, column.low, column.resolution)
    if column.resolution is None:
        return Axis(column, None)
    return Axis(column, round((column.high - column.low) / column.resolution) + 1, column.low, column.resolution)


def comparable(a: Facts, b: Facts) -> bool:
    """Whether an order between two columns means something."""
    if isinstance(a, Ordinal) and isinstance(b, Ordinal):
        return [value_key(value) for value in a.values] == [value_key(value) for value in b.values]
    numbers = isinstance(a, Integer | Real) and isinstance(b, Integer | Real)
    return numbers or (isinstance(a, Datetime) and isinstance(b, Datetime))


def _inner_floats(low: float, high: float) -> tuple[float, float]:
    first, last = np.float32(low), np.float32(high)
    if float(first) < low:
        first = np.nextafter(first, np.float32(np.inf))
    if float(last) > high:
        last = np.nextafter(last, np.float32(-np.inf))
    return float(first), float(last)


def _to_float32(numbers: np.ndarray) -> np.ndarray:
    most = np.finfo(np.float32).max
    return np.clip(numbers, -most, most).astype(np.float32)
