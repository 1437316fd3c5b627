"""One standalone HTML page about a synthetic table, from results and certificates; no rows come in here."""

from understudy.report.build import public_report, steward_report
from understudy.report.compared import Compared, Cost, Curve, Grid, Point, TradeOff
from understudy.report.comparison import comparison_report
from understudy.report.contents import (
    Audited,
    AuditedStep,
    Dependence,
    Guarantee,
    Histogram,
    MeanImages,
    Pictures,
    Shown,
)

__all__ = [
    "Audited",
    "AuditedStep",
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
    "Shown",
    "TradeOff",
    "comparison_report",
    "public_report",
    "steward_report",
]
