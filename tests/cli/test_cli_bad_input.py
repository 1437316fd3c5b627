"""Whatever is wrong, a clear line, the right exit code, no half-written file and no private value.

The `run` fixture scans everything that reaches the screen for the planted secret.
"""

import errno
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cli_helpers import HEADER, ROW, SCHEMA, SECRET, left_over, tiny_rows
from typer.testing import Result

from understudy.errors import DataError

Run = Callable[..., Result]

# What is in the file, and words of the message that must come of it (None: the fit goes through).
TABLES: dict[str, tuple[str | bytes, str | None]] = {
    "nothing at all": ("", "empty"),
    "a header alone": (f"{HEADER}\n", "empty"),
    "one row": (f"{HEADER}\n{ROW}\n", None),
    "semicolons": (tiny_rows(20).replace(",", ";"), None),
    "a delimiter that nobody uses": (tiny_rows(20).replace(",", "^"), "columns are not in the table"),
    "no header": (f"{ROW}\n{ROW}\n", "no header line"),
    "a column twice": (f"{HEADER},age\n{ROW},{SECRET}\n", "unique"),
    "an unknown column": (f"{HEADER},extra\n{ROW},{SECRET}\n", "'extra'"),
    "a column too few": ("person,age,town,weight,joined,ill\n1,40,Alm,70,2021-01-01,true\n", None),
    "a modelled column too few": ("person,age,town,weight,joined\n1,40,Alm,70,2021-01-01\n", "'ill'"),
    "an undeclared category": (f"{HEADER}\n{ROW.replace('Alm', SECRET)}\n", "'town': 1 cell not among"),
    "text in a number": (f"{HEADER}\n{ROW.replace(',40,', f',{SECRET},')}\n", "'age': 1 cell not a number"),
    "digits and text": (f"{HEADER}\n{ROW.replace(',40,', f',40{SECRET},')}\n", "'age': 1 cell not a number"),
    "a fraction in an integer": (f"{HEADER}\n{ROW.replace(',40,', ',40.5,')}\n", "not a whole number"),
    "infinity": (f"{HEADER}\n{ROW.replace('70.5', '-inf')}\n", "'weight': 1 cell infinite"),
    "NaN where it may be missing": (f"{HEADER}\n{ROW.replace('70.5', 'NaN')}\n", None),
    "NaN where it may not": (f"{HEADER}\n{ROW.replace(',40,', ',NaN,')}\n", "'age': 1 cell missing"),
    "a date out of the span": (f"{HEADER}\n{ROW.replace('2021', '1987')}\n", None),
    "no date": (f"{HEADER}\n{ROW.replace('2021-03-04', SECRET)}\n", "'joined': 1 cell not a date"),
    "a word for a boolean": (f"{HEADER}\n{ROW.replace('true', SECRET)}\n", "'ill': 1 cell neither"),
    "a ragged row": (f"{HEADER}\n{ROW},{SECRET}\n{ROW}\n", "another number of fields"),
    "an open quote": (f'{HEADER}\n{ROW}\n1,40,"{SECRET},70,2021-01-01,true,x\n{ROW}\n', "quote"),
    "bytes that are no text": (f"{HEADER}\n{ROW}\n".encode().replace(b"Alm", b"\xff\x01" + SECRET.encode()), "UTF-8"),
    "bytes of another kind": (HEADER.encode() + b"\n\xff\xfe\x00\x01" + SECRET.encode(), "UTF-8"),
    "a spreadsheet": (b"PK\x03\x04" + SECRET.encode(), "Excel"),
    "a cut Parquet file": (b"PAR1" + SECRET.encode(), "Parquet"),
}


@pytest.mark.parametrize("what", TABLES)
def test_odd_tables(run: Run, here: SimpleNamespace, what: str) -> None:
    content, words = TABLES[what]
    here.table.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    if words is None:
        assert result.exit_code == 0, result.stderr
        return
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert left_over(here.folder) == {"table.csv", "schema.yaml"}
    # `check` looks at the same table: it cannot be read, or the answer is no.
    assert run("check", here.table, "-s", here.schema).exit_code in (1, 2)


def test_mixed_types_in_parquet(run: Run, here: SimpleNamespace) -> None:
    table = here.folder / "table.parquet"
    frame = pd.read_csv(here.table)
    frame["age"] = frame["age"].astype(str).where(frame.index != 3, SECRET)
    frame.to_parquet(table)
    result = run("fit", table, "-s", here.schema, "-m", "independent", "-o", here.model)
    assert (result.exit_code, "'age': 1 cell not a number (row 4)" in result.stderr) == (2, True)


