"""A check of one model against the table that it was fitted to: its certificate, the table, and who was in it.

One model is one run: nothing about epsilon follows from it but that the certificate agrees with itself. What can be
seen is whether rows of the table look more familiar to the model than rows that it never met. All of it is computed
from private rows, and is for the steward alone.
"""

import math
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from understudy.auditing.bounds import least_rate, most_rate
from understudy.errors import ModelFileError, SchemaError, UnderstudyError
from understudy.privacy.budget_file import BudgetFile
from understudy.privacy.certificate import Finding
from understudy.privacy.events import Gaussian
from understudy.privacy.ledger import TOLERANCE
from understudy.synthesizers import model_file
from understudy.synthesizers.api import Model, load
from understudy.synthesizers.one_way import fine_cells, one_way_noise, rungs_of
from understudy.table.cells import Cells
from understudy.table.read import read_table
from understudy.table.table import Table

MOST_ROWS = 5_000
FEWEST_ROWS = 30
_ROWS_PER_BLOCK = 1 << 16
_GROUPS, _DEVIATIONS = 8, 6.0
_CERTIFICATE = "certificate.json"
ONE_WAY = "one-way tables"  # how the purpose of their entry in a certificate begins


@dataclass(frozen=True)
class Membership:
    """How often the model finds a row of the table likelier than one that it never met; 0.5 is guessing.

    low, high: the interval that holds the chance with this confidence.
    """

    pairs: int
    chance: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class ModelAudit:
    """What was found about one model. recognised: None where nothing that was released can be compared."""

    method: str
    epsilon: float
    delta: float
    findings: tuple[Finding, ...]
    recognised: bool | None
    table: str
    membership: Membership | None
    no_membership: str

    @property
    def holds(self) -> bool:
        return all(finding.ok for finding in self.findings)


def load_certified(path: str | PathLike[str]) -> Model:
    """The model; one whose certificate was left out is refused in these words."""
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
        if "model.json" in archive.namelist() and _CERTIFICATE not in archive.namelist():
            raise ModelFileError(
                f"model {str(path)!r}: it has no certificate, so it claims nothing that could be audited; ask for the "
                "file as `understudy fit` wrote it"
            )
    return load(path)


def audit_model(
    model: Model,
    source: Any,
    *,
    holdout: Any = None,
    budget_file: BudgetFile | str | PathLike[str] | None = None,
    confidence: float = 0.95,
) -> ModelAudit:
    """Checks the certificate, that the table is the model's, and tries to tell its rows from `holdout` rows.

    budget_file: also checks that the fit is entered there; a file whose records were changed is a BudgetError.
    """
    book = BudgetFile.load(budget_file) if isinstance(budget_file, str | PathLike) else budget_file
    table, fresh = (_read(model, given) for given in (source, holdout))
    arrays = model_file.certified_arrays(model.released.arrays(), model.released.facts(), model.config)
    findings = model.certificate.check(arrays=arrays, schema_digest=model.schema.digest())
    if book is not None:
        findings += _entered(model, book)
    recognised, words = _recognise(model, table)
    membership, why = _membership(model, table, fresh, confidence)
    certificate = model.certificate
    return ModelAudit(
        model.method, certificate.epsilon, certificate.delta, tuple(findings), recognised, words, membership, why
    )


def _entered(model: Model, book: BudgetFile) -> list[Finding]:
    entered, spent, total = book.holds(model.certificate), book.spent(), book.budget.epsilon
    return [
        Finding(
            entered,
            "budget file",
            "its records are whole, and this model's fit is among them"
            if entered
            else "its records are whole, but this model's fit, or one that it rests on, was not counted",
        ),
        Finding(spent <= total * (1 + TOLERANCE), "total", f"epsilon {spent:.6g} of {total:g} is spent on the table"),
    ]


def _read(model: Model, given: Any) -> Table | None:
    if isinstance(given, Table) and given.schema.digest() != model.schema.digest():
        raise SchemaError("the table was read with another schema than the model's; read it again with `model.schema`")
    return given if given is None or isinstance(given, Table) else read_table(given, model.schema)


