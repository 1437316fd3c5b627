"""Independent pieces of work on several cores.

Threads, not processes: the models spend their time in compiled code that lets other threads run, and private rows are
neither copied nor written to the temporary files through which processes would pass them on.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any

from understudy.progress import Progress, silent

Task = tuple[Callable[..., Any], tuple]


def run(tasks: Sequence[Task], *, jobs: int, stage: str = "", progress: Progress = silent) -> list[Any]:
    """The results of all tasks, in their order; `jobs` at a time."""
    # The limit is set here too, for the whole run: a thread would else restore what another one had just set.
    with quiet(), one_thread(), ThreadPoolExecutor(max_workers=max(1, min(jobs, len(tasks)))) as pool:
        futures = [pool.submit(_alone, function, arguments) for function, arguments in tasks]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                progress(stage, done / len(tasks))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _alone(function: Callable[..., Any], arguments: tuple) -> Any:
    with one_thread():
        return function(*arguments)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compiled code inside uses one thread.

    Teams of threads that share cores with others wait for each other in loops: on a busy machine boosted trees take six
    times as long with two threads as with one. Cores are filled by running several tasks instead.
    """
    import sklearn  # noqa: F401  only libraries that are loaded already can be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of numerical code; set once around all threads, which share Python's list of filters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
