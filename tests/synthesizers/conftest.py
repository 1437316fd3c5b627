"""What tests share: a tiny private domain, copies of a module's source with a bug planted in it, a model a method."""

import inspect
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from common_helpers import quick_fit

from understudy.privacy import Budget, Ledger, Streams
from understudy.privacy.events import Event
from understudy.schema import Schema
from understudy.synthesizers.api import METHODS, Model
from understudy.table.read import read_table
from understudy.table.table import Table

TINY = """
rows: 50
label: sick
columns:
  town: {kind: categorical, values: [a, b, Other], other: Other, missing: true}
  age: {kind: integer, low: 0, high: 2}
  sick: {kind: boolean, missing: true}
  wage: {kind: real, low: 0, high: 1, missing: true}
"""
# Inside the domain, outside of it (which the codec brings to `other` or to a bound), and missing.
TOWNS, AGES, SICK, WAGES = ("a", "b", "zzz", None), (-7, 0, 2, 99), (True, False, None), (-3.0, 0.5, 1.0, 1e30, None)


@pytest.fixture(scope="session")
def tiny_schema() -> Schema:
    return Schema.loads(TINY)


@pytest.fixture(scope="session")
def every_row(tiny_schema: Schema) -> Table:
    """One row of every kind there is, read like any private table."""
    towns, ages, sick, wages = zip(*product(TOWNS, AGES, SICK, WAGES), strict=True)
    frame = pd.DataFrame(
        {
            "town": pd.Series(towns, dtype=object),
            "age": ages,
            "sick": pd.array(sick, dtype="boolean"),
            "wage": pd.Series(wages, dtype=float),
        }
    )
    return read_table(frame, tiny_schema)


def pick_rows(table: Table, rows: list[int]) -> Table:
    """The table of some rows of another, in that order."""
    return Table.from_codes(table.schema, {name: table.codes(name)[rows] for name in table.schema.modelled})


@pytest.fixture(scope="session")
def take() -> Callable[[Table, list[int]], Table]:
    return pick_rows


@pytest.fixture(scope="session")
def neighbours(every_row: Table) -> list[tuple[Table, list[Table]]]:
    """Small tables, the empty one among them, each with all tables that have one row more."""
    rng = np.random.default_rng(0)
    bases = [[], [7], rng.integers(0, every_row.rows, 6).tolist(), [3, 3, 3]]
    return [
        (pick_rows(every_row, base), [pick_rows(every_row, [*base, row]) for row in range(every_row.rows)])
        for base in bases
    ]


def copy_source(module: ModuleType, *changes: tuple[str, str]) -> ModuleType:
    """A private copy of a module, made from its source: as it is, or with a bug planted in it."""
    text = inspect.getsource(module)
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {module.__name__}: plant the bug anew"
        text = text.replace(old, new)
    copied = ModuleType(module.__name__)
    exec(compile(text, module.__file__, "exec"), copied.__dict__)
    return copied


@pytest.fixture(scope="session")
def copy_of() -> Callable[..., ModuleType]:
    return copy_source


class LoggedLedger(Ledger):
    """Writes every charge to a log as well."""

    def __init__(self, budget: Budget, log: list[tuple]) -> None:
        super().__init__(budget)
        self.log = log

    def charge(self, event: Event, purpose: str) -> None:
        super().charge(event, purpose)
        self.log.append(("charge", event))


class LoggedNoise:
    """Repeatable noise that writes every draw to a log, and keeps the last one."""

    def __init__(self, seed: int, log: list[tuple]) -> None:
        self.source = Streams.from_seed(seed).noise
        self.log = log
        self.last = np.zeros(0)

    def gaussian_steps(self, scale: float, count: int) -> np.ndarray:
        self.log.append(("gaussian", scale, count))
        self.last = self.source.gaussian_steps(scale, count)
        return self.last

    def gumbel_argmax(self, scores: np.ndarray, scale: float) -> int:
        self.log.append(("gumbel", scale, len(scores)))
        return self.source.gumbel_argmax(scores, scale)


@pytest.fixture(scope="session")
def logged() -> Callable[..., tuple[Streams, Ledger, list[tuple]]]:
    """Streams and a ledger that write charges and draws, in their order, to one log."""

    def make(epsilon: float = 100.0, seed: int = 0) -> tuple[Streams, Ledger, list[tuple]]:
        log: list[tuple] = []
        streams = Streams.from_seed(seed)
        streams = Streams(noise=LoggedNoise(seed, log), sampling=streams.sampling, init=streams.init, seeded=True)
        return streams, LoggedLedger(Budget(epsilon, 1e-6), log), log

    return make


@pytest.fixture(scope="session", params=list(METHODS))
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def model(method: str) -> Model:
    """One seeded fit for all tests that only look at it."""
    return quick_fit(method)


@pytest.fixture(scope="session")
def saved(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / f"{model.method}.understudy"
    model.save(path)
    return path
