"""Public facts in a few words, for people. What was read off the rows and not confirmed is named, never shown."""

from typing import Any

from understudy.schema.columns import Facts
from understudy.schema.rules import AnyRule, Dependence, Order

HIDDEN = "read off the rows, to be confirmed"
LONGEST = 6  # values that are listed one by one


def column_words(column: Facts) -> str:
    """A column's facts.

    >>> from understudy.schema import Image, Integer
    >>> column_words(Integer(low=0, high=9, missing=True))
    '0 to 9, may be missing'
    >>> column_words(Integer(low=0, high=9, source={"high": "data"}))
    'low 0, high: read off the rows, to be confirmed'
    >>> column_words(Image(height=28, width=20, channels=3))
    '28 x 20 pixels, in colour'
    """
    facts, private = column.facts(), set(column.from_data())
    facts.pop("kind")
    words = []
    if {"height", "width"} <= set(facts) and not private & {"height", "width", "channels"}:
        colour = "in colour" if facts.pop("channels", 1) == 3 else "grey"
        words.append(f"{facts.pop('height')} x {facts.pop('width')} pixels, {colour}")
    if "low" in facts and not private & {"low", "high"}:
        words.append(f"{facts.pop('low')} to {facts.pop('high')}")
    for fact, value in facts.items():
        if fact in private:
            continue
        words.append("may be missing" if fact == "missing" else _fact(fact, value))
    open_facts = [fact for fact in facts if fact in private]
    if open_facts:
        words.append(f"{', '.join(open_facts)}: {HIDDEN}")
    return ", ".join(words)


def rule_words(rule: AnyRule) -> str:
    """A rule in a few words.

    >>> from understudy.schema.rules import Combinations
    >>> rule_words(Order(column="ap_lo", at_most="ap_hi"))
    'ap_lo is at most ap_hi'
    >>> rule_words(Combinations(columns=["sex", "pregnant"], never=[["male", True]]))
    'sex, pregnant: 1 listed combination never occurs'
    """
    if isinstance(rule, Order):
        return f"{rule.column} is {'below' if rule.strict else 'at most'} {rule.upper}"
    if isinstance(rule, Dependence):
        return f"{', '.join(rule.columns)} {'give' if len(rule.columns) > 1 else 'gives'} {rule.give}"
    count = len(rule.rows)
    never = f"{count} listed combinations never occur" if count > 1 else "1 listed combination never occurs"
    only = f"only {count} listed combinations occur" if count > 1 else "only 1 listed combination occurs"
    return f"{', '.join(rule.columns)}: {only if rule.never is None else never}"


def _fact(fact: str, value: Any) -> str:
    if value is True:
        return fact.replace("_", " ")
    if isinstance(value, tuple | list):
        return f"{len(value)} {fact}" if len(value) > LONGEST else f"{fact} {', '.join(map(str, value))}"
    return f"{fact.replace('_', ' ')} {value}"
