"""Images out again: .npz and folders that read as what was written, a grid to look at, and refusals."""

import io
import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table.frame import frame, write_frame
from understudy.table.image_files import grid
from understudy.table.read import read_table

GREY = Schema.loads("""
label: digit
columns:
  digit: {kind: categorical, values: [3, 1, 2]}
  image: {kind: image, height: 5, width: 4}
""")
COLOUR = Schema.loads("columns: {picture: {kind: image, height: 5, width: 4, channels: 3}}")
RICH = Schema.loads("""
label: kind
columns:
  key: {kind: id, prefix: p}
  kind: {kind: categorical, values: [a/b, "..", x], missing: true}
  age: {kind: integer, low: 0, high: 200, missing: true}
  seen: {kind: datetime, low: 2020-01-01, high: 2020-12-31, resolution: day}
  ill: {kind: boolean, missing: true}
  size: {kind: real, low: 0, high: 1, missing: true}
  scan: {kind: image, height: 5, width: 4}
""")


def codes_of(schema, rows=12):
    rng = np.random.default_rng(0)
    made = {name: rng.integers(0, 256, (rows, image.pixels)).astype(np.uint8) for name, image in schema.images.items()}
    for name, column in schema.modelled.items():
        if column.kind == "real":
            made[name] = np.append(rng.random(rows - 1), np.nan).astype(np.float32)
        else:
            made[name] = rng.integers(0, 3 if column.kind != "boolean" else 2, rows).astype(np.uint16)
    if schema is RICH:
        made["kind"][0], made["age"][1], made["ill"][2] = 3, 201, 2
    return made


@pytest.mark.parametrize("schema", [GREY, COLOUR, RICH], ids=["grey", "colour", "rich"])
@pytest.mark.parametrize("name", ["t.npz", "folder/"])
def test_round_trips(tmp_path, schema, name):
    codes = codes_of(schema)
    write_frame(frame(schema, codes), schema, f"{tmp_path}/{name}")
    again = read_table(f"{tmp_path}/{name}", schema)
    # Class folders are read class by class: compare rows in the order of their pixels.
    image = next(iter(schema.images))
    order, found = (np.lexsort(pixels.T) for pixels in (codes[image], again.codes(image)))
    for column in codes:
        np.testing.assert_array_equal(again.codes(column)[found], codes[column][order])
    assert sorted(os.listdir(tmp_path)) == [name.rstrip("/")]


def test_arrays_are_named_like_the_columns(tmp_path):
    write_frame(frame(GREY, codes_of(GREY)), GREY, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == ["digit", "image"]
        assert arrays["image"].shape == (12, 5, 4)
        assert set(arrays["digit"].tolist()) <= {1, 2, 3}


def test_columns_may_have_the_names_of_arguments(tmp_path):
    text = "rows: 9\ncolumns: {file: {kind: image, height: 5, width: 4}, allow_pickle: {kind: boolean}}"
    schema = Schema.loads(text)
    codes = codes_of(schema)
    write_frame(frame(schema, codes), schema, tmp_path / "t.npz")
    again = read_table(tmp_path / "t.npz", schema)
    for column in codes:
        np.testing.assert_array_equal(again.codes(column), codes[column])


def test_class_folders(tmp_path):
    (tmp_path / "out").mkdir()
    codes = codes_of(GREY)
    write_frame(frame(GREY, codes), GREY, tmp_path / "out")  # an empty folder that is there
    assert sorted(os.listdir(tmp_path / "out")) == ["1", "2", "3"]
    assert len(list((tmp_path / "out").rglob("*.png"))) == 12
    with pytest.raises(DataError, match="new or empty"):
        write_frame(frame(GREY, codes), GREY, tmp_path / "out")


def test_labels_that_are_no_names_of_folders_go_into_a_list(tmp_path):
    write_frame(frame(RICH, codes_of(RICH)), RICH, f"{tmp_path}/out/")
    assert (tmp_path / "out" / "labels.csv").read_text().startswith('"file","key","kind"')
    assert sorted(os.listdir(tmp_path)) == ["out"]


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(image):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("understudy.table.image_files.png_bytes", full)
    with pytest.raises(DataError, match="No space left"):
        write_frame(frame(GREY, codes_of(GREY)), GREY, f"{tmp_path}/out/")
    assert os.listdir(tmp_path) == []
    with pytest.raises(DataError, match="make it first"):
        write_frame(frame(GREY, codes_of(GREY)), GREY, f"{tmp_path}/none/out/")


def test_a_grid_has_a_row_a_class(tmp_path):
    codes = codes_of(GREY, rows=40)
    codes["digit"] = np.repeat([0, 2], [25, 15])
    write_frame(frame(GREY, codes), GREY, tmp_path / "t.png")
    sheet = np.asarray(Image.open(io.BytesIO((tmp_path / "t.png").read_bytes())))
    scale = 11  # of 5 pixels, about 56
    assert sheet.shape == (2 * (5 * scale + 1) + 1, 10 * (4 * scale + 1) + 1)  # the class without images has no row
    assert (sheet[0] == 255).all()
    first = codes["image"][0].reshape(5, 4)
    np.testing.assert_array_equal(sheet[1 : 5 * scale + 1 : scale, 1 : 4 * scale + 1 : scale], first)
    second = codes["image"][25].reshape(5, 4)
    below = sheet[5 * scale + 2 :]
    np.testing.assert_array_equal(below[: 5 * scale : scale, 1 : 4 * scale + 1 : scale], second)


def test_a_grid_without_labels_is_square(tmp_path):
    write_frame(frame(COLOUR, codes_of(COLOUR, rows=8)), COLOUR, tmp_path / "t.png")
    with Image.open(tmp_path / "t.png") as sheet:
        assert sheet.mode == "RGB"
    assert grid(np.zeros((9, 60, 60), np.uint8), None).shape == (184, 184)
    assert grid(np.zeros((1000, 60, 60), np.uint8), None).shape == (611, 611)
    assert grid(np.zeros((1, 60, 60), np.uint8), None).shape == (62, 62)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.xlsx", "t"])
def test_flat_files_are_refused(tmp_path, name):
    with pytest.raises(DataError, match=r"column 'image'.*\.npz"):
        write_frame(frame(GREY, codes_of(GREY)), GREY, tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_frames_that_do_not_fit(tmp_path):
    made = frame(GREY, codes_of(GREY))
    with pytest.raises(DataError, match="no image column"):
        write_frame(made[["digit"]], GREY, tmp_path / "t.npz")
    made.at[0, "image"] = np.zeros((3, 3), dtype=np.uint8)
    with pytest.raises(DataError, match="1 cells of another size"):
        write_frame(made, GREY, tmp_path / "t.npz")
    flat = Schema.loads("columns: {a: {kind: boolean}}")
    with pytest.raises(DataError, match=r"\.parquet"):
        write_frame(pd.DataFrame({"a": [True]}), flat, tmp_path / "t.npz")
    assert os.listdir(tmp_path) == []
