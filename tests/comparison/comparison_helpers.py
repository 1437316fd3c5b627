"""Cells made by hand, and comparisons of them."""

from understudy.comparison.grid import Cell, Figure
from understudy.comparison.result import Comparison, Setting

EVIL = "<script>alert(1)</script>"


def figure(value: float | None, reference: float | None = 0.1, direction: str = "lower") -> Figure:
    ideal = 1.0 if direction == "higher" else 0.0
    return Figure(
        value=value,
        reference=reference,
        distance=None if value is None else abs(value - ideal),
        reference_distance=None if reference is None else abs(reference - ideal),
        undefined=None if value is not None else "there is no such thing",
        direction=direction,
        ideal=ideal,
    )


def cell(method: str, epsilon: float, gap: float, repeat: int = 0, seconds: float = 2.0, **more) -> Cell:
    """A cell that falls short by `gap` in all of its figures."""
    figures = {
        "tvd_2way": figure(0.1 + gap),
        "tvd_3way": figure(0.2 + gap, 0.2),
        "train_on_synthetic": figure(0.8 - gap, 0.8, "higher"),
        "c2st": figure(0.6, 0.5),
    }
    costs = {"fit_seconds": seconds, "processor_seconds": 2 * seconds, "peak_megabytes": 300.0, "sample_seconds": 0.1}
    given = {"figures": figures, "spent": epsilon, **costs} | more
    return Cell(method=method, epsilon=epsilon, repeat=repeat, **given)


def compared(cells: list[Cell], **more) -> Comparison:
    facts = {
        "table": "people.csv",
        "simulated": False,
        "methods": tuple(dict.fromkeys(one.method for one in cells)),
        "epsilons": tuple(sorted({one.epsilon for one in cells})),
        "repeats": 1 + max((one.repeat for one in cells), default=0),
        "delta": 1e-6,
        "which": "fast",
        "label": "ill",
        "holdout": "a quarter",
        "seeded": False,
        "jobs": 2,
        "limit": None,
        "version": "0",
    }
    return Comparison(Setting(**(facts | more)), tuple(cells))
