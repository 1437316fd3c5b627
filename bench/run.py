"""Everything that the bench measures, one after the other: `python -m bench.run` (hours on two cores)."""

from __future__ import annotations

import subprocess
import sys

STEPS = (
    "bench.peers.install",
    "bench.peers",
    "bench.auto",
    "bench.narrow",
    "bench.fresh",
    "bench.even",
    "bench.speed.rows",
    "bench.speed.dpsgd",
    "bench.speed.embedding",
    "bench.speed.shapes",
    "bench.papers.dp_auto_gan",
    "bench.papers.ehr",
    "bench.papers.dp_merf",
    "bench.papers.gs_wgan",
    "bench.papers.pgb",
    "bench.audit.methods",
    "bench.audit.peers",
)


def main() -> int:
    for step in STEPS:
        print(f"== {step}", flush=True)
        code = subprocess.run([sys.executable, "-m", step]).returncode
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
