"""Attacks on the synthetic rows: was this person in the table, and what can be guessed about them?

An attack that fails proves nothing, one that succeeds does. Rows on which an attack is tuned are never those on which
it is measured.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from understudy.evaluation.choices import some_columns
from understudy.evaluation.compare import Part, Scale
from understudy.evaluation.disclosure import FAMILY, FEWEST_ROWS
from understudy.evaluation.encoding import Encoder
from understudy.evaluation.inputs import Source, open_tables
from understudy.evaluation.intervals import Z, difference
from understudy.evaluation.neighbours import nearest, nearest_without, points
from understudy.evaluation.parallel import one_thread
from understudy.evaluation.result import NO_HOLDOUT, MetricResult
from understudy.evaluation.view import View
from understudy.schema import Schema

# A guess of a number counts as right within this share of the column's public range.
NEAR = 0.05
MOST_COLUMNS = 30


@one_thread()
def membership_inference(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    targets: int = 2000,
    rows: int = 20_000,
    seed: int = 0,
) -> MetricResult:
    """Advantage (true minus false positive rate) of telling training rows from holdout rows by the synthetic rows.

    0 is ideal, 1 worst. Two attacks: a row counts as a member if a synthetic row is close to it; or if a synthetic row
    is closer than rows of a separate part of the holdout are. The better of the two and its threshold are chosen on one
    half of the targets, and the advantage is measured, with its 95 % interval, on the other half. The reference attacks
    a third of the holdout rows in the place of the synthetic ones.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="membership_inference", family=FAMILY, direction="lower", ideal=0.0, range=(-1.0, 1.0))
    reason = _too_few(r, t)
    if reason or t is None:
        return scale.result(Part(undefined=reason), None, missing=reason or NO_HOLDOUT)
    encoder = Encoder.of(r)
    outsiders, known, fresh = _thirds(t, seed)
    count = min(targets, r.rows, outsiders.rows)
    members = points(encoder, r.take(r.sample(count, seed)))
    others = points(encoder, outsiders.take(np.arange(count)))
    by_known = [nearest(asked, points(encoder, known))[0] for asked in (members, others)]

    def compare(view: View) -> Part:
        base = points(encoder, view.take(view.sample(rows, seed)))
        by_base = [nearest(asked, base)[0] for asked in (members, others)]
        scores = {
            "closest": tuple(-near for near in by_base),
            "calibrated": tuple(far - near for near, far in zip(by_base, by_known, strict=True)),
        }
        return _measured_advantage(scores)

    return scale.result(compare(s), compare(fresh))


