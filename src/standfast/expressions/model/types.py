"""Type rules: the kinds of values, and the result of each operator for each pair of kinds.

Every pair has a result or an error with a reason. Only the listed exact types are values, so that no method of an
object is called. Messages name kinds and never contents, which may be confidential.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from standfast.errors import ExpressionError, indefinite
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.numbers import align_numbers, number_text
from standfast.expressions.model.temporal import align_times, time_text
from standfast.expressions.model.tree import Operator

Kind: TypeAlias = Literal["null", "bool", "number", "string", "datetime", "date", "duration", "list", "object"]
Aligner: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]
Relation: TypeAlias = Callable[[object, object], bool]


class Unreadable(NamedTuple):
    """Replaces an object that must not be read. Reading a field of it raises an error with the reason."""

    why: str


KINDS: Final[dict[type, Kind]] = {
    NoneType: "null",
    bool: "bool",
    int: "number",
    float: "number",
    Decimal: "number",
    str: "string",
    datetime: "datetime",
    date: "date",
    timedelta: "duration",
    list: "list",
    dict: "object",
}


def _as_they_are(left: object, right: object) -> tuple[object, object]:
    return left, right


ORDERED: Final[dict[tuple[Kind, Kind], Aligner]] = {
    ("number", "number"): align_numbers,
    ("string", "string"): _as_they_are,
    ("duration", "duration"): align_times,
    ("duration", "string"): align_times,
    ("string", "duration"): align_times,
    ("date", "date"): align_times,
    ("date", "datetime"): align_times,
    ("date", "string"): align_times,
    ("datetime", "date"): align_times,
    ("datetime", "datetime"): align_times,
    ("datetime", "string"): align_times,
    ("string", "date"): align_times,
    ("string", "datetime"): align_times,
}
"""Ordered pairs, each with a function that makes both sides comparable in Python. All of them also have equality."""

EQUATED: Final[frozenset[Kind]] = frozenset({"null", "bool"})
"""Kinds without an order that equal only themselves. Lists are compared item by item, objects never."""


def kind_of(value: object) -> Kind:
    """Return the kind of a value. Raises for anything but plain data."""
    try:
        return KINDS[type(value)]
    except KeyError:
        raise ExpressionError(
            f"{indefinite(type(value))} is not a value that expressions know",
            reason=ExpressionErrorCode.UNSUPPORTED_TYPE,
        ) from None


def equal(left: object, right: object) -> bool:
    """Return whether two values are equal. Different kinds are unequal, without an error."""
    kinds = kind_of(left), kind_of(right)
    if kinds in ORDERED:
        first, second = ORDERED[kinds](left, right)
        return bool(first == second)
    if kinds[0] != kinds[1]:
        return False
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and all(map(_equal_items, left, right))
    if kinds[0] == "object":
        raise mismatch("objects cannot be compared; compare their fields")
    return left == right


def contains(haystack: object, needle: object) -> bool:
    """Return whether a list contains an equal item, or a string contains a substring."""
    if type(haystack) is list:
        return any(equal(item, needle) for item in haystack)
    if type(haystack) is str and type(needle) is str:
        return needle in haystack
    raise mismatch(f"'contains' needs a list, or two strings; not {kind_of(haystack)} and {kind_of(needle)}")


def is_in(needle: object, haystack: object) -> bool:
    """Return whether a list contains an equal item."""
    if type(haystack) is not list:
        raise mismatch(f"'in' needs a list on its right, not {kind_of(haystack)}")
    return contains(haystack, needle)


def starts_with(text: object, part: object) -> bool:
    """Return whether a string starts with another."""
    whole, beginning = _texts("starts_with", text, part)
    return whole.startswith(beginning)


def ends_with(text: object, part: object) -> bool:
    """Return whether a string ends with another."""
    whole, end = _texts("ends_with", text, part)
    return whole.endswith(end)


def text_of(value: object) -> str:
    """Return the text of a value in a template. Raises for null, lists and objects."""
    kind = kind_of(value)
    if kind not in TEXTS:
        raise mismatch(f"a text cannot show a value of kind {kind}")
    return TEXTS[kind](value)


def mismatch(message: str) -> ExpressionError:
    """Build the error for an unsupported pair of kinds."""
    return ExpressionError(message, reason=ExpressionErrorCode.TYPE_MISMATCH)


def _equal_items(left: object, right: object) -> bool:
    if "list" in (kinds := {kind_of(left), kind_of(right)}) or "object" in kinds:
        raise mismatch("lists are compared item by item, and an item here is itself a list or an object")
    return equal(left, right)


def _ordering(compare: Callable[[Any, Any], bool]) -> Relation:
    def ordered(left: object, right: object) -> bool:
        kinds = kind_of(left), kind_of(right)
        if kinds in ORDERED:
            return compare(*ORDERED[kinds](left, right))
        if "null" in kinds:
            raise ExpressionError(
                "null has no place in an order; test for null first", reason=ExpressionErrorCode.NULL_ORDER
            )
        raise mismatch(f"there is no order between {kinds[0]} and {kinds[1]}")

    return ordered


def _texts(word: str, left: object, right: object) -> tuple[str, str]:
    if type(left) is str and type(right) is str:
        return left, right
    raise mismatch(f"'{word}' needs two strings; not {kind_of(left)} and {kind_of(right)}")


def _unequal(left: object, right: object) -> bool:
    return not equal(left, right)


TEXTS: Final[dict[Kind, Callable[[Any], str]]] = {
    "bool": lambda value: "true" if value else "false",
    "number": number_text,
    "string": str,
    "datetime": time_text,
    "date": time_text,
    "duration": time_text,
}
"""Formatters of the kinds that a template can show."""

RELATIONS: Final[dict[Operator, Relation]] = {
    "==": equal,
    "!=": _unequal,
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "in": is_in,
    "contains": contains,
    "starts_with": starts_with,
    "ends_with": ends_with,
}
"""The relation of each operator."""
