"""What is compared: cells of a grid, method by epsilon by repeat, and what is known of each once it has run."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.result import MetricResult

# Every use of a table needs its pairs and triples right, and a label wants to be predicted; images want to be
# recognised. The gap of a cell is the mean over those of them that are defined.
QUALITY = ("tvd_2way", "tvd_3way", "train_on_synthetic", "image_accuracy")
# Shown beside them, and not part of the gap. A strong classifier finds the smallest trace of noise: near its ceiling
# for every private table, it would drown the others. Disclosure figures can show a leak, never that there is none.
BESIDE = ("c2st", "dcr_share", "membership_inference")
HEADLINES = (*QUALITY, *BESIDE)

OK, REFUSED, FAILED, STOPPED = "ok", "refused", "failed", "stopped"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One fit to be made: all that decides its outcome, but for chance. `table` and `schema` are fingerprints."""

    method: str
    epsilon: float
    delta: float
    repeat: int
    options: tuple[tuple[str, Any], ...]
    seed: int | None
    which: str
    table: str
    schema: str
    version: str

    def key(self) -> str:
        """A name for the cell in a state file: cells that would come out alike share it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True, default=repr).encode()).hexdigest()

    def words(self) -> str:
        return f"{self.method} at epsilon {shown_epsilon(self.epsilon)}, repeat {self.repeat + 1}"


def shown_epsilon(epsilon: float) -> str:
    """
    >>> shown_epsilon(1.0), shown_epsilon(0.5), shown_epsilon(math.inf)
    ('1', '0.5', 'inf')
    """
    return "inf" if math.isinf(epsilon) else f"{epsilon:g}"


def jobs_of(
    methods: Sequence[str],
    epsilons: Sequence[float],
    repeats: int,
    options: Mapping[str, Mapping[str, Any]],
    **same: Any,
) -> Iterator[Job]:
    """All cells; whole rounds first, so that a run that is cut short has the same of everyone."""
    for repeat in range(repeats):
        for epsilon in epsilons:
            for method in methods:
                yield Job(
                    method=method,
                    epsilon=epsilon,
                    repeat=repeat,
                    options=tuple(sorted((name, _hashable(value)) for name, value in options.get(method, {}).items())),
                    **(same | {"seed": None if same["seed"] is None else same["seed"] + repeat}),
                )


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One metric of one cell: its value beside fresh real rows', and both as distances from the ideal (0 to 1)."""

    value: float | None
    reference: float | None
    distance: float | None
    reference_distance: float | None
    undefined: str | None
    direction: str
    ideal: float

    @staticmethod
    def of(result: MetricResult) -> "Figure":
        # Without a reference, the shortfall of a result is its own distance from the ideal.
        alone = replace(result, reference=None, reference_undefined="not asked")
        fresh = None if result.reference is None else replace(alone, value=result.reference, undefined=None)
        return Figure(
            value=result.value,
            reference=result.reference,
            distance=alone.shortfall,
            reference_distance=None if fresh is None else fresh.shortfall,
            undefined=result.undefined,
            direction=result.direction,
            ideal=result.ideal,
        )

    @property
    def gap(self) -> float | None:
        """How much further from the ideal than fresh real rows; below 0 where it is closer."""
        return None if self.distance is None else self.distance - (self.reference_distance or 0.0)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What came of one fit: figures alone; its model is thrown away. No figure holds a row or a part of one."""

    method: str
    epsilon: float
    repeat: int
    status: str = OK
    message: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    spent: float | None = None
    fit_seconds: float | None = None
    sample_seconds: float | None = None
    processor_seconds: float | None = None
    peak_megabytes: float | None = None
    limit: float | None = None

    @property
    def ok(self) -> bool:
        return self.status == OK

    def to_dict(self) -> dict[str, Any]:
        """JSON types; infinite numbers as the word inf."""
        record = asdict(self)
        for name in ("epsilon", "spent"):
            record[name] = "inf" if record[name] is not None and math.isinf(record[name]) else record[name]
        return record

    @staticmethod
    def from_dict(record: Mapping[str, Any]) -> "Cell":
        values = dict(record)
        for name in ("epsilon", "spent"):
            values[name] = None if values.get(name) is None else float(values[name])
        values["figures"] = {name: Figure(**figure) for name, figure in values.get("figures", {}).items()}
        return Cell(**values)


def figures_of(evaluation: Evaluation) -> dict[str, Figure]:
    """All metrics as bare figures. Their details stay behind: some hold points that stand for rows."""
    return {result.name: Figure.of(result) for result in evaluation}


def measured(cells: Sequence[Cell], names: Sequence[str]) -> tuple[str, ...]:
    """The metrics among `names` that some cell could measure."""
    return tuple(
        name
        for name in names
        if any(cell.ok and name in cell.figures and cell.figures[name].value is not None for cell in cells)
    )


def gap_of(cell: Cell, names: Sequence[str]) -> float | None:
    """The mean gap over `names`; a figure that only this cell lacks counts as the worst, 1."""
    if not cell.ok or not names:
        return None
    gaps = [cell.figures[name].gap if name in cell.figures else None for name in names]
    return math.fsum(1.0 if gap is None else gap for gap in gaps) / len(names)
