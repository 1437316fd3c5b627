"""A schema with an image column: only a method that makes images takes it, and a refusal costs nothing."""

from pathlib import Path
from types import ModuleType

import pytest

import understudy as us
from understudy.errors import SchemaError
from understudy.privacy import Budget, BudgetFile
from understudy.schema import Schema
from understudy.synthesizers import api, auto

IMAGES = Schema.loads("""
rows: 100
label: digit
columns:
  digit: {kind: categorical, values: [0, 1]}
  scan: {kind: image, height: 4, width: 4}
""")


class Untouchable:
    """A source that nobody may open."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError("the rows were touched")


def makes_no_images(name: str) -> bool:
    return not getattr(api.method_module(name), "IMAGES", False)


@pytest.mark.parametrize("method", [name for name in api.METHODS if name != auto.IMAGE_METHOD])
def test_other_methods_refuse_before_anything_is_spent(tmp_path: Path, method: str) -> None:
    assert makes_no_images(method)
    book = BudgetFile.create(tmp_path / "budget.json", Budget(2.0, 1e-6))
    before = book.path.read_bytes()
    with pytest.raises(SchemaError, match=f"method {method} makes no images, but column 'scan'.*-m dp-merf"):
        us.fit(Untouchable(), IMAGES, method=method, budget_file=book.path)
    assert book.path.read_bytes() == before


def test_a_method_that_says_so_is_let_through() -> None:
    module = ModuleType("made_up")
    module.NAME, module.IMAGES = "made-up", True
    api.check_plan(module, None, IMAGES, Budget(1.0, 1e-6))
    module.IMAGES = False
    with pytest.raises(SchemaError, match="made-up makes no images"):
        api.check_plan(module, None, IMAGES, Budget(1.0, 1e-6))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, float("inf")])
def test_auto_picks_the_method_for_images(epsilon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api.METHODS, auto.IMAGE_METHOD, "somewhere")
    alone = Schema.loads("rows: 100\ncolumns: {scan: {kind: image, height: 4, width: 4}}")
    for schema in (IMAGES, alone):
        choice = auto.choose(schema, Budget(epsilon, 1e-6))
        assert choice.method == "dp-merf"
        assert "'scan' is of kind image" in choice.why


def test_auto_picks_nothing_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(api.METHODS, auto.IMAGE_METHOD, raising=False)
    assert auto.choose(IMAGES, Budget(1.0, 1e-6)).method in api.METHODS
    with pytest.raises(SchemaError, match="makes no images"):
        us.fit(Untouchable(), IMAGES)
