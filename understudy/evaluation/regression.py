"""Regression similarity: would the same linear models be found, and would they predict real rows as well?

Everything a linear model needs of a table is its matrix of cross products. It is made once a table, so that hundreds of
models cost no further pass over the rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import OptionError
from understudy.evaluation.choices import column_sets
from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.parallel import one_thread
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "prediction"
MOST_LEVELS = 20
MOST_MODELS = 1000
NO_TARGET = "the schema has no numeric column to be explained"


@one_thread()
def regression_similarity(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, seed: int = 0, **options: Any
) -> MetricResult:
    """RMSE on holdout rows of all linear models with three regressors, trained on synthetic and on real rows.

    The value is the mean absolute difference of the two RMSEs as a share of the real-trained one; 0 is best. The target
    is the label if numeric, else the first numeric column. Categorical regressors of more than 20 values are left out,
    and beyond 1,000 models a fixed random choice is made. `details["models"]` has both RMSEs of each model, as shares
    of the target's public range, for the parallel-coordinates plot. The reference trains on half of the holdout rows.
    Options: `target`, and `rows`, the most that are taken of each table.
    """
    case = _Case.of(real, synthetic, schema, holdout=holdout, seed=seed, **options)
    design, target = case.design, case.target
    scale = Scale(name="regression_similarity", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, float("inf")))
    reason = NO_TARGET if design is None else NO_HOLDOUT if case.test is None else None
    if not reason and len(design.columns) < 3:
        reason = f"three regressors are needed, there are {len(design.columns)} beside the target"
    if reason:
        return scale.result(Part(undefined=reason), None, missing=reason)
    chosen, note = column_sets(list(design.columns), 3, MOST_MODELS, seed)
    tables = {"real": case.real, "other": case.synthetic, "test": case.test}
    products = {key: design.products(view) for key, view in tables.items()}
    half = case.test.rows // 2
    first, second = (case.test.take(part) for part in np.split(np.arange(case.test.rows), [half]))
    notes = design.notes + note

    def compare(trained: "_Products", test: "_Products") -> Part:
        for part, which in ((products["real"], "real"), (trained, "other"), (test, "holdout")):
            if part.rows < 5 or part.target_varies is False:
                return Part(undefined=f"the target does not vary in the {which} rows, or is missing from them")
        models, gaps = [], []
        for names in chosen:
            columns = design.positions(names)
            mine = test.rmse(products["real"].coefficients(columns), columns)
            theirs = test.rmse(trained.coefficients(columns), columns)
            models.append({"regressors": list(names), "real": mine, "other": theirs})
            if mine > 0:
                gaps.append(abs(theirs - mine) / mine)
        if not gaps:
            return Part(undefined="every real-trained model is exact, so no share of its error can be given")
        return Part(value=float(np.mean(gaps)), notes=notes, details={"target": target, "models": models})

    reference = None if half < 5 else compare(design.products(first), design.products(second))
    return scale.result(
        compare(products["other"], products["test"]), reference, missing="too few holdout rows to halve"
    )


@one_thread()
def coefficient_overlap(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, seed: int = 0, **options: Any
) -> MetricResult:
    """Overlap of the 95 % confidence intervals of a linear model's coefficients, fitted on both tables; 1 is best.

    The overlap of two intervals is its length as a share of each of them, averaged (Karr and others, 2006); 0 where
    they do not meet. The model explains the target (the label if numeric, else the first numeric column) by all other
    columns. Options: `target`, and `rows`, the most that are taken of each table.
    """
    case = _Case.of(real, synthetic, schema, holdout=holdout, seed=seed, **options)
    design, target = case.design, case.target
    scale = Scale(name="coefficient_overlap", family=FAMILY, direction="higher", ideal=1.0, range=(0.0, 1.0))
    if design is None or not design.columns:
        reason = NO_TARGET if target is None else "there is no column to explain the target by"
        return scale.result(Part(undefined=reason), None, missing=reason)
    mine = design.products(case.real).intervals()

    def compare(other: View) -> Part:
        theirs = design.products(other).intervals()
        overlaps, reasons = {}, {}
        for name in design.columns:
            shares = [
                _overlap(mine[at], theirs[at])
                for at in design.positions((name,), intercept=False)
                if at in mine and at in theirs
            ]
            if shares:
                overlaps[name] = float(np.mean(shares))
            else:
                reasons[name] = "no coefficient can be estimated in both tables"
        if not overlaps:
            return Part(undefined="no coefficient can be estimated in both tables", undefined_columns=reasons)
        details = {"target": target}
        value = float(np.mean(list(overlaps.values())))
        return Part(value=value, per_column=overlaps, undefined_columns=reasons, notes=design.notes, details=details)

    return scale.result(compare(case.synthetic), None if case.test is None else compare(case.test))


def _overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """
    >>> _overlap((0.0, 2.0), (1.0, 3.0)), _overlap((0.0, 1.0), (2.0, 3.0))
    (0.5, 0.0)
    """
    shared = min(first[1], second[1]) - max(first[0], second[0])
    if shared < 0:
        return 0.0
    widths = (first[1] - first[0], second[1] - second[0])
    return sum(shared / width if width > 0 else 1.0 for width in widths) / 2


@dataclass(frozen=True)
class _Case:
    """At most `rows` rows of each table, and the design of what explains the target (None where there is no target)."""

    real: View
    synthetic: View
    test: View | None
    target: str | None
    design: "_Design | None"

    @staticmethod
    def of(
        real: Source,
        synthetic: Source,
        schema: Schema,
        *,
        holdout: Source | None,
        seed: int,
        target: str | None = None,
        rows: int = 200_000,
    ) -> "_Case":
        views = open_tables(real, synthetic, schema, holdout)
        target = _target(views[0], schema, target)
        design = None if target is None else _Design.of(views[0], target)
        few = (None if view is None else view.take(view.sample(rows, seed)) for view in views)
        return _Case(*few, target, design)


def _target(view: View, schema: Schema, target: str | None) -> str | None:
    if target is not None:
        if target not in view.numeric:
            raise OptionError(f"target must be a numeric column of the schema, got {target!r}")
        return target
    return schema.label if schema.label in view.numeric else next(iter(view.numeric), None)


@dataclass(frozen=True)
class _Design:
    """Which columns of a design matrix belong to which regressor: an intercept first, then dummies and numbers."""

    target: str
    columns: dict[str, tuple[int, int]]
    width: int
    notes: tuple[str, ...]

    @staticmethod
    def of(real: View, target: str) -> "_Design":
        columns, left_out, start = {}, [], 1
        for name, facts in real.facts.items():
            if name == target:
                continue
            if facts.categorical and facts.size > MOST_LEVELS:
                left_out.append(name)
                continue
            # One dummy less than there are levels (missing and outside are two of them); a number and its missing flag.
            width = facts.size + 1 if facts.categorical else 2
            columns[name] = (start, start + width)
            start += width
        notes = (f"left out, with more than {MOST_LEVELS} values: {', '.join(left_out)}",) if left_out else ()
        return _Design(target, columns, start, notes)

    def positions(self, names: tuple[str, ...], *, intercept: bool = True) -> list[int]:
        found = [0] if intercept else []
        for name in names:
            found += range(*self.columns[name])
        return found

    def products(self, view: View, *, block: int = 20_000) -> "_Products":
        """Cross products of all design columns and the target (last), over the rows that have a target."""
        place = view.position(self.target)
        has = np.flatnonzero(~np.isnan(place))
        gram = np.zeros((self.width + 1, self.width + 1))
        for first in range(0, len(has), block):
            rows = has[first : first + block]
            matrix = np.zeros((len(rows), self.width + 1))
            matrix[:, 0], matrix[:, -1] = 1.0, place[rows]
            for name, (start, _) in self.columns.items():
                if view.facts[name].categorical:
                    codes = view.codes[name][rows].astype(np.int64)
                    shown = np.flatnonzero(codes > 0)
                    matrix[shown, start + codes[shown] - 1] = 1.0
                else:
                    values = view.position(name)[rows]
                    matrix[:, start], matrix[:, start + 1] = np.nan_to_num(values, nan=0.5), np.isnan(values)
            gram += matrix.T @ matrix
        return _Products(gram, len(has))


@dataclass(frozen=True)
class _Products:
    gram: NDArray[np.float64]
    rows: int

    @property
    def target_varies(self) -> bool:
        return self.gram[-1, -1] / self.rows - (self.gram[0, -1] / self.rows) ** 2 > 1e-12

    def coefficients(self, columns: list[int]) -> NDArray[np.float64]:
        """Least squares; where columns depend on each other, the shortest solution."""
        inner = self.gram[np.ix_(columns, columns)]
        return np.linalg.lstsq(inner, self.gram[columns, -1], rcond=1e-10)[0]

    def rmse(self, coefficients: NDArray[np.float64], columns: list[int]) -> float:
        """The error on these rows of a model from elsewhere: y'y - 2 b'X'y + b'X'Xb."""
        inner = self.gram[np.ix_(columns, columns)]
        residual = self.gram[-1, -1] - 2 * coefficients @ self.gram[columns, -1] + coefficients @ inner @ coefficients
        return float(np.sqrt(max(residual, 0.0) / self.rows))

    def intervals(self) -> dict[int, tuple[float, float]]:
        """95 % confidence intervals of the coefficients that the rows determine, by column of the design."""
        inner = self.gram[:-1, :-1]
        kept = _independent(inner)
        free = self.rows - len(kept)
        if free < 1:
            return {}
        inverse = np.linalg.inv(inner[np.ix_(kept, kept)])
        coefficients = inverse @ self.gram[kept, -1]
        residual = self.gram[-1, -1] - coefficients @ self.gram[kept, -1]
        spread = 1.96 * np.sqrt(np.maximum(np.diag(inverse), 0.0) * max(residual, 0.0) / free)
        return {
            column: (float(coefficients[at] - spread[at]), float(coefficients[at] + spread[at]))
            for at, column in enumerate(kept)
        }


def _independent(inner: NDArray[np.float64]) -> list[int]:
    """Columns that no earlier kept column explains: Gaussian elimination on the cross products, in the given order."""
    work, kept = inner.copy(), []
    for column in range(len(work)):
        pivot = work[column, column]
        if pivot > 1e-9 * max(inner[column, column], 1e-300) and inner[column, column] > 0:
            kept.append(column)
            work -= np.outer(work[:, column], work[column]) / pivot
    return kept
