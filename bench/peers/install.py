"""Makes an environment for each peer under bench/.venvs: `python -m bench.peers.install [peer ...]`.

Peers pin old versions of what we use, so they never share our environment. Requirements are installed line by line, in
order: what a later package would otherwise pull in another build (torch) comes first.

Looked at and left out: mbi (Private-PGM) has on the package index the inference alone, without the mechanisms MST and
AIM; dpmm and smartnoise-synth each run theirs on it, and so do we.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
VENVS = HERE.parent / ".venvs"
PEERS = tuple(sorted(file.stem for file in (HERE / "requirements").glob("*.txt")))


def requirements(peer: str) -> list[str]:
    lines = (HERE / "requirements" / f"{peer}.txt").read_text().splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.partition("#")[0].strip()]


def install(peer: str) -> Path:
    """Builds the environment, or brings an old one up to the pinned versions; returns its Python."""
    folder = VENVS / peer
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    for requirement in requirements(peer):
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement], check=True
        )
    return python


def main() -> None:
    for peer in sys.argv[1:] or PEERS:
        if peer not in PEERS:
            sys.exit(f"peer must be one of {', '.join(PEERS)}; got {peer!r}")
        print(peer, install(peer))


if __name__ == "__main__":
    main()
