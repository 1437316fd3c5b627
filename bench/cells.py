"""One cell of a comparison: a method fitted to a dataset with a seed, in a process of its own, judged by the referee.

Cells are kept as JSON lines. A cell's key holds everything that decides its outcome, the code included, so a run that
was broken off goes on where it stopped, and a changed method is never judged by old rows.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bench.datasets import Dataset
from bench.peers.domain import NUMERIC, domain, plain
from bench.referee import CAPS, judge
from understudy import Schema

ROOT = Path(__file__).parents[1]
VENVS = ROOT / "bench" / ".venvs"


@dataclass(frozen=True)
class Method:
    """How a method is started: ours in this environment, a peer's in its own."""

    name: str
    runner: str  # "ours", or the peer whose environment and runner are used
    argument: str

    @property
    def python(self) -> Path:
        return Path(sys.executable) if self.runner == "ours" else VENVS / self.runner / "bin" / "python"

    def command(self) -> list[str]:
        if self.runner == "ours":
            return [str(self.python), "-m", "bench.ours"]
        return [str(self.python), str(ROOT / "bench" / "peers" / f"run_{self.runner}.py")]


def ours(method: str) -> Method:
    return Method(method, "ours", method)


def peer(runner: str, method: str) -> Method:
    return Method(f"{runner} {method}", runner, method)


def version(runner: str) -> str:
    """What a runner's outcome depends on: for ours the package's source, for a peer its packages and its runner."""
    if runner == "ours":
        rooms = ("schema", "table", "privacy", "training", "synthesizers")
        files = [file for room in rooms for file in sorted((ROOT / "understudy" / room).rglob("*.py"))]
        files += [ROOT / "bench" / "ours.py", ROOT / "bench" / "peers" / "common.py"]
        text = ""
    else:
        files = [ROOT / "bench" / "peers" / name for name in (f"run_{runner}.py", "common.py", "domain.py")]
        text = "\n".join(packages(runner))
    digest = hashlib.sha256(text.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@cache
def packages(runner: str) -> tuple[str, ...]:
    """The packages of a runner's environment, as name==version."""
    python = Method("", runner, "").python
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(sorted(listed.stdout.split()))


def run_cell(
    data: Dataset, method: Method, seed: int, *, epsilon: float, delta: float, cpu_seconds: int
) -> dict[str, Any]:
    """Fits, samples as many rows as the train part has, judges. Not to come to an end is a result as well."""
    outcome, synthetic = make_rows(data, method, seed, epsilon=epsilon, delta=delta, cpu_seconds=cpu_seconds)
    if synthetic is None:
        return outcome
    schema = Schema.load(data.schema_path)
    train, test = plain(data.train, schema), plain(data.test, schema)
    return outcome | judge(synthetic, train, test, schema, CAPS.get(data.name))


def make_rows(
    data: Dataset, method: Method, seed: int, *, epsilon: float, delta: float, cpu_seconds: int
) -> tuple[dict[str, Any], pd.DataFrame | None]:
    """The rows that a method makes, as many as the train part has, and what it spent; or why there are none.

    The limit is on processor time, so that a busy machine takes nothing from a method; four times as long by the clock
    ends a method that waits for something.
    """
    schema = Schema.load(data.schema_path)
    train = plain(data.train, schema)
    with tempfile.TemporaryDirectory() as folder:
        rows, facts, made = (Path(folder) / name for name in ("train.csv", "domain.json", "made.csv"))
        train.to_csv(rows, index=False)
        facts.write_text(json.dumps(domain(schema)))
        command = [
            *method.command(),
            str(rows),
            str(data.schema_path if method.runner == "ours" else facts),
            str(made),
            *("--method", method.argument, "--epsilon", str(epsilon), "--delta", str(delta)),
            *("--seed", str(seed), "--rows", str(len(train))),
        ]
        late = {"status": f"not done within {cpu_seconds / 60:g} minutes of processor time"}
        try:
            done = subprocess.run(
                # The shell sets the limit and becomes the command: a hook here would fork a process with threads.
                ["/bin/sh", "-c", 'ulimit -t "$0" && exec "$@"', str(cpu_seconds), *command],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=4 * cpu_seconds,
            )
        except subprocess.TimeoutExpired:
            return late, None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            return late, None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"status": f"failed: {last[:300]}"}, None
        spent = json.loads(done.stdout.strip().splitlines()[-1])
        return {"status": "ok", **spent}, read_made(made, schema)


def read_made(path: Path, schema: Schema) -> pd.DataFrame:
    """Rows as a runner wrote them, in the one form in which all are judged."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    words = {"True": "1", "False": "0"}
    for name, column in schema.modelled.items():
        if column.kind in NUMERIC:
            frame[name] = frame[name].astype(float)
        elif column.kind == "boolean":
            frame[name] = frame[name].replace(words)
    return plain(frame, schema)


class Record:
    """Cells done so far, on disk as JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.cells = {json.dumps(cell["key"]): cell for cell in map(json.loads, lines)}

    def get(self, key: dict[str, Any]) -> dict[str, Any] | None:
        return self.cells.get(json.dumps(key))

    def add(self, key: dict[str, Any], outcome: dict[str, Any]) -> dict[str, Any]:
        cell = {"key": key, **outcome}
        self.cells[json.dumps(key)] = cell
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(cell) + "\n")
        return cell
