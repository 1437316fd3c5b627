"""A released generator: latent noise through a network to a product distribution over coarse codes, then values.

Given its latent noise a generator is a product distribution, so a batch of draws is a mixture of products: rows,
conditions and probabilities come from the same code as the mixture's. NumPy alone: a model draws without JAX.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from understudy.errors import OptionError
from understudy.schema import Schema
from understudy.synthesizers.mixture import released as mixture
from understudy.synthesizers.one_way import check_tables, fine_cells
from understudy.table.cells import Cells

LEAK = 0.2
LARGEST_LOGIT = 100.0  # keeps damaged numbers finite; corrected generators go beyond what training allows
NUMBERS_AT_ONCE = 1 << 23  # of a table of draws by codes
MOST_DRAWS, CONDITIONED_DRAWS, SCORED_DRAWS = 1 << 15, 1 << 14, 1 << 11
ACTIVATIONS = {
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "leaky_relu": lambda x: np.where(x > 0, x, LEAK * x),
    "tanh": np.tanh,
}


@dataclass(frozen=True, eq=False)
class Generator:
    """One network with the distribution of its input: a mixture of Gaussians, and the share of rows that it makes.

    weights (J,), means (J, d) and roots (J, d, d) of the input's covariances; layers [(w, b)], their activations.
    label: the code of the label that its rows get, where there is one generator a class.
    """

    share: float
    weights: np.ndarray
    means: np.ndarray
    roots: np.ndarray
    layers: list[tuple[np.ndarray, np.ndarray]]
    activations: tuple[str, ...]
    label: int | None = None

    @staticmethod
    def standard(
        layers: list[tuple[np.ndarray, np.ndarray]],
        activations: tuple[str, ...],
        *,
        share: float = 1.0,
        label: int | None = None,
    ) -> "Generator":
        """With independent standard normals as input."""
        size = len(layers[0][0])
        return Generator(
            share=share,
            weights=np.ones(1),
            means=np.zeros((1, size), dtype=np.float32),
            roots=np.eye(size, dtype=np.float32)[None],
            layers=layers,
            activations=activations,
            label=label,
        )

    def logits(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """The network's outputs for n draws of its input."""
        component = rng.choice(len(self.weights), size=n, p=self.weights / self.weights.sum())
        normal = rng.standard_normal((n, self.means.shape[1]), dtype=np.float32)
        x = np.empty_like(normal)
        for number in range(len(self.weights)):
            mine = component == number
            x[mine] = self.means[number] + normal[mine] @ self.roots[number].T
        for (w, b), activation in zip(self.layers, self.activations, strict=True):
            x = ACTIVATIONS[activation](x @ w + b)
        return x

    def with_bias(self, bias: np.ndarray) -> "Generator":
        """The same with something added to its last layer's biases."""
        (w, b) = self.layers[-1]
        layers = [*self.layers[:-1], (w, (b + bias).astype(np.float32))]
        return Generator(self.share, self.weights, self.means, self.roots, layers, self.activations, self.label)


