"""Converts the tree of a file to the structs of a format. Findings have positions, and all valid parts are read.

The format is declared once, as types. The reader contains no names of a format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar, cast

from msgspec import inspect

from standfast.errors import Diagnostic
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.source_files.parsing import MOST_FINDINGS, shown
from standfast.graph.source_files.tree import Fields, FileField, FileItems, Mark, Scalar, Tree, plain
from standfast.graph.source_files.values import DURATION, REMEDIES
from standfast.kernel.durations import HOW_TO_WRITE, duration_of

WRONG: Final = object()
"""Result of an invalid part."""

T = TypeVar("T")

_Struct = inspect.StructType


class EnoughError(Exception):
    """The limit of findings is reached."""


class Findings:
    """The findings in a file, by position."""

    def __init__(self, found: list[Diagnostic]) -> None:
        self.found = found

    def add(self, code: str, message: str, at: Mark) -> None:
        """Add a finding."""
        finding = Diagnostic(code, message, str(at))
        if finding in self.found[-2:]:
            return  # An alias repeats the same mistake.
        self.found.append(finding)
        if len(self.found) >= MOST_FINDINGS:
            self.found.append(Diagnostic("too_many_findings", "there is more; mend these first", str(at)))
            raise EnoughError


class StructReader:
    """Reads one file."""

    def __init__(
        self, findings: Findings, *, noun: str = "step", stand_in: Callable[[Fields], object] | None = None
    ) -> None:
        self._findings = findings
        self._stand_in = stand_in
        """Builds a substitute for an unreadable tagged struct, so that references to it resolve. Returns None if it
        cannot."""
        self._noun = noun
        """Word for tagged structs in messages."""
        self._places: dict[int, Fields] = {}
        """Positions of the structs that were read, by identity."""
        self._kept: list[object] = []
        """The structs themselves, so that no identity is reused."""

    def read(self, form: type[T], tree: Tree) -> T | None:
        """Return the file as this struct, or None if its top level is invalid."""
        found = self._read(_type_of(cast("Hashable", form)), tree, "the file")
        return None if found is WRONG else cast("T", found)

    def at(self, part: object, name: str = "") -> Mark:
        """Return the position of a struct or of one of its fields. A missing field has the position of the struct."""
        place = self._places[id(part)]
        field = place.fields.get(name)
        return place.at if field is None else field.tree.at

    def has(self, part: object, name: str) -> bool:
        """Return whether a field was written."""
        return name in self._places[id(part)].fields

    def inner(self, part: object, name: str, key: str) -> Mark:
        """Return the position of a name inside a field."""
        field = self._places[id(part)].fields.get(name)
        if field is None or not isinstance(field.tree, Fields) or key not in field.tree.fields:
            return self.at(part, name)
        return field.tree.fields[key].name

    def within(self, part: object, name: str, path: Sequence[str | int]) -> Mark:
        """Return the position of a nested part of a field by its path, as far as the path was written."""
        field = self._places[id(part)].fields.get(name)
        if field is None:
            return self.at(part, name)
        tree = field.tree
        for each in path:
            if isinstance(tree, Fields) and isinstance(each, str) and each in tree.fields:
                tree = tree.fields[each].tree
            elif isinstance(tree, FileItems) and isinstance(each, int) and each < len(tree.items):
                tree = tree.items[each]
            else:
                break
        return tree.at

    def items(self, part: object, name: str) -> list[Tree]:
        """Return the written items of a list, valid or not."""
        field = self._places[id(part)].fields.get(name)
        return field.tree.items if field is not None and isinstance(field.tree, FileItems) else []

    # -- types

    def _read(self, kind: inspect.Type, tree: Tree, what: str) -> object:
        match kind:
            case inspect.Metadata(type=inner):
                return self._read(inner, tree, what)
            case inspect.StructType():
                return self._struct(kind, tree, what)
            case inspect.UnionType(types=types):
                return self._union(types, tree, what)
            case inspect.ListType():
                return self._list(kind, tree, what)
            case inspect.DictType():
                return self._dict(kind, tree, what)
            case inspect.LiteralType(values=values):
                return self._word(cast("tuple[str, ...]", values), tree, what)
            case inspect.CustomType():
                return plain(tree)
            case _:
                return self._scalar((kind,), tree, what)

    def _struct(self, kind: _Struct, tree: Tree, what: str) -> object:
        if not isinstance(tree, Fields):
            return self._wrong_type(tree, what, f"an object with {_names(kind)}")
        values: dict[str, object] = {}
        is_sound = True
        for name, field, given in self._fields(kind, tree, what):
            value = self._read(field.type, given.tree, f"`{name}` of {what}" if what else f"`{name}`")
            if value is not WRONG:
                values[field.name] = value
            elif field.required:
                is_sound = False
        missing = [each.encode_name for each in kind.fields if each.required and each.encode_name not in tree.fields]
        for name in missing:
            self._findings.add("missing_field", f"{what} has no `{name}`; give it", tree.at)
        if missing or not is_sound:
            return WRONG
        return self._placed(kind.cls(**values), tree)

    def _placed(self, part: object, tree: Fields) -> object:
        self._places[id(part)] = tree
        self._kept.append(part)
        return part

    def _fields(self, kind: _Struct, tree: Fields, what: str) -> list[tuple[str, inspect.Field, FileField]]:
        """Return the known fields, and report the others."""
        known, found = _fields_of(kind.cls), []
        for name, given in tree.fields.items():
            field = known.get(name)
            if field is not None:
                found.append((name, field, given))
            elif name != kind.tag_field:
                told = suggestion(name, known) or f"; there are {_names(kind)}"
                self._findings.add("unknown_field", f"{what} has no {shown(name)}{told}", given.name)
        return found

    def _union(self, types: Sequence[inspect.Type], tree: Tree, what: str) -> object:
        """Return a value of a union. The written value selects the type."""
        structs = [each for each in map(_bare, types) if isinstance(each, inspect.StructType)]
        if structs and structs[0].tag_field is not None:
            return self._tagged(structs, tree, what)
        words = next((each for each in map(_bare, types) if isinstance(each, inspect.LiteralType)), None)
        if words is not None and plain(tree) is not None:
            return self._read(words, tree, what)
        if isinstance(tree, Fields):
            for each in types:
                if isinstance(_bare(each), inspect.StructType | inspect.DictType):
                    return self._read(each, tree, what)
        listed = next((each for each in map(_bare, types) if isinstance(each, inspect.ListType)), None)
        if listed is not None and isinstance(tree, FileItems):
            return self._list(listed, tree, what)
        several = inspect.StructType | inspect.DictType | inspect.ListType
        simple = [each for each in types if not isinstance(_bare(each), several)]
        has_object = any(isinstance(_bare(each), inspect.StructType | inspect.DictType) for each in types)
        others = " or ".join([*(["an object"] if has_object else []), *(["a list"] if listed is not None else [])])
        return self._scalar(simple, tree, what, others=others)

    def _tagged(self, kinds: Sequence[_Struct], tree: Tree, what: str) -> object:
        tag_field = cast("str", kinds[0].tag_field)
        if not isinstance(tree, Fields):
            return self._wrong_type(tree, what, f"an object with `{tag_field}`")
        part = self._one_of(kinds, tag_field, tree, what)
        if part is not WRONG or self._stand_in is None:
            return part
        made = self._stand_in(tree)
        return WRONG if made is None else self._placed(made, tree)

    def _one_of(self, kinds: Sequence[_Struct], tag_field: str, tree: Fields, what: str) -> object:
        by_tag = {str(each.tag): each for each in kinds}
        given = tree.fields.get(tag_field)
        if given is None:
            self._findings.add("missing_field", f"{what} has no `{tag_field}`; it can be {', '.join(by_tag)}", tree.at)
            return self._untagged(kinds, tree)
        tag = plain(given.tree)
        kind = by_tag.get(tag) if isinstance(tag, str) else None
        if kind is None:
            told = suggestion(tag, by_tag) if isinstance(tag, str) else ""
            message = f"`{tag_field}` is {shown(tag)}; it can be {', '.join(by_tag)}{told}"
            self._findings.add("word", message, given.tree.at)
            return self._untagged(kinds, tree)
        return self._struct(kind, tree, f"a {self._noun} of the type `{tag}`")

    def _untagged(self, kinds: Sequence[_Struct], tree: Fields) -> object:
        """Report mistakes that do not depend on the type: unknown names, and common fields with invalid values."""
        known: dict[str, list[inspect.Field]] = {}
        for name, field in (each for kind in kinds for each in _fields_of(kind.cls).items()):
            known.setdefault(name, []).append(field)
        what = f"a {self._noun}"
        for name, given in tree.fields.items():
            fields = known.get(name, [])
            if not fields and name != kinds[0].tag_field:
                told = suggestion(name, known) or f"; there are {', '.join(f'`{each}`' for each in known)}"
                self._findings.add("unknown_field", f"{what} of no type has {shown(name)}{told}", given.name)
            if fields and all(each.type == fields[0].type for each in fields):
                self._read(fields[0].type, given.tree, f"`{name}` of {what}")
        for name, fields in known.items():
            if len(fields) == len(kinds) and all(each.required for each in fields) and name not in tree.fields:
                self._findings.add("missing_field", f"{what} has no `{name}`; give it", tree.at)
        return WRONG

    def _list(self, kind: inspect.ListType, tree: Tree, what: str) -> object:
        if not isinstance(tree, FileItems):
            return self._wrong_type(tree, what, "a list")
        if kind.min_length and len(tree.items) < kind.min_length:
            self._findings.add("empty", f"{what} is empty; give at least {kind.min_length}", tree.at)
            return WRONG
        name = _singular(what)
        read = [self._read(kind.item_type, each, name) for each in tree.items]
        return [each for each in read if each is not WRONG]

    def _dict(self, kind: inspect.DictType, tree: Tree, what: str) -> object:
        if not isinstance(tree, Fields):
            return self._wrong_type(tree, what, "an object")
        if kind.min_length and len(tree.fields) < kind.min_length:
            self._findings.add("empty", f"{what} is empty; give at least {kind.min_length}", tree.at)
            return WRONG
        key_type = _bare(kind.key_type)
        for name, given in tree.fields.items():
            problem = _text_problem(key_type, name) if isinstance(key_type, inspect.StrType) else None
            if problem is not None:
                self._findings.add(problem[0], f"a name in {what} is {shown(name)}; {problem[1]}", given.name)
        read = {
            name: self._read(kind.value_type, given.tree, f"{shown(name)} in {what}")
            for name, given in tree.fields.items()
        }
        return {name: value for name, value in read.items() if value is not WRONG}

    # -- scalars

    def _word(self, words: Sequence[str], tree: Tree, what: str) -> object:
        value = plain(tree)
        if value in words:
            # Returns the declared string itself. A graph omits defaults by identity, which affects its hash.
            return words[words.index(value)]
        told = suggestion(value, words) if isinstance(value, str) else ""
        self._findings.add("word", f"{what} is {shown(value)}; it can be {', '.join(words)}{told}", tree.at)
        return WRONG

    def _scalar(self, types: Sequence[inspect.Type], tree: Tree, what: str, *, others: str = "") -> object:
        bare = [_bare(each) for each in types]
        value = tree.value if isinstance(tree, Scalar) else WRONG
        for each in bare:
            if value is not WRONG and _fits(each, value):
                problem = _problem(each, value)
                if not problem:
                    return value
                code, message = problem
                self._findings.add(code, f"{what} is {shown(value)}; {message}", tree.at)
                return WRONG
        wanted = [_CALLED[type(each)] for each in bare if not isinstance(each, inspect.NoneType)]
        return self._wrong_type(tree, what, " or ".join(dict.fromkeys([*wanted, *([others] if others else [])])))

    def _wrong_type(self, tree: Tree, what: str, wanted: str) -> object:
        match tree:
            case Fields():
                given, remedy = "an object", ""
            case FileItems():
                given, remedy = "a list", ""
            case Scalar(value=value):
                is_number = isinstance(value, bool | int | float)
                given, remedy = shown(value), "; quote it" if wanted == "a text" and is_number else ""
        self._findings.add("wrong_type", f"{what} is {given}, and must be {wanted}{remedy}", tree.at)
        return WRONG


# -- types of the format


@cache
def _type_of(form: Hashable) -> inspect.Type:
    return inspect.type_info(form)


@cache
def _fields_of(cls: type) -> Mapping[str, inspect.Field]:
    kind = inspect.type_info(cls)
    assert isinstance(kind, inspect.StructType)
    return {each.encode_name: each for each in kind.fields}


def _names(kind: _Struct) -> str:
    return ", ".join(f"`{each.encode_name}`" for each in kind.fields)


def _bare(kind: inspect.Type) -> inspect.Type:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _singular(what: str) -> str:
    """Return the word for an item of a list by the list's name."""
    name = what.split("`")[1] if "`" in what else what
    return f"an item of `{name}`"


