"""A table as a metric sees it: one array of codes a column, read through the schema, and never changed."""

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Facts:
    """What the schema says of one column, in the terms of the metrics.

    Codes of a categorical column: 0..size-1 the declared values, `size` missing, `size + 1` outside the domain. Codes
    of a numeric column: steps above the lower bound with `size` for missing, or floats in the column's unit with NaN
    for missing (then `size` is None). Values beyond the bounds are clipped. `edges` are public bin edges, as codes.
    """

    name: str
    kind: str
    categorical: bool
    size: int | None
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    edges: tuple[float, ...] | None = None

    @property
    def missing(self) -> int:
        return -1 if self.size is None else self.size

    @property
    def outside(self) -> int:
        """The code of values outside a categorical column's domain."""
        return -1 if self.size is None else self.size + 1

    def label(self, code: int) -> str:
        """How a categorical code is shown to a reader."""
        return self.labels[code] if code < len(self.labels) else "(missing)" if code == self.size else "(outside)"


@dataclass(frozen=True)
class View:
    """A read-only coded table; `pixels` has a row of numbers an image, where the schema has an image column."""

    facts: dict[str, Facts]
    codes: dict[str, NDArray]
    rows: int
    outside: dict[str, int] = field(default_factory=dict)
    pixels: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        frozen = {}
        for name, codes in self.codes.items():
            codes = codes.view()
            codes.flags.writeable = False
            frozen[name] = codes
        object.__setattr__(self, "codes", MappingProxyType(frozen))

    @property
    def categorical(self) -> list[str]:
        return [name for name, facts in self.facts.items() if facts.categorical]

    @property
    def numeric(self) -> list[str]:
        return [name for name, facts in self.facts.items() if not facts.categorical]

    def absent(self, name: str) -> NDArray[np.bool_]:
        """Which rows miss this column."""
        codes = self.codes[name]
        return np.isnan(codes) if codes.dtype.kind == "f" else codes == self.facts[name].missing

    def values(self, name: str) -> NDArray[np.float64]:
        """A numeric column in its own unit; NaN where missing."""
        facts, values = self.facts[name], self.codes[name].astype(np.float64)
        if facts.size is not None:
            values = facts.low + values * ((facts.high - facts.low) / max(facts.size - 1, 1))
            values[self.absent(name)] = np.nan
        return values

    def position(self, name: str) -> NDArray[np.float64]:
        """A numeric column on the scale of its public range, 0 at the lower bound, 1 at the upper; NaN where missing.

        A column that the schema calls `log` is placed by log(1 + value), as its neighbours differ by factors.
        """
        facts, values = self.facts[name], self.values(name)
        low, high = facts.low, facts.high
        if facts.log:
            values, low, high = np.log1p(values), float(np.log1p(low)), float(np.log1p(high))
        return (values - low) / (high - low)

    def take(self, rows: NDArray) -> "View":
        """Some rows, in the given order."""
        pixels = None if self.pixels is None else self.pixels[rows]
        return View(self.facts, {name: codes[rows] for name, codes in self.codes.items()}, len(rows), pixels=pixels)

    def without(self, name: str) -> "View":
        """All columns but one."""
        facts = {key: value for key, value in self.facts.items() if key != name}
        return View(facts, {key: self.codes[key] for key in facts}, self.rows)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A 64-bit number a row that depends on all of its cells: equal rows have equal ones."""
        total = np.zeros(self.rows, dtype=np.uint64)
        for codes in self.codes.values():
            if codes.dtype.kind == "f":
                # -0.0 and 0.0 are one value, and so are all NaNs; their bits are not.
                bits = np.where(np.isnan(codes), np.float32(np.nan), codes + np.float32(0)).astype(np.float32)
                cell = bits.view(np.uint32).astype(np.uint64)
            else:
                cell = codes.astype(np.uint64)
            total = _mix(total ^ _mix(cell + _MIX[0]))
        return total if self.pixels is None else _mix(total ^ _pixel_hashes(self.pixels))

    def sample(self, count: int | None, seed: int) -> NDArray[np.intp]:
        """At most `count` rows in an order that depends on the seed and on the table's contents, not on its row order.

        Rows are first put in the order of their hashes, so equal tables give equal samples however they are shuffled.
        """
        canonical = np.argsort(self.hashes, kind="stable")
        drawn = np.random.default_rng(seed).permutation(self.rows)[: self.rows if count is None else count]
        return canonical[drawn]


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every input bit reaches every output bit."""
    words = (words ^ (words >> np.uint64(30))) * _MIX[1]
    words = (words ^ (words >> np.uint64(27))) * _MIX[2]
    return words ^ (words >> np.uint64(31))


def _pixel_hashes(pixels: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """A sum with a random odd weight a pixel, modulo 2^64: images that differ hardly ever have the same."""
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 2**63, pixels.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    total = np.zeros(len(pixels), dtype=np.uint64)
    for at, weight in enumerate(weights):
        total += pixels[:, at] * weight
    return total
