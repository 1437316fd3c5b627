"""What a long training says while it runs."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from understudy.privacy import Event, Ledger

if TYPE_CHECKING:
    from understudy.training.dpsgd import DpSgd

ASK_EVERY = 0.1  # of the steps: accounting takes a moment


def spent_so_far(plan: "DpSgd", ledger: Ledger) -> Callable[[int], str]:
    """For `loop.run`: epsilon of what came before and of the steps done, from public numbers alone.

    Call it before the plan is charged. The bound by Renyi DP is quick and a little above the certificate's.
    """
    before: tuple[Event, ...] = ledger.events
    told = {"at": -1.0, "note": "no privacy"}

    def note(steps: int) -> str:
        if ledger.budget.private and steps / plan.steps >= told["at"] + ASK_EVERY:
            spent = min(plan.spent(steps, ledger.budget.delta, before), ledger.budget.epsilon)
            told.update(at=steps / plan.steps, note=f"epsilon {spent:.3g} so far")
        return str(told["note"])

    return note
