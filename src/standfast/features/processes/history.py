"""The trail of a process: its history, told by the events of its specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from standfast.features.processes.views import Category, ProcessEvent
from standfast.graph.model import Graph, HumanOp, TaskOp
from standfast.graph.nodes.kind import NodeOp
from standfast.kernel.actor import SYSTEM
from standfast.kernel.history import StoredEvent
from standfast.kernel.program import Program
from standfast.machine.model import events as e
from standfast.machine.model.rows.process_rows import step_named
from standfast.machine.recovery.repair import AGAIN

_LIFECYCLE = (e.WorkflowStarted, e.WorkflowCompleted, e.WorkflowFailed, e.WorkflowPaused, e.WorkflowResumed)
_INTERNAL = frozenset({"has_row", "starter", "may"})
"""Fields of events that are of the engine's own, and say nothing to people."""
_REPAIRED = {"skip": "step_skipped", "complete": "step_completed"}
"""What operators do to steps; all else has a call made again."""
OVERRIDDEN = "overridden"
"""What a question is left by that somebody went past who was not asked."""
_CALL = "step"
"""In the metadata of a node that is no step of its own: the step that it belongs to."""


def _ends(stored: StoredEvent, event: e.TaskDecided, following: Sequence[tuple[StoredEvent, object]]) -> bool:
    """Whether a decision is the one that ends its step by what it says itself; that is told with the end."""
    after, ended = following[0] if following else (stored, None)
    return (
        isinstance(ended, e.StepAnswered)
        and after.cause == stored.cause
        and (ended.step, ended.outcome) == (event.step, event.outcome)
    )


