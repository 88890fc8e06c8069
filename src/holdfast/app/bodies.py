"""Bodies as callers give them, and what comes of the scenarios of one."""

from __future__ import annotations

import json
from collections.abc import Mapping

from holdfast.app.blueprints import Shelf
from holdfast.authoring.document import Body, ScenarioResult, export_yaml, graph_of, read_body
from holdfast.authoring.document.scenarios import failures, run_scenarios
from holdfast.errors import Diagnostic, PayloadError, indefinite
from holdfast.machine.graphs.graph import Graph


def given_body(given: object) -> Body:
    """A body that a caller gives, checked as one that is read from a file; DefinitionError if it is none."""
    if isinstance(given, Body):
        return read_body(export_yaml(given))
    if isinstance(given, str | bytes):
        return read_body(given)
    if isinstance(given, Mapping):
        try:
            return read_body(json.dumps(given, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(f"the body cannot be written as JSON: {error}; give plain data") from error
    raise PayloadError(
        f"a body is given as YAML, as JSON, as what read_body gives, or as a dict, not as {indefinite(type(given))}"
    )


def rehearsed(shelf: Shelf, body: Body) -> list[Diagnostic]:
    """The scenarios of a sound body that do not come out as they should."""
    return failures(tried_out(shelf, body))


def tried_out(shelf: Shelf, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body; DefinitionError if it does not compile."""
    return [] if not body.scenarios else played(graph_of(shelf.compiled(shelf.envelope_for(body), body)), body)


def played(graph: Graph, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body, on the graph of it."""
    return run_scenarios(graph, body.scenarios)
