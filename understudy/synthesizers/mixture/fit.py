"""Fits the mixture to released tables by gradient descent.

Works on released numbers alone: nothing here is private, and nothing here costs privacy.

A step is some forty calls of array code, so that nothing has to be compiled for a table first. Several fits lie side by
side in them, and such groups run on all cores.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from understudy.errors import OptionError
from understudy.progress import Progress
from understudy.synthesizers.mixture.descent import Moments, rate_at, step
from understudy.synthesizers.mixture.error import Errors, Tables, errors, of_logits, softmax, spread
from understudy.synthesizers.mixture.forms import Form, gradients, level, logits, rates, start
from understudy.synthesizers.mixture.plan import CLEAR_END, LESS_FITS, MOST_AT_ONCE, MOST_TIMES_MORE
from understudy.synthesizers.mixture.targets import Targets

CHECKED = 25  # steps between two looks at whether a fit is still on its way
STALL_STEPS, STALLED = 100, 0.99  # a fit that gains less than a hundredth in so many steps has nothing left to learn
# A fit that has nothing left to learn so far above the error at which it should end has too few components for what
# depends on what, and one that ends further from the tables than the truth is (0.5) has far too few.
SHORT_OF_END, TOO_FAR = 0.015, 0.51
# Numbers in an array of fits that go together: few enough for a core to keep at hand, and so many that threads seldom
# wait for each other between two calls.
TOGETHER = 1 << 18
TOLD_SECONDS = 0.2


@dataclass(frozen=True, eq=False)
class Fitted:
    """Weights (classes, K) and probabilities by component and code (classes, K, D).

    `error`: half the mean squared residual over its variance, the mean of all fits; the truth has 0.5.
    """

    weights: np.ndarray
    probabilities: np.ndarray
    steps: int
    error: float


def fit_mixture(
    targets: Targets,
    *,
    components: int,
    fits: int,
    steps: int,
    seed: int,
    progress: Progress,
    note: str,
    noisy: bool = True,
    more: bool = False,
    points: int = 0,
    end: float = CLEAR_END,
) -> Fitted:
    """Several fits from different starts, their components side by side: a mixture of mixtures is a mixture.

    noisy: steps in proportion to gradients, which learn what stands out of noise first.
    more: take more components where the first fit shows that they are too few.
    points: how many of the fits have components that are points of a space of few dimensions.
    end: the error at which a fit ends.

    What the fits agree on comes from the tables; where they differ, noise and luck were fitted, and that averages out.
    """
    tables = Tables.of(targets)
    cores = os.cpu_count() or 1
    workers = min(fits, cores, MOST_AT_ONCE)
    done, begun = np.zeros(fits), 0.0  # how far each fit is, written by its thread and read by this one
    stopped = threading.Event()

    def fit(group: range) -> list[Fitted]:
        def told(share: float) -> None:
            done[group.start : group.stop] = share
            if stopped.is_set():
                raise _StoppedError

        form = _form(group[0], fits, points, noisy)
        seeds = [seed + number for number in group]
        return _fit(targets, tables, form=form, components=components, steps=steps, end=end, seeds=seeds, told=told)

    def run(groups: Sequence[range]) -> list[Fitted]:
        given = [pool.submit(fit, group) for group in groups]
        while True:
            finished, running = wait(given, timeout=TOLD_SECONDS, return_when=FIRST_EXCEPTION)
            for one in finished:
                one.result()
            progress("fitting", max(begun, float(done.mean())), note)
            if not running:
                return [fitted for one in given for fitted in one.result()]

    # Steps are too small for one of them to keep several cores busy. Fits know nothing of each other, so that the
    # outcome is the same in whatever groups and order they run.
    progress("fitting", 0.0, note)
    with threadpool_limits(max(1, cores // workers)), ThreadPoolExecutor(workers) as pool:
        try:
            found = run([range(number, number + 1) for number in range(workers)])
            times = _times_more(found[0].error, end) if more and noisy and fits >= MOST_TIMES_MORE else 1
            if times > 1:
                begun, components = float(done.mean()), times * components
                fits, points, found = round(LESS_FITS * fits), round(LESS_FITS * points), []
                done = np.zeros(fits)
            size = max(1, TOGETHER // (components * len(targets.ones)))
            found += run(_groups(range(len(found), fits), fits - points, size, workers))
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    weights = np.concatenate([fitted.weights for fitted in found], axis=1) / fits
    probabilities = np.concatenate([fitted.probabilities for fitted in found], axis=1)
    ends = [fitted.error for fitted in found]
    return Fitted(weights, probabilities, sum(fitted.steps for fitted in found), sum(ends) / fits)


def _times_more(error: float, end: float) -> int:
    """How many times the components all fits should have, by where the first one ended.

    >>> [_times_more(error, end=0.44) for error in (0.44, 0.47, 0.55)]
    [1, 2, 3]
    """
    if error > TOO_FAR:
        return MOST_TIMES_MORE
    return 2 if error > end + SHORT_OF_END else 1


class _StoppedError(Exception):
    """Another fit failed, or nobody waits any longer."""


def _form(number: int, fits: int, points: int, noisy: bool) -> Form:
    """The last `points` of all fits have points; without noise, classes have nothing to gain from each other."""
    if not noisy:
        return Form.ALONE
    return Form.POINTS if number >= fits - points else Form.CODES


def _groups(numbers: range, points_from: int, size: int, workers: int) -> list[range]:
    """Fits of one form, up to `size` of them together, and something to do for all workers.

    >>> _groups(range(2, 12), 8, 4, 2)
    [range(2, 5), range(5, 8), range(8, 10), range(10, 12)]
    """
    middle = min(max(numbers.start, points_from), numbers.stop)
    groups = []
    for part in (range(numbers.start, middle), range(middle, numbers.stop)):
        each = max(1, min(size, -(-len(part) // workers)))
        groups += [part[place : place + each] for place in range(0, len(part), each)]
    return groups


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # a fit that diverges is told of as such
def _fit(
    targets: Targets,
    tables: Tables,
    *,
    form: Form,
    components: int,
    steps: int,
    end: float,
    seeds: Sequence[int],
    told: Callable[[float], None],
) -> list[Fitted]:
    """For each seed, minimises the squared error over the variance of all cells until it is what noise would leave."""
    classes = len(targets.class_shares)
    each = max(-(-components // classes), 2)
    measured = max(targets.freedom, 1.0)
    params = start(form, targets.ones / targets.total, targets.class_shares, each, seeds)
    noisy = form is not Form.ALONE
    moments = Moments.none(params, shared=noisy)
    lengths = rates(form, classes=classes)
    found: dict[int, Fitted] = {}
    going = np.arange(len(seeds))
    # What a fit has come to of late: a step too far, which the next ones mend, is not the end.
    least, before = np.full((2, len(seeds)), np.inf)
    for at in range(steps + 1):
        if at % CHECKED == 0:
            told(at / steps)
            level(params, tables.member)
        shares, weights = softmax(logits(params), tables.member), _shares(params["weights"])
        now = errors(tables, weights, shares)
        reached = now.errors / measured
        if not np.isfinite(reached).all():
            raise OptionError("the fit of the mixture diverged; give fewer `steps` or more `components`")
        least = np.minimum(least, reached)
        ended = (reached <= end) | (at == steps)
        if at and at % STALL_STEPS == 0:
            ended |= least > STALLED * before
            least, before = np.full_like(least, np.inf), least
        if ended.any():
            for place in np.flatnonzero(ended):
                found[int(going[place])] = Fitted(weights[place], shares[place].copy(), at, float(reached[place]))
            if ended.all():
                break
            on = ~ended
            going, least, before, weights, shares = going[on], least[on], before[on], weights[on], shares[on]
            params, moments = {part: array[on] for part, array in params.items()}, moments.of(on)
            now = Errors(*(array[on] for array in now))
        of_codes = of_logits(now.of_shares, shares, tables.member)
        if noisy:
            spread(of_codes, tables.ties)
        of_weights = weights * (now.of_weights - (weights * now.of_weights).sum(axis=(1, 2), keepdims=True))
        step(params, gradients(params, of_weights, of_codes), moments, lengths, rate=rate_at(at, steps), at=at)
    told(1.0)
    return [found[place] for place in range(len(seeds))]


def _shares(logits: np.ndarray) -> np.ndarray:
    """Of components, over all classes of a fit."""
    shares = np.exp(logits - logits.max(axis=(1, 2), keepdims=True))
    return shares / shares.sum(axis=(1, 2), keepdims=True)
