"""Which method to take: a grid of fits, and two ways to choose that a guarantee covers."""

from understudy.comparison.choice import choose
from understudy.comparison.result import Comparison
from understudy.comparison.runs import compare
from understudy.comparison.simulated import simulate

__all__ = ["Comparison", "choose", "compare", "simulate"]
