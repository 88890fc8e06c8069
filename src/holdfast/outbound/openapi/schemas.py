"""Whether data is what a schema of a document asks for."""

from __future__ import annotations

from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final

from holdfast.outbound.openapi.documents import Document

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from referencing.jsonschema import SchemaRegistry

_BASE: Final = "document:"
_MOST_FAULTS: Final = 3
_LONGEST_PATH: Final = 200
"""Characters of a path that are told: its names are those of the data, however long."""


class Schemas:
    """The schemas of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def faults(self, place: str, value: object) -> str:
        """What is wrong with a value by the schema at a place, in a sentence without the value; empty if nothing is."""
        try:
            errors = list(islice(self._validator(place).iter_errors(value), _MOST_FAULTS))
        except Exception as error:  # noqa: BLE001 - what is no schema makes the library fail in ways of its own
            return f"its schema at {place!r} cannot be used ({type(error).__name__})"
        return "; ".join(f"{_short(each.json_path)} does not hold to `{each.validator}`" for each in errors)

    def _validator(self, place: str) -> Draft202012Validator:
        from jsonschema import Draft202012Validator

        return Draft202012Validator({"$ref": f"{_BASE}{place}"}, registry=self._registry)

    @cached_property
    def _registry(self) -> SchemaRegistry:
        from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

        whole = DRAFT202012.create_resource(self._document.tree)
        registry: SchemaRegistry = EMPTY_REGISTRY.with_resource(_BASE, whole)
        return registry


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"{path[:_LONGEST_PATH]}…"
