"""Forms: what a person has to give with an answer, as JSON Schema (draft 2020-12).

A form is checked when its definition is compiled, and an answer when it is given. Both happen inside of decisions, so a form may not be able
to take long: it refers to nothing outside and not to itself, it has a bounded size, and its patterns are quick (`patterns`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from functools import cache
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

import msgspec

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.patterns import SlowPatternError, longest_text

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker, ValidationError

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
MOST_BYTES = 65_536
"""Of a form, as JSON."""
MOST_PARTS = 2_000
"""Schemas in a form, with each reference counted as what it stands for."""
DEEPEST = 16
"""Levels of schemas in a form, references included."""
MOST_FAULTS = 50
"""Faults of one answer that are told; nobody reads more."""

_ONE = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "dependentSchemas")
_REFUSED: Final = {
    "$id": "a form has one place, its step",
    "$anchor": "name it in $defs",
    "$dynamicRef": "refer to $defs by $ref",
    "$dynamicAnchor": "name it in $defs",
    "$recursiveRef": "refer to $defs by $ref",
    "$vocabulary": "leave it out",
    "patternProperties": "name the fields in properties",
    "unevaluatedProperties": "say additionalProperties",
    "unevaluatedItems": "say items",
}
"""Words that a form cannot have, and what to do instead."""
_DEFS = "#/$defs/"

_encode = msgspec.json.Encoder(order="deterministic").encode
Schema = Mapping[str, object]


# -- when the definition is compiled


def form_findings(node: str, form: dict[str, object]) -> Iterator[Diagnostic]:
    """What is wrong with a form, which is plain data."""
    for wrong in _wrong(form):
        yield Diagnostic("form", f"the form of {node!r} is no form: {wrong}", node)


def _wrong(form: dict[str, object]) -> list[str]:
    size = len(_encode(form))
    if size > MOST_BYTES:
        return [f"it takes {size} bytes; use at most {MOST_BYTES}"]
    draft = form.get("$schema", DRAFT)
    if str(draft).rstrip("#") != DRAFT:
        return [f"it says that it is written in {draft!r}; the one draft is {DRAFT!r}"]
    walk = _Walk(form)
    walk.look(form, "form", ())
    if walk.wrong:
        return list(dict.fromkeys(walk.wrong))
    from jsonschema import Draft202012Validator

    judge = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    found = sorted(judge.iter_errors(form), key=lambda error: error.json_path)
    return [
        f"{error.json_path.replace('$', 'form', 1)}: {error.message[:200]}; correct it" for error in found[:MOST_FAULTS]
    ]


class _Walk:
    """A look at every schema of a form, each reference followed to what it stands for."""

    def __init__(self, form: Schema) -> None:
        self._defs = form.get("$defs")
        self._parts = 0
        self.wrong: list[str] = []

    def look(self, schema: object, place: str, through: tuple[str, ...], depth: int = 0) -> None:
        self._parts += 1
        if isinstance(schema, bool):
            return
        if not isinstance(schema, dict):
            self.wrong.append(f"{place} is {schema!r}; a schema is an object, true or false")
        elif self._parts > MOST_PARTS:
            self.wrong.append(
                f"it has more than {MOST_PARTS} parts, references counted as what they stand for; ask for less"
            )
        elif depth > DEEPEST:
            self.wrong.append(f"it is nested deeper than {DEEPEST} levels; ask for less in one form")
        else:
            self._words(schema, place)
            self._reference(schema, place, through, depth)
            for inner, name in _inner(schema):
                if len(self.wrong) < MOST_FAULTS and self._parts <= MOST_PARTS:
                    self.look(inner, f"{place}.{name}", through, depth + 1)

    def _words(self, schema: Schema, place: str) -> None:
        self.wrong += [f"{place} has {word!r}; {remedy}" for word, remedy in _REFUSED.items() if word in schema]
        if "$defs" in schema and place != "form":
            self.wrong.append(f"{place} has '$defs'; keep them at the top of the form")
        pattern = schema.get("pattern")
        if not isinstance(pattern, str):
            return
        try:
            longest_text(pattern)
        except re.error as error:
            self.wrong.append(f"{place} has the pattern {pattern!r}, which cannot be read: {error}; correct it")
        except (SlowPatternError, RecursionError, OverflowError) as error:
            self.wrong.append(f"{place} has the pattern {pattern[:80]!r}, which can take for ever: {error}")

    def _reference(self, schema: Schema, place: str, through: tuple[str, ...], depth: int) -> None:
        if "$ref" not in schema:
            return
        name = str(schema["$ref"])
        if not name.startswith(_DEFS) or "/" in name.removeprefix(_DEFS):
            self.wrong.append(f"{place} refers to {name!r}; a form is whole in itself: refer to '{_DEFS}…'")
        elif not isinstance(self._defs, dict) or name.removeprefix(_DEFS) not in self._defs:
            self.wrong.append(f"{place} refers to {name!r}, which does not exist; add it, or correct the name")
        elif name in through:
            self.wrong.append(f"{name!r} refers to itself; write out as many levels as there can be")
        else:
            self.look(self._defs[name.removeprefix(_DEFS)], name, (*through, name), depth + 1)


def _inner(schema: Schema) -> Iterator[tuple[object, str]]:
    """The schemas directly inside of one."""
    for word in _ONE:
        if word in schema:
            yield schema[word], word
    for word in _LISTS:
        given = schema.get(word)
        yield from ((each, f"{word}[{index}]") for index, each in enumerate(given if isinstance(given, list) else ()))
    for word in _NAMED:
        given = schema.get(word)
        yield from ((each, f"{word}.{name}") for name, each in (given.items() if isinstance(given, dict) else ()))


# -- when an answer is given


class Form:
    """A form that was checked, ready for answers."""

    def __init__(self, form: Schema) -> None:
        self._form = form
        self._validator = _validators()(form, format_checker=_formats())

    def filled(self, given: object) -> object:
        """An answer with the defaults of all that it leaves out; no answer at all is an empty one, if the form asks for an object."""
        if given is None and (self._form.get("type") == "object" or "properties" in self._form):
            given = {}
        return self._fill(self._form, given)

    def faults(self, given: object) -> list[str]:
        """Everything that is wrong with an answer, each with its place."""
        found = [f"{_place(error)}: {error.message[:200]}" for error in self._validator.iter_errors(given)]
        told = sorted(dict.fromkeys(found))
        return told if len(told) <= MOST_FAULTS else [*told[:MOST_FAULTS], f"and {len(told) - MOST_FAULTS} more"]

    def _fill(self, schema: object, value: object) -> object:
        if not isinstance(schema, dict):
            return value
        if "$ref" in schema:
            named = cast("Schema", self._form["$defs"])[str(schema["$ref"]).removeprefix(_DEFS)]
            value = self._fill(named, value)
        for each in schema.get("allOf", ()):
            value = self._fill(each, value)
        if isinstance(value, dict):
            return self._fill_object(schema.get("properties", {}), value)
        if isinstance(value, list) and "items" in schema:
            start = len(schema.get("prefixItems", ()))
            return [*value[:start], *(self._fill(schema["items"], each) for each in value[start:])]
        return value

    def _fill_object(self, properties: Mapping[str, object], value: dict[str, object]) -> dict[str, object]:
        whole = dict(value)
        for name, schema in properties.items():
            if name in whole:
                whole[name] = self._fill(schema, whole[name])
            elif isinstance(schema, dict) and "default" in schema:
                whole[name] = self._fill(schema, schema["default"])
        return whole


def _place(error: ValidationError) -> str:
    """Where a fault is."""
    path = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path)
    return f"data{path}"


@cache
def _validators() -> type[Draft202012Validator]:
    """The validator of the package, but for two words that can take long there."""
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    def pattern(_validator: object, sought: str, value: object, _schema: object) -> Iterator[ValidationError]:
        if not isinstance(value, str):
            return
        longest = _longest(sought)
        if len(value) > longest:
            yield ValidationError(f"it has {len(value)} characters; the pattern {sought!r} allows at most {longest}")
        elif not re.search(sought, value):
            yield ValidationError(f"{value[:80]!r} does not match {sought!r}")

    def unique(_validator: object, wanted: object, value: object, _schema: object) -> Iterator[ValidationError]:
        if wanted and isinstance(value, list) and len({_encode(each) for each in value}) < len(value):
            yield ValidationError("it has the same element twice")

    made = extend(Draft202012Validator, {"pattern": pattern, "uniqueItems": unique})  # type: ignore[no-untyped-call]
    return cast("type[Draft202012Validator]", made)


@cache
def _longest(pattern: str) -> int:
    return longest_text(pattern)


@cache
def _formats() -> FormatChecker:
    """The formats that are looked at; others are left to whoever shows the form."""
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, read in _READERS.items():
        checker.checkers[name] = (_reading(read), ValueError)
    return checker


def _reading(read: Callable[[str], object]) -> Callable[[object], bool]:
    def is_right(value: object) -> bool:
        if isinstance(value, str):
            read(value)
        return True

    return is_right


def _email(text: str) -> None:
    name, _, host = text.rpartition("@")
    if not name or not host or any(each.isspace() for each in text):
        raise ValueError("no address")


def _moment(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("no time zone")


_READERS: Final = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "date-time": _moment,
    "email": _email,
    "uuid": UUID,
}


def faults_told(node: str, faults: list[str]) -> str:
    """The faults of an answer in one sentence."""
    return f"the form of {node!r} is not filled in as it asks: {'; '.join(faults)}"
