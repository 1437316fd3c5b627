"""How good and how safe a synthetic table is: every metric is a pure function, `evaluate` runs them together."""

from understudy.evaluation.evaluation import Evaluation
from understudy.evaluation.result import MetricResult
from understudy.evaluation.suite import evaluate

__all__ = ["Evaluation", "MetricResult", "evaluate"]
