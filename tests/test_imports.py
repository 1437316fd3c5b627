"""Who may walk where: every import of the package, wherever it stands, goes in a direction that the house allows.

The table below is docs/architecture.md's line of directions, spelled out.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "understudy"
COMMON = {"errors", "progress", "notebook"}
# What each room may import, besides itself. The root (`understudy/__init__.py`) hands out public names from anywhere.
MAY_SEE = {
    "errors": set(),
    "progress": set(),
    "notebook": set(),
    "schema": COMMON,
    "table": COMMON | {"schema"},
    "privacy": COMMON,
    "training": COMMON | {"privacy"},
    "synthesizers": COMMON | {"schema", "table", "privacy", "training"},
    "boosting": COMMON | {"schema", "table", "privacy", "training", "synthesizers"},
    "evaluation": COMMON | {"schema", "table"},
    "report": COMMON | {"privacy", "evaluation"},
    "comparison": COMMON | {"schema", "table", "privacy", "synthesizers", "evaluation", "report"},
    "auditing": COMMON | {"schema", "table", "privacy", "training", "synthesizers", "boosting", "evaluation"},
    "demo": COMMON | {"schema"},
}
MAY_SEE["cli"] = set(MAY_SEE) - {"training"}
MAY_SEE["__main__"] = {"cli"}
# From the root itself only this may be taken: anything else would load rooms through the back door.
OF_THE_ROOT = {"__version__"}
COMPILED = {"jax", "jaxlib", "optax"}
MAY_COMPILE = {"training", "synthesizers"}


def imports(source: str) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, also inside functions and type checks; relative ones as a leading dot."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "import_module":
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    yield node.lineno, str(argument.value)


def room_of(path: Path, package: Path) -> str:
    """The room a file is in; the root's own file is the room ''."""
    place = path.relative_to(package).with_suffix("").parts
    return "" if place == ("__init__",) else place[0]


def violations(files: Iterable[tuple[str, str, str]]) -> list[str]:
    """Wrong imports of (name, room, source) triples."""
    found = []
    for name, room, source in files:
        if room and room not in MAY_SEE:
            found.append(f"{name}: room {room!r} is not in the house; give it its directions here and in the docs")
            continue
        for line, target in imports(source):
            parts = target.split(".")
            if parts[0] in COMPILED and room not in MAY_COMPILE:
                found.append(f"{name}:{line}: {parts[0]} is for {' and '.join(sorted(MAY_COMPILE))} alone")
            elif target.startswith("."):
                found.append(f"{name}:{line}: relative imports hide their direction; write the full name")
            elif parts[0] == "understudy" and room and not _allowed(room, parts[1:]):
                found.append(f"{name}:{line}: {room} must not see {target}")
    return found


def _allowed(room: str, target: list[str]) -> bool:
    if not target:
        return False
    return target[0] == room or target[0] in MAY_SEE[room] or target[0] in OF_THE_ROOT


def package_files(package: Path = PACKAGE) -> list[tuple[str, str, str]]:
    return [
        (path.relative_to(package.parent).as_posix(), room_of(path, package), path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    ]


def test_every_import_goes_an_allowed_way() -> None:
    files = package_files()
    assert len(files) > 50
    assert {room for _, room, _ in files} >= {"schema", "table", "privacy", "synthesizers", "evaluation", "cli"}
    assert violations(files) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("schema", "from understudy.table.read import read_table"),
        ("privacy", "import understudy.table.table"),
        ("privacy", "def f():\n    from understudy.schema import Schema"),
        ("evaluation", "from understudy.privacy import Ledger"),
        ("evaluation", "from understudy.synthesizers import api"),
        ("table", "from understudy import synthesizers"),
        ("table", "import understudy"),
        ("synthesizers", "if TYPE_CHECKING:\n    from understudy.cli import screen"),
        ("synthesizers", "import importlib\nimportlib.import_module('understudy.cli.main')"),
        ("synthesizers", "from understudy import fit"),
        ("synthesizers", "from understudy.boosting.method import boost"),
        ("boosting", "from understudy.evaluation.suite import evaluate"),
        ("demo", "from understudy.synthesizers.api import fit"),
        ("report", "from understudy.table.read import read_table"),
        ("evaluation", "from understudy.report import Histogram"),
        ("report", "from understudy.comparison import compare"),
        ("report", "from understudy.auditing.result import Audit"),
        ("evaluation", "from understudy.auditing.attacks import attack_output"),
        ("synthesizers", "from understudy.auditing.games import play"),
        ("auditing", "import jax"),
        ("evaluation", "import jax.numpy as jnp"),
        ("cli", "def f():\n    import optax"),
        ("table", "from . import codec"),
        ("attic", "import json"),
    ],
)
def test_planted_violations_are_found(room: str, source: str) -> None:
    assert len(violations([("planted.py", room, source)])) == 1


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("cli", "from understudy.synthesizers import api"),
        ("privacy", "from understudy import __version__"),
        ("synthesizers", "import jax"),
        ("evaluation", "from understudy.table.codec import codec\nimport numpy"),
    ],
)
def test_allowed_imports_pass(room: str, source: str) -> None:
    assert violations([("planted.py", room, source)]) == []


def test_directions_have_no_circle() -> None:
    def reach(room: str, path: tuple[str, ...] = ()) -> None:
        assert room not in path, f"{' -> '.join((*path, room))}"
        for seen in MAY_SEE[room]:
            reach(seen, (*path, room))

    for room in MAY_SEE:
        reach(room)


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    """Exit code and top-level modules that a command loads, in a process of its own."""
    program = (
        "import sys\n"
        "from understudy.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    code = end.code\n"
        "print('\\n', code or 0, *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    code, *modules = ran.stderr.strip().splitlines()[-1].split()
    return int(code), set(modules)


def test_help_loads_no_heavy_library() -> None:
    code, modules = loaded_by("--help")
    assert code == 0
    assert "typer" in modules  # the list is a list of modules
    assert not modules & {"jax", "dp_accounting", "opendp", "sklearn", "pandas", "pyarrow", "scipy", "matplotlib"}


def test_light_commands_stay_light(tmp_path) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text("rows: 1000\ncolumns: {age: {kind: integer, low: 0, high: 99}, ill: {kind: boolean}}\n")
    for arguments in (("methods",), ("confirm", str(schema)), ("plan", "-s", str(schema))):
        code, modules = loaded_by(*arguments)
        assert code == 0, arguments
        assert not modules & {"jax", "dp_accounting", "opendp", "sklearn", "matplotlib"}, arguments
