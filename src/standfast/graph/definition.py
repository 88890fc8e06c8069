"""Definitions: the common result of all front ends, which the engine publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import msgspec

from standfast.errors import ConfigurationError, Diagnostic, indefinite
from standfast.graph.compiler import compile_data
from standfast.graph.model import Graph

Function = Callable[..., object]
I = TypeVar("I")  # noqa: E741 - the input
R = TypeVar("R")

_JSON = "application/json"

CAPABILITY_MARK = "__standfast_capability__"
"""The attribute of a handler function that names the capability it requires."""
NAME_IT = "name one of them with @handler('…'), or give steps a text and register it with engine.handle('…', function)"
"""What to do about two functions of one name."""


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A complete workflow."""

    graph: Graph
    handlers: dict[str, Function] = {}
    """Handlers given as functions, by name. They are registered with the workflow."""
    source: bytes = b""
    """The author's text, stored with the graph for later changes. Empty without one."""
    media_type: str = ""
    """Media type of the source, such as `application/json`. Empty without one."""
    description: str = ""
    """The author's description."""
    words: dict[str, str] = {}
    """The author's names and remarks by their field in the source file, such as `title`. They are stored with the
    source and are not part of the graph."""
    warnings: tuple[Diagnostic, ...] = ()
    """Warnings: the workflow is valid, but will probably not do what its author meant."""

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.graph.name

    @property
    def version(self) -> str:
        """The workflow's version."""
        return self.graph.version

    @property
    def id(self) -> str:
        """Name and version, as in `order-v1`."""
        return f"{self.graph.name}-v{self.graph.version}"

    def typed(self, input: type[I], result: type[R]) -> TypedDefinition[I, R]:  # noqa: A002 - the usual name
        """Return the workflow with types of its input and result: dataclasses, Structs, pydantic models, typed dicts or plain types.

        Other inputs are refused, and a run returns its result as the given type.
        """
        return TypedDefinition(definition=self, input=input, result=result)


class TypedDefinition(msgspec.Struct, Generic[I, R], frozen=True, kw_only=True):
    """A workflow with declared input and result types, so that its runs are typed."""

    definition: Definition
    input: type[I]
    """Type of the input."""
    result: type[R]
    """Type of the result, built from the fields of the data that it declares."""

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.definition.name

    @property
    def version(self) -> str:
        """The workflow's version."""
        return self.definition.version

    @property
    def id(self) -> str:
        """Name and version, as in `order-v1`."""
        return self.definition.id


def definition_of(data: Mapping[str, object] | str | bytes) -> Definition:
    """Build a definition from a graph in plain data. Raises DefinitionError with all findings."""
    given: object = data  # An untyped caller may pass any object.
    if not isinstance(given, Mapping | str | bytes):
        raise ConfigurationError(f"a workflow is published as a dict or as JSON, not as {indefinite(type(given))}")
    graph = compile_data(data)
    text = data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else msgspec.json.encode(data)
    return Definition(graph=graph, source=text, media_type=_JSON)


def required_by(function: object) -> str:
    """The capability that a function was marked with; empty if none."""
    return str(getattr(function, CAPABILITY_MARK, ""))
