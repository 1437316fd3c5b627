"""Images from .npz files, folders of PNG files and frames; whatever is wrong with them is told without a name."""

import io
import os
import traceback
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from understudy.errors import DataError
from understudy.schema import Schema
from understudy.table import image_sources, storage
from understudy.table.check import check_table, write_offending
from understudy.table.frame import frame
from understudy.table.read import read_table
from understudy.table.table import Table

GREY = Schema.loads("""
rows: 100
label: digit
columns:
  digit: {kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
  image: {kind: image, height: 8, width: 8}
""")
COLOUR = Schema.loads("""
label: kind
columns:
  kind: {kind: categorical, values: [cat, dog]}
  picture: {kind: image, height: 4, width: 6, channels: 3}
""")
ALONE = Schema.loads("columns: {image: {kind: image, height: 4, width: 6}}")
ALONE_COLOUR = Schema.loads("columns: {image: {kind: image, height: 4, width: 6, channels: 3}}")
SECRET = "Jane-Doe-1970"


def digits(count=60):
    data = load_digits()
    return (data.images[:count] * 15).astype(np.uint8), data.target[:count]


def noise(count, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape)).astype(np.uint8)


def write_pngs(folder, images, names=None):
    folder.mkdir(parents=True, exist_ok=True)
    for at, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{names[at] if names else f'{at:04d}'}.png")


def refusal(call):
    """The error's message; nothing in the whole chain of errors may hold a file's name."""
    with pytest.raises(DataError) as caught:
        call()
    told = "".join(traceback.format_exception(caught.value)).replace("test_images_read", "")
    assert SECRET not in told
    return str(caught.value)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("names", [("images", "labels"), ("image", "digit"), ("images", "digit")])
def test_npz(tmp_path, save, names):
    images, labels = digits()
    save(tmp_path / "t.npz", **dict(zip(names, (images, labels), strict=True)))
    table = read_table(tmp_path / "t.npz", GREY)
    assert table.rows == 60
    np.testing.assert_array_equal(table.codes("image"), images.reshape(60, 64))
    np.testing.assert_array_equal(table.codes("digit"), labels)
    assert table.codes("image").dtype == np.uint8
    with pytest.raises(ValueError, match="read-only"):
        table.codes("image")[0, 0] = 1


@pytest.mark.parametrize("spill", [0, 1000, 1 << 30])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_in_blocks_and_spilled(tmp_path, spill, order, monkeypatch):
    monkeypatch.setattr(image_sources, "CELLS_PER_BLOCK", 7 * 72)
    monkeypatch.setattr(storage, "SLAB_BYTES", 5 * 72)
    images = noise(40, 4, 6, 3)
    kinds = np.array(["cat", "dog"] * 20)
    np.savez(tmp_path / "t.npz", images=np.asarray(images, order=order), labels=kinds)
    table = read_table(tmp_path / "t.npz", COLOUR, spill_bytes=spill)
    np.testing.assert_array_equal(table.codes("picture"), images.reshape(40, 72))
    np.testing.assert_array_equal(table.codes("kind"), np.arange(40) % 2)
    blocks = list(table.blocks(16))
    assert [block["picture"].shape for block in blocks] == [(16, 72), (16, 72), (8, 72)]


def test_unlabelled_npz_has_rows(tmp_path):
    np.savez(tmp_path / "t.npz", images=noise(1, 4, 6))
    assert read_table(tmp_path / "t.npz", ALONE).rows == 1
    np.savez(tmp_path / "t.npz", images=noise(5, 4, 6, 1))
    assert read_table(tmp_path / "t.npz", ALONE).codes("image").shape == (5, 24)


