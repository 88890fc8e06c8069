"""Generates the JSON Schema of a file format from its declaration, for editors and validators."""

from __future__ import annotations

from typing import Final

import msgspec

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(form: type, title: str) -> dict[str, object]:
    """Return the schema of the files of a struct, as plain data."""
    (outline,), parts = msgspec.json.schema_components([form], ref_template="#/$defs/{name}", schema_hook=_anything)
    return {"$schema": DIALECT, "title": title, **outline, "$defs": dict(sorted(parts.items()))}


def _anything(_type: type) -> dict[str, object]:
    """Return the schema of untyped parts: forms, and conditions as objects."""
    return {"description": "Anything that JSON can say."}
