"""The JSON Schema of process files."""

from __future__ import annotations

from typing import Final

from holdfast.authoring.files.schema import schema_of
from holdfast.authoring.process.format import Domain

TITLE: Final = "Holdfast process file"


def process_schema() -> dict[str, object]:
    """The schema, as plain data."""
    return schema_of(Domain, TITLE)
