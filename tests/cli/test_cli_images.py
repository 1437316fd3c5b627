"""Images through every command, with a made-up method in place of a real one."""

import os
from pathlib import Path
from types import SimpleNamespace

import image_method
import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from understudy.comparison.runs import _table_facts
from understudy.comparison.tables import split_rows
from understudy.comparison.worker import measure
from understudy.schema import Schema
from understudy.synthesizers import api
from understudy.table.read import read_table

SCHEMA = """\
rows: 300
label: label
columns:
  label: {kind: categorical, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
  image: {kind: image, height: 8, width: 8}
"""


@pytest.fixture(autouse=True)
def method(monkeypatch):
    monkeypatch.setitem(api.METHODS, image_method.NAME, "image_method")


@pytest.fixture
def there(tmp_path):
    data = load_digits()
    images = (data.images * 15).astype(np.uint8)
    np.savez(tmp_path / "images.npz", images=images[:300], labels=data.target[:300])
    np.savez(tmp_path / "held.npz", images=images[300:400], labels=data.target[300:400])
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    return SimpleNamespace(
        folder=tmp_path, table=tmp_path / "images.npz", held=tmp_path / "held.npz", schema=tmp_path / "schema.yaml"
    )


def fitted(run, there):
    model = there.folder / "m.understudy"
    said = run("fit", there.table, "-s", there.schema, "-m", image_method.NAME, "-e", 3, "-o", model)
    assert said.exit_code == 0, said.output
    assert "-o synthetic.npz" in said.output
    return model


def test_fit_and_sample(run, there):
    model = fitted(run, there)
    schema = Schema.load(there.schema)
    for output in ("out.npz", "pngs/"):
        said = run("sample", model, "-n", 40, "--seed", 1, "-o", f"{there.folder}/{output}")
        assert said.exit_code == 0, said.output
        assert read_table(f"{there.folder}/{output}", schema).rows == 40
    assert set(os.listdir(there.folder / "pngs")) <= set("0123456789")
    said = run("sample", model, "-n", 400, "-o", there.folder / "grid.png")
    assert said.exit_code == 0, said.output
    with Image.open(there.folder / "grid.png") as sheet:
        assert sheet.size == (10 * 57 + 1, 10 * 57 + 1)


@pytest.mark.parametrize("output", ["out.csv", "out.parquet", "pngs/", "nowhere/pngs/", "out"])
def test_outputs_that_are_refused(run, there, output):
    model = fitted(run, there)
    (there.folder / "pngs").mkdir()
    (there.folder / "pngs" / "mine.png").write_text("keep")
    before = sorted(os.listdir(there.folder))
    said = run("sample", model, "-n", 4, "-o", f"{there.folder}/{output}")
    assert said.exit_code == 2
    words = {"pngs/": "new or empty", "nowhere/pngs/": "make it first"}
    assert words.get(output, ".npz") in " ".join(said.output.split())
    assert sorted(os.listdir(there.folder)) == before
    assert (there.folder / "pngs" / "mine.png").read_text() == "keep"


def test_a_folder_of_classes_from_draft_to_rows(run, there):
    data = load_digits()
    for at in range(60):
        place = there.folder / "digits" / f"d{data.target[at]}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray((data.images[at] * 15).astype(np.uint8)).save(place / f"{at}.png")
    schema = there.folder / "drafted.yaml"
    said = run("draft", there.folder / "digits", "-o", schema)
    assert said.exit_code == 0, said.output
    drafted = Schema.load(schema)
    assert drafted.images["image"].shape == (8, 8)
    assert drafted.columns["label"].values == tuple(f"d{digit}" for digit in range(10))
    assert drafted.label == "label"
    assert {("image", "height"), ("image", "width"), ("label", "values")} <= set(drafted.unconfirmed())
    model = there.folder / "m.understudy"
    refused = run("fit", there.folder / "digits", "-s", schema, "-m", image_method.NAME, "-o", model)
    assert refused.exit_code == 2
    assert "not confirmed" in " ".join(refused.output.split())
    assert run("confirm", schema, answer="y", shows_values=True).exit_code == 0
    assert run("check", there.folder / "digits", "-s", schema).exit_code == 0
    said = run("fit", there.folder / "digits", "-s", schema, "-m", image_method.NAME, "-o", model)
    assert said.exit_code == 0, said.output


