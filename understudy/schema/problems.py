"""Turns pydantic's findings into sentences with a remedy. A schema holds public facts: its values may be shown."""

from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from understudy.errors import SchemaError

SHOWN = 20


def shown(value: Any) -> str:
    """A short form of a public value, for messages.

    >>> shown("x" * 100)
    "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."
    """
    if isinstance(value, list | tuple | dict | set):
        return f"a {'mapping' if isinstance(value, dict) else 'list'} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 41 else f"{text[:38]}..."


def sentences(error: ValidationError, facts: list[str]) -> list[str]:
    """One sentence a finding; `facts` are the names that would have been right."""
    return [_sentence(finding, facts) for finding in error.errors(include_url=False)]


def _sentence(finding: dict[str, Any], facts: list[str]) -> str:
    kind, place, given = finding["type"], finding["loc"], finding["input"]
    fact = str(place[0]) if place else ""
    if kind == "value_error":
        said = str(finding["ctx"]["error"])
        return f"{fact} {said}" if fact else said
    if kind == "missing":
        return f"{fact} is missing; add `{fact}: ...` from public knowledge"
    if kind == "extra_forbidden":
        near = get_close_matches(fact, facts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the facts are {', '.join(facts)}"
        return f"unknown fact {fact!r}; {hint}"
    if kind == "literal_error":
        return f"{fact} must be {finding['ctx']['expected']}, got {shown(given)}"
    return f"{fact} must be another type of value, got {shown(given)}"


class RefusalError(SchemaError):
    """A schema error that still knows its parts, so that an outer part can add where they are."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(_joined(problems))


class Declared(BaseModel):
    """Facts as a file declares them: nothing unknown, nothing converted, nothing changed later; errors in sentences."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def __init__(self, **facts: Any) -> None:
        problems: list[str] = []
        try:
            super().__init__(**facts)
        except ValidationError as error:
            problems = sentences(error, list(type(self).model_fields))
        if problems:
            raise RefusalError(problems)


def _joined(problems: list[str]) -> str:
    # All that was found, so that a steward mends a file in one go.
    if len(problems) == 1:
        return problems[0]
    lines = [f"  - {problem}" for problem in problems[:SHOWN]]
    if len(problems) > SHOWN:
        lines.append(f"  - and {len(problems) - SHOWN} more")
    return "\n".join([f"{len(problems)} things to mend in the schema:", *lines])
