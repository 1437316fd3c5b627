"""DP-EM (Park et al.): a mixture of Gaussians from noisy moments alone; all but the releases is post-processing."""

import math

import numpy as np

from understudy.privacy import Ledger, Streams
from understudy.synthesizers.denoise import project_to_total
from understudy.synthesizers.dp_syn.moments import Mixture, Moments, release_moments

# How many rows the first, wide Gaussian counts for in every component, in standard deviations of a noisy count: a
# component that noise could have made stays near the middle.
PRIOR_ROWS = 2.0


def fit_mixture(
    codes: np.ndarray,
    *,
    components: int,
    iterations: int,
    radius: float,
    blur: float,
    noise_multiplier: float,
    streams: Streams,
    ledger: Ledger,
    purpose: str,
) -> Mixture:
    """The distribution of blurred codes: `iterations` releases of moments, the first of them of all rows together.

    Charges `iterations` Gaussians (`release_moments`). Between them, responsibilities come from released parameters.
    """
    common = {
        "components": components,
        "radius": radius,
        "noise_multiplier": noise_multiplier,
        "streams": streams,
        "ledger": ledger,
        "purpose": purpose,
    }
    moments = release_moments(codes, None, **common)
    whole = _gaussians(moments, radius=radius, blur=blur, prior=None)
    if components == 1:
        return Mixture(np.ones(1), whole.means[:1], whole.covariances[:1])
    mixture = _split(whole, components, seed=streams.init)
    for _ in range(iterations - 1):
        moments = release_moments(codes, mixture, **common)
        mixture = _gaussians(moments, radius=radius, blur=blur, prior=(whole.means[0], whole.covariances[0]))
    return mixture


def _split(whole: Mixture, components: int, *, seed: int) -> Mixture:
    """Components around the middle of the first Gaussian, drawn from it, each with half its variance."""
    mean, covariance = whole.means[0], whole.covariances[0]
    drawn = np.random.default_rng(seed).standard_normal((components, len(mean)))
    drawn -= drawn.mean(axis=0)
    means = mean + drawn @ np.linalg.cholesky(covariance).T * math.sqrt(0.5)
    return Mixture(np.full(components, 1 / components), means, np.repeat(covariance[None] / 2, components, 0))


def _gaussians(moments: Moments, *, radius: float, blur: float, prior: tuple[np.ndarray, np.ndarray] | None) -> Mixture:
    """Means in the ball and positive definite covariances, drawn towards the prior as far as noise is large."""
    counts = np.maximum(moments.count, 0.0)
    means, covariances = [], []
    for count, first, second in zip(counts, moments.first, moments.second, strict=True):
        if prior is not None:
            rows = PRIOR_ROWS * moments.noise
            middle, spread = prior
            count = count + rows
            first = first + rows * middle
            second = second + rows * (np.outer(middle, middle) + spread - blur**2 * np.eye(len(middle)))
        count = max(count, moments.noise, 1e-9)
        mean = first / count
        mean = mean * min(1.0, radius / max(float(np.linalg.norm(mean)), 1e-12))
        spread = nearest_covariance(second / count - np.outer(mean, mean), most=radius**2)
        means.append(mean)
        # What the decoder learnt from were blurred codes; this also keeps every covariance well inside.
        covariances.append(spread + max(blur, 1e-3) ** 2 * np.eye(len(mean)))
    weights = counts / counts.sum() if counts.sum() > 0 else np.full(len(counts), 1 / len(counts))
    return Mixture(weights, np.stack(means), np.stack(covariances))


def nearest_covariance(matrix: np.ndarray, *, most: float) -> np.ndarray:
    """The nearest positive semidefinite matrix of the same trace (between 0 and `most`).

    Noise makes some eigenvalues negative and others as much too large; the trace is the part that noise hurts least.
    """
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    trace = float(np.clip(values.sum(), 1e-9, most))
    return (vectors * project_to_total(values, trace)) @ vectors.T