@dataclass(frozen=True, eq=False)
class Released:
    """Released values alone: generators, how fine cells map to coarse codes, and the fine one-way tables.

    `trajectory` holds what was kept of earlier checkpoints, all of them covered by the same charge.
    """

    schema: Schema
    generators: list[Generator]
    groups: dict[str, np.ndarray]
    fine: dict[str, np.ndarray]
    rows: int
    trajectory: dict[str, np.ndarray] = field(default_factory=dict)

    def arrays(self) -> dict[str, np.ndarray]:
        arrays = {f"trajectory.{name}": kept for name, kept in self.trajectory.items()}
        for number, g in enumerate(self.generators):
            for part in ("weights", "means", "roots"):
                arrays[f"generator.{number}.{part}"] = getattr(g, part).astype(np.float32)
            for place, (w, b) in enumerate(g.layers):
                arrays[f"generator.{number}.{place}.w"] = w.astype(np.float32)
                arrays[f"generator.{number}.{place}.b"] = b.astype(np.float32)
        for number, name in enumerate(self.fine):
            arrays[f"fine.{number}"] = self.fine[name]
            arrays[f"groups.{number}"] = self.groups[name].astype(np.int32)
        return arrays

    def facts(self) -> dict[str, Any]:
        shapes = [{"share": g.share, "activations": list(g.activations), "label": g.label} for g in self.generators]
        return {"rows": self.rows, "generators": shapes}

    @classmethod
    def from_parts(cls, schema: Schema, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> "Released":
        names = list(schema.modelled)
        prefix = "trajectory."
        released = cls(
            schema=schema,
            generators=[_generator(number, shape, arrays) for number, shape in enumerate(facts["generators"])],
            groups={name: arrays[f"groups.{number}"].astype(np.int64) for number, name in enumerate(names)},
            fine={name: arrays[f"fine.{number}"] for number, name in enumerate(names)},
            rows=int(facts["rows"]),
            trajectory={name[len(prefix) :]: kept for name, kept in arrays.items() if name.startswith(prefix)},
        )
        check_tables(released.cells, released.fine)
        released._check()
        return released

    def _check(self) -> None:
        """Refuses parts that do not fit together, such as those of a damaged file."""
        for name, groups in self.groups.items():
            if len(groups) != self.cells[name].count or set(groups.tolist()) != set(range(groups.max() + 1)):
                raise ValueError(f"column {name!r}: must have a coarse code for every cell, numbered without gaps")
        width = sum(1 if size == 2 else size for size in self._sizes)
        if not self.generators or not np.isclose(sum(g.share for g in self.generators), 1, atol=1e-3):
            raise ValueError("generators: must have shares that sum to 1")
        for g in self.generators:
            size = g.means.shape[1]
            for w, b in g.layers:
                if w.shape != (size, len(b)) or not (np.isfinite(w).all() and np.isfinite(b).all()):
                    raise ValueError("generators: layers must fit each other and be finite")
                size = len(b)
            if size != width:
                raise ValueError(f"generators: must end in {width} units")
            if g.roots.shape != (len(g.weights), g.means.shape[1], g.means.shape[1]) or not g.weights.sum() > 0:
                raise ValueError("generators: inputs must be a mixture of Gaussians")

    @cached_property
    def cells(self) -> dict[str, Cells]:
        return fine_cells(self.schema)

    @property
    def _sizes(self) -> list[int]:
        return [int(groups.max()) + 1 for groups in self.groups.values()]

    def sample(self, n: int, rng: np.random.Generator, where: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """n rows as codes, from fresh latent noise; given conditions, draws that meet them better weigh more."""
        most = max(256, min(MOST_DRAWS, NUMBERS_AT_ONCE // sum(self._sizes)))
        if where:
            return self._draws(max(256, min(CONDITIONED_DRAWS, most)), rng).sample(n, rng, where)
        parts = [self._draws(min(most, n - i), rng).sample(min(most, n - i), rng) for i in range(0, n, most)]
        return {name: np.concatenate([part[name] for part in parts]) for name in self.schema.modelled}

    def log_prob(self, codes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Natural logarithm of each row's probability, averaged over latent draws that are the same in every call."""
        return self._draws(SCORED_DRAWS, np.random.default_rng(0)).log_prob(codes)

    def _draws(self, count: int, rng: np.random.Generator) -> mixture.Released:
        """`count` draws of latent noise, as a mixture of as many product distributions."""
        whole = _whole_shares(np.array([g.share for g in self.generators]), count, rng)
        tables, weights = [], []
        for g, number in zip(self.generators, whole, strict=True):
            if number:
                tables.append(self._tables(g, number, rng))
                weights.append(np.full(number, 1 / count))
        return mixture.Released(
            schema=self.schema,
            weights=np.concatenate(weights)[None],
            probabilities=np.concatenate(tables)[None],
            groups=self.groups,
            fine=self.fine,
            label=None,
            rows=self.rows,
            lean=False,
        )

    def _tables(self, g: Generator, count: int, rng: np.random.Generator) -> np.ndarray:
        tables = code_probabilities(g.logits(count, rng), self._sizes)
        if g.label is not None:
            if self.schema.label is None:
                raise OptionError("a generator of one class needs a schema with a label")
            label = tables[list(self.groups).index(self.schema.label)]
            label[:] = 0.0
            label[:, g.label] = 1.0
        return np.concatenate(tables, axis=1)


def code_probabilities(logits: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """One (rows, codes) table a column: softmax of its units, or of 0 and the single unit of a column of two codes."""
    return [np.exp(table) for table in code_logs(logits, sizes)]


def code_logs(logits: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """Logarithms of `code_probabilities`, which tell apart what is too small for a probability."""
    tables, start = [], 0
    for size in sizes:
        width = 1 if size == 2 else size
        block = np.clip(logits[:, start : start + width].astype(np.float64), -LARGEST_LOGIT, LARGEST_LOGIT)
        if size == 2:
            block = np.concatenate([np.zeros_like(block), block], axis=1)
        block = block - block.max(axis=1, keepdims=True)
        tables.append(block - np.log(np.exp(block).sum(axis=1, keepdims=True)))
        start += width
    return tables


def _whole_shares(shares: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Whole numbers that sum to count, each its share of it rounded up or down at random."""
    edges = np.floor(np.cumsum(shares / shares.sum()) * count + rng.random())
    edges[-1] = count
    return np.diff(np.minimum(edges, count), prepend=0).astype(int)


def _generator(number: int, shape: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Generator:
    place, start = 0, f"generator.{number}."
    layers = []
    while f"{start}{place}.w" in arrays:
        layers.append((arrays[f"{start}{place}.w"], arrays[f"{start}{place}.b"]))
        place += 1
    if len(layers) != len(shape["activations"]) or any(a not in ACTIVATIONS for a in shape["activations"]):
        raise ValueError("generators: must have a known non-linearity for every layer")
    return Generator(
        share=float(shape["share"]),
        weights=arrays[f"{start}weights"].astype(np.float64),
        means=arrays[f"{start}means"],
        roots=arrays[f"{start}roots"],
        layers=layers,
        activations=tuple(shape["activations"]),
        label=shape["label"],
    )