def test_further_columns_of_an_npz(tmp_path):
    schema = Schema.loads("""
    columns:
      image: {kind: image, height: 4, width: 6}
      age: {kind: integer, low: 0, high: 100}
      key: {kind: id}
    """)
    np.savez(tmp_path / "t.npz", image=noise(3, 4, 6), age=np.array([1, 2, 3], dtype=">i8"))
    assert read_table(tmp_path / "t.npz", schema).codes("age").tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"images": noise(3, 8, 8), "labels": np.array([0, "a", None], dtype=object)}, "pickled objects"),
        ({"images": noise(3, 8, 8).astype(object), "labels": [0, 1, 2]}, "pickled objects"),
        ({"images": noise(3, 8, 8) / 255, "labels": [0, 1, 2]}, "uint8, got float64"),
        ({"images": noise(3, 64), "labels": [0, 1, 2]}, "n x height x width"),
        ({"images": noise(3, 8, 8, 4), "labels": [0, 1, 2]}, "n x height x width"),
        ({"images": noise(3, 8, 8), "labels": [0, 1]}, "their lengths differ"),
        ({"images": noise(3, 8, 8), "labels": [[0], [1], [2]]}, "one dimension"),
        ({"images": noise(3, 8, 8), "labels": np.zeros(3, dtype=complex)}, "must hold numbers"),
        ({"images": noise(3, 8, 8), "labels": [0, 1, 77]}, r"1 cell not among the declared values \(row 3\)"),
        ({"images": noise(3, 8, 8)}, "'digit' are in the schema|not in the table"),
        ({"images": noise(3, 8, 8), "labels": [0, 1, 2], "age": [1, 2, 3]}, "'age' are not in the schema"),
        ({"images": noise(3, 8, 9), "labels": [0, 1, 2]}, r"3 cells of another size.*resize.*\(rows 1, 2, 3\)"),
        ({"images": noise(3, 8, 8, 3), "labels": [0, 1, 2]}, "3 cells in colour.*channels: 3"),
        ({"images": noise(0, 8, 8), "labels": np.zeros(0, dtype=int)}, "empty"),
        ({"labels": [0, 1, 2]}, "of kind image, and this table has none"),
    ],
)
def test_npz_files_that_are_refused(tmp_path, arrays, said):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(DataError, match=said):
        read_table(tmp_path / "t.npz", GREY)


def test_damaged_npz_files(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, images=noise(30, 8, 8), labels=np.zeros(30, dtype=int))
    whole = path.read_bytes()
    for damaged in (whole[:200], whole[:-30], b"PK" + bytes(100), b"", b"a,b\n1,2\n"):
        path.write_bytes(damaged)
        assert "write it again" in refusal(lambda: read_table(path, GREY))
    at = whole.index(b"\x93NUMPY") + 300
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])  # a pixel that the checksum misses
    assert "damaged" in refusal(lambda: read_table(path, GREY))


def test_a_lying_header_allocates_nothing(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (10**15, 4, 6)})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue())
    assert "damaged" in refusal(lambda: read_table(tmp_path / "t.npz", ALONE))


def test_class_folders(tmp_path):
    images = noise(6, 4, 6, 3)
    write_pngs(tmp_path / "t" / "cat", images[:2])
    write_pngs(tmp_path / "t" / "dog", images[2:])
    (tmp_path / "t" / ".DS_Store").write_text("hidden")
    table = read_table(tmp_path / "t", COLOUR)
    assert table.codes("kind").tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(table.codes("picture"), images.reshape(6, 72))


def test_a_folder_without_classes(tmp_path):
    images = noise(3, 4, 6)
    write_pngs(tmp_path / "t", images)
    table = read_table(str(tmp_path / "t"), ALONE)
    np.testing.assert_array_equal(table.codes("image"), images.reshape(3, 24))
    np.testing.assert_array_equal(
        read_table(tmp_path / "t", ALONE_COLOUR).codes("image"), np.repeat(images.reshape(3, 24), 3, axis=1)
    )


