"""Workflows that are tried out: what callers suppose of the world, and which way a run would take then. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time
from typing import Final

from standfast.calls.catalog.definitions import Library, check_names, patience_of
from standfast.calls.handlers.step_handlers import plain_data
from standfast.engine.common.settings import Settings
from standfast.errors import PayloadError
from standfast.features.simulation import Assumptions, DryRun, SimulationTerms, dry_run
from standfast.features.simulation.assumptions import script_of
from standfast.graph.model import CallOp, Graph
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.actor import Actor
from standfast.kernel.facts import Facts, SupposedFacts, archived_fact
from standfast.machine.model.commands import run_commands as c

LONGEST: Final = 2.0
"""Seconds that one dry run may keep a processor busy: whoever asks for it waits, and so do others."""


def supposed(graph: Graph, given: Mapping[str, object], limit: int, name: Callable[[str], str] = str) -> Assumptions:
    """What a caller supposes, by the names of a script."""
    said = {each: value for each, value in given.items() if value is not None}
    return script_of(graph, plain_data(said, "dry run", limit=limit), name=name)


def player_of(actor: Actor) -> Actor:
    """In whose place something is tried out: whoever tries, as somebody who may do what the way asks for."""
    return Actor(id=actor.id, roles=actor.roles, capabilities=frozenset({"*"}))


def terms_of(limit: int) -> SimulationTerms:
    """What a dry run is bound by: data as large as that of a run, and so much time of a processor from now on."""
    end = thread_time() + LONGEST
    return SimulationTerms(limit=limit, is_late=lambda: thread_time() > end)


def closed_calls(library: Library, tenant: str, graph: Graph) -> SupposedFacts:
    """The world of a dry run: the workflows that a graph calls, with why nothing new begins with them, where all that is named is archived."""
    asked = {
        archived_fact(each.op.definition, each.op.version): (each.op.definition, each.op.version)
        for each in graph.nodes.values()
        if isinstance(each.op, CallOp)
    }
    return SupposedFacts({fact: library.closed(tenant, *called) for fact, called in asked.items()})


def tried_out(
    graph: Graph,
    given: object,
    supposition: Mapping[str, object],
    *,
    actor: Actor,
    settings: Settings,
    facts: Facts | None = None,
) -> DryRun:
    """Which way a run would take that is started with what is given."""
    if graph.document is not None:
        raise PayloadError(f"{graph.name!r} is the workflow of documents: a document is tried out by `bodies.dry_run`")
    limit = settings.max_payload_bytes
    data = plain_data(given, "input", limit=limit)
    check_names(graph.kind, data)
    start = c.StartWorkflow(input=data, **patience_of(graph.kind, settings))
    script = supposed(graph, supposition, limit)
    terms = terms_of(limit)
    return dry_run(graph, start, player_of(actor), script, words=words_of(graph.kind), terms=terms, facts=facts)
