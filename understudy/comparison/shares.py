"""Who gets which part of one budget: candidates equal shares, the choice between them a tenth. Public facts alone."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.comparison.simulated import simulated_codes
from understudy.errors import BudgetError, UnderstudyError
from understudy.privacy import BoundedRange, Budget, Event, Ledger, Streams, gaussian_epsilon, noise_multiplier
from understudy.privacy.accountant import epsilon as composed_epsilon
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers import api
from understudy.table.table import Table

# Of the budget's precision (1/z^2, which is what adds up): the choice is between few candidates and needs little.
CHOICE_SHARE = 0.1
# Left over, so that a candidate whose releases compose a little worse than Gaussians still fits beside the others.
SPARE_SHARE = 0.02
REHEARSAL_ROWS = 200
REHEARSALS = 3


@dataclass(frozen=True)
class Shares:
    """The candidates that can be fitted, the budget that each of them gets, and the epsilon planned for the choice."""

    names: tuple[str, ...]
    each: Budget
    choice: float


def share_out(
    configs: Mapping[str, Any], schema: Schema, budget: Budget, *, leave_out: bool, progress: Progress = silent
) -> Shares:
    """Shares of the budget, after rehearsals on made-up rows; with `leave_out`, without those that refuse there.

    The rule: noise precision 1/z^2 adds up over Gaussian releases, and nearly so over whatever else is concentrated.
    A tenth of it is the choice's, 2 % stay spare, the rest is shared equally, at the budget's own delta. What the
    candidates charge under such a share shows in a rehearsal. If it does not fit together, their shares shrink in
    proportion, twice at most. Releases that are not concentrated at all (pure epsilon-DP ones) get 0.9/k of epsilon and
    of delta each, and the choice 0.1 of epsilon, which holds for any by basic composition.
    """
    names = tuple(configs)
    if not budget.private:
        events = _rehearse({name: configs[name] for name in names}, schema, budget, leave_out, progress)
        return Shares(tuple(events), budget, math.inf)
    multiplier = noise_multiplier(budget)
    # Bounded range epsilon is epsilon^2/8-zCDP, as is a Gaussian of precision epsilon^2/4 (Cesar & Rogers 2021).
    choice = 2 * math.sqrt(CHOICE_SHARE) / multiplier
    precision = 1 - CHOICE_SHARE - SPARE_SHARE
    for _ in range(REHEARSALS):
        epsilon = gaussian_epsilon(multiplier / math.sqrt(precision / len(names)), budget.delta)
        if epsilon == 0:
            break  # so small a budget is all delta, which shares of precision do not divide
        each = Budget(epsilon, budget.delta)
        charged = _rehearse({name: configs[name] for name in names}, schema, each, leave_out, progress)
        if len(charged) < len(names):
            names = tuple(charged)
            continue  # more for each of those that are left
        events = [event for own in charged.values() for event in own]
        total = composed_epsilon([*events, BoundedRange(choice)], budget.delta).value
        if total <= budget.epsilon:
            return Shares(names, each, choice)
        precision *= 0.98 * min(budget.epsilon / total, 1.0) ** 2
    rest = 1 - CHOICE_SHARE
    basic = Budget(rest * budget.epsilon / len(names), rest * budget.delta / len(names))
    charged = _rehearse({name: configs[name] for name in names}, schema, basic, leave_out, progress)
    choice = CHOICE_SHARE * budget.epsilon
    # What `choice_epsilon` would refuse after the fits is refused before a row is read.
    events = [event for own in charged.values() for event in own]
    if composed_epsilon([*events, BoundedRange(choice / 2)], budget.delta).value > budget.epsilon:
        raise BudgetError(
            f"epsilon {budget.epsilon:g} is too small to share among {len(charged)} methods at delta "
            f"{budget.delta:g}; raise it, or take fewer methods"
        )
    return Shares(tuple(charged), basic, choice)


def _rehearse(
    configs: Mapping[str, Any], schema: Schema, budget: Budget, leave_out: bool, progress: Progress
) -> dict[str, Sequence[Event]]:
    """What each candidate charges under this budget, from a fit to a few made-up rows."""
    table = Table.from_codes(schema, simulated_codes(schema, REHEARSAL_ROWS))
    charged: dict[str, Sequence[Event]] = {}
    refusal: UnderstudyError | None = None
    for number, (name, config) in enumerate(configs.items()):
        progress(f"rehearsing {name} on made-up rows", number / len(configs))
        module = api.method_module(name)
        try:
            api.check_plan(module, config, schema, budget)
            _, ledger = api.train_method(
                module, config, schema, table, budget, streams=Streams.from_seed(number), progress=silent
            )
            charged[name] = ledger.events
        except UnderstudyError as error:
            if not leave_out:
                raise
            refusal = error
            warnings.warn(f"{name} is no candidate: {error}", stacklevel=4)
    if not charged and refusal is not None:
        raise refusal
    return charged


def choice_epsilon(ledger: Ledger, planned: float) -> float:
    """The planned epsilon of the choice, or as much of it as the candidates left; less than half is refused."""
    if not ledger.budget.private or _fits(ledger, planned):
        return planned
    low, high = 0.0, planned
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if _fits(ledger, middle) else (low, middle)
    if low < planned / 2:
        raise BudgetError(
            f"the candidates left too little of epsilon {ledger.budget.epsilon:g} to choose between them; raise it, "
            "or take fewer methods (nothing was released)"
        )
    return low


def _fits(ledger: Ledger, epsilon: float) -> bool:
    events = [*ledger.events, BoundedRange(epsilon)]
    return composed_epsilon(events, ledger.budget.delta).value <= ledger.budget.epsilon
