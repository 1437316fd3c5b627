"""Weights without privacy: those under which every distinguisher has the mean that it has over the rows.

Averages of a game's rounds come near such weights with one over the root of the rounds, and 1,000 rounds of best
responses leave a pool almost as it is. Where the rows may be looked at there is no need for picks: weights of the form
exp(sum over j of theta_j D_j) have a likelihood given the rows' own means m_j, and wanted are those with the largest

    rows * (sum over j of theta_j m_j - log Z(theta)) - |theta|^2 / 2,

a standard normal prior for every theta_j. It keeps weights finite where a code is not among the rows, and leaves means
that few rows speak for closer to the pool's.
"""

import numpy as np

from understudy.boosting.exact import UNIT
from understudy.boosting.game import Family
from understudy.privacy import Ledger, NonPrivate
from understudy.table.table import Table

_ITERATIONS = 200


def matched_weights(family: Family, table: Table, *, both_ways: bool, ledger: Ledger) -> np.ndarray:
    """The weights of the pool that are most likely given the rows; they sum to 1.

    both_ways: as in the game. Without it no theta_j is below 0: weights move towards what D_j likes, never away.
    Charges: `NonPrivate`, which a ledger with a finite budget refuses before a row is looked at.
    """
    from scipy.optimize import minimize

    ledger.charge(NonPrivate(), "means of all distinguishers")
    sums = family.sums(table) / UNIT
    rows = max(table.rows, 1)

    def weights_at(theta: np.ndarray) -> tuple[np.ndarray, float]:
        logs = family.sum_of(theta)
        most = logs.max()
        weights = np.exp(logs - most)
        return weights / weights.sum(), float(most + np.log(weights.sum()))

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        weights, log_z = weights_at(theta)
        value = table.rows * log_z - theta @ sums + theta @ theta / 2
        slope = table.rows * family.expectations(weights) - sums + theta
        return value / rows, slope / rows

    start, bounds = np.zeros(family.count), None if both_ways else [(0.0, None)] * family.count
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _ITERATIONS})
    return weights_at(found.x)[0]
