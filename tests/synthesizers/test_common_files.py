"""Of every method: a model file gives the model back, and holds no row."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from common_helpers import CANARY_ID, CANARY_WAGE, REAL, SCHEMA, SECRET, SEED, check_certificate

from understudy.synthesizers import model_file
from understudy.synthesizers.api import Model, load
from understudy.table.read import read_table


def test_a_model_comes_back_as_it_was(model: Model, saved: Path, tmp_path: Path):
    back = load(saved)
    assert (back.method, back.config, back.certificate) == (model.method, model.config, model.certificate)
    assert back.schema.digest() == model.schema.digest()
    assert back.rows == model.rows
    pd.testing.assert_frame_equal(back.sample(60, seed=2), model.sample(60, seed=2))
    assert all(finding.ok for finding in check_certificate(back))
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def contents(path: Path) -> bytes:
    """All bytes of a file, as they lie and unpacked."""
    with zipfile.ZipFile(path) as archive:
        return b"\0".join([path.read_bytes(), *(archive.read(name) for name in archive.namelist())])


def traces_of_rows(data: bytes) -> list[str]:
    """What of the private table can be found in some bytes."""
    traces = [text for text in (SECRET, CANARY_ID, "real-17", "note 17", str(CANARY_WAGE)) if text.encode() in data]
    traces += [kind for kind in ("<f4", "<f8", ">f4", ">f8") if np.array(CANARY_WAGE, dtype=kind).tobytes() in data]
    table = read_table(REAL, SCHEMA)
    for name in SCHEMA.modelled:
        codes = table.codes(name)
        for kind in {codes.dtype.str, "<i4", "<i8", "<f4", "<f8"}:
            # Twelve rows of a column side by side, anywhere in it, in any width.
            with np.errstate(invalid="ignore"):
                column = codes.astype(kind) if codes.dtype.kind != "f" or kind[1] == "f" else codes
            for first in range(0, len(codes) - 12, 12):
                window = column[first : first + 12]
                if len(np.unique(window)) > 2 and np.ascontiguousarray(window).tobytes() in data:
                    traces.append(f"{name} rows {first}")
    with np.errstate(invalid="ignore"):
        rows = np.stack([np.nan_to_num(table.codes(name)).astype(np.float64) for name in SCHEMA.modelled], axis=1)
    for kind in ("u1", "<u2", "<i4", "<i8", "<f4", "<f8"):
        with np.errstate(invalid="ignore"):
            if np.ascontiguousarray(rows[-1].astype(kind)).tobytes() in data:
                traces.append(f"the canary's row as {kind}")
    return traces


def test_no_row_and_no_seed_is_in_the_file(model: Model, saved: Path):
    data = contents(saved)
    assert b"Aachen" in data  # the schema is there, unpacked: the search works on readable bytes
    assert traces_of_rows(data) == []
    assert str(SEED).encode() not in data
    for size, order in ((4, "little"), (8, "little"), (4, "big"), (8, "big")):
        assert SEED.to_bytes(size, order) not in data


def test_a_planted_row_would_be_found(model: Model, tmp_path: Path):
    table = read_table(REAL, SCHEMA)
    rows = np.stack([np.nan_to_num(table.codes(name)).astype(np.float64) for name in SCHEMA.modelled], axis=1)
    for planted in (table.codes("age"), table.codes("wage"), table.codes("weight").astype(np.int32), rows):
        parts = model_file.Parts(
            method=model.method,
            config=model.config,
            facts=model.released.facts(),
            arrays=model.released.arrays() | {"planted": np.array(planted)},
            schema=model.schema,
            certificate=model.certificate,
        )
        model_file.write(tmp_path / "planted", parts)
        assert traces_of_rows(contents(tmp_path / "planted"))
