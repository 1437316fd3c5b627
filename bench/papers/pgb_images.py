"""MNIST of `bench.papers.pgb`: models of images boosted, scored by a network that knows real digits."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import understudy as us
from bench.datasets import FILES, locate
from bench.papers import digit_score
from bench.papers import pgb_fits as fits
from bench.papers.dp_merf_images import CLASSES, SCHEMA, SIDE, read
from understudy.privacy import Budget
from understudy.synthesizers.api import Model
from understudy.table.table import Table

DRAWN = 10_000
SHOWN = 4  # rows of the picture a line


@cache
def setup(task: str) -> tuple[us.Schema, Table]:
    schema = us.Schema.loads(SCHEMA)
    return schema, us.read_table(str(locate(task, FILES[task][0])), schema)


def measure(task: str, method: str, epsilon: float, seed: int, keep: Path) -> dict[str, Any]:
    """One seed: every line's score at one total epsilon, and what real test images score."""
    schema, table = setup(task)
    begin, cpu = time.perf_counter(), time.process_time()
    lines = fitted(table, schema, method, epsilon, seed)
    spent = {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
    net = digit_score.judge_of(locate(task, FILES[task][0]))
    scored = digit_score.score(net, *read(locate(task, FILES[task][1])))
    real = {f"{name}_real": value for name, value in scored.items()}
    figures, shown = {}, {}
    for name, model in lines.items():
        codes = model.draw(DRAWN, np.random.default_rng(seed))
        images, labels = codes["images"].reshape(-1, SIDE, SIDE), codes["labels"].astype(np.int64)
        figures[name] = digit_score.score(net, images, labels) | real
        shown[name] = by_row(images, labels)
    if seed == 0:
        keep.mkdir(parents=True, exist_ok=True)
        np.savez(keep / f"{task}-{method}-{epsilon:g}.npz", **shown)
    return {"status": "ok", **spent, "lines": figures}


def fitted(table: Table, schema: us.Schema, method: str, epsilon: float, seed: int) -> dict[str, Model]:
    """Every line's model. There is no critic, so DRS rejects by the mean distinguisher of the game, all weights being
    equal: it spends what PGB spends."""
    last = us.fit(table, schema, method=method, epsilon=epsilon, seed=seed)
    budget = Budget(epsilon, last.certificate.delta)
    trained = fits.trained_part(table, schema, method, budget, seed)
    boosted = fits.boost_up_to(budget, trained, table, seed=seed)
    equal = np.full_like(boosted.released.weights, 1 / len(boosted.released.weights))
    lines = {
        "last": last,
        "DRS": fits.with_rejection(boosted, weights=equal),
        "PGB auto": boosted,
        "PGB+DRS auto": fits.with_rejection(boosted),
    }
    fits.check_spent(lines, epsilon)
    return lines


def by_row(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Some images as one picture: a column a class, the first that were drawn."""
    side = images.shape[1]
    found = np.zeros((SHOWN, side, CLASSES, side), dtype=np.uint8)
    for one in range(CLASSES):
        first = images[labels == one][:SHOWN]
        found[: len(first), :, one] = first
    return found.reshape(SHOWN * side, CLASSES * side)
