"""What the authors of types have written about their fields, for readers of the OpenAPI document: a text below a field is about it."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_origin

import msgspec

from standfast.kernel.codec.type_cache import settled

Schema = dict[str, Any]


@functools.cache
def remarks_of(kind: type) -> Mapping[str, str]:
    """What is said about the fields of a type, by their names in JSON; those of the types that it is made from included."""
    told: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        told |= _written(base.__module__).get(base.__qualname__, {})
    names = {each.name: each.encode_name for each in msgspec.structs.fields(kind)}
    return {names[name]: text for name, text in told.items() if name in names}


def annotate(components: Mapping[str, Schema], kinds: Iterable[object]) -> None:
    """Put what is said about fields into the schemas of all types that these kinds are made of, and which of them are instants."""
    for found in _structs(kinds):
        kind = get_origin(found.cls) or found.cls  # A list of runs, and one of people, are of one class.
        told = remarks_of(kind)
        for schema, field in itertools.product(_schemas_of(components, kind), found.fields):
            shown: Schema = schema["properties"].get(field.encode_name, {})
            shown |= timed(shown, field.type)
            if field.encode_name in told:
                shown.setdefault("description", told[field.encode_name])


def timed(schema: Schema, kind: object) -> Schema:
    """The schema of a field that says so if it is an instant."""
    if isinstance(kind, msgspec.inspect.DateTimeType):
        return {**schema, "format": "date-time"}
    if isinstance(kind, msgspec.inspect.UnionType) and "anyOf" in schema:
        is_time = any(isinstance(each, msgspec.inspect.DateTimeType) for each in kind.types)
        ways = [
            {**each, "format": "date-time"} if is_time and each == {"type": "string"} else each
            for each in schema["anyOf"]
        ]
        return {**schema, "anyOf": ways}
    return schema


def _structs(kinds: Iterable[object]) -> Iterator[msgspec.inspect.StructType]:
    """All structs that these kinds are made of, each once."""
    known: set[type] = set()
    waiting: list[object] = list(msgspec.inspect.multi_type_info([settled(each) for each in kinds]))
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.StructType):
            if found.cls in known:
                continue
            known.add(found.cls)
            waiting += [each.type for each in found.fields]
            yield found
        elif isinstance(found, msgspec.inspect.Type):
            for name in found.__struct_fields__:
                value = getattr(found, name)
                waiting += value if isinstance(value, tuple) else [value]


def _schemas_of(components: Mapping[str, Schema], kind: type) -> Iterator[Schema]:
    """The schemas of a struct: one for each type that it is of, if it is of several; those that are called alike have their modules before them."""
    names, of_others = {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"}, f"{kind.__name__}_"
    is_general = bool(getattr(kind, "__parameters__", ()))
    for name, schema in components.items():
        if "properties" in schema and (name in names or (is_general and name.startswith(of_others))):
            yield schema


@functools.cache
def _written(module: str) -> Mapping[str, Mapping[str, str]]:
    """What a module says about the fields of its classes; nothing where only its compiled form is there."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    return {each.name: dict(_told(each)) for each in tree.body if isinstance(each, ast.ClassDef)}


def _told(written: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(written.body, written.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            yield field.target.id, " ".join(text.value.value.split())
