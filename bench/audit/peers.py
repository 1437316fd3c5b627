"""Games against peers: `python -m bench.audit.peers`. Writes bench/results/<date>-audit-peers.md and .json.

Each peer fits two neighbouring tables of a few rows over and over in its own environment (`bench.peers.install`), by
its documented use; lower bounds come from `understudy.auditing.bounds`. Finished games are kept: the same command goes
on where it was broken off. `--peers` chooses some; `--seconds` is for one game.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

from bench.audit.peer_games import EPSILON, Match, matches
from bench.audit.peers_page import page
from bench.audit.verdicts import verdicts
from bench.cells import ROOT, VENVS, Record, packages

HERE = Path(__file__).parent
RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "audit"
WATCHED = ("datasynthesizer", "dpmm", "smartnoise-synth", "mbi", "opendp", "numpy", "pandas")
# Fits are tiny: one thread each, little optimising, and what was compiled once is not compiled again.
QUICK = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def key_of(match: Match) -> dict[str, Any]:
    """What decides a game's outcome: the match, its tables, the peer's packages and how they are used."""
    digest = hashlib.sha256("\n".join(packages(match.peer)).encode())
    for name in (f"run_{match.peer}.py", "played.py"):
        digest.update((HERE / name).read_bytes())
    digest.update(json.dumps(match.job(0), sort_keys=True).encode())
    return {**dataclasses.asdict(match), "version": digest.hexdigest()[:12]}


def play(match: Match, seconds: float, cache: Path) -> dict[str, Any]:
    """The lines that the peer's process printed: one a fit."""
    ran = subprocess.run(
        [str(VENVS / match.peer / "bin" / "python"), str(HERE / f"run_{match.peer}.py")],
        input=json.dumps(match.job(seconds)),
        capture_output=True,
        text=True,
        env=os.environ | QUICK | {"JAX_COMPILATION_CACHE_DIR": str(cache / "compiled")},
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    if ran.returncode and not lines:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": f"failed: {last[:300]}", "lines": []}
    return {"status": "ok", "lines": lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = tuple(dict.fromkeys(match.peer for match in matches()))
    parser.add_argument("--peers", nargs="+", default=known, choices=known)
    parser.add_argument("--seconds", type=float, default=300.0, help="for one game")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    lacking = [peer for peer in asked.peers if not (VENVS / peer).exists()]
    if lacking:
        parser.error(f"no environment; run python -m bench.peers.install {' '.join(lacking)}")
    record = Record(asked.cache / "peers.jsonl")
    cells = []
    for match in matches():
        if match.peer in asked.peers:
            key = key_of(match)
            cell = record.get(key)
            if cell is None:
                cell = record.add(key, play(match, asked.seconds, asked.cache))
                print(match, len(cell["lines"]), flush=True)
            cells.append(cell)
    found = [{**cell["key"], "status": cell["status"], "verdicts": verdicts(cell)} for cell in cells]
    facts = {
        "date": date.today().isoformat(),
        "epsilon": EPSILON,
        "packages": {
            peer: [line for line in packages(peer) if line.partition("==")[0].lower() in WATCHED]
            for peer in asked.peers
        },
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    stem = asked.results / f"{facts['date']}-audit-peers"
    stem.with_suffix(".json").write_text(json.dumps({**facts, "games": found}, indent=1) + "\n")
    stem.with_suffix(".md").write_text(page(found, facts))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
