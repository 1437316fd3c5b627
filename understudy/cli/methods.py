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
    from understudy.synthesizers.api import DEFAULT_METHOD, METHODS, method_module

    modules = {name: method_module(name) for name in METHODS}
    if json:
        screen.print_json([describe(module) | {"default": n == DEFAULT_METHOD} for n, module in modules.items()])
        return
    for name, module in modules.items():
        about = describe(module)
        screen.say(f"{name}{' (default)' if name == DEFAULT_METHOD else ''}", style="bold")
        screen.say(about["summary"])
        rows = [(option["name"], str(option["default"]), option["help"]) for option in about["options"]]
        if rows:
            screen.print_table(("option", "default", "what it is"), rows)
        screen.say()


def describe(module: ModuleType) -> dict[str, Any]:
    """A method as plain data; what an option means stands in the docstring of its Config."""
    helps = dict(re.findall(r"^(\w+): (.+)$", inspect.getdoc(module.Config) or "", flags=re.MULTILINE))
    options = [
        {"name": field.name, "default": field.default, "help": helps.get(field.name, "")}
        for field in dataclasses.fields(module.Config)
    ]
    return {"name": module.NAME, "summary": module.SUMMARY, "options": options}
