"""A factor for every code in each class: what fits that end early leave behind in rare codes, mended after them.

A fit starts from columns that are the same in all classes, learns what is clearest first, and ends at the noise. By
then it has hardly begun with codes of few rows: one that all its 250 rows have in one class of the label still has 25
in the other. All tables of such a code together tell better. So, when all fits are done and lie side by side, each
code's probability in all components of a class is multiplied by one factor, fitted to the same released tables with a
standard normal prior on its logarithm. Codes of many rows stay where the fits have them.

Works on released numbers alone: nothing here is private, and nothing here costs privacy.
"""

import numpy as np

from understudy.synthesizers.mixture.error import Tables, errors, of_logits
from understudy.synthesizers.mixture.fit import Fitted
from understudy.synthesizers.mixture.targets import Targets

STEPS = 60
FIRST_STEP = 0.1  # of Adam, which needs steps of all codes to be alike: those of many rows have far larger gradients
MOMENTUM, SQUARES = 0.9, 0.95


def with_factors(targets: Targets, fitted: Fitted) -> Fitted:
    """The same mixture with every code's share in every class where released tables and the prior have it."""
    tables = Tables.of(targets)
    logs = np.zeros((len(fitted.weights), len(targets.ones)))
    first, second = np.zeros_like(logs), np.zeros_like(logs)
    for step in range(1, STEPS + 1):
        found = _gradient(tables, fitted.weights, _scaled(fitted.probabilities, logs, tables.member)) + logs
        first += (1 - MOMENTUM) * (found - first)
        second += (1 - SQUARES) * (found**2 - second)
        length = FIRST_STEP * (1 + np.cos(np.pi * (step - 1) / STEPS)) / 2
        size = np.sqrt(second / (1 - SQUARES**step)) + 1e-8
        logs -= length * first / (1 - MOMENTUM**step) / size
    return Fitted(fitted.weights, _scaled(fitted.probabilities, logs, tables.member), fitted.steps, fitted.error)


def _scaled(probabilities: np.ndarray, logs: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Probabilities (classes, K, D) times factors (classes, D); `member` (D, columns) says which codes sum to 1."""
    scaled = probabilities * np.exp(logs, dtype=np.float32)[:, None]
    return scaled / ((scaled @ member) @ member.T)


def _gradient(tables: Tables, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Of the fit's error by the logarithms of factors, (classes, D)."""
    of_shares = errors(tables, weights[None].astype(np.float32), shares[None]).of_shares
    return of_logits(of_shares, shares[None], tables.member)[0].sum(axis=1).astype(np.float64)
