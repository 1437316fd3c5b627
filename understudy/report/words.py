"""Metrics in words, and the grade on the first screen."""

from dataclasses import dataclass

from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.result import MetricResult

# What a metric asks, for readers who have never heard its name.
QUESTIONS = {
    "tvd_1way": ("Single columns", "share of rows that would have to move to make a column's distribution real"),
    "tvd_2way": ("Pairs of columns", "share of rows that would have to move to make two columns jointly real"),
    "tvd_3way": ("Triples of columns", "share of rows that would have to move to make three columns jointly real"),
    "nist_3way": ("Triples, fine cells", "difference of three-column tables with up to 100 cells a column"),
    "wasserstein": ("Numbers: distance moved", "how far values lie from the real ones, as a share of the range"),
    "jsd": ("Categories: divergence", "Jensen-Shannon divergence, summed over the categorical columns"),
    "mu_kl": ("Categories: rare ones", "a divergence that weighs lost rare categories"),
    "dimension_wise_probability": ("Yes/no columns", "difference in the share of yes"),
    "lost_categories": ("Lost categories", "share of the real categories that no synthetic row has"),
    "spearman": ("Correlations of numbers", "difference in the rank correlation of two columns"),
    "cramers_v": ("Associations of categories", "difference in Cramer's V of two columns"),
    "correlation_ratio": ("Numbers by category", "difference in how much a category explains of a number"),
    "pca_marginal": ("Overall shape", "distance of the tables in the plane that shows most of the real one"),
    "dimension_wise_prediction": ("Predicting each column", "gap between models that learnt from either table"),
    "regression_similarity": ("Regressions", "difference in the error of regressions that learnt from either table"),
    "coefficient_overlap": ("Regression intervals", "overlap of the coefficients' confidence intervals"),
    "pmse": ("Telling rows apart", "success of a logistic regression in telling rows apart"),
    "pmse_ratio_logistic": ("Telling apart: linear", "success of a linear model in telling rows apart; 1 is chance"),
    "pmse_ratio_tree": ("Telling apart: tree", "success of a decision tree in telling rows apart; 1 is chance"),
    "c2st": ("Telling apart: boosted trees", "success of a strong classifier in telling rows apart; 0.5 is chance"),
    "classifier_score": ("Variety of the label", "are rows of all classes there, and clear; best as in real rows"),
    "exact_copies": ("Exact copies", "share of rows that equal a real row in every column"),
    "dcr_share": ("Closeness to real rows", "share of rows that lie closer to the fitted rows than to unseen ones"),
    "membership_inference": ("Membership attack", "advantage in guessing who was in the table"),
    "attribute_inference": ("Attribute attack", "advantage in guessing a cell of people in the table over others"),
    "train_on_synthetic": (
        "Predicting the label",
        "mean score of models that learnt from synthetic rows, on unseen rows",
    ),
    "ranking_agreement": ("Ranking of models", "agreement of both tables on which model is better"),
    "subgroup_scores": ("Predictions by group", "the score within groups of people"),
    "gaussians_quality": ("Modes", "share of rows near a known mode"),
    "image_accuracy": (
        "Recognising images",
        "mean accuracy, on unseen real images, of classifiers that learnt from synthetic ones",
    ),
    "image_f1": ("Recognising images: F1", "the same, with every class counting alike"),
    "mean_image": ("Mean images", "how far the mean image of a class is from the real one, from 0 to 1"),
}

# The grade is that of the weakest of these: every use of a table needs its columns and pairs right.
HEADLINES = ("tvd_1way", "tvd_2way", "train_on_synthetic", "image_accuracy")
GRADES = (
    (0.02, "A", "Columns, pairs and predictions are nearly those of fresh real rows."),
    (0.05, "B", "Close to fresh real rows; small effects may be off."),
    (0.10, "C", "Good for broad patterns; check what you rely on."),
    (0.20, "D", "Rough: for trying out programs, not for conclusions."),
    (1.00, "E", "Far from the real rows: not for conclusions."),
)


@dataclass(frozen=True)
class Grade:
    letter: str
    meaning: str
    why: str


def title(name: str) -> str:
    return QUESTIONS[name][0] if name in QUESTIONS else name


def question(name: str) -> str:
    return QUESTIONS[name][1] if name in QUESTIONS else ""


def number(value: float | None) -> str:
    """Three significant digits, or a dash.

    >>> number(0.012345), number(None), number(20000.0), number(0.0)
    ('0.0123', '-', '20,000', '0')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def beside(result: MetricResult) -> str:
    """A value beside its reference."""
    fresh = "" if result.reference is None else f"fresh real rows {number(result.reference)}, "
    return f"{number(result.value)} ({fresh}best {number(result.ideal)})"


def weak_columns(result: MetricResult, count: int = 3) -> str:
    """The columns that are furthest off; those that are perfect are none of them."""
    return ", ".join(name for name in result.worst_columns(count) if result.per_column[name] != result.ideal)


def grade(evaluation: Evaluation) -> Grade | None:
    """A letter by the largest shortfall among the headline metrics; None where none of them is defined.

    A shortfall is how much worse than fresh real rows a table is, on the metric's scale from 0 to 1. Without fresh rows
    it is the distance from the ideal, which is at least as large: the letter is then a lower bound.
    """
    known = [result for result in evaluation if result.name in HEADLINES and result.shortfall is not None]
    if not known:
        return None
    worst = max(known, key=lambda result: result.shortfall)
    letter, meaning = next((letter, meaning) for most, letter, meaning in GRADES if worst.shortfall <= most)
    if all(result.reference is not None for result in known):
        than, at_least = "worse than fresh real rows would be", ""
    else:
        than, at_least = "away from perfect, for want of holdout rows to compare with", "at least "
    measured = ", ".join(title(result.name).lower() for result in known)
    why = (
        f"Measured by: {measured}. The weakest is {title(worst.name).lower()}: {beside(worst)}. "
        f"That is {number(worst.shortfall)} {than}, on a scale from 0 to 1."
    )
    return Grade(at_least + letter, meaning, why)