class ProcessHistory:
    """Tells the events of one instance, one after the other."""

    def __init__(self, graph: Graph, begun: Mapping[int, str] | None = None) -> None:
        self._graph = graph
        self._is_whole = begun is None
        """Whether it begins with the first event; otherwise it is silent about steps of whose beginning nobody has told."""
        self._nodes: dict[int, str] = dict(begun or {})
        """The nodes of the steps that have begun."""
        self._last = ""
        """The step that it is at."""

    def told(self, program: Program, events: Sequence[StoredEvent]) -> list[ProcessEvent]:
        """The whole trail, what happens to the instance itself included."""
        told = [(each, program.decode(each)) for each in events if not each.is_system]
        entries: list[ProcessEvent] = []
        for place, (stored, event) in enumerate(told):
            if isinstance(event, e.TaskDecided) and _ends(stored, event, told[place + 1 : place + 2]):
                continue
            entries += self._tell(stored, event)
        return entries

    def _tell(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.StepStarted(step=number, node=node):
                yield from self._entered(stored, number, node)
            case e.StepCompleted(step=number, node=node) if node:
                entered = list(self._entered(stored, number, node))
                if (
                    event.effect is not None and not event.by
                ):  # A notification; of others that take no time nothing is told.
                    yield from entered
                    yield self._entry(stored, "step_completed", actor=SYSTEM.id, place=1)
            case e.StepCompleted(step=number) if (
                not self._is(number, HumanOp) and self._is_step(number) and not event.by
            ):
                yield self._entry(stored, "step_completed", actor=SYSTEM.id)
            case e.StepFailed(reason="") | e.StepPaused():
                yield self._entry(stored, "step_failed", {"error": event.error}, actor=SYSTEM.id)
            case e.NotificationFailed(step=number) if self._is(number, TaskOp):
                told = self._entry(stored, "step_failed", {"error": event.error}, actor=SYSTEM.id)
                yield msgspec.structs.replace(told, step_id=step_named(self._graph, self._nodes[number]))
            case e.TimedOut():
                yield self._entry(stored, "timeout", actor=SYSTEM.id)
            case e.SignalReceived():
                yield self._entry(stored, event.name, event.payload)
            case e.EventReceived():
                yield self._entry(stored, event.event, event.payload, actor=event.publisher or SYSTEM.id)
            case _:
                yield from self._tell_of_operators(stored, event)

    def _tell_of_operators(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.StepRepaired():
                yield self._entry(stored, _REPAIRED.get(event.repair, AGAIN), actor=event.actor, comment=event.reason)
            case e.DataChanged():
                yield self._entry(stored, "data_changed", event.patch, actor=event.actor, comment=event.reason)
            case e.MoveBackStarted():
                yield self._entry(stored, "moved_back", actor=event.actor, comment=event.reason)
            case _:
                yield from self._tell_of_people(stored, event)

    def _tell_of_people(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.TaskDecided():
                yield self._answer(stored, event)
            case e.StepAnswered(step=number) if self._is(number, HumanOp):
                yield self._entry(stored, "step_completed", for_=event.on_behalf_of)
                yield self._result(stored, event)
            case e.DecisionWithdrawn():
                yield self._entry(stored, "answer_withdrawn", actor=event.actor, comment=event.reason)
            case _:
                yield from self._tell_of_whole(stored, event)

    def _tell_of_whole(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.WorkflowCancelled() | e.WorkflowAborted():
                yield self._entry(stored, "cancelled", actor=event.requested_by, comment=event.reason)
            case event if isinstance(event, _LIFECYCLE):
                told = {name: value for name, value in msgspec.to_builtins(event).items() if name not in _INTERNAL}
                yield self._entry(stored, stored.type, told, category="lifecycle")
            case _:
                pass

    def _answer(self, stored: StoredEvent, event: e.TaskDecided | e.StepAnswered, place: int = 0) -> ProcessEvent:
        return self._entry(
            stored,
            event.outcome,
            event.data,
            actor=event.actor,
            for_=event.on_behalf_of,
            comment=event.comment,
            place=place,
        )

    def _result(self, stored: StoredEvent, event: e.StepAnswered) -> ProcessEvent:
        """What a step is left by: the answer that ends it, or what several come to where the last one has said something else.

        Of an operator who was not asked and went past the question no answer is told.
        """
        if event.overridden:
            return msgspec.structs.replace(self._answer(stored, event, 1), event=OVERRIDDEN)
        if event.decisions and event.decisions[-1]["status"] != event.outcome:
            return self._entry(stored, event.outcome, actor=SYSTEM.id, place=1)
        return self._answer(stored, event, 1)

    def _entered(self, stored: StoredEvent, number: int, node: str) -> Iterator[ProcessEvent]:
        """A step has begun; what is told of it if it is one that the definition names."""
        is_first = self._is_whole and not self._nodes
        self._nodes[number] = node
        if not node.startswith("#"):
            self._last = step_named(self._graph, node)
        if _CALL not in self._graph.nodes[node].metadata:
            yield self._entry(stored, "step_entered", actor=stored.actor if is_first else SYSTEM.id)

    def _is(self, number: int, op: type[NodeOp]) -> bool:
        node = self._nodes.get(number)
        return node is not None and isinstance(self._graph.nodes[node].op, op)

    def _is_step(self, number: int) -> bool:
        node = self._nodes.get(number)
        return node is not None and _CALL not in self._graph.nodes[node].metadata

    def _entry(
        self,
        stored: StoredEvent,
        event: str,
        data: object = None,
        *,
        actor: str = "",
        for_: str = "",
        comment: str = "",
        place: int = 0,
        category: Category = "step",
    ) -> ProcessEvent:
        return ProcessEvent(
            id=f"{stored.instance}:{stored.sequence}.{place}" if place else f"{stored.instance}:{stored.sequence}",
            workflow_instance_id=stored.instance,
            step_id=self._last,
            event=event,
            actor_id=actor or stored.actor,
            on_behalf_of=for_ or (stored.on_behalf_of if actor in {"", stored.actor} else ""),
            data=data if isinstance(data, dict) else {} if data is None else {"data": data},
            comment=comment or ("" if actor == SYSTEM.id else stored.comment),
            timestamp=stored.at,
            category=category,
        )
