"""How an attacker scores a target by synthetic rows: high means that it was in the table (or that a guess of it holds).

Every score sees synthetic rows, the targets' own rows and rows of the same population; none sees the model's training.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.encoding import Encoder
from understudy.evaluation.neighbours import nearest, points
from understudy.evaluation.view import View

# A guess of a number counts as right within this share of the column's public range, as in `evaluation.attacks`.
NEAR = 0.05
VOTERS = 10
KERNEL = 0.25  # width of a kernel, in distances between neighbours
SHARP = 0.05  # of the distance between neighbours: below it, rows count as equal
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class Known:
    """What an attacker knows: the targets' rows, other rows of the population, and which columns to guess."""

    encoder: Encoder
    targets: View
    reference: View
    guessed: tuple[str, ...]

    @cached_property
    def points(self) -> NDArray[np.float32]:
        return points(self.encoder, self.targets)

    @cached_property
    def reference_points(self) -> NDArray[np.float32]:
        return points(self.encoder, self.reference)

    @cached_property
    def by_reference(self) -> NDArray[np.float64]:
        """How far each target is from the population, which is what makes an outlier look far from everything."""
        return nearest(self.points, self.reference_points)[0]

    @cached_property
    def width(self) -> float:
        """How far rows of the population are from their neighbours."""
        return max(float(np.median(self.by_reference)), 0.05)


Scorer = Callable[[Known, View], NDArray[np.float64]]


def nearest_score(known: Known, synthetic: View) -> NDArray[np.float64]:
    """How many times nearer to a synthetic row than to any row of the population, as a logarithm."""
    found, least = nearest(known.points, points(known.encoder, synthetic))[0], SHARP * known.width
    return np.log((known.by_reference + least) / (found + least))


def density_score(known: Known, synthetic: View) -> NDArray[np.float64]:
    """Log-ratio of two kernel estimates of density: of the synthetic rows and of the population."""
    width = KERNEL * known.width
    mine, usual = points(known.encoder, synthetic), known.reference_points
    return _log_density(known.points, mine, width) - _log_density(known.points, usual, width)


def _log_density(asked: NDArray, rows: NDArray, width: float) -> NDArray[np.float64]:
    squared = _squared(asked, rows) / (2 * width**2)
    least = squared.min(axis=1)
    return -least + np.log(np.exp(least[:, None] - squared).mean(axis=1))


def _squared(asked: NDArray, rows: NDArray) -> NDArray[np.float64]:
    asked, rows = asked.astype(np.float64), rows.astype(np.float64)
    product = asked @ rows.T
    return np.maximum((asked**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2 * product, 0.0)


def attribute_score(known: Known, synthetic: View) -> NDArray[np.float64]:
    """The share of the nearest synthetic rows, by all other columns, that have the target's own value.

    The event "so many neighbours vote for the truth" is one of the release, with the target's row given: the bounds for
    membership hold for it as well, with targets outside of the table in the place of false positives.
    """
    asked, rows = known.points, points(known.encoder, synthetic)
    whole = _squared(asked, rows)
    blocks = {block.name: slice(block.start, block.stop) for block in known.encoder.blocks}
    voters = min(VOTERS, synthetic.rows)
    total = np.zeros(len(asked))
    for name in known.guessed:
        distance = whole - _squared(asked[:, blocks[name]], rows[:, blocks[name]])
        near = np.argpartition(distance, voters - 1, axis=1)[:, :voters]
        # Closer voters weigh more: a copy of the target outvotes all others.
        weights = 1 / (np.maximum(np.take_along_axis(distance, near, axis=1), 0.0) + (SHARP * known.width) ** 2)
        total += (weights * _agrees(known.targets, synthetic, name, near)).sum(axis=1) / weights.sum(axis=1)
    return total / len(known.guessed)


def _agrees(targets: View, synthetic: View, name: str, near: NDArray) -> NDArray[np.bool_]:
    if targets.facts[name].categorical:
        return targets.codes[name][:, None] == synthetic.codes[name][near]
    truth, guess = targets.position(name)[:, None], synthetic.position(name)[near]
    return (np.isnan(truth) & np.isnan(guess)) | (np.abs(truth - guess) <= NEAR)


SCORES: dict[str, Scorer] = {"nearest": nearest_score, "density ratio": density_score, "attribute": attribute_score}


def shadow_scores(
    known: Known, synthetic: View, scorer: Scorer, scores: NDArray[np.float64], coins: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Log-ratio of two normals that the attacker's own models tell of each target: with it and without it.

    scores, coins: (models, targets). Few models tell a spread badly, so all targets share one (Carlini et al. 2022).
    """
    counts = np.maximum(coins.sum(axis=0), 1), np.maximum((~coins).sum(axis=0), 1)
    inside = (scores * coins).sum(axis=0) / counts[0]
    outside = (scores * ~coins).sum(axis=0) / counts[1]
    spread = max(float(np.var(scores - np.where(coins, inside, outside))), _LEAST_SPREAD)
    found = scorer(known, synthetic)
    return ((found - outside) ** 2 - (found - inside) ** 2) / (2 * spread)
