"""The embedding of a generator, exactly: given its latent noise a generator is a product distribution.

Means of one-hot blocks are its probabilities, means of pairs their products, and the mean of exp(i w.x) is the product
of the columns' own (a characteristic function), so that nothing is drawn and every mean can be differentiated.
"""

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from understudy.synthesizers.dp_merf.features import Embedding, FeatureMap
from understudy.training.heads import Blocks


@dataclass(frozen=True, eq=False)
class Expected:
    """Means of a feature map's blocks over a batch of latent draws, for columns laid out by `blocks`.

    label: the codes of a label that is a number, whose units come last; None: the batch comes in one group a class.
    """

    features: FeatureMap
    blocks: Blocks
    label: Blocks | None

    @cached_property
    def _order(self) -> np.ndarray:
        """Which code, counted over all columns, each column of `tables` is: units first, then first codes of pairs."""
        starts = np.cumsum([0, *self.blocks.sizes])[:-1]
        units = starts[self.blocks.column_of_unit] + self.blocks.code_of_unit
        return np.concatenate([units, starts[self.blocks.binary]])

    @cached_property
    def _place(self) -> np.ndarray:
        """The inverse of `_order`."""
        return np.argsort(self._order)

    def tables(self, logits: jax.Array) -> jax.Array:
        """(draws, codes) of probabilities, in the order of `_order`."""
        p = self.blocks.probabilities(logits[:, : self.blocks.width])
        binary = np.flatnonzero(self.blocks.binary[self.blocks.column_of_unit])
        return jnp.concatenate([p, 1 - p[:, binary]], axis=1) if len(binary) else p

    def label_table(self, logits: jax.Array) -> jax.Array:
        """(draws, codes of the label) of probabilities, for a label that is a number."""
        p = self.label.probabilities(logits[:, self.blocks.width :])
        return jnp.concatenate([1 - p, p], axis=1) if self.label.binary.all() else p

    @cached_property
    def pair_mask(self) -> np.ndarray:
        """Which products of codes are counted, above the diagonal or below, as `targets` has them."""
        return self._scatter(np.ones((1, int(self.features.pair_starts[-1])), dtype=np.float32))[0]

    def _scatter(self, pairs: np.ndarray) -> np.ndarray:
        """Cells of pairs (L, cells) as (L, codes, codes) in the order of `tables`."""
        codes = len(self._order)
        starts = np.cumsum([0, *self.blocks.sizes])
        full = np.zeros((len(pairs), codes, codes), dtype=np.float32)
        for (a, b), first in zip(self.features.pairs, self.features.pair_starts, strict=False):
            shape = self.blocks.sizes[a], self.blocks.sizes[b]
            block = pairs[:, first : first + shape[0] * shape[1]].reshape(-1, *shape)
            full[:, starts[a] : starts[a + 1], starts[b] : starts[b + 1]] = block
        return full[:, self._order][:, :, self._order]

    def targets(self, embedding: Embedding) -> dict[str, np.ndarray]:
        """A released embedding laid out like what this class computes."""
        laid = {"columns": embedding.columns[:, self._order].astype(np.float32)}
        if self.features.pairs:
            laid["pairs"] = self._scatter(embedding.pairs)
        if self.features.waves:
            laid["waves"] = embedding.waves.astype(np.float32)
        if self.label is not None:
            laid["total"] = embedding.total.astype(np.float32)
        return laid

    def waves(self, tables: jax.Array, first: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
        """(draws, count) means of cosine and sine of `count` frequencies from `first` on."""
        index, levels = self._inputs
        padded = jnp.concatenate([tables, jnp.zeros((tables.shape[0], 1))], axis=1)[:, index]
        angles = jax.lax.dynamic_slice_in_dim(jnp.asarray(self.features.waves.angles, jnp.float32), first, count, 1)
        phases = jnp.asarray(levels)[:, :, None] * angles[:, None, :]
        real = jnp.einsum("bdk,dkf->dbf", padded, jnp.cos(phases))
        imaginary = jnp.einsum("bdk,dkf->dbf", padded, jnp.sin(phases))
        return _product(real, imaginary)

    @cached_property
    def _inputs(self) -> tuple[np.ndarray, np.ndarray]:
        """Places in `tables` (the last, of zeros, as padding) and levels of the codes of every input."""
        starts = np.cumsum([0, *self.blocks.sizes])
        most = max(len(level) for _, level in self.features.inputs)
        index = np.full((len(self.features.inputs), most), len(self._order))
        levels = np.zeros(index.shape, dtype=np.float32)
        for row, (place, level) in enumerate(self.features.inputs):
            index[row, : len(level)] = self._place[starts[place] : starts[place + 1]]
            levels[row, : len(level)] = level
        return index, levels

    def means(self, logits: jax.Array, rows: jax.Array, first: jax.Array, frequencies: int) -> dict[str, jax.Array]:
        """What `targets` has, as this batch of draws would give it: sums over `rows` rows of every group of draws.

        logits: of all groups of draws, one after the other, equally many in each.
        Waves: those of `frequencies` frequencies from `first` on, cosine and sine.
        Given a draw the label is independent of the other columns, so that the mean of a product with f(y) is the
        product of the means.
        """
        groups, draws = len(rows), logits.shape[0] // len(rows)
        tables = self.tables(logits)
        if self.label is None:
            per_draw = (rows / draws)[:, None, None]

            def total(values: jax.Array) -> jax.Array:
                return (values.reshape(groups, draws, -1) * per_draw).sum(axis=1)

            means = {}
        else:
            codes = self.label_table(logits) * rows[0] / draws
            factors = codes @ jnp.asarray(self.features.factor, dtype=jnp.float32)

            def total(values: jax.Array) -> jax.Array:
                return factors.T @ values

            means = {"label": codes.sum(axis=0), "total": factors.sum(axis=0)}
        means["columns"] = total(tables)
        if self.features.pairs:
            if not self.features.pairs_split:
                weight = float(self.features.pair_factor[0, 0]) * jnp.repeat(rows / draws, draws)[:, None]
                means["pairs"] = ((tables * weight).T @ tables)[None]
            elif self.label is None:
                grouped = tables.reshape(groups, draws, -1)
                means["pairs"] = jnp.einsum("gbi,gbj->gij", grouped * per_draw, grouped)
            else:
                means["pairs"] = jnp.einsum("bl,bi,bj->lij", factors, tables, tables)
        if self.features.waves:
            real, imaginary = self.waves(tables, first, frequencies)
            means["cosine"], means["sine"] = total(real), total(imaginary)
        return means


def _product(real: jax.Array, imaginary: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The product of complex numbers along the first axis, by halves: gradients need no division."""
    while real.shape[0] > 1:
        half = real.shape[0] // 2
        a, b, c, d = real[:half], imaginary[:half], real[half : 2 * half], imaginary[half : 2 * half]
        rest = (real[2 * half :], imaginary[2 * half :])
        real = jnp.concatenate([a * c - b * d, rest[0]])
        imaginary = jnp.concatenate([a * d + b * c, rest[1]])
    return real[0], imaginary[0]
