"""Attacks on synthetic rows: who was in the table, and what can be guessed of them; each beside two yardsticks.

The first yardstick is the same attack on a model that was trained without the targets: what it seems to find there it
does not find because of them. The second is what (epsilon, delta) allows any attack whatsoever. An attack that fails
proves nothing; one that passes the second yardstick refutes the guarantee.

Everything here is computed from real rows: it is for the steward alone.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from understudy.auditing.attack_scores import SCORES, Known, Scorer, shadow_scores
from understudy.auditing.bounds import LowerBound, one_run_lower_bound
from understudy.errors import OptionError
from understudy.evaluation.attacks import best_threshold
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import open_table
from understudy.schema import Schema
from understudy.synthesizers.api import fit

# Trains on rows, with a seed of its own, and gives synthetic ones.
Make = Callable[[pd.DataFrame, int], pd.DataFrame]
SHADOW = "shadow models"
ATTACKS = (*SCORES, SHADOW)
FALSE_POSITIVE_RATES = (0.01, 0.001)
CONFIDENCE = 0.95
FEWEST_ROWS, FEWEST_SHADOWS = 160, 4


@dataclass(frozen=True)
class Rate:
    """How often, of how many, with its Clopper-Pearson interval.

    Targets of one model share its noise, so the interval is that of as many independent targets; `epsilon_shown` of an
    outcome does without this assumption.
    """

    hits: int
    trials: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AtRate:
    """True positives where a threshold, set on other targets, lets at most `wanted` false positives pass.

    bound: the most true positives that (epsilon, delta) allows at the wanted rate, and at the highest false-positive
    rate that was measured (`bound_measured`), which counts.
    """

    wanted: float
    true: Rate
    false: Rate
    bound: float
    bound_measured: float


@dataclass(frozen=True)
class Outcome:
    """One attack on one model. advantage: true minus false positive rate at the threshold that did best on others.

    epsilon_shown: the least epsilon with which the outcome can be reconciled, at 95 % confidence (one-run bound).
    """

    advantage: float
    interval: tuple[float, float]
    true: Rate
    false: Rate
    area: float
    at: tuple[AtRate, ...]
    epsilon_shown: LowerBound


@dataclass(frozen=True)
class Attacked:
    """One attack: on the model, on the `control` that never saw the targets, and what the guarantee allows."""

    attack: str
    epsilon: float
    delta: float
    members: int
    outsiders: int
    model: Outcome
    control: Outcome
    advantage_bound: float

    @property
    def refuted(self) -> bool:
        """Whether the guarantee cannot be true, at 95 % confidence: from the one-run bound, which needs no more."""
        return self.model.epsilon_shown.epsilon > self.epsilon

    @property
    def above_bound(self) -> bool:
        """Whether a lower end of an interval lies above what the guarantee allows."""
        past = any(at.true.low > at.bound_measured for at in self.model.at)
        return past or self.model.interval[0] > self.advantage_bound

    def to_json(self) -> str:
        """Strict JSON; an infinite epsilon becomes the word inf."""
        data = asdict(self) | {"refuted": self.refuted, "above_bound": self.above_bound}
        return json.dumps(_strict(data), indent=2, allow_nan=False)


def most_advantage(epsilon: float, delta: float) -> float:
    """The largest true minus false positive rate that (epsilon, delta) allows anyone.

    >>> round(most_advantage(1.0, 0.0), 4), most_advantage(math.inf, 0.0)
    (0.4621, 1.0)
    """
    # (e^eps - 1 + 2 delta) / (e^eps + 1), where both of the lines of `most_true_positives` meet.
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(min(epsilon, 700))))


def most_true_positives(epsilon: float, delta: float, false_positives: float) -> float:
    """The largest true positive rate that (epsilon, delta) allows at a false positive rate (Kairouz, Oh & Viswanath).

    >>> round(most_true_positives(1.0, 0.0, 0.01), 4), most_true_positives(math.inf, 0.0, 0.0)
    (0.0272, 1.0)
    """
    if math.isinf(epsilon):
        return 1.0
    factor = math.exp(epsilon)
    return max(0.0, min(1.0, factor * false_positives + delta, 1 - (1 - delta - false_positives) / factor))


def maker(method: str, schema: Schema, *, epsilon: float, draws: int, **options: Any) -> Make:
    """Fits a method of the house and draws rows, for `attack_output`."""

    def make(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        return fit(rows, schema, method=method, epsilon=epsilon, seed=seed, **options).sample(draws, seed=seed)

    return make


def attack_output(
    make: Make,
    rows: pd.DataFrame,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    attacks: Sequence[str] = ATTACKS,
    columns: Sequence[str] | None = None,
    targets: int = 2000,
    shadows: int = 16,
    seed: int = 0,
) -> tuple[Attacked, ...]:
    """Attacks what `make` gives, by every attack named, with targets that joined its table by a fair coin each.

    rows: real rows, cut in four: targets, rows that are always trained on, rows that the attacker knows, rows that
    stand in for the targets in the control. epsilon, delta: the claim of `make`; inf for none.
    columns: what attribute inference guesses (the label, or all columns, if left out).
    shadows: models of the attacker's own, on rows that they know, for the attack that needs them.

    Coins are what makes the bounds hold: whatever the other targets did, this one was in or out with equal chances.
    """
    _check(rows, attacks, shadows)
    rng = np.random.default_rng(seed)
    parts = np.array_split(rng.permutation(len(rows)), 4)
    asked, always, known_rows, spare = parts
    asked = asked[:targets]
    coins = rng.random(len(asked)) < 0.5
    view = open_table(rows, schema, role="real")
    encoder = Encoder.of(view)
    guessed = list(columns) if columns else [schema.label] if schema.label else list(view.facts)
    known = Known(encoder, view.take(asked), view.take(known_rows), tuple(guessed))
    train = np.concatenate([always, asked[coins]])
    control = np.concatenate([always, spare[: int(coins.sum())]])
    made = [
        open_table(make(rows.iloc[part], seed + n), schema, role="synthetic") for n, part in enumerate((train, control))
    ]
    found = []
    for attack in attacks:
        if attack == SHADOW:
            shadow = _shadows(make, rows, schema, known, asked, known_rows, count=shadows, rng=rng)
            scores = [shadow_scores(known, synthetic, *shadow) for synthetic in made]
        else:
            scores = [SCORES[attack](known, synthetic) for synthetic in made]
        outcomes = [measure(score, coins, epsilon=epsilon, delta=delta) for score in scores]
        sizes = int(coins.sum()), int((~coins).sum())
        found.append(Attacked(attack, epsilon, delta, *sizes, *outcomes, most_advantage(epsilon, delta)))
    return tuple(found)


def _check(rows: pd.DataFrame, attacks: Sequence[str], shadows: int) -> None:
    if len(rows) < FEWEST_ROWS:
        raise OptionError(f"rows must be at least {FEWEST_ROWS}, for four parts that tell something")
    unknown = [attack for attack in attacks if attack not in ATTACKS]
    if unknown:
        raise OptionError(f"attack {unknown[0]!r} is not known; choose from {', '.join(ATTACKS)}")
    if shadows < FEWEST_SHADOWS:
        raise OptionError(f"shadows must be at least {FEWEST_SHADOWS}, got {shadows}")


def _shadows(
    make: Make,
    rows: pd.DataFrame,
    schema: Schema,
    known: Known,
    asked: NDArray,
    known_rows: NDArray,
    *,
    count: int,
    rng: np.random.Generator,
) -> tuple[Scorer, NDArray, NDArray]:
    """Models that the attacker makes, of rows that they know and half of the targets each; their scores and coins."""
    scorer = SCORES["nearest"]
    coins = rng.permuted(np.tile(np.arange(count) % 2 == 0, (len(asked), 1)), axis=1).T  # each target in half of them
    scores = np.empty(coins.shape)
    for number, joined in enumerate(coins):
        part = np.concatenate([known_rows, asked[joined]])
        synthetic = open_table(make(rows.iloc[part], 10_000 + number), schema, role="synthetic")
        scores[number] = scorer(known, synthetic)
    return scorer, scores, coins


def measure(scores: NDArray, coins: NDArray, *, epsilon: float, delta: float) -> Outcome:
    """What scores tell of coins: thresholds come from every second target, rates from the others."""
    chosen, counted = np.arange(len(coins)) % 2 == 0, np.arange(len(coins)) % 2 == 1
    members, others = scores[chosen & coins], scores[chosen & ~coins]
    true, false = _rates(scores, coins, counted, best_threshold(members, others)[1])
    at = []
    for wanted in FALSE_POSITIVE_RATES:
        # The smallest threshold that lets at most this share of the other half's outsiders pass.
        allowed = int(wanted * len(others))
        threshold = np.nextafter(np.sort(others)[::-1][allowed], np.inf)
        hit, wrong = _rates(scores, coins, counted, threshold)
        bounds = (most_true_positives(epsilon, delta, rate) for rate in (wanted, wrong.high))
        at.append(AtRate(wanted, hit, wrong, *bounds))
    return Outcome(
        advantage=true.value - false.value,
        interval=(true.low - false.high, true.high - false.low),
        true=true,
        false=false,
        area=_area(scores[coins], scores[~coins]),
        at=tuple(at),
        epsilon_shown=one_run_lower_bound(scores, coins, delta, CONFIDENCE),
    )


def _rates(scores: NDArray, coins: NDArray, counted: NDArray, threshold: float) -> tuple[Rate, Rate]:
    passed = scores >= threshold
    return tuple(
        clopper_pearson(int(passed[counted & side].sum()), int((counted & side).sum())) for side in (coins, ~coins)
    )


def clopper_pearson(hits: int, trials: int, confidence: float = CONFIDENCE) -> Rate:
    """The exact interval of a binomial rate.

    >>> rate = clopper_pearson(0, 100)
    >>> rate.value, rate.low, round(rate.high, 4)
    (0.0, 0.0, 0.0362)
    """
    from scipy.stats import beta

    level = (1 - confidence) / 2
    low = float(beta.ppf(level, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - level, hits + 1, trials - hits)) if hits < trials else 1.0
    return Rate(hits, trials, hits / trials, low, high)


def _area(members: NDArray, others: NDArray) -> float:
    """AUC: the chance that a member scores above another row, ties counting half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left") + np.searchsorted(ordered, members, side="right")
    return float(below.mean() / (2 * len(others)))


def _strict(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _strict(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_strict(value) for value in data]
    return "inf" if isinstance(data, float) and math.isinf(data) else data