def test_a_list_of_labels(tmp_path):
    images = noise(3, 4, 6, 3)
    write_pngs(tmp_path, images[:2], ["b", "a"])
    write_pngs(tmp_path / "more", images[2:], ["c"])
    (tmp_path / "labels.csv").write_text("kind;file\ndog;more/c.png\ncat;a.png\ncat;b.png\n")
    table = read_table(tmp_path, COLOUR)
    assert table.codes("kind").tolist() == [1, 0, 0]
    np.testing.assert_array_equal(table.codes("picture"), images[[2, 1, 0]].reshape(3, 72))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"file,kind\n{SECRET}.png,cat\n", "1 PNG files of the folder are not in the list"),
        (f"file,kind\n{SECRET}.png,cat\na.png,dog\na.png,dog\n", "1 rows name a file again"),
        ('file,kind\n"a.png",cat\n" a.png",dog\n', "1 rows name a file again"),
        (f"file,kind\n{SECRET}.png,cat\na.png,dog\n../{SECRET}.png,dog\n", "the first is row 3"),
        (f"file,kind\n{SECRET}.png,cat\na.png,dog,1\n", "another number of fields"),
        (f"name,kind\n{SECRET}.png,cat\n", "must have a column 'file'"),
        ("file,kind\n", "not in the list"),
        (f"file,kind\n{SECRET}.png,{SECRET}\na.png,dog\n", r"not among the declared values \(row 1\)"),
    ],
)
def test_lists_that_are_refused(tmp_path, text, said):
    write_pngs(tmp_path, noise(2, 4, 6, 3), [SECRET, "a"])
    (tmp_path / "labels.csv").write_text(text)
    assert said.replace("\\", "") in refusal(lambda: read_table(tmp_path, COLOUR))


def test_folders_that_are_refused(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    assert "holds no PNG" in refusal(lambda: read_table(folder, ALONE))
    write_pngs(folder, noise(2, 4, 6), [SECRET, "b"])
    assert "it is a directory" in refusal(lambda: read_table(folder, Schema.loads("columns: {a: {kind: boolean}}")))
    (folder / f"{SECRET}.jpg").write_bytes(b"x")
    assert "1 files of the folder are not PNG" in refusal(lambda: read_table(folder, ALONE))
    (folder / f"{SECRET}.jpg").unlink()
    os.mkfifo(folder / f"{SECRET}2.png")  # opening it would wait for ever
    assert "1 files of the folder are not PNG" in refusal(lambda: read_table(folder, ALONE))
    (folder / f"{SECRET}2.png").unlink()
    write_pngs(folder / SECRET, noise(1, 4, 6))
    assert "both in the folder and in its sub-folders" in refusal(lambda: read_table(folder, ALONE))
    classes = tmp_path / "classes"
    write_pngs(classes / SECRET, noise(1, 4, 6))
    assert "declare a categorical column" in refusal(lambda: read_table(classes, ALONE))
    assert "not among the declared values (row 1)" in refusal(lambda: read_table(classes, COLOUR))
    write_pngs(classes / SECRET / "deeper", noise(1, 4, 6))
    assert "sub-folders" in refusal(lambda: read_table(classes, COLOUR))


def test_images_that_do_not_fit_are_counted(tmp_path):
    folder = tmp_path / "t"
    write_pngs(folder, noise(2, 4, 6), ["a", "b"])
    write_pngs(folder, noise(2, 9, 9), ["c", f"{SECRET}"])
    write_pngs(folder, noise(1, 4, 6, 3), ["d"])
    whole = (folder / "a.png").read_bytes()
    (folder / "e.png").write_bytes(whole[: len(whole) // 2])
    (folder / "f.png").write_bytes(b"GIF89a no image")
    (folder / "g.png").write_bytes(whole[:8])
    said = refusal(lambda: read_table(folder, ALONE))
    assert "2 cells of another size than the declared 4 x 6 pixels" in said
    assert "(rows 1, 4)" in said
    assert "1 cell in colour" in said
    assert "3 cells that cannot be read as an image" in said
    result = check_table(folder, ALONE)
    assert not result.fits
    assert len(result.lines()) == 3
    # The steward's own list, and no other place, has the names.
    assert write_offending(folder, ALONE, tmp_path / "cells.csv") == 6
    assert f"{SECRET}.png: 9 x 9" in (tmp_path / "cells.csv").read_text()


def test_huge_images_are_not_opened(tmp_path, monkeypatch):
    Image.new("L", (5000, 5000)).save(tmp_path / "a.png")
    monkeypatch.setattr("understudy.table.png._decoded", lambda data: pytest.fail("it was opened"))
    assert "1 cell of another size" in refusal(lambda: read_table(tmp_path, ALONE))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("1", 255), ("L", 200), ("P", 200), ("LA", 145 + 82), ("RGBA", 145 + 82), ("I;16", 200), ("RGB", 200)],
)
def test_other_forms_of_png_follow_a_rule(tmp_path, mode, expected):
    value = {"LA": (200, 128), "RGBA": (200, 200, 200, 128), "RGB": (200, 200, 200), "I;16": 200 * 256 + 7}
    image = Image.new("L" if mode == "P" else mode, (6, 4), value.get(mode, 200))
    if mode == "P":
        image = image.convert("P")
    image.save(tmp_path / "a.png")
    codes = read_table(tmp_path, ALONE).codes("image")
    assert codes.min() == codes.max()
    assert abs(int(codes[0, 0]) - expected) <= 1


def test_one_image_never_changes_another(tmp_path):
    write_pngs(tmp_path, noise(3, 4, 6), ["a", "b", "c"])
    before = read_table(tmp_path, ALONE).codes("image")
    Image.new("RGBA", (6, 4), (9, 9, 9, 0)).save(tmp_path / "b.png")
    after = read_table(tmp_path, ALONE).codes("image")
    np.testing.assert_array_equal(after[[0, 2]], before[[0, 2]])
    assert set(after[1]) == {255}  # what is transparent lies on white


def test_frames_round_trip():
    images, labels = digits(20)
    codes = {"image": images.reshape(20, 64), "digit": labels}
    made = frame(GREY, codes)
    assert made["image"][3].shape == (8, 8)
    np.testing.assert_array_equal(made["image"][3], images[3])
    again = read_table(made, GREY)
    for name in codes:
        np.testing.assert_array_equal(again.codes(name), codes[name])
    colour = frame(COLOUR, {"picture": noise(2, 72), "kind": np.array([0, 1])})
    assert colour["picture"][1].shape == (4, 6, 3)
    np.testing.assert_array_equal(read_table(colour, COLOUR).codes("picture"), noise(2, 72))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (None, "that cannot be read as an image"),
        (SECRET, "that cannot be read as an image"),
        (np.zeros((8, 8)), "that cannot be read as an image"),
        (np.zeros((8, 7), dtype=np.uint8), "of another size"),
        (noise(1, 8, 8, 3)[0], "in colour"),
    ],
)
def test_frames_that_are_refused(cell, said):
    images, labels = digits(3)
    rows = pd.DataFrame({"image": [*images[:2], cell], "digit": labels})
    told = refusal(lambda: read_table(rows, GREY))
    assert f"1 cell {said}" in told
    assert "(row 3)" in told


