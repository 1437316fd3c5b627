"""What a training asks of its rows, written down: every noisy release, every choice, every private training.

Two trainings can then be given the same answers on different rows. Whatever still differs between them reached the
outside past the mechanisms; and how far the questions differ is what one row can do, before any noise.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.privacy import Event, Streams


@dataclass(frozen=True, eq=False)
class Release:
    """Exact values in steps of the mechanism's grid, the noise's standard deviation in such steps, and the answer."""

    values: np.ndarray
    scale: float
    answer: np.ndarray


@dataclass(frozen=True, eq=False)
class Choice:
    """Exact scores, the scale of the noise (chances go with exp(score / scale)), and the index that came back."""

    scores: np.ndarray
    scale: float
    answer: int


@dataclass(frozen=True, eq=False)
class Training:
    """A compiled training: the module that ran it, its plan's event, and all arrays of the state that it ended with."""

    by: str
    event: Event
    state: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Words:
    """Random words for keys of compiled noise, drawn outside of a training that is known here."""

    count: int


Asked = Release | Choice | Training | Words
ROUNDING = 1 + 1e-5  # of sums of float32


class DivergedError(Exception):
    """With the same answers so far, a training asked something of another shape: its course depends on the rows."""


class WatchedNoise:
    """Repeatable noise that writes down what it is added to; with `answers`, those come back in place of its own.

    It stands where every mechanism of `privacy.mechanisms` must ask, so no method can pass it by and have its noise.
    """

    def __init__(self, seed: int, answers: Sequence[Asked] = ()) -> None:
        self._source = Streams.from_seed(seed).noise
        self._answers = iter([asked for asked in answers if isinstance(asked, Release | Choice)])
        self._replaying = bool(answers)
        self.asked: list[Asked] = []
        self.compiled = 0  # trainings in progress, whose words are accounted for

    def gaussian_steps(self, scale: float, count: int) -> np.ndarray:
        noise = self._source.gaussian_steps(scale, count).view(_Noise)
        noise.answer = lambda values, drawn: self._release(values, scale, drawn)
        return noise

    def gumbel_argmax(self, scores: np.ndarray, scale: float) -> int:
        return self._choice(scores, scale, self._source.gumbel_argmax(scores, scale))

    def exponential_argmax(self, scores: np.ndarray, scale: float) -> int:
        return self._choice(scores, scale, self._source.exponential_argmax(scores, scale))

    def words(self, count: int) -> np.ndarray:
        if not self.compiled:
            self.asked.append(Words(count))
        return self._source.words(count)

    def _release(self, values: np.ndarray, scale: float, drawn: np.ndarray) -> np.ndarray:
        answer = values + drawn
        if self._replaying:
            given = next(self._answers, None)
            if not isinstance(given, Release) or given.values.shape != values.shape:
                raise DivergedError("a release of another number of values")
            answer = given.answer
        self.asked.append(Release(values.copy(), scale, answer))
        return answer.copy()

    def _choice(self, scores: np.ndarray, scale: float, drawn: int) -> int:
        if self._replaying:
            given = next(self._answers, None)
            if not isinstance(given, Choice) or given.scores.shape != scores.shape:
                raise DivergedError("a choice among another number of candidates")
            drawn = given.answer
        self.asked.append(Choice(np.array(scores), scale, drawn))
        return drawn


class _Noise(np.ndarray):
    """An array of noise that hands what it is added to over to its watcher; in any other use, a plain array."""

    answer: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def __array_finalize__(self, parent: Any) -> None:
        self.answer = getattr(parent, "answer", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(part) for part in inputs]
        if ufunc is np.add and method == "__call__" and len(inputs) == 2 and not options:
            place = next(number for number, part in enumerate(inputs) if isinstance(part, _Noise))
            if plain[0].shape == plain[1].shape:
                return inputs[place].answer(plain[1 - place], plain[place])
        return getattr(ufunc, method)(*plain, **options)


def streams_of(noise: WatchedNoise, seed: int) -> Streams:
    """Repeatable streams with watched noise; sampling and first weights as the seed gives them."""
    usual = Streams.from_seed(seed)
    return Streams(noise=noise, sampling=usual.sampling, init=usual.init, seeded=True)


