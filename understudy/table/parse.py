"""Numbers and times out of Arrow arrays of any type, cell by cell.

What a cell becomes depends on that cell alone. The fast roads below read a whole array at once and are taken only
where they give exactly what the slow road (one distinct text at a time) would give. Arrow's own errors quote the
offending value, so they are dropped and never raised from.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

NOT_A_NUMBER = "not a number"
NOT_WHOLE = "not a whole number"
INFINITE = "infinite"
NOT_A_TIME = "not a date or time in the declared format"
NOT_TEXT = "not text in UTF-8"
WRONG_TYPE = "of a type that cannot be read"

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
WHOLE = re.compile(r"[-+]?[0-9]+\Z")
INFINITY = re.compile(r"[-+]?inf(inity)?\Z", re.IGNORECASE)
# Without the year 0, which Arrow knows and `datetime` does not.
YEAR = "(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
ISO_TIME = rf"^{YEAR}-[0-9]{{2}}-[0-9]{{2}}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}})?)?$"
INT64_LOW, INT64_HIGH = -(2**63), 2**63 - 1
EXACT = 2.0**53  # float64 holds every whole number up to here


@dataclass
class Parsed:
    """Values (anything where missing or bad), and masks. `beyond`: whole numbers too large for 64 bits."""

    values: np.ndarray
    missing: np.ndarray
    bad: dict[str, np.ndarray] = field(default_factory=dict)
    beyond: np.ndarray | None = None


def parse_number(text: str) -> int | float | None:
    """A number as a file may write it; None if it is none. Huge ones come back as infinite.

    >>> [parse_number(t) for t in ("+5", "1e3", "007", "0x1F", "1_000", "9" * 19)]
    [5, 1000.0, 7, None, None, 9999999999999999999]
    """
    if WHOLE.match(text) and len(text) < 400:
        return int(text)
    if NUMBER.match(text):
        return float(text)
    if INFINITY.match(text):
        return float("-inf") if text[0] == "-" else float("inf")
    return float("nan") if text.lower() == "nan" else None


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without dictionary, and with one type for all texts."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if is_mixed(array.type):  # a column of mixed objects, for whoever only looks at texts
        array = pa.array([None if cell is None else str(cell) for cell in array.to_pylist()], pa.string())
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if _is_odd_text(array.type):
        with suppress(pa.ArrowInvalid):  # bytes that are no UTF-8; whoever reads them says so
            array = array.cast(pa.large_string())
    return array


def is_mixed(kind: pa.DataType) -> bool:
    """Whether the array came from a column of mixed objects, which is a dense union of kinds."""
    return pa.types.is_union(kind) and kind.mode == "dense"


def _is_odd_text(kind: pa.DataType) -> bool:
    return not is_text(kind) and any(
        test(kind)
        for test in (pa.types.is_string_view, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    )


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def mask(array: pa.Array | None, length: int) -> np.ndarray:
    """A NumPy mask; null counts as false."""
    if array is None:
        return np.zeros(length, dtype=bool)
    return pc.fill_null(array, False).to_numpy(zero_copy_only=False)


def _nothing(length: int, rule: str, present: np.ndarray, dtype: Any) -> Parsed:
    return Parsed(np.zeros(length, dtype=dtype), ~present, {rule: present})


def blank_out(array: pa.Array, sentinels: frozenset[str]) -> pa.Array:
    """Texts without blanks around them; empty ones and the schema's missing_values become null."""
    trimmed = pc.utf8_trim_whitespace(array)
    gone = pc.is_in(trimmed, value_set=pa.array(["", *sorted(sentinels)], type=trimmed.type))
    return pc.if_else(gone, pa.scalar(None, type=trimmed.type), trimmed)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _by_distinct(array: pa.Array, read: Callable[[str], Any]) -> tuple[list[Any], np.ndarray]:
    """The slow road: `read` once a distinct text. Returns the results and, for each row, which (last + 1: null)."""
    coded = array.dictionary_encode()
    indices = pc.fill_null(coded.indices, len(coded.dictionary)).to_numpy(zero_copy_only=False)
    return [read(text) for text in coded.dictionary.to_pylist()], indices


