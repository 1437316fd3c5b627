"""What only a process of its own can show: Ctrl-C, a full disk, pipes, and screens of any width."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest
from cli_helpers import SECRET, command, left_over, tiny_rows


def test_ctrl_c_in_the_middle_of_a_fit_leaves_nothing_behind(here: SimpleNamespace) -> None:
    here.table.write_text(tiny_rows(3_000))
    arguments = ("fit", here.table, "-s", here.schema, "-o", here.model, "--set", "steps=1000000")
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = ""
        while "counting pairs" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "stopped by Ctrl-C" in err
    assert "Traceback" not in said + err
    assert SECRET not in said + out + err
    assert left_over(here.folder) == {"table.csv", "schema.yaml"}


def test_a_full_disk_leaves_nothing_half_written(made: SimpleNamespace, tmp_path) -> None:
    small_disk = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
    arguments = command("sample", made.fresh, "-n", 20_000, "-o", tmp_path / "rows.csv", first=small_disk)
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert "nothing was written" in result.stderr
    assert "Traceback" not in result.stderr
    assert left_over(tmp_path) == set()


def test_a_closed_pipe_is_no_traceback(made: SimpleNamespace) -> None:
    process = subprocess.Popen(
        command("inspect", made.fresh), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert "Traceback" not in err


def test_verify_needs_neither_noise_nor_training_libraries(made: SimpleNamespace) -> None:
    # A module that is None in sys.modules cannot be imported.
    without = "import sys; sys.modules.update(dict.fromkeys(['opendp', 'jax', 'optax', 'sklearn', 'matplotlib']))"
    arguments = command("verify", made.seeded, first=without)
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "The certificate holds" in result.stdout
    assert "seed" in result.stdout


def on_a_screen(*arguments: object, columns: int) -> tuple[int, str]:
    """Runs a command on a terminal of this width."""
    leader, follower = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm", "LINES": "40"}
    process = subprocess.Popen(command(*arguments), stdout=follower, stderr=follower, stdin=follower, env=environment)
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([leader], [], [], 0.5)[0]:
            continue
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    return process.wait(timeout=30), shown.decode()


def widest(shown: str, *, without: str) -> int:
    """The longest line, controls left out; lines with a path do not count, since a path is not broken."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n")
    return max(len(line) for line in plain.splitlines() if without not in line)


def test_progress_fits_a_narrow_screen(here: SimpleNamespace) -> None:
    arguments = ("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    code, shown = on_a_screen(*arguments, columns=60)
    assert code == 0, shown
    assert "counting columns" in shown  # the moving line
    assert widest(shown, without=str(here.folder)) <= 60


@pytest.mark.parametrize("columns", [60, 100])
def test_tables_fit_the_screen(made: SimpleNamespace, columns: int) -> None:
    code, shown = on_a_screen("inspect", made.seeded, columns=columns)
    assert code == 0, shown
    assert columns - 15 < widest(shown, without=str(made.folder)) <= columns
