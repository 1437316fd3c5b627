"""Differentially private stand-ins for sensitive tables.

>>> import understudy as us
>>> schema = us.Schema.loads("rows: 100\\ncolumns: {age: {kind: integer, low: 0, high: 99}, smoker: {kind: boolean}}")
"""

from typing import TYPE_CHECKING, Any

from understudy.errors import UnderstudyError
from understudy.schema import Schema

if TYPE_CHECKING:
    from understudy.auditing.audit import audit
    from understudy.auditing.result import Audit
    from understudy.boosting.method import boost
    from understudy.comparison.choice import choose
    from understudy.comparison.result import Comparison
    from understudy.comparison.runs import compare
    from understudy.comparison.simulated import simulate
    from understudy.evaluation.suite import evaluate
    from understudy.privacy import Budget
    from understudy.privacy.budget_file import BudgetFile
    from understudy.privacy.certificate import Certificate
    from understudy.synthesizers.api import Model, fit, load
    from understudy.table.read import read_table
    from understudy.table.table import Table

__version__ = "0.1.0"
__all__ = [
    "Audit",
    "Budget",
    "BudgetFile",
    "Certificate",
    "Comparison",
    "Model",
    "Schema",
    "Table",
    "UnderstudyError",
    "audit",
    "boost",
    "choose",
    "compare",
    "evaluate",
    "fit",
    "load",
    "read_table",
    "simulate",
]

_HOMES = {
    "Audit": "understudy.auditing.result",
    "Budget": "understudy.privacy",
    "BudgetFile": "understudy.privacy.budget_file",
    "Certificate": "understudy.privacy.certificate",
    "Comparison": "understudy.comparison.result",
    "Model": "understudy.synthesizers.api",
    "audit": "understudy.auditing.audit",
    "boost": "understudy.boosting.method",
    "choose": "understudy.comparison.choice",
    "compare": "understudy.comparison.runs",
    "evaluate": "understudy.evaluation.suite",
    "fit": "understudy.synthesizers.api",
    "load": "understudy.synthesizers.api",
    "read_table": "understudy.table.read",
    "simulate": "understudy.comparison.simulated",
    "Table": "understudy.table.table",
}


def __getattr__(name: str) -> Any:
    """Public names load their rooms when first used, so that light commands start fast."""
    if name not in _HOMES:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """For completion, which would not find what is not loaded yet."""
    return [*__all__, "__version__"]
