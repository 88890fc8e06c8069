"""Field mappings: build a step's input or an action's payload field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from standfast.errors import ExpressionError
from standfast.expressions.expression import Expression, parse
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.options import DEFAULT, ExpressionOptions

Change: TypeAlias = Callable[[Expression], object]


class FieldMapping:
    """Fields with their values: texts are expressions, other literals stay as they are."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields

    def check(self, schema: object) -> FieldMapping:
        """Return the mapping checked against a schema. Raises the first error with the field's name."""
        return FieldMapping(_each(self._fields, lambda expression: expression.check(schema)))

    def evaluate(self, data: Mapping[str, object]) -> dict[str, object]:
        """Return the fields with values from this data. Raises `ExpressionError` with the name of the failing field."""
        return _each(self._fields, lambda expression: expression.evaluate(data))


def parse_fields(document: Mapping[str, object], *, options: ExpressionOptions = DEFAULT) -> FieldMapping:
    """Parse a mapping whose texts are mapping expressions, within nested objects and lists up to the limit."""
    return FieldMapping(_read(document, options, options.limits.depth))


def _read(document: Mapping[str, object], options: ExpressionOptions, levels: int) -> dict[str, object]:
    return {name: _named(name, lambda form: _read_form(form, options, levels), form) for name, form in document.items()}


def _read_form(form: object, options: ExpressionOptions, levels: int) -> object:
    if isinstance(form, str):
        return parse(form, spelling="mapping", options=options)
    if not isinstance(form, Mapping | list):
        return form
    if levels == 1:
        raise ExpressionError("the mapping is nested too deeply", reason=ExpressionErrorCode.TOO_DEEP)
    if isinstance(form, list):
        return [_read_form(each, options, levels - 1) for each in form]
    return _read(form, options, levels - 1)


def _each(fields: Mapping[str, object], change: Change) -> dict[str, object]:
    return {name: _named(name, lambda form: _changed(form, change), form) for name, form in fields.items()}


def _changed(form: object, change: Change) -> object:
    match form:
        case Expression():
            return change(form)
        case dict():
            return _each(form, change)
        case list():
            return [_changed(each, change) for each in form]
        case _:
            return form


def _named(name: str, step: Callable[[object], object], form: object) -> object:
    """Apply a function to a field's form. Its errors name the field."""
    try:
        return step(form)
    except ExpressionError as error:
        raise ExpressionError(
            f"{name}: {error}", reason=error.reason, source=error.source, position=error.position
        ) from None