def _too_few(real: View, holdout: View | None) -> str | None:
    if holdout is None:
        return NO_HOLDOUT
    if min(real.rows, holdout.rows // 3) < FEWEST_ROWS:
        return f"at least {FEWEST_ROWS} real and {3 * FEWEST_ROWS} holdout rows are needed"
    return None


def _thirds(holdout: View, seed: int) -> tuple[View, View, View]:
    order = holdout.sample(None, seed)
    third = len(order) // 3
    return tuple(holdout.take(order[at * third : (at + 1) * third]) for at in range(3))


def _measured_advantage(scores: Mapping[str, tuple[NDArray, NDArray]]) -> Part:
    """The best attack and threshold on even targets, measured on odd ones; targets come in random order."""
    best, chosen, threshold = -1.0, "", 0.0
    for attack, (members, others) in scores.items():
        advantage, cut = best_threshold(members[::2], others[::2])
        if advantage > best:
            best, chosen, threshold = advantage, attack, cut
    members, others = (part[1::2] for part in scores[chosen])
    caught, wrong = float((members >= threshold).sum()), float((others >= threshold).sum())
    return Part(
        value=caught / len(members) - wrong / len(others),
        interval=difference(caught, len(members), wrong, len(others)),
        details={
            "attack": chosen,
            "targets": len(members) + len(others),
            "auc": {attack: _area(*parts) for attack, parts in scores.items()},
        },
    )


def best_threshold(members: NDArray, others: NDArray) -> tuple[float, float]:
    """The threshold with the largest true minus false positive rate, and that advantage.

    >>> best_threshold(np.array([2.0, 3.0]), np.array([0.0, 1.0]))
    (1.0, 2.0)
    """
    cuts = np.unique(np.concatenate([members, others]))
    hit = 1 - np.searchsorted(np.sort(members), cuts, side="left") / len(members)
    wrong = 1 - np.searchsorted(np.sort(others), cuts, side="left") / len(others)
    at = int((hit - wrong).argmax())
    return float(hit[at] - wrong[at]), float(cuts[at])


def _area(members: NDArray, others: NDArray) -> float:
    """AUC: the chance that a member scores above another row, ties counting half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, side="left") + np.searchsorted(ordered, members, side="right")
    return float(below.mean() / (2 * len(others)))


@one_thread()
def attribute_inference(
    real: Source,
    synthetic: Source,
    schema: Schema,
    *,
    holdout: Source | None = None,
    columns: tuple[str, ...] | None = None,
    targets: int = 1000,
    rows: int = 20_000,
    seed: int = 0,
) -> MetricResult:
    """How much better an attacker guesses one cell of a training row than of a holdout row, from all its other cells.

    The guess is the cell of the synthetic row nearest in the other columns; it is right if equal, or for a number
    within 5 % of the public range. The value is the accuracy on training rows minus that on holdout rows, over all
    columns (or the named ones), with a 95 % interval; 0 is ideal, 1 worst. What can be guessed of holdout rows is what
    the table teaches about people in general, which is its purpose; `details["columns"]` has both accuracies. The
    reference puts a third of the holdout rows in the place of the synthetic ones.
    """
    r, s, t = open_tables(real, synthetic, schema, holdout)
    scale = Scale(name="attribute_inference", family=FAMILY, direction="lower", ideal=0.0, range=(-1.0, 1.0))
    names, notes = some_columns(list(r.facts), columns, MOST_COLUMNS, seed)
    reason = _too_few(r, t)
    if len(r.facts) < 2:
        reason = "there is one modelled column only, and nothing to guess it from"
    if reason or t is None:
        return scale.result(Part(undefined=reason), None, missing=reason or NO_HOLDOUT)
    encoder = Encoder.of(r)
    outsiders, _, fresh = _thirds(t, seed)
    count = min(targets, r.rows, outsiders.rows)
    groups = [r.take(r.sample(count, seed)), outsiders.take(np.arange(count))]

    def compare(view: View) -> Part:
        base = view.take(view.sample(rows, seed))
        rights = [_right_guesses(group, base, encoder, names) for group in groups]
        inside, outside = (np.array([right[name] for name in names]) for right in rights)
        gaps = inside.mean(axis=1) - outside.mean(axis=1)
        # A target's guesses hang together, so the interval is that of the targets' mean accuracies.
        spread = Z * np.sqrt(inside.mean(axis=0).var() / count + outside.mean(axis=0).var() / count)
        value = float(gaps.mean())
        accuracies = {
            name: {"training": float(inside[at].mean()), "holdout": float(outside[at].mean())}
            for at, name in enumerate(names)
        }
        return Part(
            value=value,
            interval=(value - float(spread), value + float(spread)),
            per_column=dict(zip(names, gaps.tolist(), strict=True)),
            notes=notes,
            details={"columns": accuracies, "targets": 2 * count},
        )

    return scale.result(compare(s), compare(fresh))


def _right_guesses(group: View, base: View, encoder: Encoder, names: list[str]) -> dict[str, NDArray[np.bool_]]:
    found = nearest_without(points(encoder, group), points(encoder, base), encoder, names)
    right = {}
    for name, index in found.items():
        if group.facts[name].categorical:
            right[name] = group.codes[name] == base.codes[name][index]
        else:
            truth, guess = group.position(name), base.position(name)[index]
            both_missing = np.isnan(truth) & np.isnan(guess)
            right[name] = both_missing | (np.abs(truth - guess) <= NEAR)
    return right
