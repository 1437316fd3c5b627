"""The one place where images are read: exact sums of their features by class, and the noise on them."""

import math

import numpy as np

from understudy.privacy import Gaussian, Ledger, NonPrivate, Streams, gaussian
from understudy.privacy.ledger import Prepaid
from understudy.synthesizers.dp_merf.pictures.codes import WholeEncoder
from understudy.synthesizers.dp_merf.pictures.embedding import Embedding, PictureMap
from understudy.synthesizers.dp_merf.pictures.plan import Plan
from understudy.table.table import Table

ROWS_PER_BLOCK = 1 << 13
PURPOSE = "embeddings of images by class"


def release(
    plan: Plan, features: PictureMap, table: Table, encoder: WholeEncoder | None, *, streams: Streams, ledger: Ledger
) -> Embedding:
    """Sums of all rows' features plus Gaussian noise, once.

    Guarantee: one row moves the sums by at most `features.sensitivity()`. `encoder` holds released values alone; which
    rows `plan.kept` leaves out is told by a coin of each row's own, whose rate hangs on that row's class alone: the
    sums of what is left have the same sensitivity whatever the coins.

    With minibatches, T Poisson samples of the rows are drawn, and each sample's sum gets noise of its own. The gradient
    of a squared distance is linear in its target, so that a generator matched against every noisy sum in turn follows,
    on the mean, their average: what is kept is the sum of the T noisy sums, which is computed from how often each
    row was drawn, with noise of T times the variance. As a function of the T noisy sums it costs no more than they do.
    """
    sensitivity = features.sensitivity()
    if plan.minibatches is None:
        event = Gaussian(plan.noise_multiplier) if plan.noise_multiplier else NonPrivate()
        prepaid = ledger.prepay(event, 1, PURPOSE)
        multiplier, times = plan.noise_multiplier, 1.0
    else:
        ledger.charge(plan.minibatches.event, f"{PURPOSE}, {plan.minibatches.steps} minibatches")
        multiplier = plan.minibatches.noise_multiplier * math.sqrt(plan.minibatches.steps)
        prepaid = Prepaid(Gaussian(multiplier) if multiplier else NonPrivate(), 1)
        times = plan.minibatches.rate * plan.minibatches.steps
    values = gaussian(
        exact_sums(plan, features, table, encoder, streams.sampling),
        l2_sensitivity=sensitivity,
        noise_multiplier=multiplier,
        streams=streams,
        ledger=prepaid,
        purpose=PURPOSE,
    )
    return features.read(values / times, multiplier * sensitivity / times, plan.kept)


def exact_sums(
    plan: Plan, features: PictureMap, table: Table, encoder: WholeEncoder | None, rng: np.random.Generator
) -> np.ndarray:
    """(classes, size) of int64: every row's features as often as it takes part. Private."""
    total = np.zeros((features.classes, features.size), dtype=np.int64)
    for block in table.blocks(ROWS_PER_BLOCK):
        pixels = block[plan.image_name]
        labels = _labels(plan, block)
        often = _times(plan, labels, rng)
        for times in range(1, int(often.max(initial=0)) + 1):
            mine = often == times
            if mine.any():
                inputs = pixels[mine] if encoder is None else encoder.codes(pixels[mine])
                total += times * features.sums(inputs, labels[mine])
    return total


def _labels(plan: Plan, block: dict[str, np.ndarray]) -> np.ndarray:
    if plan.label is None:
        return np.zeros(len(block[plan.image_name]), dtype=np.int64)
    return block[plan.label].astype(np.int64)


def _times(plan: Plan, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """How often each row takes part: independent coins of its own, whatever the other rows are."""
    often = np.ones(len(labels), dtype=np.int64)
    if plan.minibatches is not None:
        from understudy.training.dpsgd import poisson_heads

        _, rows = poisson_heads(len(labels), plan.minibatches.steps, plan.minibatches.rate, rng)
        often = np.bincount(rows, minlength=len(labels))
    if (plan.kept < 1).any():
        often = often * (rng.random(len(labels)) < plan.kept[labels])
    return often
