"""Why a document went the way it did: what its workflow asked at each step, of which values, and what came out.

Nothing of it is stored twice: the history tells the state in which a step was left, and asking again comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from standfast.calls.context import CallContext
from standfast.expressions import Expression
from standfast.features.documents.content.reads import FoundDocument, type_spec
from standfast.features.documents.content.views import AskedCondition, DocumentChoice
from standfast.graph.model import ConditionOp, Node, ScriptOp
from standfast.graph.values.external_reads import ORG, RELATED
from standfast.kernel.actor import Actor
from standfast.kernel.history import StoredEvent
from standfast.kernel.moment import Moment
from standfast.machine.documents.visibility import is_for, unshown
from standfast.machine.model import events as e
from standfast.machine.model.queries.expression_scope import CONTEXT, ENTITY, ScopeQuery, namespaces_of
from standfast.machine.model.queries.fields import is_mark
from standfast.machine.model.queries.outputs import merged
from standfast.machine.model.state import RunState, Token
from standfast.store.ports.reading import TenantReader

_REDACTED: Final = (
    "a value that it read was redacted since, so nobody can tell what came out; `outcome` and `to` are as they were"
)


def choices_of(desk: CallContext, reader: TenantReader, known: FoundDocument) -> list[DocumentChoice]:
    """All steps of a document that asked something when they were left, in order."""
    hidden = _hidden(desk, known)
    machine, state, found = known.machine, known.machine.initial(), list[DocumentChoice]()
    for stored in reader.events(known.header.id):
        if stored.is_system:
            continue
        event = known.program.decode(stored)
        if isinstance(event, e.StepCompleted):
            found += _Asking(known, state, stored, event).told(hidden)
        state = machine.evolve(state, event)  # type: ignore[arg-type]
    return found


def _hidden(desk: CallContext, known: FoundDocument) -> frozenset[str]:
    """The names of what is not told of: fields of the document, and those of others that it refers to, by the newest contracts of these."""
    spec, actor = known.parts.spec, desk.request.actor
    hidden = {f"{ENTITY}.{name}" for name in unshown(spec, actor)}
    for field, names in spec.reads.items():
        other = type_spec(desk, spec.fields[field].of)
        kept = set(names) if other is None else unshown(other, actor)
        hidden |= {f"{RELATED}.{field}.{name}" for name in kept}
    held = known.machine.routes_of(known.state).audiences.names
    hidden |= {f"{CONTEXT}.{name}" for name, each in held.items() if not is_for(each.audience, actor)}
    return frozenset(hidden)


class _Asking:
    """A step that is left, in the state before that."""

    def __init__(self, known: FoundDocument, state: RunState, stored: StoredEvent, event: e.StepCompleted) -> None:
        self._known, self._state, self._stored, self._event = known, state, stored, event
        self._routes = known.machine.routes_of(state)

    def told(self, hidden: frozenset[str]) -> Iterator[DocumentChoice]:
        """What it asked, if it asked anything."""
        step = self._state.open.get(self._event.step)
        name = self._event.node or (step.node if step is not None else "")
        token = self._state.tokens.get(self._event.token or (step.token if step is not None else ""))
        if not name or token is None:
            return
        node = self._routes.node(name)
        asked = self._names(node, token)
        conditions = [self._condition(edge, expression, asked, hidden) for edge, expression in self._expressions(node)]
        if conditions:
            yield DocumentChoice(
                step=self._event.step,
                node=name,
                outcome=self._event.outcome,
                to=self._event.to,
                at=self._stored.at,
                asked=conditions,
                read=self._read(name),
            )

    def _read(self, node: str) -> dict[str, str]:
        """What the step read from outside of the document, with the versions."""
        document, reads = self._state.document, self._routes.reads(node)
        if document is None or reads is None:
            return {}
        settings = {ORG: f"settings@{document.org_version}"} if reads.org and document.org_version else {}
        return settings | {name: document.sources[name] for name in reads.refs if document.sources.get(name)}

    def _expressions(self, node: Node) -> Iterator[tuple[str, Expression]]:
        if isinstance(node.op, ConditionOp | ScriptOp):
            yield "", self._routes.condition(node.id)
        for edge in self._routes.ways(node.id, self._event.outcome):
            guard = self._routes.guard(edge)
            if guard is not None:
                yield edge.id, guard

    def _names(self, node: Node, token: Token) -> dict[str, object]:
        header, stored = self._known.header, self._stored
        moment = Moment(
            now=stored.at,
            instance=header.id,
            key=header.key,
            tenant=header.tenant,
            partition=header.partition,
            actor=Actor(id=stored.actor, on_behalf_of=stored.on_behalf_of),
        )
        output = self._event.output
        asked = ScopeQuery(moment, self._state, node.id, merged(self._routes, token.data, node.id, output), output)
        return namespaces_of(self._routes.graph.kind).values(asked)

    def _condition(
        self, edge: str, expression: Expression, asked: dict[str, object], hidden: frozenset[str]
    ) -> AskedCondition:
        told = expression.explain(asked, sensitive=hidden)
        if any(map(_is_redacted, expression.explain(asked).variables.values())):
            return AskedCondition(
                expression=told.expression, values=dict(told.variables), result=None, error=_REDACTED, edge=edge
            )
        return AskedCondition(
            expression=told.expression,
            values=dict(told.variables),
            result=told.result,
            error="" if told.failure is None else told.failure.message,
            edge=edge,
        )


def _is_redacted(value: object) -> bool:
    """Whether a value, or a part of it, is what a redaction left."""
    if isinstance(value, dict):
        return any(map(_is_redacted, value.values()))
    return any(map(_is_redacted, value)) if isinstance(value, list | tuple) else is_mark(value)
