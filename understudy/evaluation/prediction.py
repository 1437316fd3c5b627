"""Train on synthetic rows, test on real ones: does a model built on the stand-in work on the people it stands for?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import OptionError
from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.models import (
    CLASSIFIERS,
    REGRESSORS,
    Prediction,
    check_names,
    classification_scores,
    classify,
    regress,
    regression_scores,
)
from understudy.evaluation.parallel import run
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.progress import Progress, silent
from understudy.schema import Schema

FAMILY = "prediction"

# A model that is worse than the mean can be worse without end; below this, R2 says no more.
WORST_R2 = -1.0

NO_LABEL = "the schema names no label; set label: in it, or pass label="


@dataclass(frozen=True)
class LabelScores:
    """All models' scores for one label, trained on each table and tested on the same holdout rows.

    `scores[model][table][measure]`, table being "real", "synthetic" or "fresh" (half of the holdout rows, tested on the
    other half, beside "real_on_half"). `predictions[model][table]` are those on all test rows.
    """

    label: str | None
    task: str
    scores: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    undefined_models: Mapping[str, str] = field(default_factory=dict)
    predictions: Mapping[str, Mapping[str, NDArray]] = field(default_factory=dict)
    truth: NDArray | None = None
    test: View | None = None
    positive: int | None = None
    undefined: str | None = None
    undefined_synthetic: str | None = None
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def measure(self) -> str:
        return "roc_auc" if self.task == "classification" else "r2"

    def column(self, table: str) -> dict[str, float]:
        """The main measure of every model that was trained on this table."""
        return {model: by[table][self.measure] for model, by in self.scores.items() if table in by}


def score_label(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    label: str | None = None,
    models: tuple[str, ...] | None = None,
    rows: int = 10_000,
    test_rows: int = 20_000,
    fresh: bool = False,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress = silent,
) -> LabelScores:
    """Trains every model on at most `rows` real and as many synthetic rows and tests all on at most `test_rows` holdout
    rows. The metrics below are readings of what this returns."""
    r, s, t = open_tables(real, synthetic, schema, holdout)
    label = schema.label if label is None else label
    if label is not None and label not in r.facts:
        raise OptionError(f"label must be a modelled column of the schema, got {label!r}")
    task = "regression" if label in r.numeric else "classification"
    known = CLASSIFIERS if task == "classification" else REGRESSORS
    models = known if models is None else tuple(models)
    check_names(models, known)
    if label is None or t is None:
        return LabelScores(label, task, undefined=NO_LABEL if label is None else NO_HOLDOUT)
    if len(r.facts) < 2:
        return LabelScores(label, task, undefined="the label is the only modelled column")
    setting = _Setting.of(r, s, t, label, task, rows=rows, test_rows=test_rows, seed=seed)
    if setting.undefined:
        return LabelScores(label, task, undefined=setting.undefined)
    return _train_all(setting, models, fresh=fresh, seed=seed, jobs=jobs, progress=progress)


@dataclass(frozen=True)
class _Setting:
    """Encoded rows and targets of all tables."""

    label: str
    task: str
    classes: int
    positive: int | None
    rows: dict[str, NDArray]
    targets: dict[str, NDArray]
    test: View
    undefined: str | None = None
    undefined_synthetic: str | None = None

    @staticmethod
    def of(r: View, s: View, t: View, label: str, task: str, *, rows: int, test_rows: int, seed: int) -> "_Setting":
        tables = {
            "real": _labelled(r, label, rows, seed),
            "synthetic": _labelled(s, label, rows, seed),
            "test": _labelled(t, label, test_rows, seed),
        }
        encoder = Encoder.of(r).without(label)
        if task == "classification":
            targets = {key: view.codes[label].astype(np.int64) for key, view in tables.items()}
        else:
            targets = {key: view.position(label) for key, view in tables.items()}
        many = {key: len(np.unique(target)) for key, target in targets.items()}
        word = "one class" if task == "classification" else "one value"
        reasons = {
            key: f"the {'holdout' if key == 'test' else key} label has {word} only"
            if count
            else f"no {key} row has a label"
            for key, count in many.items()
            if count < 2
        }
        positive, classes = None, 0
        if task == "classification":
            classes = r.facts[label].size
            counts = np.bincount(targets["real"], minlength=classes)
            if classes == 2:
                positive = int(counts.argmin())
        return _Setting(
            label=label,
            task=task,
            classes=classes,
            positive=positive,
            rows={key: encoder.one_hot(view.without(label)) for key, view in tables.items()},
            targets=targets,
            test=tables["test"],
            undefined=reasons.get("real") or reasons.get("test"),
            undefined_synthetic=reasons.get("synthetic"),
        )

    def task_of(self, model: str, rows: NDArray, targets: NDArray, test: NDArray, seed: int) -> tuple:
        if self.task == "classification":
            return classify, (model, rows, targets, test, self.classes, seed)
        return regress, (model, rows, targets, test, seed)

    def score(self, prediction: NDArray, truth: NDArray) -> dict[str, float]:
        if self.task == "classification":
            return classification_scores(truth, prediction, positive=self.positive)
        return regression_scores(truth, prediction)


def _labelled(view: View, label: str, count: int, seed: int) -> View:
    """At most `count` rows that have a label inside its domain."""
    facts = view.facts[label]
    has = view.codes[label] < facts.size if facts.categorical else ~view.absent(label)
    chosen = view.sample(None, seed)
    return view.take(chosen[has[chosen]][:count])


def _train_all(
    setting: _Setting, models: tuple[str, ...], *, fresh: bool, seed: int, jobs: int, progress: Progress
) -> LabelScores:
    test, truth = setting.rows["test"], setting.targets["test"]
    half = len(truth) // 2
    plans: list[tuple[str, str, tuple]] = []
    for model in models:
        for table in ("real", "synthetic"):
            if table == "real" or setting.undefined_synthetic is None:
                task = setting.task_of(model, setting.rows[table], setting.targets[table], test, seed)
                plans.append((model, table, task))
        if fresh and _varies(truth[:half]) and _varies(truth[half:]):
            plans.append((model, "fresh", setting.task_of(model, test[:half], truth[:half], test[half:], seed)))
    done: list[Prediction] = run(
        [task for _, _, task in plans], jobs=jobs, stage="train on synthetic, test on real", progress=progress
    )
    scores: dict[str, dict] = {}
    predictions: dict[str, dict] = {}
    undefined: dict[str, str] = {}
    slow = set()
    for (model, table, _), prediction in zip(plans, done, strict=True):
        if prediction.scores is None:
            undefined[model] = prediction.undefined or ""
            continue
        on_half = table == "fresh"
        scores.setdefault(model, {})[table] = setting.score(prediction.scores, truth[half:] if on_half else truth)
        if table == "real" and fresh and _varies(truth[half:]):
            scores[model]["real_on_half"] = setting.score(prediction.scores[half:], truth[half:])
        if not on_half:
            predictions.setdefault(model, {})[table] = prediction.scores
        if not prediction.converged:
            slow.add(f"{model} on {table} rows")
    notes = tuple(f"{model}: {reason}" for model, reason in undefined.items())
    if slow:
        notes += (f"stopped before converging: {', '.join(sorted(slow))}",)
    return LabelScores(
        label=setting.label,
        task=setting.task,
        scores=scores,
        undefined_models=undefined,
        predictions=predictions,
        truth=truth,
        test=setting.test,
        positive=setting.positive,
        undefined_synthetic=setting.undefined_synthetic,
        notes=notes,
        facts={"rows": {key: len(target) for key, target in setting.targets.items()}},
    )


def _varies(targets: NDArray) -> bool:
    return len(targets) > 1 and bool((targets != targets[0]).any())


def train_on_synthetic(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, **options: Any
) -> MetricResult:
    """Mean ROC AUC (R2 for a numeric label) of models trained on synthetic rows and tested on holdout rows; 1 is best.

    The reference is the mean of the same models trained on real rows. `details["models"]` has all measures of every
    model, for both tables. Options are those of `score_label`.
    """
    return read_train_on_synthetic(score_label(real, synthetic, schema, holdout=holdout, **options))


def read_train_on_synthetic(found: LabelScores) -> MetricResult:
    """`train_on_synthetic` from scores at hand."""
    low = 0.0 if found.task == "classification" else WORST_R2
    scale = Scale(name="train_on_synthetic", family=FAMILY, direction="higher", ideal=1.0, range=(low, 1.0))
    if found.undefined:
        return scale.result(Part(undefined=found.undefined), None, missing=found.undefined)
    details = {
        "label": found.label,
        "measure": found.measure,
        "models": found.scores,
        "undefined_models": found.undefined_models,
        **found.facts,
    }
    notes = found.notes
    if found.task == "regression":
        notes += (f"an R2 below {WORST_R2:g} counts as {WORST_R2:g} in the mean",)
    parts = []
    for table in ("synthetic", "real"):
        numbers = {model: max(number, low) for model, number in found.column(table).items()}
        if numbers:
            parts.append(Part(value=float(np.mean(list(numbers.values()))), notes=notes, details=details))
        else:
            reason = (found.undefined_synthetic if table == "synthetic" else None) or "no model could be trained"
            parts.append(Part(undefined=reason, notes=notes, details=details))
    return scale.result(*parts)
