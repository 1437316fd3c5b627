"""Both tables in the plane that shows most of the real one."""

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.divergences import wasserstein1
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.parallel import one_thread
from understudy.evaluation.result import MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "distributions"


@one_thread()
def pca_marginal(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    rows: int = 50_000,
    points: int = 1000,
    directions: int = 36,
    seed: int = 0,
) -> MetricResult:
    """Distance of the two tables in the plane of the real table's first two principal components; 0 is best.

    It is the Wasserstein-1 distance along each of `directions` equally spaced lines through the plane, averaged (sliced
    Wasserstein), in units of the real rows' spread there. `details["real_points"]` and `details["synthetic_points"]`
    are `points` rows of each table in the plane, for the two scatter plots.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="pca_marginal", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, float("inf")))
    encoder = Encoder.of(r)
    rows = min(rows, max(1000, int(1e8 / max(encoder.width, 1))))
    matrix = _encoded(encoder, r, rows, seed)
    centre = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
    plane, explained = _plane(matrix - centre)
    if plane.shape[1] == 0:
        reason = "no real column varies, so there is no plane to project on"
        return scale.result(Part(undefined=reason), None, missing=reason)
    mine = (matrix - centre) @ plane
    spread = float(np.sqrt((mine**2).sum(axis=1).mean()))
    angles = np.pi * np.arange(directions) / directions
    lines = np.stack([np.cos(angles), np.sin(angles)])[: plane.shape[1]]

    def compare(other: View, name: str) -> Part:
        theirs = (_encoded(encoder, other, rows, seed) - centre) @ plane
        distances = [wasserstein1(mine @ line, theirs @ line) for line in lines.T]
        details = {
            "explained": explained,
            "real_points": mine[:points].round(4).tolist(),
            f"{name}_points": theirs[:points].round(4).tolist(),
        }
        return Part(value=float(np.mean(distances)) / spread, details=details)

    return scale.result(compare(s, "synthetic"), None if t is None else compare(t, "holdout"))


def _encoded(encoder: Encoder, view: View, rows: int, seed: int) -> NDArray[np.float32]:
    return encoder.one_hot(view.take(view.sample(rows, seed)), hot=0.5**0.5)


def _plane(centred: NDArray[np.float32]) -> tuple[NDArray[np.float32], list[float]]:
    """Up to two principal directions and the share of the variance that each explains."""
    values, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64) / len(centred))
    kept = [index for index in (-1, -2) if len(values) >= -index and values[index] > 1e-9]
    # An eigenvector's sign is arbitrary; fixed here so that plots of two runs look alike.
    chosen = [directions[:, i] * np.sign(directions[np.abs(directions[:, i]).argmax(), i]) for i in kept]
    plane = np.array(chosen, dtype=np.float32).reshape(len(kept), len(values)).T
    return plane, [float(values[i] / values.sum()) for i in kept]