def test_missing_and_unreadable_files(run: Run, here: SimpleNamespace) -> None:
    rest = ("-s", here.schema, "-m", "independent", "-o", here.model)
    missing = run("fit", here.folder / "none.csv", *rest)
    assert (missing.exit_code, "no such file" in missing.stderr) == (2, True)
    folder = run("fit", here.folder, *rest)
    assert (folder.exit_code, "directory" in folder.stderr) == (2, True)
    no_schema = run("fit", here.table, "-s", here.folder / "none.yaml", "-o", here.model)
    assert (no_schema.exit_code, "understudy draft" in no_schema.stderr) == (2, True)
    no_model = run("verify", here.model)
    assert (no_model.exit_code, "no such file" in no_model.stderr) == (2, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("low: 0, high: 99", "low: 99, high: 0"), "low=99 must be below high=0"),
        (("kind: boolean", "kind: bolean"), "kind must be one of"),
        (("low: 30", "lowest: 30"), "did you mean 'low'"),
        (("rows: 400\n", ""), "declare `rows:`"),
        (("{kind: boolean}", "{kind: boolean, source: data}"), "understudy confirm"),
        (("age:", "height:"), "'height'"),
        (("columns:", "columns: ["), "not valid YAML"),
    ],
)
def test_odd_schemas(run: Run, here: SimpleNamespace, change: tuple[str, str], words: str) -> None:
    here.schema.write_text(SCHEMA.replace(*change))
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert not here.model.exists()


def test_a_schema_for_another_table(run: Run, here: SimpleNamespace) -> None:
    here.schema.write_text("rows: 9\ncolumns: {size: {kind: boolean}, hue: {kind: boolean}}\n")
    for arguments in (
        ("fit", here.table, "-o", here.model),
        ("check", here.table),
        ("evaluate", here.table, here.table),
    ):
        result = run(*arguments, "-s", here.schema)
        assert result.exit_code == 2
        assert "'size'" in result.stderr


def test_the_table_in_place_of_the_schema(run: Run, here: SimpleNamespace) -> None:
    result = run("fit", here.table, "-s", here.table, "-o", here.model)
    assert result.exit_code == 2
    assert not here.model.exists()


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "much"])
def test_epsilon_must_be_above_zero(run: Run, here: SimpleNamespace, epsilon: str) -> None:
    for arguments in (("fit", here.table, "-o", here.model), ("plan",)):
        result = run(*arguments, "-s", here.schema, "-e", epsilon)
        assert result.exit_code == 2
        assert "epsilon" in result.stderr
    assert not here.model.exists()


