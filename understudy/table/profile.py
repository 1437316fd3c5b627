"""What a column looks like, gathered block by block: the evidence from which `draft` guesses."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from understudy.table import parse

MOST_DISTINCT = 2_000
MOST_HASHED = 1_000_000
MOST_SAMPLED = 100_000
MARKERS = frozenset(
    {"?", "NA", "N/A", "n/a", "na", "NULL", "Null", "null", "None", "none", "-", ".", "#N/A", "NaN", "nan"}
)
DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y.%m.%d", "%d %b %Y")
FORMATS = (None, *(f"{day}{time}" for day in DAYS for time in ("", " %H:%M", " %H:%M:%S")))


@dataclass
class Numbers:
    """Numbers seen so far; `whole` and `places` (decimals, None past 4) hold for all of them."""

    low: float = np.inf
    high: float = -np.inf
    zeros: int = 0
    infinite: bool = False
    whole: bool = True
    places: int | None = 0
    sample: list[np.ndarray] = field(default_factory=list)

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        self.low, self.high = min(self.low, values.min()), max(self.high, values.max())
        self.zeros += int(np.count_nonzero(values == 0))
        self.whole = self.whole and bool(np.all(values == np.floor(values)))
        while self.places is not None and not _has_places(values, self.places):
            self.places = self.places + 1 if self.places < 4 else None
        if sum(map(len, self.sample)) < MOST_SAMPLED:
            self.sample.append(values)


def _has_places(values: np.ndarray, places: int) -> bool:
    """Whether all numbers have so few decimals; those that were held in single precision (3.9 is 3.9000000954) too.

    >>> _has_places(np.array([3.9, 12.5]), 1), _has_places(np.array([3.9], dtype=np.float32).astype(float), 1)
    (True, True)
    """
    rounded = np.round(values, places)
    single = values.astype(np.float32)
    if np.allclose(values, single, rtol=1e-13, atol=0):  # written with fewer digits than a float has
        return np.array_equal(single, rounded.astype(np.float32))
    return np.allclose(values, rounded, rtol=1e-12, atol=1e-12)


@dataclass
class Times:
    """Seconds since 1970 seen so far, all of them whole multiples of `step`."""

    low: int = 2**62
    high: int = -(2**62)
    step: int = 86400

    def add(self, seconds: np.ndarray) -> None:
        if not len(seconds):
            return
        self.low, self.high = min(self.low, int(seconds.min())), max(self.high, int(seconds.max()))
        while np.any(seconds % self.step):
            self.step = {86400: 3600, 3600: 60, 60: 1}[self.step]


@dataclass
class Profile:
    """One column. Each `could_be` falls for good at the first cell that speaks against it."""

    rows: int = 0
    absent: int = 0
    marked: set[str] = field(default_factory=set)  # texts that stand for a missing cell
    counts: Counter | None = field(default_factory=Counter)  # distinct texts, None once there are too many
    numbers: Numbers = field(default_factory=Numbers)
    could_be_number: bool = True
    could_be_boolean: bool = True
    times: dict[str | None, "Times"] = field(default_factory=lambda: {form: Times() for form in FORMATS})
    order: list[Any] | None = None  # the values of a pandas category with an order, also those that no row has
    longest: int = 0
    has_blank: bool = False
    unique: bool = True
    rising: bool = True
    _hashes: set[int] = field(default_factory=set)
    _last: float = -np.inf

    @property
    def present(self) -> int:
        return self.rows - self.absent

    def add(self, array: pa.Array) -> None:
        if pa.types.is_dictionary(array.type) and array.type.ordered:
            order = array.dictionary.to_pylist()
            self.order = order if not self.rows or order == self.order else None
        array = parse.plain(array)
        self.rows += len(array)
        if pa.types.is_nested(array.type):
            self.could_be_number = self.could_be_boolean = self.unique = False
            self.times, self.counts, self.has_blank = {}, None, True
            self.absent += array.null_count
            return
        texts = parse.blank_out(self._as_text(array), frozenset({"nan"}))
        self._add_texts(texts)
        self._add_numbers(array, texts)
        self._add_times(array, texts)

    def _as_text(self, array: pa.Array) -> pa.Array:
        if parse.is_text(array.type):
            return array
        if pa.types.is_temporal(array.type):
            coded = array.dictionary_encode()
            if len(coded.dictionary) <= MOST_DISTINCT:  # the words by which a column of values would know them
                words = [str(moment) for moment in coded.dictionary.to_pylist()]
                return pa.array(words, pa.string()).take(coded.indices)
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_finite(array), array, pa.scalar(None, type=array.type))
        try:
            return array.cast(pa.string())
        except pa.ArrowException:
            return pa.array(["(unreadable)" if valid else None for valid in array.is_valid().to_pylist()])

    def _add_texts(self, texts: pa.Array) -> None:
        self.absent += texts.null_count
        coded = pc.value_counts(texts.drop_null())
        seen, counts = coded.field("values"), coded.field("counts")
        if not len(seen):
            return
        self.longest = max(self.longest, pc.max(pc.utf8_length(seen)).as_py())
        self.has_blank = self.has_blank or pc.any(pc.match_substring(seen, " ")).as_py()
        words = pc.is_in(pc.utf8_lower(seen), value_set=pa.array(["true", "false"], type=seen.type))
        self.could_be_boolean = self.could_be_boolean and pc.all(words).as_py()
        if self.counts is not None:
            if len(seen) <= MOST_DISTINCT:
                self.counts.update(dict(zip(seen.to_pylist(), counts.to_pylist(), strict=True)))
            if len(seen) > MOST_DISTINCT or len(self.counts) > MOST_DISTINCT:
                self.counts = None
        self._add_hashes(seen, counts)

    def _add_hashes(self, seen: pa.Array, counts: pa.Array) -> None:
        if not self.unique:
            return
        if pc.max(counts).as_py() > 1:
            self.unique = False
        elif len(self._hashes) < MOST_HASHED:
            before = len(self._hashes)
            self._hashes.update(pd.util.hash_array(seen.to_numpy(zero_copy_only=False)).tolist())
            self.unique = len(self._hashes) == before + len(seen)
        if not self.unique:
            self._hashes = set()

    def _add_numbers(self, array: pa.Array, texts: pa.Array) -> None:
        if not self.could_be_number:
            return
        if parse.is_text(array.type):
            found = pc.is_in(texts, value_set=pa.array(sorted(MARKERS), type=texts.type))
            marks = set(pc.unique(texts.filter(found)).to_pylist())
            if len(self.marked | marks) > 3 or pc.any(pc.match_substring_regex(texts, "^-?0[0-9]")).as_py():
                self.could_be_number = False  # codes with leading zeros lose them as numbers
                return
            self.marked |= marks
            array = texts
        elif not (
            pa.types.is_integer(array.type) or pa.types.is_floating(array.type) or pa.types.is_decimal(array.type)
        ):
            self.could_be_number = pa.types.is_null(array.type)
            return
        parsed = parse.real_numbers(array, MARKERS)
        if parsed.bad.get(parse.NOT_A_NUMBER, np.zeros(1, dtype=bool)).any():
            self.could_be_number = False
            return
        values = parsed.values[~parsed.missing & np.isfinite(parsed.values)]
        if np.any(np.abs(values) > 2.0**62):
            self.could_be_number = False
            return
        self.numbers.infinite = self.numbers.infinite or bool(np.isinf(parsed.values).any())
        self.numbers.add(values)
        self.rising = self.rising and bool(np.all(np.diff(np.concatenate([[self._last], values])) > 0))
        self._last = values[-1] if len(values) else self._last

    def _add_times(self, array: pa.Array, texts: pa.Array) -> None:
        if np.isfinite(self.numbers.low):
            self.times = {}  # a column of times has no plain number
        elif parse.is_text(array.type):
            # A few texts first: reading a whole block of other text in every format would take long.
            few = [text for text in pc.unique(texts)[:20].to_pylist() if text is not None and text not in MARKERS]
            self.times = {
                form: times
                for form, times in self.times.items()
                if all(parse.parse_time(text, form) is not None for text in few)
            }
            array = texts
        elif not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type) or pa.types.is_null(array.type)):
            self.times = {}
        for form in list(self.times):
            parsed = parse.times(array, form, MARKERS)
            if any(where.any() for where in parsed.bad.values()):
                del self.times[form]
            else:
                self.times[form].add(parsed.values[~parsed.missing])
