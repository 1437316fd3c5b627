"""One standalone HTML page about a synthetic table, from results and certificates; no rows come in here."""

from understudy.report.build import public_report, steward_report
from understudy.report.compared import Compared, Cost, Curve, Grid, Point, TradeOff
from understudy.report.comparison import comparison_report
from understudy.report.contents import Dependence, Guarantee, Histogram, MeanImages, Pictures

__all__ = [
    "Compared",
    "Cost",
    "Curve",
    "Dependence",
    "Grid",
    "Guarantee",
    "Histogram",
    "MeanImages",
    "Pictures",
    "Point",
    "TradeOff",
    "comparison_report",
    "public_report",
    "steward_report",
]
