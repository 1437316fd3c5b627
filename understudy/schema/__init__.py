"""Public facts about a table: the only thing that may be known without spending privacy budget."""

from understudy.schema.columns import Boolean, Categorical, Column, Datetime, Id, Image, Integer, Ordinal, Real, Text
from understudy.schema.rules import AnyRule, Combinations, Dependence, Order
from understudy.schema.schema import Schema, json_schema

__all__ = [
    "AnyRule",
    "Boolean",
    "Categorical",
    "Column",
    "Combinations",
    "Datetime",
    "Dependence",
    "Id",
    "Image",
    "Integer",
    "Order",
    "Ordinal",
    "Real",
    "Schema",
    "Text",
    "json_schema",
]
