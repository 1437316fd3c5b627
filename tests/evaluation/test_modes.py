import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from understudy.errors import OptionError
from understudy.evaluation.modes import GRID, classifier_score, gaussians_quality
from understudy.schema import Schema

PLANE = Schema(columns={name: {"kind": "real", "low": -6, "high": 6} for name in "xy"})


def grid(rows: int, seed: int, modes: int = 25) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    centres = np.array(GRID)[rng.integers(0, modes, rows)]
    return pd.DataFrame(centres + rng.normal(scale=0.05, size=(rows, 2)), columns=["x", "y"])


def test_twenty_five_gaussians():
    real = grid(5000, 0)
    fresh = gaussians_quality(real, grid(5000, 1), PLANE, holdout=grid(5000, 2))
    assert fresh.ideal == pytest.approx(0.99, abs=0.005)
    assert fresh.value == pytest.approx(fresh.reference, abs=0.03)
    collapsed = gaussians_quality(real, grid(5000, 1, modes=5), PLANE)
    assert collapsed.value == pytest.approx(5 / 25, abs=0.01)
    assert collapsed.details["empty_modes"] == 20
    blurred = gaussians_quality(real, real + np.random.default_rng(0).normal(scale=0.5, size=real.shape), PLANE)
    assert blurred.value < 0.1


def test_gaussians_need_two_numeric_columns(real, synthetic, schema):
    words = Schema(columns={"town": schema.columns["town"]})
    assert "two numeric columns" in gaussians_quality(real, synthetic, words).undefined
    with pytest.raises(OptionError, match="two numeric columns"):
        gaussians_quality(real, synthetic, schema, columns=("age", "town"))


def test_classifier_score_of_digits():
    digits = load_digits()
    pixels = {f"p{at}": {"kind": "integer", "low": 0, "high": 16} for at in range(64)}
    schema = Schema(label="digit", columns={**pixels, "digit": {"kind": "categorical", "values": list(range(10))}})
    frame = pd.DataFrame(digits.data.astype(int), columns=list(pixels)).assign(digit=digits.target)
    real, fresh = frame.iloc[::2], frame.iloc[1::2]
    good = classifier_score(real, fresh, schema)
    noise = pd.DataFrame(np.random.default_rng(0).integers(0, 17, (300, 64)), columns=list(pixels)).assign(digit=0)
    one = classifier_score(real, fresh[fresh.digit == 3], schema)
    assert good.value > 5 > classifier_score(real, noise, schema).value
    assert one.value < 2
    assert good.ideal <= 10.0


def test_classifier_score_reasons(real, synthetic, schema):
    assert "names no label" in classifier_score(real, synthetic, schema.model_copy(update={"label": None})).undefined
    assert "numeric" in classifier_score(real, synthetic, schema, label="age").undefined
    assert "at least two classes" in classifier_score(real.assign(sick=True), synthetic, schema).undefined
    with pytest.raises(OptionError, match="label must be"):
        classifier_score(real, synthetic, schema, label="patient")
