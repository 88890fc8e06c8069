"""The JSON Schema of process files."""

from __future__ import annotations

from typing import Final

from standfast.authoring.files.schema import schema_of
from standfast.authoring.process.format import Domain

TITLE: Final = "Standfast process file"


def process_schema() -> dict[str, object]:
    """The schema, as plain data."""
    return schema_of(Domain, TITLE)
