"""What the first attacker reads off models that hold neither one-way tables nor probabilities of rows."""

from typing import Any

import numpy as np

from understudy.auditing.canaries import Pair
from understudy.synthesizers.api import Model
from understudy.table.cells import cells_of
from understudy.table.table import Table

PICKS = "picks that speak for it"


def boosted_readings(model: Model, pair: Pair) -> dict[str, float]:
    """Of a boosted model: its picks, and its pool before it was weighted.

    One row more adds its value under each distinguisher to that one's score, so the log-ratio of a pick's chances is
    epsilon times the value of the row under the picked one, less a term that hardly varies: the sum of these values
    over all picks is, to first order, the best score there is.
    """
    from understudy.boosting.distinguishers import distinguishers
    from understudy.boosting.exact import UNIT
    from understudy.boosting.pool import Pool

    released: Any = model.released
    size = len(released.weights)
    pool = Pool(released.schema, released.pool, np.zeros(size, dtype=np.int32), (), released.rows)
    row = {name: pair.row[name] for name in (*released.schema.modelled, *released.schema.images)}
    values = distinguishers(pool, "marginals").sums(Table.from_codes(released.schema, row)) / UNIT
    if released.settings["both_ways"]:
        values = np.concatenate([values, 1 - values])
    found = {}
    if released.settings["distinguishers_played"] == len(values):  # critics would stand before them
        found[PICKS] = float(values[released.picks].sum())
    alike = np.zeros(size)
    for number, (name, column) in enumerate(released.schema.modelled.items(), start=1):
        cells = cells_of(column)
        same = cells.index(released.pool[name]) == cells.index(row[name])[0]
        found[f"rows of the pool in its cell of column {number}"] = float(same.sum())
        alike += same
    return found | {"cells of the pool that agree with it": float(alike.sum())}


def picture_readings(model: Model, pair: Pair) -> dict[str, float]:
    """Of a model of images: the rows of its class, and how its class's prototypes lie along its pixels."""
    arrays = model.released.arrays()
    (image,) = pair.schema.images
    label = pair.schema.label
    place = 0 if label is None else int(cells_of(pair.schema.columns[label]).index(pair.row[label])[0])
    pixels = pair.row[image][0].astype(float) - 127.5
    found = {f"rows of class {number + 1}": float(rows) for number, rows in enumerate(arrays["class_rows"])}
    prototypes = arrays["prototypes"][place]
    if prototypes.shape[1] == len(pixels):  # not the codes of an autoencoder
        found["its class's prototypes along its pixels"] = float((prototypes @ pixels).mean() / len(pixels))
    return found | {"rows of its class": found[f"rows of class {place + 1}"]}
