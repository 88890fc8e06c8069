"""Parameters of an operation: their location and serialisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, cast
from urllib.parse import quote

import msgspec

from standfast.engine.common.handlers import UncalledError
from standfast.outbound.json_bodies import is_json
from standfast.outbound.openapi.documents import OpenApiDocument, Tree, below

Where = Literal["path", "query", "header", "cookie"]

_STYLES: Final[dict[str, tuple[str, ...]]] = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Serialisation styles by location, the default first."""
_BETWEEN: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_UNSENT: Final = frozenset({"accept", "content-type", "authorization"})
"""Header parameters that OpenAPI ignores, because other parts of the document set them."""

_encode = msgspec.json.Encoder().encode


class OpenApiParameter(msgspec.Struct, frozen=True, kw_only=True):
    """An OpenAPI parameter."""

    name: str
    where: Where
    is_required: bool = False
    style: str
    explodes: bool
    as_json: bool = False
    """Whether its value is sent as JSON."""
    schema: str = ""
    """Location of its schema; empty if it has none."""

    def in_path(self, value: object) -> str:
        """Serialise the value for a path; it is escaped, so that it stays one segment."""
        text = self._simple(value, is_encoded=True)
        if text in {"", ".", ".."}:
            raise UncalledError(f"{self.name!r} is {text!r}, which cannot stand in a path; give another value")
        return text

    def in_query(self, value: object) -> Iterator[str]:
        """Serialise the value as query pairs."""
        name = _quoted(self.name)
        if self.as_json:
            yield f"{name}={_quoted(_encode(value).decode())}"
        elif isinstance(value, dict):
            yield from self._object(name, value)
        elif not isinstance(value, list):
            yield f"{name}={_quoted(self._scalar(value))}"
        elif self.explodes and self.style == "form":
            yield from (f"{name}={_quoted(self._scalar(each))}" for each in value)
        else:
            between = _BETWEEN.get(self.style, ",")
            yield f"{name}={between.join(_quoted(self._scalar(each)) for each in value)}"

    def in_header(self, value: object) -> str:
        """Serialise the value for a header."""
        return self._simple(value, is_encoded=False)

    def in_cookie(self, value: object) -> str:
        """Serialise the value as cookie pairs."""
        return "; ".join(self.in_query(value))

    def _object(self, name: str, value: dict[str, object]) -> Iterator[str]:
        pairs = [(_quoted(key), _quoted(self._scalar(each))) for key, each in value.items()]
        if self.style == "deepObject":
            yield from (f"{name}%5B{key}%5D={each}" for key, each in pairs)
        elif self.explodes:
            yield from (f"{key}={each}" for key, each in pairs)
        else:
            between = _BETWEEN.get(self.style, ",")
            yield f"{name}={between.join(part for pair in pairs for part in pair)}"

    def _simple(self, value: object, *, is_encoded: bool) -> str:
        write = _quoted if is_encoded else str
        if self.as_json:
            return write(_encode(value).decode())
        if isinstance(value, list):
            return ",".join(write(self._scalar(each)) for each in value)
        if isinstance(value, dict):
            pairs = [(write(key), write(self._scalar(each))) for key, each in value.items()]
            return ",".join(f"{key}={each}" if self.explodes else f"{key},{each}" for key, each in pairs)
        return write(self._scalar(value))

    def _scalar(self, value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str | int | float):
            return str(value)
        raise UncalledError(f"{self.name!r} holds {type(value).__name__} inside, which a {self.where} cannot say")


def parameters_of(document: OpenApiDocument, item: Tree, *, method: str, place: str) -> list[OpenApiParameter]:
    """Return the parameters of an operation: its own, and those of its path that it does not override."""
    found: dict[tuple[str, str], OpenApiParameter] = {}
    for owner, at in ((item, place), (document.part(item[method], place), below(place, method))):
        listed = owner.get("parameters", [])
        if not isinstance(listed, list):
            raise document.flaw(f"has no list of parameters at {at!r}")
        for number, given in enumerate(listed):
            part, there = document.located(given, below(at, "parameters", str(number)))
            made = _parameter(document, part, there)
            if made.where != "header" or made.name.lower() not in _UNSENT:
                found[made.name, made.where] = made
    return list(found.values())


def _parameter(document: OpenApiDocument, part: Tree, place: str) -> OpenApiParameter:
    name, where = part.get("name"), part.get("in")
    if not isinstance(name, str) or not name or not isinstance(where, str) or where not in _STYLES:
        raise document.flaw(f"has a parameter at {place!r} without a name, or that is nowhere")
    style = part.get("style", _STYLES[where][0])
    if style not in _STYLES[where]:
        raise document.flaw(f"writes {name!r} at {place!r} in a style that is not known here: {style!r}")
    content = part.get("content")
    media = next(iter(content), "") if isinstance(content, dict) else ""
    if media and not is_json(media):
        raise document.flaw(f"writes {name!r} at {place!r} as {media!r}; only JSON is known here")
    schema = below(place, "content", media, "schema") if media else below(place, "schema")
    return OpenApiParameter(
        name=name,
        where=cast("Where", where),
        is_required=part.get("required") is True or where == "path",
        style=style,
        explodes=part.get("explode", style == "form") is True,
        as_json=bool(media),
        schema=schema if "schema" in part or media else "",
    )


def _quoted(text: str) -> str:
    return quote(text, safe="")
