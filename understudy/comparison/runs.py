"""Methods by epsilons by repeats on one table, or on tables made from its schema."""

import math
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from understudy import __version__
from understudy.comparison.grid import Cell, Job, jobs_of
from understudy.comparison.processes import Question, run_cells
from understudy.comparison.result import Comparison, Setting
from understudy.comparison.state import open_state
from understudy.comparison.tables import MOST_HELD_BACK, check_holdout, split_rows
from understudy.errors import OptionError
from understudy.progress import Progress, silent
from understudy.schema import Schema
from understudy.synthesizers import api, auto

EPSILONS = (0.5, 1.0, 3.0)
REPEATS = 3


def compare(
    source: Any,
    schema: Schema | str | os.PathLike[str],
    *,
    methods: Sequence[str] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    seeds: int = REPEATS,
    holdout: Any = None,
    delta: float | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    which: str = "fast",
    jobs: int = 2,
    limit: float | None = None,
    seed: int | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Fits every method at every epsilon `seeds` times, each in a process of its own, and measures the rows they make.

    source: a path, DataFrame, Arrow table or Table; None compares on tables made from the schema alone, another one for
    each repeat. methods: names, all registered ones if left out (with images: those that make images). holdout: real
    rows that no fit sees, as a table or as the share to split off (a quarter). options: options by method. which:
    "fast" or "full" metrics. limit: seconds for one cell. seed: repeatable noise; left out, it comes from the operating
    system. state: a file that keeps finished cells, from which a later call with the same table goes on (tables on disk
    and simulated ones alone).

    Nothing of this is covered by a guarantee: figures come from real rows, and choosing by them is a use of the rows
    that no certificate counts. They are for the data steward. `choose` makes the choice under the budget, and
    `source=None` makes it without private rows.
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    api.check_confirmed(schema)
    if methods is None and schema.images:
        methods = [name for name in api.METHODS if getattr(api.method_module(name), "IMAGES", False)]
    methods, options = check_methods(methods, options)
    budgets = [api.make_budget(schema, epsilon, delta) for epsilon in check_epsilons(epsilons)]
    _check_numbers(seeds=seeds, jobs=jobs, limit=limit, seed=seed, which=which)
    if source is None and holdout is not None:
        raise OptionError("holdout belongs to a real table; simulated tables bring fresh rows of their own")
    share = check_holdout(holdout)
    kept = open_state(None if state is None else Path(state), _table_facts(source, share, state), schema.digest())
    table = kept.fingerprint(*_table_facts(source, share, state))
    wanted = list(
        jobs_of(
            methods,
            [budget.epsilon for budget in budgets],
            seeds,
            options,
            delta=budgets[0].delta,
            seed=seed,
            which=which,
            table=table,
            schema=schema.digest(),
            version=__version__,
        )
    )
    done = {job: cell for job in wanted if (cell := kept.had(job, limit)) is not None}
    missing = [job for job in wanted if job not in done]
    if missing:
        if source is not None:
            progress("reading the table", 0.0)
        rows = b"" if source is None else split_rows(source, schema, share, kept.coins if seed is None else seed).pack()
        questions = [_question(job, schema, rows) for job in missing]
        with closing(_run(questions, len(done), jobs, limit, progress)) as ended:
            for job, cell in ended:
                done[job] = cell
                kept.keep(job, cell)
    setting = Setting(
        table=_name(source),
        simulated=source is None,
        methods=tuple(methods),
        epsilons=tuple(budget.epsilon for budget in budgets),
        repeats=seeds,
        delta=budgets[0].delta,
        which=which,
        label=schema.label,
        holdout=_holdout_words(source, share),
        seeded=seed is not None,
        jobs=jobs,
        limit=limit,
        version=__version__,
        options=options,
    )
    return Comparison(setting, tuple(done[job] for job in wanted))


def check_methods(
    methods: Sequence[str] | None, options: Mapping[str, Mapping[str, Any]] | None
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Known methods, each once, and options that they take."""
    if isinstance(methods, str):
        raise OptionError(f"methods must be a list of names, got the text {methods!r}")
    names = list(dict.fromkeys(api.METHODS if methods is None else methods))
    if not names:
        raise OptionError(f"methods must name at least one of {', '.join(api.METHODS)}")
    modules = {name: api.method_module(name) for name in names if name != auto.NAME}
    given = {name: dict(chosen) for name, chosen in (options or {}).items()}
    for name, chosen in given.items():
        if name not in modules:
            if name != auto.NAME:
                api.method_module(name)
            raise OptionError(f"options are given for {name!r}, which takes none or is not compared; leave them out")
        api.make_config(modules[name], chosen)
    return names, given


def check_epsilons(epsilons: Sequence[float]) -> list[float]:
    """Numbers, each once, smallest first; whether they are in range is the budget's to say."""
    if isinstance(epsilons, int | float):
        epsilons = [epsilons]
    found = []
    for epsilon in epsilons:
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or math.isnan(epsilon):
            raise OptionError(f"epsilon must be a number above 0, or inf, got {epsilon!r}")
        found.append(float(epsilon))
    if not found:
        raise OptionError("epsilons must hold at least one number, such as 0.5, 1 and 3")
    return sorted(set(found))


def _check_numbers(*, seeds: int, jobs: int, limit: float | None, seed: int | None, which: str) -> None:
    for name, value in (("seeds", seeds), ("jobs", jobs)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(f"{name} must be a whole number of at least 1, got {value!r}")
    if limit is not None and not limit > 0:
        raise OptionError(f"limit must be a number of seconds above 0, got {limit!r}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise OptionError(f"seed must be a whole number from 0, got {seed!r}")
    if which not in ("fast", "full"):
        raise OptionError(f"which must be fast or full, got {which!r}")


def _table_facts(source: Any, holdout: Any, state: Any) -> list[object]:
    """What tells tables apart in a state file: size and date of files, never what they hold."""
    if source is None:
        return ["simulated"]
    facts: list[object] = []
    for given in (source, holdout):
        if isinstance(given, float):
            facts.append(given)
        elif isinstance(given, str | os.PathLike) and os.path.exists(given):
            files = [given, *Path(given).rglob("*")] if os.path.isdir(given) else [given]
            about = [os.stat(file) for file in files]
            size, latest = sum(each.st_size for each in about), max(each.st_mtime_ns for each in about)
            facts.append((size, latest) if len(about) == 1 else (size, latest, len(about)))
        elif state is not None and not isinstance(given, str | os.PathLike):
            raise OptionError("state needs tables that are files, whose size and date tell them apart; leave state out")
    return facts


def _question(job: Job, schema: Schema, rows: bytes) -> Question:
    header = {
        "schema": schema.dumps(style="json"),
        "method": job.method,
        "epsilon": "inf" if math.isinf(job.epsilon) else job.epsilon,
        "delta": job.delta,
        "seed": job.seed,
        "options": dict(job.options),
        "which": job.which,
        "simulated": job.repeat,
    }
    return job, header, rows


def _run(
    questions: Sequence[Question], before: int, parallel: int, limit: float | None, progress: Progress
) -> Iterator[tuple[Job, Cell]]:
    """Cells as they end, telling how far it is and how long still."""
    total, ended = before + len(questions), 0
    begin = time.monotonic()
    took: dict[str, list[float]] = {}
    began: dict[Job, float] = {}
    left = [job for job, _, _ in questions]

    def tell(running: Sequence[Job]) -> None:
        for job in running:
            began.setdefault(job, time.monotonic())
        names = ", ".join(job.words() for job in running)
        still = _still(left, took, parallel)
        progress(f"{before + ended} of {total} fits", (before + ended) / total, "; ".join(filter(None, (names, still))))

    for job, cell in run_cells(questions, parallel=parallel, limit=limit, looking=tell):
        ended += 1
        left.remove(job)
        took.setdefault(job.method, []).append(time.monotonic() - began.get(job, begin))
        yield job, cell
    progress(f"{total} of {total} fits", 1.0)


def _still(left: Sequence[Job], took: Mapping[str, Sequence[float]], parallel: int) -> str:
    """How long still: each method by its own mean so far, one that has not run yet by everyone's."""
    if not took:
        return ""
    overall = statistics.fmean(seconds for each in took.values() for seconds in each)
    total = sum(statistics.fmean(took[job.method]) if job.method in took else overall for job in left) / parallel
    return f"about {total:.0f} s still" if total < 100 else f"about {total / 60:.0f} min still"


def _name(source: Any) -> str:
    if source is None:
        return "simulated tables"
    return Path(source).name if isinstance(source, str | os.PathLike) else "a table"


def _holdout_words(source: Any, holdout: Any) -> str:
    if source is None:
        return f"fresh rows of the same made-up process, as many as are fitted, at most {MOST_HELD_BACK:,}"
    if isinstance(holdout, float):
        return f"{holdout:.0%} of the rows, held back from every fit by a coin for each row"
    return "rows of a table of their own, which no fit has seen"
