"""What must hold of a method's contract, charges and use of rows: functions that say what they found, or raise."""

import dataclasses
import inspect
import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from understudy.auditing.grounds import alike
from understudy.auditing.transcript import LOOP, Choice, DivergedError, Release, Training, Words, wired
from understudy.auditing.trial import BUDGET, Run, Trial
from understudy.privacy import (
    BoundedRange,
    Event,
    Gaussian,
    Ledger,
    Parallel,
    SelfComposed,
)
from understudy.privacy.events import PureDp
from understudy.privacy.ledger import TOLERANCE
from understudy.synthesizers import model_file
from understudy.synthesizers.api import settings_of

ROUNDING = 1 + 1e-9
MOST_LEAVES = 100_000
TRAIN = ["config", "schema", "table", "budget", "streams", "progress"]


class FailedError(Exception):
    """The method does not keep to what is asked, and how that shows."""


class CannotTellError(Exception):
    """This way of looking does not show it, for the reason given."""


def need(ok: bool, otherwise: str) -> None:
    if not ok:
        raise FailedError(otherwise)


# --- the contract ---


def check_contract(trial: Trial) -> str:
    """NAME, SUMMARY, Config, Released, train and check are there, and are called as `fit` calls them."""
    module = trial.module
    for name in ("NAME", "SUMMARY"):
        need(isinstance(getattr(module, name, None), str) and getattr(module, name) != "", f"{name} must be a text")
    need(dataclasses.is_dataclass(getattr(module, "Config", None)), "Config must be a dataclass")
    need(callable(getattr(module, "train", None)), "there must be a function train")
    parameters = inspect.signature(module.train).parameters
    need(list(parameters) == TRAIN, f"train must take ({', '.join(TRAIN[:4])}, *, streams, progress)")
    named = [name for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    need(named == TRAIN[4:], "streams and progress must be keyword-only")
    if hasattr(module, "check"):
        need(
            list(inspect.signature(module.check).parameters) == [*TRAIN[:2], "budget"],
            "check must take (config, schema, budget)",
        )
    need(callable(getattr(getattr(module, "Released", None), "from_parts", None)), "Released must have from_parts")
    return "NAME, SUMMARY, Config, Released, train" + (", check" if hasattr(module, "check") else "")


def check_config(trial: Trial) -> str:
    """Frozen, with a default and a word of explanation for every option."""
    kind = trial.module.Config
    need(kind.__dataclass_params__.frozen, "Config is not frozen")
    options = dataclasses.fields(kind)
    bare = [o.name for o in options if o.default is dataclasses.MISSING and o.default_factory is dataclasses.MISSING]
    need(not bare, f"no default for {', '.join(bare)}")
    told = "\n".join(inspect.cleandoc(base.__doc__ or "") for base in kind.__mro__)
    silent = [o.name for o in options if not re.search(rf"^{o.name}: .+$", told, flags=re.MULTILINE)]
    need(not silent, f"the docstring says nothing of {', '.join(silent)}")
    return f"frozen; {len(options)} options, each with a default and a word"


# --- charges ---


def check_charges(trial: Trial) -> str:
    """Trainings are charged as planned, releases and choices are no more than were paid, all within the budget."""
    run = trial.transcripts.usual  # what it trains with is loaded by then, and watched
    ledger = run.ledger
    need(isinstance(ledger, Ledger), f"train must give back the Ledger, got {type(ledger).__name__}")
    need(ledger.budget == BUDGET, "the ledger has another budget than the one that was given")
    need(bool(ledger.entries), "nothing was charged")
    need(ledger.spent() <= BUDGET.epsilon * (1 + 2 * TOLERANCE), "more was spent than the budget allows")
    left, trainings = _paid_for_releases(run)
    paid_for = [leaf for event in left for branch in branches(event) for leaf in leaves(branch)]
    strange = sorted(
        {type(leaf).__name__ for leaf in paid_for if not isinstance(leaf, Gaussian | BoundedRange | PureDp)}
    )
    for asked, paid in ((Release, Gaussian), (Choice, BoundedRange | PureDp)):
        drawn = sum(isinstance(one, asked) for one in run.asked)
        charged = sum(isinstance(leaf, paid) for leaf in paid_for)
        if drawn > charged and strange:
            raise CannotTellError(f"whether {', '.join(strange)} pays for what was drawn cannot be seen from here")
        need(drawn <= charged, f"{drawn} {asked.__name__.lower()}s were drawn, {charged} were charged")
    words = sum(one.count for one in run.asked if isinstance(one, Words))
    if words and strange:
        raise CannotTellError(f"{words} words of compiled noise were drawn outside of training.loop")
    releases = sum(isinstance(one, Release | Choice) for one in run.asked)
    return f"epsilon {ledger.spent():.4g} of {BUDGET.epsilon:g}: {releases} releases and choices, {trainings} trainings"


def _paid_for_releases(run: Run) -> tuple[list[Event], int]:
    """The charged events less those of compiled trainings, each of which must be there as planned; and how many."""
    left = [entry.event for entry in run.ledger.entries]
    used: list[tuple[Event, list[Event]]] = []
    trainings = [one.event for one in run.asked if isinstance(one, Training)]
    for event in trainings:
        # Trainings on disjoint parts of the rows take one branch each of what was charged in parallel.
        branch = next((rest for _, rest in used if event in rest), None)
        if branch is None:
            owner = next((paid for paid in left if event in branches(paid)), None)
            need(owner is not None, f"a training of {event} was run, and is not among the charges")
            left.remove(owner)
            branch = list(branches(owner))
            used.append((owner, branch))
        branch.remove(event)
    return left, len(trainings)


def branches(event: Event) -> tuple[Event, ...]:
    return event.events if isinstance(event, Parallel) else (event,)


def leaves(event: Event) -> list[Event]:
    if not isinstance(event, SelfComposed):
        return [event]
    return (leaves(event.event) * event.count)[:MOST_LEAVES]


def check_certificate(trial: Trial) -> str:
    """The claim follows from the entries, and belongs to these arrays."""
    certificate = trial.certificate(trial.base)
    arrays = model_file.certified_arrays(trial.base.arrays, trial.base.facts, settings_of(trial.config))
    wrong = [f for f in certificate.check(arrays=arrays, schema_digest=trial.schema.digest()) if not f.ok]
    need(not wrong, "; ".join(f"{finding.what}: {finding.detail}" for finding in wrong))
    return f"epsilon {certificate.epsilon:.4g} at delta {certificate.delta:g}, recomputed"


# --- what the rows can do ---


def transcripts_of(trial: Trial, kind: str) -> Iterable[tuple[str, Run]]:
    for what, run in getattr(trial.transcripts, kind).items():
        if isinstance(run, DivergedError):
            raise FailedError(f"with the same answers, {what} made it ask for {run}")
        yield what, run


def check_shapes(trial: Trial) -> str:
    """With the same answers, names, types and shapes of arrays are the same for every table."""
    usual = {name: (array.dtype.str, array.shape) for name, array in trial.transcripts.usual.arrays.items()}
    for what, run in transcripts_of(trial, "far"):
        other = {name: (array.dtype.str, array.shape) for name, array in run.arrays.items()}
        need(set(other) == set(usual), f"{what}: the names of arrays differ")
        for name, form in other.items():
            need(form == usual[name], f"{what}: array {name!r} is {form}, and {usual[name]} for the usual table")
    return f"{len(usual)} arrays of the same types and shapes for all tables"


def check_answers_only(trial: Trial) -> str:
    """With the same answers, another table changes no bit of the model and nothing of the charges."""
    usual = trial.transcripts.usual
    hidden = any(isinstance(asked, Words) for asked in usual.asked)
    for what, run in transcripts_of(trial, "far"):
        need(run.ledger.events == usual.ledger.events, f"{what}: other charges, so that the charge tells of the rows")
        changed = [name for name, array in run.arrays.items() if not same(array, usual.arrays.get(name))]
        changed += [f"fact {name}" for name in run.facts if not same(run.facts[name], usual.facts.get(name))]
        if changed and hidden:
            raise CannotTellError(f"{what} changes {changed[0]!r}, and compiled noise of its own may be why")
        need(not changed, f"{what} changes {', '.join(map(repr, changed[:3]))} though all answers are the same")
        # What a training keeps to itself (an encoder, an optimiser) decides later gradients, and so must be noised too.
        kept = [[a.state for a in one.asked if isinstance(a, Training)] for one in (run, usual)]
        need(_same_states(*kept), f"{what} changes the state of a training past its noise")
    return f"the model is the same bit for bit on {len(trial.transcripts.far)} other tables with the same answers"


def _same_states(one: list[tuple[np.ndarray, ...]], other: list[tuple[np.ndarray, ...]]) -> bool:
    pairs = [(a, b) for first, second in zip(one, other, strict=True) for a, b in zip(first, second, strict=True)]
    return all(same(a, b) for a, b in pairs)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return other is not None and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def check_sensitivity(trial: Trial) -> str:
    """One row more moves every released value and score by no more than its noise was charged for."""
    usual, most, seen = trial.transcripts.usual, 0.0, 0
    left, _ = _paid_for_releases(usual)
    # A row lies in one of several parallel parts: what moves must be paid by one branch.
    paid_for = [leaf for event in left for leaf in leaves(branches(event)[0])]
    multipliers = sorted(leaf.noise_multiplier for leaf in paid_for if isinstance(leaf, Gaussian))
    epsilons = sorted((leaf.epsilon for leaf in paid_for if isinstance(leaf, BoundedRange | PureDp)), reverse=True)
    for what, run in transcripts_of(trial, "neighbours"):
        pairs = list(zip(usual.asked, run.asked, strict=True))
        moves = sorted(_moves(pairs), reverse=True)
        spans = sorted(_spans(pairs), reverse=True)
        seen += len(moves) + len(spans)
        for needed, paid in ((moves, [1 / z for z in multipliers]), (spans, epsilons)):
            need(len(needed) <= len(paid), f"{what} moves {len(needed)} of the questions, {len(paid)} are paid")
            for one, allowed in zip(needed, paid, strict=False):
                most = max(most, one / allowed)
                need(one <= allowed * ROUNDING, f"{what} moves a value {one / allowed:.4g} times as far as is charged")
    if not seen:
        if any(isinstance(asked, Training) for asked in usual.asked):
            return "nothing is released outside of training.loop, which clips"
        raise CannotTellError("no release moved: nothing was asked through privacy.mechanisms, or rows are not read")
    return f"{seen} moved questions on {len(trial.transcripts.neighbours)} neighbours; the most uses {most:.1%}"


def check_clipping(trial: Trial) -> str:
    """The gradient of a table of one row is never longer than the clip norm that its noise was made for."""
    usual = trial.transcripts.usual
    if not _trainings(usual):
        return "trains nothing by training.loop"
    with wired():
        # Told what the usual table was told, so that it trains as much: a class of one row would not be learnt.
        alone = {
            what: trial.run(trial.ground.table(alike(row, 1)), answers=usual.asked)
            for what, row in trial.ground.extremes.items()
        }
    for what, run in alone.items():
        if len(_trainings(run)) != len(_trainings(usual)):
            raise CannotTellError(f"{what} alone is not trained on as the usual table is")
        broken = any("overflowed" in line for line in run.said)
        need(not broken, f"{what} alone has a gradient longer than the clip norm, or one that is not finite")
    return f"gradients of {len(alone)} single rows stay within the clip norm"


def _trainings(run: Run) -> list[Training]:
    return [asked for asked in run.asked if isinstance(asked, Training) and asked.by == LOOP]


def _moves(pairs: Iterable[tuple[Any, Any]]) -> list[float]:
    """How far each release moved, in units of its noise's standard deviation, where it moved."""
    found = [
        float(np.linalg.norm((after.values - before.values).astype(float))) / max(before.scale, 1e-300)
        for before, after in pairs
        if isinstance(before, Release)
    ]
    return [move for move in found if move > 0]


def _spans(pairs: Iterable[tuple[Any, Any]]) -> list[float]:
    """Over which width the log-ratios of each choice's chances spread, where they do."""
    found = [
        float(np.ptp((after.scores - before.scores) / before.scale))
        for before, after in pairs
        if isinstance(before, Choice)
    ]
    return [span for span in found if span > 0]
