"""Pairs of columns that hardly depend on each other: what their released tables say beyond that is mostly noise.

A table of many cells tells how much of it is noise: squared deviations from independent columns, over their variance,
have a mean of 1 then. Where they are clearly less than twice that and no single cell stands out, the deviations are
drawn towards 0, by half at most: the fit spends less on noise, and ends by what is left. Tables of few cells cannot
tell, and stay as they are. So do all if few are weak: where most columns go together, a table that looks like noise is
more likely one with dependence in few cells. Sees released numbers alone, and costs no privacy.
"""

import math
from collections.abc import Sequence

import numpy as np

LEAST_PART = 0.5  # of its deviations that a table keeps
DOUBT = 3.0  # standard deviations that are added to what a table shows of dependence
MANY = 0.5  # of the independent numbers in all tables, from which on weak ones are taken for what they seem
CELL_DOUBT = 0.5  # above the largest of so many cells by noise alone, in its standard deviations: one that stands out


def parts_kept(tables: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """How much of the deviations of each table to keep; all of them, where few tables are weak."""
    kept = [part_kept(deviations, weights) for deviations, weights in tables]
    free = [free_numbers(deviations) for deviations, _ in tables]
    weak = sum(f for f, part in zip(free, kept, strict=True) if part < 1)
    return kept if weak >= MANY * sum(free) else [1.0] * len(kept)


def free_numbers(table: np.ndarray) -> int:
    """Independent numbers in interactions (classes, A, B)."""
    classes, first, second = table.shape
    return classes * (first - 1) * (second - 1)


def part_kept(deviations: np.ndarray, weights: np.ndarray) -> float:
    """How much of a table's deviations (classes, A, B) from independence to keep; `weights` are inverse variances.

    1 where they are as large as the noise or may well be.

    >>> noise = np.random.default_rng(0).normal(size=(1, 20, 20))
    >>> part_kept(noise, np.ones_like(noise)), part_kept(2 * noise, np.ones_like(noise))
    (0.5, 1.0)
    """
    free = free_numbers(deviations)
    if free < 1:
        return 1.0
    standard = deviations * np.sqrt(weights)
    together = standard.sum(axis=0) / math.sqrt(len(standard))  # what is a little in every class may be much in all
    largest = max(float(np.abs(standard).max()), float(np.abs(together).max()))
    if largest > math.sqrt(2 * math.log(max(free, 2))) + CELL_DOUBT:
        return 1.0
    beyond_noise = float((standard**2).sum()) / free - 1
    return min(max(beyond_noise + DOUBT * math.sqrt(2 / free), LEAST_PART), 1.0)


def shares_by_class(margins: np.ndarray, ones: np.ndarray, class_rows: np.ndarray) -> np.ndarray:
    """A column's shares in each class (classes, codes), from noisy deviations and the counts of all classes `ones`.

    >>> shares_by_class(np.array([[10.0, -10.0]]), np.array([60.0, 40.0]), np.array([100.0])).round(3).tolist()
    [[0.6, 0.4]]
    """
    # Noise may leave a code less than nothing.
    least = 0.01 * np.outer(class_rows, ones) / max(ones.sum(), 1.0) + 1e-3
    held = np.maximum(margins + class_rows[:, None] / margins.shape[1], least)
    return held / held.sum(axis=1, keepdims=True)
