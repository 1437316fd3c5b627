"""The page of rows drawn both ways: both figures in a cell, and the mean of their differences."""

from bench.even import markdown


def cell(table: str, seed: int, drawn: dict, even: dict) -> dict:
    key = {"table": table, "method": "mixture", "seed": seed}
    ways = {"drawn": {"seconds": 0.1, **drawn}, "even": {"seconds": 1.0, **even}}
    return {"key": key, "rows": 1000, "columns": 4, **ways}


def test_both_ways_stand_side_by_side():
    cells = [
        cell("a", 0, {"tvd2": 0.10, "c2st": 0.7}, {"tvd2": 0.08, "c2st": 0.7}),
        cell("a", 1, {"tvd2": 0.12, "c2st": 0.7}, {"tvd2": 0.08, "c2st": 0.6}),
        cell("b", 0, {"tvd2": 0.20, "c2st": 0.9}, {"tvd2": 0.20, "c2st": 0.9}),
    ]
    page = markdown(cells, "2026-01-01")
    assert "| a (1,000 x 4) | 0.1100, 0.0800 |" in page
    assert "| b (1,000 x 4) | 0.2000, 0.2000 |" in page
    assert "| mean difference | -0.0200 ± 0.0115 |" in page
    assert page.count("0.1, 1.0") == 2
