"""One standalone HTML page about a synthetic table, from results and certificates; no rows come in here."""

from understudy.report.build import public_report, steward_report
from understudy.report.contents import Dependence, Guarantee, Histogram

__all__ = ["Dependence", "Guarantee", "Histogram", "public_report", "steward_report"]
