"""From public facts to a plan: which columns, how many frequencies, how much noise; and refusals before any row."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.errors import OptionError, SchemaError
from understudy.privacy import Budget
from understudy.privacy.calibrate import calibrate, noise_multiplier
from understudy.privacy.mechanisms import check_counts
from understudy.schema import Image, Schema
from understudy.synthesizers.dp_merf.pictures.frequencies import WIDTHS
from understudy.synthesizers.dp_merf.undersampling import rates_of
from understudy.synthesizers.dp_merf.waves import AMPLITUDE
from understudy.synthesizers.neural.plans import MOST_PARAMETERS, Phase, check_size, label_classes, make_plans

if TYPE_CHECKING:
    from understudy.training.dpsgd import DpSgd

METHOD = "dp-merf"
FEATURES = 3000
CODE_FEATURES = 1000
LATENT = 32
BATCH, LEAST_PROTOTYPES = 1000, 4  # prototypes of all classes, each an image of every step; and of each class
WAVES_A_STEP = 500
STEPS = 400
LEARNING_RATE = 0.1
# Largest lengths beside that of the waves. Pixels weigh as much; a count needs little to be known within a percent.
PIXEL_WEIGHT, COUNT_WEIGHT = 1.0, 0.25
MINIBATCH_PASSES = 5  # each row is in about this many minibatches
# The autoencoder: codes, units, steps, and its share of the budget (of 1/z^2).
CODES, CODER_HIDDEN, CODER_STEPS, CODER_SHARE, CODER_CLIP, CODER_RATE, CODER_BLUR = 16, 64, 1000, 0.7, 1.0, 0.003, 0.1
MOST_FREQUENCY_NUMBERS = 1 << 26  # pixels times features: half a gigabyte of float64
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
    latent: int
    prototypes: int
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
    _check_options(config)
    features = config.features or min(
        CODE_FEATURES if config.autoencoder else FEATURES, MOST_FREQUENCY_NUMBERS // image.pixels
    )
    latent, prototypes = config.latent or LATENT, max(LEAST_PROTOTYPES, (config.batch or BATCH) // classes)
    _check_size(image, classes, features, latent + prototypes)
    multiplier, minibatches, coder = _noise(config, schema, budget, image)
    count_weight = COUNT_WEIGHT if config.count_weight is None else config.count_weight
    _check_noise(multiplier, minibatches, features, count_weight)
    return Plan(
        image_name=image_name,
        image=image,
        label=label,
        classes=classes,
        features=features,
        widths=WIDTHS if config.widths is None else tuple(config.widths),
        latent=latent,
        prototypes=prototypes,
        steps=config.steps or STEPS,
        learning_rate=config.learning_rate or LEARNING_RATE,
        count_weight=count_weight,
        noise_multiplier=multiplier,
        minibatches=minibatches,
        coder=coder,
        kept=_kept(config, schema, label, classes),
        equal=config.class_shares == "equal",
    )


def _check_options(config: Any) -> None:
    if config.minibatches and config.autoencoder:
        raise OptionError("minibatches and autoencoder exclude each other: leave one of them out")
    if config.class_shares not in (None, *SHARES):
        raise OptionError(f"class_shares must be one of {', '.join(SHARES)}, got {config.class_shares!r}")
    if config.hidden is not None:
        raise OptionError("hidden is for tables: images are made from prototypes; set their number by batch instead")
    for option in ("order", "one_way_share"):
        if getattr(config, option) is not None:
            raise OptionError(f"{option} is for tables: an image's pixels are embedded as they are; leave it out")
    if config.count_weight is not None and not config.count_weight > 0:
        raise OptionError(f"count_weight must be above 0 for images, got {config.count_weight}: means need a count")


def _check_size(image: Image, classes: int, features: int, patterns: int) -> None:
    """Refuses what would not fit in memory."""
    if image.pixels * features > MOST_FREQUENCY_NUMBERS:
        most = MOST_FREQUENCY_NUMBERS // image.pixels
        raise OptionError(f"features must be at most {most} for images of {image.pixels} numbers, got {features}")
    if classes * patterns * image.pixels > MOST_PARAMETERS:
        most = MOST_PARAMETERS // image.pixels
        raise OptionError(
            f"batch and latent make {classes * patterns} patterns of {image.pixels} numbers; at most {most} fit in "
            "memory: lower them, or make the images smaller"
        )


def _check_noise(multiplier: float, minibatches: "DpSgd | None", features: int, count_weight: float) -> None:
    """Refuses noise that could not be drawn. A class's vector is at most about this long (`PictureMap`)."""
    length = AMPLITUDE * math.sqrt(features * (1 + PIXEL_WEIGHT**2 + count_weight**2))
    if minibatches is not None:
        multiplier = minibatches.noise_multiplier * math.sqrt(minibatches.steps)
    check_counts(l2_sensitivity=length, noise_multiplier=multiplier, purpose="embeddings of images")


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


def _kept(config: Any, schema: Schema, label: str | None, classes: int) -> np.ndarray:
    """By class, the public share of rows that is counted."""
    rates = rates_of(config, schema, classes=classes if label is not None else 0)
    return np.ones(classes) if rates is None else rates.of_codes
