"""The JSON Schema of process files."""

from __future__ import annotations

from typing import Final

from standfast.features.process_files.format import Domain
from standfast.graph.source_files.json_schema import schema_of

TITLE: Final = "Standfast process file"


def process_schema() -> dict[str, object]:
    """The schema, as plain data."""
    return schema_of(Domain, TITLE)
