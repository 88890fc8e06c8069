"""Bodies as callers give them, and what comes of the scenarios of one."""

from __future__ import annotations

import json
from collections.abc import Mapping

from standfast.errors import DefinitionError, Diagnostic, PayloadError, indefinite
from standfast.features.documents.body.checks import read_body, read_partly
from standfast.features.documents.body.exchange import export_yaml
from standfast.features.documents.body.format import Body
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.loading import content_hash
from standfast.features.documents.publishing.catalog import Catalog, WrittenBody, content_of, malformed
from standfast.features.documents.scenarios.scenarios import ScenarioResult, failures, run_scenarios
from standfast.graph.model import Graph


def written_body(given: object) -> WrittenBody:
    """A body that a caller gives, as a draft keeps it: with its mistakes, as long as it says what it is for; DefinitionError if it does not."""
    text = _text_of(given)
    try:
        body = read_body(text)
    except DefinitionError:
        read = read_partly(text)
        if read.body is None or not isinstance(read.plain, dict) or read.body.hash is not None:
            raise
        try:
            return malformed(read.body, read.plain)
        except PayloadError:  # It holds what no database can keep.
            pass
        raise
    return WrittenBody(body, content_of(body), content_hash(body))


def _text_of(given: object) -> str | bytes:
    if isinstance(given, Body):
        return export_yaml(given)
    if isinstance(given, str | bytes):
        return given
    if isinstance(given, Mapping):
        try:
            return json.dumps(given, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise PayloadError(f"the body cannot be written as JSON: {error}; give plain data") from error
    raise PayloadError(
        f"a body is given as YAML, as JSON, as what read_body gives, or as a dict, not as {indefinite(type(given))}"
    )


def rehearsed(shelf: Catalog, body: Body) -> list[Diagnostic]:
    """The scenarios of a sound body that do not come out as they should."""
    return failures(tried_out(shelf, body))


def tried_out(shelf: Catalog, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body; DefinitionError if it does not compile."""
    return [] if not body.scenarios else played(graph_of(shelf.compiled(shelf.envelope_for(body), body)), body)


def played(graph: Graph, body: Body) -> list[ScenarioResult]:
    """What comes of the scenarios of a body, on the graph of it."""
    return run_scenarios(graph, body.scenarios)
