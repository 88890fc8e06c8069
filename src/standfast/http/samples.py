"""Answers as they look, made from their schemas: what a reader of the OpenAPI document sees before anything is there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

Schema = Mapping[str, object]

_DEEPEST: Final = 6
_OF_FORMAT: Final[Mapping[str, str]] = {
    "date-time": "2026-03-31T12:00:00Z",
    "date": "2026-03-31",
    "duration": "PT1H",
    "uuid": "0193a2b4-0000-7000-8000-000000000001",
}


_OF_PATTERN: Final = (
    "invoice", "invoice.post", "slot:submitted_to_approved", "sys:state:submitted", "sys:gate:approve", "0" * 64, "1.0.0",
)  # fmt: skip
"""Words of which one fits wherever only some do."""
_OF_TIME: Final = ("_at", "since", "until", "_after", "_before")


class Samples:
    """Makes values of schemas: words are those that addresses are shown with, or the names of their fields."""

    def __init__(self, components: Mapping[str, Schema], words: Mapping[str, object]) -> None:
        self._components = components
        self._words = words

    def of(self, schema: Schema, name: str = "", depth: int = 0) -> object:
        """A value that a schema allows."""
        if "$ref" in schema:
            return self.of(self._components[str(schema["$ref"]).rpartition("/")[2]], name, depth + 1)
        if "enum" in schema:
            return cast("list[object]", schema["enum"])[0]
        if "const" in schema:
            return schema["const"]
        if "anyOf" in schema:
            ways = cast("list[Schema]", schema["anyOf"])
            nothing = [each for each in ways if each.get("type") == "null"]
            return self.of(nothing[0] if nothing and depth > _DEEPEST else ways[0], name, depth)
        return self._of_type(schema, name, depth)

    def _of_type(self, schema: Schema, name: str, depth: int) -> object:
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return _OF_FORMAT.get(str(schema.get("format", ""))) or self._word(schema, name)
            case "integer" | "number":
                return schema.get("minimum", 1)
            case other:
                return {"boolean": False, "null": None}.get(str(other), {})

    def _object(self, schema: Schema, depth: int) -> dict[str, object]:
        fields = cast("Mapping[str, Schema]", schema.get("properties", {}))
        shown = cast("list[str]", schema.get("required", [])) if depth > _DEEPEST else fields
        made = {each: self.of(fields[each], each, depth + 1) for each in shown}
        others = schema.get("additionalProperties")
        if not made and isinstance(others, Mapping) and ("minProperties" in schema or "propertyNames" not in schema):
            return {"name": self.of(others, "value", depth + 1)}
        return made

    def _array(self, schema: Schema, name: str, depth: int) -> list[object]:
        parts = cast("list[Schema]", schema.get("prefixItems", []))
        items = cast("Schema", schema.get("items") or {})
        if items and not parts and (depth <= _DEEPEST or "minItems" in schema):
            parts = [items]
        return [self.of(each, name, depth + 1) for each in parts]

    def _word(self, schema: Schema, name: str) -> str:
        if "contentEncoding" in schema:
            return ""
        if name.endswith(_OF_TIME):  # Schemas do not tell times from other texts.
            return _OF_FORMAT["date-time"]
        known = self._words.get(name)
        told = known if isinstance(known, str) else name or "text"
        pattern = str(schema.get("pattern", ""))
        return next((each for each in (told, *_OF_PATTERN) if re.search(pattern, each)), told)