def test_a_flat_table_has_no_images(tmp_path):
    (tmp_path / "t.csv").write_text("digit,image\n1,a.png\n")
    assert "of kind image" in refusal(lambda: read_table(tmp_path / "t.csv", GREY))
    np.savez(tmp_path / "t.npz", images=noise(1, 4, 6), a=[True])
    flat = "columns: {a: {kind: boolean}%s}"
    assert "need a column of kind image" in refusal(lambda: read_table(tmp_path / "t.npz", Schema.loads(flat % "")))
    left_out = Schema.loads(flat % ", images: {kind: text}")
    assert read_table(tmp_path / "t.npz", left_out).codes("a").tolist() == [1]


def test_tables_from_codes():
    images, labels = digits(5)
    given = {"image": images.reshape(5, 64), "digit": labels}
    table = Table.from_codes(GREY, given)
    assert table.rows == 5
    assert Table.from_codes(ALONE, {"image": noise(4, 24)}).rows == 4
    assert "8 x 8 pixels, grey" in table._repr_html_()
    for wrong in (images, images.reshape(5, 64).astype(int), images.reshape(5, 64)[:, :60], images.reshape(5, 64)[:4]):
        with pytest.raises(DataError, match=r"column 'image'|same length"):
            Table.from_codes(GREY, given | {"image": wrong})
    with pytest.raises(DataError, match="digit, image"):
        Table.from_codes(GREY, {"digit": labels})
