"""Finished cells survive, are found again under the same circumstances alone, and are never lost to another table."""

import dataclasses
import json
import math
import stat

import pytest
from comparison_helpers import cell

from understudy.comparison.grid import FAILED, REFUSED, STOPPED, Cell, Job
from understudy.comparison.state import open_state
from understudy.errors import OptionError

JOB = Job(
    method="a",
    epsilon=1.0,
    delta=1e-6,
    repeat=0,
    options=(("steps", 5),),
    seed=None,
    which="fast",
    table="t",
    schema="s",
    version="1",
)


def test_cells_come_back_as_they_were(tmp_path) -> None:
    path = tmp_path / "compare.cells.jsonl"
    endless = dataclasses.replace(JOB, epsilon=math.inf)
    kept = open_state(path, ["table"], "s")
    kept.keep(JOB, cell("a", 1.0, 0.1))
    kept.keep(endless, cell("a", math.inf, 0.1))
    again = open_state(path, ["table"], "s")
    assert again.had(JOB, None) == cell("a", 1.0, 0.1)
    assert again.had(endless, None).spent == math.inf
    assert again.coins == kept.coins
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "for the data steward alone" in json.loads(path.read_text().splitlines()[0])["note"]


@pytest.mark.parametrize(
    "change",
    [
        {"method": "b"},
        {"epsilon": 2.0},
        {"delta": 1e-7},
        {"repeat": 1},
        {"options": (("steps", 6),)},
        {"seed": 3},
        {"which": "full"},
        {"version": "2"},
        {"schema": "z"},
        {"table": "z"},
    ],
)
def test_whatever_decides_the_outcome_is_in_the_key(change) -> None:
    assert dataclasses.replace(JOB, **change).key() != JOB.key()
    assert dataclasses.replace(JOB).key() == JOB.key()


@pytest.mark.parametrize(("table", "schema"), [(["other"], "s"), (["table"], "z")])
def test_another_table_or_schema_is_refused_and_nothing_is_lost(tmp_path, table, schema) -> None:
    path = tmp_path / "state"
    open_state(path, ["table"], "s").keep(JOB, cell("a", 1.0, 0.1))
    before = path.read_bytes()
    with pytest.raises(OptionError, match="move it away"):
        open_state(path, table, schema)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "hello", "{}", '{"format": 2}', "[1]\n[2]\n"])
def test_files_of_other_kinds_are_refused_and_not_touched(tmp_path, text) -> None:
    path = tmp_path / "state"
    path.write_text(text)
    with pytest.raises(OptionError, match="move it away"):
        open_state(path, ["table"], "s")
    assert path.read_text() == text


def test_a_line_cut_short_costs_that_cell_alone(tmp_path) -> None:
    path = tmp_path / "state"
    kept = open_state(path, ["table"], "s")
    kept.keep(JOB, cell("a", 1.0, 0.1))
    second = dataclasses.replace(JOB, repeat=1)
    kept.keep(second, cell("a", 1.0, 0.2, 1))
    path.write_bytes(path.read_bytes()[:-40])
    again = open_state(path, ["table"], "s")
    assert again.had(JOB, None) is not None
    assert again.had(second, None) is None
    again.keep(second, cell("a", 1.0, 0.2, 1))
    assert open_state(path, ["table"], "s").had(second, None) == cell("a", 1.0, 0.2, 1)


def test_accidents_and_short_patience_are_tried_again_and_refusals_are_not() -> None:
    where = {"method": "a", "epsilon": 1.0, "repeat": 0}
    kept = open_state(None, ["table"], "s")
    kept.keep(JOB, Cell(**where, status=FAILED, message="killed"))
    assert kept.had(JOB, None) is None
    kept.keep(JOB, Cell(**where, status=REFUSED, message="no"))
    assert kept.had(JOB, None).message == "no"
    kept.keep(JOB, Cell(**where, status=STOPPED, message="late", limit=10.0))
    assert kept.had(JOB, 10.0) is not None
    assert kept.had(JOB, 20.0) is None
    assert kept.had(JOB, None) is None


def test_the_fingerprint_needs_the_salt() -> None:
    first, second = open_state(None, ["table"], "s"), open_state(None, ["table"], "s")
    assert first.fingerprint("table") == first.fingerprint("table") != first.fingerprint("other")
    assert first.fingerprint("table") != second.fingerprint("table")
