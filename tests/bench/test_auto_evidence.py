"""The evidence behind `auto` is counted right, and the rule that is shipped is the one that it was judged by."""

import json
from pathlib import Path

import pytest

from bench import auto

RESULTS = Path(auto.__file__).parent / "results"


def cell(method: str, seed: int, **figures: float) -> dict:
    key = {"table": "t 10", "epsilon": 1.0, "method": method, "seed": seed, "version": "x"}
    return {"key": key, "rows": 10, "columns": 3, **figures}


LINES = auto.summarise(
    [
        cell("mixture", 0, tvd2=0.2, tvd3=0.5, auc=0.8),
        cell("mixture", 1, tvd2=0.4, tvd3=0.5, auc=0.6),
        cell("independent", 0, tvd2=0.1, tvd3=0.6),
        cell("independent", 1, tvd2=0.3, tvd3=0.6),
    ]
)


def test_cells_become_lines() -> None:
    (line,) = LINES
    assert line["methods"]["mixture"]["tvd2"] == pytest.approx({"mean": 0.3, "spread": 0.1})
    assert "auc" not in line["methods"]["independent"]
    assert [auto._best(line, name) for name in auto.FIGURES] == ["independent", "mixture", None]


def test_the_page_shows_winners_and_counts_the_rule_s_hits() -> None:
    page = auto.markdown(LINES, {("t 10", 1.0): "mixture"}, "today")
    row = next(row for row in page.splitlines() if row.startswith("| t 10 |"))
    assert "0.300 ± 0.100 | **0.200 ± 0.100**" in row
    assert row.endswith("| mixture |")
    assert "| TVD2 | 1 | 0 | 0 | 1 |" in page
    assert "| TVD3 | 1 | 1 | 1 | 0 |" in page
    assert "| AUC | 0 | 0 | 0 | 0 |" in page  # only one method has it
    assert "| mean TVD2 | 1 | 0.300 | 0.300 | 0.200 |" in page


def test_the_docs_quote_the_newest_results() -> None:
    newest = max(RESULTS.glob("*-auto.md"))
    docs = (RESULTS.parents[1] / "docs" / "methods" / "auto.md").read_text(encoding="utf-8")
    assert f"bench/results/{newest.name}" in docs
    lines = json.loads(newest.with_suffix(".json").read_text())["summary"]
    assert f"Over all {len(lines)} lines" in docs
