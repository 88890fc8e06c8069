"""The expressions of a process: what they can read, and the form in which a graph stores them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from standfast.expressions import ExpressionOptions, Type, parse
from standfast.expressions.model.options import Spelling
from standfast.graph.index import EVENT, WORKFLOW
from standfast.graph.model import Stored
from standfast.graph.source_files.values import Condition, Formula
from standfast.machine.model.queries.expression_scope import PROCESS

RESPONSE: Final = "response"
_HEADER: Final = re.compile(r"response\.headers(?:\.(?P<name>[^.\[]+)|\[\"(?P<quoted>[^\"]+)\"\])")
_KNOWN: Final = PROCESS.schema.fields or {}
MOST: Final = 300_000
"""Characters of all different expressions of a file: nothing else that stands in so few bytes takes so long to read."""
EACH: Final = 10
"""Characters that each expression counts for besides its own."""
_REMEMBERED: Final = 20_000
"""Expressions that are kept, so that the compiler has what the checks have read: hardly a file has more within these limits."""


Place = Literal["condition", "given", "kept", "data", "awaited", "trigger"]
"""Where an expression stands, which settles what it can read: on a way, in what an operation is given, in what is kept of its response; where
nothing but the state is known; where an event is asked whether it is the one; where one starts something."""

_COMMON: Final = ("workflow", "context", "actor", "now")
_NAMES: Final[dict[Place, tuple[str, ...]]] = {
    "condition": (*_COMMON, "input"),
    "given": _COMMON,
    "kept": (*_COMMON, RESPONSE),
    "data": (WORKFLOW,),
    "awaited": (WORKFLOW, EVENT),
    "trigger": (EVENT, "key"),
}
_SCHEMAS: Final = {
    place: Type("object", fields={name: _KNOWN.get(name, Type("any")) for name in names})
    for place, names in _NAMES.items()
}
_OPTIONS: Final = {place: ExpressionOptions(namespaces=frozenset(names)) for place, names in _NAMES.items()}


class ExpressionBudget:
    """How much of its expressions a file may have read; what comes again costs nothing."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._left = MOST

    def covers(self, given: object) -> bool:
        """Whether there is room for one more expression."""
        text = given if isinstance(given, str) else repr(given)
        if text not in self._known:
            self._known.add(text)
            self._left -= len(text) + EACH
        return self._left >= 0


def headers_of(formulas: Iterable[Formula]) -> list[str]:
    """The headers of an answer that some mappings read, in lower case: `response.headers.etag`, `response.headers['x-id']`."""
    texts = [each for each in formulas if isinstance(each, str)]
    names = [name for each in texts for name in _read(each, "mapping", "kept").variables]
    found = [_HEADER.match(name) for name in names]
    return sorted({(each["name"] or each["quoted"]).lower() for each in found if each is not None})


def condition_of(given: Condition, place: Place = "condition") -> Stored:
    """The stored form of a condition; ExpressionError if it is none."""
    if isinstance(given, str):
        return _read(given, "native", place).stored
    return _read(json.dumps(given), "json", place).stored


def mapping_of(given: Formula, place: Place) -> Stored:
    """The stored form of a mapping; ExpressionError if it is none. What is no text stands for itself."""
    return _read(given if isinstance(given, str) else json.dumps(given), "mapping", place).stored


class _Read(NamedTuple):
    """What is made of the text of an expression."""

    stored: Stored
    variables: tuple[str, ...]


@lru_cache(maxsize=_REMEMBERED)
def _read(source: str, spelling: Spelling, place: Place) -> _Read:
    read = parse(source, spelling=spelling, options=_OPTIONS[place])
    checked = read.check(_SCHEMAS[place], expects=None if spelling == "mapping" else "bool")
    return _Read(checked.to_data(), read.variables)
