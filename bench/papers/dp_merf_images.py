"""MNIST and Fashion-MNIST of the DP-MERF paper's table 3: a fit in a process of its own, its judge, and pictures.

`python -m bench.papers.dp_merf_images TRAIN.npz MADE.npz --method ...` is that process: it fits on the images of one
file and writes others of the same form (`images`, `labels`), and prints what it spent.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import understudy as us
from bench.cells import ROOT
from bench.datasets import FILES, locate
from bench.papers.dp_merf_judge import SEED, Examples, twelve
from bench.peers.common import peak_mib
from understudy.evaluation.models import Prediction, classify

NAMES = ("mnist", "fashion_mnist")
EPSILONS = (9.6, 2.9, 1.3)
SIDE, CLASSES = 28, 10
TRAINED = 10_000  # images that classifiers are trained on, made or real; the test part has as many
SCHEMA = f"""
rows: 60000
label: labels
columns:
  images: {{kind: image, height: {SIDE}, width: {SIDE}}}
  labels: {{kind: categorical, values: {list(range(CLASSES))}}}
"""

Pictures = tuple[NDArray[np.uint8], NDArray[np.int64]]


def read(path: Path) -> Pictures:
    with np.load(path) as arrays:
        return arrays["images"], arrays["labels"].astype(np.int64)


@cache
def real(name: str, part: str) -> Pictures:
    """The `train` or `test` part of a set; of the former as many as classifiers are trained on, chosen once."""
    images, labels = read(locate(name, dict(zip(("train", "test"), FILES[name], strict=True))[part]))
    if part == "train":
        chosen = np.random.default_rng(SEED).permutation(len(labels))[:TRAINED]
        images, labels = images[chosen], labels[chosen]
    return images, labels


def judge_images(name: str, made: Pictures) -> dict[str, Any]:
    test = _examples(real(name, "test"))
    return twelve(_examples(made), test, classes=CLASSES, positive=None, learn=classify_images)


def classify_images(name: str, rows: NDArray, labels: NDArray, test: NDArray, classes: int, seed: int) -> Prediction:
    """The classifiers of tables, except that every boosted tree sees a tenth of the images, as in the paper's code: 500
    trees of all images and pixels would take most of the time."""
    seen = np.unique(labels)
    if name != "gradient_boosting" or len(seen) < 2:
        return classify(name, rows, labels, test, classes, seed)
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=50, subsample=0.1, random_state=seed).fit(rows, labels)
    scores = np.full((len(test), classes), -1.0, dtype=np.float32)  # below every class that was seen
    scores[:, seen] = model.predict_proba(test)
    return Prediction(scores)


def _examples(pictures: Pictures) -> Examples:
    images, labels = pictures
    return images.reshape(len(images), -1).astype(np.float32) / 255, labels


def make_images(
    name: str, method: str, epsilon: float, delta: float, seed: int, path: Path, *, seconds: int
) -> dict[str, Any]:
    """Fits on the train part in a process of its own and writes TRAINED images to `path`; says what it spent, or why
    there are none."""
    command = [sys.executable, "-m", "bench.papers.dp_merf_images", str(locate(name, FILES[name][0])), str(path)]
    command += ["--method", method, "--epsilon", str(epsilon), "--delta", str(delta), "--seed", str(seed)]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"status": f"not done within {seconds / 60:g} minutes"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": f"failed: {last[:300]}"}
    return {"status": "ok", **json.loads(done.stdout.strip().splitlines()[-1])}


def grid(blocks: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Blocks of images (rows x columns x height x width) below each other, with a grey line between the blocks."""
    drawn = []
    for images in blocks:
        rows, columns, height, width = images.shape
        drawn.append(images.transpose(0, 2, 1, 3).reshape(rows * height, columns * width))
        drawn.append(np.full((2, columns * width), 128, dtype=np.uint8))
    return np.concatenate(drawn[:-1])


def by_class(pictures: Pictures, rows: int) -> NDArray[np.uint8]:
    """The first images of every class, a column a class; black where a class has too few."""
    images, labels = pictures
    found = np.zeros((rows, CLASSES, *images.shape[1:]), dtype=np.uint8)
    for one in range(CLASSES):
        first = images[labels == one][:rows]
        found[: len(first), one] = first
    return found


def write_png(path: Path, picture: NDArray[np.uint8]) -> None:
    from matplotlib.image import imsave

    imsave(path, picture, cmap="gray", vmin=0, vmax=255)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("made", type=Path)
    parser.add_argument("--method", required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    begin = time.perf_counter()
    # Noise from the operating system, as a release would have it; the seed chooses which images are drawn.
    model = us.fit(
        options.train, us.Schema.loads(SCHEMA), method=options.method, epsilon=options.epsilon, delta=options.delta
    )
    fit_seconds = time.perf_counter() - begin
    made = model.sample(TRAINED, seed=options.seed)
    images = np.stack(made["images"].to_list()).astype(np.uint8)
    np.savez_compressed(options.made, images=images, labels=made["labels"].astype(int).to_numpy())
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = {"fit_seconds": fit_seconds, "cpu_seconds": used.ru_utime + used.ru_stime, "peak_mib": peak_mib()}
    print(json.dumps(spent))


if __name__ == "__main__":
    main()
