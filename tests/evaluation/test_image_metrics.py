"""Images: good stand-ins teach classifiers, noise does not, and mean images are as far apart as they are."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from understudy.errors import DataError, OptionError
from understudy.evaluation import evaluate
from understudy.evaluation.images import image_accuracy, image_f1, mean_image, score_images
from understudy.evaluation.suite import IMAGE_METRICS
from understudy.schema import Schema

SCHEMA = Schema.loads("""
rows: 600
label: digit
columns:
  digit: {kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
  image: {kind: image, height: 8, width: 8}
""")
ALONE = Schema.loads("columns: {image: {kind: image, height: 8, width: 8}}")
DATA = load_digits()


def digits(first: int, last: int) -> pd.DataFrame:
    images = (DATA.images[first:last] * 15).astype(np.uint8)
    return pd.DataFrame({"digit": DATA.target[first:last], "image": list(images)})


REAL, HELD, GOOD = digits(0, 600), digits(600, 900), digits(900, 1500)
NOISE = GOOD.assign(image=list(np.random.default_rng(0).integers(0, 256, (600, 8, 8)).astype(np.uint8)))


def test_fresh_images_teach_as_well_as_real_ones():
    result = image_accuracy(REAL, GOOD, SCHEMA, holdout=HELD)
    assert result.value > 0.85
    assert abs(result.value - result.reference) < 0.06
    assert set(result.details["models"]) == {"logistic_regression", "random_forest"}
    macro = image_f1(REAL, GOOD, SCHEMA, holdout=HELD)
    assert 0.8 < macro.value < 1
    assert macro.value != result.value


def test_noise_teaches_nothing():
    result = image_accuracy(REAL, NOISE, SCHEMA, holdout=HELD, models=("random_forest",))
    assert result.value < 0.25
    assert result.reference > 0.85


def test_the_order_of_rows_does_not_matter():
    shuffled = GOOD.sample(frac=1, random_state=1)
    first, second = (
        score_images(REAL, rows, SCHEMA, holdout=HELD, models=("decision_tree",), rows=200) for rows in (GOOD, shuffled)
    )
    assert first.scores == second.scores


def test_mean_images():
    assert mean_image(REAL, REAL, SCHEMA).value == 0
    assert mean_image(REAL, REAL, SCHEMA).reference is None
    good = mean_image(REAL, GOOD, SCHEMA, holdout=HELD)
    assert 0 < good.value < 0.1
    assert set(good.per_column) == set("0123456789")
    inverse = REAL.assign(image=[255 - image for image in REAL["image"]])
    assert mean_image(REAL, inverse, SCHEMA).value > 0.4
    black = REAL.assign(image=[np.zeros((8, 8), np.uint8)] * len(REAL))
    white = REAL.assign(image=[np.full((8, 8), 255, np.uint8)] * len(REAL))
    assert mean_image(black, white, SCHEMA).value == 1
    lacking = GOOD[GOOD["digit"] != 3]
    result = mean_image(REAL, lacking, SCHEMA)
    assert result.per_column["3"] == 1
    assert result.notes == ("1 classes have no image and count as 1",)
    assert result.worst_columns(1) == ("3",)


def test_the_suite_on_images():
    found = evaluate(REAL, GOOD, SCHEMA, holdout=HELD)
    assert [result.name for result in found] == [*IMAGE_METRICS, "tvd_1way", "lost_categories"]
    assert all(result.value is not None for result in found)
    assert found.to_json()
    assert found.rows == {"real": 600, "synthetic": 600, "holdout": 300}
    with pytest.raises(OptionError, match="by="):
        evaluate(REAL, GOOD, SCHEMA, by="digit")


def test_without_holdout_or_label():
    found = evaluate(REAL, GOOD, SCHEMA)
    assert "holdout" in found["image_accuracy"].undefined
    assert found["mean_image"].value > 0
    alone = [rows[["image"]] for rows in (REAL, GOOD, HELD)]
    found = evaluate(alone[0], alone[1], ALONE, holdout=alone[2])
    assert [result.name for result in found] == list(IMAGE_METRICS)
    assert "label" in found["image_accuracy"].undefined
    assert found["mean_image"].value == pytest.approx(found["mean_image"].reference, abs=0.05)


def test_numbers_as_labels_and_single_classes():
    schema = Schema.loads(
        SCHEMA.dumps().replace(
            "kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", "kind: integer, low: 0, high: 9"
        )
    )
    assert "classes" in image_accuracy(REAL, GOOD, schema, holdout=HELD).undefined
    ones = HELD[HELD["digit"] == 1]
    assert "one class only" in image_accuracy(REAL, GOOD, SCHEMA, holdout=ones).undefined
    single = image_accuracy(REAL, GOOD[GOOD["digit"] == 1], SCHEMA, holdout=HELD, models=("decision_tree",))
    assert "no classifier could be trained on the synthetic images" in single.undefined
    assert single.reference > 0.5


def test_images_that_do_not_fit():
    wrong = GOOD.assign(image=[np.zeros((9, 9), np.uint8)] * len(GOOD))
    with pytest.raises(DataError, match="the synthetic table: column 'image': at least 600 cells of another size"):
        evaluate(REAL, wrong, SCHEMA)
    with pytest.raises(DataError, match="lacks 1 of the schema's 2 columns: 'image'"):
        evaluate(REAL, GOOD[["digit"]], SCHEMA)
    with pytest.raises(OptionError, match="models must be among"):
        image_accuracy(REAL, GOOD, SCHEMA, holdout=HELD, models=("magic",))
