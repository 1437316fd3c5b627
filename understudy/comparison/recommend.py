"""Which method to take, in words, with ties said as ties."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.comparison.grid import QUALITY, Cell, gap_of, measured, shown_epsilon

# Nobody would notice less than this in a mean of distances between 0 and 1.
UNNOTICED = 0.005
# More epsilon that buys less than this (the width of the report's best grade) is not worth its privacy.
WORTHWHILE = 0.02


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A method at one epsilon: mean gap, its standard deviation over repeats (None for a single one), seconds."""

    method: str
    epsilon: float
    gap: float
    spread: float | None
    repeats: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Who is best at one epsilon. `tied` are all that are as good as the best, best first; `after` is the next one."""

    epsilon: float
    best: Standing
    tied: tuple[Standing, ...]
    after: Standing | None
    advised: Standing

    @property
    def lead(self) -> float | None:
        return None if self.after is None else self.after.gap - self.best.gap

    @property
    def sure(self) -> bool:
        """Whether there were repeats to compare the lead with."""
        return self.best.spread is not None


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The advice: one sentence to act on, and the sentences that say why; verdicts by epsilon, smallest first."""

    method: str | None
    epsilon: float | None
    advice: str
    reasons: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def words(self) -> str:
        return " ".join((self.advice, *self.reasons))


def standings(cells: Sequence[Cell]) -> list[Standing]:
    """Means over the repeats that came to an end, best first within an epsilon."""
    names = measured(cells, QUALITY)
    groups: dict[tuple[float, str], list[Cell]] = {}
    for cell in cells:
        if cell.ok and names:
            groups.setdefault((cell.epsilon, cell.method), []).append(cell)
    found = []
    for (epsilon, method), group in groups.items():
        gaps = [gap_of(cell, names) for cell in group]
        found.append(
            Standing(
                method=method,
                epsilon=epsilon,
                gap=statistics.fmean(gaps),
                spread=statistics.stdev(gaps) if len(gaps) > 1 else None,
                repeats=len(gaps),
                seconds=statistics.fmean(cell.fit_seconds or 0.0 for cell in group),
            )
        )
    return sorted(found, key=lambda one: (one.epsilon, one.gap, one.method))


def as_good(best: Standing, other: Standing) -> bool:
    """Whether the difference is within what two single fits differ by, by chance, or too small to notice."""
    chance = math.hypot(best.spread or 0.0, other.spread or 0.0)
    return other.gap - best.gap <= max(UNNOTICED, chance)


def verdict(ranked: Sequence[Standing]) -> Verdict:
    """Of the standings at one epsilon, best first. Among equals the one that is fitted fastest is advised."""
    best = ranked[0]
    tied = tuple(one for one in ranked if as_good(best, one))
    after = next((one for one in ranked if one not in tied), None)
    advised = min(tied, key=lambda one: (one.seconds, one.gap))
    return Verdict(epsilon=best.epsilon, best=best, tied=tied, after=after, advised=advised)


def recommend(cells: Sequence[Cell]) -> Recommendation:
    """The smallest epsilon from which on more of it buys little, and the method that is best there.

    Infinite epsilon shows what is lost to privacy; it is no advice.
    """
    ranked = standings(cells)
    epsilons = sorted({one.epsilon for one in ranked})
    verdicts = tuple(verdict([one for one in ranked if one.epsilon == epsilon]) for epsilon in epsilons)
    private = [one for one in verdicts if math.isfinite(one.epsilon)]
    if not private:
        why = (
            "No private fit came to an end with figures to compare; see the failures."
            if cells
            else "Nothing was compared."
        )
        return Recommendation(method=None, epsilon=None, advice="No recommendation.", reasons=(why,), verdicts=verdicts)
    # Below 0 is as good as 0: the fresh rows are mostly fewer than the synthetic ones, and chance holds them back.
    reachable = max(0.0, min(one.best.gap for one in private))
    chosen = next(one for one in private if one.best.gap <= reachable + WORTHWHILE)
    taken = chosen.advised
    advice = f"Take {taken.method} at epsilon {shown_epsilon(chosen.epsilon)}."
    reasons = (_how_good(taken), _lead(chosen), _why_epsilon(chosen, private))
    return Recommendation(
        method=taken.method, epsilon=chosen.epsilon, advice=advice, reasons=reasons, verdicts=verdicts
    )


def _how_good(one: Standing) -> str:
    if one.gap <= UNNOTICED:
        return "Over all figures its rows score as fresh real rows do."
    return (
        f"Its rows fall short of fresh real rows by {one.gap:.3f} on a scale from 0 (as good) to 1 (as bad as can be), "
        "the mean over all figures."
    )


def _lead(found: Verdict) -> str:
    """The lead in words; ties are said."""
    taken = found.advised
    others = [one for one in found.tied if one is not taken]
    if others:
        names = _listed([one.method for one in others])
        gaps = _listed([f"{one.gap:.3f}" for one in others])
        slower = min(others, key=lambda one: one.seconds)
        told = (
            f"It is a tie with {names} ({taken.gap:.3f} against {gaps}): the difference is no larger than what chance "
            f"makes between two fits; {taken.method} is advised since it is fitted fastest ({_seconds(taken.seconds)} "
            f"against {_seconds(slower.seconds)})."
        )
        return told if found.sure else f"{told} One repeat cannot tell more: use more seeds."
    if found.after is None:
        return "No other method came to an end at this epsilon, so there is nothing that it leads."
    lead = f"It leads {found.after.method}, the next best, by {found.lead:.3f}"
    if not found.sure:
        return f"{lead}; with one repeat there is no telling whether that is luck: use more seeds."
    spread = math.hypot(found.best.spread or 0.0, found.after.spread or 0.0)
    return f"{lead}, which is more than chance makes between two fits ({spread:.3f}, from {taken.repeats} repeats)."


def _why_epsilon(chosen: Verdict, private: Sequence[Verdict]) -> str:
    if len(private) == 1:
        return "Only one epsilon was tried."
    largest = private[-1]
    if chosen is largest:
        before = private[-2]
        return f"A smaller budget costs: the best at epsilon {shown_epsilon(before.epsilon)} {_falls(before.best.gap)}."
    return f"More budget buys little: the best at epsilon {shown_epsilon(largest.epsilon)} {_falls(largest.best.gap)}."


def _falls(gap: float) -> str:
    """
    >>> _falls(0.04), _falls(-0.01)
    ('falls short by 0.040', 'scores as fresh real rows do')
    """
    return "scores as fresh real rows do" if gap <= UNNOTICED else f"falls short by {gap:.3f}"


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed(["a"]), _listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _seconds(seconds: float) -> str:
    """
    >>> _seconds(0.34), _seconds(12.3), _seconds(400.0)
    ('0.34 s', '12 s', '6.7 min')
    """
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds / 60:.2g} min"
