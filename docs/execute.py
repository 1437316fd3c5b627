"""Runs a notebook's code cells in order, without Jupyter: `python docs/execute.py docs/tutorial.ipynb`.

Cells share one fresh namespace and run in an empty temporary folder; what they show is written back into the notebook,
so that readers see it. `tests/test_tutorial.py` runs them the same way and throws the outputs away.
"""

import argparse
import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def run_cells(cells: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The outputs of every code cell, in the notebook's own format; an error in a cell is raised as it is."""
    space: dict[str, Any] = {"__name__": "__main__"}
    return [_run("".join(cell["source"]), space) for cell in cells if cell["cell_type"] == "code"]


def _run(source: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs a cell; its printed text, and the value of its last line if that is an expression, are its outputs."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, type_ignores=[]), "<cell>", "exec"), space)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    outputs = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": None})
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    path = parser.parse_args().notebook.resolve()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        outputs = run_cells(notebook["cells"])
        os.chdir(path.parent)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, shown) in enumerate(zip(code, outputs, strict=True), start=1):
        results = [output | {"execution_count": number} if "execution_count" in output else output for output in shown]
        cell.update(execution_count=number, outputs=results)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
