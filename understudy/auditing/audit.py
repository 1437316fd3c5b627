"""The standard audit of a method: games with several canaries within a time, kept on disk as they go."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any

from understudy.auditing import games
from understudy.auditing.canaries import CANARIES
from understudy.auditing.mechanisms import StepGame, mechanisms_of, play_mechanism
from understudy.auditing.one_run import one_run as many_at_once
from understudy.auditing.result import Audit
from understudy.auditing.state import keeper, kept_runs, source_digest
from understudy.errors import OptionError
from understudy.privacy.certificate import current_versions
from understudy.progress import Progress, silent
from understudy.schema import Schema

# Of what may fail (1 - confidence): for games against single mechanisms, and for many canaries at once.
STEPS_SHARE, ONE_RUN_SHARE = 0.2, 0.2
USUAL_CANARIES = ("duplicate", "corner")


def audit(
    method: str,
    schema: Schema | str | PathLike[str] | None = None,
    *,
    epsilon: float = 1.0,
    delta: float | None = None,
    minutes: float = 2.0,
    canaries: Sequence[str] = USUAL_CANARIES,
    workers: int = 2,
    confidence: float = 0.95,
    state: str | PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    boost: bool | Mapping[str, Any] = False,
    play_step: Callable[[str, float, float], StepGame] | None = None,
    one_run: int = 0,
    progress: Progress = silent,
) -> Audit:
    """Plays distinguishing games against a method, and gives lower bounds on the epsilon that it really has.

    schema: public columns to play on, with made-up rows; None takes three small columns. minutes: for all canaries
    together, besides starting and compiling; runs that are in the `state` file count as time spent. workers: processes
    side by side; 0 plays in this one. options: of the method, over settings that make fits short. boost: of a fit with
    boosting, as `fit` takes it. The mechanisms that the method's events name are played one by one as well, each by
    `play_step(name, epsilon, confidence)`: whoever audits several methods may give one that plays none of them twice.
    one_run: how many fits with many canaries at once, for slow methods. All bounds of the audit hold together with the
    given confidence.
    """
    schema = Schema.load(schema) if isinstance(schema, str | PathLike) else schema
    path = None if state is None else Path(state)
    if not minutes > 0:
        raise OptionError(f"minutes must be above 0, got {minutes}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie between 0 and 1, like 0.95, got {confidence}")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise OptionError(f"workers must be a whole number from 0, got {workers!r}")
    if isinstance(one_run, bool) or not isinstance(one_run, int) or one_run < 0:
        raise OptionError(f"one_run must be a whole number of fits from 0, got {one_run!r}")
    if not canaries or len(set(canaries)) < len(canaries):
        raise OptionError(f"canaries must be different names, at least one of {', '.join(CANARIES)}")
    settings = [
        games.make_setting(method, schema, epsilon, delta, canary=canary, options=options, boost=boost)
        for canary in canaries
    ]
    if one_run and boost:
        raise OptionError("one_run plays methods without boosting; leave out one of the two")
    begin = time.monotonic()
    each = 60 * minutes / len(settings)
    rest = 1 - STEPS_SHARE - (ONE_RUN_SHARE if one_run else 0.0)
    share = 1 - (1 - confidence) * rest / len(settings)
    events = games.events_of(settings[0])
    played = []
    for number, setting in enumerate(settings):
        pair = games.pair_of(setting)
        kept = kept_runs(path, setting)
        keep = keeper(path, setting)
        made = [run for run, _ in kept]
        spent = sum(seconds for _, seconds in kept) / max(workers, 1)
        stage = f"playing {setting.title} on {pair.words}"
        since = None
        if spent < each:
            with closing(games.runs_of(setting, pair, workers=workers)) as runs:
                for run, seconds in runs:
                    made.append(run)
                    keep(run, seconds)
                    # The first run of a process compiles; the clock starts behind it.
                    since = time.monotonic() if since is None else since
                    done = (spent + time.monotonic() - since) / each
                    progress(stage, (number + min(done, 1.0)) / len(settings), f"{len(made):,} runs")
                    if done >= 1:
                        break
        seconds = spent + (time.monotonic() - since if since is not None else 0.0)
        played.append(games.judged(setting, pair.words, made, seconds, events, confidence=share))
    progress("playing the mechanisms behind it", 1.0)
    names = mechanisms_of(events, boosted=bool(boost))
    alone = 1 - (1 - confidence) * STEPS_SHARE / max(len(names), 1)
    player = _play_step if play_step is None else play_step
    steps = tuple(player(name, epsilon, alone) for name in names)
    together = None
    if one_run:
        method, delta = settings[0].method, settings[0].delta
        alone = 1 - (1 - confidence) * ONE_RUN_SHARE
        together = many_at_once(
            method, epsilon, delta, fits=one_run, confidence=alone, options=options, progress=progress
        )
    return Audit(
        method=settings[0].title,
        epsilon=epsilon,
        delta=settings[0].delta,
        confidence=confidence,
        games=tuple(played),
        steps=steps,
        one_run=together,
        seconds=round(time.monotonic() - begin, 3),
        versions=current_versions(),
        source=source_digest(),
    )


def _play_step(name: str, epsilon: float, confidence: float) -> StepGame:
    return play_mechanism(name, epsilon, confidence=confidence)
