"""DP-MERF on images: plan, autoencoder if asked for, one release, and the generator that matches it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.privacy import Budget, Ledger, Streams
from understudy.privacy.ledger import Entry
from understudy.progress import Progress
from understudy.schema import Schema
from understudy.synthesizers.dp_merf.pictures import plan as plans
from understudy.synthesizers.dp_merf.pictures.codes import WholeEncoder
from understudy.synthesizers.dp_merf.pictures.embedding import PictureMap
from understudy.synthesizers.dp_merf.pictures.frequencies import code_waves, cosines, picture_waves, spectrum
from understudy.synthesizers.dp_merf.pictures.plan import Plan
from understudy.synthesizers.dp_merf.pictures.release import PURPOSE, release
from understudy.synthesizers.dp_merf.pictures.released import Layers, PictureReleased
from understudy.synthesizers.planned import Planned, gaussian_event
from understudy.table.table import Table

if TYPE_CHECKING:
    from understudy.synthesizers.dp_merf.pictures.match import Basis
    from understudy.training.pixel_autoencoder import PixelCoder


def check(config: Any, schema: Schema, budget: Budget) -> None:
    """Refuses what cannot work, from public facts alone."""
    plans.make_plan(config, schema, budget)


def planned(config: Any, schema: Schema, budget: Budget) -> Planned:
    """What `train` will charge."""
    plan = plans.make_plan(config, schema, budget)
    coder = [] if plan.coder is None else [Entry(plan.coder.event, "steps of the autoencoder")]
    once = gaussian_event(plan.noise_multiplier)
    embeddings = Entry(once if plan.minibatches is None else plan.minibatches.event, PURPOSE)
    return Planned(
        (*coder, embeddings), (("embedding", f"{plan.features:,} random frequencies of {plan.inputs:,} numbers"),)
    )


def train(
    config: Any, schema: Schema, table: Table, budget: Budget, *, streams: Streams, progress: Progress
) -> tuple[PictureReleased, Ledger]:
    """Releases the classes' embeddings, then trains a generator against them for as long as it takes.

    Charges: `plan.coder.event` for the autoencoder's steps, if there is one (`loop.run`), and the release (`release`).
    Frequencies and weights of the features come from the schema and a seed; the generator sees released values alone.
    """
    from understudy.synthesizers.dp_merf.pictures import match

    ledger = Ledger(budget)
    plan = plans.make_plan(config, schema, budget)
    encoder, decoder = (None, []) if plan.coder is None else _train_coder(plan, table, ledger, streams, progress)
    progress("embedding", 0.0)
    features = feature_map(plan, streams.init)
    embedding = release(plan, features, table, encoder, streams=streams, ledger=ledger)
    task = match.Task(
        prototypes=plan.prototypes,
        latent=plan.latent,
        waves_a_step=min(plans.WAVES_A_STEP, plan.features),
        steps=plan.steps,
        learning_rate=plan.learning_rate,
        pixel_weight=plans.PIXEL_WEIGHT,
    )
    prototypes, directions = match.fit(
        task, embedding, features.waves, _basis(plan), seed=streams.init, progress=progress
    )
    return PictureReleased(schema, prototypes, directions, decoder, embedding.rows, plan.equal), ledger


def _basis(plan: Plan) -> "Basis":
    """Cosine waves for pixels, larger where images are guessed to be; codes one by one."""
    from understudy.synthesizers.dp_merf.pictures.match import Basis

    if plan.coder is not None:
        return Basis(np.ones((1, plan.inputs)), np.ones((1, 1)), np.eye(plan.inputs), 1)
    image = plan.image
    gains = spectrum(image.height, image.width)
    gains = gains / np.sqrt(np.mean(gains**2))
    return Basis(gains, cosines(image.height), cosines(image.width), image.channels)


def feature_map(plan: Plan, seed: int) -> PictureMap:
    """What a row adds, from public facts and a seed that no noise comes from."""
    rng = np.random.default_rng(seed)
    if plan.coder is None:
        waves = picture_waves(plan.image, plan.features, plan.widths, rng)
    else:
        waves = code_waves(plan.inputs, plan.features, plan.widths, rng)
    return PictureMap.weighted(waves, plan.classes, pixels=plans.PIXEL_WEIGHT, count=plan.count_weight)


def make_coder(plan: Plan) -> "PixelCoder":
    """The autoencoder's shape."""
    from understudy.training.nets import Net
    from understudy.training.pixel_autoencoder import PixelCoder

    pixels = plan.image.pixels
    return PixelCoder(
        encoder=Net.of([pixels, plans.CODER_HIDDEN, plans.CODES], last="tanh"),
        decoder=Net.of([plans.CODES, plans.CODER_HIDDEN, pixels]),
        learning_rate=plans.CODER_RATE,
        steps=plan.coder.steps,
        blur=plans.CODER_BLUR,
    )


def _train_coder(
    plan: Plan, table: Table, ledger: Ledger, streams: Streams, progress: Progress
) -> tuple[WholeEncoder, Layers]:
    """Both halves by DP-SGD; the encoder is then cut to whole numbers, for codes that depend on one row alone."""
    from understudy.synthesizers.neural.weights import arrays_of
    from understudy.training import loop, pixel_autoencoder
    from understudy.training.autoencoder import layers_of

    coder = make_coder(plan)
    ledger.charge(plan.coder.event, f"{plan.coder.steps} steps of the autoencoder")
    state = loop.run(
        plan.coder,
        pixel_autoencoder.make_step(coder),
        pixel_autoencoder.start(coder, streams.init),
        table.codes(plan.image_name),
        streams=streams,
        progress=progress,
        stage="training",
    )
    encoder, decoder = (arrays_of(layers_of(state["average"], part)) for part in ("encoder.", "decoder."))
    return WholeEncoder.of(encoder), decoder
