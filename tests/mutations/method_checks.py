"""Checks that mutations are held against, as functions that raise: of choices, of critics, of whole methods."""

from collections.abc import Callable

import numpy as np
from scipy.stats import chisquare

from understudy.auditing import conformance_checks, conformance_outside
from understudy.auditing.trial import Trial
from understudy.privacy import Budget, Ledger, Streams, select
from understudy.synthesizers.api import method_module


def conforms(method: str, check: str) -> Callable[[], object]:
    """One check of the conformance suite on one method."""
    where = conformance_checks if hasattr(conformance_checks, check) else conformance_outside

    def run(trial: Trial | None = None) -> object:
        return getattr(where, check)(trial or Trial(method_module(method)))

    run.__name__ = f"{check} of {method}"
    run.method = method
    return run


def check_choices(streams: Streams | None = None, draws: int = 4000) -> None:
    """Candidates are picked with the exponential mechanism's chances: equal ones equally often, wherever they stand."""
    streams = streams or Streams.from_seed(5)
    for scores in ([0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 2.0]):
        ledger = Ledger(Budget(np.inf, 1e-6))
        given = {"sensitivity": 1.0, "epsilon": 1.0, "monotone": True, "ledger": ledger, "purpose": "x"}
        picked = [select(np.array(scores), streams=streams, **given) for _ in range(draws)]
        chances = np.exp(scores) / np.exp(scores).sum()
        found = np.bincount(picked, minlength=len(scores))
        assert chisquare(found, draws * chances).pvalue > 1e-6, f"picked {found} with chances {chances}"


def check_asked_leaves_no_trace() -> None:
    """Who was asked changes no critic."""
    import test_gs_wgan as gs

    game, facts = gs.trainer.make_game(gs.Config(**gs.QUICK), gs.ASKING, gs.layout_of(), None)
    codes, slice_of = gs.rows_of(30), np.arange(30) % gs.CRITICS
    two = [gs.transcript(game, facts, codes, slice_of, who, numbers=gs.SILENT) for who in ([0, 1], [3, 3])]
    assert all(gs.same(*two, number) for number in range(gs.CRITICS)), "a critic knows that it was asked"


def check_row_reaches_its_critic_alone() -> None:
    """A row more changes the critic of its own slice, and no other."""
    import test_gs_wgan as gs

    game, facts = gs.trainer.make_game(gs.Config(**gs.QUICK), gs.ASKING, gs.layout_of(), None)
    codes, slice_of = gs.rows_of(30), np.arange(30) % gs.CRITICS
    more = np.insert(codes, 3, [7, 2, 1], axis=0), np.insert(slice_of, 3, 0)
    two = [gs.transcript(game, facts, *given, [0, 1], numbers=gs.SILENT) for given in ((codes, slice_of), more)]
    assert all(gs.same(*two, number) for number in range(1, gs.CRITICS)), "a row reached another critic"