def _recognise(model: Model, table: Table) -> tuple[bool | None, str]:
    """Whether the released one-way tables look like this table's, within what noise and smoothing do to them."""
    arrays = model.released.arrays()
    counted = next((e for e in model.certificate.entries if e.purpose.startswith(ONE_WAY)), None)
    public = fine_cells(model.schema.learnt())  # columns that rules give are not released
    comparable = public and all(f"fine.{number}" in arrays for number in range(len(public)))
    if not comparable or counted is None or not isinstance(counted.event, Gaussian):
        return None, (
            "whether this is the table that the model was fitted to cannot be seen: nothing was released that could "
            "be compared with it (a certificate names no table, since that would tell about its rows)"
        )
    noise = one_way_noise(public, counted.event.noise_multiplier)
    furthest, name = -np.inf, ""
    for number, (column, cells) in enumerate(public.items()):
        counts = np.zeros(cells.count)
        for block in table.blocks(_ROWS_PER_BLOCK):
            counts += np.bincount(cells.index(block[column]), minlength=cells.count)
        off = counts - _on_public_cells(model, column, cells, arrays[f"fine.{number}"])
        for group, tolerated in tolerances(cells, noise[column]):
            beyond = abs(off[group].sum()) - tolerated
            if beyond > furthest:
                furthest, name = beyond, column
    if furthest > 0:
        return False, (
            f"this is hardly the table that the model was fitted to: column {name!r} is further from what was "
            "released than noise explains (or rows were changed since)"
        )
    return True, "the released counts are those of a table like this one (which does not prove that it is this one)"


def _on_public_cells(model: Model, column: str, public: Cells, released: np.ndarray) -> np.ndarray:
    """Released counts by public cell: a model may have cut some of them into several."""
    own = getattr(model.released, "cells", {}).get(column, public)
    if own.count == public.count:
        return released
    inside = own.place(np.arange(own.count), np.random.default_rng(0))
    return np.bincount(public.index(inside), weights=released, minlength=public.count)


def tolerances(cells: Cells, noise: tuple[float, ...]) -> list[tuple[slice, float]]:
    """Groups of cells, and how far the released count of each may lie from that of its own table.

    A column on a ladder is compared by the runs of its widest rung, whose noise their sums have at most; any other by
    up to eight groups of cells. Six standard deviations of noise; and one for each count of the group, since
    smoothing moves a count that does not stand out by at most half of that, and cutting at zero by less than the rest.
    """
    width = rungs_of(cells)[-1]
    size = width if width > 1 else -(-cells.count // min(cells.count, _GROUPS))
    ends = cells.values if width > 1 else cells.count
    found = [(slice(at, min(at + size, ends)), size // width, noise[-1]) for at in range(0, ends, size)]
    if width > 1 and cells.missing:
        found.append((slice(cells.values, cells.count), 1, noise[0]))
    return [(group, (_DEVIATIONS * math.sqrt(runs) + runs) * each + 0.5) for group, runs, each in found]


def _membership(model: Model, table: Table, fresh: Table | None, confidence: float) -> tuple[Membership | None, str]:
    if fresh is None:
        return None, "not tried: no rows were given that the model never met (--holdout)"
    pairs = min(table.rows, fresh.rows, MOST_ROWS)
    if pairs < FEWEST_ROWS:
        return None, f"not tried: at least {FEWEST_ROWS} rows of either kind are needed"
    without = f"not tried: models of {model.method} give no probabilities of rows"
    if not hasattr(model.released, "log_prob"):
        return None, without
    rng = np.random.default_rng(0)
    try:
        members, others = (_familiar(model, rows, rng.permutation(rows.rows)[:pairs]) for rows in (table, fresh))
    except (UnderstudyError, NotImplementedError):
        return None, without
    wins = int(np.where(members == others, rng.random(pairs) < 0.5, members > others).sum())
    level = (1 - confidence) / 2
    low, high = float(least_rate(wins, pairs, level)), float(most_rate(wins, pairs, level))
    return Membership(pairs, wins / pairs, low, high, confidence), ""


def _familiar(model: Model, table: Table, chosen: np.ndarray) -> np.ndarray:
    return np.asarray(
        model.released.log_prob({name: table.codes(name)[chosen] for name in model.schema.learnt().modelled})
    )
