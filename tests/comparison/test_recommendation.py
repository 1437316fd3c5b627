"""The advice: leads, ties, single repeats, failures, and the epsilon from which on more buys little."""

import math

import pytest
from comparison_helpers import cell, compared

from understudy.comparison.grid import FAILED, QUALITY, Cell, gap_of, measured
from understudy.comparison.recommend import recommend, standings


def repeats(method: str, epsilon: float, *gaps: float, seconds: float = 2.0) -> list[Cell]:
    return [cell(method, epsilon, gap, repeat, seconds) for repeat, gap in enumerate(gaps)]


def test_a_clear_lead_is_said_with_its_size_and_the_chance() -> None:
    found = recommend([*repeats("a", 1.0, 0.04, 0.05, 0.06), *repeats("b", 1.0, 0.14, 0.15, 0.16)])
    assert (found.method, found.epsilon) == ("a", 1.0)
    assert found.advice == "Take a at epsilon 1."
    assert "leads b, the next best, by 0.100" in found.words
    assert "more than chance makes between two fits (0.014, from 3 repeats)" in found.words
    assert "tie" not in found.words


def test_a_lead_within_the_spread_is_a_tie_and_the_faster_one_is_advised() -> None:
    slow, fast = repeats("slow", 1.0, 0.04, 0.08, seconds=50.0), repeats("fast", 1.0, 0.05, 0.09, seconds=1.0)
    found = recommend([*slow, *fast, *repeats("bad", 1.0, 0.5, 0.51)])
    assert found.method == "fast"
    assert "It is a tie with slow (0.070 against 0.060)" in found.words
    assert "(1 s against 50 s)" in found.words
    (verdict,) = found.verdicts
    assert [one.method for one in verdict.tied] == ["slow", "fast"]
    assert verdict.after.method == "bad"
    assert verdict.lead == pytest.approx(0.445)


def test_the_same_means_with_less_spread_are_no_tie() -> None:
    found = recommend([*repeats("slow", 1.0, 0.059, 0.061), *repeats("fast", 1.0, 0.069, 0.071, seconds=1.0)])
    assert found.method == "slow"
    assert "leads fast" in found.words


def test_differences_that_nobody_notices_are_ties() -> None:
    found = recommend([*repeats("a", 1.0, 0.05, 0.05), *repeats("b", 1.0, 0.054, 0.054, seconds=1.0)])
    assert found.method == "b"
    assert "tie with a" in found.words


def test_one_repeat_cannot_tell_luck_from_merit() -> None:
    found = recommend([*repeats("a", 1.0, 0.05), *repeats("b", 1.0, 0.2)])
    assert "no telling whether that is luck: use more seeds" in found.words
    tie = recommend([*repeats("a", 1.0, 0.05), *repeats("b", 1.0, 0.05)])
    assert "One repeat cannot tell more" in tie.words


def test_the_smallest_epsilon_that_is_good_enough() -> None:
    cells = [*repeats("a", 0.5, 0.2, 0.2), *repeats("a", 1.0, 0.05, 0.05), *repeats("a", 3.0, 0.04, 0.04)]
    found = recommend([*cells, *repeats("a", math.inf, 0.0, 0.0)])
    assert found.epsilon == 1.0
    assert "More budget buys little: the best at epsilon 3 falls short by 0.040" in found.words
    assert "No other method came to an end at this epsilon" in found.words
    steep = recommend([*repeats("a", 0.5, 0.2, 0.2), *repeats("a", 1.0, 0.05, 0.05)])
    assert steep.epsilon == 1.0
    assert "A smaller budget costs: the best at epsilon 0.5 falls short by 0.200" in steep.words


def test_rows_as_good_as_real_ones_are_said_to_be() -> None:
    enough = recommend([*repeats("a", 1.0, 0.01, 0.01), *repeats("a", 3.0, -0.06, -0.06)])
    assert enough.epsilon == 1.0  # below 0 is not better than 0
    assert "the best at epsilon 3 scores as fresh real rows do" in enough.words
    assert "score as fresh real rows do" in recommend(repeats("a", 1.0, -0.01, -0.02)).words


def test_without_privacy_there_is_no_advice() -> None:
    found = recommend(repeats("a", math.inf, 0.0, 0.0))
    assert (found.method, found.advice) == (None, "No recommendation.")
    assert len(found.verdicts) == 1


def test_failed_fits_take_no_part_and_do_not_win() -> None:
    lost = [Cell(method="a", epsilon=1.0, repeat=r, status=FAILED, message="no") for r in range(2)]
    found = compared([*lost, *repeats("b", 1.0, 0.3, 0.3)])
    assert found.advice.method == "b"
    assert "2 of 4 fits came to no end" in " ".join(found.notes)
    nothing = recommend(lost)
    assert nothing.method is None
    assert "see the failures" in nothing.words


def test_a_figure_that_only_one_method_lacks_counts_as_the_worst() -> None:
    good, bad = cell("a", 1.0, 0.1), cell("b", 1.0, 0.0)
    figures = {name: one for name, one in bad.figures.items() if name != "train_on_synthetic"}
    bad = cell("b", 1.0, 0.0, figures=figures)
    names = measured([good, bad], QUALITY)
    assert names == tuple(name for name in QUALITY if name != "image_accuracy")  # there are no images here
    assert gap_of(bad, names) == pytest.approx(1 / 3)
    assert [one.method for one in standings([good, bad])] == ["a", "b"]


def test_what_no_cell_could_measure_is_left_out() -> None:
    cells = [cell("a", 1.0, 0.1), cell("b", 1.0, 0.2)]
    cells = [
        cell(c.method, 1.0, 0.0, figures={n: f for n, f in c.figures.items() if n != "train_on_synthetic"})
        for c in cells
    ]
    assert measured(cells, QUALITY) == ("tvd_2way", "tvd_3way")
    assert gap_of(cells[0], measured(cells, QUALITY)) == pytest.approx(0.1)
    assert "prediction is left out" in " ".join(compared(cells, label=None).notes)
