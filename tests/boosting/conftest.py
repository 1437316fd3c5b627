"""A tiny domain with every row of it, a pool, models made once, and copies of a module with a bug planted."""

import inspect
from collections.abc import Callable
from itertools import product
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from boosting_helpers import GAN, PEOPLE, TINY, people

from understudy.boosting.pool import Pool
from understudy.synthesizers.api import fit
from understudy.table.read import read_table
from understudy.table.table import Table


@pytest.fixture(scope="session")
def every_row() -> Table:
    """One row of every kind there is, outside of the domain as well, read like any private table."""
    kinds = product(("a", "zzz", None), (-7, 0, 2), (True, False), (-3.0, 0.5, 1e30, None))
    town, age, sick, wage = zip(*kinds, strict=True)
    frame = pd.DataFrame(
        {"town": pd.Series(town, dtype=object), "age": age, "sick": sick, "wage": pd.Series(wage, dtype=float)}
    )
    return read_table(frame, TINY)


@pytest.fixture(scope="session")
def take() -> Callable[[Table, list[int]], Table]:
    def pick_rows(table: Table, rows: list[int]) -> Table:
        return Table.from_codes(table.schema, {name: table.codes(name)[rows] for name in table.schema.modelled})

    return pick_rows


@pytest.fixture(scope="session")
def neighbours(every_row: Table, take: Callable[..., Table]) -> list[tuple[Table, list[Table]]]:
    """Small tables, the empty one among them, each with all tables that have one row more, wherever it is put."""
    bases = [[], [7], np.random.default_rng(0).integers(0, every_row.rows, 6).tolist(), [3, 3, 3]]
    return [
        (take(every_row, base), [take(every_row, [*base[:1], row, *base[1:]]) for row in range(every_row.rows)])
        for base in bases
    ]


@pytest.fixture(scope="session")
def tiny_pool(every_row: Table, take: Callable[..., Table]) -> Pool:
    """Any rows do as a pool: 60 of the domain, from two generators, with networks that were never trained."""
    rng = np.random.default_rng(1)
    table = take(every_row, rng.integers(0, every_row.rows, 60).tolist())
    groups = {"town": np.array([0, 1, 2, 3]), "age": np.arange(3), "sick": np.arange(2)}
    cells = Pool(TINY, {}, np.zeros(0), (), 1).cells["wage"].count
    groups["wage"] = np.minimum(np.arange(cells) // 200, 2)
    sizes = [(4 + 3 + 1 + 3, 5), (5, 1)]
    trajectory = {
        f"critic.{place}.{part}": rng.normal(size=(4, *(shape if part == "w" else shape[1:]))).astype(np.float32)
        for place, shape in enumerate(sizes)
        for part in ("w", "b")
    }
    released = SimpleNamespace(trajectory=trajectory, groups=groups)
    codes = {name: table.codes(name) for name in TINY.modelled}
    return Pool(TINY, codes, np.repeat([0, 1], 30).astype(np.int32), (released,), 5)


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    return people()


@pytest.fixture(scope="session")
def plain(rows: pd.DataFrame):
    """Independent columns, and nothing kept: the fastest model there is."""
    return fit(rows, PEOPLE, method="independent", epsilon=1.0)


@pytest.fixture(scope="session")
def gan(rows: pd.DataFrame):
    return fit(rows, PEOPLE, method="dp-wgan", epsilon=1.0, **GAN)


@pytest.fixture(scope="session")
def copy_of() -> Callable[..., ModuleType]:
    def copy_source(module: ModuleType, *changes: tuple[str, str]) -> ModuleType:
        text = inspect.getsource(module)
        for old, new in changes:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times: plant the bug anew"
            text = text.replace(old, new)
        copied = ModuleType(module.__name__)
        exec(compile(text, module.__file__, "exec"), copied.__dict__)
        return copied

    return copy_source