def test_other_commands_take_images(run, there):
    model = fitted(run, there)
    assert run("check", there.table, "-s", there.schema).exit_code == 0
    said = run("inspect", model)
    assert said.exit_code == 0
    assert "image" in said.output
    assert run("inspect", model, "--json").exit_code == 0
    assert run("verify", model).exit_code == 0
    for method in api.METHODS:
        if not getattr(api.method_module(method), "IMAGES", False):
            said = run("plan", "-s", there.schema, "-m", method)
            assert said.exit_code == 2
            assert "makes no images" in " ".join(said.output.split())


def test_evaluate_and_report(run, there):
    model = fitted(run, there)
    synthetic = there.folder / "out.npz"
    assert run("sample", model, "-n", 300, "-o", synthetic).exit_code == 0
    said = run("evaluate", there.table, synthetic, "-s", there.schema, "--holdout", there.held)
    assert said.exit_code == 0, said.output
    assert "image_accuracy" in said.output
    page = there.folder / "report.html"
    said = run("report", there.table, synthetic, "-s", there.schema, "--holdout", there.held, "-o", page)
    assert said.exit_code == 0, said.output
    text = page.read_text()
    assert text.count("data:image/png;base64,") == 1 + 2 * 10
    assert "Mean images" in text
    said = run("report", there.table, synthetic, "-s", there.schema, "--model", model, "--public", "-o", page)
    assert said.exit_code == 0, said.output
    assert page.read_text().count("data:image/png;base64,") == 1
    assert "Mean images" not in page.read_text()


def test_images_without_a_label(run, there, tmp_path):
    schema = tmp_path / "alone.yaml"
    schema.write_text("rows: 300\ncolumns: {image: {kind: image, height: 8, width: 8}}")
    table = tmp_path / "alone.npz"
    np.savez(table, images=(load_digits().images[:100] * 15).astype(np.uint8))
    model, out = tmp_path / "m.understudy", tmp_path / "out.npz"
    said = run("draft", table, "-o", tmp_path / "drafted.yaml")
    assert said.exit_code == 0, said.output
    said = run("fit", table, "-s", schema, "-m", image_method.NAME, "-o", model)
    assert said.exit_code == 0, said.output
    assert run("sample", model, "-n", 50, "-o", out).exit_code == 0
    assert run("sample", model, "-n", 50, "-o", tmp_path / "grid.png").exit_code == 0
    assert run("check", out, "-s", schema).exit_code == 0
    said = run("evaluate", table, out, "-s", schema)
    assert said.exit_code == 0, said.output
    said = run("report", table, out, "-s", schema, "-o", tmp_path / "r.html")
    assert said.exit_code == 0, said.output


def test_auto_is_told_what_makes_images(run, there, monkeypatch):
    monkeypatch.delitem(api.METHODS, "dp-merf", raising=False)
    said = run("fit", there.table, "-s", there.schema, "-o", there.folder / "m.understudy")
    assert said.exit_code == 2
    assert "-m dp-merf" in " ".join(said.output.split())
    assert not Path(there.folder / "m.understudy").exists()


def test_a_cell_of_a_comparison(there):
    schema = Schema.load(there.schema)
    job = {
        "schema": schema.dumps(style="json"),
        "method": image_method.NAME,
        "epsilon": 3,
        "delta": None,
        "seed": 1,
        "options": {},
        "which": "fast",
        "simulated": 0,
    }
    for rows in (split_rows(there.table, schema, 0.25, 1).pack(), b""):
        found = measure(job, rows)
        assert found["status"] == "ok"
        assert 0 < found["figures"]["image_accuracy"]["value"] < 1


def test_a_changed_folder_is_another_table(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "a" / "1.png")
    before = _table_facts(tmp_path, 0.25, None)
    assert before == _table_facts(tmp_path, 0.25, None)
    Image.new("L", (8, 8)).save(tmp_path / "a" / "2.png")
    assert before != _table_facts(tmp_path, 0.25, None)
