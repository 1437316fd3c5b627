"""Errors and their derivatives are those of the plain sum, for every fit by itself."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from mixture_error import plain_error, random_mixture, random_targets, shares_of

from understudy.synthesizers.mixture import error
from understudy.synthesizers.mixture.error import Tables, errors, of_logits, softmax, spread

FITS = 3


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("tile", [error.TILE, 4, 2])
def test_errors_and_derivatives_are_those_of_the_plain_sum(empty: bool, tile: int, monkeypatch):
    monkeypatch.setattr(error, "TILE", tile)
    rng = np.random.default_rng(1)
    targets = random_targets(rng, empty=empty)
    weights, logits = (np.stack(arrays) for arrays in zip(*(random_mixture(rng) for _ in range(FITS)), strict=True))
    tables = Tables.of(targets)
    assert (len(tables.pairs) > 1) == (tile < sum(targets.sizes))
    shares = softmax(logits, tables.member)
    found = errors(tables, weights, shares)
    pulled = of_logits(found.of_shares.copy(), shares, tables.member)
    for fit in range(FITS):
        np.testing.assert_allclose(shares[fit], shares_of(logits[fit]), rtol=1e-5)
        least, wanted = jax.value_and_grad(lambda w, p: plain_error(targets, w, p), argnums=(0, 1))(
            weights[fit], shares[fit]
        )
        np.testing.assert_allclose(found.errors[fit], least, rtol=1e-4)
        for ours, theirs in zip((found.of_weights[fit], found.of_shares[fit]), wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3 * np.abs(theirs).max())
        by_logits = jax.grad(lambda given, fit=fit: plain_error(targets, weights[fit], shares_of(given)))(logits[fit])
        np.testing.assert_allclose(pulled[fit], by_logits, rtol=1e-3, atol=1e-3 * np.abs(by_logits).max())


@pytest.mark.parametrize("tile", [error.TILE, 4])
def test_a_fit_knows_nothing_of_the_others(tile: int, monkeypatch):
    monkeypatch.setattr(error, "TILE", tile)
    rng = np.random.default_rng(2)
    tables = Tables.of(random_targets(rng, empty=True))
    weights, logits = (np.stack(arrays) for arrays in zip(*(random_mixture(rng) for _ in range(FITS)), strict=True))
    together = errors(tables, weights, softmax(logits, tables.member))
    for fit in range(FITS):
        one = slice(fit, fit + 1)
        alone = errors(tables, weights[one], softmax(logits[one], tables.member))
        for ours, theirs in zip(together, alone, strict=True):
            np.testing.assert_array_equal(ours[one], theirs)


def test_neighbours_move_together_and_other_columns_stay():
    rng = np.random.default_rng(3)
    targets = random_targets(rng)
    ties = np.eye(sum(targets.sizes))
    ties[3:7, 3:7] = rng.random((4, 4))
    tables = Tables.of(replace(targets, ties=ties))
    assert [place for place, _ in tables.ties] == [slice(3, 7)]
    _, logits = random_mixture(rng)
    moved = logits[None].copy()
    spread(moved, tables.ties)
    np.testing.assert_allclose(moved[0], logits @ ties, rtol=1e-4, atol=1e-5)
