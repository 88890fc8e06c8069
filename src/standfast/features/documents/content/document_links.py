"""What a document has to do with others: those that it refers to, and those that steps of it or of them have made and changed."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.features.documents.content.reads import FoundDocument
from standfast.features.documents.content.views import DocumentLink
from standfast.graph.model import ActionOp, CallOp
from standfast.kernel.actor import Actor
from standfast.kernel.history import StoredEvent
from standfast.machine.documents.visibility import visible
from standfast.machine.model import events as e
from standfast.machine.model.state import RunState
from standfast.store.ports.reading import TenantReader


def links_of(reader: TenantReader, known: FoundDocument, actor: Actor) -> list[DocumentLink]:
    """All of them: references first, then what happened, in order."""
    return [*_references(known, actor), *_happened(reader, known)]


def _references(known: FoundDocument, actor: Actor) -> Iterator[DocumentLink]:
    data = visible(known.parts.spec, known.document.data, actor)
    for name, field in known.parts.spec.fields.items():
        given = data.get(name)
        if field.type == "ref" and isinstance(given, str) and given == known.document.data.get(name):
            yield DocumentLink(how="refers_to", type=field.of, id=given, field=name)


def _happened(reader: TenantReader, known: FoundDocument) -> Iterator[DocumentLink]:
    machine, state = known.machine, known.machine.initial()
    for stored in reader.events(known.header.id):
        if stored.is_system:
            continue
        event = known.program.decode(stored)
        yield from _told(known, state, stored, event)
        state = machine.evolve(state, event)  # type: ignore[arg-type]


def _told(known: FoundDocument, state: RunState, stored: StoredEvent, event: object) -> Iterator[DocumentLink]:
    match event:
        case e.DocumentCreated(origin=origin) | e.DocumentChanged(origin=origin) if origin:
            type_, _, id_ = origin.partition("/")
            is_made = isinstance(event, e.DocumentCreated)
            yield DocumentLink(how="made_by" if is_made else "changed_by", type=type_, id=id_, at=stored.at)
        case e.ChildStarted(step=number, child=child):
            op = known.machine.routes_of(state).node(state.open[number].node).op
            assert isinstance(op, CallOp)
            yield DocumentLink(how="started", type=op.definition, id=child, at=stored.at, step=number)
        case e.StepCompleted(step=number, output=dict() as output) if number in state.open:
            op = known.machine.routes_of(state).node(state.open[number].node).op
            if isinstance(op, ActionOp) and op.of:
                is_new, name = not output.get("version_before"), str(output.get("id", ""))
                yield DocumentLink(how="made" if is_new else "changed", type=op.of, id=name, at=stored.at, step=number)
        case _:
            pass
