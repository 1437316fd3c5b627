"""Cells side by side, each in a process of its own and within a limit of time; all end when the caller does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from understudy.comparison.grid import FAILED, STOPPED, Cell, Job
from understudy.comparison.worker import send

Question = tuple[Job, dict[str, Any], bytes]
LOOK_SECONDS = 0.05


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen
    begin: float
    said: bytearray = field(default_factory=bytearray)

    def read(self) -> None:
        """What it has said so far; a full pipe would stop it."""
        with suppress(BlockingIOError):
            while part := os.read(self.process.stdout.fileno(), 1 << 16):
                self.said += part

    def end(self) -> None:
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()


def run_cells(
    questions: Sequence[Question],
    *,
    parallel: int,
    limit: float | None,
    looking: Callable[[list[Job]], None] = lambda running: None,
) -> Iterator[tuple[Job, Cell]]:
    """Cells as they end. Whatever stops the caller ends the processes too. `looking` is told which ones are running."""
    waiting = list(reversed(questions))
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < parallel:
                running.append(_start(*waiting.pop()))
                looking([one.job for one in running])
            time.sleep(LOOK_SECONDS)
            for one in list(running):
                one.read()
                late = limit is not None and time.monotonic() - one.begin > limit
                if one.process.poll() is None and not late:
                    continue
                one.read()
                running.remove(one)
                one.end()
                yield one.job, _cell(one, limit)
    finally:
        for one in running:
            one.end()


def _start(job: Job, header: dict[str, Any], rows: bytes) -> _Running:
    process = subprocess.Popen(
        [sys.executable, "-c", "from understudy.comparison.worker import main; main()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # tracebacks of libraries may hold values
        start_new_session=True,  # Ctrl-C comes to us, and we end our own
    )
    one = _Running(job, process, time.monotonic())
    try:
        os.set_blocking(process.stdout.fileno(), False)
        with suppress(BrokenPipeError):  # it ended already; its exit code will tell
            send(process.stdin, json.dumps(header).encode(), rows)
    except BaseException:
        one.end()
        raise
    return one


def _cell(one: _Running, limit: float | None) -> Cell:
    job = one.job
    where = {"method": job.method, "epsilon": job.epsilon, "repeat": job.repeat}
    with suppress(ValueError):
        return Cell.from_dict(json.loads(bytes(one.said)) | where)
    code = one.process.returncode
    if limit is not None and time.monotonic() - one.begin > limit:
        return Cell(**where, status=STOPPED, message=f"did not end within {limit:g} seconds", limit=limit)
    if code < 0:
        name = signal.Signals(-code).name
        why = "; perhaps there was not enough memory" if name == "SIGKILL" else ""
        return Cell(**where, status=FAILED, message=f"its process was ended by the system ({name}){why}")
    return Cell(**where, status=FAILED, message=f"its process ended without an answer (exit code {code})")
