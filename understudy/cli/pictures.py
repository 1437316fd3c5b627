"""Images for a report: a grid of synthetic ones, and mean images of both tables."""

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.images import class_means
from understudy.evaluation.view import View
from understudy.report import MeanImages, Pictures
from understudy.schema import Image, Schema
from understudy.table.image_files import LEAST_SIDE, grid, png_bytes


def pictures(synthetic: View, real: View | None, schema: Schema) -> Pictures | None:
    """None for a table without images; mean images only where there are real rows."""
    if synthetic.pixels is None:
        return None
    ((name, column),) = schema.images.items()
    label = schema.label if schema.label is not None and synthetic.facts[schema.label].categorical else None
    groups = classes = None
    if label is not None:
        codes, facts = synthetic.codes[label], synthetic.facts[label]
        groups = [np.flatnonzero(codes == code) for code in range(facts.size)]
        classes = tuple(word for word, found in zip(facts.labels, groups, strict=True) if len(found))
    return Pictures(
        column=name,
        samples=png_bytes(grid(synthetic.pixels.reshape(-1, *column.shape), groups)),
        classes=classes or (),
        means=() if real is None else _means(synthetic, real, schema, column),
    )


def _means(synthetic: View, real: View, schema: Schema, column: Image) -> tuple[MeanImages, ...]:
    theirs, ours = class_means(synthetic, schema), class_means(real, schema)
    return tuple(
        MeanImages(name=name, real=_png(ours.get(name), column), synthetic=_png(theirs.get(name), column))
        for name in {**ours, **theirs}
    )


def _png(mean: NDArray | None, column: Image) -> bytes | None:
    if mean is None:
        return None
    image = np.rint(mean).astype(np.uint8).reshape(column.shape)
    scale = max(1, round(LEAST_SIDE / max(column.height, column.width)))
    return png_bytes(image.repeat(scale, axis=0).repeat(scale, axis=1))
