"""A released generator of images: prototypes by class, moved along random directions. NumPy alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.evidence import conditions
from understudy.table.cells import cells_of
from understudy.table.codec import codec

LEAK = 0.2
STRETCH = 0.1  # how far the sigmoid of an output reaches beyond black and white before it is cut
NUMBERS_AT_ONCE = 1 << 23

Layers = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class PictureReleased:
    """Released values alone: prototypes and directions by class, a decoder if there is an autoencoder, rows by class.

    prototypes (C, K, inputs) and directions (C, L, inputs) are in logits of pixels, or of codes that `decoder` takes.
    class_rows: noisy rows of each code of the label (of the whole table without a label). equal: labels are drawn
    alike, by declaration, rather than by these.
    """

    schema: Schema
    prototypes: np.ndarray
    directions: np.ndarray
    decoder: Layers
    class_rows: np.ndarray
    equal: bool

    @property
    def rows(self) -> int:
        """About how many rows the table had, as released with noise."""
        return max(1, round(float(self.class_rows.sum())))

    @property
    def classes(self) -> int:
        return len(self.class_rows)

    @property
    def class_shares(self) -> np.ndarray:
        """How often each label is drawn."""
        total = float(self.class_rows.sum())
        if self.equal or total <= 0:
            return np.full(self.classes, 1 / self.classes)
        return self.class_rows / total

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {
            "class_rows": self.class_rows.astype(np.float64),
            "prototypes": self.prototypes.astype(np.float32),
            "directions": self.directions.astype(np.float32),
        }
        for place, (w, b) in enumerate(self.decoder):
            arrays[f"decoder.{place}.w"] = w.astype(np.float32)
            arrays[f"decoder.{place}.b"] = b.astype(np.float32)
        return arrays

    def facts(self) -> dict[str, Any]:
        return {"pictures": True, "decoder": len(self.decoder), "equal": self.equal}

    @classmethod
    def from_parts(
        cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]
    ) -> "PictureReleased":
        places = range(int(facts["decoder"]))
        released = cls(
            schema=schema,
            prototypes=arrays["prototypes"],
            directions=arrays["directions"],
            decoder=[(arrays[f"decoder.{place}.w"], arrays[f"decoder.{place}.b"]) for place in places],
            class_rows=arrays["class_rows"],
            equal=bool(facts["equal"]),
        )
        released._check()
        return released

    def _check(self) -> None:
        """Refuses parts that do not fit together, such as those of a damaged file."""
        (image,) = self.schema.images.values()
        codes = 1 if self.schema.label is None else cells_of(self.schema.modelled[self.schema.label]).count
        rows = self.class_rows
        if rows.shape != (codes,) or not np.isfinite(rows).all() or (rows < 0).any():
            raise ValueError(f"class_rows: must be {codes} numbers that are not negative")
        for name, array in (("prototypes", self.prototypes), ("directions", self.directions)):
            if array.ndim != 3 or len(array) != codes or not array.shape[1] or not np.isfinite(array).all():
                raise ValueError(f"{name}: must be finite, and some for each of {codes} classes")
        size = self.prototypes.shape[2]
        if self.directions.shape[2] != size:
            raise ValueError("directions: must be as long as prototypes")
        for w, b in self.decoder:
            if w.shape != (size, len(b)) or not (np.isfinite(w).all() and np.isfinite(b).all()):
                raise ValueError("decoder: layers must fit each other and be finite")
            size = len(b)
        if size != image.pixels:
            raise ValueError(f"prototypes: must end in {image.pixels} pixels")

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows as codes: pixels of 0 to 255 and, if there is one, the label. `where` may name the label alone."""
        (name,) = self.schema.images
        labels = rng.choice(self.classes, size=n, p=self._shares(where))
        pixels = np.empty((n, self.schema.images[name].pixels), dtype=np.uint8)
        step = max(1, NUMBERS_AT_ONCE // max(pixels.shape[1], 1))
        for first in range(0, n, step):
            pixels[first : first + step] = self._pictures(labels[first : first + step], rng)
        rows = {name: pixels}
        if self.schema.label is not None:
            rows[self.schema.label] = labels.astype(codec(self.schema.modelled[self.schema.label]).dtype)
        return rows

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        raise OptionError("a model of images has no probabilities of rows; sample from it instead")

    def _shares(self, where: Mapping[str, Any] | None) -> np.ndarray:
        shares = self.class_shares
        if not where:
            return shares
        label = self.schema.label
        for name in where:
            if name != label:
                known = f"only the label {label!r} can be" if label else "a table of images alone takes none"
                raise OptionError(f"where: {name!r} cannot be a condition; {known}")
        column = self.schema.modelled[label]
        kept = np.zeros(self.classes, dtype=bool)
        kept[conditions(self.schema, {label: cells_of(column)}, where)[label].first.astype(np.int64)] = True
        wanted = np.where(kept, shares, 0.0)
        # A class that was counted as empty can still be asked for.
        return wanted / wanted.sum() if wanted.sum() > 0 else kept / kept.sum()

    def _pictures(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        picked = rng.integers(self.prototypes.shape[1], size=len(labels))
        normal = rng.standard_normal((len(labels), self.directions.shape[1]), dtype=np.float32)
        logits = self.prototypes[labels, picked]
        for label in np.unique(labels):
            mine = labels == label
            logits[mine] += normal[mine] @ self.directions[label]
        x = levels(logits)
        if self.decoder:
            x = levels(dense(self.decoder, 2 * x - 1))
        return np.rint(255 * x).astype(np.uint8)


def dense(layers: Layers, x: np.ndarray) -> np.ndarray:
    """Dense layers with leaky rectifiers in between."""
    for place, (w, b) in enumerate(layers):
        x = x @ w + b
        if place < len(layers) - 1:
            x = np.where(x > 0, x, LEAK * x)
    return x


def levels(logits: np.ndarray) -> np.ndarray:
    """The same as `match.levels`: 0 to 1, both ends reached."""
    sigmoid = 0.5 * (1 + np.tanh(logits / 2))
    return np.clip(sigmoid * (1 + 2 * STRETCH) - STRETCH, 0.0, 1.0)
