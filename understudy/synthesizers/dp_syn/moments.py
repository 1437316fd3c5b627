"""Codes of rows in a ball, and the sums over rows that a mixture of Gaussians is fitted from.

Everything a row adds is computed from that row and from released numbers, by operations on single numbers and never by
a product of matrices, whose rounding can depend on how many rows there are: no row moves even the last bit of another's
part.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from understudy.privacy import Ledger, Streams, gaussian
from understudy.synthesizers.neural.released import LEAK

if TYPE_CHECKING:
    from understudy.training.heads import Blocks

UNITS = 1 << 20  # steps of the grid that a row's part is cut to, for sums that no rounding disturbs
ROWS_PER_BLOCK = 1 << 15


@dataclass(frozen=True, eq=False)
class Mixture:
    """Gaussians over codes, all released: weights (K,), means (K, d), covariances (K, d, d)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


@dataclass(frozen=True, eq=False)
class Moments:
    """Released sums over rows by component: how many (K,), of codes (K, d), of their squares (K, d, d).

    noise: the standard deviation of `count`; those of the others are it times the radius, and the radius squared.
    """

    count: np.ndarray
    first: np.ndarray
    second: np.ndarray
    noise: float


def codes_of(
    rows: np.ndarray, blocks: "Blocks", layers: list[tuple[np.ndarray, np.ndarray]], radius: float
) -> np.ndarray:
    """(rows, d): the encoder's output for (rows, columns) of coarse codes, drawn into the ball of `radius`."""
    (w, b), *rest = [(w.astype(np.float64), b.astype(np.float64)) for w, b in layers]
    found = np.empty((len(rows), len(layers[-1][1])))
    for first in range(0, len(rows), ROWS_PER_BLOCK):
        block = rows[first : first + ROWS_PER_BLOCK]
        x = np.repeat(b[None], len(block), axis=0)
        for place, start in enumerate(blocks.starts):
            code = block[:, place].astype(np.int64)
            # A one-hot code times the weights is a row of them; a column of two codes has one for its second alone.
            x += np.where(code[:, None] == 1, w[start], 0.0) if blocks.binary[place] else w[start + code]
        for next_w, next_b in rest:
            x = np.where(x > 0, x, LEAK * x)
            y = np.repeat(next_b[None], len(x), axis=0)
            for unit in range(len(next_w)):
                y += x[:, unit, None] * next_w[unit]
            x = y
        found[first : first + len(block)] = into_ball(x, radius)
    return found


def into_ball(x: np.ndarray, radius: float) -> np.ndarray:
    """The nearest points of the ball around zero; rows that are not finite become zero."""
    x = np.where(np.isfinite(x).all(axis=1, keepdims=True), x, 0.0)
    with np.errstate(over="ignore"):
        squared = np.zeros(len(x))
        for place in range(x.shape[1]):
            squared += x[:, place] ** 2
    return x * (radius / np.maximum(np.sqrt(squared), radius))[:, None]


def responsibilities(codes: np.ndarray, mixture: Mixture) -> np.ndarray:
    """(rows, K): the probability that each row came from each component, by released parameters alone."""
    scores = np.empty((len(codes), len(mixture.weights)))
    for k, (weight, mean, covariance) in enumerate(
        zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    ):
        root = np.linalg.cholesky(covariance)
        whiten = np.linalg.inv(root)
        distance = np.zeros(len(codes))
        for row in range(len(whiten)):
            part = np.zeros(len(codes))
            for place in range(row + 1):
                part += (codes[:, place] - mean[place]) * whiten[row, place]
            distance += part**2
        scores[:, k] = math.log(max(weight, 1e-12)) - np.log(np.diag(root)).sum() - distance / 2
    top, total = scores.max(axis=1), np.zeros(len(codes))
    for k in range(scores.shape[1]):
        scores[:, k] = np.exp(scores[:, k] - top)
        total += scores[:, k]
    return scores / total[:, None]


def parts_of_rows(codes: np.ndarray, shares: np.ndarray, radius: float) -> np.ndarray:
    """What each row adds, as whole numbers (rows, K, 1 + d + d(d+1)/2): r, r x/R and r xx'/R^2 in steps of 1/UNITS.

    Off the diagonal a square counts sqrt(2) times, so that the part's norm is that of the whole matrix. With
    |x| <= R and shares r that sum to 1,

        sum over k of r_k^2 (1 + |x|^2/R^2 + |xx'|^2/R^4) <= (sum over k of r_k)^2 * 3 = 3,

    reached on the ball's surface by a row that belongs to one component: the L2 sensitivity for one row added or
    removed is sqrt(3), and could not be smaller. Cutting towards zero makes no number larger.
    """
    d = codes.shape[1]
    x = codes / radius
    features = np.empty((len(codes), 1 + d + d * (d + 1) // 2))
    features[:, 0] = 1.0
    features[:, 1 : 1 + d] = x
    for number, (i, j) in enumerate(zip(*np.triu_indices(d), strict=True)):
        features[:, 1 + d + number] = x[:, i] * x[:, j] * (1.0 if i == j else math.sqrt(2))
    return np.trunc(shares[:, :, None] * features[:, None, :] * UNITS).astype(np.int64)


# Ten times what float64 rounding of shares and codes can add to a row's norm, as a factor.
L2_SENSITIVITY = math.sqrt(3) * UNITS * (1 + 1e-12)


def release_moments(
    codes: np.ndarray,
    mixture: Mixture | None,
    *,
    components: int,
    radius: float,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
    purpose: str,
) -> Moments:
    """The sums of all rows' parts, released as one Gaussian; without a mixture all rows belong to the first component.

    Guarantee: one Gaussian(noise_multiplier) is charged; one row moves the stacked sums by at most L2_SENSITIVITY
    (`parts_of_rows`). The sums are of whole numbers, so no order of rows disturbs them.
    """
    d = codes.shape[1]
    width = 1 + d + d * (d + 1) // 2
    sums = np.zeros((components, width), dtype=np.int64)
    block_size = max(1, min(ROWS_PER_BLOCK, (1 << 22) // (components * width)))
    for first in range(0, len(codes), block_size):
        block = codes[first : first + block_size]
        shares = np.eye(1, components).repeat(len(block), 0) if mixture is None else responsibilities(block, mixture)
        sums += parts_of_rows(block, shares, radius).sum(axis=0)
    noisy = gaussian(
        sums,
        l2_sensitivity=L2_SENSITIVITY,
        noise_multiplier=noise_multiplier,
        streams=streams,
        ledger=ledger,
        purpose=purpose,
    )
    noisy = noisy / UNITS
    second = np.zeros((components, d, d))
    for number, (i, j) in enumerate(zip(*np.triu_indices(d), strict=True)):
        value = noisy[:, 1 + d + number] / (1.0 if i == j else math.sqrt(2))
        second[:, i, j] = second[:, j, i] = value * radius**2
    return Moments(noisy[:, 0], noisy[:, 1 : 1 + d] * radius, second, noise_multiplier * math.sqrt(3))
