"""The parts of a report about images: inline, escaped, and without real ones on a page for the public."""

import re

import pytest

from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.result import MetricResult
from understudy.report import Guarantee, MeanImages, Pictures, public_report, steward_report

PNG = b"\x89PNG made up"
SHOWN = Pictures(column="<scan>", samples=PNG, classes=("<a>", "b"))
WITH_MEANS = Pictures(
    column="<scan>",
    samples=PNG,
    classes=("<a>", "b"),
    means=(
        MeanImages(name="<a>", real=PNG, synthetic=PNG),
        MeanImages(name="lost", real=PNG, synthetic=None),
    ),
)


@pytest.fixture
def found() -> Evaluation:
    scores = {"accuracy": 0.5, "f1": 0.25}
    models = {"random_forest": {"real": scores, "synthetic": scores}, "<lda>": {"real": scores}}
    scale = {"family": "images", "range": (0.0, 1.0)}
    results = (
        MetricResult(
            name="image_accuracy",
            direction="higher",
            ideal=1.0,
            value=0.5,
            reference=0.5,
            details={"models": models},
            **scale,
        ),
        MetricResult(
            name="mean_image",
            direction="lower",
            ideal=0.0,
            value=0.6,
            reference=0.1,
            per_column={"<a>": 0.2, "lost": 1.0},
            per_column_reference={"<a>": 0.1},
            **scale,
        ),
    )
    return Evaluation(results=results, rows={"real": 10, "synthetic": 10}, which="fast", seed=0)


def test_the_steward_sees_samples_and_mean_images(found: Evaluation) -> None:
    page = steward_report(found, (), None, title="t", pictures=WITH_MEANS)
    assert page.count("data:image/png;base64,iVBORyBtYWRlIHVw") == page.count("data:image/png") == 4
    assert "img-src data:" in page
    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    assert "<scan>" not in page
    assert "0.2 (fresh 0.1)" in page
    assert ">none</span>" in page  # the class without synthetic images
    assert re.search(r"random forest</td><td class=\"number\">0.500", page)
    assert 'id="columns"' not in page
    assert "<script" not in page


def test_the_public_page_has_samples_alone(guarantee: Guarantee) -> None:
    page = public_report((), title="t", guarantee=guarantee, pictures=SHOWN)
    assert page.count("data:image/png") == 1
    with pytest.raises(ValueError, match="mean images"):
        public_report((), title="t", guarantee=guarantee, pictures=WITH_MEANS)


def test_a_page_without_images_allows_none(guarantee: Guarantee) -> None:
    assert "img-src" not in public_report((), title="t", guarantee=guarantee)
