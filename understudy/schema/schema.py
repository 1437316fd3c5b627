"""A schema: everything that may be known about a table without looking at its rows."""

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BeforeValidator, field_validator, model_validator

from understudy.errors import SchemaError
from understudy.notebook import card
from understudy.schema import text as schema_text
from understudy.schema.columns import KINDS, Column, Facts, Image
from understudy.schema.fields import Source, Whole, Words, is_text
from understudy.schema.problems import Declared, RefusalError, shown
from understudy.schema.rules import AnyRule, Dependence, read_rule
from understudy.schema.shown import HIDDEN, column_words, rule_words

if TYPE_CHECKING:
    from understudy.schema.ruleset import Ruleset

OWN_FACTS = ("rows", "label", "missing_values")


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise ValueError(f"must be a list such as ['?', NA], got {shown(values)}")
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values):
        raise ValueError("must hold text or numbers; quote the words")
    return tuple(str(value).strip() for value in values)


class Schema(Declared):
    """Columns by name, in order, with an optional label and an optional public number of rows.

    `missing_values` lists what a file writes for a missing cell, besides nothing; a column's declared values win.
    `rules` are public facts between columns, which all synthetic rows hold (docs/rules.md).

    >>> Schema.loads("columns: {age: {kind: integer, low: 17, high: 90}}").modelled["age"].high
    90
    """

    format: Literal[1] = 1
    rows: Whole | None = None
    label: Words | None = None
    missing_values: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    source: Source = "public"
    columns: dict[str, Column]
    rules: tuple[AnyRule, ...] = ()

    @field_validator("columns", mode="before")
    @classmethod
    def _columns(cls, columns: Any) -> dict[str, Facts]:
        if not isinstance(columns, Mapping) or not columns:
            raise ValueError("must be a mapping from column names to their facts, with at least one column")
        built: dict[str, Facts] = {}
        problems: list[str] = []
        for name, facts in columns.items():
            try:
                built[name] = _column(name, facts)
            except RefusalError as refusal:
                problems += [f"column {shown(name)}: {problem}" for problem in refusal.problems]
        if problems:
            raise RefusalError(problems)
        return built

    @field_validator("rules", mode="before")
    @classmethod
    def _rules(cls, rules: Any) -> tuple[AnyRule, ...]:
        if not isinstance(rules, list | tuple):
            raise ValueError(f"must be a list of rules such as [{{column: A, at_most: B}}], got {shown(rules)}")
        built, problems = [], []
        for number, rule in enumerate(rules, start=1):
            try:
                built.append(read_rule(rule))
            except RefusalError as refusal:
                problems += [f"rule {number}: {problem}" for problem in refusal.problems]
        if problems:
            raise RefusalError(problems)
        return tuple(built)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"rows must be at least 1, got {self.rows}; give a public round number")
        if not self.modelled and not self.images:
            raise ValueError("columns must have at least one that is not id or text; nothing would be modelled")
        if len(self.images) > 1:
            raise ValueError(f"columns must have at most one of kind image, got {len(self.images)}; keep one of them")
        if self.label is not None and self.label not in self.modelled:
            why = "is of a kind that is not modelled" if self.label in self.columns else "is not among the columns"
            why = "is an image" if self.label in self.images else why
            raise ValueError(f"label {self.label!r} {why}; name a modelled column, or leave label out")
        if isinstance(self.source, dict) and set(self.source) - set(OWN_FACTS):
            raise ValueError(f"source marks the facts {', '.join(OWN_FACTS)} only; columns have a source of their own")
        if self.rules:
            from understudy.schema.ruleset import check_rules  # most schemas have none, and need no arrays

            check_rules(self.modelled, self.rules)
        return self

    @property
    def modelled(self) -> dict[str, Column]:
        """The columns that are modelled and have one code a row (not id, not text, not image), in order."""
        return {name: column for name, column in self.columns.items() if column.modelled}

    @property
    def images(self) -> dict[str, Image]:
        """The image column, if there is one: at most one a schema."""
        return {name: column for name, column in self.columns.items() if isinstance(column, Image)}

    @property
    def determined(self) -> dict[str, Dependence]:
        """The columns that a rule gives from others, with that rule: there is nothing to learn about them."""
        return {rule.give: rule for rule in self.rules if isinstance(rule, Dependence)}

    def ruleset(self) -> "Ruleset":
        """The rules made ready for rows of codes."""
        from understudy.schema.ruleset import make_ruleset

        return make_ruleset(self.modelled, self.rules)

    def learnt(self) -> "Schema":
        """What a method has to learn: without determined columns (a label stays), with the rules among the rest."""
        dropped = set(self.determined) - {self.label}
        if not dropped:
            return self
        columns = {name: column for name, column in self.columns.items() if name not in dropped}
        rules = tuple(rule for rule in self.rules if not dropped & set(rule.involved))
        return self.model_copy(update={"columns": columns, "rules": rules})

    def unconfirmed(self) -> list[tuple[str | None, str]]:
        """Facts that were read off the rows, as (column, fact); the column is None for the schema's own facts."""
        own = self.source if isinstance(self.source, dict) else dict.fromkeys(self._own_facts(), self.source)
        found: list[tuple[str | None, str]] = [(None, fact) for fact, mark in own.items() if mark == "data"]
        for name, column in self.columns.items():
            found += [(name, fact) for fact in column.from_data()]
        return found

    def confirmed(self) -> "Schema":
        """The same facts, vouched for as public knowledge by whoever calls this."""
        columns = {name: column.model_copy(update={"source": "public"}) for name, column in self.columns.items()}
        return self.model_copy(update={"source": "public", "columns": columns})

    def digest(self) -> str:
        """SHA-256 over the facts and the order of columns, not over the order of a column's facts or `source`."""
        facts = [self.format, self._own_facts(), [[name, column.facts()] for name, column in self.columns.items()]]
        if self.rules:  # schemas without rules keep the digests that they had before there were any
            facts.append([rule.facts() for rule in self.rules])
        canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=_json_value)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """For all of pydantic's reprs: counts, since a draft's bounds and values were read off private rows."""
        private = {fact for column, fact in self.unconfirmed() if column is None}
        own = [(fact, getattr(self, fact)) for fact in ("rows", "label") if fact not in private]
        own += [("rules", len(self.rules))] if self.rules else []
        return [("columns", len(self.columns)), *own, ("unconfirmed", len(self.unconfirmed()))]

    def _repr_html_(self) -> str:
        open_facts = self.unconfirmed()
        private = {fact for column, fact in open_facts if column is None}
        own = [(fact, HIDDEN if fact in private else value) for fact, value in self._own_facts().items()]
        own += [(f"rule {number}", rule_words(rule)) for number, rule in enumerate(self.rules, start=1)]
        notes = [f"{len(open_facts)} facts were read off the rows: fit refuses them until they are confirmed."]
        return card(
            "Schema",
            own,
            headings=("column", "kind", "facts"),
            rows=[(name, column.kind, column_words(column)) for name, column in self.columns.items()],
            notes=notes if open_facts else (),
        )

    def _own_facts(self) -> dict[str, Any]:
        return {fact: getattr(self, fact) for fact in OWN_FACTS if getattr(self, fact) not in (None, ())}

    def as_dict(self) -> dict[str, Any]:
        """Plain Python, without defaults: what the file holds."""
        columns = {name: _with_source(column.facts(), column.source) for name, column in self.columns.items()}
        rules = {"rules": [rule.facts() for rule in self.rules]} if self.rules else {}
        return _with_source({"format": self.format, **self._own_facts()}, self.source) | {"columns": columns} | rules

    def dumps(self, *, style: Literal["yaml", "json"] = "yaml", header: str = "") -> str:
        """YAML with one column a line where it is short, or JSON; `header` becomes YAML comments on top."""
        plain = self.as_dict()
        if style == "json":
            return json.dumps(plain, indent=2, ensure_ascii=False, default=_json_value) + "\n"
        lines = [f"# {line}".rstrip() for line in header.splitlines()]
        columns, rules = plain.pop("columns"), plain.pop("rules", [])
        lines += [f"{fact}: {schema_text.write_value(value)}" for fact, value in plain.items()]
        lines.append("columns:")
        lines += [schema_text.write_entry(name, facts) for name, facts in columns.items()]
        lines += ["rules:", *map(schema_text.write_item, rules)] if rules else []
        return "\n".join(lines) + "\n"

    @classmethod
    def loads(cls, text: str) -> "Schema":
        """From YAML or JSON text."""
        plain = schema_text.parse(text)
        if not isinstance(plain, dict):
            raise SchemaError("a schema must be a mapping with `columns:`; see `understudy draft`")
        if plain.get("format", 1) != 1:
            raise SchemaError(
                f"format must be 1, got {shown(plain['format'])}; a newer version of understudy may read it"
            )
        return cls(**plain)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Schema":
        """From a file of YAML or JSON."""
        try:
            text, problem = Path(path).read_bytes().decode("utf-8-sig"), ""
        except FileNotFoundError:
            problem = "there is no such file; `understudy draft TABLE -o FILE` writes a first one"
        except OSError as error:
            problem = f"it cannot be read ({error.strerror})"
        except UnicodeDecodeError:
            problem = "it is not UTF-8 text; is it the table, not the schema?"
        if problem:
            raise SchemaError(f"schema {str(path)!r}: {problem}")
        return cls.loads(text)

    def save(self, path: str | PathLike[str], *, header: str = "") -> None:
        """To a file: JSON if its name ends in .json, else YAML."""
        path = Path(path)
        text = self.dumps(style="json") if path.suffix == ".json" else self.dumps(header=header)
        problem = ""
        try:
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            problem = error.strerror or "it cannot be written"
        if problem:
            raise SchemaError(f"schema {str(path)!r}: {problem}; choose another place to write it to")


def _column(name: Any, facts: Any) -> Facts:
    if not is_text(name) or not name.strip() or name != name.strip():
        raise RefusalError(["a column's name must be text without blanks around it"])
    if len(schema_text.write_scalar(name)) > schema_text.LONGEST_KEY:
        # Such a schema could be written and never read again, and with it every model that was fitted with it.
        raise RefusalError([f"a column's name must have at most {schema_text.LONGEST_KEY} letters; shorten it"])
    if isinstance(facts, Facts):
        return facts
    if not isinstance(facts, Mapping) or not all(isinstance(fact, str) for fact in facts):
        raise RefusalError([f"must be a mapping such as {{kind: boolean}}, got {shown(facts)}"])
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        given = f"got {shown(kind)}" if "kind" in facts else "but it is missing"
        raise RefusalError([f"kind must be one of {', '.join(KINDS)}, {given}"])
    return KINDS[kind](**facts)


def _with_source(facts: dict[str, Any], source: Any) -> dict[str, Any]:
    return facts if source in ("public", {}) else {**facts, "source": source}


def _json_value(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"no JSON for {type(value).__name__}")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of schema files, for editors that complete and check while typing."""
    return Schema.model_json_schema()
