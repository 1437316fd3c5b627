"""Does a method keep to the house's contract, and do its rows reach the outside through paid noise alone?

For whoever writes a method: run it on the first day, and again after every change. It looks for the mistakes that
published code has made. That it finds none is no proof: the proof stands in the method's docstring.
"""

import importlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import Any

from understudy.auditing import conformance_checks as checks
from understudy.auditing import conformance_outside as outside
from understudy.auditing.conformance_checks import CannotTellError, FailedError
from understudy.auditing.grounds import PICTURES, TABLES
from understudy.auditing.trial import Trial
from understudy.errors import OptionError, SchemaError
from understudy.synthesizers.api import METHODS, method_module

PASSED, FAILED, CANNOT_TELL = "passed", "failed", "cannot tell"
REFUSED = "the method refuses the trial's schema"


@dataclass(frozen=True)
class Check:
    """Something that must hold of every method: why, and what to do where it does not."""

    name: str
    why: str
    remedy: str
    run: Callable[[Trial], str]
    thorough: bool = False


@dataclass(frozen=True)
class Checked:
    """What came of one check."""

    name: str
    outcome: str
    found: str
    why: str
    remedy: str
    seconds: float


@dataclass(frozen=True)
class Conformance:
    """What came of all checks on one method; `ok` unless one failed."""

    method: str
    checks: tuple[Checked, ...]

    @property
    def ok(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(check.name for check in self.checks if check.outcome == FAILED)

    @property
    def unknown(self) -> tuple[str, ...]:
        return tuple(check.name for check in self.checks if check.outcome == CANNOT_TELL)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"method": self.method, "ok": self.ok, "checks": [asdict(check) for check in self.checks]}


CHECKS = (
    Check(
        "contract",
        "fit, the command line and model files call every method in the same way",
        "give the module NAME, SUMMARY, Config, Released and train as docs/architecture.md says",
        checks.check_contract,
    ),
    Check(
        "config",
        "settings are public and fixed: nothing may be written into them while rows are in reach",
        "make Config a frozen dataclass; every option has a default and a line `name: what it is` in the docstring",
        checks.check_config,
    ),
    Check(
        "charges",
        "every use of the rows is charged, for as often as it happened, within the budget that was given",
        "charge the plan's own event before it starts; prepay loops; use the budget that train is given",
        checks.check_charges,
    ),
    Check(
        "certificate",
        "anyone must be able to recompute the claim from the entries",
        "return the ledger that was charged, with nothing taken out of it",
        checks.check_certificate,
    ),
    Check(
        "shapes",
        "an array as long as the values that occur, or as wide as the largest, tells of single rows",
        "take bounds, values, bins and types from the schema, or from released numbers; never from rows",
        checks.check_shapes,
    ),
    Check(
        "noise first",
        "what was released with noise may be used for anything; what was not must not leave at all",
        "let values of rows leave through privacy.mechanisms or training.loop alone; make the rest of their answers",
        checks.check_answers_only,
    ),
    Check(
        "sensitivity",
        "noise hides a row only if the row moves the values no further than the noise was told",
        "work out the L2 distance between neighbours for adding one row, over everything that is noised together",
        checks.check_sensitivity,
    ),
    Check(
        "clipping",
        "training hides a row only if the row's gradient, over all weights together, is no longer than the clip norm",
        "pass ghost.clipped_sum of a loss that is each row's own to Numbers.noisy_mean, all tensors in one call",
        checks.check_clipping,
    ),
    Check(
        "said",
        "progress, warnings and prints are read by others, and no noise covers them",
        "say nothing that was computed from rows and not released; no losses on real rows, no counts",
        outside.check_said,
    ),
    Check(
        "errors",
        "a message that quotes a cell is a leak with a timestamp",
        "name the column and the rule, never the value; raise ... from None",
        outside.check_errors,
    ),
    Check(
        "no rows inside",
        "a model file that holds training rows is the table under another name",
        "keep released values alone in Released",
        outside.check_no_row,
    ),
    Check(
        "no seed inside",
        "whoever has the seed subtracts the noise",
        "keep no state of the streams: not init, not a generator's state",
        outside.check_no_seed,
    ),
    Check(
        "repeatable",
        "noise from anywhere but the streams is noise that nobody has checked",
        "draw from the streams alone: noise, sampling and init",
        outside.check_repeatable,
    ),
    Check(
        "file",
        "a model must come back from its file as it was, and sample the same rows",
        "make from_parts the inverse of arrays and facts, and let sample draw from its generator alone",
        outside.check_file,
    ),
    Check(
        "without privacy",
        "epsilon=inf runs the same code without noise, and promises nothing",
        "pass multipliers of 0 on to the mechanisms, which charge NonPrivate",
        outside.check_infinite,
    ),
    Check(
        "odd tables",
        "an error that only some tables cause tells of the rows, and tables are odd",
        "expect one row, constant columns, missing cells, and classes without rows",
        outside.check_odd_tables,
    ),
    Check(
        "game",
        "whoever guesses from many releases whether a row was there must not win more often than the claim allows",
        "halve the claim by twos until the game is lost: the factor says what is missing",
        outside.check_game,
        thorough=True,
    ),
)


