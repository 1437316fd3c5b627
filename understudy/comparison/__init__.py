"""Which method to take: a grid of fits, and two ways to choose that a guarantee covers."""

from understudy.comparison.choose import choose
from understudy.comparison.compare import compare
from understudy.comparison.comparison import Comparison
from understudy.comparison.simulate import simulate

__all__ = ["Comparison", "choose", "compare", "simulate"]
