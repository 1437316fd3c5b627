"""Cells in processes of their own: limits of time, sudden ends, refusals; nothing is left running."""

import dataclasses
import json
import os
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from test_state import JOB

from understudy.comparison import processes
from understudy.comparison.grid import FAILED, OK, REFUSED, STOPPED
from understudy.comparison.processes import run_cells
from understudy.comparison.tables import Rows
from understudy.comparison.worker import peak_megabytes, run, send


def header(schema, **more) -> dict:
    job = {"method": "independent", "epsilon": 1.0, "delta": 1e-6, "seed": 0, "options": {}, "which": "fast"}
    return job | {"schema": schema.dumps(style="json"), "simulated": 0} | more


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a shell script in the place of Python."""

    def put(text: str) -> None:
        script = tmp_path / "program"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(processes.sys, "executable", str(script))

    return put


def test_a_cell_has_figures_costs_and_no_row(schema) -> None:
    question = JOB, header(schema), b""
    ((job, found),) = run_cells([question], parallel=1, limit=None)
    assert job is JOB
    assert (found.status, found.message) == (OK, "")
    assert {"tvd_2way", "tvd_3way", "train_on_synthetic", "c2st", "dcr_share"} <= set(found.figures)
    assert found.figures["tvd_2way"].reference is not None
    assert 0 < found.fit_seconds < 60
    assert found.processor_seconds > 0
    assert 50 < found.peak_megabytes < 2000
    assert 0 < found.spent <= 1


def test_memory_is_the_cells_own() -> None:
    """What the parent holds does not count: ru_maxrss of a child starts with it."""
    held = np.ones(40_000_000)  # 320 MB
    code = "from understudy.comparison.worker import peak_megabytes; print(peak_megabytes())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert held.sum() == len(held)
    assert peak_megabytes() > 320
    assert float(told) < 150


def test_refusals_and_surprises_are_results_without_values(schema, monkeypatch) -> None:
    refused = run(header(schema, method="nothing"), b"")
    assert refused["status"] == REFUSED
    assert "'nothing' is not known" in refused["message"]
    from understudy.synthesizers import api

    def explode(*_, **__):
        raise ValueError("secret 4711")

    monkeypatch.setattr(api, "fit", explode)
    failed = run(header(schema), b"")
    assert failed["status"] == FAILED
    assert "ValueError" in failed["message"]
    assert "4711" not in failed["message"]


def test_a_cell_that_takes_too_long_is_stopped(program) -> None:
    program("exec sleep 60")
    begin = time.monotonic()
    found = dict(run_cells([(JOB, {}, b"")], parallel=1, limit=0.3))[JOB]
    assert time.monotonic() - begin < 5
    assert (found.status, found.limit) == (STOPPED, 0.3)
    assert "within 0.3 seconds" in found.message


@pytest.mark.parametrize(
    ("text", "told"), [("exit 3", "exit code 3"), ("kill -9 $$", "SIGKILL"), ("echo nonsense", "exit code 0")]
)
def test_a_process_that_dies_is_a_failed_cell(program, text, told) -> None:
    program(text)
    found = dict(run_cells([(JOB, {}, b"x" * 1_000_000)], parallel=1, limit=None))[JOB]
    assert found.status == FAILED
    assert told in found.message


def test_as_many_as_asked_run_side_by_side_and_none_is_left_behind(program, tmp_path) -> None:
    program(f"echo $$ >> {tmp_path}/pids; exec sleep 60")
    jobs = [dataclasses.replace(JOB, repeat=number) for number in range(3)]
    seen: list[int] = []

    def stop(running) -> None:
        seen.append(len(running))
        if len(running) == 2:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline and len(pids()) < 2:
                time.sleep(0.05)
            raise KeyboardInterrupt

    def pids() -> list[int]:
        path = tmp_path / "pids"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    with pytest.raises(KeyboardInterrupt):
        list(run_cells([(job, {}, b"") for job in jobs], parallel=2, limit=None, looking=stop))
    assert seen == [1, 2]
    assert len(pids()) == 2
    for pid in pids():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_rows_go_through_a_pipe_unchanged(schema) -> None:
    rng = np.random.default_rng(0)
    codes = {
        name: rng.random(50).astype(np.float32) if name == "weight" else rng.integers(0, 2, 50).astype(np.uint8)
        for name in schema.modelled
    }
    codes["weight"][3] = np.nan
    again = Rows.unpack(Rows(codes, {name: c[:20] for name, c in codes.items()}).pack(), schema)
    for name in codes:
        assert np.array_equal(again.fitted[name], codes[name], equal_nan=True)
        assert again.fitted[name].dtype == codes[name].dtype
        assert np.array_equal(again.held_back[name], codes[name][:20], equal_nan=True)


def test_a_worker_whose_asker_is_gone_ends_too(schema) -> None:
    """A parent that is killed cannot end its children: the pipe between them does."""
    code = "from understudy.comparison.worker import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    send(process.stdin, json.dumps(header(schema)).encode(), b"")
    process.stdin.close()
    assert process.wait(timeout=60) == 1
    assert process.stdout.read() == b""
    process.stdout.close()
