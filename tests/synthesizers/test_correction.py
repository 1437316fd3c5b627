"""Generators brought in line with released shares, however sure of themselves they are."""

from types import SimpleNamespace

import numpy as np
import pytest

from understudy.synthesizers.neural.correction import correct_marginals
from understudy.synthesizers.neural.released import Generator, code_probabilities
from understudy.training.heads import Blocks

SHARES = [np.array([0.5, 0.2, 0.15, 0.1, 0.05]), np.array([0.7, 0.3]), np.array([0.6, 0.3, 0.1])]
LAYOUT = SimpleNamespace(blocks=Blocks(tuple(len(share) for share in SHARES)), shares=SHARES)


def made_shares(generators: list[Generator]) -> list[np.ndarray]:
    tables = [code_probabilities(g.logits(20_000, np.random.default_rng(7)), LAYOUT.blocks.sizes) for g in generators]
    return [
        sum(g.share * parts.mean(axis=0) for g, parts in zip(generators, column, strict=True))
        for column in zip(*tables, strict=True)
    ]


def generator(spread: float, *, share: float = 1.0, seed: int = 0) -> Generator:
    """Logits of a linear network; with a large `spread` codes are certain, and some never come."""
    rng = np.random.default_rng(seed)
    layer = (rng.normal(0, spread / 4, (4, LAYOUT.blocks.width)), rng.normal(0, spread, LAYOUT.blocks.width))
    return Generator.standard([tuple(part.astype(np.float32) for part in layer)], ("linear",), share=share)


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0, 25.0])
def test_made_shares_are_the_released_ones(spread: float):
    corrected = correct_marginals([generator(spread)], LAYOUT, seed=0)
    for made, share in zip(made_shares(corrected), SHARES, strict=True):
        np.testing.assert_allclose(made, share, atol=0.04)


def test_several_generators_are_shifted_alike():
    both = [generator(10.0, share=0.4), generator(10.0, share=0.6, seed=1)]
    corrected = correct_marginals(both, LAYOUT, seed=0)
    shifts = [after.layers[-1][1] - before.layers[-1][1] for before, after in zip(both, corrected, strict=True)]
    np.testing.assert_allclose(*shifts, atol=1e-4)
    for made, share in zip(made_shares(corrected), SHARES, strict=True):
        np.testing.assert_allclose(made, share, atol=0.04)
