"""`--where` and `--set`: short texts on the command line to values."""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import ModuleType
from typing import Any

from understudy.errors import OptionError
from understudy.schema import Boolean, Categorical, Column, Datetime, Schema
from understudy.schema.fields import value_key


def parse_where(texts: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Conditions by column: COLUMN=VALUE, COLUMN=A..B (both included), COLUMN=V1,V2 or COLUMN= (missing).

    >>> schema = Schema.loads("columns: {age: {kind: integer, low: 0, high: 9}, smoker: {kind: boolean}}")
    >>> parse_where(["age=3..", "smoker=yes"], schema)
    {'age': ('3', None), 'smoker': 'yes'}
    """
    conditions: dict[str, Any] = {}
    for text in texts:
        # A column's name may itself hold an equals sign: the longest name that fits is meant.
        names = [name for name in schema.modelled if text.startswith(f"{name}=")]
        if not names:
            raise OptionError(
                f"--where {text!r} must be COLUMN=VALUE, COLUMN=A..B, COLUMN=V1,V2 or COLUMN= (missing), with one of "
                f"the columns {', '.join(schema.modelled)}"
            )
        name = max(names, key=len)
        if name in conditions:
            raise OptionError(f"--where {name!r} is given twice; put its values into one, like {name}=V1,V2")
        conditions[name] = _condition(schema.modelled[name], text.removeprefix(f"{name}="))
    return conditions


def _condition(column: Column, text: str) -> Any:
    declared = {value_key(value) for value in column.values} if isinstance(column, Categorical) else set()
    ordered = not isinstance(column, Boolean) and (not isinstance(column, Categorical) or column.kind == "ordinal")
    if text == "":
        return None
    if text in declared:
        return text
    if ordered and ".." in text:
        low, _, high = text.partition("..")
        return _value(column, low), _value(column, high)
    if "," in text:
        return [_value(column, part) for part in text.split(",")]
    return _value(column, text)


def _value(column: Column, text: str) -> Any:
    text = text.strip()
    if isinstance(column, Datetime):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            pass  # perhaps in the column's own format
    return text or None


def parse_settings(texts: Sequence[str], module: ModuleType) -> dict[str, Any]:
    """OPTION=VALUE of a method, with the types that its Config declares; unknown names are left to it to refuse."""
    return _parse(texts, module.Config, "--set", "see `understudy methods`")


def parse_boosting(texts: Sequence[str], flag: str) -> dict[str, Any]:
    """OPTION=VALUE of boosting; several distinguishers have commas between them.

    >>> parse_boosting(["weights=average", "distinguishers=critics, marginals"], "--set")
    {'weights': 'average', 'distinguishers': ['critics', 'marginals']}
    """
    from understudy.boosting.settings import Boosting

    settings = _parse(texts, Boosting, flag, "docs/boosting.md has them")
    if "," in settings.get("distinguishers", ""):
        settings["distinguishers"] = [kind.strip() for kind in settings["distinguishers"].split(",")]
    return settings


def _parse(texts: Sequence[str], config: type, flag: str, where: str) -> dict[str, Any]:
    hints = typing.get_type_hints(config)
    names = {field.name for field in dataclasses.fields(config)}
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise OptionError(f"{flag} {text!r} must be OPTION=VALUE; {where}")
        if name in settings:
            raise OptionError(f"{flag} {name} is given twice; keep one of them")
        settings[name] = _setting(name, value.strip(), hints[name], flag) if name in names else value
    return settings


def _setting(name: str, text: str, hint: Any, flag: str) -> Any:
    kinds = (hint,) if typing.get_origin(hint) in (tuple, Mapping) else typing.get_args(hint) or (hint,)
    if type(None) in kinds and text.lower() in ("none", "null", ""):
        return None
    for kind in kinds:
        if typing.get_origin(kind) is tuple:  # a number a layer: 64,32 or [64, 32]
            part_of = typing.get_args(kind)[0]
            return tuple(
                _setting(name, part.strip(), part_of, flag) for part in text.strip("[]() ").strip(",").split(",")
            )
        if typing.get_origin(kind) is Mapping:  # a number a value: no:0.1,yes:1
            pairs = [part.rpartition(":") for part in text.split(",")]
            return {value.strip(): _setting(name, number.strip(), float, flag) for value, _, number in pairs}
    if bool in kinds and text.lower() in ("true", "false", "yes", "no"):
        return text.lower() in ("true", "yes")
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    if str in kinds:
        return text
    words = {bool: "true or false", int: "a whole number", float: "a number", type(None): "none"}
    wanted = " or ".join(words[kind] for kind in kinds if kind in words)
    raise OptionError(f"{flag} {name} must be {wanted}, got {text!r}")
