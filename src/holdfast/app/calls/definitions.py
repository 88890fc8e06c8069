"""Calls of published workflows: which there are, what they say, what they look like."""

from __future__ import annotations

import builtins

from holdfast.app.definitions import copied
from holdfast.app.desk import Desk
from holdfast.app.operator_views import DefinitionInfo, shown
from holdfast.app.pictures import Format, drawn
from holdfast.app.references import DefinitionLike, checked_definition
from holdfast.machine.graphs.compiler import graph_data
from holdfast.machine.graphs.graph import Graph
from holdfast.runtime.replies import Reply


class FutureDefinitions:
    """What can be asked of workflows as they were published."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def list(self) -> Reply[builtins.list[DefinitionInfo]]:
        """All published versions of all workflows, by name, each oldest first."""
        library = self._desk.registry.library
        return self._desk.read(lambda: [shown(each, DefinitionInfo) for each in library.listed(self._desk.tenant)])

    def get(self, definition: DefinitionLike, version: str | int = "") -> Reply[Graph]:
        """The published graph of a workflow."""
        return self._desk.read(lambda: copied(self._graph(definition, version)))

    def data(self, definition: DefinitionLike, version: str | int = "") -> Reply[dict[str, object]]:
        """The same as plain data, which can be written as JSON, changed, and published as another version."""
        return self._desk.read(lambda: graph_data(copied(self._graph(definition, version))))

    def diagram(
        self,
        definition: DefinitionLike,
        version: str | int = "",
        *,
        format: Format = "mermaid",  # noqa: A002 - the word that everybody uses for it
    ) -> Reply[str]:
        """A drawing of a workflow, as Mermaid, DOT or JSON; that of a run shows its live state."""
        return self._desk.read(lambda: drawn(self._graph(definition, version), format))

    def _graph(self, definition: DefinitionLike, version: str | int) -> Graph:
        return self._desk.registry.library.graph(self._desk.tenant, *checked_definition(definition, version))
