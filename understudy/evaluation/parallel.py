"""Independent pieces of work on several cores."""

from collections.abc import Callable, Sequence
from typing import Any

from understudy.progress import Progress, silent

Task = tuple[Callable[..., Any], tuple]


def run(tasks: Sequence[Task], *, jobs: int, stage: str = "", progress: Progress = silent) -> list[Any]:
    """The results of all tasks, in their order; `jobs` processes at a time, or this one alone for jobs=1."""
    results = []
    if jobs == 1 or len(tasks) < 2:
        finished = (function(*arguments) for function, arguments in tasks)
    else:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=jobs, return_as="generator")
        finished = pool(delayed(function)(*arguments) for function, arguments in tasks)
    for result in finished:
        results.append(result)
        progress(stage, len(results) / len(tasks))
    return results
