"""Images: how well a classifier that learnt from synthetic ones sees real ones, and how far mean images lie apart."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.compare import Part, Scale, against_holdout, mean
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.models import CLASSIFIERS, Prediction, check_names, classification_scores, classify
from understudy.evaluation.parallel import run
from understudy.evaluation.prediction import NO_LABEL
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.progress import Progress, silent
from understudy.schema import Schema

FAMILY = "images"
FAST = ("logistic_regression", "random_forest")
ROWS_PER_BLOCK = 4096
EVERY = "(all)"  # the one class of images without a label


@dataclass(frozen=True)
class ImageScores:
    """All classifiers' scores for the label: `scores[model][table][measure]`, table being "real" or "synthetic"."""

    label: str | None = None
    scores: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    undefined: str | None = None


def score_images(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    models: tuple[str, ...] = FAST,
    rows: int = 5_000,
    test_rows: int = 10_000,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress = silent,
) -> ImageScores:
    """Trains every classifier on at most `rows` real and as many synthetic images, and tests all on holdout images.

    The models see pixels alone, as numbers from 0 to 1; `models.CLASSIFIERS` are the twelve of the DP-MERF paper.
    """
    check_names(models, CLASSIFIERS)
    r, s, t = open_tables(real, synthetic, schema, holdout)
    label = schema.label
    if label is None or t is None:
        return ImageScores(label, undefined=NO_LABEL if label is None else NO_HOLDOUT)
    if not r.facts[label].categorical:
        return ImageScores(label, undefined="the label is a number; classifiers need classes")
    classes = r.facts[label].size
    chosen = {
        table: _labelled(view, label, count, seed)
        for table, view, count in (("real", r, rows), ("synthetic", s, rows), ("test", t, test_rows))
    }
    pixels = {table: view.pixels.astype(np.float32) / 255 for table, view in chosen.items()}
    targets = {table: view.codes[label].astype(np.int64) for table, view in chosen.items()}
    if len(np.unique(targets["test"])) < 2:
        return ImageScores(label, undefined="the holdout label has one class only")
    plans = [(model, table) for model in models for table in ("real", "synthetic")]
    done: list[Prediction] = run(
        [(classify, (model, pixels[table], targets[table], pixels["test"], classes, seed)) for model, table in plans],
        jobs=jobs,
        stage="train on synthetic images, test on real",
        progress=progress,
    )
    scores: dict[str, dict[str, dict[str, float]]] = {}
    notes = []
    for (model, table), prediction in zip(plans, done, strict=True):
        if prediction.scores is None:
            notes.append(f"{model} on {table} images: {prediction.undefined}")
        else:
            found = classification_scores(targets["test"], prediction.scores, positive=None)
            scores.setdefault(model, {})[table] = found
    return ImageScores(label, scores, tuple(notes))


def _labelled(view: View, label: str, count: int, seed: int) -> View:
    """At most `count` rows that have a class."""
    order = view.sample(None, seed)
    return view.take(order[view.codes[label][order] < view.facts[label].size][:count])


def image_accuracy(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, **options: Any
) -> MetricResult:
    """Mean accuracy on holdout images of classifiers that learnt from synthetic ones; 1 is best.

    The reference is that of the same classifiers after real images. Options are those of `score_images`.
    """
    return read_scores(score_images(real, synthetic, schema, holdout=holdout, **options), "accuracy")


def image_f1(
    real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None, **options: Any
) -> MetricResult:
    """The same with the macro F1: every class counts alike, however many images it has."""
    return read_scores(score_images(real, synthetic, schema, holdout=holdout, **options), "f1")


def read_scores(found: ImageScores, measure: str) -> MetricResult:
    """`image_accuracy` or `image_f1` from scores at hand."""
    scale = Scale(name=f"image_{measure}", family=FAMILY, direction="higher", ideal=1.0, range=(0.0, 1.0))
    if found.undefined:
        return scale.result(Part(undefined=found.undefined), None, missing=found.undefined)
    details = {"label": found.label, "measure": measure, "models": found.scores}
    parts = []
    for table in ("synthetic", "real"):
        numbers = [by[table][measure] for by in found.scores.values() if table in by]
        value = float(np.mean(numbers)) if numbers else None
        undefined = None if numbers else f"no classifier could be trained on the {table} images"
        parts.append(Part(value=value, undefined=undefined, notes=found.notes, details=details))
    return scale.result(*parts)


def mean_image(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """Distance between the mean images of a class, real and synthetic, averaged over the classes; 0 is best, 1 worst.

    A class's distance is the root mean square over pixels, on the scale from black to white. A class of the real images
    that the synthetic ones lack counts as 1. `per_column` has the classes.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="mean_image", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    ours = class_means(r, schema)

    def compare(other: View) -> Part:
        theirs = class_means(other, schema)
        parts = {name: _distance(found, theirs[name]) if name in theirs else 1.0 for name, found in ours.items()}
        lost = sum(name not in theirs for name in ours)
        notes = (f"{lost} classes have no image and count as 1",) if lost else ()
        return Part(value=mean(parts), per_column=parts, notes=notes)

    return against_holdout(scale, compare, s, t)


def class_means(view: View, schema: Schema) -> dict[str, NDArray[np.float64]]:
    """The mean image (a row of pixels) of each class that has one, in the order of the declared values."""
    label = schema.label
    if label is None or not view.facts[label].categorical:
        return {EVERY: _mean(view.pixels)}
    facts, codes = view.facts[label], view.codes[label]
    groups = {facts.labels[code]: np.flatnonzero(codes == code) for code in range(facts.size)}
    return {name: _mean(view.pixels, rows) for name, rows in groups.items() if len(rows)}


def _mean(pixels: NDArray[np.uint8], rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
    rows = np.arange(len(pixels)) if rows is None else rows
    total = np.zeros(pixels.shape[1])
    for first in range(0, len(rows), ROWS_PER_BLOCK):  # all pixels as floats would take eight times their room
        total += pixels[rows[first : first + ROWS_PER_BLOCK]].sum(axis=0, dtype=np.float64)
    return total / len(rows)


def _distance(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """
    >>> _distance(np.array([0.0, 255.0]), np.array([255.0, 0.0]))
    1.0
    """
    return float(np.sqrt(np.mean(((first - second) / 255) ** 2)))
