"""Why a document went the way it did: what its workflow asked at each step, of which values, and what came out.

Nothing of it is stored twice: the history tells the state in which a step was left, and asking again comes to the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.app.document_views import AskedCondition, DocumentChoice
from holdfast.app.documents import Found
from holdfast.app.visibility import unshown
from holdfast.expressions import Expression
from holdfast.kernel.actor import Actor
from holdfast.kernel.history import StoredEvent
from holdfast.kernel.moment import Moment
from holdfast.machine.graphs.graph import Condition, Node, Script
from holdfast.machine.runs import events as e
from holdfast.machine.runs.answers import merged
from holdfast.machine.runs.namespaces import Asked, namespaces_of
from holdfast.machine.runs.state import State, Token
from holdfast.store.reading import Reader


def choices_of(reader: Reader, known: Found, actor: Actor) -> list[DocumentChoice]:
    """All steps of a document that asked something when they were left, in order."""
    machine, state, found = known.machine, known.machine.initial(), list[DocumentChoice]()
    for stored in reader.events(known.header.id):
        if stored.is_system:
            continue
        event = known.program.decode(stored)
        if isinstance(event, e.StepCompleted):
            found += _Asking(known, state, stored, event).told(actor)
        state = machine.evolve(state, event)  # type: ignore[arg-type]
    return found


class _Asking:
    """A step that is left, in the state before that."""

    def __init__(self, known: Found, state: State, stored: StoredEvent, event: e.StepCompleted) -> None:
        self._known, self._state, self._stored, self._event = known, state, stored, event
        self._routes = known.machine.routes_of(state)

    def told(self, actor: Actor) -> Iterator[DocumentChoice]:
        """What it asked, if it asked anything."""
        step = self._state.open.get(self._event.step)
        name = self._event.node or (step.node if step is not None else "")
        token = self._state.tokens.get(self._event.token or (step.token if step is not None else ""))
        if not name or token is None:
            return
        node = self._routes.node(name)
        asked = self._names(node, token)
        conditions = [self._condition(edge, expression, asked, actor) for edge, expression in self._expressions(node)]
        if conditions:
            yield DocumentChoice(
                step=self._event.step,
                node=name,
                outcome=self._event.outcome,
                to=self._event.to,
                at=self._stored.at,
                asked=conditions,
            )

    def _expressions(self, node: Node) -> Iterator[tuple[str, Expression]]:
        if isinstance(node.op, Condition | Script):
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
        asked = Asked(moment, self._state, node.id, merged(self._routes, token.data, node.id, output), output)
        return namespaces_of(self._routes.graph.kind).values(asked)

    def _condition(self, edge: str, expression: Expression, asked: dict[str, object], actor: Actor) -> AskedCondition:
        hidden = {f"entity.{name}" for name in unshown(self._known.parts.spec, actor)}
        told = expression.explain(asked, sensitive=hidden)
        return AskedCondition(
            expression=told.expression,
            values=dict(told.variables),
            result=told.result,
            error="" if told.failure is None else told.failure.message,
            edge=edge,
        )
