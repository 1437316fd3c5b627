"""The tutorial is a notebook that anyone can open, and whose every cell runs."""

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    return json.loads((DOCS / "tutorial.ipynb").read_text(encoding="utf-8"))


def text_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def shown_by(outputs: list[dict[str, Any]]) -> str:
    return "".join("".join(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs)


def test_it_is_a_notebook(notebook: dict[str, Any]) -> None:
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]["name"]) == (4, "python")
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells) > 20
    for cell in cells:
        needed = {"cell_type", "id", "metadata", "source"}
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == needed | code
        assert cell["cell_type"] in ("code", "markdown")
        assert text_of(cell).strip()
        if code:
            ast.parse(text_of(cell))


def test_its_links_lead_somewhere(notebook: dict[str, Any]) -> None:
    links = [link for cell in notebook["cells"] for link in re.findall(r"\]\(([^)#]+)\)", text_of(cell))]
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


def test_what_it_shows_is_small_and_from_no_one_s_machine(notebook: dict[str, Any]) -> None:
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(len(json.dumps(cell["outputs"])) < 10_000 for cell in code)
    assert not re.search(r"/(tmp|home|root|work|Users)/|site-packages|Traceback", json.dumps(notebook))
    assert shown_by(code[-1]["outputs"])  # the outputs were kept, so that it can be read without running it


@pytest.mark.slow
def test_every_cell_runs(notebook: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("execute", DOCS / "execute.py")
    execute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(execute)
    monkeypatch.chdir(tmp_path)
    outputs = execute.run_cells(notebook["cells"])
    shown = "".join(map(shown_by, outputs))
    assert "not confirmed as public" in shown
    assert "auto picks mixture" in shown
    assert "BudgetError: " in shown
    assert "OptionError: mixture has no option 'stepz'" in shown
    assert "The certificate holds." in shown
    assert "error: " not in shown
    auc = {name: float(value) for name, value in re.findall(r"(learnt from \w+|the true risk).* (0\.\d+)\n", shown)}
    assert 0.75 < auc["learnt from synthetic"] < auc["the true risk"] < 0.95
    assert {path.name for path in tmp_path.iterdir()} >= {"patients.understudy", "report.html", "public.html"}
