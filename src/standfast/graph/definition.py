"""What every front end makes: a definition, which the engine publishes without knowing who wrote it, or how."""

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
    """A finished workflow."""

    graph: Graph
    handlers: dict[str, Function] = {}
    """Handlers that were given as functions, by name; registered with the workflow."""
    source: bytes = b""
    """What its author wrote, where that is a text: kept with the graph, for those who want to change it."""
    media_type: str = ""
    """What the source is, such as `application/json`; empty if there is none."""
    description: str = ""
    """What it is for, in the author's words."""
    words: dict[str, str] = {}
    """What its author calls it and says of it, by the names that its file has for that, such as `title`: kept with the source, and no part of the graph."""
    warnings: tuple[Diagnostic, ...] = ()
    """What is odd about it: it can be run, and will most likely not do what its author meant."""

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

    def typed(self, input: type[I], result: type[R]) -> TypedDefinition[I, R]:  # noqa: A002 - the word that everybody uses for it
        """The same workflow with the types of what it takes and comes to: dataclasses, Structs, pydantic models, typed dicts or plain types.

        What is started with another input is refused, and a run gives its result as such a value.
        """
        return TypedDefinition(definition=self, input=input, result=result)


class TypedDefinition(msgspec.Struct, Generic[I, R], frozen=True, kw_only=True):
    """A finished workflow whose author said what it takes and what it comes to, so that runs of it have a type."""

    definition: Definition
    input: type[I]
    """What it is started with."""
    result: type[R]
    """What its result is given as: of the data, the fields that this has."""

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
    """The definition of a graph that is given as plain data; DefinitionError with every finding."""
    given: object = data  # What a caller without types gave.
    if not isinstance(given, Mapping | str | bytes):
        raise ConfigurationError(f"a workflow is published as a dict or as JSON, not as {indefinite(type(given))}")
    graph = compile_data(data)
    text = data.encode() if isinstance(data, str) else data if isinstance(data, bytes) else msgspec.json.encode(data)
    return Definition(graph=graph, source=text, media_type=_JSON)


def required_by(function: object) -> str:
    """The capability that a function was marked with; empty if none."""
    return str(getattr(function, CAPABILITY_MARK, ""))
