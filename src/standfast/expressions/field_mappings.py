"""Structured mappings: what a step's input or an action's payload is made of, field by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from standfast.errors import ExpressionError
from standfast.expressions.expression import Expression, parse
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.options import DEFAULT, ExpressionOptions

Change: TypeAlias = Callable[[Expression], object]


class FieldMapping:
    """Fields and what fills them: an expression for every text, and every other literal as it is."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, object]) -> None:
        self._fields = fields

    def check(self, schema: object) -> FieldMapping:
        """The mapping made fit for data of this schema; raises the first problem there is, naming the field."""
        return FieldMapping(_each(self._fields, lambda expression: expression.check(schema)))

    def evaluate(self, data: Mapping[str, object]) -> dict[str, object]:
        """The fields filled from this data; raises `ExpressionError` naming the field that cannot be."""
        return _each(self._fields, lambda expression: expression.evaluate(data))


def parse_fields(document: Mapping[str, object], *, options: ExpressionOptions = DEFAULT) -> FieldMapping:
    """Read a mapping whose texts are mapping expressions, at any depth of objects and lists within the limit."""
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
    """What a step makes of a field's form; its errors say which field it was."""
    try:
        return step(form)
    except ExpressionError as error:
        raise ExpressionError(
            f"{name}: {error}", reason=error.reason, source=error.source, position=error.position
        ) from None
