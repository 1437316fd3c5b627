"""Every metric in one call: a fast set for a first look, or all of them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from understudy.errors import OptionError
from understudy.evaluation import (
    attacks,
    correlations,
    dimension_wise,
    disclosure,
    distributions,
    images,
    modes,
    prediction,
    projection,
    ranking,
    regression,
    subgroups,
    telling_apart,
)
from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.models import CLASSIFIERS, FAST_CLASSIFIERS, FAST_REGRESSORS
from understudy.evaluation.parallel import quiet, run
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.progress import Progress, silent
from understudy.schema import Schema

Metric = Callable[..., MetricResult]


@dataclass(frozen=True)
class Entry:
    """A metric of the registry: which options it takes in the fast set (None: left out of it) and in the full one."""

    metric: Metric
    fast: dict[str, Any] | None
    full: dict[str, Any] | None = field(default_factory=dict)


# In the order in which they are shown. The last three need a choice that only a person can make (which column, which
# modes) or are computed together with another metric.
REGISTRY: dict[str, Entry] = {
    "tvd_1way": Entry(distributions.tvd, {"order": 1}, {"order": 1}),
    "tvd_2way": Entry(distributions.tvd, {"order": 2}, {"order": 2}),
    "tvd_3way": Entry(distributions.tvd, {"order": 3}, {"order": 3}),
    "nist_3way": Entry(distributions.nist_three_way, {"sets": 50}),
    "wasserstein": Entry(distributions.wasserstein, {}),
    "jsd": Entry(distributions.jsd, {}),
    "mu_kl": Entry(distributions.mu_kl, {}),
    "dimension_wise_probability": Entry(distributions.dimension_wise_probability, {}),
    "lost_categories": Entry(distributions.lost_categories, {}),
    "spearman": Entry(correlations.spearman, {}),
    "cramers_v": Entry(correlations.cramers_v, {}),
    "correlation_ratio": Entry(correlations.correlation_ratio, {}),
    "pca_marginal": Entry(projection.pca_marginal, {"rows": 10_000}),
    "dimension_wise_prediction": Entry(dimension_wise.dimension_wise_prediction, None),
    "regression_similarity": Entry(regression.regression_similarity, None),
    "coefficient_overlap": Entry(regression.coefficient_overlap, None),
    "pmse": Entry(telling_apart.pmse, None),
    "pmse_ratio_logistic": Entry(telling_apart.pmse_ratio, {"rows": 10_000}),
    "pmse_ratio_tree": Entry(telling_apart.pmse_ratio, None, {"model": "tree"}),
    "c2st": Entry(telling_apart.c2st, {"rows": 10_000, "folds": 2}),
    "classifier_score": Entry(modes.classifier_score, None),
    "exact_copies": Entry(disclosure.exact_copies, {}),
    "dcr_share": Entry(disclosure.dcr_share, {"queries": 1000, "rows": 10_000}),
    "membership_inference": Entry(attacks.membership_inference, None),
    "attribute_inference": Entry(attacks.attribute_inference, None),
    "train_on_synthetic": Entry(prediction.train_on_synthetic, None, None),
    "ranking_agreement": Entry(ranking.ranking_agreement, None, None),
    "subgroup_scores": Entry(subgroups.subgroup_scores, None, None),
    "gaussians_quality": Entry(modes.gaussians_quality, None, None),
}

# Of a table with images: the images' own, and what can be said of the columns beside them.
IMAGE_METRICS = ("image_accuracy", "image_f1", "mean_image")
BESIDE_IMAGES = ("tvd_1way", "tvd_2way", "lost_categories")

# Metrics whose own work can be shared out among the cores; the others are shared out among each other.
SHARED_OUT = ("dimension_wise_prediction",)


def evaluate(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    which: str = "fast",
    by: str | None = None,
    seed: int = 0,
    jobs: int = 2,
    progress: Progress = silent,
) -> Evaluation:
    """Compares a synthetic table with the real one, beside what fresh real rows (`holdout`) would score.

    Tables are DataFrames or paths of CSV or Parquet files. `which` is "fast" (seconds) or "full" (minutes: all metrics
    and the twelve classifiers). `by` names a categorical column within whose values the prediction is scored again. The
    results are computed from private rows: they are for the data steward, outside the guarantee.
    """
    if which not in ("fast", "full"):
        raise OptionError(f"which must be fast or full, got {which!r}")
    if jobs < 1:
        raise OptionError(f"jobs must be at least 1, got {jobs}")
    progress("reading the tables", 0.0)
    views = open_tables(real, synthetic, schema, holdout)
    if by is not None:
        if schema.images:
            raise OptionError("by= scores the prediction from columns; a table with images has none, leave it out")
        subgroups.check_by(by, schema)
    plans = _plans(which, seed)
    if schema.images:
        plans = {name: plans[name] for name in BESIDE_IMAGES if len(schema.modelled) > (name == "tvd_2way")}
    seconds: dict[str, float] = {}
    found: dict[str, MetricResult] = {}
    shared = [(name, task) for name, task in plans.items() if name in SHARED_OUT]
    single = [(name, task) for name, task in plans.items() if name not in SHARED_OUT]
    done = run([(_timed, (*task, views, schema)) for _, task in single], jobs=jobs, stage="metrics", progress=progress)
    for (name, _), (result, took) in zip(single, done, strict=True):
        found[name], seconds[name] = result, took
    for name, (metric, options) in shared:
        with quiet():
            found[name], seconds[name] = _timed(metric, options | {"jobs": jobs, "progress": progress}, views, schema)
    start = time.perf_counter()
    if schema.images:
        found |= _image_metrics(views, schema, which=which, seed=seed, jobs=jobs, progress=progress)
    else:
        found |= _label_metrics(views, schema, which=which, by=by, seed=seed, jobs=jobs, progress=progress)
    seconds["image_accuracy" if schema.images else "train_on_synthetic"] = time.perf_counter() - start
    return Evaluation(
        results=tuple(found[name] for name in (*IMAGE_METRICS, *REGISTRY) if name in found),
        rows={role: view.rows for role, view in _roles(views) if view is not None},
        which=which,
        seed=seed,
        outside={role: view.outside for role, view in _roles(views) if view is not None and view.outside},
        seconds=seconds,
    )


Views = tuple[View, View, View | None]


def _roles(views: Views) -> tuple[tuple[str, View | None], ...]:
    return tuple(zip(("real", "synthetic", "holdout"), views, strict=True))


def _plans(which: str, seed: int) -> dict[str, tuple[Metric, dict[str, Any]]]:
    plans = {}
    for name, entry in REGISTRY.items():
        options = entry.fast if which == "fast" else entry.full
        if options is not None:
            takes_seed = "seed" in signature(entry.metric).parameters
            plans[name] = (entry.metric, options | ({"seed": seed} if takes_seed else {}))
    return plans


def _timed(metric: Metric, options: dict[str, Any], views: Views, schema: Schema) -> tuple[MetricResult, float]:
    start = time.perf_counter()
    result = metric(views[0], views[1], schema, holdout=views[2], **options)
    return result, time.perf_counter() - start


def _label_metrics(
    views: Views, schema: Schema, *, which: str, by: str | None, seed: int, jobs: int, progress: Progress
) -> dict[str, MetricResult]:
    """Three readings of one training of all models."""
    numeric = schema.label in views[0].numeric
    fast = FAST_REGRESSORS if numeric else FAST_CLASSIFIERS
    scores = prediction.score_label(
        views[0],
        views[1],
        schema,
        holdout=views[2],
        models=fast if which == "fast" else None,
        fresh=which == "full",
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    found = {"train_on_synthetic": prediction.read_train_on_synthetic(scores)}
    if which == "full":
        found["ranking_agreement"] = ranking.read_ranking_agreement(scores)
    if by is not None:
        found["subgroup_scores"] = subgroups.read_subgroup_scores(scores, by=by)
    return found


def _image_metrics(
    views: Views, schema: Schema, *, which: str, seed: int, jobs: int, progress: Progress
) -> dict[str, MetricResult]:
    """Two readings of one training of all classifiers, and the mean images."""
    scores = images.score_images(
        views[0],
        views[1],
        schema,
        holdout=views[2],
        models=images.FAST if which == "fast" else CLASSIFIERS,
        seed=seed,
        jobs=jobs,
        progress=progress,
    )
    return {
        "image_accuracy": images.read_scores(scores, "accuracy"),
        "image_f1": images.read_scores(scores, "f1"),
        "mean_image": images.mean_image(views[0], views[1], schema, holdout=views[2]),
    }
