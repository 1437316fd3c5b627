"""Which critic learns from which rows: a fresh, secret coin for every row."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Slices:
    """Private rows in the order of their slices: slice k is `codes[starts[k] : starts[k] + sizes[k]]`."""

    codes: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray


def cut(codes: np.ndarray, critics: int, rng: np.random.Generator) -> Slices:
    """Gives every row a slice of its own choosing: uniform, independent of all rows, of their values and places.

    The coins are alike and independent, so a table with one row more has, for some equally likely coins, the same
    slices but for the one that this row falls into; rows keep their order within a slice. A slice may be empty.
    """
    return arrange(codes, rng.integers(critics, size=len(codes)), critics)


def arrange(codes: np.ndarray, slice_of: np.ndarray, critics: int) -> Slices:
    """Rows sorted by slice, for coins that were thrown."""
    sizes = np.bincount(slice_of, minlength=critics).astype(np.int32)
    ordered = codes[np.argsort(slice_of, kind="stable")]
    if not len(ordered):  # compiled code reads a row of an empty slice before it throws it away
        ordered = np.zeros((1, codes.shape[1]), dtype=codes.dtype)
    starts = (np.cumsum(sizes) - sizes).astype(np.int32)
    return Slices(ordered, starts, sizes)
