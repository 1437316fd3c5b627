"""What a model holds of columns that are placed inside their coarse codes by other columns."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Guides:
    """Released: `of` says by guided column which other one guides it; guides come before what they guide.

    `runs`: by column of either kind, the run that every fine cell lies in; runs are parts of coarse codes, numbered in
    their order. `shares`: by guided column, the probability of its runs given their code and the guide's run, (runs of
    the guide, runs).
    """

    of: dict[str, str] = field(default_factory=dict)
    runs: dict[str, np.ndarray] = field(default_factory=dict)
    shares: dict[str, np.ndarray] = field(default_factory=dict)

    def check(self, groups: dict[str, np.ndarray]) -> None:
        """Refuses parts that do not fit together, or a model's coarse codes, such as those of a damaged file."""
        if set(self.runs) != {*self.of, *self.of.values()} or set(self.shares) != set(self.of):
            raise ValueError("guides: must have runs for all their columns, and shares for those that are guided")
        for place, (name, guide) in enumerate(self.of.items()):
            if guide in list(self.of)[place:]:
                raise ValueError(f"column {name!r}: its guide must come before it")
        for name, runs in self.runs.items():
            if name not in groups or len(runs) != len(groups[name]):
                raise ValueError(f"column {name!r}: must have a run for every cell")
            if set(runs.tolist()) != set(range(int(runs.max()) + 1)):
                raise ValueError(f"column {name!r}: runs must be numbered without gaps")
            order = np.argsort(runs, kind="stable")
            alone = np.diff(groups[name][order])[np.diff(runs[order]) == 0]
            if (np.diff(groups[name][order]) < 0).any() or alone.any():
                raise ValueError(f"column {name!r}: runs must be parts of coarse codes, in their order")
        for name, shares in self.shares.items():
            sizes = tuple(int(self.runs[column].max()) + 1 for column in (self.of[name], name))
            if shares.shape != sizes or not (np.isfinite(shares) & (shares >= 0)).all():
                raise ValueError(f"column {name!r}: shares must be those of its runs and its guide's")


@dataclass(frozen=True, eq=False)
class Guided:
    """A guided column, ready to draw: the code (`owner`) of each run, and the run of each cell.

    `shares` (classes, runs of the guide, runs): of runs given their code, the guide's run and the class. `inside`
    (classes, cells): of cells given their run and the class.
    """

    guide: str
    runs: np.ndarray
    owner: np.ndarray
    shares: np.ndarray
    inside: np.ndarray
