"""Blocks of units against plain NumPy, for columns of one, two, three and many codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.training.heads import Blocks

TABLES = [(1, 2, 3, 20), (2, 2, 2), (3,), (2,), (1,), (300, 2)]
ROWS = 7


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def made(sizes):
    rng = np.random.default_rng(1)
    blocks = Blocks(sizes)
    codes = np.stack([rng.integers(0, size, ROWS) for size in sizes], axis=1)
    logits = rng.normal(size=(ROWS, blocks.width)).astype(np.float32)
    return blocks, codes.astype(np.uint16), logits


def full(blocks, logits):
    """A table of log-weights a column, the first code of two at 0."""
    tables = []
    for size, start, width in zip(blocks.sizes, blocks.starts, blocks.widths, strict=True):
        part = logits[:, start : start + width].astype(np.float64)
        tables.append(np.concatenate([np.zeros((len(part), 1)), part], axis=1) if size == 2 else part)
    return tables


@pytest.mark.parametrize("sizes", TABLES)
def test_units_probabilities_and_losses(sizes):
    blocks, codes, logits = made(sizes)
    tables = [softmax(table) for table in full(blocks, logits)]
    units = np.concatenate([np.eye(size)[codes[:, j]][:, size == 2 :] for j, size in enumerate(sizes)], axis=1)
    assert np.array_equal(blocks.encode(jnp.asarray(codes)), units)
    found = blocks.expand(np.asarray(blocks.probabilities(jnp.asarray(logits))))
    for mine, table in zip(found, tables, strict=True):
        assert np.allclose(mine, table, atol=1e-5)
    losses = -sum(np.log(table[np.arange(ROWS), codes[:, j]]) for j, table in enumerate(tables))
    assert np.allclose(blocks.cross_entropy(jnp.asarray(logits), jnp.asarray(codes)), losses, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1, 2, 3), (2, 2)])
def test_the_largest_unit_of_a_draw_has_the_right_shares(sizes):
    """The Gumbel-max rule, at any temperature."""
    blocks, _, logits = made(sizes)
    many = jnp.tile(jnp.asarray(logits[:1]), (20_000, 1))
    drawn = np.asarray(jax.jit(lambda x, key: blocks.draw(x, key, temperature=0.5))(many, jax.random.key(2)))
    for mine, table in zip(blocks.expand(drawn), full(blocks, logits[:1]), strict=True):
        shares = np.bincount(mine.argmax(axis=1), minlength=mine.shape[1]) / len(mine)
        assert np.allclose(shares, softmax(table)[0], atol=0.02)
        assert np.allclose(mine.sum(axis=1), 1.0, atol=1e-4)


def test_logits_of_shares_give_them_back():
    blocks = Blocks((3, 2, 1))
    shares = [np.array([0.2, 0.5, 0.3]), np.array([0.9, 0.1]), np.array([1.0])]
    logits = blocks.logits_of(shares)[None]
    for mine, share in zip(blocks.expand(np.asarray(blocks.probabilities(logits))), shares, strict=True):
        assert np.allclose(mine[0], share, atol=1e-5)


def test_huge_logits_stay_finite():
    blocks = Blocks((3, 2))
    logits = jnp.asarray([[1e30, -1e30, 0.0, 1e30]])
    codes = jnp.asarray([[1, 0]])
    assert np.isfinite(blocks.probabilities(logits)).all()
    assert np.isfinite(blocks.cross_entropy(logits, codes)).all()