def test_a_large_delta_is_a_warning_and_an_impossible_one_an_error(run: Run, here: SimpleNamespace) -> None:
    base = ("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    for delta in ("0", "1", "-0.5"):
        assert run(*base, "-d", delta).exit_code == 2
    assert not here.model.exists()
    warned = run(*base, "-d", "0.01")
    assert warned.exit_code == 0
    assert "warning: delta 0.01 is not below one over" in warned.stderr
    assert "warning" not in run(*base, "-d", "1e-5").stderr


def test_an_unknown_method_is_answered_with_the_nearest(run: Run, here: SimpleNamespace) -> None:
    result = run("fit", here.table, "-s", here.schema, "-m", "mixtrue", "-o", here.model)
    assert (result.exit_code, "'mixture'" in result.stderr) == (2, True)


def rewritten(source: Path, target: Path, change: Callable[[str, bytes], bytes]) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


def test_truncated_and_foreign_model_files(run: Run, made: SimpleNamespace, tmp_path) -> None:
    whole = made.fresh.read_bytes()
    for number, content in enumerate((b"", b"PK", whole[: len(whole) // 2], whole[:-10], b"rows: 3\n")):
        broken = tmp_path / f"{number}.understudy"
        broken.write_bytes(content)
        for arguments in (("verify", broken), ("inspect", broken), ("sample", broken, "-o", tmp_path / "rows.csv")):
            result = run(*arguments)
            assert (result.exit_code, "understudy" in result.stderr) == (2, True), (number, result.stderr)
    assert not (tmp_path / "rows.csv").exists()
    odd = rewritten(made.fresh, tmp_path / "odd.understudy", lambda n, c: b"{}" if n == "model.json" else c)
    assert run("verify", odd).exit_code == 2


def _less_epsilon(name: str, content: bytes) -> bytes:
    if name != "certificate.json":
        return content
    certificate = json.loads(content)
    return json.dumps(certificate | {"epsilon": certificate["epsilon"] / 2, "analytic": None, "pld": None}).encode()


def _other_array(name: str, content: bytes) -> bytes:
    if name != "arrays.safetensors":
        return content
    return content[:-1] + bytes([content[-1] ^ 1])


def _other_schema(name: str, content: bytes) -> bytes:
    return content.replace(b"high: 99", b"high: 98") if name == "schema.yaml" else content


def _other_rows(name: str, content: bytes) -> bytes:
    return json.dumps(json.loads(content) | {"facts": {"rows": 12345}}).encode() if name == "model.json" else content


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_less_epsilon, "epsilon"),
        (_other_array, "released arrays"),
        (_other_schema, "schema"),
        (_other_rows, "released arrays"),
    ],
)
def test_tampering_shows(run: Run, made: SimpleNamespace, tmp_path, change, what: str) -> None:
    odd = rewritten(made.fresh, tmp_path / "odd.understudy", change)
    result = run("verify", odd)
    assert result.exit_code == 1
    assert "does NOT hold" in result.stdout
    found = json.loads(run("verify", odd, "--json").stdout)["findings"]
    assert what in {finding["what"] for finding in found if not finding["ok"]}
    if what != "epsilon":  # which only accounting can tell, and no row that is drawn depends on it
        drawn = run("sample", odd, "-o", tmp_path / "rows.csv")
        assert (drawn.exit_code, "altered after it was made" in " ".join(drawn.stderr.split())) == (2, True)
        assert not (tmp_path / "rows.csv").exists()


def test_outputs_are_refused_before_any_work(run: Run, here: SimpleNamespace, made: SimpleNamespace) -> None:
    for place, words in (
        (here.folder / "none" / "m.understudy", "folder does not exist"),
        (here.folder, "not a plain file"),
        (Path("/dev/full"), "not a plain file"),
        (Path("/dev/null"), "not a plain file"),
    ):
        for arguments in (
            ("fit", here.table, "-s", here.schema),
            ("sample", made.fresh),
            ("draft", here.table),
            ("check", here.table, "-s", here.schema),
        ):
            result = run(*arguments, "-o", place)
            assert (result.exit_code, words in result.stderr) == (2, True), (arguments, place)
            assert "reading" not in result.stderr
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError(f"bad cell {SECRET}"), "ValueError in understudy/synthesizers/api.py, line"),
        (MemoryError(SECRET), "not enough memory"),
        (OSError(errno.ENOSPC, SECRET), "disk is full"),
        (OSError(errno.EIO, "Input/output error", SECRET), "Input/output error"),
        (KeyError(SECRET), "KeyError"),
    ],
)
def test_unexpected_errors_tell_no_values(run: Run, here: SimpleNamespace, monkeypatch, error, words: str) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("understudy.synthesizers.api.read_table", fail)
    result = run("fit", here.table, "-s", here.schema, "-o", here.model)
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback_after_a_warning(run: Run, here: SimpleNamespace, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr("understudy.synthesizers.api.read_table", fail)
    arguments = ("fit", here.table, "-s", here.schema, "-o", here.model)
    result = run("--debug", *arguments, shows_values=True)
    assert result.exit_code == 2
    assert result.stderr.index("may show private values") < result.stderr.index("Traceback")
    assert "Traceback" not in run(*arguments).stderr  # the option does not stick


def test_warnings_of_other_libraries_are_not_shown(run: Run, here: SimpleNamespace, monkeypatch) -> None:
    import warnings

    import understudy.synthesizers.api as api

    read = api.read_table

    def noisy(*arguments: object) -> object:
        np.float64(1) / np.zeros(1)
        warnings.warn_explicit(f"cell {SECRET}", UserWarning, "elsewhere/lib.py", 1)
        return read(*arguments)

    monkeypatch.setattr(api, "read_table", noisy)
    result = run("fit", here.table, "-s", here.schema, "-m", "independent", "-o", here.model)
    assert result.exit_code == 0
    assert "warning" not in result.stderr


def test_exceptions_that_python_ignores_are_not_printed(run: Run, here: SimpleNamespace, monkeypatch) -> None:
    class Stray:
        def __del__(self) -> None:
            raise ValueError(SECRET)

    def fail(*_: object) -> None:
        Stray()
        raise DataError("enough")

    monkeypatch.setattr("understudy.synthesizers.api.read_table", fail)
    before = sys.unraisablehook
    result = run("fit", here.table, "-s", here.schema, "-o", here.model)
    assert (result.exit_code, "ValueError" in result.stderr) == (2, False)
    assert sys.unraisablehook is before


def test_wrong_use_is_exit_code_two(run: Run) -> None:
    for arguments in (("fit",), ("nothing",), ("sample", "--rows"), ("verify", "--no-such-option")):
        assert run(*arguments).exit_code == 2
