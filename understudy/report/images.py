"""The parts of a report about images: some synthetic ones, mean images side by side, and what classifiers learn."""

from base64 import b64encode
from typing import Any

from understudy.evaluation.evaluation import Evaluation
from understudy.report import words
from understudy.report.contents import MeanImages, Pictures
from understudy.report.markup import Html, join, tag
from understudy.report.sections import table

MOST_CLASSES = 40


def samples(pictures: Pictures) -> Html:
    """A grid of synthetic images."""
    said = f"Column {pictures.column}: the first synthetic images"
    if pictures.classes:
        said += f" of each class, a row each: {', '.join(pictures.classes)}"
    figure = tag("figure", _image(pictures.samples, "Synthetic images"), tag("figcaption", f"{said}."), class_="single")
    return figure


def steward(pictures: Pictures, evaluation: Evaluation) -> Html:
    """The grid, and the mean image of every class beside the real one."""
    parts: list[Any] = [samples(pictures)]
    if pictures.means:
        distance = evaluation["mean_image"]
        lead = f"Left the real images of a class, right the synthetic ones. Distance: {words.beside(distance)}."
        parts += [tag("h3", "Mean images"), tag("p", lead)]
        figures = [_pair(found, evaluation) for found in pictures.means[:MOST_CLASSES]]
        parts.append(tag("div", figures, class_="means"))
        if len(pictures.means) > MOST_CLASSES:
            parts.append(tag("p", f"and {len(pictures.means) - MOST_CLASSES} more classes", class_="soft"))
    return join(parts)


def _pair(found: MeanImages, evaluation: Evaluation) -> Html:
    distance = evaluation["mean_image"]
    value, fresh = distance.per_column.get(found.name), distance.per_column_reference.get(found.name)
    beside = "" if fresh is None else f" (fresh {words.number(fresh)})"
    both = [
        tag("span", "none", class_="soft") if image is None else _image(image, f"Mean image of {found.name}, {role}")
        for role, image in (("real", found.real), ("synthetic", found.synthetic))
    ]
    return tag("figure", tag("h3", found.name), tag("div", both), tag("figcaption", f"{words.number(value)}{beside}"))


def prediction(evaluation: Evaluation) -> Html:
    """Accuracy and F1 of every classifier, after real and after synthetic images."""
    found = evaluation["image_accuracy"]
    if found.value is None:
        return tag("p", f"The label is not predicted: {found.undefined}.")
    rows = []
    for model, by in found.details["models"].items():
        numbers = [by.get(after, {}).get(measure) for measure in ("accuracy", "f1") for after in ("real", "synthetic")]
        rows.append((model.replace("_", " "), *("-" if x is None else f"{x:.3f}" for x in numbers)))
    headings = ("model", "accuracy after real", "after synthetic", "F1 after real", "F1 after synthetic")
    lead = f"Classifiers see unseen real images; mean accuracy: {words.beside(found)}."
    return join([tag("p", lead), table(headings, rows, numbers=headings[1:])])


def _image(png: bytes, alternative: str) -> Html:
    return tag("img", src=f"data:image/png;base64,{b64encode(png).decode()}", alt=alternative)
