"""Load OpenAPI documents and resolve their references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote

import msgspec
import yaml

from standfast.errors import ConfigurationError, indefinite

PACKAGE: Final = "package:"
"""Prefix of a document inside a package: `package:shop/apis/billing.yaml`."""

_LARGEST: Final = 16_000_000
"""Bytes of a document."""
_MOST_PARTS: Final = 1_000_000
"""Values in a document. A value that is written once and referenced twice counts twice."""
_DEEPEST: Final = 200
_LONGEST_CHAIN: Final = 32
"""Length of a chain of references."""
_VERSION: Final = re.compile(r"3\.([01])\.\d+(-.+)?")

Tree = dict[str, object]


class OpenApiDocument:
    """An OpenAPI document with access to its parts. Its schemas are JSON Schema, also those of version 3.0."""

    def __init__(self, tree: Tree, name: str) -> None:
        self.tree = tree
        self.name = name

    def flaw(self, told: str) -> ConfigurationError:
        """Return the first error of the document."""
        return ConfigurationError(f"the OpenAPI document {self.name!r} {told}")

    def part(self, given: object, place: str) -> Tree:
        """Return an object of the document, with references resolved."""
        return self.located(given, place)[0]

    def located(self, given: object, place: str) -> tuple[Tree, str]:
        """Return the object and its own location, as a JSON pointer."""
        for _ in range(_LONGEST_CHAIN):
            if not isinstance(given, dict):
                raise self.flaw(f"has {indefinite(type(given))} at {place!r} where an object must stand")
            if "$ref" not in given:
                return given, place
            given, place = self._found(given["$ref"], place)
        raise self.flaw(f"refers in a circle at {place!r}")

    def _found(self, reference: object, place: str) -> tuple[object, str]:
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise self.flaw(f"refers at {place!r} to another document; put what it refers to into this one")
        at: object = self.tree
        for token in reference[2:].split("/"):
            name = unquote(token).replace("~1", "/").replace("~0", "~")
            if not isinstance(at, dict) or name not in at:
                raise self.flaw(f"refers at {place!r} to {reference!r}, which it does not hold")
            at = at[name]
        return at, reference


def below(place: str, *names: str) -> str:
    """Return the location of a part below another location."""
    return "/".join((place, *(name.replace("~", "~0").replace("/", "~1") for name in names)))


def read_document(source: str | Path | Mapping[str, object]) -> OpenApiDocument:
    """Load a document from a file, a package or data; ConfigurationError unless it is of version 3.0 or 3.1."""
    name = "given as data" if isinstance(source, Mapping) else str(source)
    given = dict(source) if isinstance(source, Mapping) else _parsed(_text(source, name), name)
    version = given.get("openapi") if isinstance(given, dict) else None
    found = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if found is None:
        raise ConfigurationError(
            f"{name!r} is no OpenAPI document of version 3.0 or 3.1; its `openapi` says which it is"
        )
    plain = _Plainer(name, is_old=found[1] == "0").plain(given, 0)
    return OpenApiDocument(cast("Tree", plain), name)


def _text(source: str | Path, name: str) -> bytes:
    try:
        if isinstance(source, str) and source.startswith(PACKAGE):
            package, _, path = source.removeprefix(PACKAGE).partition("/")
            text = resources.files(package).joinpath(path).read_bytes()
        else:
            text = Path(source).read_bytes()
    except (OSError, ModuleNotFoundError, TypeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"the OpenAPI document {name!r} cannot be read: {why}; give the path of a file, or {PACKAGE}NAME/PATH"
        ) from error
    if len(text) > _LARGEST:
        raise ConfigurationError(f"the OpenAPI document {name!r} has more than {_LARGEST} bytes")
    return text


def _parsed(text: bytes, name: str) -> object:
    try:
        if text.lstrip()[:1] == b"{":
            return cast("object", msgspec.json.decode(text))
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        _check_size(yaml.parse(text, Loader=loader), name)
        return yaml.load(text, Loader=loader)  # noqa: S506 - a safe one
    except (msgspec.DecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise ConfigurationError(f"the OpenAPI document {name!r} is neither JSON nor YAML: {error}") from error


def _check_size(events: Iterable[yaml.Event], name: str) -> None:
    """Check the size before parsing: deep nesting and alias expansion could exhaust the process."""
    parts, inside, named = 0, list[tuple[str | None, int]](), dict[str | None, int]()
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = inside.pop()
            named[anchor] = parts - before
        elif isinstance(event, yaml.CollectionStartEvent):
            inside.append((event.anchor, parts))
            parts += 1
        elif isinstance(event, yaml.NodeEvent):
            parts += named.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(inside) > _DEEPEST or parts > _MOST_PARTS:
            raise _too_large(name)


def _too_large(name: str) -> ConfigurationError:
    return ConfigurationError(f"the OpenAPI document {name!r} is too large or too deep to be read")


class _Plainer:
    """Converts parsed YAML to plain data, and schemas of version 3.0 to JSON Schema."""

    def __init__(self, name: str, *, is_old: bool) -> None:
        self._name = name
        self._is_old = is_old
        self._count = 0

    def plain(self, given: object, depth: int) -> object:
        self._count += 1
        if depth > _DEEPEST or self._count > _MOST_PARTS:
            raise _too_large(self._name)
        if isinstance(given, dict):
            made = {_key(name): self.plain(value, depth + 1) for name, value in given.items()}
            return _modern(made) if self._is_old else made
        if isinstance(given, list):
            return [self.plain(each, depth + 1) for each in given]
        return given.isoformat() if isinstance(given, date) else given


def _key(name: object) -> str:
    return str(name).lower() if isinstance(name, bool) else str(name)


def _modern(schema: Tree) -> Tree:
    """Convert an object of a 3.0 document, if it is a schema, to JSON Schema."""
    if schema.pop("nullable", False) is True and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            is_exclusive = schema.pop(exclusive)
            if is_exclusive and bound in schema:
                schema[exclusive] = schema.pop(bound)
    return schema
