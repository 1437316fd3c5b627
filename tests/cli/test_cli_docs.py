"""The pages that a steward reads name what there is: commands, methods, options, defaults, files."""

import dataclasses
import re
from pathlib import Path

import pytest

from understudy.cli.main import COMMANDS
from understudy.errors import OptionError
from understudy.synthesizers.api import METHODS, method_module

ROOT = Path(__file__).parents[2]
PAGES = [
    *("README.md", "CHANGELOG.md", "docs/cli.md", "docs/compare.md", "docs/images.md", "docs/pitfalls.md"),
    *(f"docs/methods/{n}.md" for n in METHODS),
]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_every_command_has_a_line() -> None:
    rows = set(re.findall(r"^\| `(\w+)", (ROOT / "docs/cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {command.__name__ for command in COMMANDS} <= rows


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_with_its_options_and_defaults(name: str) -> None:
    assert f"`{name}`" in (ROOT / "README.md").read_text(encoding="utf-8")
    page = (ROOT / "docs/methods" / f"{name}.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, flags=re.MULTILINE))
    words = {None: "by rule", True: "yes", False: "no"}
    for field in dataclasses.fields(method_module(name).Config):
        default = field.default
        shown = words[default] if default is None or isinstance(default, bool) else str(default)
        assert told[field.name].strip() == shown, field.name


def test_commands_in_the_pages_exist() -> None:
    names = {command.__name__ for command in COMMANDS}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"(?:^\$ |`)understudy (\w+)", text, flags=re.MULTILINE):
            assert name in names | {"COMMAND"}, f"{page}: {name}"


@pytest.mark.parametrize("name", METHODS)
def test_every_option_says_what_it_is(name: str) -> None:
    from understudy.cli.methods import describe

    assert [option["name"] for option in describe(method_module(name))["options"] if not option["help"]] == []


def test_layers_are_given_with_commas() -> None:
    from understudy.cli.conditions import parse_settings

    module = method_module("dp-wgan")
    for text in ("64,32", "[64, 32]", "(64, 32)"):
        assert parse_settings([f"critic_hidden={text}"], module) == {"critic_hidden": (64, 32)}
    assert parse_settings(["critic_hidden=64"], module) == {"critic_hidden": (64,)}
    with pytest.raises(OptionError, match="critic_hidden must be a whole number"):
        parse_settings(["critic_hidden=64,many"], module)


def test_numbers_and_rates_by_value_can_be_set() -> None:
    from understudy.cli.conditions import parse_settings

    module = method_module("dp-merf")
    assert parse_settings(["widths=0.5,1"], module) == {"widths": (0.5, 1.0)}
    assert parse_settings(["widths=none"], module) == {"widths": None}
    assert parse_settings(["undersample=no:0.1, not yet:1"], module) == {"undersample": {"no": 0.1, "not yet": 1.0}}
    with pytest.raises(OptionError, match="undersample must be a number"):
        parse_settings(["undersample=no:half"], module)
