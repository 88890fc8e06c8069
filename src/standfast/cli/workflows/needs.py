"""What workflows need besides themselves: handlers that an application has, and capabilities that somebody is granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from standfast.app.engine import Engine
from standfast.cli.applications import equip
from standfast.cli.source_files import Mistake
from standfast.engine.common.settings import Settings
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.definition import Definition
from standfast.graph.model import Graph
from standfast.kernel.actor import needed_names
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.people.capabilities import Capabilities

_IN_MEMORY = "sqlite://"


def without_handlers(found: Sequence[Definition], file: str, app: str, settings: Settings) -> Iterator[Mistake]:
    """Steps that an application has no handler for, as an engine tells that was given it."""
    engine = Engine(_IN_MEMORY, settings=settings, threads=False)
    try:
        equip(engine, app)
        handlers = [each for each in engine.service.shared.handlers.names() if not each.startswith(SYSTEM_PREFIX)]
    finally:
        engine.stop()
    for each in found:
        for handler in sorted(each.graph.handlers - set(handlers)):
            told = suggestion(handler, handlers) or "; register it there, or name one that it has"
            yield _odd(file, each.name, "no_handler", f"{app} has no handler {handler!r}{told}")


def without_grants(found: Sequence[Definition], file: str, roles: Capabilities) -> Iterator[Mistake]:
    """Capabilities that workflows ask for and no role has, in any tenant."""
    for each in found:
        for wanted in sorted(_wanted(each.graph)):
            if not roles.grant(wanted):
                told = suggestion(wanted, roles.named) or "; grant it to a role, or nobody can go there"
                yield _odd(file, each.name, "no_grant", f"no role has the capability {wanted!r}{told}")


def _wanted(graph: Graph) -> set[str]:
    """The capabilities that a workflow asks for: to start, to stop, for a step, and for a way."""
    asked = [graph.rights.start, graph.rights.cancel, *(node.capability for node in graph.nodes.values())]
    named = {name for each in asked for name in needed_names(each)}
    return (named | {edge.capability for edge in graph.edges}) - {""}


def _odd(file: str, where: str, rule: str, message: str) -> Mistake:
    return Mistake(file=file, line=0, column=0, where=where, rule=rule, message=message, is_warning=True)
