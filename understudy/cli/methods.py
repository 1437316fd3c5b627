"""`understudy methods`: what there is to choose from."""

import dataclasses
import inspect
import re
from types import ModuleType
from typing import Any

from understudy.cli import screen
from understudy.cli.options import JsonOption


def methods(json: JsonOption = False) -> None:
    """List the methods and their options (for `fit --set option=value`)."""
    from understudy.synthesizers import auto
    from understudy.synthesizers.api import DEFAULT_METHOD, METHODS, method_module

    rule = {"name": auto.NAME, "summary": auto.SUMMARY, "options": []}
    listed = [rule, *(describe(method_module(name)) for name in METHODS)]
    listed = [about | {"default": about["name"] == DEFAULT_METHOD} for about in listed]
    if json:
        screen.print_json(listed)
        return
    for about in listed:
        screen.say(f"{about['name']}{' (default)' if about['default'] else ''}", style="bold")
        screen.say(about["summary"])
        rows = [(option["name"], str(option["default"]), option["help"]) for option in about["options"]]
        if rows:
            screen.print_table(("option", "default", "what it is"), rows)
        screen.say()


def describe(module: ModuleType) -> dict[str, Any]:
    """A method as plain data; what an option means stands in the docstring of its Config, or of what that extends."""
    helps: dict[str, str] = {}
    for kind in reversed(module.Config.__mro__):
        helps |= re.findall(r"^(\w+): (.+)$", inspect.cleandoc(kind.__doc__ or ""), flags=re.MULTILINE)
    options = [
        {"name": field.name, "default": field.default, "help": helps.get(field.name, "")}
        for field in dataclasses.fields(module.Config)
    ]
    return {"name": module.NAME, "summary": module.SUMMARY, "options": options}