def whole_numbers(array: pa.Array, sentinels: frozenset[str]) -> Parsed:
    """int64 values of an integer column."""
    kind = array.type
    if is_text(kind):
        return _drop_sentinels(_whole_from_text(array, sentinels), sentinels)
    if pa.types.is_decimal(kind):
        return _drop_sentinels(_whole_from_text(array.cast(pa.string()), sentinels), sentinels)
    present = mask(array.is_valid(), len(array))
    if pa.types.is_floating(kind):
        parsed = _whole_from_float(array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
    elif pa.types.is_uint64(kind):
        unsigned = array.fill_null(0).to_numpy(zero_copy_only=False)
        parsed = Parsed(np.minimum(unsigned, INT64_HIGH).astype(np.int64), ~present, beyond=unsigned > INT64_HIGH)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        parsed = Parsed(array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), ~present)
    elif pa.types.is_null(kind):
        parsed = Parsed(np.zeros(len(array), dtype=np.int64), ~present)
    else:
        return _nothing(len(array), _why_not(kind), present, np.int64)
    return _drop_sentinels(parsed, sentinels)


def _why_not(kind: pa.DataType) -> str:
    return NOT_TEXT if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else WRONG_TYPE


def _drop_sentinels(parsed: Parsed, sentinels: frozenset[str]) -> Parsed:
    """Numbers among the schema's missing_values are missing, however a cell writes them and whichever road read it."""
    whole = parsed.values.dtype.kind == "i"
    numbers = [number for number in map(parse_number, sentinels) if number is not None]
    if whole:  # larger ones fit in no cell but a text, which was blanked out before it was read
        numbers = [number for number in numbers if abs(number) < INT64_HIGH and number == int(number)]
    else:
        numbers = [number for number in map(_as_float, numbers) if np.isfinite(number)]
    if numbers:
        parsed.missing = parsed.missing | np.isin(parsed.values, np.array(numbers, dtype=parsed.values.dtype))
    return parsed


def _whole_from_float(values: np.ndarray) -> Parsed:
    missing, infinite = np.isnan(values), np.isinf(values)
    usable = ~(missing | infinite)
    safe = np.where(usable, values, 0.0)
    beyond = np.abs(safe) >= 2.0**63  # -2**63 itself is a bound at most, and clipping leaves it where it is
    saturated = np.where(safe >= 2.0**63, INT64_HIGH, np.where(safe <= -(2.0**63), INT64_LOW, 0))
    whole = np.where(beyond, 0.0, safe).astype(np.int64) + saturated
    beyond &= safe != -(2.0**63)
    return Parsed(whole, missing, {INFINITE: infinite, NOT_WHOLE: usable & (np.floor(safe) != safe)}, beyond)


def _whole_from_text(array: pa.Array, sentinels: frozenset[str]) -> Parsed:
    quick = _quick_whole(array)
    if quick is None:
        array = blank_out(array, sentinels)
        quick = _quick_whole(array)
    if quick is not None:
        return Parsed(quick.fill_null(0).to_numpy(zero_copy_only=False), mask(quick.is_null(), len(array)))
    floats = _cast(array, pa.float64())
    if floats is not None:
        values = floats.fill_null(np.nan).to_numpy(zero_copy_only=False)
        present = mask(floats.is_valid(), len(array))
        if np.all(np.abs(values[present]) < EXACT):  # NaN and infinity fail this too
            return _whole_from_float(values)
    return _whole_one_by_one(array)


def _quick_whole(array: pa.Array) -> pa.Array | None:
    cast = _cast(array, pa.int64())
    # Arrow reads 0x1F as 31. Looking at the bytes takes a tenth of the time of a search in each text.
    return None if cast is None or np.any((_bytes(array) | 0x20) == ord("x")) else cast