# Trainings that are compiled, with the place of the plan among their arguments: what meets the rows inside them is not
# seen by the noise stream, so their plan's event is written down when they start.
LOOP = "understudy.training.loop"
_TRAININGS = ((LOOP, "run", 0), ("understudy.synthesizers.gs_wgan.trainer", "play", 1))
# Where compiled trainings meet rows, and what has to be compiled again when that is changed.
_SUMS = ("understudy.training.dpsgd", "understudy.training.loop", "_scan")
_SLOPES = ("understudy.synthesizers.gs_wgan.ask", "understudy.synthesizers.gs_wgan.game", "play")


@contextmanager
def watched(noise: WatchedNoise) -> Iterator[None]:
    """Writes compiled trainings down as well, of those modules that are loaded. For one thread, in tests and checks."""
    usual = [(sys.modules[name], function, place) for name, function, place in _TRAININGS if name in sys.modules]
    with _put([(m, function, _written(noise, getattr(m, function), place)) for m, function, place in usual]):
        yield


@contextmanager
def silenced() -> Iterator[None]:
    """Rows add nothing to what compiled trainings noise, so that noise alone is learnt: the same for every table.

    Only modules that are loaded are looked at: a method that trains no network stays quick.
    """
    with _compiled_with(((_SUMS, _silent_sums), (_SLOPES, _silent_slopes))):
        yield


@contextmanager
def wired() -> Iterator[None]:
    """A sum of clipped gradients that is longer than the clip norm makes its step infinite.

    On a table of one row no step may be: with that row and without it, sums are then at most the clip norm apart.
    """
    with _compiled_with(((_SUMS, _wired_sums),)):
        yield


@contextmanager
def _compiled_with(changes: Sequence[tuple[tuple[str, str, str], Callable]]) -> Iterator[None]:
    found = [
        (change(sys.modules[doors]), getattr(sys.modules[compiled], function).clear_cache)
        for (doors, compiled, function), change in changes
        if doors in sys.modules and compiled in sys.modules
    ]
    try:
        with _put([change for change, _ in found]):
            for _, forget in found:
                forget()
            yield
    finally:
        for _, forget in found:
            forget()


@contextmanager
def _put(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in usual:
            setattr(owner, name, value)


def _written(noise: WatchedNoise, training: Callable, place: int) -> Callable:
    def run(*arguments: Any, **options: Any) -> Any:
        noise.compiled += 1
        try:
            state = training(*arguments, **options)
        finally:
            noise.compiled -= 1
        arrays = tuple(np.asarray(leaf) for leaf in _leaves(state) if hasattr(leaf, "dtype"))
        noise.asked.append(Training(training.__module__, arguments[place].event, arrays))
        return state

    return run


def _leaves(tree: Any) -> Iterator[Any]:
    """All that nested dicts, lists and tuples hold."""
    if isinstance(tree, dict | list | tuple):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(part)
    else:
        yield tree


def _silent_sums(module: Any) -> tuple[Any, str, Callable]:
    usual = module.Numbers.noisy_mean

    def noisy_mean(self: Any, clipped: Any, noise: Any) -> Any:
        return usual(self, _mapped(_zero, clipped), noise)

    return module.Numbers, "noisy_mean", noisy_mean


def _wired_sums(module: Any) -> tuple[Any, str, Callable]:
    usual = module.Numbers.noisy_mean

    def noisy_mean(self: Any, clipped: Any, noise: Any) -> Any:
        squared = sum((leaf**2).sum() for leaf in _leaves(clipped))
        too_long = squared > (self.clip * ROUNDING) ** 2
        return usual(self, _mapped(lambda leaf: leaf / (1.0 - too_long.astype(leaf.dtype)), clipped), noise)

    return module.Numbers, "noisy_mean", noisy_mean


def _silent_slopes(module: Any) -> tuple[Any, str, Callable]:
    usual = module.clip_rows
    return module, "clip_rows", lambda slopes, clip: _zero(usual(slopes, clip))


def _zero(leaf: Any) -> Any:
    """Zeros in place of a compiled array, whatever was there (a product with 0 would keep NaN)."""
    return leaf.at[...].set(0.0)


def _mapped(change: Callable, tree: Any) -> Any:
    """The same tree of dicts and lists, every leaf changed; this room does without the compiler's own tools."""
    if isinstance(tree, dict):
        return {name: _mapped(change, part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(_mapped(change, part) for part in tree)
    return change(tree)
