"""The standard audit of every method: `python -m bench.audit.methods`. Writes bench/results/<date>-audit-methods.md
and .json.

Whatever is registered is played at epsilon 1 and 4, a boosted fit and methods of images too; every mechanism once at
either. `--minutes` is for each method and epsilon. Finished cells are kept under a digest of the package's source: the
same command goes on where it was broken off, and runs of other code never count.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench.audit.methods_page import page
from bench.cells import ROOT, Record
from understudy.auditing.audit import STEPS_SHARE, audit
from understudy.auditing.bounds import LowerBound
from understudy.auditing.mechanisms import MECHANISMS, StepGame, play_mechanism
from understudy.auditing.state import source_digest
from understudy.schema import Schema
from understudy.synthesizers.api import METHODS, method_module

RESULTS = ROOT / "bench" / "results"
CACHE = ROOT / "bench" / ".cache" / "audit"
EPSILONS = (1.0, 4.0)
CONFIDENCE = 0.95
# Strict enough for the audit of a method that uses every mechanism: the same game then serves all audits.
STEP_CONFIDENCE = 1 - (1 - CONFIDENCE) * STEPS_SHARE / len(MECHANISMS)
LONGER, LONGER_EPSILON, LONGER_MINUTES = "mixture", 4.0, (1.0, 3.0, 9.0)
# A method whose name says nothing of images is played on these too, if it makes them: a few pixels, two classes.
PICTURES = Schema.loads("""
rows: 1000
label: digit
columns:
  digit: {kind: categorical, values: [one, two]}
  scan: {kind: image, height: 4, width: 4}
""")


@dataclass(frozen=True)
class Subject:
    """What is audited: a method, as it comes, boosted, or on images."""

    name: str
    method: str
    schema: Schema | None = None
    boost: bool = False

    @property
    def compiles(self) -> bool:
        """Whether it trains on batches, which takes long to start."""
        return any(field.name == "batch" for field in dataclasses.fields(method_module(self.method).Config))


def subjects() -> tuple[Subject, ...]:
    """Every registered method, those that start quickly first."""
    plain = [Subject(name, name) for name in METHODS]
    images = [
        Subject(f"{name} on images", name, PICTURES)
        for name in METHODS
        if getattr(method_module(name), "IMAGES", False)
    ]
    boosted = Subject("independent with boosting", "independent", boost=True)
    return tuple(sorted([*plain, boosted], key=lambda subject: subject.compiles)) + tuple(images)


def kept(record: Record, key: dict[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A finished cell of this very source, or a new one."""
    key = {**key, "source": source_digest()}
    cell = record.get(key)
    if cell is None:
        cell = record.add(key, make())
        print(json.dumps(key), flush=True)
    return cell


def step_cell(record: Record, name: str, epsilon: float) -> dict[str, Any]:
    """The game against one mechanism, played once for all methods that use it."""

    def make() -> dict[str, Any]:
        begin = time.monotonic()
        step = play_mechanism(name, epsilon, confidence=STEP_CONFIDENCE)
        return {"step": dataclasses.asdict(step), "seconds": round(time.monotonic() - begin, 1)}

    return kept(record, {"mechanism": name, "epsilon": epsilon, "confidence": STEP_CONFIDENCE}, make)


def step_game(cell: dict[str, Any]) -> StepGame:
    step = cell["step"]
    return StepGame(**(step | {"bound": LowerBound(**(step["bound"] | {"runs": tuple(step["bound"]["runs"])}))}))


def audit_of(
    record: Record, subject: Subject, epsilon: float, minutes: float, workers: int, *, longer: bool = False
) -> dict[str, Any]:
    """The audit of one subject as a cell. longer: runs are kept, and a longer audit goes on from a shorter one's."""

    def make() -> dict[str, Any]:
        found = audit(
            subject.method,
            subject.schema,
            epsilon=epsilon,
            minutes=minutes,
            workers=workers,
            confidence=CONFIDENCE,
            boost=subject.boost,
            play_step=lambda name, epsilon, _: step_game(step_cell(record, name, epsilon)),
            state=record.path.with_name("longer.runs.jsonl") if longer else None,
        )
        return {"audit": json.loads(found.to_json())}

    key = {"subject": subject.name, "epsilon": epsilon, "minutes": minutes, "workers": workers, "longer": longer}
    return kept(record, key, make)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = {subject.name: subject for subject in subjects()}
    parser.add_argument("--subjects", nargs="+", default=list(known), choices=known)
    parser.add_argument("--epsilons", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--minutes", type=float, default=2.0, help="for each method and epsilon, beside starting")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--longer", nargs="*", type=float, default=LONGER_MINUTES, help=f"minutes of {LONGER} alone")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    record = Record(asked.cache / "methods.jsonl")
    steps = [step_cell(record, name, epsilon) for epsilon in asked.epsilons for name in MECHANISMS]
    cells = [
        audit_of(record, known[name], epsilon, asked.minutes, asked.workers)
        for name in asked.subjects
        for epsilon in asked.epsilons
    ]
    longer = [
        audit_of(record, Subject(LONGER, LONGER), LONGER_EPSILON, minutes, asked.workers, longer=True)
        for minutes in sorted(asked.longer)
    ]
    facts = {
        "date": date.today().isoformat(),
        "source": source_digest(),
        "minutes": asked.minutes,
        "workers": asked.workers,
        "confidence": CONFIDENCE,
        "longer_epsilon": LONGER_EPSILON,
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    stem = asked.results / f"{facts['date']}-audit-methods"
    stem.with_suffix(".json").write_text(
        json.dumps({**facts, "audits": cells, "mechanisms": steps, "longer": longer}, indent=1) + "\n"
    )
    stem.with_suffix(".md").write_text(page(cells, steps, longer, facts))
    print(stem.with_suffix(".md"))


if __name__ == "__main__":
    main()
