"""Whether values are those that the fields of a document ask for; every fault with its place, in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from typing import Final

from standfast.errors import ExpressionError, indefinite
from standfast.expressions.model.temporal import in_utc, read_time
from standfast.graph.document_index import DocumentIndex
from standfast.graph.document_spec import DocumentField

Data = dict[str, object]
MOST_FAULTS = 20
"""Faults that a message lists."""


_PLAIN: Final[dict[str, tuple[type, str]]] = {
    "int": (int, "a whole number"),
    "money": (int, "a whole number of the smallest unit"),
    "bool": (bool, "true or false"),
}


_MARKED: Final = "redacted:"
_MARK: Final = re.compile(r"redacted:[0-9a-f]{64}")


def is_mark(value: object) -> bool:
    """Whether a value is what a redaction has put in the place of one."""
    return isinstance(value, str) and value.startswith(_MARKED) and _MARK.fullmatch(value) is not None


def marks_of(data: Data, before: Data) -> list[str]:
    """The fields that are still as a redaction has left them: there is no value that could be wrong."""
    marked = [name for name, value in data.items() if isinstance(value, str) and value.startswith(_MARKED)]
    return [name for name in marked if is_mark(data[name]) and before.get(name) == data[name]]


def faults_of(index: DocumentIndex, data: Data, *, kept: Collection[str] = ()) -> list[str]:
    """What is wrong with the content of a whole document; `kept` are fields that a redaction has left as they are."""
    fields, known = index.spec.fields, data
    if kept:
        fields = {name: field for name, field in fields.items() if name not in kept}
        known = {name: value for name, value in data.items() if name not in kept}
    return [fault for _, fault in zip(range(MOST_FAULTS), _object(fields, known, ""), strict=False)]


def defaults_of(index: DocumentIndex) -> Data:
    """What a document is created with."""
    return {name: each.default for name, each in index.spec.fields.items() if each.default is not None}


def with_computed(index: DocumentIndex, data: Data) -> Data:
    """The content with its computed fields anew; what cannot be computed has no value. One that reads what was redacted stays as it is."""
    computed = dict(data)
    for name, formula in index.computed.items():
        if any(is_mark(computed.get(each)) for each in formula.reads):
            continue
        try:
            found = formula.value({"entity": computed})
        except ExpressionError:
            found = None
        if found is None:
            computed.pop(name, None)
        else:
            computed[name] = found
    return computed


def is_same(one: object, other: object) -> bool:
    """Whether two values are the same as they are written: `1`, `1.0` and `true` are three, although Python takes them for one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return one == other


def holds_any(field: DocumentField, wanted: Callable[[DocumentField], bool]) -> bool:
    """Whether a field is of a kind, or anything in it."""
    inner = (*field.fields.values(), *(() if field.items is None else (field.items,)))
    return wanted(field) or any(holds_any(each, wanted) for each in inner)


def masked(field: DocumentField, value: object, hides: Callable[[DocumentField], bool], mask: object) -> object:
    """A value with a mask in the place of whatever of it is not shown."""
    if hides(field):
        return mask
    if isinstance(value, list) and field.items is not None:
        inner = field.items
        return [masked(inner, each, hides, mask) for each in value]
    if isinstance(value, dict) and field.fields:
        known = field.fields
        return {name: masked(known[name], each, hides, mask) if name in known else each for name, each in value.items()}
    return value


CHANGED: Final[Data] = {"changed": True}
"""All that is told of a field whose values are sensitive."""


def differences_of(
    fields: Mapping[str, DocumentField], before: Mapping[str, object], changes: Mapping[str, object]
) -> Data:
    """What changes, each field with the values before and after; of what is sensitive only that it does."""
    return {name: _difference(fields.get(name), before.get(name), value) for name, value in changes.items()}


def _difference(field: DocumentField | None, before: object, after: object) -> object:
    if field is None:
        return [before, after]
    return CHANGED if field.sensitive else [masked(field, each, _is_sensitive, CHANGED) for each in (before, after)]


def _is_sensitive(field: DocumentField) -> bool:
    return field.sensitive


def not_given(index: DocumentIndex, changes: Mapping[str, object], *, is_workflow: bool) -> list[str]:
    """Fields that nobody gives: computed ones, and those of the workflow, unless it is the one who gives them."""
    found = [f"{name!r} is computed" for name in changes if name in index.computed]
    if not is_workflow:
        found += [f"{name!r} is set by the workflow" for name in changes if name in index.system]
    return found


def _object(fields: Mapping[str, DocumentField], data: Mapping[str, object], place: str) -> Iterator[str]:
    for name in data:
        if name not in fields:
            yield f"{place}{name}: there is no such field"
    for name, field in fields.items():
        value = data.get(name)
        if value is not None:
            yield from value_faults(field, value, f"{place}{name}")
        elif field.required and field.type != "computed":
            yield f"{place}{name}: a value is required"


def value_faults(field: DocumentField, value: object, place: str) -> Iterator[str]:
    """What is wrong with a value that a field is to have."""
    if isinstance(value, str) and value.startswith(_MARKED) and is_mark(value):
        yield f"{place}: what a redaction left is no value; leave the field out, or give it anew"
        return
    match field.type:
        case "string" | "ref" | "enum" | "date" | "datetime":
            yield from _text(field, value, place)
        case "int" | "money" | "bool":
            wanted, told = _PLAIN[field.type]
            if type(value) is not wanted:
                yield f"{place}: give {told}, not {indefinite(type(value))}"
        case "list" | "object":
            yield from _parts(field, value, place)
        case "computed":
            pass


def _parts(field: DocumentField, value: object, place: str) -> Iterator[str]:
    if field.type == "list" and isinstance(value, list):
        for number, each in enumerate(value if field.items is not None else ()):
            yield from value_faults(field.items, each, f"{place}[{number}]") if field.items else ()
    elif field.type == "object" and isinstance(value, dict):
        yield from _object(field.fields, value, f"{place}.") if field.fields else ()
    else:
        yield f"{place}: give {indefinite(list if field.type == 'list' else dict)}, not {indefinite(type(value))}"


def _text(field: DocumentField, value: object, place: str) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{place}: give a text, not {indefinite(type(value))}"
    elif field.type == "enum" and value not in field.values:
        yield f"{place}: it can be {', '.join(map(repr, field.values))}"
    elif field.type == "ref" and not value:
        yield f"{place}: name a document"
    elif field.type == "date" and not _is_date(value):
        yield f"{place}: give a date as 2026-11-17"
    elif field.type == "datetime" and not _is_instant(value):
        yield f"{place}: give an instant with its zone, as 2026-11-17T09:30:00+00:00"


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_instant(text: str) -> bool:
    """Whether it is one that expressions read too: they would stop at what they cannot compare."""
    try:
        found = read_time(text, "datetime")
        return isinstance(found, datetime) and bool(in_utc(found))
    except ExpressionError:
        return False
