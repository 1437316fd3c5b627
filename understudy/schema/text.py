"""YAML and JSON for schemas, without YAML's surprises.

Read with YAML 1.1's rules, `no` is false, `01` an octal number, `12:30` a sexagesimal one, `1e6` text, and a date a
date. Here words, codes with leading zeros, times and dates stay text, and numbers are numbers. What is written is
quoted so that a reader with the older rules sees the same.
"""

import json
import re
from datetime import date, datetime
from typing import Any

import yaml

from understudy.errors import SchemaError

WIDTH = 110
DEEPEST = 20
LONGEST_KEY = 1000  # YAML reads no key of more than 1024 letters
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(
    r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?\Z|[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z"
)
_BOOL = re.compile(r"true\Z|True\Z|TRUE\Z|false\Z|False\Z|FALSE\Z")
_NULL = re.compile(r"(~|null|Null|NULL|)\Z")
_PLAIN = re.compile(r"[^\W_][\w .()/+<>=^;$-]*\Z")  # characters that mean nothing to YAML, in any place
_OLDER_RULES = yaml.resolver.Resolver()


_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # its parser only: what a word means is decided here


def parse(text: str) -> Any:
    """Plain Python from YAML or JSON.

    >>> parse("columns: {no: [yes, 01, 1e3, 2019-01-01, 'a']}")
    {'columns': {'no': ['yes', '01', 1000.0, '2019-01-01', 'a']}}
    """
    text = text.lstrip("\ufeff")
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_unique_pairs)
        except (ValueError, RecursionError):
            pass  # YAML may begin with a brace too; its own message follows if it is neither
    problem = ""
    try:
        loader = _Loader(text)
        try:
            return _document(loader)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = f"{where}{error.problem or error.context}"
    except (yaml.YAMLError, UnicodeError):
        problem = "a character that YAML does not allow"
    raise SchemaError(f"the schema is not valid YAML: {problem}; mend that line")


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise SchemaError(f"{key!r} is given twice in the schema; keep one of them")
        seen[key] = value
    return seen


def _document(loader: _Loader) -> Any:
    loader.get_event()  # the start of the stream
    if not isinstance(loader.get_event(), yaml.DocumentStartEvent):
        raise SchemaError("the schema is empty; `understudy draft TABLE` writes a first one")
    plain = _value(loader, loader.get_event(), depth=0)
    loader.get_event()
    if not isinstance(loader.get_event(), yaml.StreamEndEvent):
        raise SchemaError("the schema must be one YAML document; remove what follows `---`")
    return plain


def _value(loader: _Loader, event: yaml.Event, depth: int) -> Any:
    # Events, not nodes: PyYAML composes nodes by recursion in C, which deep nesting can crash.
    line = event.start_mark.line + 1
    if depth > DEEPEST:
        raise SchemaError(f"line {line}: lists or mappings are nested too deeply")
    if isinstance(event, yaml.AliasEvent):
        raise SchemaError(f"line {line}: anchors and aliases are not read; write the facts out")
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(item := loader.get_event(), yaml.SequenceEndEvent):
            items.append(_value(loader, item, depth + 1))
        return items
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(loader, depth)
    return _scalar(event)


def _mapping(loader: _Loader, depth: int) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    while not isinstance(event := loader.get_event(), yaml.MappingEndEvent):
        line = event.start_mark.line + 1
        if not isinstance(event, yaml.ScalarEvent):
            raise SchemaError(f"line {line}: a key of the schema must be a word, not a list or mapping")
        if event.value in mapping:
            raise SchemaError(f"line {line}: {event.value!r} is given twice in the schema; keep one of them")
        mapping[event.value] = _value(loader, loader.get_event(), depth + 1)
    return mapping


def _scalar(event: yaml.ScalarEvent) -> Any:
    text = event.value
    if event.style or event.tag:  # quoted, or marked as text
        return text
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _INT.match(text) and len(text) < 400:
        return int(text)
    if _FLOAT.match(text):
        return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    return text


def write_scalar(value: Any) -> str:
    """One value as YAML, plain where every reader agrees on it.

    >>> [write_scalar(v) for v in ("State-gov", "no", "<=50K", "01", 3, 2.0, True, "a: b")]
    ['State-gov', '"no"', '"<=50K"', '"01"', '3', '2.0', 'true', '"a: b"']
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, date):
        return f'"{value.isoformat()}"' if isinstance(value, datetime) else value.isoformat()
    if _PLAIN.match(value) and value[-1] != " " and _means_text(value):
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _write_float(value: float) -> str:
    text = repr(value)
    # YAML 1.1 wants a point and a sign: 1e+16 is 1.0e+16.
    if "e" in text:
        digits, exponent = text.split("e")
        text = f"{digits if '.' in digits else digits + '.0'}e{exponent if exponent[0] in '+-' else '+' + exponent}"
    return text


def _means_text(text: str) -> bool:
    if any(rule.match(text) for rule in (_NULL, _BOOL, _INT, _FLOAT)):
        return False
    return _OLDER_RULES.resolve(yaml.ScalarNode, text, (True, False)) == "tag:yaml.org,2002:str"


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    number = ord(letter)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 65536 else f"\\U{number:08x}"


def write_entry(key: str, mapping: dict[str, Any]) -> str:
    """A key and its mapping in one line of flow style where that is short, else one fact a line.

    >>> write_entry("age", {"kind": "integer", "low": 0, "source": {"low": "data"}})
    '  age: {kind: integer, low: 0, source: {low: data}}'
    """
    head = f"  {write_scalar(key)}:"
    flow = f"{head} {_flow(mapping)}"
    if len(flow) <= WIDTH:
        return flow
    lines = [head]
    for fact, value in mapping.items():
        fact_head = f"    {write_scalar(fact)}: "
        lines.append(fact_head + _wrapped(value, len(fact_head), 6))
    return "\n".join(lines)


def write_item(mapping: dict[str, Any]) -> str:
    """A mapping in a list, likewise.

    >>> write_item({"columns": ["sex", "pregnant"], "never": [["male", True], ["female", None]]})
    '  - {columns: [sex, pregnant], never: [[male, true], [female, null]]}'
    """
    flow = f"  - {_flow(mapping)}"
    if len(flow) <= WIDTH:
        return flow
    lines = []
    for fact, value in mapping.items():
        head = f"  {'  ' if lines else '- '}{write_scalar(fact)}: "
        lines.append(head + _wrapped(value, len(head), 6))
    return "\n".join(lines)


def write_value(value: Any) -> str:
    """Any plain value in flow style, long lists over several lines."""
    return _wrapped(value, 20, 4)


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return write_scalar(value)


def _wrapped(value: Any, used: int, indent: int) -> str:
    if not isinstance(value, list | tuple):
        return _flow(value)
    lines, line = [], "["
    for position, item in enumerate(value):
        word = _flow(item) + ("," if position < len(value) - 1 else "]")
        if len(line) + used + len(word) + 1 > WIDTH and line.strip() != "[":
            lines.append(line)
            line, used = " " * indent + word, 0
        else:
            line += word if line == "[" else f" {word}"
    return "\n".join([*lines, line])
