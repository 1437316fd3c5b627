"""Budgets, events, accountants, mechanisms and certificates: everything that makes a release private.

Nothing here reads a table. Importing this package loads no accounting or noise library: those come when first used.
"""

from understudy.privacy.accountant import Epsilon, epsilon
from understudy.privacy.budget_file import BudgetFile
from understudy.privacy.calibrate import gaussian_epsilon, noise_multiplier, split
from understudy.privacy.certificate import Certificate, Finding, arrays_digest
from understudy.privacy.events import (
    ApproxDp,
    BoundedRange,
    Event,
    Gaussian,
    NonPrivate,
    OneOfMany,
    Parallel,
    PoissonSampled,
    PureDp,
    ReplaceOneSampled,
    SelfComposed,
    ZCdp,
    event_from_dict,
)
from understudy.privacy.ledger import Budget, Entry, Ledger, Prepaid, default_delta
from understudy.privacy.mechanisms import gaussian, select, select_permute_and_flip
from understudy.privacy.randomness import Streams

__all__ = [
    "ApproxDp",
    "BoundedRange",
    "Budget",
    "BudgetFile",
    "Certificate",
    "Entry",
    "Epsilon",
    "Event",
    "Finding",
    "Gaussian",
    "Ledger",
    "NonPrivate",
    "OneOfMany",
    "Parallel",
    "PoissonSampled",
    "Prepaid",
    "PureDp",
    "ReplaceOneSampled",
    "SelfComposed",
    "Streams",
    "ZCdp",
    "arrays_digest",
    "default_delta",
    "epsilon",
    "event_from_dict",
    "gaussian",
    "gaussian_epsilon",
    "noise_multiplier",
    "select",
    "select_permute_and_flip",
    "split",
]
