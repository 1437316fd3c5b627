"""Processes that make runs of one game side by side, each compiled once; all end when the caller does."""

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.auditing.scores import Run
from understudy.errors import OptionError, UnderstudyError

if TYPE_CHECKING:
    from understudy.auditing.games import Setting

# One thread each, or they would fight for the cores; and the first run is mostly compiling: quicker like this.
_ALONE = {
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def runs_of_workers(setting: "Setting", workers: int) -> Generator[tuple[Run, float], None, None]:
    """Runs as they end, without end. Closing the iterator ends the processes, and drops what they had begun."""
    job = json.dumps(setting.to_dict()).encode() + b"\n"
    crew = [_start(job, number) for number in range(workers)]
    selector = selectors.DefaultSelector()
    try:
        for process in crew:
            selector.register(process.stdout, selectors.EVENT_READ, process)
        while True:
            for key, _ in selector.select():
                line = key.fileobj.readline()
                if not line:
                    raise OptionError(
                        f"a process that played {setting.method} ended by itself (exit code {key.data.wait()}); perhaps"
                        " there was not enough memory: try fewer workers"
                    )
                said = json.loads(line)
                if "refused" in said:
                    raise OptionError(f"method {setting.method} cannot be played: {said['refused']}")
                yield Run.from_dict(said), said["seconds"]
    finally:
        selector.close()
        for process in crew:
            _end(process)


def _start(job: bytes, number: int) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", "from understudy.auditing.crew import main; main()", str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C comes to us, and we end our own
        env=os.environ | _ALONE,
    )
    with suppress(BrokenPipeError):
        process.stdin.write(job)
        process.stdin.flush()
    return process


def _end(process: subprocess.Popen) -> None:
    with suppress(OSError):
        process.stdin.close()
    process.kill()
    process.wait()
    process.stdout.close()


def main() -> None:
    """Reads a setting, then plays its worlds in turns and tells every run as a line, until nobody listens."""
    from understudy.auditing.games import Setting, pair_of, runner

    stdin = sys.stdin.buffer
    data = json.loads(stdin.readline())
    threading.Thread(target=_leave_with_the_asker, args=(stdin,), daemon=True).start()
    begin = int(sys.argv[1])
    try:
        setting = Setting.from_dict(data)
        one_run = runner(setting, pair_of(setting))
        for number in range(begin, sys.maxsize):
            since = time.monotonic()
            run = one_run(number % 2 == 0)
            _say(run.to_dict() | {"seconds": round(time.monotonic() - since, 4)})
    except UnderstudyError as error:
        _say({"refused": str(error)})
    except Exception as error:
        _say(
            {"refused": f"something unexpected happened ({type(error).__name__} in {_place(error)}); this is a defect"}
        )


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _leave_with_the_asker(pipe: Any) -> None:
    pipe.read()
    os._exit(1)


def _place(error: Exception) -> str:
    """The innermost line of this package, without the path to it."""
    import traceback

    package, place = Path(__file__).parents[1], "a library"
    for frame in traceback.extract_tb(error.__traceback__):
        if package in Path(frame.filename).parents:
            place = f"{Path(frame.filename).relative_to(package.parent).as_posix()}, line {frame.lineno}"
    return place