def conform(
    method: str | ModuleType, *, thorough: bool = False, options: Mapping[str, Any] | None = None
) -> Conformance:
    """Runs all checks against a method: a registered name, the dotted name of a module, or the module itself.

    Tables are made up and small, and options that are known to make a fit short are set (`options` sets others
    instead), so that the whole takes seconds for a method of counts and about a minute for one that trains networks.
    thorough: plays a distinguishing game as well, which takes hundreds of fits. A method that says IMAGES is tried on
    tables of images too; where it takes one of the two kinds alone, that is what it is judged by.

    >>> found = conform("independent")
    >>> found.ok, found.unknown
    (True, ())
    """
    module = find_method(method)
    grounds = (TABLES, PICTURES) if getattr(module, "IMAGES", False) else (TABLES,)
    trials = [Trial(module, options, ground) for ground in grounds]
    done: list[Checked] = []
    for check in CHECKS:
        if check.thorough and not thorough:
            continue
        start = time.perf_counter()
        if any(one.name == "contract" and one.outcome == FAILED for one in done):
            outcome, found = CANNOT_TELL, "the contract is not kept, so nothing can be run"
        else:
            outcome, found = _together({trial.ground.name: outcome_of(check.run, trial) for trial in trials})
        seconds = round(time.perf_counter() - start, 3)
        done.append(Checked(check.name, outcome, found, check.why, check.remedy, seconds))
    return Conformance(str(getattr(module, "NAME", getattr(module, "__name__", "a method"))), tuple(done))


def _together(outcomes: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """One outcome of those on several kinds of tables: the worst, without kinds that the method does not take.

    >>> _together({"tables": (PASSED, "5 arrays"), "images": (FAILED, "a pixel leaves")})
    ('failed', 'on images: a pixel leaves')
    >>> _together({"tables": (CANNOT_TELL, REFUSED), "images": (PASSED, "3 arrays")})
    ('passed', '3 arrays')
    """
    taken = {name: said for name, said in outcomes.items() if not said[1].startswith(REFUSED)} or outcomes
    worst = next(one for one in (FAILED, CANNOT_TELL, PASSED) if one in {outcome for outcome, _ in taken.values()})
    told = {name: found for name, (outcome, found) in taken.items() if outcome == worst}
    if len(taken) == 1 or len(set(told.values())) == 1 < len(told):
        return worst, next(iter(told.values()))
    return worst, "; ".join(f"on {name}: {found}" for name, found in told.items())


def outcome_of(run: Callable[[Trial], str], trial: Trial) -> tuple[str, str]:
    """(outcome, what was found). Tables here are made up, so that an unexpected error may be told in full."""
    try:
        return PASSED, run(trial)
    except FailedError as error:
        return FAILED, str(error)
    except CannotTellError as error:
        return CANNOT_TELL, str(error)
    except SchemaError as error:
        return CANNOT_TELL, f"{REFUSED}: {error}"
    except Exception as error:
        return FAILED, f"ended with {type(error).__name__}: {error}"


def find_method(method: str | ModuleType) -> Any:
    """The module that is meant."""
    if not isinstance(method, str):
        return method
    if method in METHODS or "." not in method:
        return method_module(method)
    try:
        return importlib.import_module(method)
    except ModuleNotFoundError as error:
        raise OptionError(
            f"method {method!r}: there is no module {error.name!r}; give a registered name or a module that can be "
            "imported from here (set PYTHONPATH)"
        ) from None
    except Exception as error:
        raise OptionError(f"method {method!r}: importing it ended with {type(error).__name__}: {error}") from None
