"""Repeated fits add up in one file: written down before the rows are read, settled after, refused when it is full."""

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from cli_helpers import left_over
from typer.testing import Result

import understudy as us
from understudy.errors import BudgetError, OptionError
from understudy.privacy import BudgetFile, Gaussian
from understudy.synthesizers import api, independent

Run = Callable[..., Result]


def fit(here: SimpleNamespace, *more: object, name: str = "m.understudy") -> tuple[object, ...]:
    book = here.folder / "budget.json"
    model = here.folder / name
    return ("fit", here.table, "-s", here.schema, "-m", "independent", "-o", model, "--budget-file", book, *more)


def test_fits_add_up_until_one_is_refused(run: Run, here: SimpleNamespace) -> None:
    first = run(*fit(here, "-e", 1, "--total-epsilon", 1.8))
    assert first.exit_code == 0, first.stderr
    assert "of 1.8 is spent" in first.stderr
    book = BudgetFile.load(here.folder / "budget.json")
    assert [type(event) for event in book.events] == [Gaussian]  # settled with what was really done
    assert book.open_reservations == {}
    second = run(*fit(here, "-e", 0.5, name="second.understudy"))
    assert second.exit_code == 0, second.stderr
    # Composed on curves: less than the sum of the epsilons.
    assert 1.0 < BudgetFile.load(book.path).spent() < 1.45
    third = run(*fit(here, "-e", 1, name="third.understudy"))
    assert third.exit_code == 1
    assert "above its total" in third.stderr
    assert not (here.folder / "third.understudy").exists()
    assert len(BudgetFile.load(book.path).events) == 2


def test_boosting_says_where_the_file_stands(run: Run, here: SimpleNamespace) -> None:
    assert run(*fit(here, "-e", 1, "--total-epsilon", 1.8)).exit_code == 0
    book, model = here.folder / "budget.json", here.folder / "m.understudy"
    boost = ("boost", model, "-t", here.table, "-e", 0.5, "-o", here.folder / "boosted.understudy")
    result = run(*boost, "--rounds", 5, "--pool-rows", 100, "--budget-file", book)
    assert result.exit_code == 0, result.stderr
    assert f"epsilon {BudgetFile.load(book).spent():.4g} of 1.8 is spent" in result.stderr


def test_a_tenth_of_the_files_delta_is_the_default(run: Run, here: SimpleNamespace) -> None:
    told = json.loads(run(*fit(here, "--total-epsilon", 3, "--total-delta", 1e-7, "--json")).stdout)
    assert told["certificate"]["delta"] == pytest.approx(1e-8)


def test_totals_belong_to_new_files(run: Run, here: SimpleNamespace) -> None:
    absent = run(*fit(here))
    assert (absent.exit_code, "--total-epsilon" in absent.stderr) == (2, True)
    assert run(*fit(here, "--total-epsilon", 2)).exit_code == 0
    again = run(*fit(here, "-e", 0.1, "--total-epsilon", 2))  # the model that is there has spent its budget
    assert (again.exit_code, "there is a file already" in again.stderr) == (2, True)
    assert run(*fit(here, "-e", 0.1, "--total-epsilon", 2, "--force")).exit_code == 0  # the same command again
    other = run(*fit(here, "--total-epsilon", 5, "--force"))
    assert (other.exit_code, "cannot change" in other.stderr) == (2, True)
    alone = run("fit", here.table, "-s", here.schema, "-o", here.model, "--total-epsilon", 2, "--force")
    assert (alone.exit_code, "--budget-file" in alone.stderr) == (2, True)


def test_what_goes_wrong_before_the_rows_costs_nothing(run: Run, here: SimpleNamespace) -> None:
    book = BudgetFile.create(here.folder / "budget.json", us.Budget(2.0, 1e-6))
    mistyped = list(fit(here))
    mistyped[1] = here.folder / "tabel.csv"
    refused = run(*mistyped)
    assert (refused.exit_code, "counts in full" in refused.stderr) == (2, False)
    assert run(*fit(here, "--set", "steps=9")).exit_code == 2
    assert run(*fit(here, "-e", "inf")).exit_code == 1  # without a guarantee there is nothing to add up
    assert BudgetFile.load(book.path).events == ()


def test_what_goes_wrong_after_the_rows_counts_as_spent(run: Run, here: SimpleNamespace, monkeypatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(independent, "train", crash)
    broken = run(*fit(here, "--total-epsilon", 2))
    assert broken.exit_code == 2
    assert "counts in full; epsilon 1 of 2 is spent" in broken.stderr
    book = BudgetFile.load(here.folder / "budget.json")
    assert len(book.open_reservations) == 1
    assert book.spent() == pytest.approx(1.0, abs=1e-4)
    monkeypatch.undo()
    over = run(*fit(here, "-e", 1.5))
    assert (over.exit_code, "counts in full" in over.stderr) == (1, False)
    assert left_over(here.folder) >= {"table.csv", "budget.json"}
    assert not (here.folder / "m.understudy").exists()


def test_a_damaged_file_is_a_no(run: Run, here: SimpleNamespace) -> None:
    assert run(*fit(here, "--total-epsilon", 2)).exit_code == 0
    path = here.folder / "budget.json"
    path.write_text(path.read_text().replace('"epsilon": 2.0', '"epsilon": 9.0'))
    result = run(*fit(here, "--force"))
    assert (result.exit_code, "restore" in result.stderr) == (1, True)


def test_python_users_have_the_same_flow(here: SimpleNamespace, monkeypatch) -> None:
    book = BudgetFile.create(here.folder / "budget.json", us.Budget(1.5, 1e-6))
    seen: list[int] = []
    read = api.read_table

    def watched(*arguments: object) -> object:
        seen.append(len(BudgetFile.load(book.path).open_reservations))
        return read(*arguments)

    monkeypatch.setattr(api, "read_table", watched)
    options = {"method": "independent", "epsilon": 1.0}
    model = us.fit(here.table, here.schema, budget_file=book, **options)
    assert seen == [1]  # written down before the rows were read
    assert book.open_reservations == {}
    assert model.certificate.delta == pytest.approx(1e-7)
    with pytest.raises(BudgetError, match="above its total"):
        us.fit(here.table, here.schema, budget_file=str(book.path), **options)
    assert seen == [1]  # a refusal reads nothing
    with pytest.raises(OptionError, match="does not exist"):
        us.fit(here.table, here.schema, budget_file=here.folder / "none.json", **options)


def test_python_users_hear_of_clipped_cells(here: SimpleNamespace) -> None:
    here.table.write_text(here.table.read_text().replace(",Alm,", ",Alm,9", 2))
    told: list[dict[str, int]] = []
    us.fit(here.table, here.schema, method="independent", on_clipped=lambda notes: told.append(dict(notes)))
    assert told == [{"weight": 2}]
