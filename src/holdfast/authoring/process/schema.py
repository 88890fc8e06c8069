"""The JSON Schema of the format, made from its declaration: editors complete by it, and other tools validate by it."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.authoring.process.format import Domain

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
TITLE: Final = "Holdfast process file"


def process_schema() -> dict[str, object]:
    """The schema, as plain data."""
    (outline,), parts = msgspec.json.schema_components([Domain], ref_template="#/$defs/{name}", schema_hook=_anything)
    return {"$schema": DIALECT, "title": TITLE, **outline, "$defs": dict(sorted(parts.items()))}


def _anything(_type: type) -> dict[str, object]:
    """What the format leaves to others: forms, and conditions as objects."""
    return {"description": "Anything that JSON can say."}
