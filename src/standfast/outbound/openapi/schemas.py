"""Validates data by the schemas of an OpenAPI document.

Patterns are matched in linear time, as those of forms are. A pattern that `read_pattern` refuses, such as one with a
lookahead, is not checked: the other system checks its input anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from standfast.graph.values.forms import PatternError, read_pattern
from standfast.outbound.openapi.documents import OpenApiDocument

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError
    from referencing.jsonschema import SchemaRegistry

Errors: TypeAlias = "Iterator[ValidationError]"

_BASE: Final = "document:"
_MOST_FAULTS: Final = 3
_LONGEST_PATH: Final = 200
"""Characters of a path in messages: its names come from the data."""


class Schemas:
    """The schemas of one document."""

    def __init__(self, document: OpenApiDocument) -> None:
        self._document = document

    def faults(self, place: str, value: object) -> str:
        """Validate a value; return the error without the value, empty if it is valid."""
        try:
            errors = list(islice(self._validator(place).iter_errors(value), _MOST_FAULTS))
        except Exception as error:  # noqa: BLE001 - what is no schema makes the library fail in ways of its own
            return f"its schema at {place!r} cannot be used ({type(error).__name__})"
        return "; ".join(f"{_short(each.json_path)} does not hold to `{each.validator}`" for each in errors)

    def _validator(self, place: str) -> Draft202012Validator:
        return _validators()({"$ref": f"{_BASE}{place}"}, registry=self._registry)

    @cached_property
    def _registry(self) -> SchemaRegistry:
        from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

        whole = DRAFT202012.create_resource(self._document.tree)
        registry: SchemaRegistry = EMPTY_REGISTRY.with_resource(_BASE, whole)
        return registry


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"


def _is_found(pattern: str, text: str) -> bool | None:
    """Return whether a pattern matches somewhere in a text; None if that cannot be decided in bounded time."""
    try:
        made = read_pattern(pattern)
    except PatternError:
        return None
    return made.is_found_in(text) if made.allows(text) else None


@cache
def _validators() -> type[Draft202012Validator]:
    """Return the validator class of the package, with the keywords of patterns replaced."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    words = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "unevaluatedProperties": _unevaluated_properties,
    }
    return cast("type[Draft202012Validator]", extend(Draft202012Validator, words))  # type: ignore[no-untyped-call]


class _Judge(Protocol):
    """A validator for a part of a value and a part of a schema."""

    def descend(self, value: object, schema: object, path: str, schema_path: str | None = None) -> Errors: ...


def _error() -> ValidationError:
    from jsonschema import ValidationError

    return ValidationError("the value itself is not shown")


def _pattern(_judge: _Judge, sought: object, value: object, _schema: object) -> Errors:
    if isinstance(value, str) and isinstance(sought, str) and _is_found(sought, value) is False:
        yield _error()


def _pattern_properties(judge: _Judge, schemas: Mapping[str, object], value: object, _schema: object) -> Errors:
    if isinstance(value, dict):
        for sought, schema in schemas.items():
            for name in [each for each in value if _is_found(sought, each)]:
                yield from judge.descend(value[name], schema, path=name, schema_path=sought)


def _additional_properties(judge: _Judge, given: object, value: object, schema: Mapping[str, object]) -> Errors:
    if not isinstance(value, dict):
        return
    known = cast("Mapping[str, object]", schema.get("properties", {}))
    patterns = list(cast("Mapping[str, object]", schema.get("patternProperties", {})))
    for name in (each for each in value if each not in known):
        if any(_is_found(sought, name) is not False for sought in patterns):
            continue
        if isinstance(given, Mapping):
            yield from judge.descend(value[name], given, path=name)
        elif not given:
            yield _error()


def _unevaluated_properties(_judge: _Judge, _given: object, _value: object, _schema: object) -> Errors:
    return iter(())  # The package has its own pattern matching there.
