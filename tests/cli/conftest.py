"""One tiny table for all commands, and one small model of each kind, made once."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from cli_helpers import SCHEMA, SECRET, tiny_rows
from typer.testing import CliRunner, Result

from understudy.cli.main import app


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """Runs a command in this process; whatever happens, no secret may be on the screen."""

    def invoke(*arguments: object, answer: str | None = None, shows_values: bool = False) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=answer)
        assert isinstance(result.exception, SystemExit | None), result.exception
        assert shows_values or SECRET not in result.stdout + result.stderr
        return result

    return invoke


@pytest.fixture
def here(tmp_path: Path) -> SimpleNamespace:
    """A folder with the table and its schema."""
    table, schema = tmp_path / "table.csv", tmp_path / "schema.yaml"
    table.write_text(tiny_rows())
    schema.write_text(SCHEMA)
    return SimpleNamespace(folder=tmp_path, table=table, schema=schema, model=tmp_path / "model.understudy")


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Result]) -> SimpleNamespace:
    """Models that tests read and never change: `seeded` (mixture) and `fresh` (independent, fit for release)."""
    folder = tmp_path_factory.mktemp("made")
    table, schema = folder / "table.csv", folder / "schema.yaml"
    table.write_text(tiny_rows())
    schema.write_text(SCHEMA)
    seeded, fresh = folder / "seeded.understudy", folder / "fresh.understudy"
    said = run("fit", table, "-s", schema, "-e", 3, "--seed", 7, "-o", seeded)
    assert said.exit_code == 0, said.output
    told = run("fit", table, "-s", schema, "-m", "independent", "-o", fresh)
    assert told.exit_code == 0, told.output
    return SimpleNamespace(folder=folder, table=table, schema=schema, seeded=seeded, fresh=fresh, said=said, told=told)