_CALLED: Final[dict[type[inspect.Type], str]] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
}


def _fits(kind: inspect.Type, value: object) -> bool:
    match kind:
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.IntType():
            return type(value) is int
        case inspect.FloatType():
            return type(value) in {int, float}
        case inspect.BoolType():
            return isinstance(value, bool)
        case _:
            return value is None


def _problem(kind: inspect.Type, value: object) -> tuple[str, str] | None:
    """Return what is wrong with a value of the right type, as a code and a remedy. None if it is valid."""
    match kind, value:
        case inspect.StrType(), str():
            return _text_problem(kind, value)
        case inspect.IntType() | inspect.FloatType(), int() | float():
            low, high = kind.ge, kind.le
            if (low is not None and value < low) or (high is not None and value > high):
                return "number", f"it must be from {low} to {high}"
            return None
        case _:
            return None


def _text_problem(kind: inspect.StrType, value: str) -> tuple[str, str] | None:
    if kind.pattern == DURATION and (re.search(DURATION, value) is None or duration_of(value) is None):
        return "duration", HOW_TO_WRITE
    if kind.min_length and not value.strip():
        return "empty", "give a text, or leave it out"
    if kind.max_length and len(value) > kind.max_length:
        return "too_long", f"use at most {kind.max_length} characters"
    if kind.pattern in REMEDIES and (re.search(kind.pattern, value) is None or value.endswith("\n")):
        return "name", REMEDIES[kind.pattern]
    return None
