"""Templates of bodies: patches with parameters, from which an organisation makes a draft of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from standfast.errors import DefinitionError, Diagnostic
from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.format import Body
from standfast.features.documents.contract.library import file_in, names_in
from standfast.graph.source_files.parsing import parse, shown
from standfast.graph.source_files.reading import Findings, StructReader
from standfast.graph.source_files.tree import Fields
from standfast.graph.source_files.values import Name, Plain, Text
from standfast.kernel.codec.canonical import LARGEST_INTEGER

_FOLDER: Final = "templates"
_HOLE: Final = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")
_LONGEST: Final = 200


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is an object in the file."""


class TemplateParameter(_Part, frozen=True, kw_only=True):
    """Something that an organisation says when it takes a template."""

    type: Annotated[Literal["money", "int", "role", "user", "text"], Meta(description="What it is.")]
    default: Annotated[str | int, Meta(description="What it is if nobody says otherwise.")]
    description: Annotated[Text, Meta(description="What it is for.")] = ""


class BodyTemplateFile(_Part, frozen=True, kw_only=True):
    """A body with holes, such as `${threshold}`."""

    template: Annotated[Name, Meta(description="Its name.")]
    title: Annotated[Text, Meta(description="What people read.")]
    entity_type: Annotated[
        Name, Meta(description="The type that it is written for; others with the same slots can take it.")
    ]
    params: Annotated[dict[str, TemplateParameter], Meta(description="What can be said.")]
    body: Annotated[dict[str, Plain], Meta(description="The body, with holes in its texts.")]
    description: Annotated[Text, Meta(description="What it is for.")] = ""


def template_names() -> tuple[str, ...]:
    """The names of the templates."""
    return names_in(_FOLDER)


def read_template(name: str) -> BodyTemplateFile:
    """A template; NotFoundError with the names that there are."""
    text = file_in(_FOLDER, name)
    findings = Findings([])
    tree = parse(text, findings.found)
    assert isinstance(tree, Fields)
    found = StructReader(findings).read(BodyTemplateFile, tree)
    if found is None or findings.found:
        raise DefinitionError(f"the template {name}", findings.found)
    return found


def instantiate(
    template: BodyTemplateFile | str,
    params: Mapping[str, str | int] | None = None,
    *,
    entity_type: str = "",
    envelope_version: int = 1,
) -> Body:
    """A draft made from a template; DefinitionError with everything that is wrong with what was said.

    `entity_type` is the type that it is for, where that is not the template's own.
    """
    made = read_template(template) if isinstance(template, str) else template
    values = _values(made, params or {})
    kind = entity_type or made.entity_type
    filled = _filled(made.body, {**values, "entity_type": kind})
    assert isinstance(filled, dict)
    base = {"entity_type": kind, "envelope_version": envelope_version}
    return read_body(json.dumps({"base": base, "name": made.title, **filled}), name=f"the template {made.template}")


def _values(template: BodyTemplateFile, given: Mapping[str, str | int]) -> dict[str, str | int]:
    wrong: list[Diagnostic] = []
    for name in sorted(given.keys() - template.params.keys()):
        told = suggestion(name, template.params) or f"; there are {', '.join(sorted(template.params))}"
        wrong.append(Diagnostic("unknown_parameter", f"the template has no parameter {shown(name)}{told}", name))
    values = {name: given.get(name, each.default) for name, each in template.params.items()}
    for name, each in template.params.items():
        problem = _problem(each, values[name])
        if problem:
            wrong.append(Diagnostic("parameter", f"the parameter {name!r} is {shown(values[name])}; {problem}", name))
    if wrong:
        raise DefinitionError(f"the template {template.template}", wrong)
    return values


def _problem(parameter: TemplateParameter, value: object) -> str:
    """What is wrong with a value, as the end of a sentence; empty if nothing is."""
    if parameter.type in {"money", "int"}:
        is_sound = type(value) is int and 0 <= value <= LARGEST_INTEGER
        told = "in minor units, so 10000 is a hundred" if parameter.type == "money" else "of at least 0"
        return "" if is_sound else f"give a whole number, {told}"
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST:
        return f"give a text of at most {_LONGEST} characters"
    return "" if not set(value) & set("'\"\\{}$\n\r\t") else "leave out quotes, braces, backslashes, $ and line breaks"


def _filled(part: object, values: Mapping[str, str | int]) -> object:
    match part:
        case dict():
            return {str(_filled(name, values)): _filled(each, values) for name, each in part.items()}
        case list():
            return [_filled(each, values) for each in part]
        case str():
            whole = _HOLE.fullmatch(part)
            if whole is not None:
                return values[whole[1]]
            return _HOLE.sub(lambda hole: str(values[hole[1]]), part)
        case _:
            return part
