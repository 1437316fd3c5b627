"""From public facts to a plan: which columns, how many frequencies, how much noise; and refusals before any row."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget
from understudy.privacy.calibrate import calibrate, noise_multiplier
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Image, Schema
from understudy.synthesizers.dp_merf.pictures.frequencies import WIDTHS
from understudy.synthesizers.evidence import conditions
from understudy.synthesizers.neural.plans import Phase, check_size, label_classes, make_plans
from understudy.table.cells import cells_of

if TYPE_CHECKING:
    from understudy.training.dpsgd import DpSgd

METHOD = "dp-merf"
FEATURES = 4000
CODE_FEATURES = 2000
HIDDEN = (256, 256)
LATENT = 32
DRAWS, LEAST_DRAWS = 320, 8  # images a step over all classes, and of each class
WAVES_A_STEP = 500
STEPS = 2000
LEARNING_RATE = 0.002
# Largest lengths beside that of the waves. Pixels weigh as much; a count needs little to be known within a percent.
PIXEL_WEIGHT, COUNT_WEIGHT = 1.0, 0.25
MINIBATCH_PASSES = 5  # each row is in about this many minibatches
# The autoencoder: codes, units, steps, and its share of the budget (of 1/z^2).
CODES, CODER_HIDDEN, CODER_STEPS, CODER_SHARE, CODER_CLIP, CODER_RATE, CODER_BLUR = 16, 256, 600, 0.7, 1.0, 0.002, 0.1
MOST_FREQUENCY_NUMBERS = 1 << 27  # pixels times features: a gigabyte of float64
SHARES = ("counted", "equal")


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a fit does, decided from the schema, the budget and the options alone.

    noise_multiplier: of the one release; minibatches: the plan of the many, in its place. coder: the plan of the
    autoencoder's steps, or None. kept: the public share of each class's rows that is counted.
    """

    image_name: str
    image: Image
    label: str | None
    classes: int
    features: int
    widths: tuple[float, ...]
    hidden: tuple[int, ...]
    latent: int
    draws: int
    steps: int
    learning_rate: float
    count_weight: float
    noise_multiplier: float
    minibatches: "DpSgd | None"
    coder: "DpSgd | None"
    kept: np.ndarray
    equal: bool

    @property
    def inputs(self) -> int:
        """Numbers that are embedded: pixels, or codes of an autoencoder."""
        return self.image.pixels if self.coder is None else CODES


def make_plan(config: Any, schema: Schema, budget: Budget) -> Plan:
    """The plan, or a refusal that names the option or column and the remedy. No row is asked."""
    image_name, image, label, classes = _columns(schema)
    if config.minibatches and config.autoencoder:
        raise OptionError("minibatches and autoencoder exclude each other: leave one of them out")
    shares = config.class_shares or SHARES[0]
    if shares not in SHARES:
        raise OptionError(f"class_shares must be one of {', '.join(SHARES)}, got {shares!r}")
    hidden = HIDDEN if config.hidden is None else config.hidden
    hidden = (hidden, hidden) if isinstance(hidden, int) else tuple(hidden)
    features = config.features or (CODE_FEATURES if config.autoencoder else FEATURES)
    latent = config.latent or LATENT
    if image.pixels * features > MOST_FREQUENCY_NUMBERS:
        most = MOST_FREQUENCY_NUMBERS // image.pixels
        raise OptionError(f"features must be at most {most} for images of {image.pixels} numbers, got {features}")
    sizes = (latent + classes, *hidden, image.pixels)
    check_size(sum(a * b for a, b in pairwise(sizes)), "hidden")
    multiplier, minibatches, coder = _noise(config, schema, budget, image)
    check_counts(l2_sensitivity=float(1 << 20), noise_multiplier=multiplier, purpose="embeddings of images")
    return Plan(
        image_name=image_name,
        image=image,
        label=label,
        classes=classes,
        features=features,
        widths=WIDTHS if config.widths is None else tuple(config.widths),
        hidden=hidden,
        latent=latent,
        draws=max(LEAST_DRAWS, (config.batch or DRAWS) // classes),
        steps=config.steps or STEPS,
        learning_rate=config.learning_rate or LEARNING_RATE,
        count_weight=config.count_weight or COUNT_WEIGHT,
        noise_multiplier=multiplier,
        minibatches=minibatches,
        coder=coder,
        kept=_kept(config.undersample, schema, label, classes),
        equal=shares == "equal",
    )


def _columns(schema: Schema) -> tuple[str, Image, str | None, int]:
    """The image, the label and its number of codes."""
    ((name, image),) = schema.images.items()
    others = [other for other in schema.modelled if other != schema.label]
    if others:
        raise SchemaError(
            f"{METHOD} makes images with a label and nothing beside; drop {', '.join(map(repr, others))} from the "
            "table and the schema, or make one of them the label"
        )
    return name, image, schema.label, 1 if schema.label is None else label_classes(schema, METHOD)


def _noise(config: Any, schema: Schema, budget: Budget, image: Image) -> "tuple[float, DpSgd | None, DpSgd | None]":
    """The release's noise multiplier, its minibatches if any, the autoencoder's steps if any."""
    if config.autoencoder:
        check_size(2 * (image.pixels + CODES) * CODER_HIDDEN, "autoencoder")
        phase = Phase(None, CODER_STEPS, CODER_SHARE, CODER_CLIP)
        plans = make_plans(schema, budget, one_way_share=1 - CODER_SHARE, phases=(phase,))
        return plans.one_way_multiplier, None, plans.phases[0]
    if config.minibatches:
        return 0.0, minibatch_plan(schema.rows, config.minibatches, budget), None
    return noise_multiplier(budget), None, None


@lru_cache(maxsize=64)
def minibatch_plan(rows: int, steps: int, budget: Budget) -> "DpSgd":
    """Steps that sample every row at a public rate; the bound of a row's part is the feature map's, not a clip."""
    from understudy.training.dpsgd import DpSgd, sgd_event

    rate = min(1.0, MINIBATCH_PASSES / steps)
    multiplier = calibrate(lambda noise: [sgd_event(rate, steps, noise)], budget)
    return DpSgd(rate=rate, steps=steps, clip=1.0, noise_multiplier=multiplier, expected_batch=rate * rows)


def _kept(undersample: Any, schema: Schema, label: str | None, classes: int) -> np.ndarray:
    """By class, the share of rows that is counted: public rates by value of the label."""
    kept = np.ones(classes)
    if not undersample:
        return kept
    if label is None:
        raise OptionError("undersample needs a label: declare `label:` in the schema, or leave it out")
    for value, rate in dict(undersample).items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not (math.isfinite(rate) and 0 < rate <= 1):
            raise OptionError(f"undersample: rates must be above 0 and at most 1, got {rate!r}")
        cells = {label: cells_of(schema.modelled[label])}
        kept[int(conditions(schema, cells, {label: value})[label].first[0])] = rate
    return kept
