"""The page behind the line of `auto` for few columns: groups by what a cell holds, tables without triples or labels."""

from bench.narrow import markdown


def line(held: float, mixture: dict, aim: dict) -> dict:
    return {"table": f"t{held:g}", "held": held, "auto": "aim", "methods": {"mixture": mixture, "aim": aim}}


def test_lines_are_grouped_by_what_a_cell_holds():
    two = line(50.0, {"tvd2": 0.04}, {"tvd2": 0.01})
    three = line(60.0, {"tvd2": 0.01, "tvd3": 0.03, "auc": 0.7}, {"tvd2": 0.01, "tvd3": 0.06, "auc": 0.6})
    page = markdown([two, three, line(0.5, {"tvd2": 0.1}, {"tvd2": 0.2})], "2026-01-01")
    assert "| 40 and more | 2 | 2.00 | 0.50 | 1 of 2 | 0 of 1 | +0.100 |" in page
    assert "| 0.1 to 1 | 1 | 0.50 | - | 0 of 1 | 0 of 0 | - |" in page
    assert "| t50 | 50 | 0.0400 | 0.0100 | - | - | - | - | aim |" in page
    assert page.index("| t60 |") < page.index("| t50 |") < page.index("| t0.5 |")
