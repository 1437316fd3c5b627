"""Rows that come too close to real ones. None of these numbers is a guarantee: the certificate is."""

import numpy as np

from understudy.evaluation.compare import Part, Scale, against_holdout
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.intervals import wilson
from understudy.evaluation.neighbours import nearest, points
from understudy.evaluation.parallel import one_thread
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

FAMILY = "disclosure"
FEWEST_ROWS = 30


def exact_copies(real: Source, synthetic: Source, schema: Schema, *, holdout: Source | None = None) -> MetricResult:
    """Share of rows that equal a real row in every modelled column; lower is better, and the reference is what counts.

    In a table of few columns fresh rows equal real ones too: the reference is the share of holdout rows that do.
    `details["copies_of_unique_rows"]` is the share that equal a row which only one real person has.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="exact_copies", family=FAMILY, direction="lower", ideal=0.0, range=(0.0, 1.0))
    distinct, counts = np.unique(r.hashes, return_counts=True)

    def compare(other: View) -> Part:
        place = np.minimum(np.searchsorted(distinct, other.hashes), len(distinct) - 1)
        copied = distinct[place] == other.hashes
        alone = copied & (counts[place] == 1)
        return Part(
            value=float(copied.mean()),
            interval=wilson(float(copied.sum()), other.rows),
            details={"copies_of_unique_rows": float(alone.mean()), "rows": other.rows},
        )

    return against_holdout(scale, compare, s, t)


@one_thread()
def dcr_share(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    queries: int = 5000,
    rows: int = 20_000,
    seed: int = 0,
) -> MetricResult:
    """Share of synthetic rows whose distance to the closest record is smaller to the real rows than to as many holdout
    rows; ties count half. 0.5 is ideal, 1 means that every row was drawn to the training rows.

    The reference puts one half of the holdout rows in the place of the synthetic ones, and compares with the other
    half.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="dcr_share", family=FAMILY, direction="lower", ideal=0.5, range=(0.0, 1.0))
    reason = NO_HOLDOUT if t is None else None
    if t is not None and min(r.rows, t.rows // 2) < FEWEST_ROWS:
        reason = f"at least {FEWEST_ROWS} real and {2 * FEWEST_ROWS} holdout rows are needed"
    if reason or t is None:
        return scale.result(Part(undefined=reason), None, missing=reason or NO_HOLDOUT)
    encoder = Encoder.of(r)
    order = t.sample(None, seed)
    half = t.rows // 2

    def compare(other: View, fresh: View) -> Part:
        count = min(r.rows, fresh.rows, rows)
        asked = points(encoder, other.take(other.sample(min(queries, count), seed)))
        to_real, _ = nearest(asked, points(encoder, r.take(r.sample(count, seed))))
        to_fresh, _ = nearest(asked, points(encoder, fresh.take(fresh.sample(count, seed))))
        tied = np.abs(to_real - to_fresh) < 1e-5
        share = float(np.where(tied, 0.5, to_real < to_fresh).mean())
        details = {
            "rows": count,
            "queries": len(asked),
            "ties": float(tied.mean()),
            "median_distance_to_real": float(np.median(to_real)),
            "median_distance_to_holdout": float(np.median(to_fresh)),
        }
        return Part(value=share, interval=wilson(share * len(asked), len(asked)), details=details)

    return scale.result(compare(s, t), compare(t.take(order[:half]), t.take(order[half:])))