def _bytes(array: pa.Array) -> np.ndarray:
    """All texts of an array, one after the other."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return np.empty(0, dtype=np.uint8)
    places = np.frombuffer(offsets, dtype=np.int64 if pa.types.is_large_string(array.type) else np.int32)
    return np.frombuffer(data, dtype=np.uint8)[places[array.offset] : places[array.offset + len(array)]]


def _whole_one_by_one(array: pa.Array) -> Parsed:
    numbers, indices = _by_distinct(array, parse_number)
    values = np.zeros(len(numbers) + 1, dtype=np.int64)
    missing, words, infinite, broken, beyond = (np.zeros(len(values), dtype=bool) for _ in range(5))
    missing[-1] = True
    for position, number in enumerate(numbers):
        if number is None:
            words[position] = True
        elif number != number:
            missing[position] = True
        elif number in (float("inf"), float("-inf")):
            infinite[position] = True
        elif number != int(number):
            broken[position] = True
        else:
            values[position] = min(max(int(number), INT64_LOW), INT64_HIGH)
            beyond[position] = values[position] != int(number)
    bad = {NOT_A_NUMBER: words[indices], INFINITE: infinite[indices], NOT_WHOLE: broken[indices]}
    return Parsed(values[indices], missing[indices], bad, beyond[indices])


def real_numbers(array: pa.Array, sentinels: frozenset[str]) -> Parsed:
    """float64 values of a real column."""
    kind = array.type
    if is_text(kind):
        parsed = _real_from_text(array, sentinels)
        parsed.values = parsed.values + 0.0  # -0 is a float's minus zero on one road and a whole number on the other
        return _drop_sentinels(parsed, sentinels)
    present = mask(array.is_valid(), len(array))
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        return _nothing(len(array), _why_not(kind), present, np.float64)
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    return _drop_sentinels(Parsed(values, np.isnan(values), {INFINITE: np.isinf(values)}), sentinels)


def _real_from_text(array: pa.Array, sentinels: frozenset[str]) -> Parsed:
    floats = _cast(array, pa.float64())
    if floats is None:
        array = blank_out(array, sentinels)
        floats = _cast(array, pa.float64())
    if floats is not None:
        values = floats.fill_null(np.nan).to_numpy(zero_copy_only=False)
        if np.all(np.isfinite(values[mask(floats.is_valid(), len(array))])):  # Arrow reads nan(7) as a number
            return Parsed(values, np.isnan(values))
    numbers, indices = _by_distinct(blank_out(array, sentinels), parse_number)
    words = np.array([number is None for number in numbers] + [False])[indices]
    values = np.array([np.nan if number is None else _as_float(number) for number in numbers] + [np.nan])[indices]
    return Parsed(values, np.isnan(values) & ~words, {NOT_A_NUMBER: words, INFINITE: np.isinf(values)})


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def times(array: pa.Array, form: str | None, sentinels: frozenset[str]) -> Parsed:
    """Seconds since 1970 (int64) of a datetime column; times with a zone are taken as UTC."""
    kind = array.type
    if is_text(kind):
        return _times_from_text(blank_out(array, sentinels), form)
    present = mask(array.is_valid(), len(array))
    if pa.types.is_timestamp(kind):
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        ticks = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return Parsed(np.floor_divide(ticks, per_second), ~present)
    if pa.types.is_date(kind):
        days = array.cast(pa.date32()).cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        return Parsed(days.astype(np.int64) * 86400, ~present)
    if pa.types.is_null(kind):
        return Parsed(np.zeros(len(array), dtype=np.int64), ~present)
    return _nothing(len(array), NOT_A_TIME if pa.types.is_primitive(kind) else _why_not(kind), present, np.int64)


def _times_from_text(array: pa.Array, form: str | None) -> Parsed:
    coded = array.dictionary_encode()  # days repeat
    texts = coded.dictionary
    seconds, unread = _iso_times(texts) if form is None else _formatted_times(texts, form)
    for position in np.flatnonzero(unread):
        second = parse_time(texts[position].as_py(), form)
        if second is not None:
            seconds[position], unread[position] = second, False
    indices = pc.fill_null(coded.indices, len(texts)).to_numpy(zero_copy_only=False)
    missing = indices == len(texts)
    return Parsed(np.append(seconds, 0)[indices], missing, {NOT_A_TIME: np.append(unread, False)[indices]})


def _iso_times(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    if pc.all(pc.match_substring_regex(texts, ISO_TIME)).as_py():
        read = _cast(texts, pa.timestamp("s"))
        if read is not None:
            return read.cast(pa.int64()).to_numpy(zero_copy_only=False).copy(), np.zeros(len(texts), dtype=bool)
    return np.zeros(len(texts), dtype=np.int64), np.ones(len(texts), dtype=bool)


def _formatted_times(texts: pa.Array, form: str) -> tuple[np.ndarray, np.ndarray]:
    # Fast, but pandas may refuse one text for the sake of another's precision: the refused get a second reading.
    series = pd.Series(texts.to_pylist(), dtype=object)
    read = pd.to_datetime(series, format=form, errors="coerce", utc=True).dt.as_unit("s")
    unread = read.isna().to_numpy()
    return np.where(unread, 0, read.astype("int64").to_numpy()), unread


def parse_time(text: str, form: str | None) -> int | None:
    """Seconds since 1970 of one text; None if it is no time in this format (ISO 8601 if that is None).

    >>> parse_time("1970-01-02", None), parse_time("02.01.1970", "%d.%m.%Y"), parse_time("soon", None)
    (86400, 86400, None)
    """
    try:
        moment = datetime.fromisoformat(text) if form is None else datetime.strptime(text, form)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND


_SECOND = datetime(1970, 1, 1, 0, 0, 1) - datetime(1970, 1, 1)
